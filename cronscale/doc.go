// Package cronscale asks for replicas by the clock: five from eight in the morning, one at night.
//
// # The problem
//
// A cron expression names instants, and a fleet has a size at all times. The seeds fill the time in between in two
// ways that lose replicas. The scaler of seed 000 acts only during the minute in which a policy fires: a loop that
// looks every 90 seconds misses 30 of 90 such minutes, and one that restarts at 08:00 stays at night's count for the
// day. KEDA's cron scaler asks which of start and end comes next, and so depends on times that have not come: if the
// next start is lost in a shift to summer time, the window of the day before stays open for 23 hours.
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
// the same instant. The target is then clamped into the bounds. HoldLast is the default, Match is the rule of
// seed 000, InWindow does what KEDA's trigger is for.
//
// A window is [start, end). It begins with a start and ends with an end, whatever day that is: 22:00 to 06:00 runs
// past midnight, Friday 20:00 to Monday 06:00 past the weekend. A start on weekdays with an end on every day is closed
// on Saturday. KEDA's is open, since an end comes next.
//
// # When a schedule fires
//
// A schedule is a set of civil minutes: dates and times on the calendar, without a zone. Each of them fires once, at
// the first instant at which the clocks of its zone show it or a later time:
//
//	fire(m) = min over t with local(t) >= m of t
//
// So a time inside the gap of a shift to summer time fires at the end of the gap; all such times do, at once, also those
// of a whole day that a zone skipped, or of a midnight that does not exist. A time in the hour that comes twice in
// autumn fires the first time only. This includes schedules such as "* * * * *": nothing fires while the hour is
// repeated, so that in mode Match nothing is in force then.
//
// The instants are computed from the sets of the parsed fields. The search of github.com/robfig/cron/v3 is not used: it
// leaves out a time that a shift skips, at times for a year, fires twice in the repeated hour, and does not return at
// all for "0 12 30 12 *" in Pacific/Apia from 28 December 2011. Its parser is used: five fields with names, ranges,
// lists and steps, and the descriptors @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly. As in
// cron, a date needs to match only one of the day of the month and the day of the week if both are restricted.
//
// # Deciding
//
// [Scaler] is a [scaling.Stepper], for a target that is scaled by the clock alone, and a [scaling.Timetable], to be a
// floor under another policy with [scaling.Floor]. [Scaler.Next] is when the answer changes: the time to look again.
// [Scaler.Timeline] has all changes of a span of time, for pictures.
//
// A count outside the bounds goes to the nearest bound first. Then the target in force is asked for, exactly. Steps
// carry the codes [Fired], [Opened], [OutsideAll], [AtTarget] and [NoneInForce], after them those of package scaling.
//
// A decision allocates nothing. Its [State] remembers the present answer, so that most decisions only look it up; it
// changes none of them, and there is nothing in it to store.
//
// Outside the years 1 to 9999 nothing is in force.
//
// # Defaults
//
//	Mode      HoldLast
//	TimeZone  Etc/UTC
//	Outside   0, which is clamped to Bounds.Min
//
// Targets of 0 are legal. Bounds and at least one policy, or window, must be given.
//
// # Errors
//
// [New] reports every wrong field at once, as a [scaling.FieldError] with the policy's name in its path. Besides what
// does not parse, these are refused:
//
//   - "@every", which has no fixed times;
//   - "TZ=" and "CRON_TZ=" in a schedule: the policy has a field for its zone;
//   - zones that the time zone database does not have, and "Local", which differs between machines; they are never
//     taken for UTC;
//   - schedules that never fire, such as 31 February;
//   - windows whose start and end are the same times, however they are written;
//   - empty and repeated names, negative targets, and fields of another mode.
//
// Deciding never fails. UTC needs no time zone database; for other zones a program imports time/tzdata, or has a
// database on its machine. The library does not import it, as it adds half a megabyte.
//
// # Sources
//
// The policies and match mode are those of seed 000, the LLMAutoScaler proposal of kaito; windows those of the cron
// scaler of KEDA 2.21. The recorded answers of both, and of robfig/cron, are met, or differ by a rule that the tests
// name.
package cronscale
