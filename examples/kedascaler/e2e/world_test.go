// Package e2e runs the scaler's binary with a real KEDA and the real HorizontalPodAutoscaler on a real control plane.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/kedacluster"
	"github.com/inferscale/inferscale/examples/internal/workspaces"
	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// TestMain keeps controller-runtime, which installs the definitions, from saying that nobody gave it a logger.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

const (
	system    = kedacluster.Namespace
	account   = "kedascaler"
	namespace = "models"
)

// A world is a control plane with KEDA, pods whose pages say what the test wants, and the scaler's binary.
type world struct {
	t       *testing.T
	began   time.Time
	cluster *cluster.Cluster
	keda    *kedacluster.KEDA
	kubelet *cluster.Kubelet
	admin   kubernetes.Interface
	dynamic dynamic.Interface

	binary, config string
	port, hook     int
	scaler         *cluster.Program
	runs           int

	last map[target]int64 // the counts that were seen

	mu   sync.Mutex
	load map[string]int // requests that wait, by the name of Deployment or Workspace, shared by its ready pods
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kedacluster.Need(t)
	w := &world{t: t, began: time.Now(), load: make(map[string]int), last: make(map[target]int64)}
	w.cluster = cluster.ForTest(t, cluster.Options{Controllers: cluster.HPA()})
	w.admin = kubernetes.NewForConfigOrDie(w.cluster.Config())
	w.dynamic = dynamic.NewForConfigOrDie(w.cluster.Config())
	var err error
	w.kubelet, err = cluster.StartKubelet(t.Context(), w.cluster.Config(), cluster.KubeletOptions{Metrics: w.page})
	require.NoError(t, err)
	t.Cleanup(w.kubelet.Stop)
	w.keda = kedacluster.ForTest(t, w.cluster, kedacluster.Options{})
	w.say("etcd, kube-apiserver, kube-controller-manager %s and KEDA %s run", cluster.Version, kedacluster.Version)

	w.port, w.hook = freePort(t), freePort(t)
	w.install()
	w.binary = filepath.Join(t.TempDir(), "kedascaler")
	out, err := exec.Command("go", "build", "-o", w.binary, "..").CombinedOutput()
	require.NoError(t, err, "%s", out)
	as, err := w.cluster.ServiceAccount(t.Context(), system, account)
	require.NoError(t, err)
	w.config = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(w.config, as))
	w.start()
	workspaces.Start(t, w.cluster, "../../workspace")
	return w
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := cluster.FreePort()
	require.NoError(t, err)
	return port
}

// say tells how far the test is, with the time.
func (w *world) say(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("%6.1f s  %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// page is what a pod says: its share of the load of its app.
func (w *world) page(p cluster.Pod) map[string]float64 {
	app := appOf(p)
	pods := 0
	for _, other := range w.kubelet.Pods() {
		if other.Ready && !other.Leaving && appOf(other) == app {
			pods++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	values := cluster.Page(0, 1, 0.1)
	values[cluster.Waiting] = float64(w.load[app]) / float64(max(pods, 1))
	return values
}

func appOf(p cluster.Pod) string {
	for _, label := range []string{"app", v1alpha1.NameLabel} {
		if v := p.Labels[label]; v != "" {
			return v
		}
	}
	return p.Name
}

// wait sets how many requests wait at an app.
func (w *world) wait(app string, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.load[app] = requests
}

// install applies the scaler's account and roles, and its webhook at this machine.
func (w *world) install() {
	w.t.Helper()
	ctx := w.t.Context()
	roles, err := os.ReadFile("../deploy/kustomize/rbac.yaml")
	require.NoError(w.t, err)
	roles, err = cluster.InNamespace(roles, system)
	require.NoError(w.t, err)
	require.NoError(w.t, w.cluster.Apply(ctx, roles))
	require.NoError(w.t, w.cluster.Apply(ctx, fmt.Appendf(nil, webhook, w.hook)))
	require.NoError(w.t, w.cluster.Apply(ctx, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")))
}

// webhook is that of the manifests, but for its address, and that it must answer: else a test would not see whether it does.
const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kedascaler}
webhooks:
  - name: default.scaledobjects.inferscale.io
    clientConfig: {url: "https://127.0.0.1:%d/default-scaledobject"}
    rules: [{apiGroups: [keda.sh], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [scaledobjects]}]
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    timeoutSeconds: 5
`

// start runs the scaler as its service account.
func (w *world) start() {
	w.t.Helper()
	var err error
	w.runs++
	w.scaler, err = w.cluster.StartProgram("kedascaler-"+strconv.Itoa(w.runs), w.binary, os.Environ(),
		"-kubeconfig", w.config, "-namespace", system, "-address", w.address(), "-server-names", "127.0.0.1",
		"-allow-local-targets", "-health-address", "0", "-metrics-address", "0", "-leader-elect-lease", "3s", "-leader-elect-renew", "2s", "-leader-elect-retry", "500ms",
		"-certificate-life", "5m", "-ca-overlap", "4s", "-ca-drop-after", "6s",
		"-webhook", "-webhook-host", "127.0.0.1", "-webhook-port", strconv.Itoa(w.hook))
	require.NoError(w.t, err)
	w.t.Cleanup(w.scaler.Stop)
	require.NoError(w.t, w.scaler.Ready(w.t.Context(), func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.address())
		if err != nil {
			return err
		}
		return errors.Join(conn.Close(), w.trusted(ctx))
	}))
}

func (w *world) address() string { return "127.0.0.1:" + strconv.Itoa(w.port) }

// trusted reports why the webhook and KEDA do not know the scaler's certificates yet.
func (w *world) trusted(ctx context.Context) error {
	hook, err := w.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "kedascaler", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(hook.Webhooks[0].ClientConfig.CABundle) == 0 {
		return errors.New("the webhook has no CA yet")
	}
	_, err = w.dynamic.Resource(schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "clustertriggerauthentications"}).Get(ctx, "keda-kaito-creds", metav1.GetOptions{})
	return err
}

// deployment makes a Deployment of so many replicas.
func (w *world) deployment(name string, replicas int) {
	w.t.Helper()
	require.NoError(w.t, w.cluster.Apply(w.t.Context(), fmt.Appendf(nil, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: models}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: vllm, image: vllm}]}
`, name, replicas)))
}

// workspace makes a Workspace of one replica.
func (w *world) workspace(name string) {
	w.t.Helper()
	w.eventually("the webhook of Workspaces answers", func() bool {
		return w.cluster.Apply(w.t.Context(), fmt.Appendf(nil, `
apiVersion: workspace.inferscale.io/v1alpha1
kind: Workspace
metadata: {name: %[1]s, namespace: models}
spec:
  resource:
    instanceType: Standard_NC24ads_A100_v4
    labelSelector: {matchLabels: {apps: %[1]s}}
  inference:
    replicas: 1
    preset: {name: llama-3.1-8b-instruct, contextTokens: 32768}
`, name)) == nil
	})
}

// A target is what a ScaledObject scales.
type target struct {
	resource schema.GroupVersionResource
	kind     string
	name     string
	replicas string // path of the count
}

func deploymentOf(name string) target {
	return target{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", name, "spec.replicas"}
}

func workspaceOf(name string) target {
	return target{schema.GroupVersionResource{Group: "workspace.inferscale.io", Version: "v1alpha1", Resource: "workspaces"}, "Workspace", name, "spec.inference.replicas"}
}

// count returns spec.replicas of a target, -1 if it cannot be read.
func (w *world) count(t target) int64 {
	u, err := w.dynamic.Resource(t.resource).Namespace(namespace).Get(w.t.Context(), t.name, metav1.GetOptions{})
	if err != nil {
		return -1
	}
	n, _, err := unstructured.NestedInt64(u.Object, strings.Split(t.replicas, ".")...)
	if err != nil {
		return -1
	}
	return n
}

// hold checks that a target keeps its count for a while.
func (w *world) hold(t target, because string, d time.Duration) {
	w.t.Helper()
	until := time.Now().Add(d)
	w.eventually("the time has passed", func() bool {
		require.Equal(w.t, w.last[t], w.count(t), because)
		return time.Now().After(until)
	})
	w.say("%-10s %-10s %2d for %s: %s", t.kind, t.name, w.last[t], d, because)
}

// follow waits until a target has so many replicas, and says how long it took.
func (w *world) follow(t target, because string, n int64) {
	w.t.Helper()
	began, from := time.Now(), w.last[t]
	w.eventually(fmt.Sprintf("%s %s has %d replicas (%s)", t.kind, t.name, n, because), func() bool { return w.count(t) == n })
	w.last[t] = n
	w.say("%-10s %-10s %2d -> %2d after %4.1f s: %s", t.kind, t.name, from, n, time.Since(began).Seconds(), because)
}

// quick is a behavior that has no pace and no tolerance of its own.
const quick = `
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp: {stabilizationWindowSeconds: 0, tolerance: "0", policies: [{type: Pods, value: 100, periodSeconds: 1}]}
        scaleDown: {stabilizationWindowSeconds: 0, tolerance: "0", policies: [{type: Pods, value: 100, periodSeconds: 1}]}`

// scaledObject makes a ScaledObject; more is added to its spec.
func (w *world) scaledObject(t target, more string, metadata ...string) {
	w.t.Helper()
	text := fmt.Sprintf(`
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: %s, namespace: models}
spec:
  scaleTargetRef: {apiVersion: %s, kind: %s, name: %s}
  pollingInterval: 1
  minReplicaCount: 1
  maxReplicaCount: 20%s
  triggers:
    - type: external
      metadata:
        scalerName: keda-kaito-scaler
        scalerAddress: "%s"
        interval: "1"
`, t.name, t.resource.GroupVersion(), t.kind, t.name, more, w.address())
	for i := 0; i < len(metadata); i += 2 {
		text += fmt.Sprintf("        %s: %q\n", metadata[i], metadata[i+1])
	}
	require.NoError(w.t, w.cluster.Apply(w.t.Context(), []byte(text)))
	w.last[t] = w.count(t)
}

// eventually polls until a condition holds, for a minute.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			w.t.Log(w.keda.LogTails(15))
			require.FailNow(w.t, "it did not come to be that "+what, w.conditions())
		case <-tick.C:
		}
	}
}

// conditions are what KEDA says of all ScaledObjects.
func (w *world) conditions() string {
	list, err := w.dynamic.Resource(scaledObjects).Namespace(namespace).List(context.WithoutCancel(w.t.Context()), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var all []string
	for i := range list.Items {
		all = append(all, fmt.Sprint(list.Items[i].GetName(), " ", list.Items[i].Object["status"]))
	}
	return strings.Join(all, "\n")
}

var scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
