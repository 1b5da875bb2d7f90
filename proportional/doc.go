// Package proportional scales a fleet in proportion to its load: as many replicas as the load needs at a target per
// replica, averaged over a stable window, with a short panic window for bursts. It is the rule of Knative's pod
// autoscaler and of Kubernetes' HorizontalPodAutoscaler, and the homogeneous half of Kthena's autoscaler.
//
// # The rule
//
// Each metric has a target per replica. Its load is that of the whole fleet, an interval [lower, upper] (see
// scaling.Reading and [Measure]), averaged over the stable window:
//
//	want = ceil(lower / Target)   if  lower > Target * spec * (1 + Up.Tolerance)
//	want = ceil(upper / Target)   if  upper < Target * spec * (1 - Down.Tolerance)
//	want = spec                   otherwise
//
// Exactly at a tolerance is within it. Of several metrics the highest want wins. Tolerance is a hold around the count
// that was asked for, never around anything else, so that the want never falls when a load rises.
//
// Counts are whole at 1e-9: 2.1 of 0.7 each is 3 (scaling.Ceil). What does not fit an int32 saturates.
//
// # Load is a total
//
// A reading made of pods is their mean; times the number of its pods it is a total ([PerPod]). A gateway's queue is a
// total already ([Total]). An average that comes without its pods, as from a query, counts for every ready replica
// ([Average]). Taking an average for a total shrinks a fleet under overload: ten replicas at 95 % with a target of 60
// would become two. Under PerPod, pods that are ready and not in the reading count in upper alone, so that such a
// mistake holds and shrinks nothing.
//
// # What is missing
//
// Pods without a value count 0 in lower and the fill in upper, so a fill never causes a scale-up and what is missing
// never causes a scale-down. A metric that is unknown blocks scale-down and never scale-up. If no metric is known the
// verdict is Unknown. NaN, negative and infinite values are missing. An upper end of +Inf blocks every scale-down.
//
// # Windows
//
// Loads are averaged in buckets of Resolution (a second by default), aligned to Unix time. A bucket is the average of
// its samples, a window the average of those buckets that have a sample, each counting alike. Hence
//
//	gaps               are left out: a missed scrape is missing, not a load of zero
//	partial start-up   counts what there is: the first sample alone is an average, upward at once; nothing is
//	                   taken away before the metric has been known for a whole stable window (code Uncovered)
//	trailing silence   is left out too: the last samples count until they are as old as the window; then the metric
//	                   is unknown, and after it is known again a whole window must pass before anything is taken away
//
// The last two make a restart safe: with a fresh state a fleet keeps its count for a stable window. A metric counts as
// known throughout if it was at each decision and no two samples were more than two stable windows apart.
//
// A sample counts at the time of its reading (Reading.At, the time of the decision if it has none). One that is no
// newer than the latest was counted already or is too late, and is left out. [Scaler.Record] takes samples in between
// decisions. A window holds at most StableWindow/Resolution buckets, about 30 bytes of JSON each.
//
// With a stable window of zero each reading alone decides, as in HPA: nothing is averaged, covered or recorded.
//
// # Panic
//
// A burst is lower averaged over the panic window. With ready at least 1,
//
//	panic begins, or begins anew   when  ceil(burst / Target) >= Panic.Threshold * ready
//	it ends                        more than a stable window after it last began
//
// In panic the bursts have a say as well, and there are no fewer replicas than were asked for: the count never falls.
//
// # Corrections
//
// In this order. Up.MaxRate: at most so many times the ready replicas. ActivationScale: at least so many for any load.
// The panic's hold. This is the recommendation, and what the history of the stabilization remembers. Then
//
//	stabilization   min(max(spec, lowest in its up window), highest in its down window)
//	rate limits     so many replicas or percent in a period; a percentage always moves by one at least
//	steps           Down.MaxRate: at least ready over it; MaxStep: at most so many replicas
//	bounds
//
// No correction turns a change round: what has been asked for is not taken back by a limit. Stabilization.Down is the
// scale-down delay, the sliding maximum of recommendations; unlike Knative's it delays scale-down and never climbs to
// what a burst asked for that is gone. A count outside the bounds is repaired before anything else.
//
// # Start-up credit
//
// Panic and Down.MaxRate measure by the ready replicas. While a fleet starts, these lag behind what was asked for, and
// each decision would find the same burst again. With StartupCredit the requested replicas are the measure. Up.MaxRate
// always measures by the ready ones, so that a slow start cannot compound it.
//
// # Clock
//
// A clock that steps back holds (code scaling.ClockBack) and takes the memory along: what had been waited for stays
// waited for, a sample stays as old as it was to a bucket's length, and nothing expires early.
//
// # Defaults
//
// [KPA] has Knative's numbers, [HPA] those of Kubernetes, [Kthena] those of Kthena, and [LLM] those that did best in the
// simulator, for requests in flight.
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
