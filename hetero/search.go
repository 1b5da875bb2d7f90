package hetero

import (
	"math"
)

// An expansion rate just above 1 cuts a million replicas into a thousand runs, and a hundred thousand types into a
// hundred million: too many to keep. But where a total ends can be found without the sequence. What a type has up to a
// batch cost x is known from the table of sizes, so the cost of the last batch that a total reaches is found by
// halving the interval that it is in, at a cost of types * log(runs of one type) a step and at most 64 steps. The
// batches that tie with it are then given out in the order of the types.

// upTo returns how many replicas a type has in batches that cost at most x.
func (f *Fleet) upTo(k *kind, x float64) int64 {
	places := min(f.sizes.before(int(f.sizes.upTo(k.runs, k.cost, x))), k.whole)
	if k.rest > 0 && k.batchCost(k.rest) <= x {
		places += k.rest
	}
	return int64(places)
}

// allUpTo returns how many places of the sequence have a batch cost of at most x.
func (f *Fleet) allUpTo(x float64) (places int64) {
	for i := range f.kinds {
		places += f.upTo(&f.kinds[i], x)
	}
	return places
}

// threshold returns the lowest batch cost up to which there are that many places: at least one, at most all.
func (f *Fleet) threshold(places int64) float64 {
	// Positive floats are in the order of their bits, so halving the bits ends on the exact cost.
	lo, hi := uint64(0), math.Float64bits(MaxCost*MaxReplicas)
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		if f.allUpTo(math.Float64frombits(mid)) < places {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Float64frombits(hi)
}

// tied returns the lowest and the highest batch cost that are the same as x, step by step.
func (f *Fleet) tied(x float64) (lo, hi float64) {
	lo, hi = x, x
	for {
		next := 0.0
		for i := range f.kinds {
			next = max(next, f.nextBelow(&f.kinds[i], lo))
		}
		if next == 0 || !same(next, lo) {
			break
		}
		lo = next
	}
	for {
		next := math.Inf(1)
		for i := range f.kinds {
			next = min(next, f.nextAbove(&f.kinds[i], hi))
		}
		if math.IsInf(next, 1) || !same(hi, next) {
			break
		}
		hi = next
	}
	return lo, hi
}

// nextBelow returns the highest batch cost of a type below x, or 0.
func (f *Fleet) nextBelow(k *kind, x float64) float64 {
	cost := 0.0
	if n := f.sizes.upTo(k.runs, k.cost, math.Nextafter(x, 0)); n > 0 {
		cost = k.batchCost(f.sizes.size[n-1])
	}
	if rest := k.batchCost(k.rest); rest < x {
		cost = max(cost, rest)
	}
	return cost
}

// nextAbove returns the lowest batch cost of a type above x, or +Inf.
func (f *Fleet) nextAbove(k *kind, x float64) float64 {
	cost := math.Inf(1)
	if n := f.sizes.upTo(k.runs, k.cost, x); n < k.runs {
		cost = k.batchCost(f.sizes.size[n])
	}
	if rest := k.batchCost(k.rest); rest > x {
		cost = min(cost, rest)
	}
	return cost
}

// search adds to dst what the first places of the sequence give, without the sequence.
func (f *Fleet) search(dst []int32, left int64) {
	if left == 0 {
		return
	}
	lo, hi := f.tied(f.threshold(left))
	below := math.Nextafter(lo, 0)
	for i := range f.kinds {
		k := &f.kinds[i]
		n := f.upTo(k, below)
		dst[k.at] += int32(n)
		left -= n
	}
	for i := range f.kinds {
		k := &f.kinds[i]
		n := min(left, f.upTo(k, hi)-f.upTo(k, below))
		dst[k.at] += int32(n)
		left -= n
	}
}
