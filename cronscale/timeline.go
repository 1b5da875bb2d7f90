package cronscale

import (
	"iter"
	"time"
)

// A Change is an instant at which a timetable's answer changes, and the answer from then on.
type Change struct {
	At       time.Time // in UTC
	Replicas int32     // the count asked for, within the bounds; meaningful only if InForce
	InForce  bool      // whether the timetable asks for anything
	Name     string    // the policy or window that asks; empty if none does
}

// Timeline returns the timetable's answer at from and every change of it before to, in order, as for a plot. It is empty unless
// from is before to.
func (s Scaler) Timeline(from, to time.Time) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		var last Change
		first := true
		for at := from; at.Before(to); {
			slot := s.At(at)
			c := Change{At: at.UTC(), Replicas: slot.Replicas, InForce: slot.InForce}
			if slot.InForce {
				c.Name = slot.Because.Subject
			}
			if first || c.InForce != last.InForce || c.Replicas != last.Replicas {
				if !yield(c) {
					return
				}
				first, last = false, c
			}
			if slot.Next.IsZero() {
				return
			}
			at = slot.Next
		}
	}
}
