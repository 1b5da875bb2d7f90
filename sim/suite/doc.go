// Package suite makes the scenarios of the public scoreboard (simulate -suite). Each [Row] combines a shape of requests, a
// pattern of load, a cold start and a server.
//
// # Shapes
//
//	chat     prompts of 900 tokens, answers of 250
//	code     prompts of 1,800 with a long tail (deviation 4,000), answers of 90
//	docs     prompts of 9,000, answers of 200
//	reason   prompts of 400, answers of 4,000
//	agents   sessions of 8 calls on average, whose prompts grow by each answer and by what a tool returns; open loop
//	drift    changes from chat to reason during the first hour, and back during the second
//
// No prompt hits a prefix cache. Lengths are lognormal. [Recorded] names the rows that take lengths and times from recordings.
//
// # Patterns
//
//	steady   0.6 throughout
//	ramp     from 0.2 to 1 and back
//	day      one period of a cosine between 0.2 and 1
//	flash    0.4, and 0.9 for two minutes in each 23
//	onoff    0.25 and 0.9, twenty minutes each
//	walk     a random walk within 0.15 and 1
//	bursts   a wave from 0.28 to 0.52, multiplied by 1.3 to 2 for one to a few minutes, every ten minutes on average
//	clients  the sum of 15 clients, a few with most of the load, each on for 12 minutes and off for 8 on average
//	noise    a wave from 0.25 to 0.75, times noise with a correlation time of three minutes
//	steps    levels of a quarter of an hour on average, each some 35 % above or below the one before it
//	weekdays four days from midnight on: 0.12 at night, a rise to 1 at nine within half an hour, 0.75 from noon to one, the end at half
//	         past five; each day is up to 4 % higher or lower, and up to four minutes early or late
//	recorded as in the recording
//
// Rates are relative to the rate that a fleet of [Replicas] can take. A synthetic row lasts two hours, weekdays four days, and begins
// with the replicas that its first minute needs. walk and the five patterns after it differ for each seed. Nothing here is fitted to
// a recording, so a policy that was tuned on these rows can be evaluated on recordings.
package suite
