package scaling

import (
	"math"

	"github.com/inferscale/inferscale/internal/exact"
)

// FromPods returns the reading of a metric of which every pod has a value of its own, for programs with a collector of
// their own; package scrape does the same for pods that it asks itself.
//
// values has one number for each pod that gave one, in any order; notReady pods cannot have one yet, and failed ones
// should have and did not. A value that is NaN, infinite or negative is no value, and its pod counts as failed. With
// n good values and m pods without one
//
//	Lower = sum of the values / (n + m)
//	Upper = (sum of the values + fill * m) / (n + m)
//
// The sum is exact before it is rounded once, so that the order of the pods changes nothing. The fill is what a pod may
// have that nothing is known of, commonly the threshold for scaling up. A fill of 0 or +Inf is no limit: Upper is +Inf
// where a pod is missing, and nothing is taken away. That a pod without a value is idle cannot be said.
//
// The reading is not [Reading.Known] without a good value, with a negative count, with a fill that is NaN or negative,
// and if the sum overflows. It is as of the time of the decision; set At if the values are older.
func FromPods(metric string, values []float64, notReady, failed int32, fill float64) Reading {
	r := Reading{Metric: metric, NotReady: notReady, Failed: failed}
	var sum exact.Sum
	good := 0
	for _, v := range values {
		if v >= 0 && !math.IsInf(v, 1) {
			sum.Add(v)
			good++
		}
	}
	r.Failed = Saturate(float64(failed) + float64(len(values)-good))
	total := sum.Value()
	if good == 0 || notReady < 0 || failed < 0 || !(fill >= 0) || math.IsInf(total, 1) {
		return r
	}
	if fill == 0 {
		fill = math.Inf(1)
	}
	r.Values = Saturate(float64(good))
	mean := total / float64(good)
	r.Lower, r.Upper = mean, mean
	if lost := float64(notReady) + float64(len(values)-good) + float64(failed); lost > 0 {
		r.Lower = min(mean, total/(float64(good)+lost))
		r.Upper = (total + fill*lost) / (float64(good) + lost)
		if mean <= fill {
			// Rounding must not push the end of the interval past a value inside of it.
			r.Upper = max(r.Upper, mean)
		}
	}
	return r
}
