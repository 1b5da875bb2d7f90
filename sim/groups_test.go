package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// mixed is the ramp on two kinds of replicas: cheap ones, of which there are four at most, and dear ones.
func mixed() sim.Scenario {
	s := sim.Ramp()
	s.Name = "mixed"
	cheap, dear := s.Types[0], s.Types[0]
	cheap.Name, cheap.Cost, cheap.Initial = "cheap", 1, 2
	dear.Name, dear.Cost, dear.Initial = "dear", 3, 1
	s.Types = []sim.Type{cheap, dear}
	s.Metrics = []sim.Metric{
		{Name: sim.MetricInFlight, Signal: sim.InFlight, Fill: proportional.InFlightTarget},
		{Name: sim.MetricKVCacheUsage, Signal: sim.KVCacheUsage, Fill: 1},
		{Name: sim.MetricWaiting, Signal: sim.Waiting, Fill: 5},
	}
	return s
}

// run runs a scenario and checks at each decision that what is asked for is within each type's bounds.
func run(t *testing.T, s sim.Scenario, bounds []scaling.Bounds, build func() (scaling.Group, error)) (r sim.Result, most []int32) {
	t.Helper()
	most = []int32{0, 0}
	r, err := sim.Run(context.Background(), &s, build, sim.Options{Seed: 1, Decision: func(_ time.Time, v *scaling.GroupObservation, g *scaling.GroupDecision) {
		d := g.Targets
		require.Len(t, d, 2)
		for i := range d {
			if d[i].Acts() {
				require.True(t, bounds[i].Contains(d[i].Replicas), "%s: %s", v.Targets[i].Name, d[i].Explain())
			}
			most[i] = max(most[i], v.Targets[i].SpecReplicas)
		}
	}})
	require.NoError(t, err)
	return r, most
}

func heteroOf(t *testing.T, rate float64) func() (scaling.Group, error) {
	t.Helper()
	return func() (scaling.Group, error) {
		fleet, err := hetero.New(hetero.Config{ExpansionRate: rate, Types: []hetero.Type{
			{Name: "cheap", Cost: 1, Min: 2, Max: 4}, {Name: "dear", Cost: 3, Min: 1, Max: 6},
		}})
		if err != nil {
			return nil, err
		}
		total, err := proportional.New(proportional.LLM(fleet.Bounds(), proportional.Metric{Name: sim.MetricInFlight, Target: proportional.InFlightTarget}))
		if err != nil {
			return nil, err
		}
		return hetero.NewGroup(scaling.New(total), fleet, hetero.Options{})
	}
}

// TestHetero: the total follows the load, the cheap type fills first, and nothing changes when the controller crashes
// at one decision in five and goes on from its state, but for the writes that it lost.
func TestHetero(t *testing.T) {
	bounds := []scaling.Bounds{{Min: 2, Max: 4}, {Min: 1, Max: 6}}
	r, most := run(t, mixed(), bounds, heteroOf(t, 1))
	require.EqualValues(t, 4, most[0])
	require.Greater(t, most[1], int32(1))
	require.Greater(t, r.Attainment, 0.99)
	require.Greater(t, r.Types[0].ReplicaHours, 2.0)

	again, _ := run(t, mixed(), bounds, heteroOf(t, 1))
	require.Equal(t, r, again)

	spread, _ := run(t, mixed(), bounds, heteroOf(t, 4))
	require.GreaterOrEqual(t, spread.Cost, r.Cost, "spreading costs more than the cheapest first")

	s := mixed()
	s.Control.CrashRate = 0.2
	crashed, _ := run(t, s, bounds, heteroOf(t, 1))
	require.Positive(t, crashed.Crashes)
	require.Greater(t, crashed.Attainment, 0.98)
}

func saturationOf(t *testing.T, c saturation.Config) func() (scaling.Group, error) {
	t.Helper()
	return func() (scaling.Group, error) {
		group, err := saturation.NewGroup(saturation.GroupConfig{
			Config: c, KV: sim.MetricKVCacheUsage, Queue: sim.MetricWaiting,
			Variants: []saturation.Variant{{Name: "cheap", Cost: 1, Min: 2, Max: 4}, {Name: "dear", Cost: 3, Min: 1, Max: 6}},
		})
		return group, err
	}
}

// TestSaturation: the cheap variant grows first, and the seed's own rule serves fewer requests in time than the default.
func TestSaturation(t *testing.T) {
	bounds := []scaling.Bounds{{Min: 2, Max: 4}, {Min: 1, Max: 6}}
	r, most := run(t, mixed(), bounds, saturationOf(t, saturation.Defaults()))
	require.EqualValues(t, 4, most[0])
	require.Positive(t, r.Downs)
	literal, _ := run(t, mixed(), bounds, saturationOf(t, saturation.WVA()))
	require.Less(t, literal.Attainment, r.Attainment)

	s := mixed()
	s.Control.CrashRate = 0.2
	crashed, _ := run(t, s, bounds, saturationOf(t, saturation.Defaults()))
	require.Positive(t, crashed.Crashes)
}

// TestSaturationWithoutItsMetrics: a scenario that observes neither cache nor queue gives rows without values, on which
// nothing goes.
func TestSaturationWithoutItsMetrics(t *testing.T) {
	s := mixed()
	s.Metrics = nil
	r, _ := run(t, s, []scaling.Bounds{{Min: 2, Max: 4}, {Min: 1, Max: 6}}, saturationOf(t, saturation.Defaults()))
	require.Zero(t, r.Downs)
}
