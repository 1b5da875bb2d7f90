package capacity

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Sample holds the counters of a fleet at one time, counted since its state began, and its gauges at that time.
type Sample struct {
	At        float64 `json:"at"`        // Unix seconds
	Firsts    float64 `json:"firsts"`    // requests that got their first token
	Prefilled float64 `json:"prefilled"` // prompt tokens of these
	Finished  float64 `json:"finished"`  // answers that finished
	Generated float64 `json:"generated"` // tokens of these
	Late      float64 `json:"late"`      // first tokens that certainly missed the SLO
	Timed     float64 `json:"timed"`     // answers with a known time per output token
	TPOT      float64 `json:"tpot"`      // sum of these times, in seconds
	Slow      float64 `json:"slow"`      // answers of Timed that certainly missed the SLO

	Waiting float64 `json:"waiting"`
	Queue   float64 `json:"queue"` // upper end of Waiting, if every ready pod answered
	Running float64 `json:"running"`
	KV      float64 `json:"kv"`    // caches in use, in replicas
	Ready   int32   `json:"ready"` // replicas that serve
	// Partly says that some ready pods did not answer: what they counted appears in a later sample.
	Partly bool `json:"partly,omitempty"`
	// Absent is how many pods did not answer, for the metric that lacks the most.
	Absent int32 `json:"absent,omitempty"`
	// Vague says that the gauges are intervals. Intervals that come only from pods that are not ready do not count, as those pods have no
	// requests: then all gauges are intervals.
	Vague bool `json:"vague,omitempty"`
	// Silent is how many ready pods gave no gauges.
	Silent int32 `json:"silent,omitempty"`
	// Excused counts the misses while the fleet lacked replicas that had been asked for, and ExcusedOf the requests: see excuse.
	Excused   float64 `json:"excused,omitempty"`
	ExcusedOf float64 `json:"excusedOf,omitempty"`
}

// arrived is how many requests have arrived: those with a first token and those waiting for it.
func (s *Sample) arrived() float64 { return s.Firsts + s.Waiting }

// queued is how many requests may be waiting at most.
func (s *Sample) queued() float64 { return max(s.Waiting, s.Queue) }

// A load is what replicas hold: requests in batches, and KV caches in use, in replicas.
type load struct{ running, kv float64 }

func (s *Sample) load() load { return load{s.Running, s.KV} }

// admitted returns the load as it would be if all waiting requests were in a batch, each with as many tokens as a running
// request has, where that is known.
func (s *Sample) admitted() load {
	l := s.load()
	if l.running > 0 && !s.Vague {
		l.kv *= (l.running + s.Waiting) / l.running
	}
	l.running += s.Waiting
	return l
}

// since returns how many requests have certainly arrived since another sample.
func (s *Sample) since(a *Sample) float64 {
	return max(0, s.arrived()-a.Firsts-a.queued())
}

// atMost returns how many requests may have arrived since another sample.
func (s *Sample) atMost(a *Sample) float64 { return max(0, s.Firsts+s.queued()-a.arrived()) }

// sum returns the lower end of a reading, over all pods.
func sum(r *scaling.Reading) float64 { return r.Lower * float64(r.Values+r.NotReady+r.Failed) }

// gauges are the readings of an observation.
type gauges struct{ waiting, running, kv scaling.Reading }

// read makes a sample of an observation; missing names the metric that it lacks, if any.
func read(now time.Time, obs *scaling.Observation, slo sim.SLO) (s Sample, missing string) {
	var g gauges
	return g.read(now, obs, slo)
}

// read makes a sample as the function read does, and keeps the readings.
func (g *gauges) read(now time.Time, obs *scaling.Observation, slo sim.SLO) (s Sample, missing string) {
	s = Sample{At: seconds(now), Ready: max(obs.ReadyReplicas, 0)}
	if obs.Served > 0 {
		s.Ready = obs.Served
	}
	g.waiting = obs.Reading(Waiting)
	g.running = obs.Reading(Running)
	g.kv = obs.Reading(KVUse)
	waiting, running, kv := &g.waiting, &g.running, &g.kv
	all := [...]*scaling.Reading{waiting, running, kv}
	for _, r := range all {
		if !r.Known() {
			return s, r.Metric
		}
	}
	s.Waiting, s.Running, s.KV = sum(waiting), sum(running), sum(kv)
	failed := waiting.Failed + running.Failed + kv.Failed
	var h [5]*scaling.Histogram
	var total [len(h)]float64
	for i, name := range [...]string{Prefilled, AnswerSize, TTFT, TPOT, PromptSize} {
		if h[i] = obs.Histogram(name); h[i] == nil || !h[i].Known() {
			return s, name
		}
		if total[i] = h[i].Total(); max(h[i].Sum, total[i]) > mostCount {
			return s, name
		}
		failed += h[i].Failed
		s.Absent = max(s.Absent, h[i].Failed)
	}
	s.Partly = failed != 0
	intervals, starting := 0, 0
	for _, r := range all {
		if r.Upper > r.Lower {
			intervals++
			if r.NotReady > 0 && r.Failed == 0 {
				starting++
			}
		}
		s.Silent = max(s.Silent, min(r.Failed, s.Ready))
		s.Absent = max(s.Absent, r.Failed)
	}
	s.Vague = intervals > 0 && starting < len(all)
	if s.Queue = s.Waiting; waiting.Failed == 0 { // else Partly says that some did not answer
		s.Queue = g.mayWait()
	}
	prefilled, answers, firsts, each := h[0], h[1], h[2], h[3]
	if !prefilled.At.IsZero() && prefilled.At.Before(now) {
		s.At = seconds(prefilled.At)
	}
	for _, r := range all {
		if !r.At.IsZero() {
			s.At = min(s.At, seconds(r.At))
		}
	}
	s.Firsts, s.Prefilled = total[0], prefilled.Sum
	s.Finished, s.Generated = total[1], answers.Sum
	s.Late, _ = firsts.Over(slo.TTFT.Seconds())
	s.Slow, _ = each.Over(slo.TPOT.Seconds())
	s.Timed, s.TPOT = total[3], each.Sum
	if !s.valid() || !s.exact() { // numbers that are too large to add up, or counts of pods that are none
		return s, Waiting
	}
	return s, ""
}

// shown returns what the histograms of an observation show of a missed SLO (see Past.Shown).
func shown(obs *scaling.Observation, slo sim.SLO) sim.SLO {
	return sim.SLO{TTFT: bound(obs.Histogram(TTFT), slo.TTFT), TPOT: bound(obs.Histogram(TPOT), slo.TPOT)}
}

// bound returns the first bound of a histogram's buckets that is no shorter than a time; without one, a time that no answer takes.
func bound(h *scaling.Histogram, least time.Duration) time.Duration {
	const never = 1000 * time.Hour
	for _, b := range h.Bounds {
		if b >= least.Seconds() {
			return time.Duration(min(b, never.Seconds()) * float64(time.Second))
		}
	}
	return never
}

// mayWait returns how many requests may be waiting at most. Pods that are not ready have none.
func (g *gauges) mayWait() float64 {
	w := &g.waiting
	if w.NotReady > 0 && w.Failed == 0 && g.running.NotReady > 0 && g.kv.NotReady > 0 {
		return sum(w)
	}
	return w.Upper * float64(w.Values+w.NotReady+w.Failed)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// missed returns how many requests certainly missed the SLO since a sample, by TTFT or by TPOT: those above Past.Shown.
func (s *Sample) missed(from *Sample) float64 { return s.Late - from.Late + s.Slow - from.Slow }

// served returns how many requests were served since a sample.
func (s *Sample) served(from *Sample) float64 { return max(s.Firsts-from.Firsts, s.Timed-from.Timed) }

// catchUp estimates what a sample would be if all pods had answered: some answered at a, did not at last, and again at the next sample x.
func (s *Sample) catchUp(a, last, x *Sample) {
	share, known := (s.At-a.At)/(x.At-a.At), (last.At-a.At)/(x.At-a.At)
	was, before, is := a.counters(), last.counters(), x.counters()
	for i, n := range s.counters() {
		more := *is[i] - *was[i]
		if seen := *before[i] - *was[i]; seen > 0 {
			more = max((*n-*was[i])/seen*known*more, *n-*was[i])
		} else {
			more *= share
		}
		*n = min(*was[i]+more, *is[i])
	}
	s.Waiting = a.Waiting + share*(x.Waiting-a.Waiting)
	s.Queue = a.Queue + share*(x.Queue-a.Queue)
	s.Running = a.Running + share*(x.Running-a.Running)
	s.KV = a.KV + share*(x.KV-a.KV)
	s.Partly, s.Absent, s.Silent = x.Partly, x.Absent, x.Silent
}

// counters are the fields that only grow.
func (s *Sample) counters() [8]*float64 {
	return [...]*float64{&s.Firsts, &s.Prefilled, &s.Finished, &s.Generated, &s.Late, &s.Timed, &s.TPOT, &s.Slow}
}

// add adds what had been counted before a reset of the counters.
func (s *Sample) add(b *Sample) {
	s.Firsts += b.Firsts
	s.Prefilled += b.Prefilled
	s.Finished += b.Finished
	s.Generated += b.Generated
	s.Late += b.Late
	s.Timed += b.Timed
	s.TPOT += b.TPOT
	s.Slow += b.Slow
}

// fell reports whether a counter of s is below that of before: the reader of the counters was restarted.
func (s *Sample) fell(before *Sample) bool {
	return s.Firsts < before.Firsts || s.Prefilled < before.Prefilled || s.Finished < before.Finished ||
		s.Generated < before.Generated || s.Late < before.Late || s.Timed < before.Timed || s.Slow < before.Slow
}

// begun adds to before what the histograms that have begun anew since raw had counted: all of them if the one of first tokens did,
// which has no buckets, as then their reader was restarted; otherwise those that fell, as each does alone when pods change its buckets.
func (s *Sample) begun(raw *Sample, before Sample) Sample {
	of := [...]int{0, 0, 1, 1, 2, 3, 3, 3} // the histogram of each of the counters
	var fell [4]bool
	is, was, to := s.counters(), raw.counters(), before.counters()
	for i, h := range of {
		fell[h] = fell[h] || *is[i] < *was[i] && is[i] != &s.TPOT
	}
	for i, h := range of {
		if fell[0] || fell[h] {
			*to[i] += *was[i]
		}
	}
	return before
}

func (s *Sample) valid() bool {
	return counts(s.Firsts) && counts(s.Prefilled) && counts(s.Finished) && counts(s.Generated) && counts(s.Late) && counts(s.Timed) &&
		counts(s.TPOT) && counts(s.Excused) && counts(s.ExcusedOf) && counts(s.Slow) && counts(s.Waiting) && counts(s.Queue) && counts(s.Running) && counts(s.KV) &&
		s.Ready >= 0 && !math.IsNaN(s.At) && !math.IsInf(s.At, 0)
}

// mostCount is the largest count that is used: beside a larger one, what others count would be lost.
const mostCount = 1 << 53

// exact reports whether no count is so large that others are lost beside it.
func (s *Sample) exact() bool {
	return s.Waiting <= mostCount && s.Queue <= mostCount && s.Running <= mostCount && s.KV <= mostCount &&
		s.Firsts <= mostCount && s.Prefilled <= mostCount && s.Finished <= mostCount && s.Generated <= mostCount &&
		s.Late <= mostCount && s.Timed <= mostCount && s.TPOT <= mostCount && s.Slow <= mostCount
}

// counts reports whether a number can be a count: it is finite and not negative.
func counts(x float64) bool { return x >= 0 && x <= math.MaxFloat64 }
