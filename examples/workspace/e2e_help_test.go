package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/command"
	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// actAsProgram makes the test binary the program, so that the tests run it as a process.
const actAsProgram = "INFERSCALE_WORKSPACE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(actAsProgram) != "" {
		main()
	}
	command.Log(slog.DiscardHandler) // no test sets the loggers of the process
	os.Exit(m.Run())
}

// patience bounds what should take moments. The garbage collector takes most: it looks for new kinds twice a minute.
const patience = 90 * time.Second

// installation is the program as deploy/ installs it, on a control plane of its own.
type installation struct {
	*cluster.Cluster

	api      client.Client
	scales   scale.ScalesGetter
	warnings *warnings
	webhooks cluster.Webhooks

	kubeconfig    string
	metrics       string
	probes        string
	electionSpace string

	whole   *testing.T // of all steps: the program outlives each
	program *exec.Cmd
	logs    *logs
}

// install starts a control plane, pods without containers, and the program under its own service account.
func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{
		Cluster: cluster.ForTest(t, cluster.Options{Controllers: cluster.HPA(), CRDs: []string{"deploy/crd/workspace.inferscale.io_workspaces.yaml"}}),
		whole:   t, warnings: &warnings{}, metrics: cluster.FreeAddress(t), probes: cluster.FreeAddress(t), electionSpace: "workspace-system",
	}
	for _, file := range []string{"namespace", "service_account", "rbac", "rbac_people", "service", "network_policy"} {
		text, err := os.ReadFile(filepath.Join("deploy/base", file+".yaml"))
		require.NoError(t, err)
		require.NoError(t, i.Apply(t.Context(), text), file)
	}
	var err error
	i.webhooks, err = i.InstallWebhooks("deploy/base/webhooks.yaml")
	require.NoError(t, err)
	t.Cleanup(func() { _ = i.webhooks.Close() })

	config := i.Config()
	config.WarningHandler = i.warnings
	scheme, err := newScheme()
	require.NoError(t, err)
	i.api, err = client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
	require.NoError(t, err)
	i.scales, err = scale.NewForConfig(config, restmapper.NewDiscoveryRESTMapper(groups),
		dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery.NewDiscoveryClientForConfigOrDie(config)))
	require.NoError(t, err)

	kubelet, err := cluster.StartKubelet(t.Context(), i.Config(), cluster.KubeletOptions{Namespace: "default"})
	require.NoError(t, err)
	t.Cleanup(kubelet.Stop)

	account, err := i.ServiceAccount(t.Context(), "workspace-system", "workspace-controller")
	require.NoError(t, err)
	i.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(i.kubeconfig, account))
	i.start()
	return i
}

// start starts the program and waits until it answers webhooks.
func (i *installation) start() {
	t := i.whole
	t.Helper()
	i.logs = &logs{}
	i.program = exec.CommandContext(t.Context(), os.Args[0], append(i.webhooks.Flags(),
		"-kubeconfig", i.kubeconfig, "-leader-elect-namespace", i.electionSpace,
		"-metrics-address", i.metrics, "-probe-address", i.probes)...)
	i.program.Env = append(os.Environ(), actAsProgram+"=1")
	i.program.Stderr = i.logs
	require.NoError(t, i.program.Start())
	this, log := i.program, i.logs
	t.Cleanup(func() {
		_ = this.Process.Kill() // it may have ended
		_ = this.Wait()
		if t.Failed() {
			t.Logf("the program's log:\n%s", log)
		}
	})
	eventually(t, func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.probes+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
}

// logs is what the program writes.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// warnings are those that the API server sent.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements [rest.WarningHandler].
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.all, "\n")
	w.all = nil
	return all
}

var _ rest.WarningHandler = (*warnings)(nil)

// eventually tries until there is no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	var last error
	ok := assert.Eventually(t, func() bool { last = try(); return last == nil }, patience, 50*time.Millisecond)
	if !ok {
		require.NoError(t, last)
	}
}

// workspaces is their resource.
func workspaces() schema.GroupResource {
	return schema.GroupResource{Group: v1alpha1.Group, Resource: v1alpha1.Resource}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// workspace returns one that a node of one GPU serves, changed.
func workspace(name string, replicas int32, change ...func(*v1alpha1.Workspace)) *v1alpha1.Workspace {
	w := &v1alpha1.Workspace{}
	w.Name, w.Namespace = name, "default"
	w.Spec.Resource.InstanceType = "Standard_NC24ads_A100_v4"
	w.Spec.Inference = &v1alpha1.InferenceSpec{Replicas: &replicas, Preset: &v1alpha1.PresetSpec{Name: "phi-4"}}
	for _, f := range change {
		f(w)
	}
	return w
}

// create creates a workspace.
func (i *installation) create(t *testing.T, w *v1alpha1.Workspace) {
	t.Helper()
	require.NoError(t, i.api.Create(t.Context(), w))
}

// get reads a workspace.
func (i *installation) get(ctx context.Context, name string) (*v1alpha1.Workspace, error) {
	var w v1alpha1.Workspace
	return &w, i.api.Get(ctx, named(name), &w)
}

// scaleOf reads the Scale of a workspace.
func (i *installation) scaleOf(t *testing.T, name string) *autoscalingv1.Scale {
	t.Helper()
	s, err := i.scales.Scales("default").Get(t.Context(), workspaces(), name, getOptions())
	require.NoError(t, err)
	return s
}

// scaleTo scales as kubectl scale does: a merge patch of /scale.
func (i *installation) scaleTo(ctx context.Context, name string, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := i.scales.Scales("default").Patch(ctx, v1alpha1.GroupVersion().WithResource(v1alpha1.Resource), name,
		types.MergePatchType, patch, patchOptions())
	return err
}

// serving waits until a workspace has so many replicas, all ready, on so many nodes.
func (i *installation) serving(t *testing.T, name string, replicas, nodes int32) *v1alpha1.Workspace {
	t.Helper()
	var w *v1alpha1.Workspace
	eventually(t, func() error {
		var err error
		if w, err = i.get(t.Context(), name); err != nil {
			return err
		}
		s := w.Status
		switch {
		case s.Inference == nil, s.ObservedGeneration != w.Generation:
			return fmt.Errorf("not observed: %+v", s)
		case s.Inference.Replicas != replicas || s.Inference.TargetNodeCount != nodes:
			return fmt.Errorf("%d replicas on %d nodes, want %d on %d", s.Inference.Replicas, s.Inference.TargetNodeCount, replicas, nodes)
		case !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionInferenceReady):
			return fmt.Errorf("not ready: %+v", s.Conditions)
		}
		return nil
	})
	return w
}

// insecure is a client that takes any certificate.
func insecure() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the test's own
}
