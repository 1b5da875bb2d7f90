package loop

import (
	"encoding/json"
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// CarryOver converts the stored state of a previous Loop into the state for a Loop with another policy: another composition,
// which may have algorithms in common with the previous one.
//
// An algorithm that is in both keeps its memory, and so do a stabilization, rate limits, and a forecast over an algorithm that
// is in both. A new algorithm starts fresh and is told of the last change that was carried out, so that a running cooldown
// goes on. Open writes stay open, and the state still belongs to its target. What concerns only a composition as a whole, such as
// a change that a timetable asked for and that is not carried out yet, is dropped.
//
// The policy must be fresh, and CarryOver leaves it so. An error says why the stored state cannot be used.
func CarryOver(previous []byte, policy scaling.Policy) (state []byte, err error) {
	if policy == nil {
		return nil, &scaling.FieldError{Field: "policy", Rule: "must be set"}
	}
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
	if err := gather(s.Group, memories, 0); err != nil {
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
	group, err := scaling.Durable(policy)
	if err != nil {
		return nil, err
	}
	return seal(s.memory, group)
}

// A part is the state of a policy: of an algorithm, or of a composition, which contains the states of its policies.
type part struct {
	scaling.Kind

	State json.RawMessage `json:"state"`
}

// each replaces the state of every policy in a composition with what f returns for it. It reports whether m is a composition;
// anything else counts as one algorithm.
func (m *part) each(f func(json.RawMessage) (json.RawMessage, error)) (composed bool, err error) {
	switch m.Name {
	case "highest", "floor", "bounded", "stabilized", "ratelimited", "forecast":
	default:
		return false, nil
	}
	parts, err := m.parts()
	if err != nil {
		return true, err
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

func (m *part) parts() (map[string]json.RawMessage, error) {
	parts := make(map[string]json.RawMessage)
	if err := json.Unmarshal(m.State, &parts); err != nil {
		return nil, fmt.Errorf("state of %s: %w", m.Name, err)
	}
	return parts, nil
}

// memory names what m remembers beside the states that it contains, or returns "" if that is nothing. A stabilization and rate
// limits remember what the policy within them asked for and did; a forecast remembers the demand of the one policy that it is
// over.
func (m *part) memory() string {
	switch m.Name {
	case "highest", "floor", "bounded":
		return ""
	case "forecast":
		var s struct {
			Base scaling.Kind `json:"base"`
		}
		_ = json.Unmarshal(m.State, &s) // on an error the name has no base
		return m.Name + " over " + s.Base.Name
	}
	return m.Name
}

// deepest is how deep compositions may be nested in a stored state: each level is read and copied again, and what is stored may be
// anybody's.
const deepest = 32

// gather collects the states of the algorithms, and of compositions that remember something, by the names from memory.
func gather(data []byte, into map[string]json.RawMessage, depth int) error {
	if depth > deepest {
		return fmt.Errorf("compositions are nested more than %d deep", deepest)
	}
	var m part
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	_, err := m.each(func(state json.RawMessage) (json.RawMessage, error) { return state, gather(state, into, depth+1) })
	if name := m.memory(); err == nil && name != "" {
		into[name] = data
	}
	return err
}

// graft replaces the states in data with the gathered ones of the same names.
func graft(data []byte, memories map[string]json.RawMessage) (json.RawMessage, error) {
	var m part
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	composed, err := m.each(func(state json.RawMessage) (json.RawMessage, error) { return graft(state, memories) })
	if err != nil {
		return nil, err
	}
	kept, ok := memories[m.memory()]
	switch {
	case ok && composed:
		return m.around(kept)
	case composed:
		return json.Marshal(m)
	case ok:
		return kept, nil
	}
	return data, nil
}

// around returns the memory of another state of the same kind around the base of m.
func (m *part) around(kept json.RawMessage) (json.RawMessage, error) {
	own, err := m.parts()
	if err != nil {
		return nil, err
	}
	var other part
	if err := json.Unmarshal(kept, &other); err != nil {
		return nil, err
	}
	parts, err := other.parts()
	if err != nil {
		return nil, err
	}
	delete(parts, "lift")
	parts["base"] = own["base"]
	if other.State, err = json.Marshal(parts); err != nil {
		return nil, err
	}
	return json.Marshal(other)
}
