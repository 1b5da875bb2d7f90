package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/inferscale/inferscale/scaling"
)

// CarryOver converts the stored state of a previous Loop into the state for a Loop with another policy: another composition,
// which may have algorithms in common with the previous one.
//
// An algorithm that is in both keeps its memory, and so do a stabilization, rate limits, and a forecast over an algorithm that
// is in both. Where a Highest has several of one kind, each keeps that of the member of its name, and a member of a new name
// starts fresh. A new algorithm, too, starts fresh; it is told of the last change that was carried out, so that a running cooldown
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
	before, own := make(memories), make(memories)
	if err := before.gather(s.Group, "", 0); err != nil {
		return nil, &scaling.StateError{Policy: kind(), Err: err}
	}
	if s.Last != nil {
		policy.Applied(s.Last.At.Time(), s.Last.From, s.Last.To)
	}
	told, err := policy.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if err := own.gather(told, "", 0); err != nil {
		return nil, err
	}
	kept, err := before.graft(told, "", own)
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

// each replaces the state of every policy in a composition with what f returns for it. place is where m is: the names of the
// members of Highest that it is in. It reports whether m is a composition; anything else counts as one algorithm.
func (m *part) each(place string, f func(state json.RawMessage, place string) (json.RawMessage, error)) (composed bool, err error) {
	switch m.Name {
	case "highest", "floor", "bounded", "stabilized", "ratelimited", "forecast":
	default:
		return false, nil
	}
	parts, err := m.parts()
	if err != nil {
		return true, err
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		in := place
		switch {
		case m.Name == "highest":
			in = place + "/" + strconv.Quote(name)
		case name != "base":
			continue
		}
		if parts[name], err = f(parts[name], in); err != nil {
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

// memories are the states of the algorithms, and of compositions that remember something, by the names from memory and then by place.
type memories map[string]map[string]json.RawMessage

// at returns the memory of a kind at a place, or else the only one of the kind, unless the policy, with its own memories, still has
// that one's place.
func (all memories) at(kind, place string, own memories) (json.RawMessage, bool) {
	of := all[kind]
	if kept, ok := of[place]; ok || len(of) != 1 {
		return kept, ok
	}
	for at, kept := range of {
		_, stays := own[kind][at]
		return kept, !stays
	}
	return nil, false
}

// gather collects the memories in data, which is at a place.
func (all memories) gather(data []byte, place string, depth int) error {
	if depth > deepest {
		return fmt.Errorf("compositions are nested more than %d deep", deepest)
	}
	var m part
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	_, err := m.each(place, func(state json.RawMessage, place string) (json.RawMessage, error) {
		return state, all.gather(state, place, depth+1)
	})
	if kind := m.memory(); err == nil && kind != "" {
		if all[kind] == nil {
			all[kind] = map[string]json.RawMessage{}
		}
		all[kind][place] = data
	}
	return err
}

// graft replaces the states in data, of a policy with its own memories, with those that were gathered.
func (all memories) graft(data []byte, place string, own memories) (json.RawMessage, error) {
	var m part
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	composed, err := m.each(place, func(state json.RawMessage, place string) (json.RawMessage, error) {
		return all.graft(state, place, own)
	})
	if err != nil {
		return nil, err
	}
	kept, ok := all.at(m.memory(), place, own)
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
