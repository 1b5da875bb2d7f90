// Package history is what a fleet of LLM servers did, as its Prometheus has it: [Queries] says what to ask, a [Dump] is what
// was answered, [Reduce] makes a [Fleet] of it, and the fleet is traffic for the simulator ([Fleet.Workload]), the counts
// of replicas that there were, and points for the calibration of a server ([Fleet.Points]).
//
// The package asks nobody: it does no I/O but on readers and writers that it is given. Examples/simulate has a client.
//
// # What is asked
//
// Counters are asked for raw and by pod, as last_over_time(family[window]), and reduced here. A rate or an increase that
// Prometheus computes extrapolates to the ends of its range, so that sums over ranges are not what was counted; it hides
// that a pod began anew; and without a window every value stands for five minutes after its pod is gone.
//
// # What is made of it
//
//	arrivals   = increase(finished + running + waiting)      by pod and step, added up
//	ITL        = increase(ITL sum) / increase(ITL count)
//	decoding   = increase(ITL sum) / time                    mean sequences in the batch; exact, as each spends its time so
//	prompts    = increase(prompt tokens) * (1 - increase(hits) / increase(queries))
//
// A value is known to within one step of its time: arrivals may be one step late.
//
// # What is wrong with a history
//
// Counters that fall, gaps, pods that came, went, began anew or came back under their names, series that go on under other labels, series
// that are there twice and buckets whose bounds changed are dealt with and counted in [Repairs]. What is not known is NaN, never zero, and
// a [Note] names the signal and what its absence costs. Histories that would give a wrong number are refused.
//
// Errors are *scaling.FieldError, all of them at once, and [*RefusedError].
package history
