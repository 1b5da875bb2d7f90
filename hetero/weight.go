package hetero

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

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
	dst = append(dst[:0], f.mins...)
	low, high := f.Capability(dst), math.Inf(1) // of least, and of most once it is known
	for halve := true; least < most; halve = !halve {
		// Every other step goes where the demand is met if what is served rises evenly. That takes half the steps.
		mid := least + (most-least)/2
		if part := (demand - low) / (high - low); !halve && part > 0 && part < 1 {
			mid = least + int64(part*float64(most-least))
		}
		dst = f.Allocate(dst, mid)
		if served := f.Capability(dst); covers(served, demand) {
			most, high = mid, served
		} else {
			least, low = mid+1, served
		}
	}
	return f.Allocate(dst, most)
}

// covers reports whether what a placement serves is enough for a demand. It rises with every count, rounding or not, so
// narrowing finds the least total.
func covers(served, demand float64) bool {
	return demand <= 0 || demand > 0 && !scaling.Exceeds(demand, served)
}
