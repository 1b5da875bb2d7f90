package keda

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/scrape"
)

// TestKaitoReplicasOfSeveralNodes: two replicas of two pods each, of which the first serves. Idle, they can be taken away;
// pod by pod those that serve nothing would hold them for ever.
func TestKaitoReplicasOfSeveralNodes(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 0\n")
	}))
	defer page.Close()
	_, port, _ := strings.Cut(page.Listener.Addr().String(), ":")
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range 4 {
		workspace, index := fmt.Sprintf("phi-%d", i/2), i%2
		require.NoError(t, pods.Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "models", Name: fmt.Sprintf("%s-%d", workspace, index), UID: types.UID(fmt.Sprint(i)),
				Labels: map[string]string{"inferenceset.kaito.sh/created-by": "phi", "kaito.sh/workspace": workspace, "apps.kubernetes.io/pod-index": fmt.Sprint(index)},
			},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: fmt.Sprintf("127.0.0.%d", 1+index), // at the second nobody listens
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		}))
	}
	w := newWorld(t)
	w.replicas(2)
	w.scale.Selector = labels.SelectorFromSet(labels.Set{"inferenceset.kaito.sh/created-by": "phi"})
	triggers, err := NewTriggers(TriggersConfig{
		Scales: w,
		Observe: func(plan *build.Plan) (Observer, error) {
			c := plan.Scrape
			c.AllowLocal = true
			s, err := scrape.New(c)
			require.NoError(t, err)
			found, err := k8s.NewPods(corelisters.NewPodLister(pods), plan.Grouping)
			require.NoError(t, err)
			return k8s.NewPodObserver(found, s, plan.Port)
		},
		Objects: func(Ref) (Object, error) { return w.object, nil },
	})
	require.NoError(t, err)
	for grouping, want := range map[string]float64{"KaitoWorkspace": 0, "Pod": 20} {
		plan, err := triggers.Build(chat, metricMode("grouping", grouping, "metricPort", port))
		require.NoError(t, err)
		s := w.round(plan.Trigger)
		plan.Trigger.Close()
		require.NoError(t, s.Unknown)
		require.InDelta(t, want, s.Value, 0, "%s: %s", grouping, s.Because)
	}
}
