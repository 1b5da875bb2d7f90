// Package saturation scales the variants of one model by what their replicas have to spare: the saturation analyzer of
// llm-d's workload variant autoscaler, with its gaps closed.
//
// A model is served by variants: workloads that differ in accelerator, cost and capacity. Their replicas report two
// loads, the KV cache usage (a fraction) and the waiting requests. The cheapest variant grows when too little is spare
// on average; the dearest one shrinks when the rest could take its load and still have enough to spare.
//
// # The rule
//
// A replica is saturated when kv >= kvCacheThreshold or queue >= queueLengthThreshold. With
//
//	spare_i = threshold - load_i         0 for a saturated replica
//	spare   = sum(spare_i) / N           over all N replicas, for each of the two loads
//	after   = sum(load_i) / (N-1)        with one replica less, the load spread over the rest
//
// the model says
//
//	up      when  spareKV < kvSpareTrigger  or  spareQueue < queueSpareTrigger
//	down    when  threshold - after >= trigger  for both, N >= 2, and no replica is saturated or missing
//
// The triggers are strict for up and inclusive for down, so the two never meet. Then one variant moves by one replica:
//
//	up:    the cheapest that may grow, first by name: no replica pending, count below its maximum
//	down:  the dearest that may shrink, last by name: count above max(Min, 1), and what it takes along can be missed
//
// Cheap and dear are by cost per Capacity. With capacities that differ, the simulated removal is of the capacity that
// leaves: load/N * C/(C - c) for a replica of capacity c among C in all.
//
// # Transitions
//
// A variant is in transition while it was asked for another count than it has, or while another number of replicas
// report than it should have. Then the analysis is of a fleet that is about to change, and no variant is decided:
// each keeps what it is on its way to. A replica that never comes would block the model for ever; after
// TransitionTimeout its variant is set aside and the rest is decided. What was set aside grows only if nothing else
// may. A count outside its bounds is a transition to the nearest bound, at once.
//
// # What is missing
//
// There is a difference between a replica that is not there to be asked, which has no row and makes its variant one in
// transition, and one that is there and gave no value, whose row has NaN (or any number that is none: an infinity, a
// negative gauge). The latter counts as idle for up and as saturated for down: an up holds whatever it would have
// said, and no down is taken while it says nothing. Without any value the verdict is Unknown. A variant that reports
// and has no state, or a state that is wrong, is held and reported as Unknown; the others are decided.
//
// # Two modes
//
// [Default] is what is described above. [Literal] is the source to the letter, kept for comparison and conformance:
// averages leave saturated replicas out, only the variants that report are looked at, desired 0 means unset, bounds
// are applied last and only outside transitions, nothing times out and nothing is stabilized. Its two worst answers
// are tests here: with 9 of 10 replicas saturated it sees no need for more, and with 3 of 5 saturated it calls it
// safe to remove one. The only liberty it takes is that ties are decided in decimals, as a reader would, and not by
// the last bit of a float64.
//
// # Life cycle
//
// [Scaler.Analyze] is a pure function of the replicas, [Scaler.Decide] one of state, time, analysis and variants. Both
// write to values that the caller passes again, and then allocate nothing. [Model] joins a Scaler with its state and
// is what a loop drives:
//
//	m := saturation.NewModel(scaler)
//	p := m.Decide(now, replicas, variants)
//	// store m (MarshalJSON), write the targets that act, report each with m.Applied, store m again
//
// [Single] is a scaling.Policy for one target of which only averages are known. Sums are exact, so the order of
// replicas and variants changes no bit of any answer, reason included. Duplicate rows count as often as they are
// given: package scrape counts a pod once.
//
// # Defaults
//
// [Defaults]: thresholds 0.80 (fraction of the KV cache) and 5 (requests), triggers 0.10 and 3, transition timeout
// 10 minutes, down stabilization 300 s, one replica a step. [WVA]: the same thresholds, Literal, no timeout, no
// stabilization. The option [Deficit] adds what is lacking at once and credits what is on its way. [ParseTable] reads
// thresholds per model from a ConfigMap.
//
// # Errors
//
// New reports every wrong field as a scaling.FieldError, ParseTable every wrong entry as an [EntryError], a Model that
// is given a foreign, newer or damaged state a scaling.StateError. Deciding never fails.
//
// # Where the source differs
//
// It says that without configuration all thresholds are zero and every replica is saturated; with zeros its own
// comparison 0 < 0 is false and the model is frozen. Zeros are an error in mode Default, which has built-in defaults.
// It clamps the chosen variant after choosing it, so that a cheapest variant at its maximum stops the model; here such
// a variant is not eligible.
//
// Source: llm-d workload variant autoscaler, user guide "Saturation Analyzer", as of version 0.7.
package saturation
