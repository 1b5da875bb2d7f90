// Package shadow lets policies watch a target that another one scales: what each of them would ask for, on the live
// readings, with a count of its own.
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
// Nothing here knows of package loop, and what a shadow is given is its own copy: it cannot write, and cannot change what
// the real policy sees, decides or stores. Each decides in a goroutine of its own that nobody waits for, and has until the
// next look: one that is not done by then is left out, and its [Wish] says so, until it is. One that panics is left out for
// good. What Go itself cannot contain stays possible: a shadow that never returns keeps a goroutine and what it computes
// with, and one that uses up the memory ends the process. The policies of this module do neither.
//
// # What a shadow sees
//
// A shadow that asked for another count than the real fleet has believes that it has it. With N replicas asked for and n
// ready in truth, and M and m in what it believes, it is shown
//
//	SpecReplicas  = M
//	ReadyReplicas = m          those of M whose start is over: the median of the starts that were seen of the real fleet
//	Served        = n          where the numbers are from
//	a share       = total / m  of what replicas share: requests that wait or run, KV caches in use
//
// A reading is a mean over pods, with 0 for those that are missing below and a fill above. With V, F and B real pods that
// gave a value, were silent and are not ready, P = V + F + B, stuck ones taken from B, and b = M - m,
//
//	total = [Lower P,  Lower P + fill F]          what runs on pods that serve; one that starts serves nothing
//	fill  = (Upper - Lower) P / (F + B)           where a pod is missing, and else what Metric.Fill says
//	Lower = total / M                             over as many pods as the shadow has, b of them not ready
//	Upper = (total + fill b) / M
//
// of which silent ones are the same part as in truth. With m = 0 there is nobody to ask, and the reading is not known.
// Readings of the fleet as a whole and of times (Fleet) are shown as they are, and so are histograms: what arrives, and how
// long it is, is the same for any fleet.
//
// A shadow whose count is the real one, and always was or with all replicas ready in both, sees exactly what is there: a
// shadow with the real policy decides as that one does.
//
// # Limits
//
// The load is that of the real fleet. Requests that wait there because it is too small are in the total, although a larger
// fleet would have served them; those that would wait in a smaller one are not. Times to first tokens and between tokens are
// of the real fleet, whatever count the shadow believes in, so that a policy which looks at nothing else goes where
// the real fleet's times lead it, and on until its bounds. KV caches hold what the real replicas cached. A replica that a shadow asks for
// always starts, as long as the median of those that were seen. The further a shadow is from the real count, the less its
// wish says.
package shadow
