package scaling

import (
	"bytes"
	"encoding/json"
)

// volatile is the name of the members of a state, at any depth, that are not stored.
const volatile = "volatile"

// Durable returns the state of a Policy or Group as it is stored: what MarshalJSON returns without the members named "volatile", at
// any depth, which the algorithm gathers anew after a restart. UnmarshalJSON restores it. The names of the members of Highest are
// the caller's, and none of them is left out.
//
// What can be large is not even marshalled: a policy or group with a method MarshalDurable, as those of this module have, is asked
// for it, and so is the state S of a Stepper with a method Durable() S, which returns S without its volatile members. These must
// be left out of the JSON where they are zero. Of any other policy the members are cut out of MarshalJSON's result. A type that
// embeds one with that method, and has a state of its own, must have the method too.
func Durable(m json.Marshaler) ([]byte, error) {
	if d, ok := m.(interface{ MarshalDurable() ([]byte, error) }); ok {
		return d.MarshalDurable()
	}
	state, err := m.MarshalJSON()
	return lasting(state), err
}

// A form says how much of a state is marshalled.
type form bool

const (
	entire  form = false
	durable form = true
)

// of returns a state in the form.
func (f form) of(m json.Marshaler) ([]byte, error) {
	if f == durable {
		return Durable(m)
	}
	return m.MarshalJSON()
}

// lasting returns a state without its volatile members.
func lasting(state json.RawMessage) json.RawMessage {
	if !bytes.Contains(state, []byte(`"`+volatile+`"`)) {
		return state
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(state, &members) == nil {
		delete(members, volatile)
		for name, m := range members {
			members[name] = lasting(m)
		}
		return packed(members, state)
	}
	var items []json.RawMessage
	if json.Unmarshal(state, &items) != nil {
		return state // a string with that word
	}
	for i := range items {
		items[i] = lasting(items[i])
	}
	return packed(items, state)
}

// packed returns a value as JSON, or otherwise if there is none.
func packed(value any, otherwise json.RawMessage) json.RawMessage {
	if data, err := json.Marshal(value); err == nil {
		return data
	}
	return otherwise
}
