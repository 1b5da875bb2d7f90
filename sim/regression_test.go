package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// TestRegressionExactlyAtTheSLO: of answers whose steps take exactly the SLO, every third was said to miss it, by rounding.
func TestRegressionExactlyAtTheSLO(t *testing.T) {
	for _, step := range []time.Duration{20 * time.Millisecond, 30 * time.Millisecond, 70 * time.Millisecond, 100 * time.Millisecond} {
		var trace Trace
		for i := range 300 {
			trace.Requests = append(trace.Requests, Request{At: time.Duration(i) * 100 * time.Second, Input: 10, Output: int32(i + 2)})
		}
		s := plain(trace, Server{Base: step.Seconds(), MaxSeqs: 8, TokenBudget: 100, KVTokens: 10_000}, 1)
		s.SLO.TPOT = step
		require.EqualValues(t, 1, runStatic(t, &s, Options{Seed: 1}).AttainedTPOT)
		s.SLO.TPOT = step - time.Nanosecond
		require.Zero(t, runStatic(t, &s, Options{Seed: 1}).AttainedTPOT)
	}
	require.True(t, within(1<<62, 1<<62, 1<<40))
}

// TestRegressionACrashTakesFirstTokens: a request that had been preempted kept the first token of the process that crashed.
func TestRegressionACrashTakesFirstTokens(t *testing.T) {
	trace := Trace{Length: time.Hour, Requests: []Request{{Input: 50, Output: 60}, {Input: 40, Output: 50}}}
	s := plain(trace, Server{Base: 0.1, MaxSeqs: 4, TokenBudget: 100, KVTokens: 110}, 1) // room for one and a half
	s.SLO.TTFT, s.SLO.TPOT = time.Second, time.Hour
	s.Types[0].Startup, s.Types[0].CrashesPerHour = ColdStart(100*time.Second), 1300
	var times []time.Duration
	r := runStatic(t, &s, Options{Seed: 1, Request: func(o Outcome) { times = append(times, o.TTFT) }})
	require.Positive(t, r.Retried)
	require.Len(t, times, 2)
	for _, ttft := range times {
		require.Greater(t, ttft, 100*time.Second)
	}
}

// TestRegressionReplicasThatAreReadyAtOnceShareWhatWaited: the first of them got all of it.
func TestRegressionReplicasThatAreReadyAtOnceShareWhatWaited(t *testing.T) {
	trace := Trace{Length: 20 * time.Minute}
	for i := range 400 {
		trace.Requests = append(trace.Requests, Request{At: time.Duration(i) * 250 * time.Millisecond, Input: 4000, Output: 200})
	}
	s := plain(trace, Qwen32B(), 0)
	s.SLO = SLO{TTFT: 130 * time.Second, TPOT: 100 * time.Millisecond}
	s.Types[0].Startup, s.Control.Interval = ColdStart(100*time.Second), 15*time.Second
	served := map[string]int{}
	r, err := Run(context.Background(), &s, func() (scaling.Group, error) {
		return Schedule(time.Time{}, time.Hour, []int32{8}), nil
	}, Options{Seed: 1, Request: func(o Outcome) { served[o.Replica]++ }})
	require.NoError(t, err)
	require.Len(t, served, 8, "and the zero start is the scenario's")
	for name, n := range served {
		require.Equal(t, 50, n, name)
	}
	require.EqualValues(t, 1, r.Attainment)
}

// TestRegressionAnOutageIsNoService: users who were served fast, and then not at all for most of an hour, counted as well served: each
// missed one request, however long it waited.
func TestRegressionAnOutageIsNoService(t *testing.T) {
	first := Trace{Length: 15 * time.Minute}
	for i := range 20 {
		first.Requests = append(first.Requests, Request{At: time.Duration(i) * 100 * time.Millisecond, Input: 100, Output: 5})
	}
	slo := SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond}
	s := plain(Sessions{
		First: first, Turns: Length{Mean: 5000, Min: 1, Max: 5000}, Think: Delay{Median: time.Second},
		Question: Length{Mean: 1, Min: 1, Max: 1}, Answer: Length{Mean: 5, Min: 1, Max: 5}, Reference: slo,
	}, Qwen32B(), 1)
	s.SLO, s.BlockTokens, s.Control.Interval, s.Grace = slo, 16, 15*time.Second, 5*time.Minute
	ask := make([]int32, 21)
	for i := range 20 {
		ask[i] = 1 // none from 5 minutes on
	}
	r, err := Run(context.Background(), &s, func() (scaling.Group, error) { return Schedule(s.Begin(), 15*time.Second, ask), nil }, Options{Seed: 1})
	require.NoError(t, err)
	require.Less(t, r.Attainment, 0.8)
	require.Greater(t, r.Omitted, int64(1000))
	served := runStatic(t, &s, Options{Seed: 1})
	require.Greater(t, served.Attainment, 0.95)
	require.Less(t, served.Omitted, served.Requests/50)
}

// A claimant asks for one replica and two in turns, and says of each change that it goes up from nothing.
type claimant struct{ n int32 }

func (c *claimant) Applied(time.Time, int32, int32) {}
func (c *claimant) MarshalJSON() ([]byte, error)    { return []byte("{}"), nil }
func (c *claimant) UnmarshalJSON([]byte) error      { return nil }

func (c *claimant) Decide(time.Time, scaling.Observation) scaling.Decision {
	c.n++
	return scaling.Decision{Verdict: scaling.Up, Replicas: 1 + c.n/2%2}
}

// TestRegressionActionsAreChanges: actions, ups and downs were those that a policy claimed. One that said Up for each count had no
// reversals, and a write of the present count was an action.
func TestRegressionActionsAreChanges(t *testing.T) {
	s := plain(steady(time.Second, 40), slow(), 1)
	s.Control.Interval = 5 * time.Second
	r, err := Run(t.Context(), &s, func() (scaling.Group, error) {
		return scaling.GroupOf(&claimant{}), nil
	}, Options{Seed: 1})
	require.NoError(t, err)
	// 1, 2, 2, 1, 1, 2, 2 at 5 to 35 s
	require.Equal(t, []int64{3, 2, 1, 2}, []int64{r.Actions, r.Ups, r.Downs, r.Reversals})
}

// An unending workload has requests that all come at once.
type unending struct{ came int }

func (u *unending) Arrivals(uint64) Arrivals {
	return func() (Request, bool) {
		u.came++
		return Request{Input: 1, Output: 1}, u.came < 1_000_000 // so that the test ends
	}
}

func (u *unending) Duration() time.Duration { return time.Hour }
func (u *unending) Validate(string) error   { return nil }

// TestRegressionAWorkloadWithoutEndIsCancelled: the context was looked at once per decision alone, before which time must go on.
func TestRegressionAWorkloadWithoutEndIsCancelled(t *testing.T) {
	w := &unending{}
	s := plain(w, slow(), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, &s, func() (scaling.Group, error) { return Static(1), nil }, Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, w.came, 1_000_000)
}

// TestRegressionSessionsOfManyTurnsAreCancelled: what users of the reference had asked meanwhile is counted at each answer, turn by turn.
// Where a session has millions of turns and the reference takes no time a count took a tenth of a second, and 65,536 of them hours,
// before the context was looked at.
func TestRegressionSessionsOfManyTurnsAreCancelled(t *testing.T) {
	one := Length{Mean: 1, Min: 1, Max: 1}
	for _, reference := range []SLO{{}, {TTFT: time.Nanosecond, TPOT: time.Nanosecond}} {
		sessions := Sessions{
			First: Trace{Requests: []Request{{Input: 1, Output: 1}}, Length: time.Hour},
			Turns: Length{Mean: 2e6, Min: 2e6, Max: 2e6}, Question: one, Answer: one, Reference: reference,
		}
		s := plain(sessions, Server{Base: 1e-6, MaxSeqs: 10, TokenBudget: 8192, KVTokens: 1e8}, 1)
		ctx := &impatient{Context: t.Context(), looks: 40}
		_, err := Run(ctx, &s, func() (scaling.Group, error) { return Static(1), nil }, Options{})
		require.ErrorIs(t, err, context.Canceled)
	}
}

// impatient is a context that ends when it has been looked at so many times.
type impatient struct {
	context.Context //nolint:containedctx // it is one

	looks int
}

func (i *impatient) Err() error {
	if i.looks--; i.looks > 0 {
		return nil
	}
	return context.Canceled
}

// TestRegressionAStepThatReadsMoreThanThereIsRoomFor: eleven sequences share a prompt of 0.9e9 tokens, at 1 ms a token. The time of their
// steps overflowed, and requests were answered years before they came.
func TestRegressionAStepThatReadsMoreThanThereIsRoomFor(t *testing.T) {
	var requests []Request
	for i := range 12 {
		requests = append(requests, Request{At: time.Duration(i) * 24 * time.Hour, Input: 900_000_001, Output: 1000, Blocks: []uint64{1}})
	}
	s := plain(Trace{Requests: requests, Length: 20 * 24 * time.Hour}, Server{Base: 0.001, KVToken: 1e-3, MaxSeqs: 256, TokenBudget: 1<<31 - 1, KVTokens: 1e9}, 1)
	s.BlockTokens, s.Grace = 900_000_000, 60*24*time.Hour
	s.SLO = SLO{TTFT: time.Hour, TPOT: time.Hour}
	s.Scrape.Interval, s.Control.Interval = time.Hour, time.Hour
	_, err := Run(t.Context(), &s, func() (scaling.Group, error) { return Static(1), nil }, Options{Request: func(o Outcome) {
		require.GreaterOrEqual(t, o.TTFT, time.Duration(0))
		require.GreaterOrEqual(t, o.Total, o.TTFT)
	}})
	require.NoError(t, err)
	for _, kv := range []int64{0, 1, 7_775_999_000, 7_776_000_000, 7_776_000_001, 1 << 40} {
		v := s.Types[0].Server.speed()
		want := min(float64(kv)*1e9+1e9, float64(ticks(MaxDuration)+1))
		require.InEpsilon(t, want, float64(v.first(1, 0, kv)), 1e-12, "%d", kv)
	}
}

// TestRegressionAWindowHasALimitedNumberOfScrapes: one of a day, scraped each millisecond, took 18 GB for each signal with quantiles, before
// the run began.
func TestRegressionAWindowHasALimitedNumberOfScrapes(t *testing.T) {
	s := plain(steady(time.Second, 3), slow(), 1)
	s.Metrics = []Metric{{Name: "a", Signal: TTFT}, {Name: "b", Signal: RequestRate, Window: 24 * time.Hour}}
	s.Scrape.Interval = time.Second
	require.NoError(t, s.Validate())
	s.Scrape.Interval = time.Millisecond
	require.EqualError(t, s.Validate(), "metrics[1].window: 24h0m0s: must be at most 100000 scrapes")
}

// TestRegressionWhatIsFetchedIsNotInFlight: a sequence that its decode replica preempted counted as a prompt that nobody has computed, with
// its answer so far, and prefill replicas were added for it.
func TestRegressionWhatIsFetchedIsNotInFlight(t *testing.T) {
	d := split{requests: []Request{{Input: 50, Output: 100}, {Input: 50, Output: 100}}}
	for i, role := range []Role{Prefill, Decode} {
		d.types[i] = Type{Name: role.String(), Role: role, Server: Server{Base: 0.1, MaxSeqs: 8, TokenBudget: 1000, KVTokens: 200}, Initial: 1}
	}
	s := d.scenario()
	s.Horizon, s.Scrape.Interval, s.Control.Interval = time.Minute, time.Second, time.Second
	s.Metrics = []Metric{{Name: "tokens", Signal: InFlightTokens}, {Name: "waiting", Signal: Waiting, Type: Decode.String()}}
	waited := false
	r := runSplit(t, &s, Options{
		Handover: func(h Handover) { require.Less(t, h.Came, time.Second) },
		Decision: func(_ time.Time, v *scaling.GroupObservation, _ *scaling.GroupDecision) {
			require.Zero(t, v.Readings[0].Upper)
			waited = waited || v.Readings[1].Lower > 0
		},
	})
	require.Positive(t, r.Preempted)
	require.True(t, waited)
}
