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
	// Fired takes the count to the target of the policy that fired last, so long ago.
	Fired scaling.Code = "Fired target, ago:s"
	// Opened takes the count to that of the window that opened last, so long ago.
	Opened scaling.Code = "Opened replicas, ago:s"
	// OutsideAll takes the count to the one outside every window.
	OutsideAll scaling.Code = "OutsideAll outside"
	// AtTarget holds: the count asked for is there already.
	AtTarget scaling.Code = "AtTarget spec == target"
	// NoneInForce holds: none of so many policies fires in this minute, or has fired at all.
	NoneInForce scaling.Code = "NoneInForce policies"
)

// A Scaler asks for replicas by the clock. It is an immutable value that may be copied and used concurrently.
//
// It is a scaling.Stepper: scaling.New makes the live policy that follows the timetable exactly. It is also a
// scaling.Timetable: scaling.Floor puts it under another policy.
//
// The zero value decides Unknown, and as a timetable asks for nothing.
type Scaler struct {
	mode    Mode
	bounds  scaling.Bounds
	outside int32
	entries []entry // in order of precedence
	total   int     // of policies or windows, of which entries are those that can ever decide
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

// alwaysWith reports whether other fires whenever e does, as far as that can be told from the fields. If other goes
// before e, then e never decides.
func (e entry) alwaysWith(other entry) bool {
	return e.clock == other.clock && e.on.within(other.on)
}

// New returns the Scaler of a configuration. Every wrong field is reported, each as a *scaling.FieldError that names
// the policy or window, as in
//
//	policies[1] "night".schedule: "0 0 31 2 *": never fires: no date has these fields
//
// Besides what does not parse, these are refused:
//
//   - "@every", which has no fixed times;
//   - "TZ=" and "CRON_TZ=" in a schedule: the policy has a field for its zone;
//   - zones that the time zone database does not have, and "Local", which differs between machines; they are never
//     taken for UTC;
//   - schedules that never fire, such as 31 February;
//   - windows whose start and end are the same times, however they are written;
//   - empty and repeated names, negative targets, and fields of another mode.
//
// New loads the time zones that are named, as time.LoadLocation finds them; nothing is read afterwards. UTC needs no
// time zone database; for other zones a program imports time/tzdata, which the library does not as it adds half a
// megabyte, or has a database on its machine.
func New(c Config) (Scaler, error) {
	entries, err := c.entries()
	if err != nil {
		return Scaler{}, err
	}
	// The higher target goes before the lower, and the first name of equals. What is left to decide later is only
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
// A count outside the bounds goes to the nearest bound first. Where nothing is in force it holds. Nothing but the
// count is read of the observation, and the answer depends on nothing but that, the configuration and now: not on the
// state, on what was decided before, or on how often. A clock that steps back gets the answer of the time that it
// shows.
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

// Next returns the first instant after now at which the timetable asks for another count than at now, or begins or
// ceases to ask for any; false if it never does.
//
// A timetable may go on for long without a change: every minute of the year, a policy can fire and be outvoted. After
// 1000 such instants in a row the search ends, and the instant that it came to is returned although nothing changes
// there. To look again earlier than needed does no harm.
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
