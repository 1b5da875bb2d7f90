package keda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// An entry is a trigger with its last snapshot.
type entry struct {
	key  string
	id   string // short form of key for display: long enough that nobody can construct two keys with the same
	ref  Ref
	plan Plan

	places int // how often it counts in MaxTriggers

	known  bool               // whether its ScaledObject is known; guarded by the engine's mu
	due    time.Time          // time of the next round; guarded by the engine's mu
	inLine bool               // whether its round waits or is in progress; guarded by the engine's mu
	cancel context.CancelFunc // cancels the round in progress, else nil; guarded by the engine's mu

	born    time.Time
	asked   atomic.Int64 // time of the last call, as a duration since born: setting the clock does not change it
	streams atomic.Int32 // number of open streams
	gone    chan struct{}
	why     error // what its calls are told once it is gone; written before gone is closed

	outcome atomic.Pointer[outcome]
	mu      sync.Mutex
	changed chan struct{} // closed at the next outcome
}

// An outcome is the last snapshot, and the error of the last round if it failed.
type outcome struct {
	snapshot *Snapshot
	err      error
}

func newEntry(key string, ref Ref, plan Plan, now time.Time) *entry {
	sum := sha256.Sum256([]byte(key))
	t := &entry{key: key, id: hex.EncodeToString(sum[:16]), ref: ref, plan: plan, due: now, born: now, gone: make(chan struct{}), changed: make(chan struct{})}
	t.outcome.Store(&outcome{})
	return t
}

// over returns why a trigger is no longer needed, or "" if it is. newest is the time of the last call for a trigger with its
// identity.
func (t *entry) over(now time.Time, idle time.Duration, newest time.Time) string {
	asked := t.lastAsked()
	switch {
	case t.streams.Load() > 0:
		return ""
	case now.Sub(asked) > idle:
		return fmt.Sprintf("nobody has asked for it for %s", now.Sub(asked).Round(time.Second))
	case newest.Sub(asked) > supersede*t.plan.Interval:
		return "other metadata has taken its place"
	}
	return ""
}

// isGone reports whether the trigger was forgotten.
func (t *entry) isGone() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// ask records a call for the trigger.
func (t *entry) ask(now time.Time) { t.asked.Store(int64(now.Sub(t.born))) }

func (t *entry) lastAsked() time.Time { return t.born.Add(time.Duration(t.asked.Load())) }

// last returns the last snapshot, nil before there is one, and the error of the last round.
func (t *entry) last() (*Snapshot, error) {
	o := t.outcome.Load()
	return o.snapshot, o.err
}

func (t *entry) spec() Spec {
	if s, _ := t.last(); s != nil {
		return s.Spec
	}
	return t.plan.Spec
}

// publish makes the result of a round the current outcome. After an error the last snapshot stays.
func (t *entry) publish(s Snapshot, err error) {
	o := &outcome{snapshot: &s}
	if err != nil {
		old, _ := t.last()
		o = &outcome{snapshot: old, err: err}
	}
	t.outcome.Store(o)
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.changed)
	t.changed = make(chan struct{})
}

// next returns a channel that is closed at the next outcome. A caller that reads the outcome after calling next misses none.
func (t *entry) next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}
