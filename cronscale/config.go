package cronscale

import (
	"fmt"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/enum"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/zone"
	"github.com/inferscale/inferscale/scaling"
)

// A Mode is the rule that turns schedules into a count.
//
// A cron expression names instants, but a fleet has a size at all times. A rule that acts only in the minute of a fire loses
// replicas: a loop that decides every 90 seconds misses 30 of 90 such minutes, and one that restarts at 08:00 keeps the night's
// count all day. KEDA's cron scaler asks whether the start or the end comes next, and so depends on the future: if the next start
// is lost in a shift to summer time, the window of the day before stays open for 23 hours. So HoldLast and InWindow ask what came
// last.
type Mode int8

// The modes. The zero value is the one to use unless there is a reason for another.
const (
	// HoldLast: the policy that fired last, at or before now, decides until another fires.
	HoldLast Mode = iota
	// Match: a policy decides during the minute in which it fires, and nothing decides in between. This is the
	// rule of the LLMAutoScaler proposal. A loop that decides less than once a minute misses fires for good.
	Match
	// InWindow: a window decides from its start to its end, and Config.Outside outside every window, as with KEDA's
	// cron trigger.
	InWindow
)

// String returns the mode's name.
func (m Mode) String() string { return enum.Name(int8(m), "Mode", "HoldLast", "Match", "InWindow") }

// DefaultTimeZone is the zone of a policy or window that names none.
const DefaultTimeZone = zone.Default

// A Config is a timetable. The zero value is not valid: it has no policies.
type Config struct {
	// Mode is the rule that turns the schedules into a count. Default HoldLast.
	Mode Mode
	// Bounds are the minimum and the maximum replica count. The count of the schedule in force is clamped to them after that
	// schedule was chosen.
	Bounds scaling.Bounds
	// Policies are the schedules of modes HoldLast and Match: at least one, in any order.
	Policies []Policy
	// Windows are the schedules of mode InWindow: at least one, in any order.
	Windows []Window
	// Outside is the count that mode InWindow asks for outside every window. Like every count it is clamped, so that 0 becomes
	// Bounds.Min; KEDA, too, uses its minReplicaCount there.
	Outside int32
}

// A Policy asks for a count at the times of a schedule.
//
// A schedule is a set of civil minutes: dates and times on the calendar, without a zone. Each of them fires once, at
// the first instant at which the clocks of its zone show it or a later time:
//
//	fire(m) = min over t with local(t) >= m of t
//
// So a time inside the gap of a shift to summer time fires at the end of the gap, together with all other times inside it. The
// same is true for the times of a whole day that a zone skipped, and for a midnight that does not exist. A time in the hour that is
// repeated in autumn fires only the first time. This includes schedules such as "* * * * *": nothing fires while the hour is
// repeated, so that in mode Match nothing is in force then.
//
// As in cron, a date needs to match only one of the day of the month and the day of the week if both are restricted.
type Policy struct {
	// Name identifies the policy. It must be unique and not empty.
	Name string
	// Schedule is a cron expression of five fields with names, ranges, lists and steps, or one of the descriptors
	// @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly. See New for what is refused.
	Schedule string
	// TargetReplicas is the count asked for. It must not be negative; 0 is a count like any other.
	TargetReplicas int32
	// TimeZone is the zone of the schedule, as in "America/New_York". Default DefaultTimeZone.
	TimeZone string
}

// A Window asks for a count from each start to the next end, [start, end), whatever day that is on: 22:00 to 06:00 runs past
// midnight, and Friday 20:00 to Monday 06:00 runs through the weekend. A window that starts on weekdays and ends on every day is
// closed on Saturday; KEDA's is open then, since an end comes next.
type Window struct {
	// Name identifies the window. It must be unique and not empty.
	Name string
	// Start and End are cron expressions like Policy.Schedule. The window is open if and only if the last time of Start is not
	// before the last time of End. So an end at an earlier hour than the start is on the next day, and a window without an end
	// on Saturdays stays open on Saturdays. Start and End must not have the same times.
	Start string
	End   string
	// Replicas is the count asked for, KEDA's desiredReplicas. It must not be negative; 0 is a count like any other.
	Replicas int32
	// TimeZone is the zone of both schedules. Default DefaultTimeZone.
	TimeZone string
}

// names finds empty and repeated names.
type names struct {
	list string
	seen map[string]int
}

// path returns the path of an entry, as in policies[1] "night", and adds an error if its name is wrong.
func (n *names) path(e *scaling.FieldErrors, i int, name string) string {
	path := fmt.Sprintf("%s[%d]", n.list, i)
	if strings.TrimSpace(name) == "" {
		e.Check(false, path+".name", name, "must not be empty")
		return path
	}
	path += fmt.Sprintf(" %q", name)
	e.Check(printable.Is(name), path+".name", name, printable.Rule)
	if first, ok := n.seen[name]; ok {
		e.Check(false, path+".name", name, fmt.Sprintf("must be unique: %s[%d] has it", n.list, first))
	} else {
		n.seen[name] = i
	}
	return path
}

// entries validates the configuration and returns its policies or windows as entries.
func (c Config) entries() ([]entry, error) {
	var e scaling.FieldErrors
	e.Check(c.Mode >= HoldLast && c.Mode <= InWindow, "mode", c.Mode, "must be HoldLast, Match or InWindow")
	e.Add(c.Bounds.Validate("bounds"))
	if c.Mode == InWindow {
		e.Check(len(c.Windows) > 0, "windows", len(c.Windows), "must have at least one in mode InWindow")
		e.Check(len(c.Policies) == 0, "policies", len(c.Policies), "must be empty in mode InWindow")
		e.Check(c.Outside >= 0, "outside", c.Outside, "must not be negative")
	} else {
		e.Check(len(c.Policies) > 0, "policies", len(c.Policies), "must have at least one")
		e.Check(len(c.Windows) == 0, "windows", len(c.Windows), "must be empty unless mode is InWindow")
		e.Check(c.Outside == 0, "outside", c.Outside, "must be 0 unless mode is InWindow")
	}

	list := make([]entry, 0, len(c.Policies)+len(c.Windows))
	zones := clocks{}
	known := names{list: "policies", seen: map[string]int{}}
	for i, p := range c.Policies {
		path := known.path(&e, i, p.Name)
		e.Check(p.TargetReplicas >= 0, path+".targetReplicas", p.TargetReplicas, "must not be negative")
		list = append(list, entry{
			name:   p.Name,
			target: p.TargetReplicas,
			clock:  zones.check(&e, path, p.TimeZone),
			on:     checkSchedule(&e, path+".schedule", p.Schedule),
		})
	}
	known = names{list: "windows", seen: map[string]int{}}
	for i, w := range c.Windows {
		path := known.path(&e, i, w.Name)
		e.Check(w.Replicas >= 0, path+".replicas", w.Replicas, "must not be negative")
		on := checkSchedule(&e, path+".start", w.Start)
		off := checkSchedule(&e, path+".end", w.End)
		e.Check(on != off || on == schedule{}, path+".end", w.End, "must not be the same times as start")
		list = append(list, entry{
			name:   w.Name,
			target: w.Replicas,
			clock:  zones.check(&e, path, w.TimeZone),
			on:     on,
			off:    off,
		})
	}
	return list, e.Err()
}

// checkSchedule returns the schedule of an expression. If that is wrong, it adds an error and returns an empty schedule.
func checkSchedule(e *scaling.FieldErrors, field, expr string) schedule {
	s, err := parse(expr)
	if err != nil {
		e.Check(false, field, expr, err.Error())
	}
	return s
}

// clocks has the clock of every zone that the configuration names, by name.
type clocks map[string]*clock

// check returns the clock of a zone. If the zone is wrong, it adds an error and returns a clock of UTC.
func (c clocks) check(e *scaling.FieldErrors, path, name string) *clock {
	place, err := zone.Load(name)
	if err != nil {
		e.Check(false, path+".timeZone", name, err.Error())
		place = time.UTC
	}
	if c[name] == nil {
		c[name] = newClock(place)
	}
	return c[name]
}
