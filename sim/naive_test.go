package sim

import (
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
}

type naiveReplica struct {
	waiting, batch []*naiveJob
	ends           int64 // of the step under way; never if it rests
	share          map[*naiveJob]int64
	preempted      int
}

func naiveRun(requests []Request, replicas int, server Server, router Router) (jobs []*naiveJob, preempted int) {
	tick := func(seconds float64) int64 { return int64(seconds*1e12 + 0.5) }
	base, prefill, sequence, kv := tick(server.Base), tick(server.PrefillToken), tick(server.Sequence), tick(server.KVToken)
	fleet := make([]*naiveReplica, replicas)
	for i := range fleet {
		fleet[i] = &naiveReplica{ends: never}
	}
	cached := func(r *naiveReplica) (sum int64) {
		for _, j := range r.batch {
			sum += j.cached
		}
		return sum
	}
	decoding := func(r *naiveReplica) (n int64) {
		for _, j := range r.batch {
			if j.prefill == 0 {
				n++
			}
		}
		return n
	}
	begin := func(r *naiveReplica, now int64) {
		stopped := false
		for cached(r)+decoding(r) > server.KVTokens {
			j := r.batch[len(r.batch)-1]
			r.batch = r.batch[:len(r.batch)-1]
			j.cached, j.prefill = 0, 0
			r.waiting = slices.Insert(r.waiting, 0, j)
			r.preempted++
			stopped = true
		}
		for !stopped && len(r.waiting) > 0 && len(r.batch) < int(server.MaxSeqs) {
			j := r.waiting[0]
			if cached(r)+decoding(r)+j.input+j.written > server.KVTokens {
				break
			}
			r.waiting = r.waiting[1:]
			j.prefill = j.input + j.written
			j.cached = j.prefill // set aside at once
			r.batch = append(r.batch, j)
		}
		if len(r.batch) == 0 {
			r.ends = never
			return
		}
		r.share = map[*naiveJob]int64{}
		budget := int64(server.TokenBudget)
		for _, j := range r.batch {
			n := min(j.prefill, budget)
			r.share[j] = n
			budget -= n
		}
		r.ends = now + base + prefill*(int64(server.TokenBudget)-budget) + sequence*decoding(r) + kv*cached(r)
	}
	step := func(r *naiveReplica, now int64) {
		for _, j := range slices.Clone(r.batch) {
			switch {
			case j.prefill == 0: // decodes: one token more, and the one before is cached
				j.written++
				j.cached++
			case r.share[j] == j.prefill:
				j.prefill = 0
				j.written++
				if j.first == 0 {
					j.first = now
				}
			default:
				j.prefill -= r.share[j]
				continue
			}
			if j.written == j.output {
				j.ended = now
				r.batch = slices.DeleteFunc(r.batch, func(o *naiveJob) bool { return o == j })
			}
		}
		begin(r, now)
	}
	turn, next := 0, 0
	for {
		best, at := -1, never
		for i, r := range fleet {
			if r.ends < at {
				best, at = i, r.ends
			}
		}
		switch {
		case next < len(requests) && int64(requests[next].At)*1000 < at:
			q := requests[next]
			j := &naiveJob{id: next, arrived: int64(q.At) * 1000, input: int64(q.Input), output: int64(q.Output)}
			jobs = append(jobs, j)
			next++
			to := fleet[0]
			if router == RoundRobin {
				to = fleet[turn%len(fleet)]
				turn++
			} else {
				for _, r := range fleet {
					if len(r.waiting)+len(r.batch) < len(to.waiting)+len(to.batch) {
						to = r
					}
				}
			}
			to.waiting = append(to.waiting, j)
			if to.ends == never {
				begin(to, j.arrived)
			}
		case best >= 0:
			step(fleet[best], at)
		default:
			for _, r := range fleet {
				preempted += r.preempted
			}
			return jobs, preempted
		}
	}
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
	r, err := Run(context.Background(), s, func() (scaling.Group, error) { return Static(s.Types[0].Initial), nil }, o)
	require.NoError(t, err)
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
		want, got := []string{}, []string{}
		for _, j := range jobs {
			want = append(want, fmt.Sprint(elapsed(j.arrived), j.input, j.output, elapsed(j.first-j.arrived), elapsed(j.ended-j.arrived)))
		}
		r := runStatic(t, &s, Options{Request: func(o Outcome) {
			got = append(got, fmt.Sprint(o.Arrived, o.Input, o.Output, o.TTFT, o.Total))
		}})
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
		require.EqualValues(t, preempted, r.Preempted)
	})
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
