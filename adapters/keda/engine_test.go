package keda

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"
)

var chat = Ref{Namespace: "models", Name: "chat"}

func TestColdStart(t *testing.T) {
	hold := make(chan struct{})
	trigger := &fakeTrigger{answer: func(int) (Snapshot, error) { <-hold; return Snapshot{Value: 7}, nil }}
	s := newStage(t, nil)
	metadata := s.add("slow", trigger)
	_, err := s.engine.Snapshot(chat, metadata)
	require.Equal(t, codes.Unavailable, code(err))
	require.ErrorContains(t, err, "cold start: no round of models/chat has ended yet")
	spec, err := s.engine.Spec(chat, metadata)
	require.NoError(t, err, "the spec needs no round")
	require.Equal(t, Spec{Metric: "q", Target: 1}, spec)
	close(hold)
	require.InDelta(t, 7, s.value(chat, metadata), 0)
}

// TestCallsAdvanceNothing asks from many sides at once: rounds are made by the clock alone.
func TestCallsAdvanceNothing(t *testing.T) {
	s := newStage(t, nil)
	trigger := counting()
	metadata := s.add("a", trigger)
	require.InDelta(t, 1, s.value(chat, metadata), 0)
	var callers sync.WaitGroup
	for range 8 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for range 1000 {
				snapshot, err := s.engine.Snapshot(chat, metadata)
				if err != nil || snapshot.Value != 1 {
					t.Errorf("%v, %v: must be 1", snapshot.Value, err)
				}
			}
		}()
	}
	callers.Wait()
	require.Equal(t, 1, trigger.count())
	for round := 2; round <= 5; round++ {
		s.tick()
		require.InDelta(t, float64(round), s.value(chat, metadata), 0)
		require.Equal(t, round, trigger.count())
	}
}

func TestStale(t *testing.T) {
	s := newStage(t, nil)
	trigger := &fakeTrigger{answer: func(round int) (Snapshot, error) {
		if round == 1 || round > 5 {
			return Snapshot{Value: float64(round)}, nil
		}
		return Snapshot{}, errors.New("the API server is away")
	}}
	metadata := s.add("a", trigger)
	require.InDelta(t, 1, s.value(chat, metadata), 0)
	for range 3 { // three intervals on the last snapshot
		s.tick()
		require.InDelta(t, 1, s.value(chat, metadata), 0)
	}
	s.tick()
	_, err := s.engine.Snapshot(chat, metadata)
	require.Equal(t, codes.Unavailable, code(err))
	require.ErrorContains(t, err, "stale: the last round of models/chat was 1m0s ago, above the limit of 45s: the last round failed: the API server is away")
	s.tick()
	require.InDelta(t, 6, s.value(chat, metadata), 0)
}

func TestIdleIsForgotten(t *testing.T) {
	s := newStage(t, nil)
	asked, idle := counting(), counting()
	a, b := s.add("a", asked), s.add("b", idle)
	s.value(chat, a)
	s.value(chat, b)
	for range 41 { // 10 min and 15 s
		s.tick()
		s.value(chat, a)
	}
	require.Equal(t, 1, s.engine.running())
	require.Equal(t, 1, idle.wasClosed())
	require.Zero(t, asked.wasClosed())
	s.settled()
	s.clock.advance(11 * time.Minute)
	require.Eventually(t, func() bool { return s.engine.running() == 0 }, patience, time.Millisecond, "and with the last one its ScaledObject")
	require.Equal(t, 1, asked.wasClosed())
	s.value(chat, a) // asked for again, it begins anew
	require.Equal(t, 1, s.engine.running())
}

// TestReplacedStopsSoon edits metadata: of two triggers of one identity the one that is not asked for any more ends long
// before the idle time, as both would write one state.
func TestReplacedStopsSoon(t *testing.T) {
	s := newStage(t, nil)
	before, after, other := s.add("before", counting()), s.add("after", counting()), s.add("other", counting())
	before["identity"], after["identity"] = "replicas", "replicas"
	s.value(chat, before)
	s.value(chat, other)
	s.tick()
	s.value(chat, after)
	for range 2 {
		s.tick()
		s.value(chat, after)
		require.Equal(t, 3, s.engine.running(), "both may be asked for in turn")
	}
	s.tick()
	s.value(chat, after)
	s.tick()
	require.Equal(t, 2, s.engine.running())
	require.Equal(t, 1, s.triggers["before"].wasClosed())
}

// TestSuccessorIsKept: a ScaledObject whose last trigger is forgotten may be asked for again before its goroutine has ended.
func TestSuccessorIsKept(t *testing.T) {
	s := newStage(t, nil)
	last := &object{engine: s.engine, ref: chat, changed: make(chan struct{}, 1)}
	s.engine.objects[chat] = last
	_, more := last.enqueue(s.clock.Now())
	require.False(t, more)
	metadata := s.add("a", counting())
	s.value(chat, metadata)
	last.end()
	s.engine.mu.RLock()
	successor := s.engine.objects[chat]
	s.engine.mu.RUnlock()
	require.NotNil(t, successor)
	s.tick()
	require.InDelta(t, 2, s.value(chat, metadata), 0)
}

// TestClockThatIsSet: a wall clock that is set forward by more than the idle time ends no trigger, as no time has passed.
func TestClockThatIsSet(t *testing.T) {
	now := time.Now() // only such a time has a monotonic reading
	set := wallAhead(now.Add(time.Second), time.Hour)
	require.InDelta(t, 3601, set.Unix()-now.Unix(), 1)
	require.Equal(t, time.Second, set.Sub(now))
	trigger := newEntry("k", chat, Plan{Trigger: counting(), Interval: 15 * time.Second}, now)
	require.Empty(t, trigger.over(set, DefaultIdle, time.Time{}))
	trigger.ask(set)
	require.Empty(t, trigger.over(now.Add(time.Minute), DefaultIdle, set), "nor does one that is set back")
	require.NotEmpty(t, trigger.over(set.Add(DefaultIdle+time.Second), DefaultIdle, time.Time{}))
}

// wallAhead returns a time whose wall clock was set forward and whose monotonic reading was not. Package time has no
// way to make one: the whole seconds since 1885 are the 33 bits above the 30 of the nanoseconds.
func wallAhead(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30
	return t
}

func TestRoundsOfOneObjectRunSideBySide(t *testing.T) {
	s := newStage(t, nil)
	both := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(2)
	go func() { arrived.Wait(); close(both) }()
	meet := func(int) (Snapshot, error) { arrived.Done(); <-both; return Snapshot{Value: 1}, nil }
	one, two := &fakeTrigger{answer: func(int) (Snapshot, error) { return Snapshot{}, nil }}, &fakeTrigger{answer: func(int) (Snapshot, error) { return Snapshot{}, nil }}
	a, b := s.add("a", one), s.add("b", two)
	s.value(chat, a)
	s.value(chat, b)
	s.settled()
	one.mu.Lock()
	one.answer = meet
	one.mu.Unlock()
	two.mu.Lock()
	two.answer = meet
	two.mu.Unlock()
	s.clock.advance(15 * time.Second)
	require.Eventually(t, func() bool { return s.value(chat, a) == 1 && s.value(chat, b) == 1 }, patience, time.Millisecond)
}

// TestSlowRoundHoldsUpNothing: a trigger whose round hangs leaves the others of its ScaledObject alone, and is itself
// replaced and forgotten like any other.
func TestSlowRoundHoldsUpNothing(t *testing.T) {
	s := newStage(t, nil)
	slow := &hangingTrigger{began: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{})}
	s.other = slow
	hangs := map[string]string{"is": "slow", "identity": "replicas"}
	fast := s.add("fast", counting())
	require.InDelta(t, 1, s.value(chat, fast), 0)
	s.settled()
	_, err := s.engine.Spec(chat, hangs)
	require.NoError(t, err)
	<-slow.began
	for round := 2; round <= 5; round++ {
		s.settled(hangs)
		s.clock.advance(15 * time.Second)
		s.settled(hangs)
		require.InDelta(t, float64(round), s.value(chat, fast), 0)
		_, err = s.engine.Snapshot(chat, hangs)
		require.ErrorContains(t, err, "cold start")
	}

	mended := with(s.add("mended", counting()), "identity", "replicas")
	require.InDelta(t, 1, s.value(chat, mended), 0, "what begins meanwhile does not wait either")
	for range 4 {
		s.settled(hangs)
		s.clock.advance(15 * time.Second)
		s.settled(hangs)
		s.value(chat, mended)
	}
	require.Equal(t, 2, s.engine.running(), "and takes its place")
	select {
	case <-slow.ended: // its context has, before the interval is over
	case <-time.After(patience):
		require.Fail(t, "its round goes on")
	}
	<-slow.closed
}

// A hangingTrigger has a round that lasts until its context ends.
type hangingTrigger struct{ began, ended, closed chan struct{} }

func (h *hangingTrigger) Round(ctx context.Context, _ time.Time) (Snapshot, error) {
	close(h.began)
	<-ctx.Done()
	close(h.ended)
	return Snapshot{}, ctx.Err()
}

func (h *hangingTrigger) Close() {
	<-h.ended // it is closed after its last round
	close(h.closed)
}

// TestNeverTwoRoundsOfOneTrigger: one that does not end in time is left to it.
func TestNeverTwoRoundsOfOneTrigger(t *testing.T) {
	s := newStage(t, nil)
	hold := make(chan struct{})
	trigger := &fakeTrigger{answer: func(round int) (Snapshot, error) {
		if round == 2 {
			<-hold
		}
		return Snapshot{Value: float64(round)}, nil
	}}
	metadata := s.add("a", trigger)
	s.value(chat, metadata)
	s.settled()
	for range 6 {
		s.clock.advance(15 * time.Second)
		s.settled(metadata)
	}
	close(hold)
	require.Eventually(t, func() bool { return s.value(chat, metadata) >= 2 }, patience, time.Millisecond)
	s.settled()
	require.LessOrEqual(t, trigger.count(), 3, "those that it missed are not made up for")
}

func TestPanicIsAnError(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", &fakeTrigger{answer: func(int) (Snapshot, error) { panic("ouch") }})
	good := s.add("b", counting())
	require.InDelta(t, 1, s.value(chat, good), 0)
	require.Eventually(t, func() bool {
		_, err := s.engine.Snapshot(chat, metadata)
		return err != nil && code(err) == codes.Unavailable && err.Error() == "rpc error: code = Unavailable desc = cold start: no round of models/chat has ended yet: the last round failed: the round panicked: ouch"
	}, patience, time.Millisecond)
}

func TestBuildErrors(t *testing.T) {
	s := newStage(t, nil)
	_, err := s.engine.Spec(chat, map[string]string{"is": "nothing"})
	require.Equal(t, codes.InvalidArgument, code(err))
	require.ErrorContains(t, err, errBuild.Error())
	require.Zero(t, s.engine.running())
}

func TestMaxTriggers(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 2 })
	for i := range 2 {
		_, err := s.engine.Spec(chat, s.add(fmt.Sprint(i), counting()))
		require.NoError(t, err)
	}
	late := counting()
	_, err := s.engine.Spec(chat, s.add("late", late))
	require.Equal(t, codes.ResourceExhausted, code(err))
	require.ErrorContains(t, err, "there are 2 triggers, which take 2 places, those of namespace models 2, and no more than 2 are allowed, of which this one would take 1")
	require.Equal(t, 1, late.wasClosed())
}

// TestMaxTriggersAreShared: a namespace with many triggers does not take the place of those that others need. It took
// all, and another's first trigger was refused.
func TestMaxTriggersAreShared(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 6 })
	made := 0
	ask := func(namespace string) error {
		made++
		_, err := s.engine.Spec(Ref{Namespace: namespace, Name: "chat"}, s.add(fmt.Sprint(made), counting()))
		return err
	}
	has := func() map[string]int {
		s.engine.mu.RLock()
		defer s.engine.mu.RUnlock()
		require.Len(t, s.engine.triggers, 6)
		return maps.Clone(s.engine.of)
	}
	for range 6 {
		require.NoError(t, ask("greedy"))
	}
	require.ErrorContains(t, ask("greedy"), "those of namespace greedy 6")
	for range 3 {
		require.NoError(t, ask("other"))
	}
	require.Equal(t, codes.ResourceExhausted, code(ask("other")))
	require.Equal(t, codes.ResourceExhausted, code(ask("greedy")))
	require.Equal(t, map[string]int{"greedy": 3, "other": 3}, has())
	for range 2 {
		require.NoError(t, ask("third"))
	}
	require.Equal(t, codes.ResourceExhausted, code(ask("third")))
	require.Equal(t, map[string]int{"greedy": 2, "other": 2, "third": 2}, has())
	for i := range 6 {
		trigger := s.triggers[fmt.Sprint(i+1)]
		if i < 2 {
			require.Zero(t, trigger.wasClosed(), "the newest go")
			continue
		}
		require.Eventually(t, func() bool { return trigger.wasClosed() == 1 }, patience, time.Millisecond)
	}
	_, err := s.engine.Snapshot(Ref{Namespace: "greedy", Name: "chat"}, map[string]string{"is": "6"})
	require.Equal(t, codes.ResourceExhausted, code(err), "what had to go does not come back")
}

// TestLongMetadataTakeMorePlaces: what a trigger keeps of 32 KiB of metadata is up to 1.2 MiB, so that 450 of them, as of a
// ScaledObject with eight that is edited 56 times in ten minutes, were more than the scaler's memory, and 10,000 were let in.
func TestLongMetadataTakeMorePlaces(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 20 })
	s.other = counting()
	made := 0
	ask := func(namespace string, bytes int) error {
		made++
		metadata := map[string]string{"is": fmt.Sprintf("%05d", made), "note": strings.Repeat("x", bytes-11)}
		require.Equal(t, bytes, sizeOf(metadata))
		_, err := s.engine.Spec(Ref{Namespace: namespace, Name: "chat"}, metadata)
		return err
	}
	for range 5 {
		require.NoError(t, ask("greedy", 4*placeBytes-1))
	}
	err := ask("greedy", 11)
	require.Equal(t, codes.ResourceExhausted, code(err))
	require.ErrorContains(t, err, "there are 5 triggers, which take 20 places, those of namespace greedy 20, and no more than 20 are allowed, of which this one would take 1: raise the limit, write shorter metadata,")
	require.NoError(t, ask("other", 9*placeBytes), "it takes 10 places, of three others")
	require.Equal(t, 3, s.engine.running())
	require.Equal(t, 18, s.engine.places)
	require.Equal(t, map[string]int{"greedy": 8, "other": 10}, s.engine.of)
	require.NoError(t, ask("greedy", 2*placeBytes-1))
	require.Equal(t, codes.ResourceExhausted, code(ask("other", 11)), "it has half of them")
	require.Equal(t, codes.ResourceExhausted, code(ask("greedy", 11)))
	require.Equal(t, codes.ResourceExhausted, code(ask("third", 30<<10)), "it has a third of them at most")
	require.Equal(t, 20, s.engine.places)
	alone := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 1 })
	alone.other = counting()
	_, err = alone.engine.Spec(chat, map[string]string{"note": strings.Repeat("x", 30<<10)})
	require.NoError(t, err, "there is room for one, however long")
}

// TestChosenMetadataDoNotTakeTheMetrics: who writes two triggers can look for two whose metadata are told alike where they are
// shown. With 48 bits that took half a minute, and two series alike are refused with all others.
func TestChosenMetadataDoNotTakeTheMetrics(t *testing.T) {
	w := newWorld(t)
	w.load(5)
	triggers, err := NewTriggers(TriggersConfig{Scales: w, Observe: w.eyes})
	require.NoError(t, err)
	metrics := NewMetrics()
	engine, err := NewEngine(t.Context(), EngineConfig{Build: triggers.Build, Metrics: metrics, Now: func() time.Time { return w.now }})
	require.NoError(t, err)
	defer engine.Close()
	for _, note := range []string{"pbjgw", "ptnl7"} {
		require.Eventually(t, func() bool {
			_, err := engine.Snapshot(chat, metricMode("threshold", "5", "note", note))
			return err == nil
		}, patience, time.Millisecond)
	}
	require.Equal(t, 2, strings.Count(exposed(t, metrics), "inferscale_keda_target{"))
}

func TestClose(t *testing.T) {
	s := newStage(t, nil)
	trigger := counting()
	metadata := s.add("a", trigger)
	s.value(chat, metadata)
	s.engine.Close()
	require.Equal(t, 1, trigger.wasClosed())
	_, err := s.engine.Snapshot(chat, metadata)
	require.Equal(t, codes.Unavailable, code(err))
	require.ErrorContains(t, err, "shutting down")
}

// TestCloseWhileTriggersBegin is for the race detector: none begins once Close waits for those that there are.
func TestCloseWhileTriggersBegin(t *testing.T) {
	for n := range 200 {
		trigger := counting()
		e, err := NewEngine(t.Context(), EngineConfig{Build: func(Ref, map[string]string) (Plan, error) {
			return Plan{Trigger: trigger, Spec: Spec{"q", 1}, Interval: time.Hour}, nil
		}})
		require.NoError(t, err)
		const callers, each = 4, 10
		var all sync.WaitGroup
		start := make(chan struct{})
		for c := range callers {
			all.Add(1)
			go func() {
				defer all.Done()
				<-start
				for i := range each {
					if _, err := e.Spec(Ref{"models", fmt.Sprint(c, "-", i)}, nil); err != nil && code(err) != codes.Unavailable {
						t.Error(err)
					}
				}
			}()
		}
		close(start)
		for range n { // by turns earlier and later; nothing that the race detector takes for an order
			runtime.Gosched()
		}
		e.Close()
		all.Wait()
		require.Zero(t, e.running())
		require.Equal(t, callers*each, trigger.wasClosed(), "each of them, those that came too late too")
	}
}

func TestNewEngineSaysWhatIsWrong(t *testing.T) {
	_, err := NewEngine(t.Context(), EngineConfig{Idle: -1, Stale: -1, MaxTriggers: -1})
	for _, text := range []string{"build: <nil>: must be set", "idle: -1ns: must not be negative", "stale: -1: must not be negative", "maxTriggers: -1: must not be negative"} {
		require.ErrorContains(t, err, text)
	}
}

func TestMetrics(t *testing.T) {
	m := NewMetrics()
	s := newStage(t, func(c *EngineConfig) { c.Metrics = m })
	trigger := &fakeTrigger{answer: func(round int) (Snapshot, error) {
		switch round {
		case 2:
			return Snapshot{Unknown: errors.New("no")}, nil
		case 3:
			return Snapshot{}, errors.New("no")
		}
		return Snapshot{Value: 12}, nil
	}}
	metadata := s.add("a", trigger)
	s.value(chat, metadata)
	require.InDelta(t, 1, testutil.ToFloat64(m.triggers), 0)
	require.Equal(t, []float64{12}, series(t, m, "inferscale_keda_value"))
	require.Equal(t, []float64{1}, series(t, m, "inferscale_keda_target"))
	require.Equal(t, []float64{1768464000}, series(t, m, "inferscale_keda_snapshot_timestamp_seconds"))
	s.tick()
	s.tick()
	require.Empty(t, series(t, m, "inferscale_keda_value"), "what is not known is not shown as a number")
	require.Equal(t, []float64{1768464015}, series(t, m, "inferscale_keda_snapshot_timestamp_seconds"), "a round that failed found nothing")
	for _, result := range []string{"value", "unknown", "error"} {
		require.InDelta(t, 1, testutil.ToFloat64(m.rounds.WithLabelValues(result)), 0, result)
	}
	problems, err := testutil.CollectAndLint(m)
	require.NoError(t, err)
	require.Empty(t, problems)
	s.tick()
	require.Equal(t, []float64{12}, series(t, m, "inferscale_keda_value"))
	s.settled()
	trigger.mu.Lock() // no round ends meanwhile
	s.clock.advance(46 * time.Second)
	require.Empty(t, series(t, m, "inferscale_keda_value"), "what is stale is not answered with")
	require.Len(t, series(t, m, "inferscale_keda_snapshot_timestamp_seconds"), 1, "its age is shown")
	trigger.mu.Unlock()
	s.engine.Close()
	require.Empty(t, series(t, m, "inferscale_keda_snapshot_timestamp_seconds"))
	require.Zero(t, testutil.ToFloat64(m.triggers))
}

// series returns the values of a metric, in order.
func series(t *testing.T, c prometheus.Collector, name string) []float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	var values []float64
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				values = append(values, m.GetGauge().GetValue())
			}
		}
	}
	slices.Sort(values)
	return values
}

// TestMetricsOfTwoTriggersOfOneMetric: each has its own, and the end of one takes nothing from the other.
func TestMetricsOfTwoTriggersOfOneMetric(t *testing.T) {
	m := NewMetrics()
	s := newStage(t, func(c *EngineConfig) { c.Metrics = m })
	of := func(v float64) *fakeTrigger {
		return &fakeTrigger{answer: func(int) (Snapshot, error) { return Snapshot{Value: v}, nil }}
	}
	five, nine := s.add("five", of(5)), s.add("nine", of(9))
	s.value(chat, five)
	s.value(chat, nine)
	for range 10 {
		s.tick()
		s.value(chat, five)
		s.value(chat, nine)
		require.Equal(t, []float64{5, 9}, series(t, m, "inferscale_keda_value"))
	}
	// Nobody asks for five any more: nine is what it was edited to.
	for range 4 {
		s.tick()
		s.value(chat, nine)
	}
	require.Equal(t, []float64{5, 9}, series(t, m, "inferscale_keda_value"))
	for range 37 {
		s.tick()
		s.value(chat, nine)
		require.Equal(t, []float64{9}, series(t, m, "inferscale_keda_value"))
	}
	require.Equal(t, 1, s.engine.running())
}

// TestPropKey: two pairs have one key if and only if they are equal.
func TestPropKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.StringMatching(`[a1:]{0,3}`)
		pair := func(label string) (Ref, map[string]string) {
			return Ref{words.Draw(t, label+" namespace"), words.Draw(t, label+" name")}, rapid.MapOfN(words, words, 0, 3).Draw(t, label)
		}
		r1, m1 := pair("one")
		r2, m2 := pair("two")
		require.Equal(t, r1 == r2 && fmt.Sprint(m1) == fmt.Sprint(m2) && len(m1) == len(m2), key(r1, m1) == key(r2, m2))
	})
}

func BenchmarkSnapshot(b *testing.B) {
	e, err := NewEngine(b.Context(), EngineConfig{Build: func(Ref, map[string]string) (Plan, error) {
		return Plan{Trigger: counting(), Spec: Spec{"q", 1}, Interval: time.Hour}, nil
	}})
	require.NoError(b, err)
	defer e.Close()
	server := NewServer(e)
	metadata := map[string]string{
		"scalerName": "keda-kaito-scaler", "threshold": "10", "metricName": "vllm:num_requests_waiting", "metricPort": "5000",
		"metricPath": "/metrics", "scrapeTimeout": "5", "metricProtocol": "http", "scalerAddress": "keda-kaito-scaler.keda.svc.cluster.local:10450",
	}
	request := asked(chat, metadata, "q")
	require.Eventually(b, func() bool { _, err := server.GetMetrics(context.Background(), request); return err == nil }, patience, time.Millisecond)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := server.GetMetrics(context.Background(), request); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTheTimersAreThoseOfTheConfiguration: a trigger due in 15 s waits for a timer of 15 s.
func TestTheTimersAreThoseOfTheConfiguration(t *testing.T) {
	waits := make(chan time.Duration, 100)
	s := newStage(t, nil)
	c := s.engine.c
	c.After = func(d time.Duration) (<-chan time.Time, func()) {
		waits <- d
		return nil, func() {}
	}
	e, err := NewEngine(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	_, err = e.Spec(chat, s.add("a", counting()))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(waits) > 0 && <-waits == 15*time.Second }, patience, time.Millisecond)
}
