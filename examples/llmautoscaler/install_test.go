package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/command"
)

const (
	system    = "inferscale-system"
	asProgram = "LLMAUTOSCALER_TEST_AS_PROGRAM"
)

// TestMain lets the test binary be the program itself, as a process of its own that can be killed.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	command.Log(slog.DiscardHandler) // no test sets the loggers of the process
	os.Exit(m.Run())
}

// An installation is a cluster with the manifests of deploy/kustomize, whose Deployment is played by processes that are
// its service account.
type installation struct {
	*cluster.Cluster

	api        client.Client
	kubeconfig string
	hook       cluster.Webhooks
	kubelet    *cluster.Kubelet
	reader     http.Header // of somebody who may read the metrics

	mu      sync.Mutex
	waiting map[string]float64 // by the label app
}

func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{waiting: make(map[string]float64)}
	i.Cluster = cluster.ForTest(t, cluster.Options{Controllers: cluster.Workloads(), CRDs: []string{"deploy/kustomize/crd.yaml"}})
	for _, file := range []string{"namespace", "rbac", "roles-for-people", "services", "networkpolicy", "poddisruptionbudget"} {
		require.NoError(t, i.Apply(t.Context(), manifest(t, file)), file)
	}
	deployment := bytes.ReplaceAll(manifest(t, "deployment"), []byte("replicas: 2"), []byte("replicas: 0")) // there is no image
	require.NoError(t, i.Apply(t.Context(), deployment))
	var err error
	i.hook, err = i.InstallWebhooks("deploy/kustomize/webhook.yaml")
	require.NoError(t, err)
	t.Cleanup(func() { _ = i.hook.Close() })

	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	i.api, err = client.New(i.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	config, err := i.ServiceAccount(t.Context(), system, "llmautoscaler")
	require.NoError(t, err)
	i.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(i.kubeconfig, config))
	i.kubelet, err = cluster.StartKubelet(t.Context(), i.Config(), cluster.KubeletOptions{Metrics: i.page})
	require.NoError(t, err)
	t.Cleanup(i.kubelet.Stop)
	return i
}

// manifest reads a file of the kustomization and puts what has a namespace into that of the installation.
func manifest(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("deploy/kustomize/" + name + ".yaml")
	require.NoError(t, err)
	var out bytes.Buffer
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
		switch object.GetKind() {
		case "ServiceAccount", "Role", "RoleBinding", "Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget":
			object.SetNamespace(system)
		}
		text, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes()
}

func (i *installation) page(p cluster.Pod) map[string]float64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return cluster.Page(int(i.waiting[p.Labels["app"]]), 1, 0.5)
}

func (i *installation) queue(app string, waiting float64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting[app] = waiting
}

// A program is a running llmautoscaler.
type program struct {
	command *exec.Cmd
	metrics string
	health  string
	log     *bytes.Buffer
}

// start starts the program as its service account, without and with the webhook.
func (i *installation) start(t *testing.T, more ...string) *program {
	t.Helper()
	p := &program{metrics: cluster.FreeAddress(t), health: cluster.FreeAddress(t), log: &bytes.Buffer{}}
	self, err := os.Executable()
	require.NoError(t, err)
	p.command = exec.CommandContext(t.Context(), self, append([]string{
		"-kubeconfig", i.kubeconfig, "-leader-elect-namespace", system, "-metrics-address", p.metrics, "-health-address", p.health,
		"-leader-elect-lease=3s", "-leader-elect-renew=2s", "-leader-elect-retry=300ms", "-allow-local-targets", "-credentials-dir", t.TempDir(),
	}, more...)...)
	p.command.Env = append(os.Environ(), asProgram+"=1", "POD_NAMESPACE="+system)
	p.command.Stderr = p.log
	cluster.DieWithParent(p.command)
	require.NoError(t, p.command.Start())
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of the program:\n%s", tail(p.log.String(), 60))
		}
	})
	eventually(t, func() error { return get(t.Context(), "http://"+p.health+"/healthz", nil) })
	return p
}

func (i *installation) hookFlags() []string {
	return append(i.hook.Flags(), "-webhook")
}

func (p *program) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// get asks for a page, and reports anything but 200, or what header has as Want if the page has it not.
func get(ctx context.Context, url string, header http.Header) error {
	body, err := page(ctx, url, header)
	if err == nil && header.Get("Want") != "" && !strings.Contains(body, header.Get("Want")) {
		err = fmt.Errorf("no %q in %d bytes", header.Get("Want"), len(body))
	}
	return err
}

func page(ctx context.Context, url string, header http.Header) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header = header
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a certificate of its own
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", response.Status, body)
	}
	return string(body), err
}

// eventually waits until there is no error, for half a minute.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.NoError(t, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// deployment makes a target.
func (i *installation) deployment(t *testing.T, name string, replicas int32) {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, yaml.Unmarshal(fmt.Appendf(nil, `
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: vllm, image: vllm, ports: [{name: metrics, containerPort: 5000}]}]}
`, name, replicas), d))
	require.NoError(t, i.api.Create(t.Context(), d))
}

func (i *installation) replicas(t *testing.T, name string) int32 {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, i.api.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, d))
	return *d.Spec.Replicas
}

func (i *installation) reaches(t *testing.T, name string, want int32) {
	t.Helper()
	eventually(t, func() error {
		if got := i.replicas(t, name); got != want {
			return fmt.Errorf("%s has %d replicas, not %d; status: %s", name, got, want, i.status(t, name))
		}
		return nil
	})
}

func (i *installation) status(t *testing.T, name string) string {
	t.Helper()
	las := &v1alpha1.LLMAutoScaler{}
	if err := i.api.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, las); err != nil {
		return err.Error()
	}
	text, err := yaml.Marshal(las.Status)
	require.NoError(t, err)
	return string(text)
}

// create makes an object of a spec in YAML.
func (i *installation) create(t *testing.T, name, spec string) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "apiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\nmetadata: {name: " + name + ", namespace: default}\nspec:\n"
	require.NoError(t, yaml.Unmarshal([]byte(text+spec), &object.Object))
	return i.api.Create(t.Context(), object)
}

// events returns what was said about an object.
func (i *installation) events(t *testing.T, name string) string {
	t.Helper()
	var list corev1.EventList
	require.NoError(t, i.api.List(t.Context(), &list, client.InNamespace("default")))
	var said strings.Builder
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.InvolvedObject.Kind == v1alpha1.Kind {
			fmt.Fprintf(&said, "%s %s\n", e.Reason, e.Message)
		}
	}
	return said.String()
}
