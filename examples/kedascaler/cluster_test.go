package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

const (
	system  = "keda"
	account = "kedascaler"
	models  = "models"
	secret  = "keda-kaito-scaler-certs"
	creds   = "keda-kaito-creds"
)

var (
	scaledObjects   = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	authentications = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "clustertriggerauthentications"}
)

// A site is a control plane with the scaler's roles, its webhook and pods whose pages say what the test wants.
type site struct {
	*cluster.Cluster

	kube    kubernetes.Interface
	dynamic dynamic.Interface
	kubelet *cluster.Kubelet
	config  string // kubeconfig of the scaler's service account
	port    int
	hook    int

	mu   sync.Mutex
	load map[string]int // what waits at each pod, by the label app
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{load: make(map[string]int)}
	s.Cluster = cluster.ForTest(t, cluster.Options{Controllers: cluster.Workloads(), CRDs: []string{"testdata/keda.yaml"}})
	s.kube, s.dynamic = kubernetes.NewForConfigOrDie(s.Config()), dynamic.NewForConfigOrDie(s.Config())
	var err error
	s.port, err = cluster.FreePort()
	require.NoError(t, err)
	s.hook, err = cluster.FreePort()
	require.NoError(t, err)
	for _, name := range []string{system, models} {
		require.NoError(t, s.Apply(t.Context(), []byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")))
	}
	roles, err := os.ReadFile("deploy/kustomize/rbac.yaml")
	require.NoError(t, err)
	roles, err = cluster.InNamespace(roles, system)
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), roles))
	s.webhook(t)
	s.kubelet, err = cluster.StartKubelet(t.Context(), s.Config(), cluster.KubeletOptions{Metrics: s.page})
	require.NoError(t, err)
	t.Cleanup(s.kubelet.Stop)
	as, err := s.ServiceAccount(t.Context(), system, account)
	require.NoError(t, err)
	s.config = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(s.config, as))
	return s
}

// webhook applies that of the manifests, but for its address.
func (s *site) webhook(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile("deploy/kustomize/webhook.yaml")
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(data, &config))
	for _, w := range config["webhooks"].([]any) {
		w.(map[string]any)["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", s.hook, webhookPath)}
	}
	data, err = yaml.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), data))
}

func (s *site) page(p cluster.Pod) map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cluster.Page(s.load[p.Labels["app"]], 1, 0.5)
}

// waits sets what waits at each pod of an app.
func (s *site) waits(app string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load[app] = n
}

// run starts the scaler as its service account.
func (s *site) run(t *testing.T, flags ...string) *program {
	t.Helper()
	return start(t, append([]string{
		"-kubeconfig", s.config, "-namespace", system, "-server-names", "127.0.0.1", "-allow-local-targets", "-health-address", "0", "-metrics-address", "0",
		"-leader-elect-lease", "3s", "-leader-elect-renew", "2s", "-leader-elect-retry", "500ms",
	}, flags...)...)
}

// hooked are the flags of the one replica that the webhook's URL leads to.
func (s *site) hooked() []string {
	return []string{
		"-address", "127.0.0.1:" + strconv.Itoa(s.port),
		"-webhook", "-webhook-host", "127.0.0.1", "-webhook-port", strconv.Itoa(s.hook),
	}
}

// caller is KEDA, with the pair of the Secret.
func (s *site) caller(t *testing.T, address string) caller {
	t.Helper()
	found, err := s.kube.CoreV1().Secrets(system).Get(t.Context(), secret, metav1.GetOptions{})
	require.NoError(t, err)
	config, err := certs.ClientTLS(certs.Material{
		Bundle: found.Data["ca.crt"],
		Client: certs.Pair{Cert: found.Data["tls.crt"], Key: found.Data["tls.key"]},
		Server: certs.Pair{Cert: found.Data["server.crt"], Key: found.Data["server.key"]},
	}, "127.0.0.1")
	require.NoError(t, err)
	return call(t, address, credentials.NewTLS(config))
}

// deployment makes a Deployment, and waits for its pods.
func (s *site) deployment(t *testing.T, name string, replicas int) {
	t.Helper()
	require.NoError(t, s.Apply(t.Context(), fmt.Appendf(nil, `
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
	eventually(t, func() error {
		ready := 0
		for _, p := range s.kubelet.Pods() {
			if p.Labels["app"] == name && p.Ready {
				ready++
			}
		}
		if ready != replicas {
			return fmt.Errorf("%d of %d pods of %s are ready", ready, replicas, name)
		}
		return nil
	})
}

// scaledObjectOf returns a ScaledObject of a spec in YAML.
func scaledObjectOf(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {namespace: models, name: "+name+"}\nspec:\n"+spec), &u.Object))
	return u
}

// create makes a ScaledObject of a Deployment with one trigger, and returns what KEDA would send of that.
func (s *site) create(t *testing.T, name, deployment string, metadata ...string) *externalscaler.ScaledObjectRef {
	t.Helper()
	ref := trigger(name, metadata...)
	ref.Namespace = models
	text, err := json.Marshal(ref.GetScalerMetadata())
	require.NoError(t, err)
	u := scaledObjectOf(t, name, fmt.Sprintf("  scaleTargetRef: {name: %s}\n  triggers: [{type: external, metadata: %s}]\n", deployment, text))
	stored, err := s.dynamic.Resource(scaledObjects).Namespace(models).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	triggers, _, err := unstructured.NestedSlice(stored.Object, "spec", "triggers")
	require.NoError(t, err)
	sent, _, err := unstructured.NestedStringMap(triggers[0].(map[string]any), "metadata")
	require.NoError(t, err)
	require.Equal(t, "5000", sent["metricPort"], "the webhook has been here")
	ref.ScalerMetadata = sent
	return ref
}

// TestCluster is the scaler as a process of its own, with nothing but the roles of its manifests, on a real control
// plane. KEDA itself is in the tests of the folder e2e.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	s := newSite(t)
	p := s.run(t, s.hooked()...)
	_ = t.Run("Certificates", s.testCertificates) &&
		t.Run("Admission", s.testAdmission) &&
		t.Run("Metric", func(t *testing.T) { s.testMetric(t, p) }) &&
		t.Run("Outage", func(t *testing.T) { s.testOutage(t, p) }) &&
		t.Run("TooEarly", func(t *testing.T) { s.testTooEarly(t, p) }) &&
		t.Run("Restart", func(t *testing.T) { s.testRestart(t, p) }) &&
		t.Run("Sweep", s.testSweep)
}

// Both Secrets are made, and what refers to them.
func (s *site) testCertificates(t *testing.T) {
	eventually(t, func() error {
		hook, err := s.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "kedascaler", metav1.GetOptions{})
		if err == nil && len(hook.Webhooks[0].ClientConfig.CABundle) == 0 {
			err = io.ErrNoProgress
		}
		return err
	})
	found, err := s.kube.CoreV1().Secrets(system).Get(t.Context(), secret, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.SecretTypeTLS, found.Type)
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key", "server.crt", "server.key"} {
		require.NotEmpty(t, found.Data[key], key)
	}
	_, err = s.kube.CoreV1().Secrets(system).Get(t.Context(), "keda-kaito-scaler-ca", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, s.authenticated(t.Context()))
}

// authenticated reports why KEDA would not find its pair.
func (s *site) authenticated(ctx context.Context) error {
	u, err := s.dynamic.Resource(authentications).Get(ctx, creds, metav1.GetOptions{})
	if err != nil {
		return err
	}
	refs, _, _ := unstructured.NestedSlice(u.Object, "spec", "secretTargetRef")
	if len(refs) != 3 || !strings.Contains(fmt.Sprint(refs), secret) {
		return fmt.Errorf("secretTargetRef: %v", refs)
	}
	return nil
}

// What the API server stores has the defaults, and nothing of what was there is changed.
func (s *site) testAdmission(t *testing.T) {
	objects := s.dynamic.Resource(scaledObjects).Namespace(models)
	const unset = `
  scaleTargetRef: {name: chat}
  triggers: [{type: external, metadata: {scalerName: keda-kaito-scaler, threshold: "10"}}]
`
	spec := func(u *unstructured.Unstructured) map[string]any {
		m, _, err := unstructured.NestedMap(u.Object, "spec")
		require.NoError(t, err)
		return m
	}
	eventually(t, func() error { // until the API server has the CA and the webhook answers
		u, err := objects.Create(t.Context(), scaledObjectOf(t, "unset", unset), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && spec(u)["minReplicaCount"] == nil {
			err = io.ErrNoProgress
		}
		return err
	})
	stored, err := objects.Create(t.Context(), scaledObjectOf(t, "unset", unset), metav1.CreateOptions{})
	require.NoError(t, err)
	text, err := yaml.Marshal(spec(stored))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`advanced:
  horizontalPodAutoscalerConfig:
    behavior:
      scaleDown:
        policies:
        - periodSeconds: 600
          type: Pods
          value: 1
        selectPolicy: Max
        stabilizationWindowSeconds: 300
        tolerance: 500m
      scaleUp:
        policies:
        - periodSeconds: 300
          type: Pods
          value: 1
        selectPolicy: Max
        stabilizationWindowSeconds: 30
        tolerance: 100m
minReplicaCount: 1
scaleTargetRef:
  name: chat
triggers:
- authenticationRef:
    kind: ClusterTriggerAuthentication
    name: keda-kaito-creds
  metadata:
    metricName: vllm:num_requests_waiting
    metricPath: /metrics
    metricPort: "5000"
    metricProtocol: http
    metricType: AverageValue
    scalerAddress: keda-kaito-scaler.keda.svc.cluster.local:%d
    scalerName: keda-kaito-scaler
    scrapeTimeout: "5"
    threshold: "10"
  type: external
`, s.port), string(text))

	stored.SetLabels(map[string]string{"updated": "once"})
	again, err := objects.Update(t.Context(), stored, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, spec(stored), spec(again), "a second pass adds nothing")
	require.NoError(t, objects.Delete(t.Context(), "unset", metav1.DeleteOptions{}))

	for name, text := range map[string]string{
		"cron":     `  {scaleTargetRef: {name: chat}, triggers: [{type: cron, metadata: {scalerName: keda-kaito-scaler, timezone: UTC}}]}`,
		"another":  `  {scaleTargetRef: {name: chat}, triggers: [{type: external, metadata: {scalerName: another, threshold: "1"}}]}`,
		"nameless": `  {scaleTargetRef: {name: chat}, triggers: [{type: external, metadata: {threshold: "1"}}]}`,
	} {
		foreign := scaledObjectOf(t, name, text)
		stored, err := objects.Create(t.Context(), foreign, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(t, err)
		require.Equal(t, spec(foreign), spec(stored), name)
	}

	wrong := `  {scaleTargetRef: {name: chat}, triggers: [{type: external, metadata: {scalerName: keda-kaito-scaler, threshold: abc, interval: "0"}}]}`
	_, err = objects.Create(t.Context(), scaledObjectOf(t, "wrong", wrong), metav1.CreateOptions{})
	require.ErrorContains(t, err, `spec.triggers[0].metadata.threshold: "abc": must be a number`)
	require.ErrorContains(t, err, `spec.triggers[0].metadata.interval: "0": must be seconds`)

	kept := scaledObjectOf(t, "kept-values", `
  scaleTargetRef: {name: chat}
  minReplicaCount: 3
  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {stabilizationWindowSeconds: 7}}}}
  triggers:
    - type: cron
      metadata: {timezone: UTC}
    - type: external
      metadata: {scalerName: keda-kaito-scaler, threshold: "10", metricPort: "9000", scalerAddress: "127.0.0.1:1"}
      authenticationRef: {name: mine}
`)
	stored, err = objects.Create(t.Context(), kept, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	got := spec(stored)
	require.EqualValues(t, 3, got["minReplicaCount"])
	up, _, err := unstructured.NestedMap(got, "advanced", "horizontalPodAutoscalerConfig", "behavior", "scaleUp")
	require.NoError(t, err)
	require.EqualValues(t, 7, up["stabilizationWindowSeconds"])
	require.Equal(t, "100m", up["tolerance"])
	triggers := got["triggers"].([]any)
	require.Equal(t, map[string]any{"type": "cron", "metadata": map[string]any{"timezone": "UTC"}}, triggers[0])
	ours := triggers[1].(map[string]any)
	require.Equal(t, map[string]any{"name": "mine"}, ours["authenticationRef"])
	require.Equal(t, "9000", ours["metadata"].(map[string]any)["metricPort"])
	require.Equal(t, "127.0.0.1:1", ours["metadata"].(map[string]any)["scalerAddress"])
	require.Equal(t, "/metrics", ours["metadata"].(map[string]any)["metricPath"])
}

// What the pods say is what is answered; what does not exist is not active.
func (s *site) testMetric(t *testing.T, p *program) {
	t.Helper()
	s.waits("chat", 6)
	s.deployment(t, "chat", 2)
	c := s.caller(t, p.address())
	ref := s.create(t, "chat", "chat", "threshold=10", "interval=1")
	c.comes(t, ref, waiting, 12)
	s.waits("chat", 20)
	c.comes(t, ref, waiting, 40)
	active, err := c.IsActive(t.Context(), ref)
	require.NoError(t, err)
	require.True(t, active.GetResult())

	lost := s.create(t, "lost", "nowhere", "threshold=10", "interval=1")
	eventually(t, func() error {
		if _, err := c.value(t.Context(), lost, waiting); !strings.Contains(fmt.Sprint(err), "nowhere") {
			return fmt.Errorf("not that the target is missing: %w", err)
		}
		return nil
	})
	active, err = c.IsActive(t.Context(), lost)
	require.NoError(t, err)
	require.False(t, active.GetResult())

	// What KEDA asks for that is no ScaledObject.
	none := trigger("none", "threshold=10", "interval=1")
	none.Namespace = models
	_, err = c.known(t, none, waiting)
	requireUnavailable(t, err, "ScaledObject models/none: not found")
	_, err = c.IsActive(t.Context(), none)
	requireUnavailable(t, err, "ScaledObject models/none: not found")
}

// Regression: an API server that was away for longer than the lease ended the process of the leader, and its answers.
func (s *site) testOutage(t *testing.T, p *program) {
	t.Helper()
	c := s.caller(t, p.address())
	ref := s.create(t, "steady", "chat", "threshold=10")
	c.comes(t, ref, waiting, 40)
	led := strings.Count(p.said(), `"leads"`)
	require.Positive(t, led)
	s.StopAPIServer()
	eventually(t, func() error {
		if !strings.Contains(p.said(), `"leads no more"`) {
			return errors.New("it leads on")
		}
		return nil
	})
	v, err := c.value(t.Context(), ref, waiting)
	require.NoError(t, err)
	require.InDelta(t, 40, v, 0)
	require.NoError(t, s.StartAPIServer(t.Context()))
	eventually(t, func() error {
		if strings.Count(p.said(), `"leads"`) == led {
			return errors.New("it does not lead again")
		}
		return nil
	})
	// Pods that came after the outage: the informer has caught up, which what follows relies on.
	s.waits("fresh", 30)
	s.deployment(t, "fresh", 2)
	c.comes(t, s.create(t, "after", "fresh", "threshold=10", "interval=1"), waiting, 60)
}

// Regression: a trigger that was asked for before the informer had its ScaledObject was not known for a whole interval.
func (s *site) testTooEarly(t *testing.T, p *program) {
	t.Helper()
	c := s.caller(t, p.address())
	early := trigger("early", "threshold=10", "interval=3600")
	early.Namespace = models
	_, err := c.known(t, early, waiting)
	requireUnavailable(t, err, "ScaledObject models/early: not found")
	s.create(t, "early", "chat", "threshold=10", "interval=3600")
	c.comes(t, early, waiting, 40)
}
