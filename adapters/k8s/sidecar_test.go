package k8s_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scrape"
)

// TestASidecarThatRestartsCountsNothingTwice: a sidecar (a proxy, a log shipper) that restarts gives its pod another identity. The pod
// counted as newer than the first sweep then, and everything that its server had ever counted was counted a second time.
func TestASidecarThatRestartsCountsNothingTwice(t *testing.T) {
	begin := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	now := begin
	var served atomic.Int64
	started := begin.Add(20 * time.Second).Unix()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := served.Load()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", started)
		fmt.Fprint(w, "# TYPE vllm:time_to_first_token_seconds histogram\n")
		fmt.Fprintf(w, "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"1\"} %d\nvllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} %d\n", n, n)
		fmt.Fprintf(w, "vllm:time_to_first_token_seconds_sum{engine=\"0\"} %d\nvllm:time_to_first_token_seconds_count{engine=\"0\"} %d\n", n, n)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)

	metric, err := scrape.VLLM.Metric(scrape.TTFTs)
	require.NoError(t, err)
	scraper, err := scrape.New(scrape.Config{Metrics: []scrape.Metric{metric}, AllowLocal: true, Now: func() time.Time { return now }})
	require.NoError(t, err)
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	pods, err := k8s.NewPods(corelisters.NewPodLister(store), k8s.Grouping{})
	require.NoError(t, err)
	pods.Now = func() time.Time { return now }
	observer, err := k8s.NewPodObserver(pods, scraper, k8s.Port{Port: intstr.FromInt32(int32(port))})
	require.NoError(t, err)
	scale := k8s.Scale{
		Target: k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "llm"}, Replicas: 1,
		Selector: labels.SelectorFromSet(labels.Set{"app": "llm"}),
	}
	round := func() float64 {
		seen, err := observer.Observe(context.Background(), []k8s.Scale{scale})
		require.NoError(t, err)
		now = now.Add(15 * time.Second)
		return seen.Histograms[0].Total()
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "llm-0", Namespace: "models", UID: "u", Labels: map[string]string{"app": "llm"}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "127.0.0.1",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "vllm"}, {Name: "proxy"}},
		},
	}
	round() // the first sweep, before the pod is there
	now = now.Add(time.Minute)
	require.NoError(t, store.Add(pod))
	served.Store(100_000)
	require.Equal(t, 100_000.0, round(), "what it has served since it began")
	served.Store(100_010)
	require.Equal(t, 100_010.0, round())
	restarted := pod.DeepCopy()
	restarted.Status.ContainerStatuses[1].RestartCount = 1 // the proxy, not the server
	require.NoError(t, store.Update(restarted))
	served.Store(100_020)
	require.LessOrEqual(t, round(), 100_020.0)
}
