package hetero

import (
	"cmp"
	"math"
	"slices"
)

// Unlimited is the number of exchanges that is no limit.
const Unlimited = math.MaxInt32

// AllocateSticky returns a placement of a total near the current one. An exchange is a replica that stops in one type
// while another starts in another type:
//
//	target    = Allocate(total)                    current is clamped to every type's bounds first
//	exchanges = min(starts, stops)                 between current and target
//	answer    = what is nearer to target by at most the given number of exchanges
//
// So a growing total stops nothing and a shrinking one starts nothing, but for as many exchanges. The cheapest types
// start first and the dearest stop first, ties by name. A total that stays reaches its target within
// ceil(exchanges/limit) calls. Unlimited exchanges answer the target at once, and 0 never exchanges; less counts as 0.
//
// Allocate does not look at where the replicas run. With types a (cost 10, 0..20) and b (cost 20, 0..20) at rate 2, a
// fleet of 18 and 12 that neither grows nor shrinks is rewritten to 20 and 10: two stops and two cold starts for
// nothing that the load asked for. AllocateSticky with 0 exchanges leaves it as it is, with 1 it takes two calls.
//
// The answer is written over dst, which grows if it must and must not overlap current; with room for all types nothing
// is allocated.
func (f *Fleet) AllocateSticky(dst, current []int32, total int64, exchanges int32) []int32 {
	dst = f.Allocate(dst, total)
	f.stick(dst, current, exchanges)
	return dst
}

// stick takes back the exchanges of a placement beyond the limit, and returns how many there were.
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
	// The dearest starts, and the cheapest stops.
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

// rankCosts returns the places in kinds by cost of a replica, ties by name.
func (f *Fleet) rankCosts() []int32 {
	order := make([]int32, len(f.kinds))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(f.kinds[a].cost, f.kinds[b].cost) })
	return order
}
