package hetero

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// Capability returns what a placement can serve: the sum of weight times count. Missing counts are 0, and further ones are
// ignored. The sum is taken in the order of the names.
func (f *Fleet) Capability(counts []int32) float64 {
	sum := 0.0
	for i := range f.kinds {
		k := &f.kinds[i]
		sum += float64(k.weight * float64(at(counts, k.at)))
	}
	return sum
}

// AllocateFor returns the placement of the lowest total whose capability covers a demand, in the unit of the weights:
//
//	K      = least K with Capability(Allocate(K)) >= demand      up to scaling.Noise
//	counts = Allocate(K)
//
// So a demand of 0 or less gives the minima, and one that the fleet cannot cover gives the maxima; Capability of the result
// shows whether it is covered. NaN gives the maxima, as a demand without an upper limit does in scaling.Ceil. With weights
// of 1 the result is Allocate(ceil(demand)).
//
// The result is written over dst, which grows if needed; with room for all types nothing is allocated. The time is that of
// Allocate times the logarithm of the total.
func (f *Fleet) AllocateFor(dst []int32, demand float64) []int32 {
	least, most := f.Totals()
	dst = append(dst[:0], f.mins...)
	low, high := f.Capability(dst), math.Inf(1) // at least, and at most once that is known
	for halve := true; least < most; halve = !halve {
		// Every other step interpolates the total at which the demand is met. That halves the number of steps.
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

// covers reports whether a placement that serves this much is enough for a demand. It is monotone in every count even with
// rounding, so bisection finds the lowest total.
func covers(served, demand float64) bool {
	return demand <= 0 || demand > 0 && !scaling.Exceeds(demand, served)
}
