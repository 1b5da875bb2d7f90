package scaling

import (
	"math"
	"time"
)

// A Histogram is what was counted of one quantity over a fleet, in buckets, since its reader began: how long prompts
// are, how long first tokens take. Counts never fall while one reader reads; what happened between two observations is
// their difference, and counts that fell say that the reader began anew.
//
// It counts what was seen. Pods that did not answer are counted in Failed, and what they have counted meanwhile comes
// with their next answer; what a pod had counted when it went away without another answer is lost.
type Histogram struct {
	Metric string    `json:"metric"`
	Bounds []float64 `json:"bounds"` // upper ends of the buckets, rising; one bucket more is above the last
	Counts []float64 `json:"counts"` // by bucket, not cumulative over buckets; one more than Bounds
	Sum    float64   `json:"sum"`    // of all that was counted
	Failed int32     `json:"failed"` // ready pods whose counts could not be had
	At     time.Time `json:"at"`     // when the counts were taken; the zero time means the time of the decision
}

// Known reports whether the histogram can be counted on: rising bounds, one count for each bucket and one above, and
// numbers that are finite and not negative.
func (h *Histogram) Known() bool {
	if len(h.Counts) != len(h.Bounds)+1 || !(h.Sum >= 0) || math.IsInf(h.Sum, 1) {
		return false
	}
	for i, b := range h.Bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= h.Bounds[i-1] {
			return false
		}
	}
	for _, n := range h.Counts {
		if !(n >= 0) || math.IsInf(n, 1) {
			return false
		}
	}
	return true
}

// Total returns how many were counted.
func (h *Histogram) Total() float64 {
	total := 0.0
	for _, n := range h.Counts {
		total += n
	}
	return total
}

// Over returns how many were counted above a bound: at least low, and at most high where the bound is within a bucket.
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

// Histogram returns the histogram of a metric, or nil where there is none, or several that contradict each other.
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
