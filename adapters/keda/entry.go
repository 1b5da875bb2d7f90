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
	id   string // stands for key where it is shown: long enough that nobody finds two of one
	ref  Ref
	plan Plan

	places int // that it takes of MaxTriggers

	known  bool               // its ScaledObject is; guarded by the engine's mu
	due    time.Time          // of the next round; likewise
	inLine bool               // its round waits or is under way; likewise
	cancel context.CancelFunc // of the round that is under way, else nil; likewise

	born    time.Time
	asked   atomic.Int64 // how long after born it was last asked for: a clock that is set does not change that
	streams atomic.Int32 // that are open
	gone    chan struct{}

	outcome atomic.Pointer[outcome]
	mu      sync.Mutex
	changed chan struct{} // closed when a new outcome is there
}

// An outcome is the last snapshot, and the error of the last round if that came to nothing.
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

// over says why a trigger is not needed any more, or nothing; newest is when its identity was last asked for.
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

// isGone reports whether it was forgotten.
func (t *entry) isGone() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// ask notes that it is asked for.
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

// publish makes a round's outcome the one that is answered with. After an error that is still the last snapshot.
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

// next returns a channel that is closed at the next outcome. What is read after next returned is not missed.
func (t *entry) next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}
