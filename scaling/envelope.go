package scaling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A Kind names the policy that a stored state belongs to and the version of the state's format.
type Kind struct {
	Name    string `json:"kind"`
	Version int    `json:"version"`
}

// ErrNewerState is wrapped by the StateError of a state that a newer version of this library wrote.
var ErrNewerState = errors.New("state was written by a newer version")

// ErrOtherState is wrapped by the StateError of a state that another kind of policy wrote.
var ErrOtherState = errors.New("state is of another kind of policy")

// A StateError says why a stored state was refused.
type StateError struct {
	Stored Kind  // kind that the state declares; zero if it cannot be read
	Policy Kind  // kind that the policy reads
	Err    error // ErrNewerState, ErrOtherState or what is wrong with the bytes
}

// Error returns the reason with the stored kind and the policy's kind, as far as they have names.
func (e *StateError) Error() string {
	return fmt.Sprintf("state%s refused%s: %v", e.Stored.after(" of "), e.Policy.after(" by policy "), e.Err)
}

// after returns the word followed by the kind, or nothing for a kind without a name.
func (k Kind) after(word string) string {
	if k.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s%s version %d", word, k.Name, k.Version)
}

func (k Kind) check() error {
	if k.Name != "" && k.Version >= 1 {
		return nil
	}
	var e FieldErrors
	e.Check(k.Name != "", "kind", k.Name, "must not be empty")
	e.Check(k.Version >= 1, "version", k.Version, "must be at least 1")
	return e.Err()
}

// Unwrap returns the reason.
func (e *StateError) Unwrap() error { return e.Err }

// An Envelope wraps every stored state of this module with the kind and version of the policy that wrote it:
//
//	{"kind": "realtime", "version": 1, "state": {...}}
//
// It keeps a refused state byte for byte, so that nothing is overwritten until it is given a valid one. The zero value is
// ready to use and has refused nothing.
type Envelope struct {
	refused []byte
}

type sealedState struct {
	Kind
	State json.RawMessage `json:"state"`
}

// Refused reports whether Open refused the last state that it was given.
func (e *Envelope) Refused() bool { return e.refused != nil }

// Seal returns the state from save in its envelope, ready to be stored, or the refused bytes unchanged. Refused bytes that are
// not JSON are a *StateError. A kind without a name, or with a version below 1, is an error: Open would refuse its state.
func (e *Envelope) Seal(kind Kind, save func() (any, error)) ([]byte, error) {
	if e.refused != nil {
		if !json.Valid(e.refused) {
			return nil, &StateError{Policy: kind, Err: errors.New("the refused state is not JSON: keep the stored bytes")}
		}
		return bytes.Clone(e.refused), nil // what is returned belongs to the caller
	}
	state, err := save()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	if err := kind.check(); err != nil {
		return nil, err
	}
	return json.Marshal(sealedState{Kind: kind, State: data})
}

// Open passes the state in a stored envelope to load. Bytes that are not JSON, another kind, a version that is newer or
// below 1, a missing state and an error of load are a *StateError; Open then keeps the bytes as refused.
func (e *Envelope) Open(kind Kind, data []byte, load func(state []byte) error) error {
	return e.open(kind, data, load, func() bool { return false })
}

// open is Open for a state that may be null.
func (e *Envelope) open(kind Kind, data []byte, load func(state []byte) error, null func() bool) error {
	if err := open(kind, data, load, null); err != nil {
		e.refused = bytes.Clone(data)
		if e.refused == nil {
			e.refused = []byte{}
		}
		return err
	}
	e.refused = nil
	return nil
}

func open(want Kind, data []byte, load func(state []byte) error, null func() bool) error {
	var s sealedState
	if err := json.Unmarshal(data, &s); err != nil {
		return &StateError{Policy: want, Err: err}
	}
	var err error
	switch {
	case s.Name != want.Name:
		err = ErrOtherState
	case s.Version > want.Version:
		err = ErrNewerState
	case s.Version < 1:
		err = fmt.Errorf("version %d does not exist", s.Version)
	case len(s.State) == 0 || string(s.State) == "null" && !null():
		err = errors.New("the field state is missing")
	default:
		err = load(s.State)
	}
	if err != nil {
		return &StateError{Stored: s.Kind, Policy: want, Err: err}
	}
	return nil
}

// DecodeState reads a state strictly: since the version is known, a field that the type does not have means damage. A state
// with a method Validate is checked with it. null is a state only if the zero value of S is written so, as that of a map, a slice
// or a pointer is. Nothing may follow the state.
func DecodeState[S any](data []byte) (S, error) {
	var s S
	err := decodeStrictly(data, &s)
	if err == nil && string(bytes.TrimSpace(data)) == "null" {
		if isNull[S]() {
			return s, nil
		}
		err = errors.New("null: must be a state")
	}
	if v, ok := any(s).(interface{ Validate() error }); ok && err == nil {
		err = v.Validate()
	}
	if err != nil {
		var none S
		return none, err
	}
	return s, nil
}

// isNull reports whether the zero value of S is null in JSON.
func isNull[S any]() bool {
	var zero S
	data, err := json.Marshal(zero)
	return err == nil && string(data) == "null"
}

// decodeStrictly refuses fields that the type does not have: in a state of a known version they mean damage.
func decodeStrictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if !json.Valid(data) {
		return errors.New("must be followed by nothing")
	}
	return nil
}
