package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestReplicasThatNeverComeDoNotKeepAFleetLarge: a burst asks for more replicas than ever come, since a quota keeps them
// away, or since their machines fail to be provisioned. When the burst is over the fleet goes back to what it was.
func TestReplicasThatNeverComeDoNotKeepAFleetLarge(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 8}
	policies := map[string]func() (scaling.Group, error){
		"realtime": func() (scaling.Group, error) {
			s, err := realtime.New(realtime.Responsive(bounds, realtime.Metric{Name: sim.MetricInFlight, High: 40, Low: 20}))
			return scaling.GroupOf(scaling.New(s)), err
		},
		"proportional": func() (scaling.Group, error) {
			s, err := proportional.New(proportional.LLM(bounds, proportional.Metric{Name: sim.MetricInFlight, Target: 40}))
			return scaling.GroupOf(scaling.New(s)), err
		},
	}
	for reason, startup := range map[string]func(*sim.Type){
		"a quota": func(t *sim.Type) { t.Quota = 2 },
		"provisioning fails": func(t *sim.Type) {
			t.Startup = sim.Startup{Provision: sim.Delay{Median: 10 * time.Minute}, FailureRate: 0.99}
		},
	} {
		for name, build := range policies {
			s := sim.Ramp()
			s.Types[0].Initial = 1
			startup(&s.Types[0])
			trace := sim.Trace{Length: 2 * time.Hour}
			for i := range 6000 {
				trace.Requests = append(trace.Requests, sim.Request{At: time.Duration(i) * 50 * time.Millisecond, Input: 500, Output: 500})
			}
			s.Workload, s.Horizon = trace, 0
			s.Metrics = []sim.Metric{{Name: sim.MetricInFlight, Signal: sim.InFlight, Fill: 40}}
			most, last, stuck := int32(0), int32(0), int32(0)
			_, err := sim.Run(context.Background(), &s, build, sim.Options{Seed: 1, Decision: func(_ time.Time, v *scaling.GroupObservation, _ *scaling.GroupDecision) {
				r := v.Readings[0]
				require.LessOrEqual(t, r.Unschedulable, r.Stuck)
				require.LessOrEqual(t, r.Stuck, r.NotReady)
				last = v.Targets[0].SpecReplicas
				most, stuck = max(most, last), max(stuck, r.Stuck)
			}})
			require.NoError(t, err)
			require.Greater(t, most, int32(3), "%s, %s", reason, name)
			require.Positive(t, stuck, "%s, %s", reason, name)
			require.EqualValues(t, 1, last, "%s, %s", reason, name)
		}
	}
}
