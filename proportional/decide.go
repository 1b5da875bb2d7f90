package proportional

import (
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// A Scaler is the algorithm: an immutable value that New makes from a Config. The zero value decides Unknown.
type Scaler struct {
	*plan // never written to after New; shared by copies
}

// plan is a Config with values derived from it.
type plan struct {
	config  Config
	metrics []Metric // by name

	stable, burst, bucket int64 // lengths in milliseconds
	stabilized            bool  // whether there is a stabilization
	limited               bool  // whether there are rate limits
}

// New returns the Scaler of a configuration, or an error with every rule that it breaks.
func New(c Config) (Scaler, error) {
	if err := c.Validate(); err != nil {
		return Scaler{}, err
	}
	p := &plan{config: c.clone(), metrics: c.prepare()}
	if c.StableWindow > 0 {
		// A window shorter than a bucket is that bucket.
		p.bucket = c.Resolution.Milliseconds()
		p.stable = max(c.StableWindow.Milliseconds(), p.bucket)
		p.burst = max(c.Panic.Window.Milliseconds(), p.bucket)
	}
	p.stabilized = c.Stabilization != scaling.Stabilization{}
	p.limited = limits(c.RateLimits.Up) || limits(c.RateLimits.Down)
	return Scaler{p}, nil
}

func limits(l scaling.RateLimit) bool { return len(l.Limits) > 0 || l.Select != scaling.SelectMax }

// Kind names the algorithm and the version of its state.
func (s Scaler) Kind() scaling.Kind { return scaling.Kind{Name: "proportional", Version: 1} }

// Applied records a change that was carried out, for the rate limits. A change of a count that was outside the bounds counts
// against no limit.
func (s Scaler) Applied(state State, now time.Time, from, to int32) State {
	if s.plan != nil && s.limited && s.config.Bounds.Contains(from) {
		s.config.RateLimits.Record(&state.Changes, now, from, to)
	}
	return state
}

// Record adds the observation's loads to the windows without deciding, for callers that sample more often than they decide.
// Decide does that by itself. Without a stable window there is nothing to record. If the clock went back, Record moves all remembered
// times back, as Decide does, and the next Decide does not hold for it.
func (s Scaler) Record(state State, now time.Time, obs scaling.Observation) State {
	if s.plan != nil {
		s.record(&state, window.Milli(now), &obs)
	}
	return state
}

// record adds the samples of every metric. It returns by how many milliseconds the clock went back, and the start of the present
// bucket.
func (p *plan) record(state *State, now int64, obs *scaling.Observation) (back, slot int64) {
	seen := state.Seen.Milli
	back = turnBack(state, now)
	state.Seen = stampMilli(now)
	if p.stable == 0 {
		state.Loads = nil
		return back, now
	}
	slot = p.slot(now)
	by := p.slot(seen) - slot // above 0 only for a step back
	loads := loadsOf(state, p.metrics)
	for i := range loads {
		l := &loads[i]
		l.Window.rewind(by, slot)
		l.Window.evict(slot - p.stable)
		p.take(l, &p.metrics[i], now, slot, obs)
	}
	return back, slot
}

// take adds a metric's sample to its window if it is new: a sample that is not newer than the latest one was counted already or
// is too late.
func (p *plan) take(l *Load, m *Metric, now, slot int64, obs *scaling.Observation) {
	var spare scaling.Reading
	r := find(obs, m.Name, &spare)
	at, in := now, slot
	if r != nil && !r.At.IsZero() {
		at = min(now, window.Milli(r.At))
		in = p.slot(at)
	}
	if l.Last.Set && at <= l.Last.Milli || in <= slot-p.stable {
		return
	}
	load, ok := m.fleet(obs, r, &spare, obs.ReadyReplicas)
	if !ok {
		return
	}
	if !l.Since.Set || at-l.Last.Milli > 2*p.stable {
		l.Since = stampMilli(at)
	}
	l.Last = stampMilli(at)
	l.Window.record(in, load)
}

// slot returns the start of the bucket that a time is in.
func (p *plan) slot(ms int64) int64 {
	in := ms % p.bucket
	if in < 0 { // before 1970
		in += p.bucket
	}
	return ms - in
}

// Decide returns the replicas that the load needs, and why.
//
//	want = ceil(load / Target)     up if  lower > Target * spec * (1 + Up.Tolerance)
//	                               down if upper < Target * spec * (1 - Down.Tolerance)
//	n    = the highest want of any metric, in panic no fewer than spec
//
// where lower and upper are the ends of the load averaged over the stable window; in panic, lower averaged over the panic window
// is used as well. Then n is corrected, in this order: Up.MaxRate and the activation scale, the panic, stabilization, rate limits,
// Down.MaxRate and steps, bounds. With Target 10, bounds {1, 8} and no windows a load of 93 gives
//
//	Up 4 -> 8
//	  AboveTarget       4 -> 10   inflight load=93 > limit=40, target=10
//	  AboveMax         10 -> 8    from=10 > max=8
//
// Pods without a value count 0 in lower and the fill in upper, so that a fill never causes a scale-up and a missing value never
// causes a scale-down. A metric that is not known blocks scale-down but never scale-up. If no metric is known the verdict is
// Unknown, with a warning for each reading if none matches a metric. NaN, negative and infinite values count as missing. An upper
// end of +Inf blocks every scale-down.
//
// If the clock is behind the last decision or Record, Decide holds (code scaling.ClockBack) and moves all remembered times back with the
// clock: the time already waited stays the same, the age of a sample too up to a bucket's length, and nothing expires early.
// Next is when a window is covered, a panic can end or a rate limit allows more; it does not anticipate samples that leave the
// windows. Decide is total: it never fails, and keeps nothing but what it returns.
func (s Scaler) Decide(state State, now time.Time, obs scaling.Observation) (_ State, d scaling.Decision) {
	if s.plan == nil {
		return state, scaling.UnknownAt(obs.SpecReplicas, scaling.NotConfigured, "")
	}
	at := window.Milli(now)
	seen := state.Seen
	back, slot := s.record(&state, at, &obs)
	d.Start(obs.SpecReplicas)
	switch {
	case !s.config.Bounds.Contains(obs.SpecReplicas):
		d.Clamp(s.config.Bounds)
	case back > 0:
		d.To(obs.SpecReplicas, scaling.ClockBack, "", seconds(back))
	default:
		t := tally{at: at, slot: slot}
		if n := len(s.metrics); n <= 2 { // fewer to clear where there are few
			var looks [2]look
			t.looks = looks[:n]
		} else {
			var looks [MaxMetrics]look
			t.looks = looks[:n]
		}
		s.survey(&t, &state, &obs)
		s.weigh(&d, &t, &state, &obs)
		if t.known {
			s.recommend(&d, &t, &state, &obs)
			s.correct(&d, now, &state, &obs)
		} else {
			d.Verdict = scaling.Unknown
			s.warnUnmatched(&d, &obs)
		}
		if gap := at - seen.Milli; seen.Set && gap > 2*s.stable {
			s.warnRare(&d, &t, gap)
		}
	}
	return state, d
}
