// Package capacity asks for as many replicas as the arriving work needs, and learns how much work one replica can take: [For]
// makes a [Config] of bounds, SLO and server, [New] makes the algorithm, and scaling.New makes the policy. Nothing needs tuning.
//
//	work     = arrivals/s * (PromptToken * mean prompt + AnswerToken * mean answer)     replica-seconds per second
//	r        = work / capacity
//	replicas = ceil(r + 0.3 sqrt(r)),   never fewer than were needed within the hold
//
// # Where the capacity comes from
//
// Every five minutes the policy replays its last hour in package sim. It runs its own rules with one capacity after another,
// and takes the largest at which enough requests would have met the SLO: see [Past.Tune], a pure function of what was observed.
// [Inline] calls it inside Decide, [Background] in a goroutine. Explain gives the capacity in force, the number of requests
// that it was learned from, and the share of them that missed the SLO.
//
// # What it reads
//
// Readings of waiting requests, running requests and KV cache use, and histograms (scaling.Histogram) of prompt and answer
// lengths, prefilled tokens, times to first token and times per output token. [Metrics] has their names. If one of them is
// unknown, the policy leaves the fleet as it is. An example of package scrape reads them from vLLM's pods.
//
// # What it must be told
//
// The server's step-time law (sim.Server). If all its times are wrong by one factor, calibration finds that factor from the
// observed times per token. A guard corrects the rest, see docs/capacity.md.
package capacity
