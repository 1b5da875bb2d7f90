// Package proportional scales a fleet in proportion to its load: it asks for load / target replicas. The load is averaged
// over a stable window; a short panic window detects bursts. This is the rule of Knative's pod autoscaler and of Kubernetes'
// HorizontalPodAutoscaler, and of Kthena's autoscaler for homogeneous instances.
//
//	scaler, err := proportional.New(proportional.LLM(
//		scaling.Bounds{Min: 1, Max: 8},
//		proportional.Metric{Name: "inflight", Target: proportional.InFlightTarget},
//	))
//	if err != nil {
//		return err // every wrong field, each a *scaling.FieldError
//	}
//	policy := scaling.New(scaler)
//
// # The rule
//
// Each metric has a target per replica. Its load is the load of the whole fleet, an interval [lower, upper] (see
// scaling.Reading and [Measure]), averaged over the stable window (see [Window]):
//
//	want = ceil(lower / Target)   if  lower > Target * spec * (1 + Up.Tolerance)
//	want = ceil(upper / Target)   if  upper < Target * spec * (1 - Down.Tolerance)
//	want = spec                   otherwise
//
// A load exactly at a tolerance is within it. Of several metrics the highest want wins. The tolerance always applies to
// the count that was asked for, so that the want never falls when a load rises. Quotients are rounded up with a tolerance of
// 1e-9: 2.1 of 0.7 each is 3 (scaling.Ceil). Counts that do not fit an int32 saturate.
//
// A burst begins a [Panic], in which the Scaler does not scale down. [Config] lists the corrections that follow, in their
// order. [Scaler.Decide] documents missing data and a clock that steps back.
//
// # Defaults
//
// [LLM] has the numbers that did best in the simulator, for requests in flight. [KPA] has the numbers of Knative, [HPA] those
// of Kubernetes and [Kthena] those of Kthena. In your own [Config] no field has a hidden default: a window, rate, step or
// tolerance of zero means none.
//
// # Where others differ
//
// Knative counts a gap inside a window as zero, adds up the samples of a bucket, and starts in panic after a restart.
// Kthena and AIBrix compare a total with one replica's target, or treat an average as a total. HPA guesses the direction
// before it fills in missing pods, and leaves out pods that are not ready when it scales down. The tests named TestRegress
// show the effect of each. TestVectors compares with recorded answers, and names the rule behind each difference.
//
// Source: Kthena's autoscaler document, homogeneous instances; Knative Serving's pod autoscaler; the
// HorizontalPodAutoscaler of Kubernetes 1.36.
package proportional
