package scaling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// NotEach decides Unknown: the number of targets is not the number of policies, or the target is missing.
	NotEach Code = "NotEach targets, policies"
	// Summed is the step of a total that is the sum of the decisions on several targets.
	Summed Code = "Summed targets"
)

// Each returns a Group with one policy per target, in the order of the targets, for targets that are scaled independently, such
// as prefill and decode. A policy sees all readings, but only the counts of its own target, and is told only of changes of that
// target. A missing target gets Unknown. Total is the sum of the decisions, and Unknown if all of them are.
//
// The state is the list of the policies' states. A policy that refuses its state decides Unknown; if the list has another length,
// all of them do (StateRefused). A refused state is stored again unchanged.
//
// A nil policy decides Unknown (NotConfigured). So does a policy that an earlier target has, as [Highest] recognizes one: it
// would decide twice in a round with one state. MarshalJSON then returns a *FieldError that names the policy, unless there is
// a refused state.
func Each(policies ...Policy) Group {
	e := &each{policies: make([]Policy, len(policies)), answers: make([]Decision, len(policies))}
	seen := known{}
	for i, p := range policies {
		field := fmt.Sprintf("policies[%d]", i)
		switch {
		case p == nil:
			p = &unconfigured{why: &FieldError{Field: field, Rule: "must be set"}}
		case seen.has(p):
			p = &unconfigured{why: &FieldError{Field: field, Value: named(p), Rule: "must not be that of an earlier target, as it would decide twice in a round"}}
		}
		e.policies[i] = p
	}
	return e
}

// named returns the name of a policy's kind, or of its type.
func named(p Policy) string {
	if s, ok := p.(*sealed); ok {
		return s.kind().Name
	}
	return fmt.Sprintf("%T", p)
}

type each struct {
	policies []Policy
	answers  []Decision
	refused  []byte
}

func (e *each) Decide(now time.Time, obs GroupObservation) GroupDecision {
	if len(obs.Targets) != len(e.policies) {
		return UnknownGroup(obs, NotEach, float64(len(obs.Targets)), float64(len(e.policies)))
	}
	if e.refused != nil {
		return UnknownGroup(obs, StateRefused)
	}
	from, to, known := int32(0), int32(0), len(obs.Targets) == 0
	for i := range obs.Targets {
		t := &obs.Targets[i]
		if t.Missing {
			e.answers[i] = UnknownAt(t.SpecReplicas, NotEach, t.Name, 0, 1)
		} else {
			e.answers[i] = e.policies[i].Decide(now, Observation{
				SpecReplicas: t.SpecReplicas, ReadyReplicas: t.ReadyReplicas, Readings: obs.Readings, Histograms: obs.Histograms,
			})
		}
		from, to = Plus(from, t.SpecReplicas), Plus(to, e.answers[i].Replicas)
		known = known || e.answers[i].Verdict != Unknown
	}
	total := HoldAt(from)
	if total.To(to, Summed, "", float64(len(e.policies))); !known {
		total.Verdict = Unknown
	}
	return GroupDecision{Total: total, Targets: e.answers}
}

func (e *each) Applied(now time.Time, from, to []int32) {
	if len(from) != len(e.policies) || len(to) != len(e.policies) || e.refused != nil {
		return
	}
	for i, p := range e.policies {
		if from[i] != to[i] {
			p.Applied(now, from[i], to[i])
		}
	}
}

func (e *each) MarshalJSON() ([]byte, error) { return e.marshal(entire) }

func (e *each) MarshalDurable() ([]byte, error) { return e.marshal(durable) }

func (e *each) marshal(form form) ([]byte, error) {
	if e.refused != nil {
		return bytes.Clone(e.refused), nil // what is returned belongs to the caller
	}
	states := make([]json.RawMessage, len(e.policies))
	for i, p := range e.policies {
		state, err := form.of(p)
		if err != nil {
			return nil, err
		}
		states[i] = state
	}
	return json.Marshal(states)
}

func (e *each) Snapshot() (restore func() error, err error) {
	refused := e.refused
	policies, err := snapshots(e.policies)
	return func() error {
		e.refused = refused
		return policies()
	}, err
}

func (e *each) UnmarshalJSON(data []byte) error {
	var states []json.RawMessage
	err := json.Unmarshal(data, &states)
	if err == nil && len(states) != len(e.policies) {
		err = &FieldError{Field: "state", Value: len(states), Rule: fmt.Sprintf("must have one state for each of %d policies", len(e.policies))}
	}
	if err != nil {
		e.refused = append([]byte{}, data...) // not nil
		var stored Kind
		if json.Unmarshal(data, &stored) == nil && stored.Name != "" {
			err = ErrOtherState // of one policy, not of a list
		}
		return &StateError{Stored: stored, Err: err}
	}
	e.refused = nil
	for i, p := range e.policies {
		err = errors.Join(err, p.UnmarshalJSON(states[i]))
	}
	return err
}
