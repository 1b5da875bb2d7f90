package hetero

import (
	"cmp"
	"slices"
)

// tie is the relative difference up to which two batch costs count as the same. Three replicas at 0.1 cost
// 0.30000000000000004 and one at 0.3 costs 0.3; that they tie must not depend on the unit of the costs. Writing a cost
// down, converting its unit and multiplying it by a size each lose at most 1.2e-16, so 1e-14 is well above what
// arithmetic loses, and below the difference of any two products of a size and a cost of eight digits.
const tie = 1e-14

// same reports whether two batch costs, a not above b, count as the same.
func same(a, b float64) bool { return b-a <= tie*b }

// batchCost returns the cost of one batch of a run.
func (f *Fleet) batchCost(r *run) float64 { return float64(r.size) * f.config.Types[r.at].Cost }

// arrange returns the sequence: the runs of all types in the order of batch cost, type name, batch number.
//
// The runs of one type are in order already. So the lists of neighbours are merged until one list is left, which is
// stable: of equal costs the left one, whose name comes first, stays first.
func (f *Fleet) arrange(total int) []run {
	from, to := make([]run, 0, total), make([]run, total)
	ends := make([]int, 0, len(f.kinds))
	for i := range f.kinds {
		k := &f.kinds[i]
		n := f.sizes.count(k)
		if n == 0 {
			continue
		}
		for r := range n {
			size, places := f.sizes.run(k, r)
			from = append(from, run{at: k.at, places: places, size: size})
		}
		ends = append(ends, len(from))
	}
	for len(ends) > 1 {
		start, lists := 0, 0
		for i := 0; i < len(ends); i += 2 {
			middle, end := ends[i], ends[min(i+1, len(ends)-1)]
			f.merge(to[start:end], from[start:middle], from[middle:end])
			start = end
			ends[lists] = end
			lists++
		}
		ends = ends[:lists]
		from, to = to, from
	}
	f.settleTies(from)
	return from
}

// merge merges two lists in order of cost; of equal costs the left list's comes first.
func (f *Fleet) merge(to, left, right []run) {
	if len(left) == 0 || len(right) == 0 {
		copy(to[copy(to, left):], right)
		return
	}
	l, r := 0, 0
	a, b := f.batchCost(&left[0]), f.batchCost(&right[0])
	for n := range to {
		if b < a {
			to[n] = right[r]
			if r++; r == len(right) {
				copy(to[n+1:], left[l:])
				return
			}
			b = f.batchCost(&right[r])
			continue
		}
		to[n] = left[l]
		if l++; l == len(left) {
			copy(to[n+1:], right[r:])
			return
		}
		a = f.batchCost(&left[l])
	}
}

// settleTies puts runs whose costs are the same but for the noise of arithmetic into the order of their types. Those
// whose costs are equal are in that order already.
func (f *Fleet) settleTies(runs []run) {
	var ranks []int32
	for start := 0; start < len(runs); {
		end, settled := start+1, true
		for last := f.batchCost(&runs[start]); end < len(runs); end++ {
			next := f.batchCost(&runs[end])
			if !same(last, next) {
				break
			}
			settled = settled && last == next
			last = next
		}
		if !settled {
			if ranks == nil {
				ranks = f.ranks()
			}
			slices.SortFunc(runs[start:end], func(a, b run) int {
				return cmp.Or(cmp.Compare(ranks[a.at], ranks[b.at]), cmp.Compare(a.size, b.size))
			})
		}
		start = end
	}
}

// ranks returns the place in kinds of every type.
func (f *Fleet) ranks() []int32 {
	ranks := make([]int32, len(f.kinds))
	for i := range f.kinds {
		ranks[f.kinds[i].at] = int32(i)
	}
	return ranks
}

// rankCosts returns the places in kinds by cost of a replica, ties by name.
func (f *Fleet) rankCosts() []int32 {
	order := make([]int32, len(f.kinds))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(f.kinds[a].cost, f.kinds[b].cost) })
	return order
}
