package scaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// NotEach can say nothing: a Group of so many policies was asked about another number of targets, or the target is missing.
	NotEach Code = "NotEach targets, policies"
	// Summed is what the decisions on several targets come to.
	Summed Code = "Summed targets"
)

// Each returns the Group of as many targets as policies, in their order, each of which its own policy decides on: prefill and
// decode, that are scaled apart. A policy sees all readings, the counts of its target alone, and is told of changes of that target
// alone. Of a target that is missing nothing can be said. Total is what the decisions come to, and Unknown if all of them are.
//
// The state is the list of the policies' states; a policy whose state is refused decides Unknown, and all do where the list is
// of another length (StateRefused). What was refused is stored again as it was. A nil policy decides Unknown (NotConfigured).
func Each(policies ...Policy) Group {
	e := &each{policies: make([]Policy, len(policies)), answers: make([]Decision, len(policies))}
	for i, p := range policies {
		if p == nil {
			p = &unconfigured{}
		}
		e.policies[i] = p
	}
	return e
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

func (e *each) MarshalJSON() ([]byte, error) {
	if e.refused != nil {
		return e.refused, nil
	}
	states := make([]json.RawMessage, len(e.policies))
	for i, p := range e.policies {
		state, err := p.MarshalJSON()
		if err != nil {
			return nil, err
		}
		states[i] = state
	}
	return json.Marshal(states)
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
