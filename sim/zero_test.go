package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestHeldRequestsScaleFromZero: a fleet that may go to zero does, and comes back for what the gateway holds; one whose policy
// does not see that stays at zero, and all that comes then is missed.
func TestHeldRequestsScaleFromZero(t *testing.T) {
	s := sim.Ramp()
	trace := sim.Trace{Length: 90 * time.Minute}
	for i := range 600 {
		at := time.Duration(i) * time.Second
		if i >= 300 { // half an hour of nothing
			at += time.Hour
		}
		trace.Requests = append(trace.Requests, sim.Request{At: at, Input: 1000, Output: 200})
	}
	s.Workload, s.Horizon = trace, 0
	s.Types[0].Initial = 1
	s.Gateway = sim.Gateway{Queue: 1000, Timeout: 5 * time.Minute}
	inFlight := sim.Metric{Name: sim.MetricInFlight, Signal: sim.InFlight, Fill: 40}
	serve := func(metrics ...sim.Metric) sim.Result {
		s.Metrics = metrics
		group := func() (scaling.Group, error) {
			loads := []proportional.Metric{{Name: sim.MetricInFlight, Target: 40}}
			if len(metrics) > 1 {
				loads = append(loads, proportional.Metric{Name: "held", Target: 40, Measure: proportional.Total})
			}
			p, err := proportional.New(proportional.HPA(scaling.Bounds{Min: 0, Max: 4}, loads...))
			return scaling.GroupOf(scaling.New(p)), err
		}
		r, err := sim.Run(context.Background(), &s, group, sim.Options{Seed: 1})
		require.NoError(t, err)
		return r
	}
	blind := serve(inFlight)
	sees := serve(inFlight, sim.Metric{Name: "held", Signal: sim.Held})
	require.EqualValues(t, 600, sees.Finished)
	require.Less(t, sees.ReplicaHours, 0.6, "an hour of 1.5 at zero")
	require.Greater(t, sees.TTFT.Max, 100.0, "a cold start")
	require.Less(t, sees.TTFT.Max, 150.0)
	require.EqualValues(t, 300, blind.Finished)
	require.EqualValues(t, 300, blind.Expired+blind.Rejected)
}
