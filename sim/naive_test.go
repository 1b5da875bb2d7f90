package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// The naive twin of a fleet that does not change: every step of every replica by itself, every sum taken anew, and no
// heap but a search for what comes first.

type naiveJob struct {
	id                    int
	arrived, first, ended int64
	input, output         int64
	written, prefill      int64 // tokens that are written; prompt tokens still to be computed
	cached                int64 // tokens in the KV cache
	blocks                []uint64
	linked                int // of the blocks, those that it uses in the replica's prefix cache
	preempted             bool
	turn                  turn          // of a session
	kept                  *naiveReplica // has its KV cache, and another one is to decode
	came, second          int64
}

type naiveReplica struct {
	waiting, batch []*naiveJob
	ends           int64 // of the step under way; never if it rests
	share          map[*naiveJob]int64
	idle           []uint64 // blocks that no job uses; the first goes first
	server         Server
	role           Role
	kept, coming   []*naiveJob // KV caches that are to be fetched, and those that are fetched and whose jobs are not in the batch
	here           []*naiveJob // of coming, those that have come
	token, free    int64       // time of a token on the link, and when that is free
}

// A naive fleet does not change.
type naive struct {
	came                     int // requests
	server                   Server
	router                   Router
	block                    int64 // tokens; 0 for no prefix caching
	fleet                    []*naiveReplica
	preempted, queries, hits int
	// follow returns the request that comes after an answer, and when.
	follow  func(j *naiveJob, now int64) (next *naiveJob, more bool)
	pending []*naiveJob // in order of time; of those at one time first requests first, then by session
	naiveLinks
}

func (r *naiveReplica) cached() (sum int64) {
	for _, j := range r.batch {
		sum += j.cached
	}
	return sum
}

func (r *naiveReplica) decoding() (n int64) {
	for _, j := range r.batch {
		if j.prefill == 0 {
			n++
		}
	}
	return n
}

// users counts the jobs that use each block.
func (r *naiveReplica) users() map[uint64]int64 {
	users := map[uint64]int64{}
	for _, j := range append(slices.Clone(r.batch), r.kept...) {
		for _, id := range j.blocks[:j.linked] {
			users[id]++
		}
	}
	return users
}

// shared counts the tokens that are in the KV cache once and in several jobs.
func (n *naive) shared(r *naiveReplica) (tokens int64) {
	for _, users := range r.users() {
		tokens += (users - 1) * n.block
	}
	return tokens
}

func (n *naive) trim(r *naiveReplica, held int64) {
	for len(r.idle) > 0 && int64(len(r.idle))*n.block+held-n.shared(r) > r.server.KVTokens {
		r.idle = r.idle[1:]
	}
}

// match returns the tokens of a job that are in a replica's cache, and those that others use.
func (n *naive) match(r *naiveReplica, j *naiveJob) (tokens, used int64) {
	if r.role == Decode {
		return 0, 0
	}
	users := r.users()
	for _, id := range j.blocks {
		if tokens+n.block > j.input+j.written-1 || users[id] == 0 && !slices.Contains(r.idle, id) {
			break
		}
		tokens += n.block
		if users[id] > 0 {
			used += n.block
		}
	}
	return tokens, used
}

func (n *naive) link(r *naiveReplica, j *naiveJob, tokens int64) {
	for n.block > 0 && r.role != Decode && j.linked < len(j.blocks) && int64(j.linked+1)*n.block <= tokens {
		r.idle = slices.DeleteFunc(r.idle, func(id uint64) bool { return id == j.blocks[j.linked] })
		j.linked++
	}
}

// leave takes a job out of the batch; what only it used becomes idle, its end first.
func (n *naive) leave(r *naiveReplica, j *naiveJob) {
	if j.prefill == 0 {
		n.link(r, j, j.cached)
	}
	n.unlink(r, j)
	r.batch = slices.DeleteFunc(r.batch, func(o *naiveJob) bool { return o == j })
	j.cached = 0
}

// unlink makes what only a job used idle, its end first.
func (n *naive) unlink(r *naiveReplica, j *naiveJob) {
	for j.linked > 0 {
		j.linked--
		if id := j.blocks[j.linked]; r.users()[id] == 0 {
			r.idle = append(r.idle, id)
		}
	}
}

func (n *naive) begin(r *naiveReplica, now int64) {
	tick := func(seconds float64) int64 { return int64(seconds*1e12 + 0.5) }
	stopped := false
	n.take(r)
	for r.memory()+r.decoding() > r.server.KVTokens+n.shared(r) {
		j := r.batch[len(r.batch)-1]
		n.leave(r, j)
		j.prefill, j.preempted = 0, true
		r.waiting = slices.Insert(r.waiting, 0, j)
		n.preempted++
		stopped = true
	}
	n.trim(r, r.memory()+r.decoding())
	for !stopped && len(r.waiting) > 0 && len(r.batch)+len(r.coming) < int(r.server.MaxSeqs) {
		j := r.waiting[0]
		found, used := n.match(r, j)
		if r.memory()+r.decoding()+j.input+j.written-used > r.server.KVTokens+n.shared(r) {
			break
		}
		r.waiting = r.waiting[1:]
		if j.kept != nil {
			n.ask(r, j, now)
			n.take(r)
			continue
		}
		n.link(r, j, found)
		if !j.preempted {
			n.queries += int(j.input + j.written)
			n.hits += int(found)
		}
		j.cached = j.input + j.written // set aside at once
		j.prefill = j.cached - found
		r.batch = append(r.batch, j)
		n.trim(r, r.memory()+r.decoding())
	}
	if len(r.batch) == 0 {
		r.ends = never
		return
	}
	r.share = map[*naiveJob]int64{}
	budget := int64(r.server.TokenBudget)
	for _, j := range r.batch {
		tokens := min(j.prefill, budget)
		r.share[j] = tokens
		budget -= tokens
	}
	r.ends = now + tick(r.server.Base) + tick(r.server.PrefillToken)*(int64(r.server.TokenBudget)-budget) +
		tick(r.server.Sequence)*r.decoding() + tick(r.server.KVToken)*r.cached()
}

func (n *naive) step(r *naiveReplica, now int64) {
	filling, decoding := []*naiveJob{}, []*naiveJob{}
	for _, j := range r.batch {
		if j.prefill > 0 {
			filling = append(filling, j)
			continue
		}
		j.writes(now) // one token more, and the one before is cached
		j.cached++
		decoding = append(decoding, j)
	}
	n.trim(r, r.memory())
	done := func(j *naiveJob) {
		if j.written == j.output {
			j.ended = now
			n.leave(r, j)
			if next, more := n.followed(j, now); more {
				n.pending = append(n.pending, next)
				slices.SortStableFunc(n.pending, func(a, b *naiveJob) int {
					return cmp.Or(cmp.Compare(a.arrived, b.arrived), cmp.Compare(min(a.turn.number, 1), min(b.turn.number, 1)), cmp.Compare(a.turn.session, b.turn.session))
				})
			}
		}
	}
	for _, j := range filling {
		j.prefill -= r.share[j]
		n.link(r, j, j.cached-j.prefill)
		if j.prefill > 0 {
			continue
		}
		j.writes(now)
		done(j)
		if r.role == Prefill && j.written < j.output {
			n.keep(r, j, now)
		}
	}
	slices.SortFunc(decoding, func(a, b *naiveJob) int { return cmp.Compare(a.id, b.id) })
	for _, j := range decoding {
		done(j)
	}
	n.begin(r, now)
}

func (n *naive) followed(j *naiveJob, now int64) (*naiveJob, bool) {
	if n.follow == nil {
		return nil, false
	}
	return n.follow(j, now)
}

// pick returns the replica for a job.
func (n *naive) pick(j *naiveJob) (to *naiveReplica) {
	switch n.router {
	case RoundRobin:
		return n.takers()[j.id%len(n.takers())]
	case PrefixCache:
		longest, shortest, best := 0, 1<<30, -1.0
		for _, r := range n.takers() {
			longest, shortest = max(longest, len(r.waiting)), min(shortest, len(r.waiting))
		}
		for _, r := range n.takers() {
			queue := 1.0
			if longest > shortest {
				queue = float64(longest-len(r.waiting)) / float64(longest-shortest)
			}
			found, _ := n.match(r, j)
			score := 3*float64(found)/float64(j.input) + 2*queue + 2*(1-float64(r.memory()-n.shared(r))/float64(r.server.KVTokens))
			if score > best || score == best && leastLoaded([]*naiveReplica{to, r}) == r {
				to, best = r, score
			}
		}
		return to
	case LeastLoaded:
	}
	return leastLoaded(n.takers())
}

func leastLoaded(of []*naiveReplica) *naiveReplica {
	load := func(r *naiveReplica) int { return len(r.waiting) + len(r.batch) + len(r.coming) + len(r.kept) }
	to := of[0]
	for _, r := range of {
		if load(r) < load(to) {
			to = r
		}
	}
	return to
}

// run serves requests to their end.
func (n *naive) run(requests []Request, replicas int) []*naiveJob {
	return n.runSessions(requests, replicas, func(*naiveJob, Request) {})
}

// runSessions makes each request the first one of a session.
func (n *naive) runSessions(requests []Request, replicas int, begin func(*naiveJob, Request)) (jobs []*naiveJob) {
	n.fleet = make([]*naiveReplica, replicas)
	for i := range n.fleet {
		n.fleet[i] = &naiveReplica{server: n.server}
		if n.shape != nil {
			n.fleet[i] = n.shape[i]
		}
		n.fleet[i].ends = never
	}
	for i, q := range requests {
		j := &naiveJob{id: i, arrived: int64(q.At) * 1000, input: int64(q.Input), output: int64(q.Output), blocks: q.Blocks}
		j.turn.session = uint64(i)
		begin(j, q)
		n.pending = append(n.pending, j)
	}
	for {
		best, at := -1, never
		for i, r := range n.fleet {
			if r.ends < at {
				best, at = i, r.ends
			}
		}
		switch next := n.next(); {
		case next >= 0 && n.later[next].at < at && (len(n.pending) == 0 || n.later[next].at < n.pending[0].arrived):
			n.do(next)
		case len(n.pending) > 0 && n.pending[0].arrived < at:
			j := n.pending[0]
			n.pending = n.pending[1:]
			j.id = n.came
			n.came++
			if n.block == 0 {
				j.blocks = nil
			}
			to := n.pick(j)
			if !n.everFits(to, j) {
				continue // the replica refuses it, whose turn it was
			}
			jobs = append(jobs, j)
			to.waiting = append(to.waiting, j)
			if to.ends == never {
				n.begin(to, j.arrived)
			}
		case best >= 0:
			n.step(n.fleet[best], at)
		default:
			return jobs
		}
	}
}

func naiveRun(requests []Request, replicas int, server Server, router Router) (jobs []*naiveJob, preempted int) {
	n := naive{server: server, router: router}
	jobs = n.run(requests, replicas)
	return jobs, n.preempted
}

func drawServer(t *rapid.T) Server {
	return Server{
		Base:         rapid.SampledFrom([]float64{0.001, 0.014, 0.05}).Draw(t, "base"),
		PrefillToken: rapid.SampledFrom([]float64{0, 1e-4, 1.0 / 15600}).Draw(t, "prefill token"),
		Sequence:     rapid.SampledFrom([]float64{0, 1e-4}).Draw(t, "sequence"),
		KVToken:      rapid.SampledFrom([]float64{0, 1e-6, 39e-9}).Draw(t, "kv token"),
		MaxSeqs:      rapid.Int32Range(1, 6).Draw(t, "max seqs"),
		TokenBudget:  rapid.Int32Range(1, 60).Draw(t, "budget"),
		KVTokens:     rapid.Int64Range(100, 220).Draw(t, "kv tokens"), // one request fits, three often do not
	}
}

func drawRequests(t *rapid.T, most int) []Request {
	var requests []Request
	at := time.Duration(0)
	for range rapid.IntRange(1, most).Draw(t, "requests") {
		at += time.Duration(rapid.SampledFrom([]int{0, 1, 7, 50, 400, 3000}).Draw(t, "gap")) * time.Millisecond
		requests = append(requests, Request{
			At: at, Input: rapid.Int32Range(1, 60).Draw(t, "input"), Output: rapid.Int32Range(1, 40).Draw(t, "output"),
		})
	}
	return requests
}

// plain is a scenario of replicas that are there from the beginning, with everything else perfect.
func plain(workload Workload, server Server, replicas int32) Scenario {
	return Scenario{
		Name: "plain", Workload: workload,
		Types:   []Type{{Server: server, Initial: replicas}},
		SLO:     SLO{TTFT: time.Second, TPOT: 50 * time.Millisecond},
		Scrape:  Scrape{Interval: 15 * time.Second},
		Control: Control{Interval: 15 * time.Second},
		Grace:   24 * time.Hour,
	}
}

func runStatic(t require.TestingT, s *Scenario, o Options) Result {
	var counts []int32
	for i := range s.Types {
		counts = append(counts, s.Types[i].Initial)
	}
	r, err := Run(context.Background(), s, func() (scaling.Group, error) { return Static(counts...), nil }, o)
	require.NoError(t, err)
	return r
}

// runAsNaive is runStatic, and each request has the times of a naive twin's job.
func runAsNaive(t require.TestingT, s *Scenario, o Options, jobs []*naiveJob) Result {
	want, got := []string{}, []string{}
	for _, j := range jobs {
		want = append(want, fmt.Sprint(elapsed(j.arrived), j.input, j.output, elapsed(j.first-j.arrived), elapsed(j.ended-j.arrived)))
	}
	o.Request = func(o Outcome) { got = append(got, fmt.Sprint(o.Arrived, o.Input, o.Output, o.TTFT, o.Total)) }
	r := runStatic(t, s, o)
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
	return r
}

// A still is a fleet that does not change, and its traffic.
type still struct {
	requests []Request
	replicas int32
	server   Server
	router   Router
}

func drawStill(t *rapid.T) still {
	return still{
		server: drawServer(t), requests: drawRequests(t, 30), replicas: rapid.Int32Range(1, 3).Draw(t, "replicas"),
		router: rapid.SampledFrom([]Router{LeastLoaded, RoundRobin}).Draw(t, "router"),
	}
}

// TestStretchesEqualSteps: a run that takes a thousand steps in one stride gives every request the same times, to the
// picosecond, as one that takes each by itself.
func TestStretchesEqualSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawStill(t)
		s := plain(Trace{Requests: d.requests}, d.server, d.replicas)
		s.Router = d.router
		jobs, preempted := naiveRun(d.requests, int(d.replicas), d.server, d.router)
		r := runAsNaive(t, &s, Options{}, jobs)
		require.EqualValues(t, preempted, r.Preempted)
	})
}

// TestWhatEndsTogetherEndsInOrderOfArrival: not in that of the places in memory that the requests take, which are those that
// became free last.
func TestWhatEndsTogetherEndsInOrderOfArrival(t *testing.T) {
	var ended []int32
	s := plain(Trace{Requests: []Request{
		{Input: 1, Output: 1},
		{Input: 2, Output: 2},
		{Input: 3, Output: 2},
		{At: time.Hour, Input: 4, Output: 1},
		{At: time.Hour, Input: 5, Output: 3},
		{At: time.Hour, Input: 6, Output: 3},
	}}, Server{Base: 0.001, MaxSeqs: 4, TokenBudget: 100, KVTokens: 1000}, 1)
	runStatic(t, &s, Options{Request: func(o Outcome) { ended = append(ended, o.Input) }})
	require.Equal(t, []int32{1, 2, 3, 4, 5, 6}, ended)
}

// TestStillFleetsPreempt: the fleets that TestStretchesEqualSteps draws from run out of KV cache.
func TestStillFleetsPreempt(t *testing.T) {
	fleets := rapid.Custom(drawStill)
	preempted := 0
	for i := range fixed {
		d := fleets.Example(i)
		_, n := naiveRun(d.requests, int(d.replicas), d.server, d.router)
		preempted += n
	}
	require.Positive(t, preempted)
}
