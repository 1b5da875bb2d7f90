package hetero

import (
	"cmp"
	"math"
	"slices"
)

// Unlimited is the number of exchanges that means no limit.
const Unlimited = math.MaxInt32

// AllocateSticky returns a placement of a total near the current one. An exchange is a replica that stops in one type
// while another starts in another type:
//
//	target    = Allocate(total)                    current is clamped to every type's bounds first
//	exchanges = min(starts, stops)                 between current and target
//	answer    = target, or as far towards it as the given number of exchanges allows
//
// So a growing total stops replicas only in exchanges, and a shrinking total starts replicas only in exchanges. The cheapest
// types start first and the most expensive stop first, ties by name. A constant total reaches its target within
// ceil(exchanges/limit) calls. Unlimited exchanges return the target at once, and 0 never exchanges; a negative number
// counts as 0.
//
// Allocate ignores where the replicas run. With types a (cost 10, 0..20) and b (cost 20, 0..20) at rate 2, it changes a
// fleet of 18 and 12 with a constant total to 20 and 10: two stops and two cold starts that the load did not ask for.
// AllocateSticky with 0 exchanges leaves the fleet as it is; with 1 it takes two calls.
//
// The result is written over dst, which grows if needed and must not overlap current; with room for all types nothing is
// allocated.
func (f *Fleet) AllocateSticky(dst, current []int32, total int64, exchanges int32) []int32 {
	dst = f.Allocate(dst, total)
	f.stick(dst, current, exchanges)
	return dst
}

// stick undoes the exchanges of a placement beyond the limit, and returns how many there were.
func (f *Fleet) stick(dst, current []int32, exchanges int32) (wanted int64) {
	var starts, stops int64
	for i := range f.kinds {
		k := &f.kinds[i]
		d := int64(dst[k.at]) - int64(k.clamp(at(current, k.at)))
		starts += max(d, 0)
		stops -= min(d, 0)
	}
	wanted = min(starts, stops)
	back := wanted - int64(max(0, exchanges))
	if back <= 0 {
		return wanted
	}
	// The most expensive start, and the cheapest stop.
	unstart, unstop := back, back
	for _, n := range slices.Backward(f.byCost) {
		k := &f.kinds[n]
		d := min(max(int64(dst[k.at])-int64(k.clamp(at(current, k.at))), 0), unstart)
		dst[k.at] -= int32(d)
		unstart -= d
	}
	for _, n := range f.byCost {
		k := &f.kinds[n]
		d := min(max(int64(k.clamp(at(current, k.at)))-int64(dst[k.at]), 0), unstop)
		dst[k.at] += int32(d)
		unstop -= d
	}
	return wanted
}

// clamp returns the count within the type's bounds that is nearest to n.
func (k *kind) clamp(n int32) int32 { return max(k.min, min(n, k.max)) }

// rankCosts returns the indices in kinds by cost of a replica, ties by name.
func (f *Fleet) rankCosts() []int32 {
	order := make([]int32, len(f.kinds))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(f.kinds[a].cost, f.kinds[b].cost) })
	return order
}
