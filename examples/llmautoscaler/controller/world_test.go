package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/scale"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
)

const ns = "models"

// A world is a cluster that consists of fakes, with a clock that the test turns.
type world struct {
	t       *testing.T
	config  controller.Config
	client  client.Client
	ctl     *controller.Controller
	events  *record.FakeRecorder
	pods    toolscache.Indexer
	targets map[string]*autoscalingv1.Scale
	page    *httptest.Server
	port    int

	mu       sync.Mutex
	now      time.Time
	body     string
	statuses int // writes
	scales   int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, now: time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), targets: make(map[string]*autoscalingv1.Scale),
		events: record.NewFakeRecorder(1000),
		pods:   toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}),
	}
	w.page = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.mu.Lock()
		defer w.mu.Unlock()
		fmt.Fprint(rw, w.body)
	}))
	t.Cleanup(w.page.Close)
	address, ok := w.page.Listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	w.port = address.Port
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, stored.AddToScheme(scheme))
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&stored.LLMAutoScaler{}).
		WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, _ string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.statuses++
			return c.Status().Patch(ctx, o, p, opts...)
		}}).Build()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind), meta.RESTScopeNamespace)
	w.config = controller.Config{
		Client: w.client, Secrets: w.client, Scales: k8s.NewScales(scalesOf{w}, mapper), Metadata: metadataOf{w.client}, Mapper: mapper,
		Pods: corelisters.NewPodLister(w.pods), Recorder: w.events, Metrics: k8s.NewMetrics(), Numbers: controller.NewNumbers(),
		Logger: slog.New(slog.DiscardHandler), Credentials: t.TempDir(), AllowLocal: true,
		Now: func() time.Time { return w.now }, Random: func() float64 { return 0 },
	}
	w.restart()
	return w
}

// restart is a new process.
func (w *world) restart() {
	w.t.Helper()
	if w.ctl != nil {
		w.ctl.Close()
	}
	ctl, err := controller.New(w.config)
	require.NoError(w.t, err)
	w.ctl = ctl
	w.t.Cleanup(ctl.Close)
}

// apply creates an object, or changes its spec. PORT in it is that of the pods' pages.
func (w *world) apply(text string) {
	w.t.Helper()
	las := &stored.LLMAutoScaler{}
	require.NoError(w.t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "PORT", fmt.Sprint(w.port))), las))
	las.Namespace = ns
	old := &stored.LLMAutoScaler{}
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(las), old); err == nil {
		old.Spec = las.Spec
		old.Generation++
		require.NoError(w.t, w.client.Update(w.t.Context(), old))
		return
	}
	las.Generation, las.UID, las.CreationTimestamp = 1, types.UID("uid-"+las.Name), metav1.NewTime(w.now)
	require.NoError(w.t, w.client.Create(w.t.Context(), las))
}

// deployment makes the target chat with pods, as many as it has replicas, that are ready.
func (w *world) deployment(replicas int32) {
	const name = "chat"
	w.targets[name] = &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(name), ResourceVersion: "1"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: replicas, Selector: "app=" + name},
	}
	w.follow(name)
}

// follow gives a target the pods that it asks for.
func (w *world) follow(name string) {
	for i := range int32(20) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("%s-%d", name, i), UID: types.UID(fmt.Sprintf("%s-%d", name, i)), Labels: map[string]string{"app": name}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: "127.0.0.1",
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		}
		if i < w.targets[name].Spec.Replicas {
			require.NoError(w.t, w.pods.Add(pod))
		} else {
			require.NoError(w.t, w.pods.Delete(pod))
		}
	}
}

// says sets what every pod's page says.
func (w *world) says(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.body = fmt.Sprintf(format, args...)
}

func (w *world) queue(waiting int) {
	w.says("# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name=\"m\"} %d\n", waiting)
}

// round does a round of an object and turns the clock to the next.
func (w *world) round(name string) *v1alpha1.LLMAutoScaler {
	w.t.Helper()
	result, err := w.ctl.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ns, Name: name}})
	require.NoError(w.t, err)
	w.now = w.now.Add(result.RequeueAfter)
	return w.get(name)
}

func (w *world) get(name string) *v1alpha1.LLMAutoScaler {
	w.t.Helper()
	las := &stored.LLMAutoScaler{}
	require.NoError(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: ns, Name: name}, las))
	return &las.LLMAutoScaler
}

func condition(las *v1alpha1.LLMAutoScaler, kind string) string {
	c := meta.FindStatusCondition(las.Status.Conditions, kind)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + " " + c.Reason
}

// scalesOf is the scale client of a world.
type scalesOf struct{ w *world }

func (s scalesOf) Scales(string) scale.ScaleInterface { return s }

func (s scalesOf) Get(_ context.Context, resource schema.GroupResource, name string, _ metav1.GetOptions) (*autoscalingv1.Scale, error) {
	if found, ok := s.w.targets[name]; ok {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (s scalesOf) Update(_ context.Context, resource schema.GroupResource, o *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	found := s.w.targets[o.Name]
	if found.ResourceVersion != o.ResourceVersion {
		return nil, apierrors.NewConflict(resource, o.Name, nil)
	}
	s.w.scales++
	found.Spec.Replicas, found.ResourceVersion = o.Spec.Replicas, found.ResourceVersion+"1"
	s.w.follow(o.Name)
	return found.DeepCopy(), nil
}

func (s scalesOf) Patch(context.Context, schema.GroupVersionResource, string, types.PatchType, []byte, metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	panic("not used")
}

// metadataOf is the metadata client over the objects of another one.
type metadataOf struct{ client client.Client }

func (m metadataOf) Resource(schema.GroupVersionResource) metadata.Getter {
	return metadataGetter{client: m.client}
}

type metadataGetter struct {
	metadata.ResourceInterface

	client    client.Client
	namespace string
}

func (m metadataGetter) Namespace(namespace string) metadata.ResourceInterface {
	return metadataGetter{client: m.client, namespace: namespace}
}

func (m metadataGetter) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	las := &stored.LLMAutoScaler{}
	if err := m.client.Get(ctx, types.NamespacedName{Namespace: m.namespace, Name: name}, las); err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: las.ObjectMeta}, nil
}

func (m metadataGetter) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	las := &stored.LLMAutoScaler{LLMAutoScaler: v1alpha1.LLMAutoScaler{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}}}
	if err := m.client.Patch(ctx, las, client.RawPatch(kind, data)); err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: las.ObjectMeta}, nil
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ns, Name: name}}
}

// whole is an object of the type that the client knows.
func whole(las *v1alpha1.LLMAutoScaler) client.Object {
	return &stored.LLMAutoScaler{LLMAutoScaler: *las}
}
