// Package scalingtest checks the properties that every scaling.Policy should have. Authors of a policy call [Run] in a
// test, and [RunGroup] for a scaling.Group.
//
// A policy is a black box here. It is asked to Decide, told of changes with Applied, stored and restored, and only its
// decisions and its stored state are checked. Its input is an [Episode]: plain data, drawn by pgregory.net/rapid, in which
// readings lie around their thresholds, clocks step back, scrapes fail, writes are refused, others scale the target and the
// process restarts.
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
//   - MissingNeverActs: missing data, present or past, never causes an Up or a Down.
//   - WithinBounds: a decision that acts asks for a count within the bounds.
//   - NeverPanics: no input causes a panic; every decision can be printed and every state stored.
//   - TimeShift: shifting all times by the same amount changes nothing else.
//   - Order: the order of the readings changes nothing.
//   - Restart: a restart at any tick changes no decision, and a policy that has moved on can restore an earlier state.
//   - Undo: a decision that is taken back (scaling.Snapshot) leaves no trace, and what is stored of a state (scaling.Durable) suffices
//     to store the same again.
//   - Repeatable: the same input always gives the same output; the policy neither changes nor keeps its input.
//   - BoundedState: the state does not grow with the run.
//   - ClockBack: a clock that steps back causes no action.
//   - NoData: without any data there is no action.
//   - Explained: the chain of steps explains the decision.
//
// Properties that not every policy has are switched on by fields of the [Options]: Monotone, NoFlap, DeadZone,
// Cooldown, CooldownEnds and ClockBackEnds, Refused, Lapse, Convergence, Twin. [RunDrawn] does the same for a policy whose
// configuration is drawn at random.
//
// [RunGroup] checks the same properties for a group with several targets ([Options].Targets). Bounds and explanations are
// checked for each target, most other properties for the sum of the counts. Order changes the order of targets and pods too.
//
// # Failures
//
// A failing episode is made as small as possible. It is printed as a table with one line per decision, and as a Go test that
// plays it again with [Replay] or [ReplayGroup]. Keep that test beside the one that failed.
//
// # Examples instead of properties
//
// [Steps] checks a run with one line per event. [Transcript] compares the transcript of an episode with a file, [Golden]
// compares any text with one. [Twin] compares a policy with a second implementation, and [Explained] checks one decision.
package scalingtest
