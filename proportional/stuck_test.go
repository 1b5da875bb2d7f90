package proportional_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// TestPodsThatNeverComeDoNotBlockAScaleDown: two of eight replicas are ready and carry 14 requests. While the other six
// may still come the load may be that of all of them; once they are stuck it is 14, which two replicas carry.
func TestPodsThatNeverComeDoNotBlockAScaleDown(t *testing.T) {
	s := build(t, proportional.HPA(scaling.Bounds{Min: 1, Max: 8}, proportional.Metric{Name: "inflight", Target: 10}))
	for stuck, want := range map[int32]string{
		0: "Hold at 8\n  Within            8 -> 8    inflight lower=14 <= high=88, upper=74 >= low=72\n",
		6: "Down 8 -> 2\n" +
			"  Stuck             8 -> 8    inflight stuck=6 <= pods=8, unschedulable=6, crashing=0\n" +
			"  BelowTarget       8 -> 2    inflight load=14 < limit=72, target=10\n",
	} {
		var state proportional.State
		var d scaling.Decision
		missing := scaling.Missing{NotReady: 6, Unschedulable: stuck, Stuck: stuck}
		reading := scaling.FromPods("inflight", []float64{6, 8}, missing, 10)
		for i := range 21 {
			obs := scaling.Observation{SpecReplicas: 8, ReadyReplicas: 2, Readings: []scaling.Reading{reading}}
			state, d = s.Decide(state, at(15*float64(i)), obs)
		}
		require.Equal(t, want, d.Explain())
	}
}
