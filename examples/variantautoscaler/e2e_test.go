//go:build linux

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/variantautoscaler/controller"
)

const (
	system  = "inferscale-system"
	serving = "serving"
)

// A stage is a control plane with what deploy/ has, and pods that serve pages.
type stage struct {
	*cluster.Cluster
	admin      *kubernetes.Clientset
	account    string // the user name of the controller
	kubeconfig string // of the controller: with the permissions of deploy/ and no others
	sample     string // the configuration of the sample
	kubelet    *cluster.Kubelet

	mu sync.Mutex
	kv float64 // of every pod
}

// newStage returns a stage, with the sample as its configuration and a pod of each of its variants,
// which loads for a while.
func newStage(t *testing.T, loading time.Duration) *stage {
	t.Helper()
	w := &stage{Cluster: cluster.ForTest(t, cluster.Options{Controllers: cluster.Workloads()}), kv: 0.5}
	w.admin = kubernetes.NewForConfigOrDie(w.Config())
	for _, file := range []string{
		"base/namespace.yaml", "base/serviceaccount.yaml", "base/role.yaml", "base/deployment.yaml", "base/disruption.yaml", "base/networkpolicy.yaml",
		"sample/workloads.yaml", "sample/role.yaml", "sample/config.yaml",
	} {
		text, err := os.ReadFile(filepath.Join("deploy", filepath.FromSlash(file)))
		require.NoError(t, err)
		require.NoError(t, w.Apply(t.Context(), text), file)
	}
	kubelet, err := cluster.StartKubelet(t.Context(), w.Config(), cluster.KubeletOptions{
		Namespace: serving, Port: 8000, StartDelay: loading, Metrics: func(cluster.Pod) map[string]float64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return cluster.Page(0, int(w.kv*10), w.kv)
		},
	})
	require.NoError(t, err)
	t.Cleanup(kubelet.Stop)
	w.kubelet = kubelet
	account, err := w.ServiceAccount(t.Context(), system, "variantautoscaler")
	require.NoError(t, err)
	w.account = cluster.ServiceAccountUser(system, "variantautoscaler")
	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(w.kubeconfig, account))
	m, err := w.admin.CoreV1().ConfigMaps(system).Get(t.Context(), "variantautoscaler", metav1.GetOptions{})
	require.NoError(t, err)
	w.sample = strings.ReplaceAll(m.Data[controller.Key], "15s", "1s")
	w.configure(t, w.sample)
	eventually(t, "two pods are ready", func() bool { return ready(kubelet.Pods()) == 2 })

	return w
}

func TestE2E(t *testing.T) {
	w := newStage(t, 0)
	kubelet := w.kubelet
	w.setKV(0.78)
	t.Run("one round on a laptop", w.testOnce)
	begin := time.Now()
	metrics, probes := cluster.FreeAddress(t), cluster.FreeAddress(t)
	first := w.start(t, "-metrics-address", metrics, "-probe-address", probes, "-identity", "first")
	t.Run("dry run writes no replicas", func(t *testing.T) {
		eventually(t, "the event", func() bool { return w.event(t, serving, "llama-h100", "WouldScaleUp") != "" })
		t.Logf("first plan after %v", time.Since(begin))
		assert.Equal(t, "ok\n", get(t, "http://"+probes+"/readyz"))
		assert.Equal(t, "ok\n", get(t, "http://"+probes+"/healthz"))
		page := get(t, "http://"+metrics+"/metrics")
		assert.Contains(t, page, `inferscale_dry_run{autoscaler="",kind="Deployment",name="llama-h100",namespace="serving"} 1`)
		assert.Empty(t, w.writes(t, "deployments", "scale"))
		assert.Equal(t, []int32{1, 1}, w.replicas(t))
	})
	t.Run("a change of the configuration is picked up, and the cheapest grows", func(t *testing.T) {
		w.configure(t, strings.Replace(w.sample, "dryRun: true", "dryRun: false", 1))
		eventually(t, "llama-h100 has two", func() bool { return w.replicas(t)[0] == 2 })
		assert.Equal(t, int32(1), w.replicas(t)[1], "98 for 2 is cheaper than 60 for 1")
		eventually(t, "the event", func() bool { return w.event(t, serving, "llama-h100", "ScaledUp") != "" })
		w.setKV(0.65) // 0.15 to spare, and too little for one less
		eventually(t, "three pods are ready", func() bool { return ready(kubelet.Pods()) == 3 })
	})
	t.Run("a bad configuration changes nothing", func(t *testing.T) {
		w.configure(t, strings.Replace(w.sample, "max: 8", "max: many", 1))
		eventually(t, "the event", func() bool { return w.event(t, system, "variantautoscaler", "ConfigRefused") != "" })
		assert.Contains(t, w.event(t, system, "variantautoscaler", "ConfigRefused"),
			`the last good configuration stays in force: variants.yaml:17: models[0].variants[1].max: "many": must be a whole number`)
		assert.Contains(t, get(t, "http://"+metrics+"/metrics"), "\ninferscale_configuration_refused 1\n")
		assert.Equal(t, "ok\n", get(t, "http://"+probes+"/readyz"))
		w.configure(t, strings.Replace(w.sample, "dryRun: true", "dryRun: false", 1))
	})
	t.Run("another copy takes over", func(t *testing.T) {
		second := w.start(t, "-metrics-address", "0", "-probe-address", "0", "-identity", "second")
		assert.Equal(t, exitOK, first.stop())
		eventually(t, "the lease is the second's", func() bool { return w.leader(t) == "second" })
		w.setKV(0.79)
		eventually(t, "llama-h100 has three", func() bool { return w.replicas(t)[0] == 3 })
		w.setKV(0.65)
		assert.Equal(t, exitOK, second.stop())
		assert.Empty(t, w.leader(t), "the lease is given up")
	})
	t.Run("one that loses the lease ends", func(t *testing.T) {
		third := w.start(t, "-metrics-address", "0", "-probe-address", "0", "-identity", "third")
		eventually(t, "the lease is the third's", func() bool { return w.leader(t) == "third" })
		w.steal(t)
		assert.Equal(t, exitFail, third.wait())
		assert.Equal(t, "thief", w.leader(t))
	})
	t.Run("the state came before the replicas", w.testOrder)
	t.Run("its own pods are within the restricted pod security", func(t *testing.T) {
		eventually(t, "two pods", func() bool {
			pods, err := w.admin.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			return len(pods.Items) == 2
		})
	})
	t.Run("nothing was forbidden", func(t *testing.T) {
		for _, write := range w.writes(t, "", "*") {
			assert.NotEqual(t, http.StatusForbidden, write.Code, "%+v", write)
		}
	})
}

func (w *stage) testOnce(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "variants.yaml")
	require.NoError(t, os.WriteFile(file, []byte(w.sample), 0o600))
	var out, log bytes.Buffer
	code := run(t.Context(), []string{"-kubeconfig", w.kubeconfig, "-namespace", system, "-allow-local", "-once", "-explain", "-f", file}, &out, &log)
	require.Equal(t, exitOK, code, log.String())
	t.Log("\n" + out.String())
	assert.Contains(t, out.String(), "serving/meta/llama-70b  saturation  Up 2 -> 3  cost 158 -> 256\n")
	assert.Contains(t, out.String(), "llama-h100  98    1..4    1      1 -> 2  Up       ShortKV ")
	assert.Contains(t, out.String(), "; Cheapest llama-h100 price=49 <= next=60\n")
	_, err := w.admin.CoreV1().ConfigMaps(system).Get(t.Context(), "variantautoscaler-state", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "nothing is written")
	assert.Empty(t, w.writes(t, "", "*"))

	// Whoever may read no ConfigMap sees the same, without thresholds from one.
	require.NoError(t, w.Apply(t.Context(), []byte(looker)))
	account, err := w.ServiceAccount(t.Context(), serving, "looker")
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(kubeconfig, account))
	args := []string{"-kubeconfig", kubeconfig, "-namespace", system, "-allow-local", "-once", "-f", file}
	out.Reset()
	log.Reset()
	assert.Equal(t, exitFail, run(t.Context(), append(args, "-timeout", "2s"), &out, &log))
	assert.Contains(t, log.String(), "ConfigMaps of namespace inferscale-system, for thresholdsFrom, are not known after 2s")
	own := strings.Replace(w.sample, "      thresholdsFrom: {configMap: saturation-thresholds}\n", "", 1)
	require.NotEqual(t, w.sample, own)
	require.NoError(t, os.WriteFile(file, []byte(own), 0o600))
	out.Reset()
	log.Reset()
	assert.Equal(t, exitOK, run(t.Context(), args, &out, &log), log.String())
	assert.Contains(t, out.String(), "serving/meta/llama-70b  saturation  Up 2 -> 3  cost 158 -> 256\n")
}

// looker may do what the README asks of who only looks.
const looker = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: looker, namespace: serving}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looker, namespace: serving}
rules:
  - {apiGroups: [apps], resources: [deployments/scale], verbs: [get]}
  - {apiGroups: [""], resources: [pods], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: looker, namespace: serving}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: looker}
subjects: [{kind: ServiceAccount, name: looker, namespace: serving}]
`

// testOrder looks at what was written outside the dry run: the state, replicas, the state.
func (w *stage) testOrder(t *testing.T) {
	t.Helper()
	var order []string
	for _, write := range w.writes(t, "", "*") {
		switch {
		case write.Subresource == "scale":
			order = append(order, "replicas")
		case write.Resource == "configmaps" && !bytes.Contains(write.Body, []byte(".dry-run")):
			order = append(order, "state")
		}
	}
	text := strings.Join(order, " ")
	assert.Equal(t, 2, strings.Count(text, "replicas"), text)
	assert.Equal(t, 2, strings.Count(text, "state replicas state"), text)
}

// A program is one that runs as the controller's account.
type program struct {
	cancel context.CancelFunc
	wait   func() int // returns the exit code
}

// stop tells the program to stop and returns the exit code.
func (p *program) stop() int {
	p.cancel()
	return p.wait()
}

// start runs the program; it ends with the test at the latest.
func (w *stage) start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log, code := &journal{}, make(chan int, 1)
	args = append([]string{
		"-kubeconfig", w.kubeconfig, "-namespace", system, "-allow-local", "-state-config-maps", "8",
		"-lease-duration", "3s", "-renew-deadline", "2s", "-retry-period", "200ms",
	}, args...)
	go func() { code <- run(ctx, args, io.Discard, log) }()
	p := &program{cancel: cancel, wait: sync.OnceValue(func() int { return <-code })}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("log of %v:\n%s", args, log)
		}
	})
	return p
}

// A journal is the log of a program.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (w *stage) setKV(kv float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kv = kv
}

func (w *stage) configure(t *testing.T, text string) {
	t.Helper()
	m, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "variantautoscaler"},
		Data:       map[string]string{controller.Key: text},
	})
	require.NoError(t, err)
	require.NoError(t, w.Apply(t.Context(), m))
}

// replicas returns those of llama-h100 and llama-a100.
func (w *stage) replicas(t *testing.T) []int32 {
	t.Helper()
	var all []int32
	for _, name := range []string{"llama-h100", "llama-a100"} {
		s, err := w.admin.AppsV1().Deployments(serving).GetScale(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		all = append(all, s.Spec.Replicas)
	}
	return all
}

// event returns the message of an event.
func (w *stage) event(t *testing.T, namespace, about, reason string) string {
	t.Helper()
	events, err := w.admin.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, e := range events.Items {
		if e.InvolvedObject.Name == about && e.Reason == reason {
			return e.Message
		}
	}
	return ""
}

func (w *stage) leader(t *testing.T) string {
	t.Helper()
	lease, err := w.admin.CoordinationV1().Leases(system).Get(t.Context(), component, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// steal makes somebody else the leader.
func (w *stage) steal(t *testing.T) {
	t.Helper()
	leases := w.admin.CoordinationV1().Leases(system)
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := leases.Get(t.Context(), component, metav1.GetOptions{})
		require.NoError(t, err)
		thief, now := "thief", metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &thief, &now
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	}))
}

func (w *stage) writes(t *testing.T, resource, subresource string) []cluster.Write {
	t.Helper()
	all, err := w.Writes(w.account, resource, subresource)
	require.NoError(t, err)
	return all
}

func ready(pods []cluster.Pod) int {
	n := 0
	for _, p := range pods {
		if p.Ready && !p.Leaving {
			n++
		}
	}
	return n
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return string(text)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 60*time.Second, 100*time.Millisecond, what)
}
