package saturation

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// State is the memory of a Scaler for one model: plain data, with an entry for each variant in transition or with pending
// replicas. Nothing else in it grows. The zero value is a fresh start. Mode Literal has no memory.
type State struct { //nolint:recvcheck // a plain value; inner methods change it in place
	Seen scaling.Stamp `json:"seen,omitzero"` // time of the last decision
	// SafeSince is the time since which a scale-down has been safe without interruption; not set if it is not safe.
	SafeSince scaling.Stamp `json:"safeSince,omitzero"`
	// Spare is the capacity of the replica that may be removed, where capacities differ. It grows only where no smaller replica may be
	// removed, and then the time of "safe" restarts: that the rest can take the load of a smaller one says nothing of a larger one.
	Spare float64 `json:"spare,omitzero"`
	// Rules is a fingerprint of the thresholds, and Fleet the number of replicas asked for. If one of them changes, the time
	// of "safe" restarts.
	Rules Fingerprint `json:"rules,omitzero"`
	Fleet int64       `json:"fleet,omitzero"`
	// Transitions are the variants in transition or with pending replicas, in order of their names.
	Transitions []Transition `json:"transitions,omitempty"`
}

// A Transition is a variant that is in transition from one count to another, or whose replicas do not all report or are not
// all ready.
type Transition struct {
	Variant string        `json:"variant"`
	Current int32         `json:"current"`
	Wish    int32         `json:"wish"`  // the count that it is in transition to
	Since   scaling.Stamp `json:"since"` // time at which it was first seen with these counts
}

// A Fingerprint identifies a set of thresholds. In JSON it is 16 hexadecimal digits, since some JSON readers cannot hold 64
// bits in a number.
type Fingerprint uint64

// MarshalText writes 16 hexadecimal digits.
func (f Fingerprint) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%016x", uint64(f)), nil
}

// UnmarshalText reads what MarshalText wrote.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return fmt.Errorf("%q: must be 16 hexadecimal digits", text)
	}
	*f = Fingerprint(v)
	return nil
}

// Validate reports an error for a state that no Scaler can have written.
func (s State) Validate() error {
	var errs []error
	after := func(t scaling.Stamp) bool { return t.Set && (!s.Seen.Set || t.Milli > s.Seen.Milli) }
	if after(s.SafeSince) {
		errs = append(errs, errors.New("safeSince: must be a time up to seen"))
	}
	if !(s.Spare >= 0) || math.IsInf(s.Spare, 1) {
		errs = append(errs, errors.New("spare: must be a number that is not negative"))
	}
	for i, t := range s.Transitions {
		if !t.Since.Set {
			errs = append(errs, fmt.Errorf("transitions[%d].since: must be set", i))
		}
		if after(t.Since) {
			errs = append(errs, fmt.Errorf("transitions[%d].since: must be a time up to seen", i))
		}
		if i > 0 && s.Transitions[i-1].Variant >= t.Variant {
			errs = append(errs, fmt.Errorf("transitions[%d].variant: %q: must come after %q", i, t.Variant, s.Transitions[i-1].Variant))
		}
	}
	return errors.Join(errs...)
}

// turnBack returns by how many milliseconds the clock is behind the last decision, and moves every remembered time back by
// as much: waiting times stay as long as they were.
func (s *State) turnBack(now int64) int64 {
	if !s.Seen.Set || now >= s.Seen.Milli {
		return 0
	}
	back := s.Seen.Milli - now
	s.SafeSince = s.SafeSince.Back(back)
	for i := range s.Transitions {
		s.Transitions[i].Since = s.Transitions[i].Since.Back(back)
	}
	return back
}

// settle records whether a scale-down is safe at now, and returns for how many milliseconds it has been safe. Between two
// decisions that found it safe it is assumed to have been safe.
func (s *State) settle(now int64, safe bool, spare float64, rules Fingerprint, fleet int64) int64 {
	if !safe || spare > s.Spare || s.Rules != rules || s.Fleet != fleet {
		s.SafeSince = scaling.Stamp{}
	}
	if safe && !s.SafeSince.Set {
		s.SafeSince = scaling.Stamp{Set: true, Milli: now}
	}
	s.Spare, s.Rules, s.Fleet = spare, rules, fleet
	if !safe {
		return 0
	}
	return now - s.SafeSince.Milli
}

// Applied records that a variant went from one count to another at now: the down stabilization restarts. The call is not
// needed if the next decision sees the new count, which has the same effect.
func (s Scaler) Applied(state State, now time.Time, from, to int32) State {
	if s.rules == 0 || s.config.Mode == Literal || from == to {
		return state
	}
	if state.turnBack(window.Milli(now)) > 0 {
		state.Seen = scaling.StampOf(now) // otherwise the next decision would turn the clock back once more
	}
	state.SafeSince = scaling.Stamp{}
	return state
}
