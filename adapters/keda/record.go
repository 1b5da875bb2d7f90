package keda

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

func recordKind() scaling.Kind { return scaling.Kind{Name: "keda.trigger", Version: 2} }

// A record is what is stored of a trigger in Mode Replicas: what a round came to, so that every replica of the scaler
// gives the same answer, and the state of the loop, with which whoever makes the next round goes on.
type record struct {
	scaling.Kind

	// Config tells metadata, target and bounds apart. What other ones came to is not answered with; their state is gone
	// on with.
	Config string        `json:"config"`
	At     scaling.Stamp `json:"at"`
	// From is the count that was decided on, To the one that was wanted.
	From    int32           `json:"from"`
	To      int32           `json:"to"`
	Unknown string          `json:"unknown,omitempty"` // why nothing was wanted
	Because string          `json:"because,omitempty"`
	Loop    json.RawMessage `json:"loop"`
}

// parseRecord reads a stored record; nothing stored is one without a time. Key is what the loop calls the target.
func parseRecord(data []byte, key string) (record, error) {
	if len(data) == 0 {
		return record{}, nil
	}
	var r struct {
		record
		Policy json.RawMessage `json:"policy"` // in version 1 instead of loop
	}
	err := json.Unmarshal(data, &r)
	if err == nil && r.Name == recordKind().Name && r.Version == 1 && len(r.Policy) > 0 {
		r.Loop, err = r.loopOf(r.Policy, key)
	}
	switch {
	case err != nil:
	case r.Name != recordKind().Name:
		err = scaling.ErrOtherState
	case r.Version > recordKind().Version:
		err = scaling.ErrNewerState
	case r.Version < 1:
		err = fmt.Errorf("version %d does not exist", r.Version)
	case len(r.Loop) == 0 || r.At.IsZero():
		err = errors.New("the fields loop (version 1: policy) and at must be there")
	case r.From < 0 || r.To < 0:
		err = fmt.Errorf("from %d and to %d: must be at least 0", r.From, r.To)
	}
	if err != nil {
		return record{}, &scaling.StateError{Stored: r.Kind, Policy: recordKind(), Err: err}
	}
	return r.record, nil
}

// loopOf makes of a record of version 1 the state of a loop, which waits for the change that was asked for.
func (r *record) loopOf(policy json.RawMessage, key string) (json.RawMessage, error) {
	type open struct {
		Key       string        `json:"key"`
		From      int32         `json:"from"`
		To        int32         `json:"to"`
		At        scaling.Stamp `json:"at"`
		Delegated bool          `json:"delegated"`
	}
	state := map[string]any{"group": policy}
	if r.Unknown == "" && r.From != r.To {
		state["open"] = []open{{key, r.From, r.To, r.At, true}}
	}
	return json.Marshal(map[string]any{"kind": "loop", "version": 1, "state": state})
}

// hashOf tells what decides apart.
func hashOf(parts ...any) string {
	sum := sha256.Sum256([]byte(text(parts)))
	return hex.EncodeToString(sum[:8])
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
