package scaling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Stepper is a scaling algorithm: its configuration is the value itself, its memory is S.
//
// Both steps are pure: they do no I/O, read no clock and keep nothing. S is plain data whose zero value is a fresh
// start. Like a slice given to append, the state passed in is spent; the one returned is the one to keep.
type Stepper[S any] interface {
	// Kind names the algorithm and the version of S, as stamped on stored state.
	Kind() Kind
	// Decide looks at obs at time now and returns the state's successor and what to do.
	Decide(s S, now time.Time, obs Observation) (S, Decision)
	// Applied records that the target went from one count to another at now. Cooldowns start here and not in
	// Decide: a decision that nobody carried out starts none.
	Applied(s S, now time.Time, from, to int32) S
}

// A Kind says whose state a stored state is.
type Kind struct {
	Name    string `json:"kind"`
	Version int    `json:"version"`
}

// A Policy is a live algorithm: a Stepper with its state, or a composition of Policies. Loops, adapters and the
// simulator know only this. A Policy is not safe for concurrent use.
//
// The caller's duties, in order: Decide; store the state (MarshalJSON); carry the decision out, if it acts; report
// a change that was carried out with Applied; store the state again. What a crash loses in between is repeated, as
// decisions are absolute counts. A write that was refused is not reported.
//
// UnmarshalJSON takes a stored state back. A state of another kind, of a newer version or damaged is refused with a
// *StateError; from then on the policy decides Unknown and marshals the refused bytes unchanged, so that nothing is
// overwritten, until a good state is given to it. Call it yourself: json.Unmarshal looks at the bytes first, and never
// tells the policy about some that are not JSON.
type Policy interface {
	Decide(now time.Time, obs Observation) Decision
	Applied(now time.Time, from, to int32)
	json.Marshaler
	json.Unmarshaler
}

// ErrNewerState is wrapped by the StateError of a state that a newer version of this library wrote.
var ErrNewerState = errors.New("state was written by a newer version")

// ErrOtherState is wrapped by the StateError of a state that another kind of policy wrote.
var ErrOtherState = errors.New("state is of another kind of policy")

// A StateError says why a stored state was refused.
type StateError struct {
	Stored Kind  // what the state says of itself; zero if it cannot be read
	Policy Kind  // what the policy reads
	Err    error // ErrNewerState, ErrOtherState or what is wrong with the bytes
}

// Error returns the policy's kind, the stored kind and the reason.
func (e *StateError) Error() string {
	return fmt.Sprintf("state of %s version %d refused by policy %s version %d: %v",
		e.Stored.Name, e.Stored.Version, e.Policy.Name, e.Policy.Version, e.Err)
}

// Unwrap returns the reason.
func (e *StateError) Unwrap() error { return e.Err }

// New returns the live Policy of an algorithm, with a fresh state.
func New[S any](stepper Stepper[S]) Policy {
	return &sealed{body: &live[S]{stepper: stepper}}
}

// live is a Stepper with its state.
type live[S any] struct {
	stepper Stepper[S]
	state   S
}

func (l *live[S]) kind() Kind { return l.stepper.Kind() }

func (l *live[S]) decide(now time.Time, obs Observation) (d Decision) {
	l.state, d = l.stepper.Decide(l.state, now, obs)
	return d
}

func (l *live[S]) applied(now time.Time, from, to int32) {
	l.state = l.stepper.Applied(l.state, now, from, to)
}

func (l *live[S]) save() (any, error) { return l.state, nil }

func (l *live[S]) load(data []byte) error {
	var s S
	if err := decodeStrictly(data, &s); err != nil {
		return err
	}
	if v, ok := any(s).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	l.state = s
	return nil
}

// body is what a Policy does when its state is in order.
type body interface {
	kind() Kind
	decide(now time.Time, obs Observation) Decision
	applied(now time.Time, from, to int32)
	save() (any, error)
	load(data []byte) error
}

// sealed is a Policy: a body, and the stored state that was refused, if any.
type sealed struct {
	body
	refused []byte
}

func (p *sealed) Decide(now time.Time, obs Observation) Decision {
	if p.refused != nil {
		return UnknownAt(obs.SpecReplicas, StateRefused, p.kind().Name)
	}
	return p.decide(now, obs)
}

func (p *sealed) Applied(now time.Time, from, to int32) {
	if p.refused == nil {
		p.applied(now, from, to)
	}
}

type envelope struct {
	Kind
	State json.RawMessage `json:"state"`
}

func (p *sealed) MarshalJSON() ([]byte, error) {
	if p.refused != nil {
		if !json.Valid(p.refused) {
			return nil, &StateError{Policy: p.kind(), Err: errors.New("the refused state is not JSON: keep the stored bytes")}
		}
		return p.refused, nil
	}
	state, err := p.save()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{Kind: p.kind(), State: data})
}

func (p *sealed) UnmarshalJSON(data []byte) error {
	if err := p.restore(data); err != nil {
		p.refused = bytes.Clone(data)
		return err
	}
	p.refused = nil
	return nil
}

func (p *sealed) restore(data []byte) error {
	want := p.kind()
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return &StateError{Policy: want, Err: err}
	}
	var err error
	switch {
	case e.Name != want.Name:
		err = ErrOtherState
	case e.Version > want.Version:
		err = ErrNewerState
	case e.Version < 1:
		err = fmt.Errorf("version %d does not exist", e.Version)
	case len(e.State) == 0 || string(e.State) == "null":
		err = errors.New("the field state is missing")
	default:
		err = p.load(e.State)
	}
	if err != nil {
		return &StateError{Stored: e.Kind, Policy: want, Err: err}
	}
	return nil
}

// decodeStrictly refuses fields that the type does not have: in a state of a known version they mean damage.
func decodeStrictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
