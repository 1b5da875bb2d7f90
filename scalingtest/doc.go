// Package scalingtest checks that a scaling.Policy does what is expected of any. Whoever writes one calls [Run] in a
// test, and [RunGroup] for a scaling.Group.
//
// A policy is a black box here. It is asked to Decide, told of changes with Applied, stored and restored, and nothing
// else is looked at but its decisions. What it lives through is an [Episode]: plain data, drawn by pgregory.net/rapid,
// in which readings lie around their thresholds, clocks step back, scrapes fail, writes are refused, others scale the
// target and the process restarts.
//
//	func TestProperties(t *testing.T) {
//		scalingtest.Run(t, newPolicy, scalingtest.Options{
//			Metrics:  []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}},
//			Bounds:   scaling.Bounds{Min: 1, Max: 8},
//			Monotone: true,
//		})
//	}
//
// # Properties
//
// [Run] checks each of these in a subtest of its name:
//
//   - MissingNeverActs: what is missing, now or before, never causes an Up nor a Down.
//   - WithinBounds: what acts asks for a count within the bounds.
//   - NeverPanics: no input causes a panic, and what is answered and remembered can be written.
//   - TimeShift: with all times moved by the same, nothing else changes.
//   - Order: the order of the readings changes nothing.
//   - Restart: a restart at any tick changes no decision, and a policy that has gone on takes an earlier state back.
//   - Repeatable: the same input gives the same output, each time, is left as it was, and is not kept.
//   - BoundedState: the state does not grow with the run.
//   - ClockBack: a clock that steps back causes no action.
//   - NoData: without any data nothing is done.
//   - Explained: the chain of steps explains the decision.
//
// The properties that not every policy has are switched on by fields of the [Options]: Monotone, NoFlap, DeadZone,
// Cooldown and CooldownEnds, Refused, Lapse, Convergence, Twin. [RunDrawn] does the same for a policy of which the
// configuration is drawn.
//
// [RunGroup] checks the same of a group with several targets ([Options].Targets): each of them stays within its bounds and
// is explained, the other properties are of the sum. Order moves targets and pods too.
//
// # Failures
//
// A failing episode is made as small as possible and printed as a table, a line a decision, and as a Go test that
// plays it again with [Replay] or [ReplayGroup]. Such a test belongs beside the one that failed.
//
// # Examples instead of properties
//
// [Steps] goes through a run with one line an event, [Transcript] compares the story of an episode with a file,
// [Golden] any text. [Twin] compares a policy with a second implementation, and [Explained] looks at one decision.
package scalingtest
