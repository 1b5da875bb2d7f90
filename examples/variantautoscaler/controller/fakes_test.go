package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/examples/variantautoscaler/controller"
)

const (
	system  = "system"
	serving = "serving"
)

// A world is a cluster of fakes with two Deployments, llama-h100 and llama-a100, of one pod each.
type world struct {
	client *fake.Clientset
	maps   cache.SharedIndexInformer
	env    controller.Env

	mu     sync.Mutex
	calls  []string // what was saved and written, in order
	scales map[string]*autoscalingv1.Scale
	saved  map[string]string
	load   map[string]float64      // the KV cache usage that a variant's pods show
	looked map[string]int          // how often a target was read
	limit  flowcontrol.RateLimiter // of requests; nil for none
	saving func()                  // called when a state was saved
	asked  int                     // how often pods were asked that hang
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		client: fake.NewClientset(), scales: map[string]*autoscalingv1.Scale{}, saved: map[string]string{},
		load: map[string]float64{"llama-h100": 0.1, "llama-a100": 0.1}, looked: map[string]int{},
	}
	for _, name := range []string{"llama-h100", "llama-a100"} {
		w.scales[name] = &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: serving, Name: name, ResourceVersion: "1"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: 1},
			Status:     autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app=" + name},
		}
		w.pod(t, name)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(w.client, 0, informers.WithNamespace(system))
	maps := factory.Core().V1().ConfigMaps()
	w.maps = maps.Informer()
	factory.Start(t.Context().Done())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), w.maps.HasSynced))
	w.env = controller.Env{
		Scales: w.scaleClient(), Pods: controller.NewPodCache(w.client), ConfigMaps: maps.Lister(), Store: w,
		Namespace: system, AllowLocal: true, Metrics: k8s.NewMetrics(),
	}
	return w
}

// pod makes a pod of a variant that serves a page on a port of its own.
func (w *world) pod(t *testing.T, variant string) {
	t.Helper()
	w.serve(t, serving, variant, func(out http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, _ = fmt.Fprintf(out, "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc %g\n"+
			"# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 0\n"+
			"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running %g\n", w.load[variant], w.load[variant]*20)
	})
}

// hang makes pods in a namespace, of the variants NAMESPACE-1 and NAMESPACE-2, that do not answer.
func (w *world) hang(t *testing.T, namespace string) {
	t.Helper()
	for _, variant := range []string{namespace + "-1", namespace + "-2"} {
		w.serve(t, namespace, variant, func(_ http.ResponseWriter, r *http.Request) {
			w.mu.Lock()
			w.asked++
			w.mu.Unlock()
			<-r.Context().Done()
		})
	}
}

// hanging returns how often pods were asked that hang.
func (w *world) hanging() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// serve makes a pod of a variant that answers on a port of its own.
func (w *world) serve(t *testing.T, namespace, variant string, answer http.HandlerFunc) {
	t.Helper()
	page := httptest.NewServer(answer)
	t.Cleanup(page.Close)
	host, port, err := net.SplitHostPort(page.Listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.ParseInt(port, 10, 32)
	require.NoError(t, err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: variant + "-0", UID: types.UID(variant), Labels: map[string]string{"app": variant}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "vllm", Image: "vllm", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(number)}},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: host, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	_, err = w.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (w *world) scaleClient() *k8s.Scales {
	client := &scalefake.FakeScaleClient{}
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	client.AddReactor("get", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.wait()
		name := action.(clienttesting.GetAction).GetName()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.looked[name]++; strings.HasPrefix(name, "panics-") {
			panic("of " + name)
		}
		s := w.scales[name]
		if s == nil {
			return true, nil, apierrors.NewNotFound(resource, name)
		}
		return true, s.DeepCopy(), nil
	})
	client.AddReactor("update", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		asked := action.(clienttesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
		s := w.scales[asked.Name]
		if asked.ResourceVersion != s.ResourceVersion {
			return true, nil, apierrors.NewConflict(resource, asked.Name, errors.New("another version"))
		}
		w.calls = append(w.calls, fmt.Sprintf("write %s %d", asked.Name, asked.Spec.Replicas))
		s.Spec.Replicas = asked.Spec.Replicas
		s.ResourceVersion += "1"
		return true, s.DeepCopy(), nil
	})
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return k8s.NewScales(client, mapper)
}

// Load is that of a k8s.Store.
func (w *world) Load(_ context.Context, key string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []byte(w.saved[key]), nil
}

// Save is that of a k8s.Store.
func (w *world) Save(_ context.Context, key string, old, state []byte) error {
	w.wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.saved[key] != string(old) {
		return k8s.ErrStateConflict
	}
	w.saved[key] = string(state)
	w.calls = append(w.calls, "save "+key)
	if w.saving != nil {
		w.saving()
	}
	return nil
}

// wait is how a client waits until it may ask.
func (w *world) wait() {
	if w.limit != nil {
		w.limit.Accept()
	}
}

// looks returns how often a target was read.
func (w *world) looks(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looked[name]
}

func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// configure writes the ConfigMap with the configuration.
func (w *world) configure(t *testing.T, version, text string) {
	t.Helper()
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "variants", ResourceVersion: version},
		Data:       map[string]string{"variants.yaml": text},
	}
	maps := w.client.CoreV1().ConfigMaps(system)
	_, err := maps.Update(t.Context(), m, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, 10*time.Millisecond, what)
}
