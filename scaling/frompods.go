package scaling

import (
	"math"

	"github.com/inferscale/inferscale/internal/exact"
)

// FromPods returns the reading of a metric of which every pod has a value of its own, for programs with a collector of
// their own; package scrape does the same for pods that it asks itself.
//
// values has one number for each pod that gave one, in any order; missing counts the others. A value that is NaN,
// infinite or negative is no value, and its pod counts as failed. With n good values and m pods without one, of which
// stuck ones never served
//
//	Lower = sum of the values / (n + m)
//	Upper = (sum of the values + fill * (m - stuck)) / (n + m)
//
// The sum is exact before it is rounded once, so that the order of the pods changes nothing. The fill is what a pod may
// have that nothing is known of, commonly the threshold for scaling up. A fill of 0 or +Inf is no limit: Upper is +Inf
// where a pod is missing that is not stuck, and nothing is taken away. Only of a pod that was never ready can it be said
// that it is idle.
//
// The reading is not [Reading.Known] without a good value, with counts that are not [Missing]'s, with a fill that is NaN or negative,
// and if the sum overflows. It is as of the time of the decision; set At if the values are older.
func FromPods(metric string, values []float64, missing Missing, fill float64) Reading {
	r := Reading{
		Metric: metric, NotReady: missing.NotReady,
		Unschedulable: missing.Unschedulable, Crashing: missing.Crashing, Stuck: missing.Stuck,
	}
	var sum exact.Sum
	good := 0
	for _, v := range values {
		if v >= 0 && !math.IsInf(v, 1) {
			sum.Add(v)
			good++
		}
	}
	r.Failed = Saturate(float64(missing.Failed) + float64(len(values)-good))
	total := sum.Value()
	if good == 0 || !missing.valid() || !(fill >= 0) || math.IsInf(total, 1) {
		return r
	}
	if fill == 0 {
		fill = math.Inf(1)
	}
	r.Values = Saturate(float64(good))
	mean := total / float64(good)
	r.Lower, r.Upper = mean, mean
	lost := float64(missing.NotReady) + float64(len(values)-good) + float64(missing.Failed)
	if lost == 0 {
		return r
	}
	filled := lost - float64(missing.Stuck)
	r.Lower = min(mean, total/(float64(good)+lost))
	r.Upper = r.Lower
	if filled > 0 {
		r.Upper = max(r.Lower, (total+fill*filled)/(float64(good)+lost))
	}
	if missing.Stuck == 0 && mean <= fill {
		// Rounding must not push the end of the interval past a value inside of it.
		r.Upper = max(r.Upper, mean)
	}
	return r
}
