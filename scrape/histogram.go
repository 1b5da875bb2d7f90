package scrape

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/inferscale/inferscale/internal/exact"
	"github.com/inferscale/inferscale/scrape/internal/page"
)

// maxBuckets is the most buckets of a histogram. Real ones have tens.
const maxBuckets = 256

// A distribution is what histograms have counted between two scrapes, over all series of a page.
type distribution struct {
	// bounds are the finite upper bounds (le), ascending. counts are cumulative, one more than bounds: the last one, of the
	// bucket without a bound, is the total.
	bounds []float64
	counts []float64
	sum    float64
	count  float64
}

// row appends to into what a series has counted: the sum, the count and, for a Quantile, the cumulative counts, with their
// bounds in w.buckets. It does not read what is not needed: a Mean does not fail because of its buckets, nor a Quantile
// because of its sum, which is then -1.
func (w *worker) row(into []float64, x *page.Series, read Read) ([]float64, *Error) {
	if read == Mean {
		count := x.Count
		if !x.HasCount {
			if fail := w.sorted(x); fail != nil {
				return into, fail
			}
			count = w.buckets[len(w.buckets)-1].Count
		}
		if !x.HasSum {
			return into, failf(Buckets, "has no _sum or no _count")
		}
		if fail := checkCount(count, mostCount); fail != nil {
			return into, fail
		}
		if fail := checkCount(x.Sum, mostSum); fail != nil {
			return into, fail
		}
		return append(into, x.Sum, count), nil
	}
	if fail := w.sorted(x); fail != nil {
		return into, fail
	}
	for _, v := range [...]struct {
		value float64
		has   bool
		most  float64
	}{{x.Sum, x.HasSum, mostSum}, {x.Count, x.HasCount, mostCount}} {
		if !v.has || checkCount(v.value, v.most) != nil {
			v.value = -1
		}
		into = append(into, v.value)
	}
	for _, b := range w.buckets {
		into = append(into, b.Count)
	}
	return into, nil
}

// sorted sorts the buckets of a series into w.buckets, ascending, the last one without a bound.
func (w *worker) sorted(x *page.Series) *Error {
	w.buckets = w.page.Buckets(x, w.buckets[:0])
	for i := range w.buckets {
		b := &w.buckets[i]
		if fail := checkCount(b.Count, mostCount); fail != nil {
			return fail
		}
		b.Bound += 0 // -0 becomes 0
	}
	slices.SortStableFunc(w.buckets, func(a, b page.Bucket) int { return cmp.Compare(a.Bound, b.Bound) })
	if last := len(w.buckets) - 1; last < 0 || !math.IsInf(w.buckets[last].Bound, 1) {
		// The bucket without a bound may be missing; the count is the same number.
		if !x.HasCount {
			return failf(Buckets, "has neither a bucket le=\"+Inf\" nor a _count")
		}
		if fail := checkCount(x.Count, mostCount); fail != nil {
			return fail
		}
		w.buckets = append(w.buckets, page.Bucket{Bound: math.Inf(1), Count: x.Count})
	}
	switch n := len(w.buckets); {
	case n < 2:
		return failf(Buckets, "has no bucket with a finite bound")
	case n > maxBuckets:
		return failf(TooMany, "has %d buckets, more than %d", n, maxBuckets)
	}
	for i, b := range w.buckets {
		switch {
		case b.Bound < 0:
			return failf(Buckets, "has a bucket le=\"%v\" below zero", b.Bound)
		case i > 0 && b.Bound == w.buckets[i-1].Bound:
			return failf(Duplicate, "has two buckets le=\"%v\"", b.Bound)
		case i > 0 && b.Count < w.buckets[i-1].Count:
			return failf(Buckets, "is not cumulative: le=\"%v\" has %v, the bucket below %v", b.Bound, b.Count, w.buckets[i-1].Count)
		}
	}
	return nil
}

// checkNumber refuses numbers that no gauge, count or sum here can be, such as NaN and the sentinel -1.
func checkNumber(v float64) *Error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return failf(NonFinite, "is %v", v)
	case v < 0:
		return failf(Negative, "is %v", v)
	}
	return nil
}

const (
	mostCount = 1 << 53 // to which float64 has all whole numbers
	mostSum   = 1e21
)

// checkCount refuses, too, what no server counts: added to the counts of others, it would swallow them by rounding.
func checkCount(v, most float64) *Error {
	if v > most && !math.IsInf(v, 0) {
		return failf(NonFinite, "is %v, more than %v", v, most)
	}
	return checkNumber(v)
}

// merge adds the buckets of distributions with equal bounds, independent of their order. It returns nil if the bounds differ
// or there is nothing to merge.
func merge(all []*distribution) *distribution {
	if len(all) == 0 {
		return nil
	}
	merged := &distribution{bounds: all[0].bounds, counts: make([]float64, len(all[0].counts))}
	for _, d := range all {
		if !slices.Equal(d.bounds, merged.bounds) {
			return nil
		}
	}
	for i := range merged.counts {
		var s exact.Sum
		for _, d := range all {
			s.Add(d.counts[i])
		}
		merged.counts[i] = s.Value()
	}
	return merged
}

// total is the number of observations in the buckets.
func (d *distribution) total() float64 { return d.counts[len(d.counts)-1] }

// at returns the value below which rank observations lie, linear inside a bucket:
//
//	at(rank) = lo + (hi-lo) * (rank-below)/(inside)
//
// with lo, hi the bounds of the first bucket that reaches the rank, below the count below it and inside the count in it. The
// first bucket begins at 0. In the last bucket, which is unlimited, at returns its lower end. It returns 0 for a rank of at
// most 0 and +Inf for one above the total.
func (d *distribution) at(rank float64) float64 {
	switch {
	case rank <= 0:
		return 0
	case rank > d.total():
		return math.Inf(1)
	}
	i := sort.SearchFloat64s(d.counts, rank)
	if i >= len(d.bounds) {
		return d.bounds[len(d.bounds)-1]
	}
	lo, below := 0.0, 0.0
	if i > 0 {
		lo, below = d.bounds[i-1], d.counts[i-1]
	}
	return lo + (d.bounds[i]-lo)*((rank-below)/(d.counts[i]-below))
}
