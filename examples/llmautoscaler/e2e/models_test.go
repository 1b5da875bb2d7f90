package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/policy"
)

// port is where all pods serve.
const port = 5000

// A model is an LLMAutoScaler with its Deployment and its pods. Pods are objects whose status names an address of this
// machine; nothing but this test makes or changes them.
type model struct {
	namespace, name string
	addresses       []string // of its pods
	spec            v1alpha1.LLMAutoScalerSpec
}

// thresholds is a spec that holds between 2 and 10 waiting requests, and acts on what lasts for window seconds.
func thresholds(interval, pods, window int) v1alpha1.LLMAutoScalerSpec {
	rule := &policy.ScalerRule{ScaleStep: new(int32(1)), CooldownSeconds: new(int32(3600)), StabilizationWindowSeconds: new(int32(window))}
	return v1alpha1.LLMAutoScalerSpec{
		Settings: policy.Settings{MinReplicas: new(int32(1)), MaxReplicas: int32(pods) + 4, IntervalSeconds: new(int32(interval))},
		Scaler: policy.Scaler{Realtime: &policy.RealtimeScaler{
			Metrics:     []policy.ThresholdMetric{{Threshold: policy.MetricThreshold{High: policy.NewDecimal("10"), Low: policy.NewDecimal("2")}}},
			ScaleUpRule: rule, ScaleDownRule: rule,
		}},
	}
}

// deploy makes the objects of models, some at a time.
func (w *world) deploy(models []model) {
	w.t.Helper()
	namespaces := map[string]bool{}
	for _, m := range models {
		if !namespaces[m.namespace] {
			namespaces[m.namespace] = true
			require.NoError(w.t, w.client.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}}))
		}
	}
	errs := make([]error, len(models))
	var group sync.WaitGroup
	turns := make(chan int)
	for range 8 {
		group.Go(func() {
			for i := range turns {
				errs[i] = w.create(&models[i])
			}
		})
	}
	for i := range models {
		turns <- i
	}
	close(turns)
	group.Wait()
	for _, err := range errs {
		require.NoError(w.t, err)
	}
}

func (w *world) create(m *model) error {
	ctx, labels := w.t.Context(), map[string]string{"app": m.name}
	object := metav1.ObjectMeta{Namespace: m.namespace, Name: m.name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "vllm"}}},
	}
	if err := w.client.Create(ctx, &appsv1.Deployment{ObjectMeta: object, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(len(m.addresses))), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}); err != nil {
		return err
	}
	since := metav1.Now()
	for i, address := range m.addresses {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: fmt.Sprintf("%s-%d", m.name, i), Labels: labels}, Spec: template.Spec}
		if err := w.client.Create(ctx, pod); err != nil {
			return err
		}
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &since,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}},
		}
		if err := w.client.Status().Update(ctx, pod); err != nil {
			return err
		}
	}
	m.spec.ScaleTargetRef = policy.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: m.name}
	return w.client.Create(ctx, &v1alpha1.LLMAutoScaler{ObjectMeta: object, Spec: m.spec})
}

// addresses returns so many addresses of this machine, from a first one on: 0 is 127.32.0.1.
func addresses(first, n int) []string {
	all := make([]string, n)
	for i := range all {
		at := first + i
		all[i] = fmt.Sprintf("127.%d.%d.%d", 32+at/(250*250), at/250%250, 1+at%250)
	}
	return all
}

// vllm returns the answer of a vLLM server that has so many requests waiting, from its first byte to its last: a page of
// 64 KB.
func vllm(t *testing.T, waiting int) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../scrape/testdata/pages/constructed-vllm-v1-dp1.txt")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^(vllm:num_requests_waiting\{.*\}) .*$`)
	require.Len(t, line.FindAll(text, -1), 1)
	text = line.ReplaceAll(text, fmt.Appendf(nil, "$1 %d", waiting))
	return append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len(text)), text...)
}

// serve answers every request at an address by a few bytes of work, until the test ends.
func serve(t *testing.T, address string, answer func() []byte) {
	t.Helper()
	listener, err := net.Listen("tcp4", net.JoinHostPort(address, fmt.Sprint(port)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go accept(listener, func(c net.Conn) {
		if readRequest(c) == nil {
			_, _ = c.Write(answer())
		}
	})
}

// accept hands connections over until the listener is closed; each is closed in the end.
func accept(listener net.Listener, handle func(net.Conn)) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			handle(c)
		}()
	}
}

// readRequest reads a request without a body.
func readRequest(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	var buffer [2048]byte
	for n := 0; n < len(buffer); {
		m, err := c.Read(buffer[n:])
		if err != nil {
			return err
		}
		if n += m; strings.HasSuffix(string(buffer[:n]), "\r\n\r\n") {
			return nil
		}
	}
	return io.ErrShortBuffer
}

// A shipped process is the program as its Deployment runs it.
type shipped struct {
	*process

	address string // of its metrics
	limit   int64  // of its memory, in bytes
}

// ship runs the program with the arguments, the environment and the webhook of the manifests, and more arguments. What it may
// be limited to is measured and not enforced.
func (w *world) ship(more ...string) shipped {
	w.t.Helper()
	var manifest appsv1.Deployment
	text, err := os.ReadFile("../deploy/kustomize/deployment.yaml")
	require.NoError(w.t, err)
	require.NoError(w.t, yaml.UnmarshalStrict(text, &manifest))
	container := manifest.Spec.Template.Spec.Containers[0]
	if w.certificates == "" { // of one webhook, whoever serves it
		w.certificates, w.hook = w.t.TempDir(), cluster.FreeAddress(w.t)
		require.NoError(w.t, w.cluster.WriteCertificates(w.certificates))
		w.webhook(w.hook, w.certificates)
	}
	hook, metrics := w.hook, cluster.FreeAddress(w.t)
	if slices.Contains(more, "-webhook=false") {
		hook = cluster.FreeAddress(w.t)
	}
	_, hookPort, err := net.SplitHostPort(hook)
	require.NoError(w.t, err)
	var environment []string
	for _, e := range container.Env {
		if e.ValueFrom == nil {
			environment = append(environment, e.Name+"="+e.Value)
		}
	}
	args := append(container.Args, "-credentials-dir="+w.t.TempDir(), "-webhook-cert-dir="+w.certificates, "-webhook-host=127.0.0.1",
		"-webhook-port="+hookPort, "-metrics-address="+metrics, "-metrics-insecure", "-health-address="+cluster.FreeAddress(w.t),
		"-pprof-address="+cluster.FreeAddress(w.t))
	args = append(args, more...)
	w.t.Logf("%q %q", environment, args)
	return shipped{w.start(environment, args...), metrics, container.Resources.Limits.Memory().Value()}
}

// webhook has the API server call the webhook at an address of this machine instead of a Service.
func (w *world) webhook(address, certificates string) {
	w.t.Helper()
	var configuration admissionv1.ValidatingWebhookConfiguration
	text, err := os.ReadFile("../deploy/kustomize/webhook.yaml")
	require.NoError(w.t, err)
	require.NoError(w.t, yaml.UnmarshalStrict(text, &configuration))
	client := &configuration.Webhooks[0].ClientConfig
	client.URL, client.Service = new("https://"+address+*client.Service.Path), nil
	client.CABundle, err = os.ReadFile(certificates + "/ca.crt")
	require.NoError(w.t, err)
	require.NoError(w.t, w.client.Create(w.t.Context(), &configuration))
}
