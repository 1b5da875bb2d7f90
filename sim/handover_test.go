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

// naiveLinks is what the naive twin of a fleet with roles has: a list of what happens later, which is searched each time.
type naiveLinks struct {
	shape   []*naiveReplica // the fleet; nil for one without roles
	latency int64
	later   []naiveEvent
	turn    int
}

type naiveEvent struct {
	at int64
	do func(now int64)
}

func (n *naiveLinks) at(t int64, do func(int64)) { n.later = append(n.later, naiveEvent{t, do}) }

// next returns the place of the first event, of those at one time the first that came on the list; -1 for none.
func (n *naiveLinks) next() int {
	best := -1
	for i, e := range n.later {
		if best < 0 || e.at < n.later[best].at {
			best = i
		}
	}
	return best
}

func (n *naiveLinks) do(i int) {
	e := n.later[i]
	n.later = slices.Delete(n.later, i, i+1)
	e.do(e.at)
}

func (n *naive) having(role Role) (of []*naiveReplica) {
	for _, r := range n.fleet {
		if r.role == role {
			of = append(of, r)
		}
	}
	return of
}

func (n *naive) takers() []*naiveReplica { return append(n.having(Both), n.having(Prefill)...) }

func (n *naive) everFits(to *naiveReplica, j *naiveJob) bool {
	if to.role == Both {
		return j.input+j.output-1 <= to.server.KVTokens
	}
	for _, r := range n.having(Decode) {
		if j.output > 1 && j.input+j.output-1 > r.server.KVTokens {
			return false
		}
	}
	return j.input <= to.server.KVTokens
}

// memory adds up what is in a KV cache, or set aside in it.
func (r *naiveReplica) memory() int64 {
	sum := r.cached()
	for _, j := range append(slices.Clone(r.kept), r.coming...) {
		sum += j.cached
	}
	return sum
}

func (j *naiveJob) writes(now int64) {
	j.written++
	switch {
	case j.written == 1 && j.first == 0:
		j.first = now
	case j.written == 2 && j.second == 0:
		j.second = now
	}
}

// keep leaves the KV cache where it was computed, and gives the job to a replica that decodes once all steps that end now
// have.
func (n *naive) keep(r *naiveReplica, j *naiveJob, now int64) {
	r.batch = slices.DeleteFunc(r.batch, func(o *naiveJob) bool { return o == j })
	r.kept = append(r.kept, j)
	j.kept = r
	n.at(now, func(now int64) {
		all := n.having(Decode)
		to := leastLoaded(all)
		if n.router == RoundRobin {
			to = all[n.turn%len(all)]
			n.turn++
		}
		to.waiting = append(to.waiting, j)
		if to.ends == never {
			n.begin(to, now)
		}
	})
}

// ask fetches a KV cache: each end takes one after the other.
func (n *naive) ask(r *naiveReplica, j *naiveJob, now int64) {
	from := j.kept
	r.coming = append(r.coming, j)
	tokens := j.cached
	arrive := func(now int64) {
		j.came, j.kept = now, nil
		from.kept = slices.DeleteFunc(from.kept, func(o *naiveJob) bool { return o == j })
		n.unlink(from, j)
		r.here = append(r.here, j)
		if from.ends == never && len(from.waiting) > 0 {
			n.begin(from, now)
		}
	}
	send := func(now int64) {
		r.free = max(r.free, now) + tokens*r.token
		due := max(r.free, now+tokens*from.token) + n.latency
		if due == now {
			arrive(now)
			return
		}
		n.at(due, func(now int64) {
			arrive(now)
			if r.ends == never {
				n.begin(r, now)
			}
		})
	}
	start := max(now, from.free)
	from.free = start + tokens*from.token
	if start == now {
		send(now)
		return
	}
	n.at(start, send)
}

// take puts what has come into the batch.
func (n *naive) take(r *naiveReplica) {
	for _, j := range r.here {
		r.coming = slices.DeleteFunc(r.coming, func(o *naiveJob) bool { return o == j })
		r.batch = append(r.batch, j)
	}
	r.here = nil
}

// A split is a fleet of one type that prefills and one that decodes, which does not change.
type split struct {
	requests []Request
	types    [2]Type
	transfer Transfer
	router   Router
	block    int32
}

func drawSplit(t *rapid.T) split {
	d := split{requests: drawRequests(t, 30), router: rapid.SampledFrom([]Router{LeastLoaded, RoundRobin}).Draw(t, "router")}
	for i, role := range []Role{Prefill, Decode} {
		d.types[i] = Type{
			Name: role.String(), Role: role, Server: drawServer(t), Initial: rapid.Int32Range(1, 3).Draw(t, "replicas"),
			Bandwidth: rapid.SampledFrom([]float64{0, 1e3, 1e4, 1e5, 1e8}).Draw(t, "bandwidth"),
		}
	}
	d.transfer = Transfer{TokenBytes: rapid.SampledFrom([]float64{1, 10, 123.4}).Draw(t, "bytes"), Latency: rapid.SampledFrom([]time.Duration{0, time.Nanosecond, 20 * time.Millisecond}).Draw(t, "latency")}
	if rapid.Bool().Draw(t, "prefixes") {
		d.block = rapid.Int32Range(1, 16).Draw(t, "block")
		d.router = rapid.SampledFrom(routers()).Draw(t, "any router")
		d.requests = drawPrefixes(t, d.requests, d.block)
	}
	return d
}

func (d *split) scenario() Scenario {
	s := plain(Trace{Requests: d.requests}, Server{}, 0)
	s.Types, s.Transfer, s.Router, s.BlockTokens = d.types[:], d.transfer, d.router, d.block
	return s
}

func (d *split) naive() (*naive, []*naiveJob) {
	n := &naive{router: d.router, block: int64(d.block)}
	n.latency = int64(d.transfer.Latency) * 1000
	for _, t := range d.types {
		for range t.Initial {
			r := &naiveReplica{server: t.Server, role: t.Role}
			if t.Bandwidth > 0 {
				r.token = int64(d.transfer.TokenBytes/t.Bandwidth*1e12 + 0.5)
			}
			n.shape = append(n.shape, r)
		}
	}
	return n, n.run(slices.Clone(d.requests), len(n.shape))
}

func runSplit(t require.TestingT, s *Scenario, o Options) Result {
	r := runStatic(t, s, o)
	require.Zero(t, r.Unfinished)
	return r
}

// TestHandoversEqualTheNaiveTwin: with prefill and decode apart each request has the times of a twin that takes every step by
// itself and looks through a list for what its links do next, to the picosecond: the first token, the end of the
// transfer, the second token, and the last one.
func TestHandoversEqualTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawSplit(t)
		n, jobs := d.naive()
		var wantMoved, gotMoved []string
		for _, j := range jobs {
			if j.output > 1 {
				wantMoved = append(wantMoved, fmt.Sprint(elapsed(j.arrived), j.input, j.output, elapsed(j.first), elapsed(j.came), elapsed(j.second)))
			}
		}
		s := d.scenario()
		r := runAsNaive(t, &s, Options{Handover: func(h Handover) {
			gotMoved = append(gotMoved, fmt.Sprint(h.Arrived, h.Input, h.Output, h.First, h.Came, h.Second))
		}}, jobs)
		require.Zero(t, r.Unfinished)
		require.ElementsMatch(t, wantMoved, gotMoved)
		require.EqualValues(t, n.preempted, r.Preempted)
		require.EqualValues(t, n.hits, r.PrefixHits)
		require.EqualValues(t, len(gotMoved), r.Transfers)
	})
}

// drawSplitWorld draws a world of drawWorld whose replicas have roles.
func drawSplitWorld(t *rapid.T) Scenario {
	s := drawWorld(t)
	d := drawSplit(t)
	world := s.Types[0]
	s.Types, s.Transfer = nil, d.transfer
	for i, role := range []Role{Prefill, Decode} {
		one := world
		one.Name, one.Role, one.Server, one.Bandwidth = role.String(), role, d.types[i].Server, d.types[i].Bandwidth
		s.Types = append(s.Types, one)
	}
	if d.block > 0 {
		s.Workload = Trace{Requests: drawPrefixes(t, slices.Clone(s.Workload.(Trace).Requests), d.block), Length: 6 * time.Minute}
		s.BlockTokens, s.Router = d.block, d.router
	}
	s.Metrics[2].Type, s.Metrics[3].Type = Prefill.String(), Decode.String()
	return s
}

// TestSplitWorlds: what TestWorlds says holds with prefill and decode apart, where replicas of both crash, drain and come
// while KV caches are on their way; and no KV cache ever has more in it than it has room for.
func TestSplitWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSplitWorld(t)
		checkWorld(t, &s, rapid.Uint64Range(0, 100).Draw(t, "seed"))
		_, err := Run(context.Background(), &s, func() (scaling.Group, error) { return newBoth(2), nil }, Options{
			Seed: 1,
			Pages: func(_ time.Time, pages []Page) {
				for _, p := range pages {
					require.True(t, p.KVUse >= 0 && p.KVUse <= 1, "%+v", p)
				}
			},
			Handover: func(h Handover) {
				least := s.Transfer.Latency
				for i := range s.Types {
					if w := s.Types[i].Bandwidth; w > 0 {
						least = max(least, s.Transfer.Latency+time.Duration(float64(h.Input)*s.Transfer.TokenBytes/w*float64(time.Second)))
					}
				}
				require.True(t, h.Arrived < h.First && h.First+least <= h.Came+time.Microsecond && h.Came < h.Second, "%+v, at least %s", h, least)
			},
		})
		require.NoError(t, err)
	})
}

// TestSplitWorldsGoWrong: in the worlds that TestSplitWorlds draws from KV caches are lost at either end and on the way, and fetched
// again.
func TestSplitWorldsGoWrong(t *testing.T) {
	worlds := rapid.Custom(drawSplitWorld)
	var sum Result
	var lost [came + 1]int64
	for i := range 2 * fixed {
		s := worlds.Example(i)
		e := newEngine(&s, Options{Seed: 1})
		e.controller, _ = newController(func() (scaling.Group, error) { return newBoth(2), nil }, false)
		require.NoError(t, e.run(func() error { return nil }))
		for at, n := range e.apart.lost {
			lost[at] += n
		}
		r := e.result()
		sum.Preempted += r.Preempted
		sum.Retried += r.Retried
		sum.Transfers += r.Transfers
		sum.PrefixHits += r.PrefixHits
	}
	for name, n := range map[string]int64{
		"preemptions": sum.Preempted, "retries": sum.Retried, "transfers": sum.Transfers, "prefix hits": sum.PrefixHits,
		"lost before they were asked for": lost[kept], "lost before they were sent": lost[asked], "lost on the way": lost[sent],
		"lost when they had come": lost[came],
	} {
		require.Positive(t, n, "no world had %s", name)
	}
}

// TestSplitWorldsEnd: whatever happens to replicas on both sides, each request is answered or refused in the end, if there is always
// one of each asked for.
func TestSplitWorldsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSplitWorld(t)
		s.Grace, s.Control.RejectRate, s.Control.CrashRate = 24*time.Hour, 0, 0
		for i := range s.Types {
			s.Types[i].Quota, s.Types[i].CrashesPerHour = 0, rapid.SampledFrom([]float64{0, 30, 120}).Draw(t, "a few crashes")
		}
		r, err := Run(context.Background(), &s, func() (scaling.Group, error) {
			b := newBoth(2)
			for i := range b.Policies {
				b.Policies[i] = scaling.New(restless{bounds: scaling.Bounds{Min: 1, Max: 4}})
			}
			return b, nil
		}, Options{Seed: rapid.Uint64Range(0, 9).Draw(t, "seed")})
		require.NoError(t, err)
		require.Equal(t, r.Requests, r.Finished+r.Refused)
	})
}

// endless is a server whose memory and batch have no end.
func endless(s Server) Server {
	s.MaxSeqs, s.KVTokens = 1<<20, 1e9
	return s
}

// TestInfiniteLinkIsPrefillBeforeDecode: with a link that takes no time, one replica that prefills gives first tokens as one that only
// has the prompts to serve, and one that decodes goes on as a loop does that is given sequences at those times.
func TestInfiniteLinkIsPrefillBeforeDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawSplit(t)
		d.block, d.router = 0, LeastLoaded
		d.transfer.Latency = 0
		for i := range d.types {
			d.types[i].Server, d.types[i].Initial, d.types[i].Bandwidth = endless(d.types[i].Server), 1, 0
			d.types[i].Server.PrefillToken = 1e-4 // times are whole nanoseconds
		}
		for i := range d.requests {
			d.requests[i].At += time.Duration(i) * time.Microsecond
			d.requests[i].Blocks = nil
		}
		prompts := slices.Clone(d.requests)
		for i := range prompts {
			prompts[i].Output = 1
		}
		alone := plain(Trace{Requests: prompts}, d.types[0].Server, 1)
		first := map[time.Duration]time.Duration{}
		runStatic(t, &alone, Options{Request: func(o Outcome) { first[o.Arrived] = o.TTFT }})

		type sequence struct {
			q           Request
			at, written int64
		}
		var coming, batch []*sequence
		for _, q := range d.requests {
			if q.Output > 1 {
				coming = append(coming, &sequence{q, int64(q.At+first[q.At]) * 1000, 1})
			}
		}
		slices.SortStableFunc(coming, func(a, b *sequence) int { return cmp.Compare(a.at, b.at) })
		speed := d.types[1].Server.speed()
		last := map[time.Duration]int64{}
		for now := int64(0); len(coming)+len(batch) > 0; {
			if len(batch) == 0 {
				now = max(now, coming[0].at)
			}
			for len(coming) > 0 && (coming[0].at < now || coming[0].at == now && len(batch) == 0) {
				batch = append(batch, coming[0])
				coming = coming[1:]
			}
			now += speed.base
			for _, one := range batch {
				now += speed.sequence + speed.kv*(int64(one.q.Input)+one.written-1)
			}
			for _, one := range batch {
				one.written++
				last[one.q.At] = now
			}
			batch = slices.DeleteFunc(batch, func(one *sequence) bool { return one.written == int64(one.q.Output) })
		}
		s := d.scenario()
		runSplit(t, &s, Options{
			Request: func(o Outcome) {
				require.Equal(t, first[o.Arrived], o.TTFT)
				if o.Output > 1 {
					require.Equal(t, elapsed(last[o.Arrived]), o.Arrived+o.Total)
				}
			},
			Handover: func(h Handover) { require.LessOrEqual(t, h.Came-h.First, d.types[1].longest(d.requests)) },
		})
	})
}

// longest returns the longest step of a replica that decodes, with all requests in its batch.
func (t *Type) longest(requests []Request) time.Duration {
	tokens := int64(0)
	for _, q := range requests {
		tokens += int64(q.Input) + int64(q.Output)
	}
	s := t.Server.speed()
	return elapsed(s.first(int32(len(requests)), 0, tokens)) + 1
}

// TestMoreBandwidthIsNeverLater: with memory for all and a router that does not look at load, first tokens do not depend on the link at all, and with a faster one no KV cache comes
// later to a replica that decodes, but for what the end of its step was later.
func TestMoreBandwidthIsNeverLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawSplit(t)
		d.block, d.router = 0, RoundRobin
		for i := range d.types {
			d.types[i].Server = endless(d.types[i].Server)
		}
		d.types[1].Initial, d.types[1].Bandwidth = 1, 0
		for i := range d.requests {
			d.requests[i].At += time.Duration(i) * time.Microsecond
			d.requests[i].Blocks = nil
		}
		at := func(bandwidth float64) (of map[time.Duration]Handover) {
			d.types[0].Bandwidth = bandwidth
			of = map[time.Duration]Handover{}
			s := d.scenario()
			runSplit(t, &s, Options{Handover: func(h Handover) { of[h.Arrived] = h }})
			return of
		}
		slow := rapid.SampledFrom([]float64{1e3, 1e4, 1e6}).Draw(t, "slow")
		fast := rapid.SampledFrom([]float64{0, 2 * slow, 100 * slow}).Draw(t, "fast")
		late := at(slow)
		for arrived, h := range at(fast) {
			require.Equal(t, late[arrived].First, h.First)
			require.LessOrEqual(t, h.Came, late[arrived].Came+d.types[1].longest(d.requests))
		}
	})
}

// TestFullDecodersHoldPrompts: KV caches that nobody has room for stay where they were computed, so that prompts wait, and the time
// to the first token grows with what is missing behind it.
func TestFullDecodersHoldPrompts(t *testing.T) {
	var requests []Request
	for i := range 30 {
		requests = append(requests, Request{At: time.Duration(i) * 100 * time.Millisecond, Input: 100, Output: 50})
	}
	d := split{requests: requests, transfer: Transfer{TokenBytes: 1}}
	fast := Server{Base: 0.01, MaxSeqs: 100, TokenBudget: 1000, KVTokens: 400}
	d.types = [2]Type{{Name: "p", Role: Prefill, Server: fast, Initial: 1}, {Name: "d", Role: Decode, Server: fast, Initial: 1}}
	first := func(room int64) Result {
		d.types[1].Server.KVTokens = room
		s := d.scenario()
		return runSplit(t, &s, Options{})
	}
	wide, narrow := first(10_000), first(160)
	require.InDelta(t, 0.01, wide.TTFT.Max, 1e-3)
	require.InDelta(t, 0.01, wide.SecondToken.Max, 1e-2)
	require.Greater(t, narrow.TTFT.Max, 5.0, "three prompts fit where they are computed, one where it is decoded")
	require.Greater(t, narrow.SecondToken.P50, 1.0)
	require.Less(t, narrow.SecondToken.Max, 2.5, "of at most four, each half a second")
}

// TestRolesValidate names every wrong field at once.
func TestRolesValidate(t *testing.T) {
	s := plain(steady(time.Second, 10), slow(), 1)
	s.Types = append(s.Types, s.Types[0])
	s.Types[0].Name, s.Types[1].Name = "p", "d"
	s.Types[0].Role = Prefill
	s.Types[1].Bandwidth = 5
	s.Transfer.Latency = -1
	s.Metrics = []Metric{{Name: "a", Signal: KVCacheUsage, Type: "x"}, {Name: "b", Signal: TTFT, Type: "p"}}
	err := s.Validate()
	for _, text := range []string{
		"types: 1: must have no type with the role Both", "types: 2: must have a type with the role Prefill and one with Decode",
		"types[1].bandwidth: 5: must be 0, which is no limit, or within", "types[1].bandwidth: 5: must be 0 without the role",
		"transfer.tokenBytes: 0: must be above 0", "transfer.latency: -1ns: must be within", "metrics[0].type: \"x\": must be the name of a type",
		"metrics[1].type: \"p\": must be empty but for",
	} {
		require.ErrorContains(t, err, text)
	}
	s = plain(steady(time.Second, 10), slow(), 1)
	s.Transfer.TokenBytes = 1
	require.ErrorContains(t, s.Validate(), "transfer: {1 0s}: must be empty")
	s = plain(steady(time.Second, 10), slow(), 1)
	s.Types[0].Role = 7
	require.ErrorContains(t, s.Validate(), "types[0].role: 7: must be Both, Prefill or Decode")
}

// TestDrainingPrefillKeepsItsCaches: a replica that prefills and is taken away stays, and costs, until the last KV cache in it has been
// fetched; the router gives it nothing any more.
func TestDrainingPrefillKeepsItsCaches(t *testing.T) {
	d := split{requests: []Request{{Input: 100, Output: 5}, {At: time.Second, Input: 100, Output: 5}, {At: 20 * time.Second, Input: 1, Output: 1}}, transfer: Transfer{TokenBytes: 1000}}
	for i, role := range []Role{Prefill, Decode} {
		d.types[i] = Type{Name: role.String(), Role: role, Server: slow(), Initial: 1, Bandwidth: 2000} // 50 s for a cache
	}
	s := d.scenario()
	s.Horizon, s.Grace = 10*time.Minute, 0
	group := func() (scaling.Group, error) {
		return &planned{start: s.Begin(), at: func(t time.Duration) []int32 {
			if t < 15*time.Second {
				return []int32{1, 1}
			}
			return []int32{0, 1}
		}}, nil
	}
	last := time.Duration(0)
	r, err := Run(context.Background(), &s, group, Options{Handover: func(h Handover) { last = h.Came }})
	require.NoError(t, err)
	require.EqualValues(t, 2, r.Finished)
	require.EqualValues(t, 1, r.Unfinished, "nobody is there to compute it")
	require.InDelta(t, 100.1, last.Seconds(), 0.1, "one cache after the other")
	require.InDelta(t, last.Hours(), r.Types[0].ReplicaHours, 1e-9)
	require.InDelta(t, 10.0/60, r.Types[1].ReplicaHours, 1e-9)
}

// TestRegressionACrashFreesTheLink: a link waited for the transfers that a crash at their other end had ended, as long as they would have
// taken.
func TestRegressionACrashFreesTheLink(t *testing.T) {
	for role, slowest := range map[Role]int{Decode: 0, Prefill: 1} {
		var requests []Request
		for range 8 {
			requests = append(requests, Request{Input: 100, Output: 100})
		}
		d := split{requests: requests, transfer: Transfer{TokenBytes: 1}}
		for i, role := range []Role{Prefill, Decode} {
			d.types[i] = Type{Name: role.String(), Role: role, Server: Server{Base: 0.1, MaxSeqs: 8, TokenBudget: 1000, KVTokens: 2000}, Initial: 1, Startup: ColdStart(30 * time.Second)}
		}
		d.types[slowest].Bandwidth = 1 // 100 s for a cache
		s := d.scenario()
		var came []time.Duration
		var e *engine
		e = newEngine(&s, Options{
			Handover: func(h Handover) { came = append(came, h.Came) },
			Decision: func(now time.Time, _ *scaling.GroupObservation, _ *scaling.GroupDecision) {
				if now.Sub(s.Begin()) == 150*time.Second {
					e.crash(e.fleet[slices.IndexFunc(e.fleet, func(r *replica) bool { return r.role == role })])
				}
			},
		})
		var err error
		e.controller, err = newController(func() (scaling.Group, error) { return Static(1, 1), nil }, false)
		require.NoError(t, err)
		require.NoError(t, e.run(context.Background().Err))
		require.Len(t, came, 8)
		require.InDelta(t, 100, came[0].Seconds(), 2)
		for i, at := range came[1:] { // the second one was under way, and begins again
			require.InDelta(t, 280+100*float64(i), at.Seconds(), 2, "%s, %d", role, i+1)
		}
	}
}
