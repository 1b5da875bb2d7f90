package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// drawPrefixes gives requests blocks: each begins like one before it, or like none, and goes on with blocks of its own,
// up to the end of its prompt or of its answer. No two requests arrive at once.
func drawPrefixes(t *rapid.T, requests []Request, size int32) []Request {
	fresh := uint64(0)
	for i := range requests {
		q := &requests[i]
		q.At += time.Duration(i) * time.Microsecond
		tokens := q.Input
		if rapid.Bool().Draw(t, "with answer") {
			tokens += q.Output
		}
		if from := rapid.IntRange(-1, i-1).Draw(t, "like"); from >= 0 {
			like := requests[from].Blocks
			q.Blocks = slices.Clone(like[:rapid.IntRange(0, len(like)).Draw(t, "so far")])
		}
		q.Blocks = q.Blocks[:min(len(q.Blocks), int(tokens/size))]
		for int32(len(q.Blocks)) < tokens/size {
			fresh++
			q.Blocks = append(q.Blocks, fresh)
		}
	}
	return requests
}

type cachingFleet struct {
	still

	size int32
}

func drawCachingFleet(t *rapid.T) cachingFleet {
	f := cachingFleet{still: drawStill(t), size: rapid.Int32Range(1, 16).Draw(t, "block")}
	f.router = rapid.SampledFrom(routers()).Draw(t, "router")
	f.requests = drawPrefixes(t, f.requests, f.size)
	return f
}

func (f *cachingFleet) naive() (*naive, []*naiveJob) {
	n := &naive{server: f.server, router: f.router, block: int64(f.size)}
	return n, n.run(f.requests, int(f.replicas))
}

func (f *cachingFleet) scenario() Scenario {
	s := plain(Trace{Requests: f.requests}, f.server, f.replicas)
	s.Router, s.BlockTokens = f.router, f.size
	return s
}

// TestPrefixCachesEqualTheNaiveTwin: with prefix caches, in all routers, each request has the times, and the fleet the hits,
// of a twin that looks through lists of blocks at every step.
func TestPrefixCachesEqualTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawCachingFleet(t)
		f.equalsNaive(t)
	})
}

func (f *cachingFleet) equalsNaive(t require.TestingT) {
	n, jobs := f.naive()
	s := f.scenario()
	r := runAsNaive(t, &s, Options{}, jobs)
	require.EqualValues(t, n.preempted, r.Preempted)
	require.EqualValues(t, n.hits, r.PrefixHits)
	require.EqualValues(t, n.queries, r.PrefixQueries)
}

// TestCachingFleetsHit: the fleets that TestPrefixCachesEqualTheNaiveTwin draws from have hits, blocks that had to go and
// preempted sequences.
func TestCachingFleetsHit(t *testing.T) {
	fleets := rapid.Custom(drawCachingFleet)
	hits, preempted, lost := 0, 0, 0
	for i := range fixed {
		f := fleets.Example(i)
		n, _ := f.naive()
		hits, preempted = hits+n.hits, preempted+n.preempted
		endless := f
		endless.server.KVTokens = 1e9
		if e, _ := endless.naive(); e.hits > n.hits {
			lost++
		}
	}
	require.Positive(t, hits)
	require.Positive(t, preempted)
	require.Positive(t, lost)
}

// TestNoPrefixesIsNoPrefixCaching: requests without blocks have the same times with prefix caching as without, and requests
// with blocks the same times without prefix caching as without blocks.
func TestNoPrefixesIsNoPrefixCaching(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t)
		plain := observe(t, &s, 1)
		s.BlockTokens = 16
		on := observe(t, &s, 1)
		require.Zero(t, on.Result.PrefixHits)
		on.Result.PrefixQueries, on.Result.Events, plain.Result.Events = 0, 0, 0
		require.Equal(t, encode(t, plain), encode(t, on))

		trace := s.Workload.(Trace)
		trace.Requests = drawPrefixes(t, slices.Clone(trace.Requests), 16)
		bare := slices.Clone(trace.Requests)
		for i := range bare {
			bare[i].Blocks = nil
		}
		s.BlockTokens, s.Workload = 0, trace
		off := observe(t, &s, 1)
		s.Workload = Trace{Requests: bare, Length: trace.Length}
		require.Equal(t, encode(t, observe(t, &s, 1)), encode(t, off))
	})
}

// TestWorldsWithPrefixCaches: in worlds where everything goes wrong the books of the caches balance (checked in each
// run), and the same seed gives the same bytes.
func TestWorldsWithPrefixCaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t)
		s.BlockTokens = rapid.Int32Range(1, 16).Draw(t, "block")
		s.Router = rapid.SampledFrom(routers()).Draw(t, "router")
		trace := s.Workload.(Trace)
		s.Workload = Trace{Requests: drawPrefixes(t, trace.Requests, s.BlockTokens), Length: trace.Length}
		require.Equal(t, encode(t, observe(t, &s, 3)), encode(t, observe(t, &s, 3)))
	})
}

// ids returns so many ids from one on, after some.
func ids(from uint64, n int, after ...uint64) []uint64 {
	for i := range n {
		after = append(after, from+uint64(i))
	}
	return after
}

// TestAPreemptedSequenceComesBackWhenItFits: its answer's blocks, known only when it is taken out, are another's too, so that it
// shares more than before and fits a step later.
func TestAPreemptedSequenceComesBackWhenItFits(t *testing.T) {
	f := cachingFleet{size: 16, still: still{
		replicas: 1, server: Server{Base: 0.05, PrefillToken: 1.0 / 15600, Sequence: 1e-4, KVToken: 39e-9, MaxSeqs: 2, TokenBudget: 2, KVTokens: 100},
		requests: []Request{
			{At: 452004 * time.Microsecond, Input: 40, Output: 39, Blocks: ids(4, 2)},
			{At: 859006 * time.Microsecond, Input: 31, Output: 39, Blocks: ids(4, 4)},
		},
	}}
	f.equalsNaive(t)
}

// TestAnAdmissionTakesIdleBlocks: what one admission needs of the memory of idle blocks is not there for the next one in the same
// step to hit.
func TestAnAdmissionTakesIdleBlocks(t *testing.T) {
	f := cachingFleet{size: 5, still: still{
		replicas: 1, server: Server{Base: 0.001, Sequence: 1e-4, KVToken: 1e-6, MaxSeqs: 2, TokenBudget: 14, KVTokens: 100},
		requests: []Request{
			{At: 0, Input: 12, Output: 40, Blocks: ids(56, 9, 1)},
			{At: time.Millisecond, Input: 60, Output: 33, Blocks: ids(65, 18)},
			{At: 2 * time.Millisecond, Input: 38, Output: 26, Blocks: ids(83, 12)},
			{At: 2*time.Millisecond + time.Microsecond, Input: 60, Output: 24, Blocks: ids(95, 10, 1, 2)},
		},
	}}
	f.equalsNaive(t)
}

// TestPagesCountPrefixes: what the pods' pages count of their caches is what the run has, pod by pod.
func TestPagesCountPrefixes(t *testing.T) {
	sessions := chats(8, time.Second)
	s := plain(sessions, Server{Base: 0.005, MaxSeqs: 20, TokenBudget: 1 << 20, KVTokens: 1e6}, 2)
	s.BlockTokens, s.Router, s.Horizon = 16, PrefixCache, 12*time.Minute
	last := map[string]Page{}
	r := runStatic(t, &s, Options{Pages: func(_ time.Time, pages []Page) {
		for _, p := range pages {
			require.LessOrEqual(t, p.PrefixHits, p.PrefixQueries)
			require.GreaterOrEqual(t, p.PrefixQueries, last[p.Pod].PrefixQueries)
			last[p.Pod] = p
		}
	}})
	queries, hits := 0.0, 0.0
	for _, p := range last {
		queries, hits = queries+p.PrefixQueries, hits+p.PrefixHits
	}
	require.Len(t, last, 2)
	require.Positive(t, hits)
	require.Equal(t, float64(r.PrefixQueries), queries)
	require.Equal(t, float64(r.PrefixHits), hits)
}

// TestPrefilledIsWhatWasComputed: it was all of the prompts, and their tokens on a page were those that were computed.
func TestPrefilledIsWhatWasComputed(t *testing.T) {
	s := plain(chats(8, time.Second), Server{Base: 0.005, MaxSeqs: 20, TokenBudget: 1 << 20, KVTokens: 1e6}, 1)
	s.BlockTokens, s.Horizon = 16, 12*time.Minute
	s.Metrics = []Metric{{Name: "computed", Signal: Prefilled}}
	computed, last := 0.0, Page{}
	runStatic(t, &s, Options{
		Pages: func(_ time.Time, pages []Page) { last = pages[0] },
		Decision: func(_ time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
			computed = obs.Histograms[0].Sum
		},
	})
	require.Positive(t, last.PrefixHits)
	require.Equal(t, last.PromptTokens, computed+last.PrefixHits)
}
