package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// TestADemandOfLongSpans: the end of the second span of more than 53 days is beyond 64 bits of picoseconds, and was in the past.
func TestADemandOfLongSpans(t *testing.T) {
	for _, step := range []time.Duration{24 * time.Hour, 60 * 24 * time.Hour} {
		s := longest(2)
		s.DemandStep = step
		for at := time.Duration(0); at < MaxDuration; at += step {
			s.Demand = append(s.Demand, 1)
		}
		r := runLong(t, &s, Options{})
		require.InDelta(t, 2*90*24, r.ReplicaHours, 1e-6, "%s", step)
		require.InDelta(t, 90*24, r.Over, 1e-6, "%s", step)
		require.Zero(t, r.Under, "%s", step)
	}
}

// TestATimelineOfLongSpans: the moment after the last one was in the past, too.
func TestATimelineOfLongSpans(t *testing.T) {
	for _, every := range []time.Duration{30 * 24 * time.Hour, 45 * 24 * time.Hour, 60 * 24 * time.Hour} {
		s := longest(1)
		r := runLong(t, &s, Options{Timeline: every})
		require.Len(t, r.Timeline, int((MaxDuration-1)/every)+1, "%s", every)
		for i, m := range r.Timeline {
			require.Equal(t, time.Duration(i)*every, m.At, "%s", every)
		}
	}
}

// longest is a scenario of 90 days with one request.
func longest(replicas int32) Scenario {
	s := plain(Trace{Length: time.Minute, Requests: []Request{{Input: 5, Output: 2}}}, Server{Base: 0.01, MaxSeqs: 100, TokenBudget: 100, KVTokens: 1000}, replicas)
	s.Horizon, s.Grace = MaxDuration, 0
	s.Control.Interval, s.Scrape.Interval = 24*time.Hour, 24*time.Hour
	return s
}

// runLong runs it, for at most 5 s.
func runLong(t *testing.T, s *Scenario, o Options) Result {
	t.Helper()
	require.NoError(t, s.Validate())
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	r, err := Run(ctx, s, func() (scaling.Group, error) { return Static(s.Types[0].Initial), nil }, o)
	require.NoError(t, err)
	return r
}

// TestRegressionShortSpansEnd: each span after the end of the demand took time, up to the end of the run. With spans of
// nanoseconds, as of a step whose unit was forgotten, a run did not end, not even with its context.
func TestRegressionShortSpansEnd(t *testing.T) {
	s := plain(steady(time.Second, 600), slow(), 2)
	s.Demand, s.DemandStep = []int32{1, 4}, 15
	r := runLong(t, &s, Options{})
	require.InDelta(t, 2*600/3600.0, r.Over, 1e-9)
	require.InDelta(t, 2*15e-9/3600, r.Under, 1e-18)
}
