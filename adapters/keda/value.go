package keda

import (
	"fmt"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// metricValue returns what a HorizontalPodAutoscaler is to be told of a reading, of a fleet of spec replicas of which
// ready are. With n pods that count, of which some may have said nothing,
//
//	lower = n * reading.Lower          upper = n * reading.Upper          (a missing pod counts 0, or the threshold)
//	total = threshold * spec           where that is within [lower, upper]: hold
//	        lower                      where lower is above it: up, whatever the missing pods would have said
//	        upper                      where upper is below it: down, for all that they can have said up to the threshold
//
// A total goes out as it is for AverageValue, which divides by the target, and divided by ready for Value, which
// multiplies by the ready pods. With every pod's value known, total is their sum and total / ready their mean. Where no
// replica is asked for and no pod says anything, the threshold goes out, which is one replica: the HorizontalPodAutoscaler
// is off at 0, and KEDA, which begins with one, asks whether the target is active only after it has had a value. The
// threshold is to be in whole thousandths, as those of Metadata are: the HorizontalPodAutoscaler has no others, and would
// not hold at threshold * spec.
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

// perReady divides a total by the ready pods, in the thousandths that KEDA rounds to. The HorizontalPodAutoscaler
// multiplies by the ready pods again and rounds up: where that would come to another count than the total does, a
// thousandth beside goes out instead, the one that comes nearest to that count from the side of spec.
func perReady(total, threshold float64, spec, ready int32) (float64, error) {
	target := math.Round(threshold * 1e3)
	want := math.Ceil(math.Round(total*1e3) / target)
	count := func(thousandths float64) float64 {
		if thousandths == target {
			return float64(spec) // it keeps what there is
		}
		return math.Ceil(thousandths / target * float64(ready))
	}
	mean := math.Round(total * 1e3 / float64(ready))
	best, found := 0.0, false
	for _, v := range []float64{mean, mean - 1, mean + 1} { // one below 0 counts as 0 does, which comes first
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
