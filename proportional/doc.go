// Package proportional scales a fleet in proportion to its load: as many replicas as the load needs at a target per
// replica, averaged over a stable window, with a short panic window for bursts. It is the rule of Knative's pod
// autoscaler and of Kubernetes' HorizontalPodAutoscaler, and the homogeneous half of Kthena's autoscaler.
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
// Each metric has a target per replica. Its load is that of the whole fleet, an interval [lower, upper] (see
// scaling.Reading and [Measure]), averaged over the stable window (see [Window]):
//
//	want = ceil(lower / Target)   if  lower > Target * spec * (1 + Up.Tolerance)
//	want = ceil(upper / Target)   if  upper < Target * spec * (1 - Down.Tolerance)
//	want = spec                   otherwise
//
// Exactly at a tolerance is within it. Of several metrics the highest want wins. Tolerance is a hold around the count
// that was asked for, never around anything else, so that the want never falls when a load rises. Counts are whole at
// 1e-9: 2.1 of 0.7 each is 3 (scaling.Ceil). What does not fit an int32 saturates.
//
// A burst begins a [Panic], in which nothing is taken away. [Config] lists the corrections that follow and their order,
// [Scaler.Decide] says what is done about missing data and a clock that steps back.
//
// # Defaults
//
// [LLM] has the numbers that did best in the simulator, for requests in flight; [KPA] has Knative's, [HPA] those of
// Kubernetes and [Kthena] those of Kthena. In a [Config] of one's own every field means what it says: a window, rate,
// step or tolerance of zero is none.
//
// # Where others differ
//
// Knative counts a gap inside a window as zero, adds up the samples of a bucket, and starts in panic after a restart.
// Kthena and AIBrix judge a total against one replica's target, or an average as if it were a total. HPA guesses the
// direction before it fills in missing pods, and leaves out those that are not ready when it scales down. The tests
// named TestRegress show what comes of each, the recorded answers in TestVectors every difference by its rule.
//
// Source: Kthena's autoscaler document, homogeneous instances; Knative Serving's pod autoscaler; the
// HorizontalPodAutoscaler of Kubernetes 1.36.
package proportional
