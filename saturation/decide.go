package saturation

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// Decide turns an analysis into a target for every variant that has a state or a replica, in any order. It overwrites the
// plan and reuses its memory. The caller keeps the returned state in place of the one passed in. The analysis is not
// changed.
//
// In mode Default, in this order:
//
//   - A count outside a variant's bounds goes to the nearest bound, at once.
//   - No replica has a value: Unknown.
//   - The clock is behind the last decision: hold.
//   - A variant is in transition (desired != current, or reporting != current): the analysis describes a fleet that is about
//     to change. That variant keeps its desired count and every other one holds, until the transition has lasted for
//     TransitionTimeout. Then the variant is set aside; otherwise a replica that never starts would block the model for ever.
//   - Up: the cheapest variant that may grow, first by name, adds one replica. It may grow if none of its replicas is
//     pending and its count is below its maximum. A variant that was set aside, or has had pending replicas for the
//     TransitionTimeout, grows only if no other may.
//   - Down: the dearest variant that may shrink, last by name, removes one replica, if that has been safe for
//     DownStabilization. It may shrink if its count is above max(Min, 1) and the rest can take the load of a replica of it.
//
// A variant without a state, with two different states or with a wrong field is held and reported as Unknown; the other
// variants are decided. A variant at its maximum is not a candidate; the source chooses first and then applies the bounds,
// which stops the model. Decide never fails, and keeps nothing but the state that it returns.
func (s Scaler) Decide(state State, now time.Time, a *Analysis, variants []Variant, plan *Plan) State {
	if s.rules == 0 {
		plan.refuse(a, variants, scaling.NotConfigured, "")
		return state
	}
	if s.config.Mode == Literal {
		s.decideLiterally(a, variants, plan)
		return state
	}
	plan.collect(a, variants, false)
	r := round{scaler: &s, a: a, variants: variants, plan: plan, at: window.Milli(now)}
	back := state.turnBack(r.at)
	r.transit(&state)
	state.Seen = scaling.StampOf(now)

	blind := a.Free+a.Saturated == 0
	grows := r.blocker >= 0 && s.config.Step == Deficit && a.ScaleUp && r.growthOnly
	safe := !blind && r.blocker < 0 && r.weigh()
	spare := 0.0
	if safe {
		spare = r.spare(&state)
	}
	held := state.settle(r.at, safe, spare, Fingerprint(s.rules), r.fleet)

	switch {
	case blind:
		plan.say(NoData, a.Lost.Pod, float64(a.Replicas), float64(a.Missing))
		r.holdAll(-1)
		for i := range plan.Targets {
			if d := &plan.Targets[i].Decision; !d.Acts() {
				d.Verdict = scaling.Unknown
			}
		}
	case back > 0:
		plan.say(scaling.ClockBack, "", seconds(back))
		r.holdAll(-1)
	case r.blocker >= 0 && !grows:
		r.holdAll(r.blocker)
		code, numbers := r.blocked()
		plan.close(code, plan.Targets[r.blocker].Variant, numbers[:]...)
	case a.ScaleUp:
		r.up()
	case safe:
		r.down(held)
	default:
		r.stay()
	}
	return state
}

// A round is one decision in the making.
type round struct {
	scaler   *Scaler
	a        *Analysis
	variants []Variant
	plan     *Plan
	at       int64

	fleet      int64   // sum of the requested counts
	blocker    int     // index of the first variant in transition that blocks; -1 if none does
	growthOnly bool    // whether all variants that block are growing
	even       bool    // whether all variants have the same capacity per replica
	capacity   float64 // of all rows
	coming     float64 // capacity that is starting
	most       float64 // capacity of the largest replica that may go; 0 is no limit
}

// transit finds the variants in transition or with pending replicas, and how long they have been so, and records them in
// state.
func (r *round) transit(state *State) {
	p, timeout := r.plan, window.Millis(r.scaler.config.TransitionTimeout)
	r.blocker, r.growthOnly, r.even = -1, true, true
	p.transitions = p.transitions[:0]
	old := state.Transitions
	first := 0.0
	for i := range p.candidates {
		s, name := &p.candidates[i], p.Targets[i].Variant
		r.fleet += int64(s.current)
		r.capacity += s.capacity * float64(s.rows)
		if first == 0 {
			first = s.capacity
		}
		r.even = r.even && s.capacity == first
		s.moving = s.kind == known && (s.wish != s.current || s.rows != s.current)
		if s.kind != known || !s.moving && s.isPending == 0 {
			continue
		}
		since := scaling.Stamp{Set: true, Milli: r.at}
		for len(old) > 0 && old[0].Variant < name {
			old = old[1:]
		}
		if len(old) > 0 && old[0].Variant == name && old[0].Current == s.current && old[0].Wish == s.wish {
			since.Milli = min(old[0].Since.Milli, r.at)
		}
		p.transitions = append(p.transitions, Transition{Variant: name, Current: s.current, Wish: s.wish, Since: since})
		s.waited = r.at - since.Milli
		s.stuck = timeout > 0 && s.waited >= timeout
		if s.stuck || !s.moving {
			continue // set aside, or it concerns only this variant
		}
		if r.blocker < 0 {
			r.blocker = i
		}
		if s.current <= s.wish && s.rows <= s.wish {
			r.coming += s.capacity * float64(s.wish-s.rows)
		} else {
			r.growthOnly = false
		}
	}
	state.Transitions = append(state.Transitions[:0], p.transitions...)
}

// holdAll holds every variant at the count it is in transition to. With a blocker, the step of the others names it.
func (r *round) holdAll(blocker int) {
	for i := range r.plan.candidates {
		if r.unknown(i) {
			continue
		}
		r.proceed(i)
		if blocker >= 0 && !r.plan.candidates[i].moving {
			d := &r.plan.Targets[i].Decision
			code, numbers := r.blocked()
			d.To(d.From, code, r.plan.Targets[blocker].Variant, numbers[:]...)
		}
	}
}

// unknown opens a target with too little data to decide it, and reports whether it is one.
func (r *round) unknown(i int) bool {
	s := &r.plan.candidates[i]
	if s.kind == known {
		return false
	}
	d, name := r.plan.open(i), r.plan.Targets[i].Variant
	switch s.kind {
	case noState:
		d.To(d.From, NoState, name, float64(s.rows), 0)
	case contradicted:
		d.To(d.From, Contradicted, name)
	default:
		d.To(d.From, Invalid, name)
	}
	d.Verdict = scaling.Unknown
	return true
}

// proceed opens a target and, if it is in transition, moves it to its desired count and says why.
func (r *round) proceed(i int) {
	s := &r.plan.candidates[i]
	d := r.plan.open(i)
	if !s.moving && s.isPending == 0 {
		return
	}
	name := r.plan.Targets[i].Variant
	switch n := r.variants[s.place].wish(); {
	case !s.moving:
	case n > s.current:
		d.To(n, Growing, name, float64(n), float64(s.current))
	case n < s.current:
		d.To(n, Shrinking, name, float64(n), float64(s.current))
	}
	d.Clamp(s.bounds)
	switch {
	case s.rows < s.current:
		d.To(d.Replicas, Starting, name, float64(s.rows), float64(s.current))
	case s.rows > s.current:
		d.To(d.Replicas, Stopping, name, float64(s.rows), float64(s.current))
	}
	timeout := r.scaler.config.TransitionTimeout
	if s.stuck {
		d.To(d.Replicas, SetAside, name, seconds(s.waited), timeout.Seconds())
	} else if timeout > 0 {
		d.NextBy(time.UnixMilli(r.at - s.waited + window.Millis(timeout)))
	}
}

// blocked returns the step of a variant that waits for the blocker.
func (r *round) blocked() (scaling.Code, [2]float64) {
	timeout := r.scaler.config.TransitionTimeout
	if timeout == 0 {
		return Frozen, [2]float64{}
	}
	return Blocked, [2]float64{seconds(r.plan.candidates[r.blocker].waited), timeout.Seconds()}
}

// weigh reports whether any replica can be removed.
func (r *round) weigh() bool {
	if r.even {
		return r.a.DownSafe
	}
	for i := range r.plan.candidates {
		if s := &r.plan.candidates[i]; s.kind == known && r.canSpare(s) {
			return true
		}
	}
	return false
}

// spare returns the capacity of the replica that a scale-down removes: 0 if there is none, or if all have the same. If a smaller one
// has been spare for longer than the dearest, it goes first, and no larger one than that may go.
func (r *round) spare(state *State) float64 {
	dearest := func() float64 {
		if best, _ := r.dearest(); best >= 0 {
			return r.plan.candidates[best].capacity
		}
		return 0
	}
	if r.even {
		return 0
	}
	spare := dearest()
	if state.SafeSince.Set && spare > state.Spare && r.scaler.config.DownStabilization > 0 {
		r.most = state.Spare
		if smaller := dearest(); smaller > 0 {
			return smaller
		}
		r.most = 0
	}
	return spare
}

// canSpare reports whether the rest can take the load of a replica of this variant.
func (r *round) canSpare(s *candidate) bool {
	if r.even {
		return r.a.DownSafe
	}
	if r.a.Free < 2 || r.a.Saturated > 0 || r.a.Missing > 0 {
		return false
	}
	kv, queue := r.without(s)
	return r.scaler.fits(kv, queue)
}

// without returns the average loads without one replica of this variant, with the load spread by capacity:
//
//	after = load/N * C/(C - capacity),  C the capacity of all N replicas
func (r *round) without(s *candidate) (kv, queue float64) {
	if r.even {
		return r.a.AfterKV, r.a.AfterQueue
	}
	rest := r.capacity - s.capacity
	if rest <= 0 {
		return math.Inf(1), math.Inf(1)
	}
	share := float64(r.a.Free-1) / float64(r.a.Free) * (r.capacity / rest)
	return r.a.AfterKV * share, r.a.AfterQueue * share
}

// seconds converts milliseconds.
func seconds(ms int64) float64 { return float64(ms) / 1000 }
