package loop

import (
	"encoding/json"
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// CarryOver returns what a Loop is to find as its state that has another policy than the loop before it, of which stored
// is the state: another composition of algorithms, of which some may be in both.
//
// An algorithm that is in both keeps its memory. One that is new begins afresh, and is told of the last change that was
// carried out, so that a cooldown that runs goes on. Writes that are open stay so, and the state stays that of its
// target. What is told to a composition as a whole, as the change that a timetable asked for and that is not carried out
// yet, is dropped.
//
// The policy must be fresh, and is so afterwards. An error says why the stored state cannot be used.
func CarryOver(previous []byte, policy scaling.Policy) (state []byte, err error) {
	fresh, err := policy.MarshalJSON()
	if err != nil {
		return nil, err
	}
	defer func() {
		if bad := policy.UnmarshalJSON(fresh); err == nil {
			err = bad
		}
	}()
	s, err := unseal(previous)
	if err != nil {
		return nil, err
	}
	memories := make(map[string]json.RawMessage)
	if err := gather(s.Group, memories); err != nil {
		return nil, &scaling.StateError{Policy: kind(), Err: err}
	}
	if s.Last != nil {
		policy.Applied(s.Last.At.Time(), s.Last.From, s.Last.To)
	}
	told, err := policy.MarshalJSON()
	if err != nil {
		return nil, err
	}
	kept, err := graft(told, memories)
	if err != nil {
		return nil, err
	}
	if err := policy.UnmarshalJSON(kept); err != nil {
		return nil, err
	}
	group, err := policy.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return seal(s.memory, group)
}

// A part is the state of a policy: of an algorithm, or of a composition with the states of what it is made of.
type part struct {
	scaling.Kind

	State json.RawMessage `json:"state"`
}

// each calls f with the state of every policy that a composition by scaling.Highest, scaling.Floor or scaling.Bounded is
// made of, and puts what it returns in its place. It reports whether it is one; anything else counts as one algorithm.
func (m *part) each(f func(json.RawMessage) (json.RawMessage, error)) (composed bool, err error) {
	if m.Name != "highest" && m.Name != "floor" && m.Name != "bounded" {
		return false, nil
	}
	parts := make(map[string]json.RawMessage)
	if err := json.Unmarshal(m.State, &parts); err != nil {
		return true, fmt.Errorf("state of %s: %w", m.Name, err)
	}
	for name, state := range parts {
		if m.Name != "highest" && name != "base" {
			continue
		}
		if parts[name], err = f(state); err != nil {
			return true, err
		}
	}
	m.State, err = json.Marshal(parts)
	return true, err
}

// gather collects the states of the algorithms by their kinds.
func gather(data []byte, into map[string]json.RawMessage) error {
	var m part
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	composed, err := m.each(func(state json.RawMessage) (json.RawMessage, error) { return state, gather(state, into) })
	if err == nil && !composed {
		into[m.Name] = data
	}
	return err
}

// graft puts the states that were gathered in the places of those of the same kinds.
func graft(data []byte, memories map[string]json.RawMessage) (json.RawMessage, error) {
	var m part
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	composed, err := m.each(func(state json.RawMessage) (json.RawMessage, error) { return graft(state, memories) })
	switch kept, ok := memories[m.Name]; {
	case err != nil:
		return nil, err
	case composed:
		return json.Marshal(m)
	case ok:
		return kept, nil
	}
	return data, nil
}
