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

// A record is the stored state of a trigger in Mode Replicas. It has the result of a round, so that every replica of the
// scaler gives the same answer, and the state of the loop, with which the next round continues in any replica.
type record struct {
	scaling.Kind

	// Config is a hash of metadata, target and bounds. A result with another Config is not used for answers, but the state is
	// used.
	Config string        `json:"config"`
	At     scaling.Stamp `json:"at"`
	// From is the spec replicas at the decision, To the count that the policy asks for.
	From    int32           `json:"from"`
	To      int32           `json:"to"`
	Unknown string          `json:"unknown,omitempty"` // why there is no decision
	Because string          `json:"because,omitempty"`
	Loop    json.RawMessage `json:"loop"`
}

// parseRecord reads a stored record. If nothing is stored, the result has no time. key is the target's key in the loop.
func parseRecord(data []byte, key string) (record, error) {
	if len(data) == 0 {
		return record{}, nil
	}
	var r struct {
		record
		Policy json.RawMessage `json:"policy"` // version 1 has it instead of loop
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

// loopOf converts a record of version 1 into the state of a loop that waits for the requested change.
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

// hashOf returns a hash of the inputs of a decision.
func hashOf(parts ...any) string {
	sum := sha256.Sum256([]byte(text(parts)))
	return hex.EncodeToString(sum[:8])
}

// fresh reports whether a record is the result of the round that is due, so that the round need not be made again.
func (r *record) fresh(config string, now time.Time, interval time.Duration) bool {
	return r.within(config, now, interval, interval*9/10)
}

// within reports whether a record can be used for answers and is younger than limit. The clock of another replica may be
// ahead, but by at most an interval.
func (r *record) within(config string, now time.Time, interval, limit time.Duration) bool {
	if r.At.IsZero() || r.Config != config {
		return false
	}
	age := now.Sub(r.At.Time())
	return age >= -interval && age < limit
}

// snapshot returns the snapshot of a record.
func (r *record) snapshot(spec Spec, interval time.Duration, now time.Time) Snapshot {
	// Relative to now, so that At and Next have its monotonic reading, and setting the clock does not change them.
	s := Snapshot{At: now.Add(r.At.Time().Sub(now)), Spec: spec, Because: r.Because, Value: float64(r.To), Active: r.To > 0}
	if r.Unknown != "" {
		s.Unknown, s.Active = errors.New(r.Unknown), r.From > 0
	}
	// The replica that made this round makes the next, and the others look a little later.
	s.Next = s.At.Add(interval + interval/20)
	return s
}
