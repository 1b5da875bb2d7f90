package realtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// TestPodsThatNeverComeDoNotBlockAScaleDown: of eight replicas two are ready and idle. While the other six may still
// come each counts as much as the threshold, and the fleet stays as it is; once they are stuck they count nothing.
func TestPodsThatNeverComeDoNotBlockAScaleDown(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
	for stuck, want := range map[int32]string{
		0: "Hold at 8\n  Between           8 -> 8    vllm:num_requests_waiting lower=0 <= high=10, upper=7.5 >= low=2\n",
		5: "Down 8 -> 7\n" +
			"  Stuck             8 -> 8    vllm:num_requests_waiting stuck=5 <= pods=8, unschedulable=4, crashing=1\n" +
			"  BelowLow          8 -> 7    vllm:num_requests_waiting upper=1.25 < low=2, held=5m >= window=5m\n",
		6: "Down 8 -> 7\n" +
			"  Stuck             8 -> 8    vllm:num_requests_waiting stuck=6 <= pods=8, unschedulable=4, crashing=1\n" +
			"  BelowLow          8 -> 7    vllm:num_requests_waiting upper=0 < low=2, held=5m >= window=5m\n",
	} {
		missing := scaling.Missing{NotReady: 6, Stuck: stuck}
		if stuck > 0 {
			missing.Unschedulable, missing.Crashing = 4, 1
		}
		var state realtime.State
		var d scaling.Decision
		for i := range 20 {
			require.False(t, d.Acts())
			state, d = s.Decide(state, start.Add(time.Duration(i)*15*time.Second), scaling.Observation{
				SpecReplicas: 8, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.FromPods(queue, []float64{0, 0}, missing, 10)},
			})
		}
		require.Equal(t, want, d.Explain())
	}
}

// TestOneStuckPodIsSaid: that it counts nothing is told of one pod as of six.
func TestOneStuckPodIsSaid(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
	_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 2, ReadyReplicas: 1, Readings: []scaling.Reading{
		scaling.FromPods(queue, []float64{5}, scaling.Missing{NotReady: 1, Stuck: 1, Crashing: 1}, 10),
	}})
	require.Contains(t, d.Explain(), "stuck=1 <= pods=2, unschedulable=0, crashing=1")
}
