package scaling

import (
	"math"

	"github.com/inferscale/inferscale/internal/exact"
)

// FromPods returns the reading of a metric that every pod has its own value of, for programs that collect the values
// themselves; package scrape does the same for the pods that it scrapes.
//
// values has one number for each pod that gave one, in any order; missing counts the other pods. A value that is NaN,
// infinite or negative is not valid, and its pod counts as failed. With n valid values and m pods without one, of which
// stuck pods are stuck (see [Missing]),
//
//	Lower = sum of the values / (n + m)
//	Upper = (sum of the values + fill * (m - stuck)) / (n + m)
//
// The sum is computed exactly and rounded once, so that the order of the pods does not matter. The fill is the most that a pod
// without a value is assumed to have, commonly the threshold for scaling up. A fill of 0 or +Inf means no limit: if a pod is
// missing that is not stuck, Upper is +Inf and no replica is removed. Only a pod that was never ready is known to be idle.
//
// The reading is not [Reading.Known] without a valid value, with counts that break the rules of [Missing], with a fill that is
// NaN or negative, or if the sum overflows. Its At is zero, the time of the decision; set At if the values are older.
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
