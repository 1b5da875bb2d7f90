package shadow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// under runs half an hour of steady traffic under a group, and calls see at each decision.
func under(t *testing.T, group scaling.Group, see func(now time.Time, obs scaling.Observation)) {
	t.Helper()
	s := sim.Scenario{
		Name: "steady", Workload: sim.Stages{Stages: []sim.Stage{{Rate: 20, Duration: 25 * time.Minute}}, Input: sim.Length{Mean: 1500, Min: 1500, Max: 1500}, Output: sim.Length{Mean: 300, Min: 300, Max: 300}, CV: 1},
		Types: []sim.Type{{Server: sim.Qwen32B(), Initial: 12, Startup: sim.ColdStart(90 * time.Second)}},
		SLO:   sim.SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond}, Metrics: capacity.Metrics(),
		Scrape: sim.Scrape{Interval: period}, Control: sim.Control{Interval: period}, Grace: time.Hour,
	}
	_, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return group, nil }, sim.Options{Seed: 1, Decision: func(now time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
		target := &obs.Targets[0]
		see(now, scaling.Observation{SpecReplicas: target.SpecReplicas, ReadyReplicas: target.ReadyReplicas, Readings: obs.Readings, Histograms: obs.Histograms})
	}})
	require.NoError(t, err)
}

// TestCapacityBesideALargerFleet wishes what it asks for where it is the real one. A shadow believes in fewer replicas than
// there are, and the times that it calibrates its server by are of the real ones: taken for its own, they would say that its
// replicas are faster than they are, and fewer would seem to do, and so on.
func TestCapacityBesideALargerFleet(t *testing.T) {
	long.Skip(t)
	fresh := func() scaling.Policy {
		c := capacity.For(scaling.Bounds{Min: 1, Max: 40}, sim.SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond}, sim.Qwen32B())
		a, err := capacity.New(c, nil)
		require.NoError(t, err)
		return scaling.New(a)
	}
	truth := int32(0)
	under(t, scaling.GroupOf(fresh()), func(_ time.Time, obs scaling.Observation) { truth = obs.SpecReplicas })
	for _, n := range []int32{20} {
		s, err := shadow.New(shadow.Config{Policies: []shadow.Policy{{Name: "capacity", Policy: fresh()}}, Go: atOnce})
		require.NoError(t, err)
		under(t, sim.Static(n), s.Look)
		w := s.Wishes()[0]
		t.Logf("asks for %d where it is real, wishes %d beside %d", truth, w.Replicas, n)
		require.InDelta(t, float64(truth), float64(w.Replicas), 1, w.Reason)
	}
}
