// Package e2e runs the controller's binary, as a process of its own with nothing but the roles of its manifests,
// against a real control plane.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/policy"
)

const (
	system    = "inferscale-system"
	account   = "llmautoscaler"
	namespace = "models"
)

// A world is a control plane with a fleet of pretended inference servers, and the controller's binary.
type world struct {
	t                  *testing.T
	cluster            *cluster.Cluster
	kubelet            *cluster.Kubelet
	fleet              *cluster.Fleet
	waiting            atomic.Int32 // what every page says, instead of the fleet's queue; negative for that
	loads              sync.Map     // what the pages of a Deployment's pods say, an int by its name, before all others
	client             client.Client
	binary             string
	config             string // kubeconfig of the controller
	hook, certificates string // of the webhook, where it is shipped
	user               string
}

// build makes the binary once for all tests of the package.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "llmautoscaler")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "llmautoscaler")
	out, err := exec.Command("go", "build", "-o", file, "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

func newWorld(t *testing.T, apiServerFlags ...string) *world {
	t.Helper()
	w := newBareWorld(t, cluster.Workloads(), apiServerFlags...)
	fleet := cluster.NewFleet(cluster.FleetOptions{Slots: 4, Service: 500 * time.Millisecond})
	w.fleet = fleet
	w.waiting.Store(-1)
	var err error
	w.kubelet, err = cluster.StartKubelet(t.Context(), w.cluster.Config(), cluster.KubeletOptions{
		Fleet: fleet, StartDelay: 300 * time.Millisecond,
		Metrics: func(p cluster.Pod) map[string]float64 {
			if n, ok := w.loads.Load(p.Labels["app"]); ok {
				return cluster.Page(n.(int), 4, 0.5)
			}
			if n := w.waiting.Load(); n >= 0 {
				return cluster.Page(int(n), 4, 0.5)
			}
			return fleet.Metrics(p)
		},
	})
	require.NoError(t, err)
	t.Cleanup(w.kubelet.Stop)
	return w
}

// newBareWorld is a world without pods: nobody makes them of Deployments, unless controllers do.
func newBareWorld(t *testing.T, controllers []string, apiServerFlags ...string) *world {
	t.Helper()
	c := cluster.ForTest(t, cluster.Options{
		Controllers: controllers, CRDs: []string{"../../../adapters/k8s/api/crd"}, APIServerFlags: apiServerFlags,
	})
	ctx := t.Context()
	require.NoError(t, c.Apply(ctx, []byte(namespaces)))
	require.NoError(t, c.Apply(ctx, roles(t)))

	var err error
	w := &world{t: t, cluster: c, user: cluster.ServiceAccountUser(system, account)}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	w.client, err = client.New(c.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	w.binary, err = build()
	require.NoError(t, err)
	as, err := c.ServiceAccount(ctx, system, account)
	require.NoError(t, err)
	w.config = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(w.config, as))
	return w
}

const namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: inferscale-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: models}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: models}
spec:
  replicas: 1
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec: {containers: [{name: server, image: vllm}]}
`

// roles returns the service account and the roles of the manifests.
func roles(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../deploy/kustomize/rbac.yaml")
	require.NoError(t, err)
	data, err = cluster.InNamespace(data, system)
	require.NoError(t, err)
	return data
}

// A process is one run of the binary.
type process struct {
	cmd *exec.Cmd
	out *bytes.Buffer
	mu  *sync.Mutex
}

// Write keeps what the process says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// run starts the controller. It is ended with the test; what it said is shown if the test failed.
func (w *world) run(args ...string) *process {
	w.t.Helper()
	return w.start(nil, args...)
}

// start is run with more environment.
func (w *world) start(environment []string, args ...string) *process {
	w.t.Helper()
	p := &process{out: &bytes.Buffer{}, mu: &sync.Mutex{}}
	p.cmd = exec.Command(w.binary, append([]string{
		"-kubeconfig", w.config, "-health-address", "0", "-metrics-address", "0", "-allow-local-targets",
		"-leader-elect-namespace", system,
	}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.Env = append(os.Environ(), environment...)
	cluster.DieWithParent(p.cmd)
	require.NoError(w.t, p.cmd.Start())
	w.t.Cleanup(func() {
		p.kill()
		if w.t.Failed() {
			said := p.said()
			w.t.Logf("controller %d: ...%s", p.cmd.Process.Pid, said[max(0, len(said)-4000):])
		}
	})
	return p
}

// kill ends the process as a lost machine would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// autoscaler makes an LLMAutoScaler of the Deployment chat.
func (w *world) autoscaler(change func(*v1alpha1.LLMAutoScalerSpec)) {
	w.t.Helper()
	las := &v1alpha1.LLMAutoScaler{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: namespace}, Spec: spec()}
	if change != nil {
		change(&las.Spec)
	}
	require.NoError(w.t, w.client.Create(w.t.Context(), las))
}

// spec is that of an LLMAutoScaler of the Deployment chat, one step at a time.
func spec() v1alpha1.LLMAutoScalerSpec {
	return v1alpha1.LLMAutoScalerSpec{
		Settings: policy.Settings{
			ScaleTargetRef:  policy.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"},
			MaxReplicas:     8,
			IntervalSeconds: new(int32(1)),
		},
		Scaler: policy.Scaler{Realtime: &policy.RealtimeScaler{
			Metrics: []policy.ThresholdMetric{{Threshold: policy.MetricThreshold{High: policy.NewDecimal("5"), Low: policy.NewDecimal("1")}}},
			ScaleUpRule: &policy.ScalerRule{
				ScaleStep: new(int32(1)), CooldownSeconds: new(int32(3)), StabilizationWindowSeconds: new(int32(1)),
			},
			ScaleDownRule: &policy.ScalerRule{
				ScaleStep: new(int32(1)), CooldownSeconds: new(int32(3)), StabilizationWindowSeconds: new(int32(2)),
			},
		}},
	}
}

// eventually polls until a condition holds.
func (w *world) eventually(what string, within time.Duration, holds func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			las := w.status()
			require.FailNow(w.t, "it did not come to be that "+what, "replicas %d, status %+v", w.replicas(), las.Status)
		case <-tick.C:
		}
	}
}

func (w *world) status() *v1alpha1.LLMAutoScaler {
	var las v1alpha1.LLMAutoScaler
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "chat"}, &las); err != nil {
		w.t.Logf("get the LLMAutoScaler: %v", err)
	}
	return &las
}

func (w *world) replicas() int32 { return w.scaledTo(namespace) }

// scaledTo returns spec.replicas of the Deployment chat in a namespace, -1 if it cannot be read.
func (w *world) scaledTo(namespace string) int32 { return w.replicasOf(namespace, "chat") }

// replicasOf is scaledTo of another Deployment.
func (w *world) replicasOf(namespace, name string) int32 {
	scale, err := kubernetes.NewForConfigOrDie(rest.CopyConfig(w.cluster.Config())).AppsV1().Deployments(namespace).GetScale(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return -1
	}
	return scale.Spec.Replicas
}

// condition returns a condition of the LLMAutoScaler.
func (w *world) condition(kind string) (status metav1.ConditionStatus, reason string) {
	for _, c := range w.status().Status.Conditions {
		if c.Type == kind {
			return c.Status, c.Reason
		}
	}
	return corev1ConditionUnknown, ""
}

const corev1ConditionUnknown = metav1.ConditionStatus(corev1.ConditionUnknown)

// writes returns what the controller wrote to the Deployment's scale, and how it was answered.
func (w *world) writes() []cluster.Write {
	w.t.Helper()
	writes, err := w.cluster.Writes(w.user, "deployments", "scale")
	require.NoError(w.t, err)
	return slices.DeleteFunc(writes, func(one cluster.Write) bool { return one.Namespace != namespace })
}
