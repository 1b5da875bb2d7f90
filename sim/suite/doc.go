// Package suite makes the scenarios of the public scoreboard (simulate -suite): shapes of requests, patterns of load,
// cold starts and servers, each a part of a [Row].
//
// # Shapes
//
//	chat     prompts of 900 tokens, answers of 250
//	code     prompts of 1,800 with a long tail (deviation 4,000), answers of 90
//	docs     prompts of 9,000, answers of 200
//	reason   prompts of 400, answers of 4,000
//	agents   sessions of 8 calls on average, whose prompts grow by each answer and by what a tool returns; open loop
//	drift    goes over from chat to reason within the first hour, and back within the second
//
// No prompt hits a cache of prefixes. Lengths are lognormal; [Recorded] names rows with the lengths and times that recordings
// have.
//
// # Patterns
//
//	steady   0.6 throughout
//	ramp     from 0.2 to 1 and back
//	day      one wave of a cosine from 0.2 to 1
//	flash    0.4, and 0.9 for two minutes in each 23
//	onoff    0.25 and 0.9, twenty minutes each
//	walk     a random walk within 0.15 and 1
//	bursts   a wave from 0.28 to 0.52, 1.3 to 2 times as high for one to a few minutes, every ten on average
//	clients  the sum of 15 clients of whom few have most of the load, each on for 12 minutes on average and off for 8
//	noise    a wave from 0.25 to 0.75, times noise that three minutes have in common
//	steps    levels of a quarter of an hour on average, each some 35 % above or below the one before it
//	recorded as the recording has it
//
// of the rate that a fleet of [Replicas] can take: a made-up row lasts two hours, and begins with the replicas that its first
// minute needs. walk and the four that follow it are others for each seed. Nothing here is fitted to a recording, so that what
// is tuned on these rows can be reported on recordings.
package suite
