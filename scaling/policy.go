package scaling

import (
	"encoding/json"
	"time"
)

// A Stepper is a scaling algorithm: its configuration is the value itself, its memory is S.
//
// Decide and Applied are pure: they do no I/O, read no clock and keep nothing. S is plain data whose zero value is a fresh
// start. Like a slice passed to append, the state passed in must not be used again: keep the one that is returned.
type Stepper[S any] interface {
	// Kind names the algorithm and the version of S, from 1 on, as stamped on stored state.
	Kind() Kind
	// Decide evaluates obs at time now and returns the next state and the decision.
	Decide(s S, now time.Time, obs Observation) (S, Decision)
	// Applied records that the target went from one count to another at now. Cooldowns start here and not in
	// Decide: a decision that nobody carried out starts none.
	Applied(s S, now time.Time, from, to int32) S
}

// A Policy is a live algorithm: a Stepper with its state, or a composition of Policies. Loops, adapters and the
// simulator know only this. A Policy is not safe for concurrent use.
//
// The caller's duties, in order: Decide; store the state (MarshalJSON); carry the decision out, if it acts; report
// a change that was carried out with Applied; store the state again. If a crash interrupts this, the next round repeats what
// was lost, which is safe because decisions are absolute counts. A refused write is not reported.
//
// UnmarshalJSON restores a stored state. A state that is damaged, of another kind or of a newer version is refused with a
// *StateError. From then on the policy decides Unknown and marshals the refused bytes unchanged, so that nothing is
// overwritten, until it is given a valid state. Call UnmarshalJSON directly: json.Unmarshal checks the bytes first and does not
// pass bytes that are not JSON on to the policy.
type Policy interface {
	Decide(now time.Time, obs Observation) Decision
	Applied(now time.Time, from, to int32)
	json.Marshaler
	json.Unmarshaler
}

// New returns the live Policy of an algorithm, with a fresh state. For nil it returns a Policy that decides Unknown with the
// code NotConfigured, as every algorithm's zero value does.
func New[S any](stepper Stepper[S]) Policy {
	if stepper == nil {
		return &unconfigured{}
	}
	return &sealed{body: &live[S]{stepper: stepper}}
}

// live is a Stepper with its state.
type live[S any] struct {
	stepper Stepper[S]
	state   S
}

func (l *live[S]) kind() Kind { return l.stepper.Kind() }

func (l *live[S]) decide(now time.Time, obs Observation) (d Decision) {
	l.state, d = l.stepper.Decide(l.state, now, obs)
	return d
}

func (l *live[S]) applied(now time.Time, from, to int32) {
	l.state = l.stepper.Applied(l.state, now, from, to)
}

func (l *live[S]) save(form form) (any, error) {
	if s, ok := any(l.state).(interface{ Durable() S }); ok && form == durable {
		return s.Durable(), nil
	}
	if form == durable {
		state, err := json.Marshal(l.state)
		return lasting(state), err
	}
	return l.state, nil
}

// cloner is a state that can be copied.
type cloner[S any] interface{ Clone() S }

func (l *live[S]) snapshot() (restore func() error, err error) {
	if s, ok := any(l.state).(cloner[S]); ok {
		kept := s.Clone()
		return func() error {
			l.state = any(kept).(cloner[S]).Clone() //nolint:forcetypeassert // of the same type
			return nil
		}, nil
	}
	kept, err := json.Marshal(l.state)
	return func() error { return l.load(kept) }, err
}

// null reports whether the state of a fresh start is null in JSON.
func (l *live[S]) null() bool { return isNull[S]() }

func (l *live[S]) load(data []byte) error {
	s, err := DecodeState[S](data)
	if err == nil {
		l.state = s
	}
	return err
}

// body is what a Policy does when its state is valid.
type body interface {
	kind() Kind
	decide(now time.Time, obs Observation) Decision
	applied(now time.Time, from, to int32)
	save(form form) (any, error)
	load(data []byte) error
	snapshot() (restore func() error, err error)
}

// sealed is a Policy: a body, and the envelope of its stored state.
type sealed struct {
	body
	envelope Envelope
}

// around returns the Policy of a body around base, or else what is wrong with base and with the configuration.
func around(body body, base Policy, wrong error) (Policy, error) {
	var e FieldErrors
	e.Check(base != nil, "base", base, "must be set")
	e.Add(wrong)
	if err := e.Err(); err != nil {
		return &unconfigured{}, err
	}
	return &sealed{body: body}, nil
}

func (p *sealed) Decide(now time.Time, obs Observation) (d Decision) {
	if p.envelope.Refused() {
		return UnknownAt(obs.SpecReplicas, StateRefused, p.kind().Name)
	}
	d = p.decide(now, obs) // in place: returning the call would copy the decision twice
	return d
}

func (p *sealed) Applied(now time.Time, from, to int32) {
	if !p.envelope.Refused() {
		p.applied(now, from, to)
	}
}

func (p *sealed) MarshalJSON() ([]byte, error) { return p.marshal(entire) }

func (p *sealed) MarshalDurable() ([]byte, error) { return p.marshal(durable) }

func (p *sealed) marshal(form form) ([]byte, error) {
	return p.envelope.Seal(p.kind(), func() (any, error) { return p.save(form) })
}

func (p *sealed) Snapshot() (restore func() error, err error) {
	envelope := p.envelope
	body, err := p.snapshot()
	return func() error {
		p.envelope = envelope
		return body()
	}, err
}

func (p *sealed) UnmarshalJSON(data []byte) error {
	return p.envelope.open(p.kind(), data, p.load, func() bool {
		b, ok := p.body.(interface{ null() bool })
		return ok && b.null()
	})
}
