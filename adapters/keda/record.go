package keda

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

const (
	recordKind    = "keda.trigger"
	recordVersion = 1
)

// A record is what is stored of a trigger in Mode Replicas: the policy's state, and what it came to, so that every
// replica of the scaler, and the next one, gives the same answer.
type record struct {
	scaling.Kind

	// Config tells metadata and bounds apart. What other ones came to is not answered with; their state is gone on with.
	Config string        `json:"config"`
	At     scaling.Stamp `json:"at"`
	// From is the count that was decided on, To the one that was wanted.
	From    int32           `json:"from"`
	To      int32           `json:"to"`
	Unknown string          `json:"unknown,omitempty"` // why nothing was wanted
	Because string          `json:"because,omitempty"`
	Policy  json.RawMessage `json:"policy"`
}

// parseRecord reads a stored record; nothing stored is one without a time.
func parseRecord(data []byte) (record, error) {
	if len(data) == 0 {
		return record{}, nil
	}
	var r record
	refuse := func(err error) (record, error) {
		return record{}, &scaling.StateError{Stored: r.Kind, Policy: scaling.Kind{Name: recordKind, Version: recordVersion}, Err: err}
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return refuse(err)
	}
	switch {
	case r.Name != recordKind:
		return refuse(scaling.ErrOtherState)
	case r.Version > recordVersion:
		return refuse(scaling.ErrNewerState)
	case r.Version < 1:
		return refuse(fmt.Errorf("version %d does not exist", r.Version))
	case len(r.Policy) == 0 || r.At.IsZero():
		return refuse(errors.New("the fields policy and at must be there"))
	case r.From < 0 || r.To < 0:
		return refuse(fmt.Errorf("from %d and to %d: must be at least 0", r.From, r.To))
	}
	return r, nil
}

// fresh reports whether a record is of the round that is due: somebody has made it.
func (r *record) fresh(config string, now time.Time, interval time.Duration) bool {
	return r.within(config, now, interval, interval*9/10)
}

// within reports whether a record can be answered with and is younger than limit. One of the future is of another clock,
// which is not an interval ahead.
func (r *record) within(config string, now time.Time, interval, limit time.Duration) bool {
	if r.At.IsZero() || r.Config != config {
		return false
	}
	age := now.Sub(r.At.Time())
	return age >= -interval && age < limit
}

// snapshot is what a record says.
func (r *record) snapshot(spec Spec, interval time.Duration) Snapshot {
	s := Snapshot{At: r.At.Time(), Spec: spec, Because: r.Because, Value: float64(r.To), Active: r.To > 0}
	if r.Unknown != "" {
		s.Unknown, s.Active = errors.New(r.Unknown), r.From > 0
	}
	// Whoever made it makes the next, and the others look a little later.
	s.Next = s.At.Add(interval + interval/20)
	return s
}
