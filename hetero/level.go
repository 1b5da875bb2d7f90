package hetero

import (
	"cmp"
	"math"
	"slices"
)

// tie is the relative difference up to which two batch costs are equal. Three replicas at 0.1 cost 0.30000000000000004 and
// one at 0.3 costs 0.3; whether they tie must not depend on the unit of the costs. Writing a cost as a decimal, converting
// its unit and multiplying it by a size each lose at most 1.2e-16, so 1e-14 is well above the arithmetic errors, and below
// the difference of any two products of a size and a cost of eight digits.
const tie = 1e-14

// same reports whether two batch costs, a not above b, are equal.
func same(a, b float64) bool { return b-a <= tie*b }

// A level is a part of the sequence: all batches of all types that cost from low to high. Batches with equal costs are
// always in the same level.
type level struct {
	low, high float64
	places    int64 // before the level
}

// keepLevels computes the levels in which a total is searched: one for each cost of a batch. A sequence with more runs than
// the limit is one level, so that memory is bounded.
//
// Positive floats are in the order of their bits. So the first bits of a run's cost select its bucket. There are about as
// many buckets as runs, and only the runs within a bucket have to be sorted.
func (f *Fleet) keepLevels(limit int64) []level {
	bottom, top, runs := math.Inf(1), 0.0, int64(0)
	for i := range f.kinds {
		if k := &f.kinds[i]; k.runs > 0 {
			bottom, top, runs = min(bottom, k.cost), max(top, k.top), runs+int64(k.runs)+1
		}
	}
	switch {
	case runs == 0:
		return nil
	case runs > limit:
		return []level{{low: bottom, high: top}}
	}
	base, shift := math.Float64bits(bottom), 0
	span := math.Float64bits(top) - base
	for span>>shift >= uint64(runs) {
		shift++
	}
	ends := make([]int32, span>>shift+1)
	for i := range f.kinds {
		for k, n := &f.kinds[i], int32(0); n <= k.runs; n++ {
			if cost, places := f.sizes.run(k, n); places > 0 {
				ends[(math.Float64bits(cost)-base)>>shift]++
			}
		}
	}
	total := int32(0)
	for i, n := range ends {
		ends[i] = total
		total += n
	}
	levels := make([]level, total)
	for i := range f.kinds {
		for k, n := &f.kinds[i], int32(0); n <= k.runs; n++ {
			if cost, places := f.sizes.run(k, n); places > 0 {
				end := &ends[(math.Float64bits(cost)-base)>>shift]
				levels[*end].low, levels[*end].places = cost, int64(places)
				*end++
			}
		}
	}
	start := int32(0)
	for _, end := range ends {
		if end-start > fewLevels {
			slices.SortFunc(levels[start:end], func(a, b level) int { return cmp.Compare(a.low, b.low) })
		}
		start = end
	}
	insertionSort(levels)
	used, before := 0, int64(0)
	for _, l := range levels {
		if used > 0 && same(levels[used-1].high, l.low) {
			levels[used-1].high = l.low
		} else {
			levels[used] = level{l.low, l.low, before}
			used++
		}
		before += l.places
	}
	return levels[:used:used]
}

// fewLevels is the number of levels in a bucket up to which insertionSort is used.
const fewLevels = 12

// insertionSort sorts levels by cost, when each is few places from its own.
func insertionSort(levels []level) {
	for i := 1; i < len(levels); i++ {
		l, place := levels[i], i
		for ; place > 0 && levels[place-1].low > l.low; place-- {
			levels[place] = levels[place-1]
		}
		levels[place] = l
	}
}

// levelOf returns the level of one cost that contains the n-th place of the sequence, counting from 1: the batches of which
// a total gives a part, to types in the order of their names.
func (f *Fleet) levelOf(n int64) level {
	lo, hi := 0, len(f.levels)-1
	for lo < hi {
		if mid := (lo + hi + 1) / 2; f.levels[mid].places < n {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	l := f.levels[lo]
	if same(l.low, l.high) {
		return l
	}
	for l.low < l.high {
		a := math.Float64bits(l.low)
		mid := math.Float64frombits(a + (math.Float64bits(l.high)-a)/2)
		if places, below, above := f.around(mid); places < n {
			l.low = above
		} else {
			l.high = below
		}
	}
	for {
		places, below, _ := f.around(math.Nextafter(l.low, 0))
		if !same(below, l.low) {
			l.places = places
			break
		}
		l.low = below
	}
	l.high, _ = f.upward(l.high)
	return l
}

// upward returns the highest batch cost that is equal to x within steps of tie, and the next one above it.
func (f *Fleet) upward(x float64) (high, next float64) {
	for high = x; ; high = next {
		if _, _, next = f.around(high); !same(high, next) {
			return high, next
		}
	}
}

// around returns how many places of the sequence are in batches that cost at most x, and the nearest batch costs: the
// highest up to x, or 0, and the lowest above x, or math.MaxFloat64, which means none.
func (f *Fleet) around(x float64) (places int64, below, above float64) {
	above = math.MaxFloat64
	for i := range f.kinds {
		k := &f.kinds[i]
		run := f.sizes.upTo(k, x)
		places += int64(f.sizes.places(k, run))
		if run > 0 {
			below = max(below, k.batchCost(f.sizes.size[run-1]))
		}
		if run < k.runs {
			above = min(above, k.batchCost(f.sizes.size[run]))
		}
		switch {
		case k.rest == 0:
		case k.last <= x:
			places += int64(k.rest)
			below = max(below, k.last)
		default:
			above = min(above, k.last)
		}
	}
	return places, below, above
}

// within returns the runs of a type that are in a level, from first to before past, and whether its rest is.
func (l *level) within(s *sizes, k *kind) (first, past int32, rest bool) {
	past = s.upTo(k, l.high)
	for first = past; first > 0 && k.batchCost(s.size[first-1]) >= l.low; {
		first--
	}
	return first, past, l.low <= k.last && k.last <= l.high
}

// place writes over dst the counts of the first n places of the sequence, and returns the cost of the last batch.
func (f *Fleet) place(dst []int32, n int64) (counts []int32, margin float64) {
	dst = append(dst[:0], f.mins...)
	if n == 0 {
		return dst, 0
	}
	l := f.levelOf(n)
	n -= l.places
	for i := range f.kinds {
		k := &f.kinds[i]
		if k.top < l.low {
			dst[k.at] = k.max
			continue
		}
		below := f.sizes.upTo(k, l.high)
		if below > 0 && k.batchCost(f.sizes.size[below-1]) >= l.low || k.last >= l.low && k.last <= l.high {
			n -= f.placeLevel(dst, k, &l, n)
			continue
		}
		dst[k.at] += f.sizes.places(k, below)
		if k.last < l.low {
			dst[k.at] += k.rest
		}
	}
	return dst, l.high
}

// placeLevel adds a type's replicas below a level, and those within it up to the number of places left. It returns how many
// of these it takes.
func (f *Fleet) placeLevel(dst []int32, k *kind, l *level, left int64) int64 {
	first, past, rest := l.within(&f.sizes, k)
	below := f.sizes.places(k, first)
	inside := f.sizes.places(k, past) - below
	switch {
	case rest:
		inside += k.rest
	case k.last < l.low:
		below += k.rest
	}
	inside = int32(min(left, int64(inside)))
	dst[k.at] += below + inside
	return int64(inside)
}
