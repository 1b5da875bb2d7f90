package loop

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// memory is what a Loop stores beside the group's state. Together, without the kind:
//
//	{"targets":[{"key":"Deployment.apps models/chat","id":"..."}],
//	"open":[{"key":"...","from":3,"to":4,"at":1700000000000,"version":"7"}],
//	"last":{"from":2,"to":3,"at":1699999000000},"group":{...}}
type memory struct {
	Targets []subject `json:"targets,omitempty"` // the targets that the state belongs to; none if that is not known
	Open    []intent  `json:"open,omitempty"`    // writes that may or may not have happened
	Last    *change   `json:"last,omitempty"`    // the last change that the group was told of
	// Contests are those of targets whose writes somebody else took back.
	Contests []contest `json:"contests,omitempty"`
}

type stored struct {
	memory

	Group json.RawMessage `json:"group"`
}

// A subject says which target a state, or a part of it, belongs to.
type subject struct {
	Key string `json:"key"`
	ID  string `json:"id,omitempty"`
}

// about reports whether the subject is the target t: by ID, or by key if an ID is not known, as that of a target that is missing.
func (s *subject) about(t *Target) bool {
	if s.ID != "" && t.ID != "" && !t.Missing {
		return s.ID == t.ID
	}
	return s.Key == t.Key
}

// A subjectIndex has the places of the subjects of a state: of each ID, key, and key of a subject without an ID, the first.
type subjectIndex struct{ ids, keys, bare map[string]int }

func indexed(subjects []subject) subjectIndex {
	n := len(subjects)
	p := subjectIndex{make(map[string]int, n), make(map[string]int, n), make(map[string]int)}
	for i := n - 1; i >= 0; i-- {
		s := &subjects[i]
		p.keys[s.Key] = i
		if s.ID == "" {
			p.bare[s.Key] = i
		} else {
			p.ids[s.ID] = i
		}
	}
	return p
}

// of returns the place of the first subject that is about the target, or -1.
func (p *subjectIndex) of(t *Target) int {
	if t.Missing || t.ID == "" {
		return place(p.keys, t.Key)
	}
	byID, byKey := place(p.ids, t.ID), place(p.bare, t.Key)
	if byID < 0 || byKey >= 0 && byKey < byID {
		return byKey
	}
	return byID
}

// A change is one that the group was told of, in the sum of all targets.
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
	// Version is what the write was conditional on: while the target still has it, the write may still arrive.
	Version string `json:"version,omitempty"`
	// Answered says that the answer was a conflict. The write itself may have caused that: a client retries after a server
	// error, and the second attempt finds what the first one wrote.
	Answered bool `json:"answered,omitempty"`
	// Delegated says that another component was to write.
	Delegated bool `json:"delegated,omitempty"`
}

// happened reports whether the present count of the target shows the write. A count that is neither From nor To was written by
// somebody else, which is as good a reason for a cooldown; but not if the answer to the write was a conflict. A delegated write
// has happened if the count has moved in its direction.
func (w *intent) happened(t *Target) bool {
	if w.ID != "" && t.ID != "" && w.ID != t.ID {
		return false // made anew under its name
	}
	if w.Delegated {
		return w.To > w.From && t.Replicas > w.From || w.To < w.From && t.Replicas < w.From
	}
	return t.Replicas != w.From && (!w.Answered || t.Replicas == w.To)
}

// pending reports whether the write may still arrive.
func (w *intent) pending(t *Target) bool {
	return !w.Answered && !w.Delegated && t.Version == w.Version
}

func kind() scaling.Kind { return scaling.Kind{Name: "loop", Version: 1} }

// State returns the present state in the form in which it is stored. Between rounds it has all that a restart needs.
func (l *Loop) State() ([]byte, error) {
	group, err := scaling.Durable(l.group)
	if err != nil {
		return nil, err
	}
	return seal(l.memory, group)
}

func seal(m memory, group json.RawMessage) ([]byte, error) {
	var e scaling.Envelope
	return e.Seal(kind(), func() (any, error) { return stored{m, group}, nil })
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
	}
	for _, c := range s.Contests {
		e.Check(len(c.Times) > 0 && len(c.Times) <= Reversals, "contests.times", len(c.Times), fmt.Sprintf("must be 1 to %d", Reversals))
		e.Check(c.Level >= 0, "contests.level", c.Level, "must not be negative")
	}
	return e.Err()
}

// adopt takes over a stored state; no bytes mean a fresh start.
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
