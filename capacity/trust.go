package capacity

import "math"

// trust returns how far the past is trusted to show what comes, from 0 to 1. It is the product of
//
//   - min(1, length of the past / 30 min);
//   - 1 - missed/(allowed/2), for the requests that missed the SLO lately and those that may;
//   - 1 - change/0.3, for the natural logarithm of the change of the mean prompt or answer, from the whole past to its last 10 min;
//   - 1 - start/10 min: within a long start more can come that the past does not show;
//
// each at least 0. With full trust a replay may find 0.95 of Fleet instead of 0.85, and the mean work is given 1.0 of it instead of 0.9.
func (p *Past) trust(t *Tuning, allowed float64) float64 {
	if t.Served <= 0 {
		return 0
	}
	age := p.Samples[len(p.Samples)-1].At - p.Samples[0].At
	return min(1, age/trustedAge) *
		max(0, 1-t.Missed/(trustedMisses*allowed*t.Served)) *
		max(0, 1-p.change()/trustedChange) *
		max(0, 1-p.Start/trustedStart)
}

// change returns by how much the logarithm of the mean prompt or answer of the last ten minutes differs from that of the whole past:
// the larger of the two. It is infinite where one of the means is not known, or is no length at all.
func (p *Past) change() float64 {
	last := len(p.Samples) - 1
	i := last
	for i > 0 && p.Samples[i].At > p.Samples[last].At-changeSpan {
		i--
	}
	a, m, b := &p.Samples[0], &p.Samples[i], &p.Samples[last]
	of := func(all, late float64) float64 {
		change := math.Abs(math.Log(late) - math.Log(all))
		if math.IsNaN(change) {
			return math.Inf(1)
		}
		return change
	}
	return max(of(lately(a.Prefilled, b.Prefilled, a.Firsts, b.Firsts), lately(m.Prefilled, b.Prefilled, m.Firsts, b.Firsts)),
		of(lately(a.Generated, b.Generated, a.Finished, b.Finished), lately(m.Generated, b.Generated, m.Finished, b.Finished)))
}

// findable is the highest capacity that a replay may find.
func (t *trial) findable() float64 { return t.Fleet * (findable + trusted*t.Trust) }

// seen is the capacity that the mean work is given at most: the rest of Fleet is for what the past did not show.
func (t *trial) seen() float64 { return t.Fleet * (seen + trusted*t.Trust) }
