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
// multiplies by the ready pods. With every pod's value known, total is their sum and total / ready their mean.
func metricValue(kind MetricType, threshold float64, r scaling.Reading, spec, ready int32) (value float64, because string, err error) {
	if !r.Known() {
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
		value /= float64(ready)
		because += fmt.Sprintf(", divided by %d ready", ready)
	}
	if math.IsNaN(value) || math.IsInf(value, 0) || value > MostValue {
		return 0, "", fmt.Errorf("%s: %g: must be at most %g to be sent", r.Metric, value, float64(MostValue))
	}
	return value, because, nil
}
