package scaling

import (
	"encoding/json"
	"time"
)

// A Slot is what a timetable asks for at one instant.
type Slot struct {
	Replicas int32     // the count asked for; meaningful only if InForce
	InForce  bool      // whether the timetable asks for a count
	Because  Step      // the rule in force; only its Code, Subject and Numbers are used
	Next     time.Time // when the slot can next change; zero for never
}

// A Timetable asks for replicas based on the time alone, as cronscale does.
type Timetable interface {
	At(now time.Time) Slot
}

// Floor returns base with a timetable as its lower limit, within bounds:
//
//	replicas = max(base, clamp(timetable))
//
// base is asked first and sees every observation. A change that the timetable causes (base did not decide Up) is not reported
// to base, so that base's cooldown does not start; base may then act once more on a sample from before that change. An Unknown
// of base stays Unknown unless the floor lifts the count.
//
// Bounds take precedence, as everywhere: a count outside them moves to the nearest bound at once.
func Floor(base Policy, timetable Timetable, bounds Bounds) (Policy, error) {
	var e FieldErrors
	e.Check(timetable != nil, "timetable", timetable, "must be set")
	e.Add(bounds.Validate("bounds"))
	return around(&floor{name: "floor", base: base, timetable: timetable, bounds: bounds}, base, e.Err())
}

type floor struct {
	name      string
	base      Policy
	timetable Timetable
	bounds    Bounds
	lift      lift
}

// lift is the last change that the timetable or the bounds asked for but base did not, until it is carried out.
type lift struct {
	From int32 `json:"from,omitempty"`
	To   int32 `json:"to,omitempty"`
}

type floorState struct {
	Base json.RawMessage `json:"base"`
	Lift *lift           `json:"lift,omitempty"`
}

func (f *floor) kind() Kind { return Kind{f.name, 1} }

func (f *floor) decide(now time.Time, obs Observation) Decision {
	d := f.base.Decide(now, obs)
	wish := d.Verdict
	f.lift = lift{}
	slot := f.timetable.At(now)
	if slot.Because.Code == NotConfigured {
		u := UnknownAt(obs.SpecReplicas, NotConfigured, "timetable")
		u.ConsiderAll(&d)
		return u
	}
	d.NextBy(slot.Next)
	if slot.InForce {
		want := f.bounds.Clamp(slot.Replicas)
		b := slot.Because
		if d.Replicas < want {
			d.To(d.Replicas, b.Code, b.Subject, b.Numbers[:]...)
			d.To(want, Lifted, b.Subject, float64(d.Replicas), float64(want))
		} else {
			d.Consider(want, b.Code, b.Subject, b.Numbers[:]...)
		}
	}
	d.Clamp(f.bounds)
	if d.Acts() && d.Verdict != wish {
		f.lift = lift{From: d.From, To: d.Replicas}
	}
	return d
}

func (f *floor) applied(now time.Time, from, to int32) {
	// All of the lift, or the part of it that a limit around the floor let through.
	if l := f.lift; from == l.From && (l.From < to && to <= l.To || l.To <= to && to < l.From) {
		f.lift = lift{}
		return
	}
	f.base.Applied(now, from, to)
}

func (f *floor) save(form form) (any, error) {
	base, err := form.of(f.base)
	s := floorState{Base: base}
	if f.lift != (lift{}) {
		s.Lift = &f.lift
	}
	return s, err
}

func (f *floor) snapshot() (restore func() error, err error) {
	lift := f.lift
	return snapshotWith(f.base, func() { f.lift = lift })
}

func (f *floor) load(data []byte) error {
	var s floorState
	if err := decodeStrictly(data, &s); err != nil {
		return err
	}
	if err := f.base.UnmarshalJSON(s.Base); err != nil {
		return err
	}
	f.lift = lift{}
	if s.Lift != nil {
		f.lift = *s.Lift
	}
	return nil
}

// Bounded returns base kept within bounds: a count outside them moves to the nearest bound at once, whatever base decides, and
// the count that base asks for is clamped. Base is asked every time, so that its state takes in every observation. A change
// that only the bounds cause is not reported to base.
func Bounded(base Policy, bounds Bounds) (Policy, error) {
	return around(&floor{name: "bounded", base: base, timetable: never{}, bounds: bounds}, base, bounds.Validate("bounds"))
}

// never is the timetable that asks for nothing.
type never struct{}

func (never) At(time.Time) Slot { return Slot{} }
