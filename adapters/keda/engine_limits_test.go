package keda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// A journal is what was logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// TestEngineLogs that triggers come and go, and rounds that fail.
func TestEngineLogs(t *testing.T) {
	var j journal
	s := newStage(t, func(c *EngineConfig) { c.Logger = j.logger() })
	metadata := s.add("a", &fakeTrigger{answer: func(int) (Snapshot, error) { return Snapshot{}, errors.New("the pods are away") }})
	_, err := s.engine.Spec(chat, metadata)
	require.NoError(t, err)
	s.settled()
	require.Contains(t, j.String(), `msg="trigger begins" scaledObject=models/chat metric=q`)
	s.value(chat, s.add("b", counting()))
	require.Eventually(t, func() bool {
		return strings.Contains(j.String(), "level=DEBUG msg=round scaledObject=models/chat metric=q value=1")
	}, patience, time.Millisecond)
	require.Contains(t, j.String(), `level=WARN msg="round failed" scaledObject=models/chat metric=q error="the pods are away"`)
	s.engine.Close()
	require.Contains(t, j.String(), `msg="trigger ends" scaledObject=models/chat metric=q`)
	require.Contains(t, j.String(), `because="the scaler is shutting down"`)
}

// TestPanicsOfCallsAreLogged, as the answer does not say what happened.
func TestPanicsOfCallsAreLogged(t *testing.T) {
	var j journal
	e, err := NewEngine(t.Context(), EngineConfig{Build: func(Ref, map[string]string) (Plan, error) { panic("secret things") }})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: e, Logger: j.logger()}))
	_, err = client.IsActive(t.Context(), scaledObject(chat, nil))
	require.Equal(t, codes.Internal, code(err))
	require.Contains(t, j.String(), `msg="call panicked" panic="secret things"`)
}

func TestGRPCNeedsAnEngine(t *testing.T) {
	_, _, err := NewGRPC(GRPCConfig{})
	require.EqualError(t, err, "engine: <nil>: must be set")
}

// TestRequestsOf256KiB are read, and no longer ones.
func TestRequestsOf256KiB(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	for size, want := range map[int]codes.Code{255 << 10: codes.OK, 256 << 10: codes.ResourceExhausted} {
		_, err := client.GetMetricSpec(t.Context(), scaledObject(chat, map[string]string{"is": metadata["is"], "x": strings.Repeat("x", size)}))
		require.Equal(t, want, code(err), size)
	}
}

func TestEngineDefaults(t *testing.T) {
	c := EngineConfig{}.orDefault()
	require.Equal(t, []any{10 * time.Minute, 3, 10_000}, []any{c.Idle, c.Stale, c.MaxTriggers})
}

// TestIdleIsWhatIsLonger: a trigger that was asked for just that long ago stays.
func TestIdleIsWhatIsLonger(t *testing.T) {
	now := time.Now()
	trigger := newEntry("k", chat, Plan{Interval: 15 * time.Second}, now)
	require.Empty(t, trigger.over(now.Add(time.Minute), time.Minute, time.Time{}))
	require.Equal(t, "nobody has asked for it for 1m1s", trigger.over(now.Add(time.Minute+time.Second), time.Minute, time.Time{}))
	require.Empty(t, trigger.over(now, time.Minute, now.Add(30*time.Second)))
	require.Equal(t, "other metadata has taken its place", trigger.over(now, time.Minute, now.Add(30*time.Second+1)))
}

// TestTheIdleTimeBeginsWithTheEndOfAStream.
func TestTheIdleTimeBeginsWithTheEndOfAStream(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	held, err := s.engine.hold(chat, metadata)
	require.NoError(t, err)
	s.settled()
	s.clock.advance(time.Hour)
	s.settled()
	require.Equal(t, 1, s.engine.running())
	s.engine.release(held)
	s.tick()
	require.Equal(t, 1, s.engine.running())
	s.clock.advance(DefaultIdle)
	require.Eventually(t, func() bool { return s.engine.running() == 0 }, patience, time.Millisecond)
}

// TestATriggerWithAStreamIsShown, though others of its metric are asked for.
func TestATriggerWithAStreamIsShown(t *testing.T) {
	m := NewMetrics()
	s := newStage(t, func(c *EngineConfig) { c.Metrics = m })
	streamed, called := s.add("streamed", counting()), s.add("called", counting())
	held, err := s.engine.hold(chat, streamed)
	require.NoError(t, err)
	s.value(chat, called)
	for range 10 {
		s.tick()
		s.value(chat, called)
		require.Len(t, series(t, m, "inferscale_keda_value"), 2)
	}
	s.engine.release(held)
}

// TestWhoIsAsFast: of two calls that make one trigger, the second's is closed and the first's is taken.
func TestWhoIsAsFast(t *testing.T) {
	s := newStage(t, nil)
	trigger := counting()
	metadata := s.add("a", trigger)
	first, err := s.engine.begin("k", chat, metadata)
	require.NoError(t, err)
	second, err := s.engine.begin("k", chat, metadata)
	require.NoError(t, err)
	require.Same(t, first, second)
	require.Equal(t, 1, trigger.wasClosed())
	require.Equal(t, 1, s.engine.running())
}

// TestAnObjectWhoseTriggerHadToGo ends at once, not when it looks again.
func TestAnObjectWhoseTriggerHadToGo(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 2 })
	for _, name := range []string{"one", "two"} {
		_, err := s.engine.Spec(Ref{Namespace: "greedy", Name: name}, s.add(name, counting()))
		require.NoError(t, err)
	}
	s.settled()
	_, err := s.engine.Spec(chat, s.add("three", counting()))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		s.engine.mu.RLock()
		defer s.engine.mu.RUnlock()
		return len(s.engine.objects) == 2
	}, patience, time.Millisecond)
}

// TestTheNextRound is when the snapshot says, if that is within two intervals.
func TestTheNextRound(t *testing.T) {
	for next, due := range map[time.Duration]time.Duration{
		0: 15 * time.Second, time.Second: time.Second, 30*time.Second - 1: 30*time.Second - 1, 30 * time.Second: 15 * time.Second, -time.Second: 15 * time.Second,
	} {
		s := newStage(t, nil)
		now := s.clock.Now()
		metadata := s.add("a", &fakeTrigger{answer: func(int) (Snapshot, error) { return Snapshot{Next: now.Add(next)}, nil }})
		s.value(chat, metadata)
		s.settled()
		s.engine.mu.RLock()
		require.Equal(t, due, s.engine.triggers[key(chat, metadata)].due.Sub(now), next)
		s.engine.mu.RUnlock()
	}
}

// TestKeysOfDifferentTriggersDiffer, however their names and values are put together.
func TestKeysOfDifferentTriggersDiffer(t *testing.T) {
	const x = "xxxxxxxxxxxxxxxxxx" // 18
	type pair struct {
		ref      Ref
		metadata map[string]string
	}
	for _, row := range [][2]pair{
		{{Ref{"a", "1:b"}, nil}, {Ref{"a:1", "b"}, nil}},
		{{Ref{"a", ":b"}, nil}, {Ref{"a:", "b"}, nil}},
		{{Ref{"1a", x + "5hello"}, nil}, {Ref{"a24" + x, "hello"}, nil}},
		{{Ref{"n", "o"}, map[string]string{"a": "1"}}, {Ref{"n", "o"}, map[string]string{"b": "1"}}},
		{{Ref{"n", "o"}, map[string]string{"a": "1"}}, {Ref{"n", "o"}, map[string]string{"a": "2"}}},
		{{Ref{"n", "o"}, nil}, {Ref{"o", "n"}, nil}},
	} {
		require.NotEqual(t, key(row[0].ref, row[0].metadata), key(row[1].ref, row[1].metadata), fmt.Sprint(row))
	}
}

// TestRoundsAreCounted by what they came to, and timed.
func TestRoundsAreCounted(t *testing.T) {
	m := NewMetrics()
	for range 3 {
		m.round(Snapshot{}, nil, 2*time.Second)
	}
	for range 2 {
		m.round(Snapshot{Unknown: errors.New("no")}, nil, 0)
	}
	m.round(Snapshot{Unknown: errors.New("no")}, errors.New("no"), 0)
	for result, want := range map[string]float64{"value": 3, "unknown": 2, "error": 1} {
		require.InDelta(t, want, testutil.ToFloat64(m.rounds.WithLabelValues(result)), 0, result)
	}
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	families, err := registry.Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			require.EqualValues(t, 6, h.GetSampleCount())
			require.InDelta(t, 6, h.GetSampleSum(), 1e-9)
		}
	}
	require.Equal(t, []string{"inferscale_keda_round_duration_seconds", "inferscale_keda_rounds_total", "inferscale_keda_triggers"}, names)
}

// TestASnapshotWithoutATime is of no round.
func TestASnapshotWithoutATime(t *testing.T) {
	s, err := guarded(t.Context(), timeless{}, time.Now())
	require.EqualError(t, err, "the round returned a snapshot without a time", "%v", s)
}

type timeless struct{ Trigger }

func (timeless) Round(context.Context, time.Time) (Snapshot, error) { return Snapshot{Value: 1}, nil }
