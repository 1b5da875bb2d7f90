package loop

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// memory is what is stored, beside the kind:
//
//	{"targets":[{"key":"Deployment.apps models/chat","id":"..."}],
//	"open":[{"key":"...","from":3,"to":4,"at":1700000000000,"version":"7"}],
//	"last":{"from":2,"to":3,"at":1699999000000},"group":{...}}
type memory struct {
	Targets []subject `json:"targets,omitempty"` // whose the state is; none if that is not known
	Open    []intent  `json:"open,omitempty"`    // writes that may or may not have happened
	Last    *change   `json:"last,omitempty"`    // what the group was told of last
	// Contests are of targets of which somebody else took writes back.
	Contests []contest `json:"contests,omitempty"`
}

type stored struct {
	memory

	Group json.RawMessage `json:"group"`
}

// A subject says which target a state, or a part of it, is about.
type subject struct {
	Key string `json:"key"`
	ID  string `json:"id,omitempty"`
}

// about reports whether the subject is a target: by ID, or where that is not known by key.
func (s *subject) about(t *Target) bool {
	if s.ID != "" && t.ID != "" {
		return s.ID == t.ID
	}
	return s.Key == t.Key
}

// A change is what the group was told of last, all targets together.
type change struct {
	From int32         `json:"from"`
	To   int32         `json:"to"`
	At   scaling.Stamp `json:"at"`
}

// An intent is a write that was about to be made.
type intent struct {
	subject

	From int32         `json:"from"`
	To   int32         `json:"to"`
	At   scaling.Stamp `json:"at"`
	// Version is what the write was conditional on: while the target still has it, the write can yet arrive.
	Version string `json:"version,omitempty"`
	// Answered says that the answer was a conflict. That may be the write's own doing: a client that is told to try
	// again after a server error does, and the second try finds what the first one wrote.
	Answered bool `json:"answered,omitempty"`
	// Delegated says that somebody else was to write.
	Delegated bool `json:"delegated,omitempty"`
}

// happened reports whether the write shows in what the target is now. A count that is neither from nor to is somebody
// else's, which is as good a reason to wait; but not if the write was answered, and not if it was somebody else's to
// make and went the other way.
func (w *intent) happened(t *Target) bool {
	if w.ID != "" && t.ID != "" && w.ID != t.ID {
		return false // made anew under its name
	}
	if w.Delegated {
		return w.To > w.From && t.Replicas > w.From || w.To < w.From && t.Replicas < w.From
	}
	return t.Replicas != w.From && (!w.Answered || t.Replicas == w.To)
}

// pending reports whether the write can yet arrive.
func (w *intent) pending(t *Target) bool {
	return !w.Answered && !w.Delegated && t.Version == w.Version
}

func kind() scaling.Kind { return scaling.Kind{Name: "loop", Version: 1} }

// State returns what is to be stored at this moment. Between rounds that is what a restart needs.
func (l *Loop) State() ([]byte, error) {
	group, err := l.group.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return seal(l.memory, group)
}

// volatile is the name of what is not stored of a state, at whatever depth.
const volatile = "volatile"

// brief returns a state without what is volatile.
func brief(state json.RawMessage) json.RawMessage {
	if !bytes.Contains(state, []byte(`"`+volatile+`"`)) {
		return state
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(state, &members) == nil {
		delete(members, volatile)
		for name, m := range members {
			members[name] = brief(m)
		}
		return packed(members, state)
	}
	var items []json.RawMessage
	if json.Unmarshal(state, &items) != nil {
		return state // a text that says so
	}
	for i := range items {
		items[i] = brief(items[i])
	}
	return packed(items, state)
}

// packed returns a value in JSON, or otherwise what it is of.
func packed(value any, otherwise json.RawMessage) json.RawMessage {
	if data, err := json.Marshal(value); err == nil {
		return data
	}
	return otherwise
}

func seal(m memory, group json.RawMessage) ([]byte, error) {
	var e scaling.Envelope
	return e.Seal(kind(), func() (any, error) { return stored{m, brief(group)}, nil })
}

// unseal reads what seal returned, or the bare state of a group.
func unseal(data []byte) (s stored, err error) {
	var k scaling.Kind
	if json.Unmarshal(data, &k) == nil && k.Name != "" && k.Name != kind().Name {
		return stored{Group: data}, nil
	}
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '[' && json.Valid(data) {
		return stored{Group: data}, nil // of scaling.Each
	}
	var e scaling.Envelope
	err = e.Open(kind(), data, func(state []byte) error {
		s, err = scaling.DecodeState[stored](state)
		return err
	})
	return s, err
}

// Validate reports a state that no Loop can have written.
func (s stored) Validate() error {
	var e scaling.FieldErrors
	e.Check(len(s.Group) > 0, "group", nil, "must be given")
	for _, w := range s.Open {
		e.Check(w.At.Set, "open.at", nil, "must be given")
		e.Check(w.From >= 0, "open.from", w.From, "must not be negative")
		e.Check(w.To >= 0, "open.to", w.To, "must not be negative")
	}
	for _, c := range s.Contests {
		e.Check(len(c.Times) > 0 && len(c.Times) <= Reversals, "contests.times", len(c.Times), fmt.Sprintf("must be 1 to %d", Reversals))
		e.Check(c.Level >= 0, "contests.level", c.Level, "must not be negative")
	}
	return e.Err()
}

// adopt takes a stored state over; nothing is a fresh start.
func (l *Loop) adopt(data []byte) error {
	l.memory = memory{}
	if len(data) == 0 {
		return l.group.UnmarshalJSON(l.fresh)
	}
	s, err := unseal(data)
	if err != nil {
		return err
	}
	if err := l.group.UnmarshalJSON(s.Group); err != nil {
		return err
	}
	l.memory = s.memory
	return nil
}
