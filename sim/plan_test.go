package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestRegressATimelineHasNotMoreMomentsThanFit: one of a nanosecond once took all memory, between two looks at the context.
func TestRegressATimelineHasNotMoreMomentsThanFit(t *testing.T) {
	s := sim.Ramp()
	_, err := sim.Run(t.Context(), &s, asIs, sim.Options{Timeline: time.Nanosecond})
	require.EqualError(t, err, "timeline: 1ns: must be 0, which is none, or within 1ms and 90 days")
}

// TestRegressAPlanThatDoesNotFitSaysNothing: each of these once panicked.
func TestRegressAPlanThatDoesNotFitSaysNothing(t *testing.T) {
	s := sim.Ramp()
	s.Workload, s.Horizon = sim.Trace{Length: time.Minute}, 0
	for _, g := range []scaling.Group{
		sim.Static(), sim.Schedule(s.Begin(), 0, []int32{1}), sim.Schedule(s.Begin(), time.Minute, nil),
		sim.Schedule(s.Begin().Add(time.Hour), time.Minute, []int32{1}),
	} {
		r, err := sim.Run(t.Context(), &s, func() (scaling.Group, error) { return g, nil }, sim.Options{})
		require.NoError(t, err)
		require.Equal(t, []sim.ReasonCount{{Verdict: "Unknown", Code: "NotEach", Count: 3}}, r.Reasons)
	}
}

// TestRegressAPlanHasATotal: the total of a plan was Unknown at 0 replicas while its targets asked for more, and both plans changed
// with the slice that they were made of, which a search fills anew for each candidate.
func TestRegressAPlanHasATotal(t *testing.T) {
	now, counts := time.Unix(0, 0), []int32{5, 1}
	static, schedule := sim.Static(counts...), sim.Schedule(now, time.Minute, counts)
	counts[0], counts[1] = 7, 7
	two := scaling.GroupObservation{Targets: []scaling.TargetObservation{{Name: "a", SpecReplicas: 3}, {Name: "b", SpecReplicas: 2}}}
	d := static.Decide(now, two)
	require.Equal(t, "Up 5 -> 6\n  Summed            5 -> 6    targets=2\n"+
		"Up 3 -> 5\n  Planned           3 -> 5    plan=5\n"+
		"Down 2 -> 1\n  Planned           2 -> 1    plan=1\n", d.Explain())
	d = schedule.Decide(now, scaling.GroupObservation{Targets: two.Targets[:1]})
	require.Equal(t, "Up 3 -> 5: Summed targets=1", d.Total.Reason())
	require.Equal(t, "Up 3 -> 5: Planned plan=5", d.Targets[0].Reason())
}

// TestTimesThatOverflow: what was longer than 106 days turned negative. A server of 3,000 s a token served everything in no time, and a
// TTFT of 2,600 h was met by no request.
func TestTimesThatOverflow(t *testing.T) {
	for says, change := range map[string]func(*sim.Scenario){
		"slo.ttft: 2600h0m0s: must be above 0 and at most 90 days":                   func(s *sim.Scenario) { s.SLO.TTFT = 2600 * time.Hour },
		"slo.tpot: 2562047h47m16.854775807s: must be above 0 and at most 24h":        func(s *sim.Scenario) { s.SLO.TPOT = math.MaxInt64 },
		"scrape.stale: 2568h0m0s: must be within 0 and 90 days":                      func(s *sim.Scenario) { s.Scrape.Stale = 2568 * time.Hour },
		"demandStep: 2568h0m0s: must be above 0 and at most 90 days where":           func(s *sim.Scenario) { s.Demand, s.DemandStep = []int32{5}, 2568*time.Hour },
		"types[0].server.prefillToken: 3000: must make no step of more than 90 days": func(s *sim.Scenario) { s.Types[0].Server.PrefillToken = 3000 },
	} {
		s := sim.Ramp()
		change(&s)
		_, err := sim.Run(t.Context(), &s, asIs, sim.Options{})
		require.ErrorContains(t, err, says)
	}
	s := sim.Ramp()
	_, err := sim.Run(t.Context(), &s, asIs, sim.Options{Timeline: math.MaxInt64})
	require.ErrorContains(t, err, "timeline: 2562047h47m16.854775807s: must be 0, which is none, or within 1ms and 90 days")
	s.Types[0].Server.TokenBudget = math.MaxInt32
	require.NoError(t, s.Validate(), "no prompt is longer than the cache")
}

// TestGapsOfNothing: gamma gaps of a high variation may all be too small for a number; then all requests come at once.
func TestGapsOfNothing(t *testing.T) {
	w := sim.Stages{Stages: []sim.Stage{{Rate: 0.01, Duration: 5 * time.Minute}}, CV: 100, Exact: true, Input: sim.Length{Mean: 10, Min: 1, Max: 20}, Output: sim.Length{Mean: 10, Min: 1, Max: 20}}
	for seed := range uint64(20) {
		s := sim.Ramp()
		s.Workload = w
		_, err := sim.Run(t.Context(), &s, asIs, sim.Options{Seed: seed + 1})
		require.NoError(t, err, "seed %d", seed+1)
	}
}

// TestRegressionGapsThatAreAlmostEqual: with a coefficient of variation whose square is 0 the first gap was drawn for ever.
func TestRegressionGapsThatAreAlmostEqual(t *testing.T) {
	one := sim.Length{Mean: 1, Min: 1, Max: 1}
	for _, cv := range []float64{1e-15, 1e-16, 1e-155, 5e-324} {
		w := sim.Stages{Stages: []sim.Stage{{Rate: 1, Duration: 10 * time.Second}}, CV: cv, Exact: true, Input: one, Output: one}
		require.NoError(t, w.Validate("workload"))
		n := 0
		for r, err := range sim.Requests(w, 1) {
			require.NoError(t, err)
			n++
			require.InDelta(t, n, r.At.Seconds(), 1e-8)
		}
		require.Equal(t, 10, n)
	}
}
