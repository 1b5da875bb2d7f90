package saturation

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// State is what a Scaler remembers of a model: plain data, with an entry for each variant in transition or
// with pending replicas and nothing else that grows. The zero value is a fresh start. In mode Literal nothing is remembered.
type State struct { //nolint:recvcheck // a plain value; inner methods change it in place
	Seen scaling.Stamp `json:"seen,omitzero"` // the last decision
	// SafeSince is since when a scale-down has been safe without a break; no time if it is not.
	SafeSince scaling.Stamp `json:"safeSince,omitzero"`
	// Rules is a fingerprint of the thresholds, and Fleet the number of replicas asked for: if one of them changes,
	// "safe" starts anew.
	Rules Fingerprint `json:"rules,omitzero"`
	Fleet int64       `json:"fleet,omitzero"`
	// Transitions has the variants in transition or with pending replicas, in order of their names.
	Transitions []Transition `json:"transitions,omitempty"`
}

// A Transition is a variant that is on its way from one count to another, or whose replicas do not all report or are
// not all ready.
type Transition struct {
	Variant string        `json:"variant"`
	Current int32         `json:"current"`
	Wish    int32         `json:"wish"`  // the count that it is on its way to
	Since   scaling.Stamp `json:"since"` // when it was first seen with these counts
}

// A Fingerprint identifies a set of thresholds. In JSON it is 16 hexadecimal digits, as not every reader of JSON can
// hold 64 bits.
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

// Validate reports a state that no Scaler can have written.
func (s State) Validate() error {
	var errs []error
	after := func(t scaling.Stamp) bool { return t.Set && (!s.Seen.Set || t.Milli > s.Seen.Milli) }
	if after(s.SafeSince) {
		errs = append(errs, errors.New("safeSince: must be a time up to seen"))
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

// turnBack returns by how many milliseconds the clock is behind the last decision, and moves every remembered time
// back by as much: what had been waited for stays waited for, and nothing more.
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

// settle notes whether a scale-down is safe at now, and returns for how many milliseconds it has been. Between two
// decisions that found it safe it is taken to have been.
func (s *State) settle(now int64, safe bool, rules Fingerprint, fleet int64) int64 {
	if !safe || s.Rules != rules || s.Fleet != fleet {
		s.SafeSince = scaling.Stamp{}
	}
	if safe && !s.SafeSince.Set {
		s.SafeSince = scaling.Stamp{Set: true, Milli: now}
	}
	s.Rules, s.Fleet = rules, fleet
	if !safe {
		return 0
	}
	return now - s.SafeSince.Milli
}

// Applied records that a variant went from one count to another at now: the down stabilization starts anew. It is not
// needed where the next decision sees the new count, which has the same effect.
func (s Scaler) Applied(state State, now time.Time, from, to int32) State {
	if s.rules == 0 || s.config.Mode == Literal || from == to {
		return state
	}
	if state.turnBack(window.Milli(now)) > 0 {
		state.Seen = scaling.StampOf(now) // or the next decision would turn back what is turned back already
	}
	state.SafeSince = scaling.Stamp{}
	return state
}
