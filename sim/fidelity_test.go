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

// ramp runs the reference scenario under the published law, ten seeds, and returns the means.
func ramp(t *testing.T, s sim.Scenario) (attainment, replicas float64) {
	t.Helper()
	s.Metrics = []sim.Metric{{Name: proportional.TTFTP90, Signal: sim.PredictedTTFT}, {Name: proportional.TPOTP90, Signal: sim.RouterTPOT}}
	const seeds = 10
	for seed := range uint64(seeds) {
		r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) {
			p, err := proportional.SLOAware(sim.RampBounds(), s.SLO.TTFT, s.SLO.TPOT)
			return scaling.GroupOf(p), err
		}, sim.Options{Policy: "llm-d", Seed: seed + 1})
		require.NoError(t, err)
		attainment += r.Attainment / seeds
		replicas += r.AverageReplicas / seeds
	}
	return attainment, replicas
}

// TestFidelity: llm-d publishes, for its law on this hardware and load, an attainment of 95.8 % at 5.93 replicas, and
// 100 % for eight of them all the time. The simulator must be within 2 points and 5 %.
func TestFidelity(t *testing.T) {
	attainment, replicas := ramp(t, sim.Ramp())
	t.Logf("attainment %.4f at %.3f replicas", attainment, replicas)
	require.InDelta(t, 0.958, attainment, 0.02)
	require.InEpsilon(t, 5.93, replicas, 0.05)

	s := sim.Ramp()
	s.Types[0].Initial = 8
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return sim.Static(8), nil }, sim.Options{Seed: 1})
	require.NoError(t, err)
	require.Equal(t, 1.0, r.Attainment)
	require.InDelta(t, 8, r.AverageReplicas, 1e-9)
}

// TestFittedServerDoesNotScaleDown: with the step of the earlier fit every answer at a lower load is in one bucket of
// the router's histogram, whose quantile then is 38 ms: spare is 5 % of the fleet, less than a replica. The published
// loop scales down, so the fit cannot be the hardware. (With it the law attains more, at a higher cost.)
func TestFittedServerDoesNotScaleDown(t *testing.T) {
	s := sim.Ramp()
	s.Types[0].Server = sim.Qwen32BFitted()
	s.Horizon = s.Workload.Duration() // without traffic it does scale down
	s.Metrics = []sim.Metric{{Name: proportional.TTFTP90, Signal: sim.PredictedTTFT}, {Name: proportional.TPOTP90, Signal: sim.RouterTPOT}}
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) {
		p, err := proportional.SLOAware(sim.RampBounds(), 3*time.Second, 100*time.Millisecond)
		return scaling.GroupOf(p), err
	}, sim.Options{Seed: 1})
	require.NoError(t, err)
	require.Zero(t, r.Downs)
}
