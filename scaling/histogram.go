package scaling

import (
	"math"
	"time"
)

// A Histogram has the counts of one quantity over a fleet, in buckets, since its reader started: prompt lengths, for example, or
// times to first token. Counts never fall while the reader runs: the difference of two observations is what happened between
// them, and counts that fell mean that the reader was restarted.
//
// Only what the reader received is counted. Pods that did not answer are counted in Failed; what they count meanwhile arrives
// with their next answer. What a pod counted after its last answer is lost when the pod is removed.
type Histogram struct {
	Metric string    `json:"metric"`
	Bounds []float64 `json:"bounds"` // upper ends of the buckets, rising; one more bucket is above the last
	Counts []float64 `json:"counts"` // by bucket, not cumulative over buckets; one more than Bounds
	Sum    float64   `json:"sum"`    // of all counted values
	Failed int32     `json:"failed"` // ready pods whose counts could not be read
	At     time.Time `json:"at"`     // when the counts were taken; the zero time means the time of the decision
}

// Known reports whether the histogram is usable: its bounds rise, it has one count more than bounds, the bounds are finite, and
// the counts and the sum are finite and not negative.
func (h *Histogram) Known() bool {
	if len(h.Counts) != len(h.Bounds)+1 || !(h.Sum >= 0 && h.Sum <= math.MaxFloat64) {
		return false
	}
	last := math.Inf(-1)
	for _, b := range h.Bounds {
		if !(b > last && b <= math.MaxFloat64) {
			return false
		}
		last = b
	}
	for _, n := range h.Counts {
		if !(n >= 0 && n <= math.MaxFloat64) {
			return false
		}
	}
	return true
}

// Total returns how many values were counted.
func (h *Histogram) Total() float64 {
	total := 0.0
	for _, n := range h.Counts {
		total += n
	}
	return total
}

// Over returns how many of the counted values are above a bound: at least low and at most high, which differ if the bound is
// within a bucket.
func (h *Histogram) Over(bound float64) (low, high float64) {
	for i, n := range h.Counts {
		switch {
		case i > 0 && h.Bounds[i-1] >= bound:
			low += n
			high += n
		case i == len(h.Bounds) || h.Bounds[i] > bound:
			high += n
		}
	}
	return low, high
}

// Histogram returns the histogram of a metric, or nil if there is none or more than one.
func (o *Observation) Histogram(metric string) *Histogram {
	var found *Histogram
	for i := range o.Histograms {
		if o.Histograms[i].Metric != metric {
			continue
		}
		if found != nil {
			return nil
		}
		found = &o.Histograms[i]
	}
	return found
}
