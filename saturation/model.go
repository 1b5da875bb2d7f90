package saturation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Model is a live Scaler of one model: the Scaler, its state and the space it works in. It is to several variants
// what a scaling.Policy is to one target, with the same duties for the caller, in order: Decide; store the state
// (MarshalJSON); write the targets that act; report each write that was carried out with Applied; store the state
// again. What a crash loses in between is repeated, as targets are absolute counts.
//
// UnmarshalJSON takes a stored state back. A state of another kind, of a newer version or damaged is refused with a
// *scaling.StateError; from then on the Model decides Unknown and marshals the refused bytes unchanged, until a good
// state is given to it. A Model is not safe for concurrent use.
type Model struct {
	scaler   Scaler
	state    State
	analysis Analysis
	plan     Plan
	refused  []byte
}

// NewModel returns the live Model of a Scaler, with a fresh state.
func NewModel(s Scaler) *Model { return &Model{scaler: s} }

// Kind names the algorithm and the version of its state.
func (s Scaler) Kind() scaling.Kind { return scaling.Kind{Name: "saturation", Version: 1} }

// Decide analyzes the replicas and decides on the variants. The plan is valid until the next call.
func (m *Model) Decide(now time.Time, replicas []Replica, variants []Variant) *Plan {
	m.scaler.Analyze(&m.analysis, replicas)
	m.decide(now, variants)
	return &m.plan
}

func (m *Model) decide(now time.Time, variants []Variant) {
	if m.refused != nil {
		m.refuse(variants)
		return
	}
	m.state = m.scaler.Decide(m.state, now, &m.analysis, variants, &m.plan)
}

// Analysis returns what the last Decide made of the replicas. It is valid until the next one.
func (m *Model) Analysis() *Analysis { return &m.analysis }

// Applied records that a variant went from one count to another at now.
func (m *Model) Applied(now time.Time, from, to int32) {
	if m.refused == nil {
		m.state = m.scaler.Applied(m.state, now, from, to)
	}
}

// refuse answers Unknown for every variant.
func (m *Model) refuse(variants []Variant) {
	p := &m.plan
	p.seatAll(&m.analysis, variants, m.scaler.config.Mode == Literal)
	p.say(scaling.StateRefused, m.scaler.Kind().Name)
	for i := range p.seats {
		p.open(i).Verdict = scaling.Unknown
	}
	p.close("", "")
}

type envelope struct {
	scaling.Kind

	State json.RawMessage `json:"state"`
}

// MarshalJSON writes the state with its kind and version, or the bytes that were refused.
func (m *Model) MarshalJSON() ([]byte, error) {
	if m.refused != nil {
		if !json.Valid(m.refused) {
			return nil, &scaling.StateError{Policy: m.scaler.Kind(), Err: errors.New("the refused state is not JSON: keep the stored bytes")}
		}
		return m.refused, nil
	}
	state, err := json.Marshal(m.state)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{Kind: m.scaler.Kind(), State: state})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Model) UnmarshalJSON(data []byte) error {
	state, err := m.restore(data)
	if err != nil {
		m.refused = bytes.Clone(data)
		return err
	}
	m.state, m.refused = state, nil
	return nil
}

func (m *Model) restore(data []byte) (State, error) {
	want := m.scaler.Kind()
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return State{}, &scaling.StateError{Policy: want, Err: err}
	}
	var state State
	var err error
	switch {
	case e.Name != want.Name:
		err = scaling.ErrOtherState
	case e.Version > want.Version:
		err = scaling.ErrNewerState
	case e.Version < 1:
		err = fmt.Errorf("version %d does not exist", e.Version)
	case len(e.State) == 0 || string(e.State) == "null":
		err = errors.New("the field state is missing")
	default:
		// Fields that the type does not have mean damage: the version is known.
		dec := json.NewDecoder(bytes.NewReader(e.State))
		dec.DisallowUnknownFields()
		if err = dec.Decode(&state); err == nil {
			err = state.Validate()
		}
	}
	if err != nil {
		return State{}, &scaling.StateError{Stored: e.Kind, Policy: want, Err: err}
	}
	return state, nil
}
