package cronscale

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Codes of this package. Each is documented by the inequality that it states.
const (
	// Fired sets the count to the target of the policy in force, which fired this long ago.
	Fired scaling.Code = "Fired target, ago:s"
	// Opened sets the count to that of the window in force, which opened this long ago.
	Opened scaling.Code = "Opened replicas, ago:s"
	// OutsideAll sets the count to Config.Outside: no window is open.
	OutsideAll scaling.Code = "OutsideAll outside"
	// AtTarget holds: the present count is the one asked for.
	AtTarget scaling.Code = "AtTarget spec == target"
	// NoneInForce holds: none of the policies fires in this minute (mode Match) or has ever fired.
	NoneInForce scaling.Code = "NoneInForce policies"
)

// A Scaler asks for the replica counts of a timetable. It is an immutable value that may be copied and used concurrently.
//
// It is a scaling.Stepper: scaling.New makes a live policy from it that follows the timetable exactly. It is also a
// scaling.Timetable: scaling.Floor uses it as the lower limit of another policy.
//
// The zero value decides Unknown, and as a timetable asks for nothing.
type Scaler struct {
	mode    Mode
	bounds  scaling.Bounds
	outside int32
	entries []entry // in order of precedence
	total   int     // number of policies or windows; entries has only those that can ever decide
	print   uint64
}

var (
	_ scaling.Stepper[State] = Scaler{}
	_ scaling.Timetable      = Scaler{}
)

// An entry is a policy, or a window with off as its end.
type entry struct {
	name   string
	target int32
	clock  *clock
	on     schedule
	off    schedule
}

// alwaysWith reports whether other fires whenever e does, as far as the fields show it. If other also precedes e, then e never
// decides.
func (e entry) alwaysWith(other entry) bool {
	return e.clock == other.clock && e.on.within(other.on)
}

// New returns the Scaler of a configuration, or an error with every wrong field, each as a *scaling.FieldError that names the
// policy or window, as in
//
//	policies[1] "night".schedule: "0 0 31 2 *": never fires: no date has these fields
//
// Besides expressions that do not parse, these are refused:
//
//   - "@every", which has no fixed times;
//   - "TZ=" and "CRON_TZ=" in a schedule: the policy has a field for its zone;
//   - zones that the time zone database does not have, and "Local", which differs between machines; UTC is never used
//     instead;
//   - schedules that never fire, such as 31 February;
//   - windows whose start and end are the same times, however they are written;
//   - empty and repeated names, negative targets, and fields of another mode.
//
// New loads the named time zones from where time.LoadLocation finds them; nothing is read afterwards. UTC needs no time zone
// database. For other zones a program needs a database on its machine, or must import time/tzdata, which the library does not do
// since it adds half a megabyte.
func New(c Config) (Scaler, error) {
	entries, err := c.entries()
	if err != nil {
		return Scaler{}, err
	}
	// A higher target precedes a lower one, and of equal targets the first by name does. What is left to decide later is only
	// which of them fired last. Clamping keeps the order.
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.target, a.target), cmp.Compare(a.name, b.name))
	})
	s := Scaler{mode: c.Mode, bounds: c.Bounds, outside: c.Outside, total: len(entries)}
	for _, e := range entries {
		if s.mode == InWindow || !slices.ContainsFunc(s.entries, e.alwaysWith) {
			s.entries = append(s.entries, e)
		}
	}
	s.print = s.fingerprint()
	return s, nil
}

// Kind returns the kind of the stored state.
func (s Scaler) Kind() scaling.Kind { return scaling.Kind{Name: "cron", Version: 1} }

// Decide asks for exactly what the timetable asks for at now:
//
//	want = clamp(target of the policy or window in force)
//
// A count outside the bounds goes to the nearest bound first. If nothing is in force, Decide holds. The decision depends only on
// the count in the observation, the configuration and now: not on other parts of the observation, the state, earlier decisions or
// their number. If the clock goes back, the decision is that of the time that it shows.
//
// Decision.Next is when the timetable asks for something else, as Next returns it.
func (s Scaler) Decide(state State, now time.Time, obs scaling.Observation) (_ State, d scaling.Decision) {
	if len(s.entries) == 0 {
		return state, scaling.UnknownAt(obs.SpecReplicas, scaling.NotConfigured, "")
	}
	state, a, next := s.recall(state, now)
	d.Start(obs.SpecReplicas)
	d.NextBy(next)
	if d.Clamp(s.bounds); d.Acts() {
		return state, d
	}
	because := s.because(a, now)
	if !a.inForce {
		d.To(d.Replicas, because.Code, because.Subject, because.Numbers[:]...)
		return state, d
	}
	d.To(a.target, because.Code, because.Subject, because.Numbers[:]...)
	d.Clamp(s.bounds)
	if !d.Acts() {
		d.To(d.Replicas, AtTarget, "", float64(d.From), float64(d.Replicas))
	}
	return state, d
}

// Applied returns the state unchanged: a timetable has no cooldowns.
func (s Scaler) Applied(state State, _ time.Time, _, _ int32) State { return state }

// At returns what the timetable asks for at now, within the bounds, and when that changes.
func (s Scaler) At(now time.Time) scaling.Slot {
	_, a, next := s.recall(State{}, now)
	return scaling.Slot{Replicas: s.count(a), InForce: a.inForce, Because: s.because(a, now), Next: next}
}

// Next returns the first instant after now at which the timetable asks for another count than at now, or starts or stops asking
// for one; false if it never does.
//
// A timetable may go for a long time without a change: a policy can fire every minute of the year and be outvoted each time. After
// 1000 such instants in a row the search ends, and Next returns the instant that it reached although nothing changes then. To
// decide again earlier than needed does no harm.
func (s Scaler) Next(now time.Time) (time.Time, bool) {
	_, _, next := s.recall(State{}, now)
	return next, !next.IsZero()
}

// count returns what the answer asks for, within the bounds.
func (s Scaler) count(a answer) int32 {
	if !a.inForce {
		return 0
	}
	return s.bounds.Clamp(a.target)
}

// because returns the step that explains an answer.
func (s Scaler) because(a answer, now time.Time) scaling.Step {
	if len(s.entries) == 0 {
		return scaling.Step{Code: scaling.NotConfigured}
	}
	step := scaling.Step{Code: NoneInForce, Numbers: [4]float64{float64(s.total)}}
	if a.inForce {
		step.Numbers[0] = float64(a.target)
		switch {
		case a.winner < 0:
			step.Code = OutsideAll
			return step
		case s.mode == InWindow:
			step.Code = Opened
		default:
			step.Code = Fired
		}
		step.Subject = s.entries[a.winner].name
		step.Numbers[1] = now.Sub(time.Unix(a.since, 0)).Seconds()
	}
	return step
}

// fingerprint returns a hash of all that an answer depends on.
func (s Scaler) fingerprint() uint64 {
	h := fnv.New64a()
	// A hash takes whatever is written to it: it never returns an error.
	_, _ = fmt.Fprintln(h, s.mode, s.bounds.Min, s.bounds.Max, s.outside, s.total)
	for _, e := range s.entries {
		_, _ = fmt.Fprintf(h, "%q %d %q %v %v\n", e.name, e.target, e.clock.zone, e.on, e.off)
	}
	return h.Sum64()
}
