package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestArrivalsAt0AreInTheTimeline: those of the first moment had no moment before it, and were in no rate.
func TestArrivalsAt0AreInTheTimeline(t *testing.T) {
	trace := Trace{Length: 10 * time.Second}
	for i := range 50 {
		trace.Requests = append(trace.Requests, Request{At: time.Duration(i/40) * 2 * time.Second, Input: 5, Output: 2})
	}
	s := plain(trace, Server{Base: 0.01, MaxSeqs: 100, TokenBudget: 100, KVTokens: 1000}, 1)
	r := runStatic(t, &s, Options{Timeline: time.Second})
	sum := 0.0
	for _, m := range r.Timeline {
		sum += m.Rate
	}
	require.EqualValues(t, r.Requests, sum)
	require.Zero(t, r.Timeline[0].Rate)
	require.EqualValues(t, 40, r.Timeline[1].Rate)
}

// TestAFirstTokenAt0IsOne: where a prefill takes no time, a request at 0 has its first token at 0.
func TestAFirstTokenAt0IsOne(t *testing.T) {
	run := func(at time.Duration) float64 {
		trace := Trace{Length: at + 10*time.Second, Requests: []Request{{At: at, Input: 10, Output: 3000}}}
		s := plain(trace, Server{Sequence: 0.01, MaxSeqs: 4, TokenBudget: 100, KVTokens: 4000}, 1)
		s.Grace = 0
		r := runStatic(t, &s, Options{})
		require.EqualValues(t, 1, r.Unfinished)
		return r.TTFT.Max
	}
	require.Equal(t, run(time.Second), run(0))
}

// TestAStretchLongerThanARunDoesNotEnd: its end was beyond 64 bits of picoseconds, came out in the past, and a request of
// half a year was answered at once.
func TestAStretchLongerThanARunDoesNotEnd(t *testing.T) {
	large := Qwen32B()
	large.KVTokens = 1e9
	for name, row := range map[string]struct {
		server  Server
		at      time.Duration
		in, out int32
	}{
		"many steps":          {Server{Base: 1, MaxSeqs: 4, TokenBudget: 100, KVTokens: 20_000_000}, 0, 10, 12_000_000},
		"a large cache":       {large, 0, 10, 30_000_000},
		"one long step, late": {Server{Base: 1, PrefillToken: 3600, MaxSeqs: 4, TokenBudget: 2000, KVTokens: 2000}, 40 * 24 * time.Hour, 1920, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := plain(Trace{Length: row.at + time.Minute, Requests: []Request{{At: row.at, Input: row.in, Output: row.out}}}, row.server, 1)
			s.SLO = SLO{TTFT: 2 * time.Second, TPOT: 50 * time.Millisecond}
			s.Control.Interval, s.Scrape.Interval = 24*time.Hour, 24*time.Hour
			require.NoError(t, s.Validate())
			r := runStatic(t, &s, Options{})
			require.Equal(t, []any{int64(0), int64(1), 0.0}, []any{r.Finished, r.Unfinished, r.Attainment})
		})
	}
}
