// Package capacity asks for as many replicas as the work that arrives needs, and finds by itself how much work one
// replica may be given: [For] makes a [Config] of bounds, SLO and server, [New] the algorithm of it, and scaling.New the
// policy. Nothing is to be tuned.
//
//	work     = arrivals/s * (PromptToken * mean prompt + AnswerToken * mean answer)     seconds of a replica a second
//	r        = work / capacity
//	replicas = ceil(r + 0.3 sqrt(r)),   never fewer than were needed within the hold
//
// # Where the capacity is from
//
// Every five minutes the policy replays its last hour in package sim, as it would have decided with one capacity or
// another, and takes the largest at which enough requests would have met the SLO: see [Past.Tune]. That is a pure
// function of what was seen. [Inline] calls it inside Decide, [Background] beside it. Explain says which capacity is in
// force, of how many requests it was learned, and how many of them were late.
//
// # What it looks at
//
// Readings of requests that wait and run and of KV caches, and histograms (scaling.Histogram) of prompts, answers, first
// tokens and times per token; [Metrics] has their names. A fleet of which one of these is not known is left as it is.
//
// # What it must be told
//
// The server's step-time law (sim.Server). Where all its times are wrong by one factor, calibration finds that from
// the times per token that were seen; a guard takes care of the rest, see docs/capacity.md.
package capacity
