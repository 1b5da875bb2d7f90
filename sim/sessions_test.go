package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawSessions(t *rapid.T, first Trace) Sessions {
	length := func(name string, most int32) Length {
		return Length{Mean: float64(most) / 4, Deviation: float64(most) / 4, Min: 1, Max: rapid.Int32Range(most/2, most).Draw(t, name), LogNormal: true}
	}
	return Sessions{
		First: first, Turns: length("turns", 8), Question: length("question", 20), Answer: length("answer", 20),
		Think:   Delay{Median: time.Duration(rapid.SampledFrom([]int{0, 1, 100, 2000}).Draw(t, "think")) * time.Millisecond, Sigma: rapid.SampledFrom([]float64{0, 1}).Draw(t, "sigma")},
		Context: rapid.SampledFrom([]int32{0, 50, 80}).Draw(t, "context"), Shared: rapid.Int32Range(0, 20).Draw(t, "shared"),
		Reference: SLO{TTFT: time.Duration(rapid.IntRange(0, 2000).Draw(t, "reference")) * time.Millisecond, TPOT: 10 * time.Millisecond},
	}
}

// TestSessionsEqualTheNaiveTwin: requests that follow answers come at the times of a twin that sorts all of them anew after each
// answer, with and without prefix caches.
func TestSessionsEqualTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawStill(t)
		size := rapid.SampledFrom([]int32{0, 4}).Draw(t, "block")
		f.requests = f.requests[:min(len(f.requests), 12)]
		for i := range f.requests {
			f.requests[i].At += time.Duration(i) * time.Microsecond
		}
		f.router = rapid.SampledFrom(routers()[:2+min(size, 1)]).Draw(t, "any router")
		length := time.Duration(rapid.IntRange(1, 60).Draw(t, "length")) * time.Second
		f.requests = slices.DeleteFunc(f.requests, func(q Request) bool { return q.At >= length })
		sessions := drawSessions(t, Trace{Requests: f.requests, Length: length})
		seed := rapid.Uint64Range(0, 9).Draw(t, "seed")
		n := &naive{server: f.server, router: f.router, block: int64(size)}
		n.follow = func(j *naiveJob, now int64) (*naiveJob, bool) {
			turn, think, more := sessions.after(seed, j.turn)
			if !more || now+think >= int64(length)*1000 {
				return nil, false
			}
			next := &naiveJob{arrived: now + think, input: int64(turn.input), output: int64(turn.output), turn: turn}
			if size > 0 {
				next.blocks = sessions.blocks(turn, size)
			}
			return next, true
		}
		first := slices.Clone(f.requests)
		n.fleet = nil
		jobs := n.runSessions(first, int(f.replicas), func(j *naiveJob, q Request) {
			j.turn = sessions.begin(seed, j.turn.session, q)
			if size > 0 {
				j.blocks = sessions.blocks(j.turn, size)
			}
		})
		s := plain(sessions, f.server, f.replicas)
		s.Router, s.BlockTokens = f.router, size
		r := runAsNaive(t, &s, Options{Seed: seed}, jobs)
		require.EqualValues(t, n.hits, r.PrefixHits)
		require.Equal(t, int64(len(jobs)), r.Finished)
		require.Zero(t, r.Unfinished)
	})
}

// TestSessionsAskTheSameOfAnyFleet: what the k-th session's n-th request asks, and how long its user thinks before it,
// does not depend on the fleet.
func TestSessionsAskTheSameOfAnyFleet(t *testing.T) {
	sessions := chats(40, time.Second)
	asked := func(server Server, replicas int32, router Router) map[string]int {
		s := plain(sessions, server, replicas)
		s.Router = router
		counts := map[string]int{}
		runStatic(t, &s, Options{Seed: 4, Request: func(o Outcome) { counts[fmt.Sprint(o.Input, o.Output)]++ }})
		return counts
	}
	fast := asked(Server{Base: 0.001, MaxSeqs: 100, TokenBudget: 8192, KVTokens: 1e8}, 3, LeastLoaded)
	for what, n := range asked(Server{Base: 0.02, MaxSeqs: 100, TokenBudget: 8192, KVTokens: 1e8}, 1, RoundRobin) {
		require.LessOrEqual(t, n, fast[what], what)
	}
}

// chats are users who begin within 10 s and talk for ten minutes, with so long to think.
func chats(users int, think time.Duration) Sessions {
	first := Trace{Length: 10 * time.Minute}
	for i := range users {
		first.Requests = append(first.Requests, Request{At: time.Duration(i) * 10 * time.Second / time.Duration(users), Input: 200, Output: 100})
	}
	return Sessions{
		First: first, Turns: Length{Mean: 1 << 20, Min: 1, Max: 1 << 20}, Think: Delay{Median: think, Sigma: 0.5},
		Question: Length{Mean: 10, Deviation: 5, Min: 1, Max: 100}, Answer: Length{Mean: 100, Deviation: 50, Min: 1, Max: 500},
		Context: 1 << 20, Reference: SLO{TTFT: time.Second, TPOT: 20 * time.Millisecond},
	}
}

// TestInteractiveResponseTimeLaw: of N users who think for Z and are answered after R, N / (R + Z) requests come a second
// (Denning and Buzen, 1978), whether the fleet is fast or saturated.
func TestInteractiveResponseTimeLaw(t *testing.T) {
	for _, seqs := range []int32{1, 4, 50} {
		sessions := chats(20, 4*time.Second)
		sessions.Think.Sigma = 0
		s := plain(sessions, Server{Base: 0.01, MaxSeqs: seqs, TokenBudget: 1 << 20, KVTokens: 1e9}, 1)
		total := 0.0
		r := runStatic(t, &s, Options{Seed: 1, Request: func(o Outcome) { total += o.Total.Seconds() }})
		response := total / float64(r.Finished)
		require.InEpsilon(t, 20/(response+4), float64(r.Requests)/600, 0.03, "%d at a time", seqs)
	}
}

// TestSlowFleetsAreNotAskedLess: a fleet that is so slow that half of the requests never come has those missed that the
// reference has; a fast one has its share of those that came.
func TestSlowFleetsAreNotAskedLess(t *testing.T) {
	sessions := chats(20, time.Second)
	s := plain(sessions, Server{Base: 0.005, MaxSeqs: 20, TokenBudget: 1 << 20, KVTokens: 1e9}, 1)
	s.SLO = SLO{TTFT: time.Minute, TPOT: time.Minute} // whatever comes is in time
	fast := runStatic(t, &s, Options{Seed: 1})
	s.Types[0].Server.Base = 0.06
	slow := runStatic(t, &s, Options{Seed: 1})
	require.Equal(t, slow.Reference, fast.Reference)
	require.Greater(t, fast.Requests, fast.Reference)
	require.Equal(t, 1.0, fast.Attainment)
	require.Less(t, slow.Requests, slow.Reference)
	require.InDelta(t, float64(slow.Requests)/float64(slow.Reference), slow.Attainment, 1e-12)
	require.Less(t, slow.Attainment, 0.6)

	n := int64(0)
	for next, last := sessions.Arrivals(1), time.Duration(0); ; n++ {
		q, more := next()
		if !more {
			break
		}
		require.GreaterOrEqual(t, q.At, last)
		require.Less(t, q.At, sessions.Duration())
		last = q.At
	}
	require.Equal(t, n, fast.Reference, "what it is read as without a fleet")
}

// TestAReferenceFleetIsAskedTheReference: a fleet whose answers take what the reference says is asked the same at the same
// times.
func TestAReferenceFleetIsAskedTheReference(t *testing.T) {
	sessions := chats(10, time.Second)
	sessions.Reference = SLO{TTFT: 10 * time.Millisecond, TPOT: 10 * time.Millisecond}
	sessions.Think = Delay{Median: time.Second}
	s := plain(sessions, Server{Base: 0.01, MaxSeqs: 100, TokenBudget: 1 << 20, KVTokens: 1e9}, 10) // one is idle whenever a request comes
	var got, want []string
	r := runStatic(t, &s, Options{Seed: 1, Request: func(o Outcome) { got = append(got, fmt.Sprint(o.Arrived, o.Input, o.Output)) }})
	for next := sessions.Arrivals(1); ; {
		q, more := next()
		if !more {
			break
		}
		want = append(want, fmt.Sprint(q.At, q.Input, q.Output))
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got)
	require.Equal(t, r.Requests, r.Reference)
}

// TestSessionsFindTheirPrefixes: each request of a session goes on where the one before it ended, so that a fleet of one finds
// all but the question in its cache.
func TestSessionsFindTheirPrefixes(t *testing.T) {
	sessions := chats(5, time.Second)
	s := plain(sessions, Server{Base: 0.005, MaxSeqs: 20, TokenBudget: 1 << 20, KVTokens: 1e7}, 1)
	s.BlockTokens = 16
	r := runStatic(t, &s, Options{Seed: 1})
	require.Greater(t, float64(r.PrefixHits)/float64(r.PrefixQueries), 0.95)
}

// TestSessionsValidate names every wrong field at once.
func TestSessionsValidate(t *testing.T) {
	require.NoError(t, chats(1, 0).Validate("w"))
	wrong := Sessions{First: chats(1, 0), Think: Delay{Median: -1, Sigma: -1, Max: -1}, Context: -1, Shared: -1, Reference: SLO{TTFT: -1, TPOT: -1}}
	err := wrong.Validate("w")
	for _, field := range []string{"first", "turns.mean", "question.mean", "answer.mean", "think.median", "think.sigma", "think.max", "context", "shared", "reference.ttft", "reference.tpot"} {
		require.ErrorContains(t, err, "w."+field+": ")
	}
	require.ErrorContains(t, Sessions{}.Validate("w"), "w.first: ")
}

// TestScaledSessionsAreMoreSessions: none of them is faster.
func TestScaledSessionsAreMoreSessions(t *testing.T) {
	sessions := chats(10, time.Second)
	twice := Scaled(sessions, 2).(Sessions)
	n := 0
	for next := twice.First.Arrivals(1); ; n++ {
		if _, more := next(); !more {
			break
		}
	}
	require.Equal(t, 20, n)
	require.Equal(t, sessions.Think, twice.Think)
}

// TestRegressionAPointerToSessionsIsClosedLoop: its users did not wait for their answers, and Scaled made copies of their requests.
func TestRegressionAPointerToSessionsIsClosedLoop(t *testing.T) {
	sessions := Sessions{
		First: steady(time.Second, 60), Turns: Length{Mean: 3, Min: 1, Max: 3}, Think: Delay{Median: time.Second},
		Question: Length{Mean: 5, Min: 1, Max: 9}, Answer: Length{Mean: 10, Min: 1, Max: 20},
		Reference: SLO{TTFT: 10 * time.Millisecond, TPOT: time.Millisecond},
	}
	for _, factor := range []float64{1, 3} {
		value, pointer := plain(Scaled(sessions, factor), slow(), 1), plain(Scaled(&sessions, factor), slow(), 1)
		want := runStatic(t, &value, Options{Seed: 1})
		require.Positive(t, want.Reference)
		require.Equal(t, want, runStatic(t, &pointer, Options{Seed: 1}))
	}
	nested := sessions
	nested.First = &sessions
	require.ErrorContains(t, nested.Validate("workload"), "must be open loop")
}
