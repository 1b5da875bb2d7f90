package scaling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A Kind says whose state a stored state is.
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
	Stored Kind  // what the state says of itself; zero if it cannot be read
	Policy Kind  // what the policy reads
	Err    error // ErrNewerState, ErrOtherState or what is wrong with the bytes
}

// Error returns the stored kind and the policy's, those of them that have a name, and the reason.
func (e *StateError) Error() string {
	return fmt.Sprintf("state%s refused%s: %v", e.Stored.after(" of "), e.Policy.after(" by policy "), e.Err)
}

// after returns a word and the kind; nothing of a kind without a name.
func (k Kind) after(word string) string {
	if k.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s%s version %d", word, k.Name, k.Version)
}

// Unwrap returns the reason.
func (e *StateError) Unwrap() error { return e.Err }

// An Envelope is what every stored state of this module is in: the kind and version of who wrote it, and the state.
//
//	{"kind": "realtime", "version": 1, "state": {...}}
//
// It keeps a state that it refused, byte for byte, so that nothing is overwritten until a good one is given to it. The
// zero value is ready for use, and has refused nothing.
type Envelope struct {
	refused []byte
}

type sealedState struct {
	Kind
	State json.RawMessage `json:"state"`
}

// Refused reports whether the last state that Open was given was refused.
func (e *Envelope) Refused() bool { return e.refused != nil }

// Seal returns the state that save returns as it is to be stored, or the bytes that were refused as they were.
func (e *Envelope) Seal(kind Kind, save func() (any, error)) ([]byte, error) {
	if e.refused != nil {
		if !json.Valid(e.refused) {
			return nil, &StateError{Policy: kind, Err: errors.New("the refused state is not JSON: keep the stored bytes")}
		}
		return e.refused, nil
	}
	state, err := save()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealedState{Kind: kind, State: data})
}

// Open gives what is in a stored envelope to load. Bytes that are not JSON, another kind, a version that is newer or
// below 1, a missing state and an error of load are a *StateError; then the bytes are kept as refused.
func (e *Envelope) Open(kind Kind, data []byte, load func(state []byte) error) error {
	if err := open(kind, data, load); err != nil {
		e.refused = bytes.Clone(data)
		if e.refused == nil {
			e.refused = []byte{}
		}
		return err
	}
	e.refused = nil
	return nil
}

func open(want Kind, data []byte, load func(state []byte) error) error {
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
	case len(s.State) == 0 || string(s.State) == "null":
		err = errors.New("the field state is missing")
	default:
		err = load(s.State)
	}
	if err != nil {
		return &StateError{Stored: s.Kind, Policy: want, Err: err}
	}
	return nil
}

// DecodeState reads a state strictly: a field that the type does not have means damage, as the version is known. A
// state that has a method Validate is asked whether it is one that can have been written. null is no state, and nothing may follow one.
func DecodeState[S any](data []byte) (S, error) {
	var s S
	err := decodeStrictly(data, &s)
	if err == nil && string(bytes.TrimSpace(data)) == "null" {
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
