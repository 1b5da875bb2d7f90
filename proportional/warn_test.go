package proportional_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestDecidedTooRarelyIsSaid: decided every 90 s, LLM's window of 30 s is never covered and nothing is taken away. Every
// decision but the first says why; at twice the window nothing is said, and something goes.
func TestDecidedTooRarelyIsSaid(t *testing.T) {
	for _, row := range []struct {
		load   float64
		period time.Duration
		reason string
	}{
		{40, 90 * time.Second, "Hold at 8: Uncovered inflight load=40 < limit=56, target=10, covered=0s; DecidedTooRarely inflight gap=1m30s > most=1m"},
		{80, 90 * time.Second, "Hold at 8: Within inflight lower=80 <= high=88, upper=80 >= low=56"},
		{40, time.Minute, "Down 8 -> 7: BelowTarget inflight load=40 < limit=56, target=10; DownLimited from=4 < limit=7"},
	} {
		s := build(t, proportional.LLM(scaling.Bounds{Min: 1, Max: 20}, inflight))
		var state proportional.State
		var d scaling.Decision
		for i := range 12 {
			state, d = s.Decide(state, start.Add(time.Duration(i)*row.period), holding(8, scaling.Exactly("inflight", row.load)))
			require.NoError(t, scalingtest.Explained(&d))
			if i == 0 {
				require.NotContains(t, d.Reason(), "DecidedTooRarely")
			}
		}
		require.Equal(t, row.reason, d.Reason())
	}
}

// TestNotCoveredAtTwiceTheWindow: a metric that is new is not covered, which is not said to be for the gap, which is no
// more than it may be.
func TestNotCoveredAtTwiceTheWindow(t *testing.T) {
	s := build(t, proportional.LLM(scaling.Bounds{Min: 1, Max: 20}, inflight))
	state, _ := s.Decide(proportional.State{}, start, holding(8))
	_, d := s.Decide(state, start.Add(time.Minute), holding(8, scaling.Exactly("inflight", 40)))
	require.Equal(t, "Hold at 8: Uncovered inflight load=40 < limit=56, target=10, covered=0s", d.Reason())
}

// TestRecordKeepsAWindowThatIsDecidedRarely: with samples recorded in between nothing is said.
func TestRecordKeepsAWindowThatIsDecidedRarely(t *testing.T) {
	s := build(t, proportional.LLM(scaling.Bounds{Min: 1, Max: 20}, inflight))
	var state proportional.State
	var d scaling.Decision
	for i := range 30 {
		now := start.Add(time.Duration(i) * 30 * time.Second)
		if i%3 != 0 {
			state = s.Record(state, now, holding(8, scaling.Exactly("inflight", 40)))
			continue
		}
		state, d = s.Decide(state, now, holding(8, scaling.Exactly("inflight", 40)))
		require.NotContains(t, d.Reason(), "DecidedTooRarely")
	}
	require.Equal(t, scaling.Down, d.Verdict, d.Explain())
}

// TestMisspeltMetricIsNamed: where no metric has a reading, those that there are under other names are named.
func TestMisspeltMetricIsNamed(t *testing.T) {
	s := build(t, proportional.LLM(scaling.Bounds{Min: 1, Max: 20}, inflight))
	_, d := s.Decide(proportional.State{}, start, holding(3, scaling.Exactly("in_flight", 12)))
	require.Equal(t, "Unknown at 3: NoSample inflight; Unmatched in_flight", d.Reason())
	require.NoError(t, scalingtest.Explained(&d))
}
