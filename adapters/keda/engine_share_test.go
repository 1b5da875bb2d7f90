package keda

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/flowcontrol"
)

// A crowd counts rounds of slow triggers: how many are at once, by namespace and in all. They end when they are let.
type crowd struct {
	mu   sync.Mutex
	now  map[string]int
	most map[string]int
	let  chan struct{}
}

type slow struct {
	in *crowd
	of string
}

func (t slow) Round(ctx context.Context, now time.Time) (Snapshot, error) {
	t.in.count(t.of, 1)
	t.in.count("", 1)
	select {
	case <-t.in.let:
	case <-ctx.Done():
	}
	t.in.count(t.of, -1)
	t.in.count("", -1)
	return Snapshot{At: now, Spec: Spec{Metric: "q", Target: 1}, Value: 1}, nil
}

func (slow) Close() {}

func (c *crowd) count(of string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[of] += n
	c.most[of] = max(c.most[of], c.now[of])
}

func (c *crowd) of(namespace string) (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now[namespace], c.most[namespace]
}

// TestRoundsAreShared: of rounds that do not end, one namespace has half of the places, and others are served beside them.
// Those that had to wait are made once there is room, with all the time that a round has.
func TestRoundsAreShared(t *testing.T) {
	c := &crowd{now: map[string]int{}, most: map[string]int{}, let: make(chan struct{})}
	s := newStage(t, func(config *EngineConfig) {
		config.Rounds = 8
		config.Build = func(ref Ref, _ map[string]string) (Plan, error) {
			plan := Plan{Trigger: slow{c, ref.Namespace}, Spec: Spec{Metric: "q", Target: 1}, Interval: 15 * time.Second}
			if ref.Namespace == "victim" {
				plan.Trigger = counting()
			}
			return plan, nil
		}
	})
	slowly := func(namespace string, i int) (Snapshot, error) {
		return s.engine.Snapshot(Ref{namespace, "chat"}, map[string]string{"i": fmt.Sprint(i)})
	}
	for i := range 30 {
		_, _ = slowly("greedy", i)
	}
	require.Eventually(t, func() bool { now, _ := c.of("greedy"); return now == 4 }, patience, time.Millisecond)
	for i := range 20 {
		require.InDelta(t, 1, s.value(Ref{"victim", fmt.Sprint(i)}, nil), 0)
	}
	for i := range 30 {
		_, _ = slowly("second", i)
	}
	require.Eventually(t, func() bool { now, _ := c.of("second"); return now >= 1 }, patience, time.Millisecond)
	require.InDelta(t, 1, s.value(Ref{"victim", "later"}, nil), 0)
	_, greedy := c.of("greedy")
	_, second := c.of("second")
	_, all := c.of("")
	require.Equal(t, 4, greedy)
	require.Less(t, second, 4)
	require.LessOrEqual(t, all, 8)
	s.clock.advance(time.Minute) // longer than a snapshot answers: it is of when its round began
	close(c.let)
	for i := range 30 {
		require.Eventually(t, func() bool { _, err := slowly("greedy", i); return err == nil }, patience, time.Millisecond)
	}
	_, all = c.of("")
	require.LessOrEqual(t, all, 8)
}

// TestForgottenWhileItWaits: a trigger whose round has not begun when it is forgotten is closed once, and makes none.
func TestForgottenWhileItWaits(t *testing.T) {
	c := &crowd{now: map[string]int{}, most: map[string]int{}, let: make(chan struct{})}
	waiting := counting()
	s := newStage(t, func(config *EngineConfig) {
		config.Rounds = 1
		config.Build = func(ref Ref, metadata map[string]string) (Plan, error) {
			plan := Plan{Trigger: slow{c, ref.Namespace}, Spec: Spec{Metric: "q", Target: 1}, Interval: 15 * time.Second}
			if metadata["waits"] != "" {
				plan.Trigger = waiting
			}
			return plan, nil
		}
	})
	_, err := s.engine.Spec(chat, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { now, _ := c.of(""); return now == 1 }, patience, time.Millisecond)
	_, err = s.engine.Spec(chat, map[string]string{"waits": "yes"})
	require.NoError(t, err)
	// Only once the object waits for the clock again: it would wait from the new time.
	require.Eventually(t, func() bool { return s.engine.queue.Len() == 1 && s.clock.waiting() == 1 }, patience, time.Millisecond)
	s.clock.advance(DefaultIdle / 2)
	_, err = s.engine.Spec(chat, nil) // the other one is not forgotten
	require.NoError(t, err)
	s.clock.advance(DefaultIdle/2 + time.Second)
	require.Eventually(t, func() bool { return s.engine.running() == 1 }, patience, time.Millisecond)
	// It stayed, with all its metadata, beside the triggers that EngineConfig.MaxTriggers allows, until a round of its namespace ended.
	require.Zero(t, s.engine.queue.Len())
	close(c.let)
	s.engine.Close()
	require.Zero(t, waiting.count())
	require.Equal(t, 1, waiting.wasClosed())
}

// requesting makes as many requests a round as a trigger in mode replicas, behind the one limiter of a cluster's client.
type requesting struct{ limiter flowcontrol.RateLimiter }

func (a requesting) Round(ctx context.Context, now time.Time) (Snapshot, error) {
	for range 3 { // load, /scale, save
		if err := a.limiter.Wait(ctx); err != nil {
			return Snapshot{}, err
		}
	}
	return Snapshot{At: now, Spec: Spec{Metric: "q", Target: 1}, Value: 1}, nil
}

func (requesting) Close() {}

// TestRequestsAreShared: beside 299 triggers of one namespace that want three times the requests there are, one of another
// has its value in every round.
func TestRequestsAreShared(t *testing.T) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(300, 1)
	e, err := NewEngine(t.Context(), EngineConfig{Rounds: 16, Build: func(ref Ref, _ map[string]string) (Plan, error) {
		interval := time.Second
		if ref.Namespace == "victim" {
			interval = 500 * time.Millisecond
		}
		return Plan{Trigger: requesting{limiter}, Spec: Spec{Metric: "q", Target: 1}, Interval: interval}, nil
	}})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	for i := range 299 {
		_, _ = e.Spec(Ref{"greedy", fmt.Sprint(i / 100)}, map[string]string{"i": fmt.Sprint(i)})
	}
	rounds := map[time.Time]bool{}
	require.Eventually(t, func() bool {
		if s, err := e.Snapshot(Ref{"victim", "chat"}, nil); err == nil {
			rounds[s.At] = true
		}
		return len(rounds) == 4
	}, patience, 10*time.Millisecond)
}
