package keda

import (
	"fmt"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// metricValue returns the value of a reading for a HorizontalPodAutoscaler. The fleet has spec replicas, of which ready are
// ready. With n pods that count, some of which may have given no value,
//
//	lower = n * reading.Lower          upper = n * reading.Upper          (a pod without a value counts 0, or the threshold)
//	total = threshold * spec           if that is within [lower, upper]: hold
//	        lower                      if lower is above it: scale up, whatever the values of the other pods
//	        upper                      if upper is below it: scale down, for all their possible values up to the threshold
//
// For AverageValue, which divides by the target, the total is sent unchanged. For Value, which multiplies by the ready pods,
// it is divided by ready. If the values of all pods are known, total is their sum and total / ready their mean. At 0 spec
// replicas, if no pod gives a value, the threshold is sent, which means one replica: the HorizontalPodAutoscaler is off at 0,
// and KEDA, which begins with one replica, asks whether the target is active only after it has got a value. The threshold
// must be in whole thousandths, as it is in Metadata: the HorizontalPodAutoscaler has no finer thresholds, and would
// otherwise not hold at threshold * spec.
func metricValue(kind MetricType, threshold float64, r scaling.Reading, spec, ready int32) (value float64, because string, err error) {
	switch {
	case r.Known():
	case spec == 0:
		return threshold, fmt.Sprintf("%s: %g, of one replica, as there is none", r.Metric, threshold), nil
	default:
		return 0, "", fmt.Errorf("%s: no pod has said anything", r.Metric)
	}
	n := float64(r.Values) + float64(r.NotReady) + float64(r.Failed)
	lower, upper, hold := n*r.Lower, n*r.Upper, threshold*float64(spec)
	value = min(max(hold, lower), upper)
	because = fmt.Sprintf("%s: %g, within %g and %g of %g pods (%d without a value), for %d replicas at %g",
		r.Metric, value, lower, upper, n, r.NotReady+r.Failed, spec, threshold)
	if kind == Value {
		if ready < 1 {
			return 0, "", fmt.Errorf("%s: no pod is ready, and metricType Value is multiplied by the ready pods: AverageValue is not", r.Metric)
		}
		if value, err = perReady(value, threshold, spec, ready); err != nil {
			return 0, "", fmt.Errorf("%s: %w", r.Metric, err)
		}
		because += fmt.Sprintf(", divided by %d ready", ready)
	}
	if math.IsNaN(value) || value > greatestValue {
		return 0, "", fmt.Errorf("%s: %g: must be at most %g to be sent", r.Metric, value, float64(greatestValue))
	}
	return value, because, nil
}

// perReady divides a total by the ready pods, in thousandths, to which KEDA rounds. The HorizontalPodAutoscaler multiplies by
// the ready pods again and rounds up. If that would give another count than the total does, a neighboring thousandth is sent
// instead: the one whose count is nearest to that of the total, between it and spec.
func perReady(total, threshold float64, spec, ready int32) (float64, error) {
	target := math.Round(threshold * 1e3)
	want := math.Ceil(math.Round(total*1e3) / target)
	count := func(thousandths float64) float64 {
		if thousandths == target {
			return float64(spec) // the HorizontalPodAutoscaler keeps the count
		}
		return math.Ceil(thousandths / target * float64(ready))
	}
	mean := math.Round(total * 1e3 / float64(ready))
	best, found := 0.0, false
	for _, v := range []float64{mean, mean - 1, mean + 1} { // a value below 0 gives the same count as 0, which comes first
		c := count(v)
		between := c >= min(want, float64(spec)) && c <= max(want, float64(spec))
		if between && (!found || math.Abs(c-want) < math.Abs(count(best)-want)) {
			best, found = v, true
		}
	}
	if !found {
		return 0, fmt.Errorf("%g of %d ready pods: metricType Value counts in thousandths, too coarse for a threshold of %g: AverageValue is not",
			total, ready, threshold)
	}
	return best / 1e3, nil
}
