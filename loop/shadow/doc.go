// Package shadow lets policies (shadows) watch a target that another policy scales. Each shadow sees the live readings,
// keeps a replica count of its own, and reports what it would ask for.
//
//	s, err := shadow.New(shadow.Config{Policies: []shadow.Policy{{Name: "calm", Policy: calm}}})
//	...
//	step := l.Decide(now, obs)                    // the real loop: decided, stored and written first
//	...
//	s.Look(now, seen)                             // returns at once
//	for _, w := range s.Wishes() { ... }          // what each asked for last: plain data
//
// # What a shadow cannot do
//
// This package does not know package loop, and each shadow is given its own copy of the observation. So a shadow cannot
// write, and cannot change what the real policy sees, decides or stores. Each shadow decides in its own goroutine, which the
// caller does not wait for, and has until the next Look. A shadow that is late is left out until it is done, and its [Wish]
// says so. A shadow that panics is left out for good. Go cannot contain everything: a shadow that never returns keeps a
// goroutine and its memory, and one that uses up all memory ends the process. The policies of this module do neither.
//
// # What a shadow sees
//
// A shadow that asked for a different count than the real one is treated as if it had that count. The real fleet has N
// replicas asked for and n ready; the shadow's has M and m. The shadow is shown
//
//	SpecReplicas  = M
//	ReadyReplicas = m          those of M whose start is over: the median of the starts that were seen of the real fleet
//	Served        = n          where the numbers are from
//	a share       = total / m  of what replicas share: requests that wait or run, KV caches in use
//
// A reading is a mean over pods, in which a missing pod counts as 0 in the lower end and as a fill value in the upper end.
// Let V real pods have given a value, F have given no answer, and B be not ready, S of them stuck. With P = V + F + B
// and b = M - m,
//
//	total = [Lower P,  Lower P + fill F]          what runs on pods that serve; one that starts serves nothing
//	fill  = (Upper - Lower) P / (F + B - S)       where a pod is missing, and else what Metric.Fill says
//	Lower = total / M                             over as many pods as the shadow has, b of them not ready
//	Upper = (total + fill b) / M
//
// The share of pods without an answer is the same as in the real fleet. With m = 0 there is no pod to read, and the reading
// is not known. Readings of the whole fleet and of times (Fleet) are shown unchanged, and so are histograms, because the
// requests that arrive and their lengths are the same for any fleet.
//
// A shadow sees exactly the real observation if its count is the real one, and either always was or all replicas are ready in
// both fleets. A shadow with the real policy therefore decides as that policy does.
//
// # Limits
//
// The load is that of the real fleet. Requests that wait because the real fleet is too small are in the total, although a
// larger fleet would have served them; requests that would wait in a smaller fleet are not. Times to first token and between
// tokens are those of the real fleet, whatever count the shadow has. So a policy that looks at nothing else follows the real
// fleet's times until it reaches one of its bounds. KV caches hold what the real replicas cached. A replica that a shadow
// asks for always starts, and takes the median of the starts that were seen. The further a shadow is from the real count, the
// less its wish says.
package shadow
