package saturation

import (
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// up adds the needed replicas to the cheapest variant that may grow.
func (r *round) up() {
	r.scaler.sayShort(r.a, r.plan)
	if r.scaler.config.Step == Deficit {
		if lacking := r.lacking(); r.coming > 0 && !scaling.Exceeds(lacking, r.coming) {
			r.plan.say(Coming, "", lacking, r.coming)
			r.holdAll(-1)
			return
		}
	}
	best, next := r.cheapest(false)
	if best < 0 {
		best, next = r.cheapest(true) // the variants that were set aside come last
	}
	if best >= 0 {
		r.plan.move(best, 1)
	}
	r.open(best, func(i int, d *scaling.Decision) { r.whyNotUp(d, i, best) })
	if best < 0 {
		return
	}
	s, d, name := &r.plan.candidates[best], &r.plan.Targets[best].Decision, r.plan.Targets[best].Variant
	step := int32(1)
	if lacking := r.lacking(); r.scaler.config.Step == Deficit && scaling.Exceeds(lacking, r.coming) {
		step = max(step, scaling.Ceil((lacking-r.coming)/s.capacity))
		d.To(scaling.Plus(s.wish, step), Deficient, "", lacking, r.coming)
	}
	code, other := r.choice(Cheapest, next)
	d.To(scaling.Plus(s.wish, step), code, name, s.price, other)
	d.Clamp(s.bounds)
	r.plan.close(code, name, s.price, other)
}

// lacking returns the capacity that is missing for the triggers to be met with the load spread evenly; at most the present
// capacity:
//
//	C * max(load/N / (threshold - trigger)) - C,  C the capacity of all N replicas
func (r *round) lacking() float64 {
	t, a := &r.scaler.config.Thresholds, r.a
	n := float64(a.Replicas)
	ratio := max(a.LoadKV/n/(t.KVCache-t.KVSpare), a.LoadQueue/n/(t.QueueLength-t.QueueSpare))
	return r.capacity * (min(ratio, 2) - 1)
}

// down removes a replica from the dearest variant that may shrink, if that has been safe for long enough.
func (r *round) down(held int64) {
	best, next := r.dearest()
	if best < 0 {
		r.scaler.sayEnough(r.a, r.plan)
	} else {
		kv, queue := r.without(&r.plan.candidates[best])
		r.scaler.saySpare(kv, queue, r.plan)
		r.plan.move(best, -1)
	}
	r.open(best, func(i int, d *scaling.Decision) { r.whyNotDown(d, i, best) })
	if best < 0 {
		return
	}
	s, d, name := &r.plan.candidates[best], &r.plan.Targets[best].Decision, r.plan.Targets[best].Variant
	code, other := r.choice(Dearest, next)
	d.To(s.current-1, code, name, s.price, other)
	settling := r.scaler.config.DownStabilization
	if needed := window.Millis(settling); held < needed {
		d.To(d.From, Settling, "", seconds(held), settling.Seconds())
		d.NextBy(time.UnixMilli(r.at + needed - held))
		r.plan.move(best, 0)
		r.plan.close(Settling, "", seconds(held), settling.Seconds())
		return
	}
	r.plan.close(code, name, s.price, other)
}

// stay holds because nothing is lacking, and explains why no replica can be removed: once for the model if the reason does
// not depend on the variant, else for each variant.
func (r *round) stay() {
	a, p := r.a, r.plan
	r.scaler.sayEnough(a, p)
	if r.even || a.Saturated > 0 || a.Missing > 0 || a.Free < 2 {
		r.scaler.sayFull(a, p, a.AfterKV, a.AfterQueue)
		r.holdAll(-1)
	} else {
		r.open(-1, func(i int, d *scaling.Decision) { r.whyNotDown(d, i, -1) })
	}
}

// open opens every target. Variants in transition and unknown ones get their own steps; those that were not chosen get the
// reason why not.
func (r *round) open(best int, why func(i int, d *scaling.Decision)) {
	for i := range r.plan.candidates {
		if r.unknown(i) {
			continue
		}
		r.proceed(i)
		if i != best && !r.plan.candidates[i].moving {
			why(i, &r.plan.Targets[i].Decision)
		}
	}
}

// choice returns the code and the second number of the chosen variant's step.
func (r *round) choice(code scaling.Code, next int) (scaling.Code, float64) {
	if next < 0 {
		return Alone, 0
	}
	return code, r.plan.candidates[next].price
}

// cheapest returns the variant to grow and the next one in the order; -1 means none.
func (r *round) cheapest(aside bool) (best, next int) {
	return r.first(false, func(s *candidate) bool { return r.mayGrow(s) && s.stuck == aside })
}

// dearest returns the variant to shrink and the next one in the order; -1 means none.
func (r *round) dearest() (best, next int) { return r.first(true, r.mayShrink) }

// first returns the first two in the order of prices and names, or in the reverse of it, of the variants that may be chosen.
func (r *round) first(reverse bool, may func(s *candidate) bool) (best, next int) {
	best, next = -1, -1
	for i := range r.plan.candidates {
		s := &r.plan.candidates[i]
		switch {
		case !may(s):
		case best < 0 || scaling.Exceeds(r.plan.candidates[best].price, s.price) != reverse:
			best, next = i, best
		case next < 0 || scaling.Exceeds(r.plan.candidates[next].price, s.price) != reverse:
			next = i
		}
	}
	return best, next
}

func (r *round) mayGrow(s *candidate) bool {
	switch {
	case s.kind != known || s.wish >= s.bounds.Max:
		return false
	case r.scaler.config.Step == Deficit:
		return !s.stuck || s.wish == s.current
	default:
		return s.wish == s.current && (s.isPending == 0 || s.stuck)
	}
}

func (r *round) mayShrink(s *candidate) bool {
	return s.kind == known && s.wish == s.current && s.rows <= s.current && s.current > least(s) && !r.tooLarge(s) && r.canSpare(s)
}

// tooLarge reports whether a replica of this variant has not been spare for as long as a smaller one.
func (r *round) tooLarge(s *candidate) bool { return r.most > 0 && s.capacity > r.most }

// least is the count below which a variant never shrinks.
func least(s *candidate) int32 { return max(s.bounds.Min, 1) }

// whyNotUp explains why a variant does not grow.
func (r *round) whyNotUp(d *scaling.Decision, i, best int) {
	p, s := r.plan, &r.plan.candidates[i]
	switch {
	case s.wish >= s.bounds.Max:
		d.To(d.From, AtMax, "", float64(s.current), float64(s.bounds.Max))
	case s.isPending > 0 && !s.stuck && r.scaler.config.Step == One:
		d.To(d.From, Pending, "", float64(s.isPending), 0)
	case s.stuck && !p.candidates[best].stuck: // proceed has added the step
	default:
		d.To(d.From, Dearer, p.Targets[best].Variant, s.price, p.candidates[best].price)
	}
}

// whyNotDown explains why a variant does not shrink.
func (r *round) whyNotDown(d *scaling.Decision, i, best int) {
	p, s := r.plan, &r.plan.candidates[i]
	switch {
	case s.current <= least(s):
		d.To(d.From, AtMin, "", float64(s.current), float64(least(s)))
	case !r.canSpare(s):
		kv, queue := r.without(s)
		code, subject, numbers := r.scaler.full(r.a, kv, queue)
		d.To(d.From, code, subject, numbers[:]...)
	case r.tooLarge(s):
		d.To(d.From, Settling, "", 0, r.scaler.config.DownStabilization.Seconds())
	default:
		d.To(d.From, Cheaper, p.Targets[best].Variant, s.price, p.candidates[best].price)
	}
}
