// Package cronscale asks for replica counts by the time of day: five from eight in the morning, one at night.
//
//	timetable, err := cronscale.New(cronscale.Config{
//		Bounds: scaling.Bounds{Min: 1, Max: 8},
//		Policies: []cronscale.Policy{
//			{Name: "day", Schedule: "0 8 * * MON-FRI", TargetReplicas: 5, TimeZone: "Europe/Berlin"},
//			{Name: "night", Schedule: "0 20 * * *", TargetReplicas: 1, TimeZone: "Europe/Berlin"},
//		},
//	})
//	if err != nil {
//		return err // every wrong field, each a *scaling.FieldError
//	}
//	policy := scaling.New(timetable)                        // the clock alone
//	policy, err = scaling.Floor(other, timetable, bounds)   // or a floor under another policy
//
// # The rule
//
// The count in force depends only on the configuration and the time, not on who asked before, when, or how often. There
// are three modes:
//
//	HoldLast   target of the policy with the latest fire <= now
//	Match      target of a policy with fire <= now < fire + 60 s; none: Hold
//	InWindow   replicas of a window with last start >= last end; none: Outside
//
// If several qualify, the highest target wins, then the first name. In HoldLast these are the policies that fired at
// the same instant. The target is then clamped to the bounds. [Mode] describes the use of each mode, [Policy] when a
// schedule fires around a shift of its zone's clocks, [Scaler.Decide] the decision, and [New] what is refused.
//
// [Scaler.Next] returns when the answer changes next, which is the time to decide again. [Scaler.Timeline] returns all
// changes in a span of time, for charts. Outside the years 1 to 9999 nothing is in force.
//
// # Defaults
//
// Mode HoldLast, time zone Etc/UTC, and 0 outside all windows, which is clamped to Bounds.Min. Targets of 0 are legal.
// Bounds and at least one policy, or window, must be given.
//
// # Sources
//
// Policies and mode Match are those of Kaito's LLMAutoScaler proposal; windows are those of the cron scaler of KEDA 2.21.
// Answers match the recorded answers of both, and of robfig/cron, or differ by a rule that the tests name.
package cronscale
