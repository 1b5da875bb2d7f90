package scrape

import (
	"cmp"
	"math"
	"slices"
	"sort"

	dto "github.com/prometheus/client_model/go"

	"github.com/inferscale/inferscale/internal/exact"
)

// A distribution is what histograms counted: since the start of a process as it is read, between two scrapes after
// [distribution.since], over several series after [merge].
type distribution struct {
	// bounds are the finite upper bounds (le), ascending. counts are cumulative, one more than bounds: the last is the
	// bucket without a bound, and so everything.
	bounds []float64
	counts []float64
	sum    float64
	count  float64
}

// readDistribution takes a histogram, or for a Mean also a summary, from a parsed series. What is not needed is not
// looked at: a Mean does not fail for its buckets, nor a Quantile for its sum.
func readDistribution(m *dto.Metric, read Read) (*distribution, *Error) {
	d := &distribution{}
	hasCount, hasSum := false, false
	if s := m.GetSummary(); s != nil {
		d.count, hasCount = float64(s.GetSampleCount()), s.SampleCount != nil
		d.sum, hasSum = s.GetSampleSum(), s.SampleSum != nil
	}
	if h := m.GetHistogram(); h != nil {
		d.count, hasCount = either(h.SampleCount, h.SampleCountFloat)
		d.sum, hasSum = h.GetSampleSum(), h.SampleSum != nil
		if fail := d.readBuckets(h, hasCount); fail != nil && (read == Quantile || !hasCount) {
			return nil, fail
		}
		if !hasCount && len(d.counts) > 0 {
			d.count, hasCount = d.counts[len(d.counts)-1], true
		}
	}
	if read == Quantile {
		return d, nil
	}
	d.bounds, d.counts = nil, nil
	if !hasCount || !hasSum {
		return nil, failf(Buckets, "has no _sum or no _count")
	}
	if fail := checkNumber(d.count); fail != nil {
		return nil, fail
	}
	if fail := checkNumber(d.sum); fail != nil {
		return nil, fail
	}
	return d, nil
}

// either returns the count that is set: expfmt keeps a whole number in one field and any other in another.
func either(whole *uint64, float *float64) (float64, bool) {
	switch {
	case float != nil:
		return *float, true
	case whole != nil:
		return float64(*whole), true
	}
	return 0, false
}

func (d *distribution) readBuckets(h *dto.Histogram, hasCount bool) *Error {
	type bucket struct{ bound, count float64 }
	buckets := make([]bucket, 0, len(h.GetBucket())+1)
	for _, b := range h.GetBucket() {
		n, _ := either(b.CumulativeCount, b.CumulativeCountFloat)
		if fail := checkNumber(n); fail != nil {
			return fail
		}
		// Adding 0 turns -0 into 0.
		buckets = append(buckets, bucket{b.GetUpperBound() + 0, n})
	}
	slices.SortStableFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
	if last := len(buckets) - 1; last < 0 || !math.IsInf(buckets[last].bound, 1) {
		// The bucket without a bound may be left out; the count is the same number.
		if !hasCount {
			return failf(Buckets, "has neither a bucket le=\"+Inf\" nor a _count")
		}
		if fail := checkNumber(d.count); fail != nil {
			return fail
		}
		buckets = append(buckets, bucket{math.Inf(1), d.count})
	}
	if len(buckets) < 2 {
		return failf(Buckets, "has no bucket with a finite bound")
	}
	for i, b := range buckets {
		switch {
		case b.bound < 0:
			return failf(Buckets, "has a bucket le=\"%v\" below zero", b.bound)
		case i > 0 && b.bound == buckets[i-1].bound:
			return failf(Duplicate, "has two buckets le=\"%v\"", b.bound)
		case i > 0 && b.count < buckets[i-1].count:
			return failf(Buckets, "is not cumulative: le=\"%v\" has %v, the bucket below %v", b.bound, b.count, buckets[i-1].count)
		}
		if i < len(buckets)-1 {
			d.bounds = append(d.bounds, b.bound)
		}
		d.counts = append(d.counts, b.count)
	}
	return nil
}

// checkNumber refuses what no gauge, count or sum of ours can be. It is the rule behind NaN pages and -1 sentinels.
func checkNumber(v float64) *Error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return failf(NonFinite, "is %v", v)
	case v < 0:
		return failf(Negative, "is %v", v)
	}
	return nil
}

// since returns what was counted after an earlier reading of the same series. A drop anywhere means that the series
// began again from 0, so that all of d came after. ok is false if the buckets differ, which only a restart explains.
func (d *distribution) since(before *distribution) (increase *distribution, ok bool) {
	if !slices.Equal(d.bounds, before.bounds) {
		return nil, false
	}
	if d.sum < before.sum || d.count < before.count {
		return d, true
	}
	for i := range d.counts {
		if d.counts[i] < before.counts[i] {
			return d, true
		}
	}
	increase = &distribution{
		bounds: d.bounds, counts: make([]float64, len(d.counts)),
		sum: d.sum - before.sum, count: d.count - before.count,
	}
	for i := range d.counts {
		increase.counts[i] = d.counts[i] - before.counts[i]
		// Servers do not render all buckets at one instant, so a difference may dip; a cumulative count cannot.
		if i > 0 {
			increase.counts[i] = max(increase.counts[i], increase.counts[i-1])
		}
	}
	return increase, true
}

// merge adds distributions of equal bounds, bucket by bucket, independent of their order. It is nil if the bounds
// differ or there is nothing to merge.
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
	add := func(of func(*distribution) float64) float64 {
		var s exact.Sum
		for _, d := range all {
			s.Add(of(d))
		}
		return s.Value()
	}
	for i := range merged.counts {
		merged.counts[i] = add(func(d *distribution) float64 { return d.counts[i] })
	}
	merged.sum = add(func(d *distribution) float64 { return d.sum })
	merged.count = add(func(d *distribution) float64 { return d.count })
	return merged
}

// total is the number of observations in the buckets.
func (d *distribution) total() float64 { return d.counts[len(d.counts)-1] }

// at returns the value below which rank observations lie, linear inside a bucket:
//
//	at(rank) = lo + (hi-lo) * (rank-below)/(inside)
//
// with lo, hi the bounds of the first bucket that reaches the rank, below the count below it and inside the count in
// it. The first bucket begins at 0. In the last, unlimited bucket the answer is its lower end. It is 0 for a rank of
// at most 0 and +Inf for one above the total.
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
