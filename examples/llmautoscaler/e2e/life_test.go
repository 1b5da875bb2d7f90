package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// TestLife goes through the life of one autoscaler, one part after the other, from pages to /scale: up, hold, an outage
// of the pages, an outage of the API server, down.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.autoscaler(nil)
	w.run("-leader-elect=false")

	t.Run("up", func(t *testing.T) {
		w.fleet.SetRate(20) // one replica serves 8 requests a second, three of them 24
		w.eventually("the Deployment has three replicas", time.Minute, func() bool { return w.replicas() >= 3 })
		status, _ := w.condition("Ready")
		require.Equal(t, metav1.ConditionTrue, status)
		las := w.status()
		require.NotNil(t, las.Status.LastScaleTime)
		require.NotNil(t, las.Status.LastDecision)
		require.NotEmpty(t, las.Status.LastDecision.Explain)
	})

	t.Run("hold", func(t *testing.T) {
		w.waiting.Store(3) // between the thresholds
		between := func() bool {
			d := w.status().Status.LastDecision
			return d != nil && d.Verdict == "Hold" && d.Code == "Between"
		}
		w.eventually("it holds", time.Minute, between)
		writes, replicas := len(w.writes()), w.replicas()
		rounds := 0
		w.eventually("five seconds are over", time.Minute, func() bool {
			rounds++
			return rounds > 100
		})
		require.True(t, between())
		require.Equal(t, replicas, w.replicas())
		require.Len(t, w.writes(), writes, "holding writes nothing")
		w.waiting.Store(-1)
	})

	t.Run("an outage of the pages", func(t *testing.T) {
		for _, pod := range w.kubelet.Pods() {
			require.NoError(t, w.kubelet.Fail(pod.Key(), cluster.Status500))
		}
		w.eventually("the metrics are said to be missing", time.Minute, func() bool {
			status, _ := w.condition("MetricsAvailable")
			return status == metav1.ConditionFalse
		})
		replicas, writes := w.replicas(), len(w.writes())
		w.fleet.SetRate(0) // nothing runs, but nobody can know
		rounds := 0
		w.eventually("five seconds are over", time.Minute, func() bool {
			rounds++
			return rounds > 100
		})
		require.Equal(t, replicas, w.replicas(), "what is not known is no reason to scale")
		require.Len(t, w.writes(), writes)
		for _, pod := range w.kubelet.Pods() {
			require.NoError(t, w.kubelet.Fail(pod.Key(), cluster.Healthy))
		}
	})

	t.Run("an outage of the API server", func(t *testing.T) {
		require.NoError(t, w.cluster.RestartAPIServer(t.Context()))
		w.eventually("it scales down again", time.Minute, func() bool { return w.replicas() <= 2 })
	})

	t.Run("down", func(t *testing.T) {
		w.eventually("one replica is left", time.Minute, func() bool { return w.replicas() == 1 })
		for i, write := range w.writes() {
			if write.Code == http.StatusConflict {
				continue // the status of the Deployment changed in between: decided again
			}
			require.Equal(t, http.StatusOK, write.Code, "write %d: %s", i, write.Body)
		}
	})
}

// TestDryRunNeverWrites: the audit log of the API server has no write to the Deployment by the controller, although it
// says all the time what it would do.
func TestDryRunNeverWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.autoscaler(func(s *v1alpha1.LLMAutoScalerSpec) { s.DryRun = true })
	controller := w.run("-leader-elect=false")
	w.fleet.SetRate(40)
	w.eventually("it would have scaled up three times, and says so", time.Minute, func() bool {
		d := w.status().Status.LastDecision
		return d != nil && d.DryRun && d.Verdict == "Up" && strings.Count(controller.said(), `"write":"would"`) >= 3
	})
	require.EqualValues(t, 1, w.replicas())
	all, err := w.cluster.Writes(w.user, "deployments", "*")
	require.NoError(t, err)
	require.Empty(t, all)
	some, err := w.cluster.Writes(w.user, "llmautoscalers", "*")
	require.NoError(t, err)
	require.NotEmpty(t, some, "the log has what it did write: its status and its state")
}
