package hetero

import "github.com/inferscale/inferscale/scaling"

// Capability returns what a placement can serve: the sum of weight times count. Missing counts are 0, and those beyond
// the types are not looked at. The sum is taken in the order of the names.
func (f *Fleet) Capability(counts []int32) float64 {
	sum := 0.0
	for i := range f.kinds {
		k := &f.kinds[i]
		sum += float64(k.weight * float64(at(counts, k.at)))
	}
	return sum
}

// AllocateFor returns the placement of the least total whose capability covers a demand, in the unit of the weights:
//
//	K      = least K with Capability(Allocate(K)) >= demand      up to scaling.Noise
//	counts = Allocate(K)
//
// So a demand of 0 or less gives the minima, and one that the fleet cannot cover gives the maxima: whether it is
// covered, Capability of the answer says. NaN has no upper limit, as in scaling.Ceil, and gives the maxima. With
// weights of 1 it is Allocate(ceil(demand)).
//
// The answer is written over dst, which grows if it must; with room for all types nothing is allocated. The time is
// that of Allocate times the logarithm of the total.
func (f *Fleet) AllocateFor(dst []int32, demand float64) []int32 {
	least, most := f.Totals()
	for least < most {
		mid := least + (most-least)/2
		dst = f.Allocate(dst, mid)
		if f.covers(dst, demand) {
			most = mid
		} else {
			least = mid + 1
		}
	}
	return f.Allocate(dst, most)
}

// covers reports whether a placement serves a demand. Capability rises with every count, rounding or not, so halving
// finds the least total.
func (f *Fleet) covers(counts []int32, demand float64) bool {
	return demand <= 0 || demand > 0 && !scaling.Exceeds(demand, f.Capability(counts))
}
