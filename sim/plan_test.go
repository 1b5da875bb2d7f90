package sim_test

import (
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
	require.EqualError(t, err, "timeline: 1ns: must be 0, which is none, or at least 1ms")
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
