package saturation

import "github.com/inferscale/inferscale/scaling"

// decideLiterally decides by llm-d's rules as its system runs them:
//
//   - no replica reports: every target is the present count;
//   - a variant with a state and no replica that reports is left out: it holds, and does not block others;
//   - a variant with replicas and no state counts as one with 0 replicas, so it is in transition;
//   - desired 0 means unset;
//   - a transition freezes the model, even outside the bounds;
//   - up: the cheapest variant without pending replicas; down: the dearest above 1, pending or not;
//   - the bounds apply last, and what they take from a variant goes to no other: first the lower bound, then, judged by the
//     count before it, the upper bound.
func (s *Scaler) decideLiterally(a *Analysis, variants []Variant, p *Plan) {
	p.collect(a, variants, true)
	switch blocker := p.literalBlocker(variants); {
	case a.Replicas == a.Missing: // only a Single without a sample has missing replicas here
		p.say(NoData, "", float64(a.Replicas), float64(a.Missing))
		for i := range p.candidates {
			p.open(i).Verdict = scaling.Unknown
		}
	case blocker >= 0:
		for i := range p.candidates {
			p.freeze(i, blocker)
		}
		p.close(Frozen, p.Targets[blocker].Variant)
	default:
		s.moveLiterally(a, variants, p)
	}
}

// literalBlocker finds the variants in transition and returns the first, or -1.
func (p *Plan) literalBlocker(variants []Variant) int {
	blocker := -1
	for i := range p.candidates {
		s := &p.candidates[i]
		s.wish = s.current
		if s.rows == 0 {
			continue
		}
		if s.kind == known {
			if d := variants[s.place].Desired; d.Set && d.N != 0 {
				s.wish = d.N
			}
		}
		s.moving = s.wish != s.current || s.rows != s.current
		if s.moving && blocker < 0 {
			blocker = i
		}
	}
	return blocker
}

// freeze holds a variant at its desired count.
func (p *Plan) freeze(i, blocker int) {
	s, name := &p.candidates[i], p.Targets[i].Variant
	d := p.open(i)
	switch {
	case s.rows == 0:
		d.To(d.From, LeftOut, name, float64(s.current), float64(s.isPending))
	case s.kind == noState:
		d.To(d.From, NoState, name, float64(s.rows), 0)
	case s.wish > s.current:
		d.To(s.wish, Growing, name, float64(s.wish), float64(s.current))
	case s.wish < s.current:
		d.To(s.wish, Shrinking, name, float64(s.wish), float64(s.current))
	case s.rows < s.current:
		d.To(d.From, Starting, name, float64(s.rows), float64(s.current))
	case s.rows > s.current:
		d.To(d.From, Stopping, name, float64(s.rows), float64(s.current))
	default:
		d.To(d.From, Frozen, p.Targets[blocker].Variant)
	}
}

// moveLiterally lets the cheapest grow or the dearest shrink.
func (s *Scaler) moveLiterally(a *Analysis, variants []Variant, p *Plan) {
	up, down := a.ScaleUp, !a.ScaleUp && a.DownSafe
	switch {
	case up:
		s.sayShort(a, p)
	case down:
		s.saySpare(a.AfterKV, a.AfterQueue, p)
	default:
		s.sayEnough(a, p)
		s.sayFull(a, p, a.AfterKV, a.AfterQueue)
	}
	best := -1
	for i := range p.candidates {
		t := &p.candidates[i]
		switch {
		case t.rows == 0:
		case up && t.isPending == 0 && (best < 0 || t.price < p.candidates[best].price),
			down && t.current > 1 && (best < 0 || t.price >= p.candidates[best].price):
			best = i
		}
	}
	switch {
	case best >= 0 && up:
		p.move(best, 1)
	case best >= 0:
		p.move(best, -1)
	}
	for i := range p.candidates {
		t, d := &p.candidates[i], p.open(i)
		switch {
		case t.rows == 0:
			d.To(d.From, LeftOut, p.Targets[i].Variant, float64(t.current), float64(t.isPending))
			continue
		case i == best:
			d.To(d.Replicas, Alone, p.Targets[i].Variant, t.price)
		case up && t.isPending > 0:
			d.To(d.From, Pending, "", float64(t.isPending), 0)
		case up && best >= 0:
			d.To(d.From, Dearer, p.Targets[best].Variant, t.price, p.candidates[best].price)
		case down && t.current <= 1:
			d.To(d.From, AtMin, "", float64(t.current), 1)
		case down && best >= 0:
			d.To(d.From, Cheaper, p.Targets[best].Variant, t.price, p.candidates[best].price)
		}
		clampLiterally(d, &variants[t.place])
	}
	if best >= 0 {
		p.close(Alone, p.Targets[best].Variant, p.candidates[best].price)
	}
}

// clampLiterally applies the lower bound, and then the upper one to the count before it: if the bounds contradict each
// other, the last one that is broken wins.
func clampLiterally(d *scaling.Decision, v *Variant) {
	n := d.Replicas
	if n < v.Min {
		d.To(v.Min, scaling.BelowMin, "", float64(n), float64(v.Min))
	}
	if v.Max > 0 && n > v.Max {
		d.To(v.Max, scaling.AboveMax, "", float64(n), float64(v.Max))
	}
}
