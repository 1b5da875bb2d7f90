// Package cronscale asks for replicas by the clock: five from eight in the morning, one at night.
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
// What is in force follows from the configuration and the time, and from nothing else: not from who looked, when, or
// how often. There are three modes:
//
//	HoldLast   target of the policy with the latest fire <= now
//	Match      target of a policy with fire <= now < fire + 60 s; none: Hold
//	InWindow   replicas of a window with last start >= last end; none: Outside
//
// If several qualify, the highest target wins, then the first name. In HoldLast these are the policies that fired at
// the same instant. The target is then clamped into the bounds. [Mode] says what each is for, [Policy] when a schedule
// fires around a shift of its zone's clocks, [Scaler.Decide] what is asked for, [New] what is refused.
//
// [Scaler.Next] is when the answer changes: the time to look again. [Scaler.Timeline] has all changes of a span of time,
// for pictures. Outside the years 1 to 9999 nothing is in force.
//
// # Defaults
//
// Mode HoldLast, time zone Etc/UTC, and 0 outside all windows, which is clamped to Bounds.Min. Targets of 0 are legal.
// Bounds and at least one policy, or window, must be given.
//
// # Sources
//
// The policies and mode Match are those of Kaito's LLMAutoScaler proposal, windows those of the cron scaler of KEDA
// 2.21. The recorded answers of both, and of robfig/cron, are met, or differ by a rule that the tests name.
package cronscale
