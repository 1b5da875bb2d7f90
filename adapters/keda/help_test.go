package keda

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// patience is how long a test waits for what other goroutines do.
const patience = 10 * time.Second

// A fakeClock stands still until it is advanced.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*fakeTimer]bool
}

type fakeTimer struct {
	at   time.Time
	fire chan time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), timers: make(map[*fakeTimer]bool)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// At delivers when it is due, even if the clock was advanced after the caller had read it: After(due.Sub(Now())) would deliver
// late by what it was advanced.
func (c *fakeClock) At(due time.Time) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{at: due, fire: make(chan time.Time, 1)}
	c.timers[t] = true
	c.expire()
	return t.fire, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
	}
}

func (c *fakeClock) expire() {
	for t := range c.timers {
		if !t.at.After(c.now) {
			t.fire <- c.now
			delete(c.timers, t)
		}
	}
}

// advance moves the clock on.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.expire()
}

// waiting returns how many wait.
func (c *fakeClock) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// A fakeTrigger answers what it was told to, and counts.
type fakeTrigger struct {
	mu     sync.Mutex
	rounds int
	closed int
	answer func(round int) (Snapshot, error)
}

func (t *fakeTrigger) Round(_ context.Context, now time.Time) (Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rounds++
	s, err := t.answer(t.rounds)
	s.At = now
	if s.Spec == (Spec{}) {
		s.Spec = Spec{Metric: "q", Target: 1}
	}
	return s, err
}

func (t *fakeTrigger) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed++
}

func (t *fakeTrigger) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rounds
}

func (t *fakeTrigger) wasClosed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// counting answers with the number of the round.
func counting() *fakeTrigger {
	return &fakeTrigger{answer: func(round int) (Snapshot, error) { return Snapshot{Value: float64(round), Active: true}, nil }}
}

// A stage is an engine on a fake clock whose triggers are given by the value of the key "is".
type stage struct {
	t        *testing.T
	clock    *fakeClock
	engine   *Engine
	mu       sync.Mutex
	triggers map[string]*fakeTrigger
	other    Trigger // for what names none
}

var errBuild = errors.New("is: must name a trigger")

func newStage(t *testing.T, change func(*EngineConfig)) *stage {
	t.Helper()
	s := &stage{t: t, clock: newFakeClock(), triggers: make(map[string]*fakeTrigger)}
	c := EngineConfig{Now: s.clock.Now, Build: func(_ Ref, metadata map[string]string) (Plan, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		trigger := s.other
		if fake := s.triggers[metadata["is"]]; fake != nil {
			trigger = fake
		}
		if trigger == nil {
			return Plan{}, errBuild
		}
		return Plan{Trigger: trigger, Spec: Spec{Metric: "q", Target: 1}, Interval: 15 * time.Second, Identity: metadata["identity"]}, nil
	}}
	if change != nil {
		change(&c)
	}
	engine, err := NewEngine(context.WithoutCancel(t.Context()), c)
	require.NoError(t, err)
	engine.at = s.clock.At
	s.engine = engine
	t.Cleanup(engine.Close)
	return s
}

func (s *stage) add(name string, trigger *fakeTrigger) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.triggers[name] = trigger
	return map[string]string{"is": name}
}

// settled waits until no round is under way but those of the given triggers, and all objects wait for the clock.
func (s *stage) settled(but ...map[string]string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.engine.mu.RLock()
		defer s.engine.mu.RUnlock()
		for _, t := range s.engine.triggers {
			slow := slices.ContainsFunc(but, func(metadata map[string]string) bool { return t.key == key(t.ref, metadata) })
			if !slow && (t.cancel != nil || !t.due.After(s.clock.Now())) {
				return false
			}
		}
		for _, o := range s.engine.objects {
			if len(o.changed) > 0 {
				return false
			}
		}
		return s.clock.waiting() == len(s.engine.objects)
	}, patience, time.Millisecond)
}

// value asks until there is a value, and returns it.
func (s *stage) value(ref Ref, metadata map[string]string) float64 {
	s.t.Helper()
	var v float64
	require.Eventually(s.t, func() bool {
		snapshot, err := s.engine.Snapshot(ref, metadata)
		v = snapshot.Value
		return err == nil
	}, patience, time.Millisecond)
	return v
}

// tick moves the clock on by an interval, after all wait for it, and lets what becomes due happen.
func (s *stage) tick() {
	s.t.Helper()
	s.settled()
	s.clock.advance(15 * time.Second)
	s.settled()
}

func code(err error) codes.Code { return status.Code(err) }

// running returns how many triggers there are.
func (e *Engine) running() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.triggers)
}
