package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// TestExpiredWithAFirstToken: a request that was preempted and let go by the gateway counted as if it never had a first token.
func TestExpiredWithAFirstToken(t *testing.T) {
	server := Server{Base: 1, MaxSeqs: 10, TokenBudget: 1000, KVTokens: 60}
	trace := Trace{Length: 10 * time.Minute, Requests: []Request{
		{At: 0, Input: 20, Output: 35},
		{At: 0, Input: 20, Output: 35},
	}}
	s := plain(trace, server, 1)
	s.Gateway.Timeout = 60 * time.Second
	s.Control.Interval = time.Second
	s.Types[0].Startup = ColdStart(time.Hour)
	r, err := Run(context.Background(), &s, func() (scaling.Group, error) { return Schedule(s.Begin(), 15*time.Second, []int32{1, 0}), nil }, Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Preempted)
	require.EqualValues(t, 1, r.Expired)
	require.EqualValues(t, 1, r.Finished)
	require.InDelta(t, 2, r.TTFT.Max, 0.02, "the one had its first token after 1 s, the other after 2 s")
}

// TestTalliesNeverFall: of a restarted process whose sum had passed the old one, the lower count of a bucket was subtracted.
func TestTalliesNeverFall(t *testing.T) {
	server := Server{Base: 0.1, MaxSeqs: 10, TokenBudget: 10000, KVTokens: 100000}
	trace := Trace{Length: 30 * time.Minute}
	for i := range 1800 {
		in := int32(10)
		if i/15%2 > 0 {
			in = 900
		}
		trace.Requests = append(trace.Requests, Request{At: time.Duration(i) * time.Second, Input: in, Output: 2})
	}
	s := plain(trace, server, 1)
	s.Types[0].CrashesPerHour = 360
	s.Types[0].Startup = ColdStart(500 * time.Millisecond)
	s.Scrape.Interval = 15 * time.Second
	s.Metrics = []Metric{{Name: "p", Signal: PromptTokens}}
	for seed := range uint64(20) {
		var before []float64
		_, err := Run(context.Background(), &s, func() (scaling.Group, error) { return Static(1), nil }, Options{Seed: seed, Decision: func(now time.Time, v *scaling.GroupObservation, _ *scaling.GroupDecision) {
			if len(v.Histograms) == 0 {
				return
			}
			c := v.Histograms[0].Counts
			for i := range before {
				require.GreaterOrEqual(t, c[i], before[i], "%s bucket %d: the count of a fleet's cumulative histogram fell", now, i)
			}
			before = append(before[:0], c...)
		}})
		require.NoError(t, err)
	}
}
