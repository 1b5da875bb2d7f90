package scaling

import (
	"encoding/json"
	"errors"
)

// Snapshot returns a function that takes a Policy or Group back to the state that it has now, as if it had decided nothing since. The
// function may be called any number of times.
//
// The policies and groups of this module have a method Snapshot that copies their memory, for which the state S of a Stepper may
// have a method Clone() S that returns a copy of it that shares nothing. Any other state is kept as MarshalJSON returns it. A type
// that embeds one with that method, and has a state of its own, must have the method too.
func Snapshot(m Stateful) (restore func() error, err error) {
	if s, ok := m.(interface{ Snapshot() (func() error, error) }); ok {
		return s.Snapshot()
	}
	state, err := m.MarshalJSON()
	return func() error { return m.UnmarshalJSON(state) }, err
}

// snapshotWith is Snapshot for what surrounds a policy and has a memory of its own.
func snapshotWith(base Policy, restoreOwn func()) (restore func() error, err error) {
	back, err := Snapshot(base)
	return func() error {
		restoreOwn()
		return back()
	}, err
}

// Stateful is a Policy or a Group.
type Stateful interface {
	json.Marshaler
	json.Unmarshaler
}

// snapshots returns a function that takes all policies back.
func snapshots(policies []Policy) (restore func() error, err error) {
	all := make([]func() error, len(policies))
	for i, p := range policies {
		if all[i], err = Snapshot(p); err != nil {
			return nil, err
		}
	}
	return func() (err error) {
		for _, restore := range all {
			err = errors.Join(err, restore())
		}
		return err
	}, nil
}
