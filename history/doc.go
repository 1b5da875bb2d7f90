// Package history reads from Prometheus what a fleet of LLM servers did. [Queries] returns the queries, a [Dump] holds the
// answers, and [Reduce] turns them into a [Fleet]. A fleet provides traffic for the simulator ([Fleet.Workload]), the
// recorded replica counts, and points for the calibration of a server ([Fleet.Points]).
//
// The package does no I/O except on readers and writers that it is given. Examples/simulate has a client.
//
// # What is asked
//
// Counters are queried raw and by pod, as last_over_time(family[window]), and reduced here. The functions rate and increase
// of Prometheus extrapolate to the ends of their range, so that sums over ranges are not what was counted, and they hide
// that a pod restarted. Without a window, every value persists for five minutes after its pod is gone.
//
// # What is made of it
//
//	arrivals   = increase(finished + running + waiting)      by pod and step, added up
//	ITL        = increase(ITL sum) / increase(ITL count)
//	decoding   = increase(ITL sum) / time                    mean sequences in the batch; exact, by Little's law
//	prompts    = increase(prompt tokens) * (1 - increase(hits) / increase(queries))
//
// The time of a value is known to within one step: arrivals may be one step late.
//
// # What is wrong with a history
//
// The package handles falling counters, gaps, pods that appear, disappear, restart or come back under their names, series that
// continue under other labels, duplicate series, and buckets whose bounds changed. It counts them in [Repairs]. Unknown values
// are NaN, never zero, and a [Note] names a missing signal and the consequence. Histories that would give a wrong number are
// refused.
//
// Errors are *scaling.FieldError, all of them at once, and [*RefusedError].
package history
