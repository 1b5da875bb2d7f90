package keda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A world has one target, its pods' load, one ScaledObject and one store. Several rounds may read it at once.
type world struct {
	t        *testing.T
	now      time.Time
	scale    k8s.Scale
	scaleErr error
	reading  scaling.Reading // of whatever metric is asked for
	seenErr  error
	observes atomic.Int32
	object   Object
	objErr   error
	store    *memoryStore
	closed   atomic.Int32
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), store: &memoryStore{data: make(map[string][]byte)}}
	w.object = Object{Target: k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "chat"}, Min: 1, Max: 20}
	w.replicas(4)
	return w
}

// replicas sets the count, with every pod ready and silent but for load.
func (w *world) replicas(n int32) { w.scale.Replicas, w.scale.StatusReplicas = n, n }

// load is the average of all pods.
func (w *world) load(average float64) {
	w.reading = scaling.Reading{Lower: average, Upper: average, Values: w.scale.Replicas}
}

func (w *world) Get(_ context.Context, t k8s.Target) (k8s.Scale, error) {
	s := w.scale
	s.Target = t
	return s, w.scaleErr
}

// eyes are an Observer that finds the load under whatever name it is asked for.
type eyes struct {
	*world

	metric string
}

func (w eyes) Observe(context.Context, []k8s.Scale) (k8s.Observed, error) {
	w.observes.Add(1)
	r := w.reading
	r.Metric, r.At = w.metric, w.now
	return k8s.Observed{Readings: []scaling.Reading{r}, Fleets: []k8s.FleetView{{Ready: r.Values, NotReady: r.NotReady}}, Err: w.seenErr}, nil
}

func (w *world) Close() { w.closed.Add(1) }

// trigger builds a trigger as a replica of the scaler does.
func (w *world) trigger(metadata map[string]string) Trigger {
	w.t.Helper()
	triggers, err := NewTriggers(TriggersConfig{
		Scales:  w,
		Observe: func(plan *build.Plan) (Observer, error) { return eyes{w, plan.Scrape.Metrics[0].Name}, nil },
		Objects: func(Ref) (Object, error) { return w.object, w.objErr },
		Store: func(Ref) (k8s.Store, error) {
			if w.store == nil {
				return nil, nil //nolint:nilnil // nothing is kept
			}
			return w.store, nil
		},
	})
	require.NoError(w.t, err)
	plan, err := triggers.Build(chat, metadata)
	require.NoError(w.t, err)
	return plan.Trigger
}

// round makes a round now.
func (w *world) round(t Trigger) Snapshot {
	w.t.Helper()
	s, err := t.Round(w.t.Context(), w.now)
	require.NoError(w.t, err)
	return s
}

// next makes the round that is an interval later.
func (w *world) next(t Trigger) Snapshot {
	w.t.Helper()
	w.now = w.now.Add(15 * time.Second)
	return w.round(t)
}

// A memoryStore is a Store in memory.
type memoryStore struct {
	mu    sync.Mutex
	data  map[string][]byte
	saves int
	fail  error
}

func (s *memoryStore) Load(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.data[key]), s.fail
}

func (s *memoryStore) Save(_ context.Context, key string, old, state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	if !bytes.Equal(s.data[key], old) {
		return k8s.ErrStateConflict
	}
	s.saves++
	s.data[key] = bytes.Clone(state)
	return nil
}

func (s *memoryStore) SaveAndDrop(ctx context.Context, key string, old, state []byte, drop func(key string, state []byte) bool) error {
	if err := s.Save(ctx, key, old, state); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.data, func(k string, v []byte) bool { return k != key && drop(k, v) })
	return nil
}

func metricMode(more ...string) map[string]string {
	return with(map[string]string{"scalerName": "keda-kaito-scaler", "threshold": "10"}, more...)
}

func replicasMode(more ...string) map[string]string {
	return with(map[string]string{
		"scalerName": "keda-kaito-scaler", "mode": "replicas", "policy": "realtime", "threshold": "10", "lowThreshold": "5",
		"realtime.scaleUpRule.stabilizationWindowSeconds": "0", "realtime.scaleUpRule.cooldownSeconds": "60",
		"realtime.scaleDownRule.stabilizationWindowSeconds": "30", "realtime.scaleDownRule.cooldownSeconds": "60",
	}, more...)
}

func with(m map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// requireCooling: a change has been seen, and nothing happens for the cooldown.
func requireCooling(t *testing.T, s Snapshot) {
	t.Helper()
	require.Regexp(t, "^Hold .*(Cooldown|BeforeChange)", s.Because)
}

func TestMetricMode(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(metricMode())
	w.load(15)
	s := w.round(trigger)
	require.NoError(t, s.Unknown)
	require.InDelta(t, 60, s.Value, 0, "the sum, which an AverageValue target divides: 6 replicas")
	require.Equal(t, Spec{Metric: "vllm:num_requests_waiting", Target: 10}, s.Spec)
	require.True(t, s.Active)
	require.Contains(t, s.Because, "vllm:num_requests_waiting: 60")
	w.load(0)
	require.InDelta(t, 0, w.next(trigger).Value, 0)

	w.reading = scaling.Reading{} // nobody says anything
	w.seenErr = errors.New("4 pods: Refused")
	s = w.next(trigger)
	require.EqualError(t, s.Unknown, "4 pods: Refused")
	require.True(t, s.Active, "a fleet that is silent stays")
	require.NoError(t, s.ActiveUnknown)
	require.Zero(t, w.store.saves, "there is nothing to keep")
}

// TestMetricModeFromZero: a HorizontalPodAutoscaler is off at 0 replicas, and KEDA asks whether a target is active only
// after it has had a value. So there is one, which is that of the one replica that KEDA begins with.
func TestMetricModeFromZero(t *testing.T) {
	for _, kind := range []MetricType{AverageValue, Value} {
		w := newWorld(t)
		w.replicas(0)
		w.scale.Selector = labels.SelectorFromSet(labels.Set{"app": "chat"})
		triggers, err := NewTriggers(TriggersConfig{
			Scales:  w,
			Observe: podless,
			Objects: func(Ref) (Object, error) { return w.object, nil },
		})
		require.NoError(t, err)
		plan, err := triggers.Build(chat, metricMode("metricType", string(kind)))
		require.NoError(t, err)
		t.Cleanup(plan.Trigger.Close)
		s := w.round(plan.Trigger)
		require.NoError(t, s.Unknown)
		require.InDelta(t, 10, s.Value, 0, "one replica")
		require.True(t, s.Active)
		require.NoError(t, s.ActiveUnknown)
		require.Equal(t, "vllm:num_requests_waiting: 10, of one replica, as there is none", s.Because)

		w.replicas(1) // KEDA has begun, and no pod is there yet
		s = w.next(plan.Trigger)
		require.ErrorContains(t, s.Unknown, "NoPods: none of 1 pods is ready")
		require.True(t, s.Active)
	}
}

// podless makes the observer of a cluster without pods.
func podless(plan *build.Plan) (Observer, error) {
	scraper, err := scrape.New(plan.Scrape)
	if err != nil {
		return nil, err
	}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	pods, err := k8s.NewPods(corelisters.NewPodLister(index), plan.Grouping)
	if err != nil {
		return nil, err
	}
	return k8s.NewPodObserver(pods, scraper, plan.Port)
}

// TestTriggersShareABudget: all triggers take the memory of their pods' pages of one budget, as their namespaces.
func TestTriggersShareABudget(t *testing.T) {
	var seen []scrape.Config
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: func(plan *build.Plan) (Observer, error) {
		seen = append(seen, plan.Scrape)
		return podless(plan)
	}})
	require.NoError(t, err)
	for _, namespace := range []string{"a", "b"} {
		plan, err := triggers.Build(Ref{Namespace: namespace, Name: "chat"}, metricMode())
		require.NoError(t, err)
		t.Cleanup(plan.Trigger.Close)
		_, err = plan.Trigger.Round(t.Context(), time.Now())
		require.NoError(t, err)
	}
	require.Len(t, seen, 2)
	require.Equal(t, "a", seen[0].Tenant)
	require.Equal(t, "b", seen[1].Tenant)
	require.NotNil(t, seen[0].Budget)
	require.Same(t, seen[0].Budget, seen[1].Budget)
}

// TestTheMeanOfReadyPods: metricType Value is multiplied by the ready pods, so that is what divides.
func TestTheMeanOfReadyPods(t *testing.T) {
	w := newWorld(t)
	w.load(15)
	require.InDelta(t, 15, w.round(w.trigger(metricMode("metricType", "Value"))).Value, 0)
	// 1 of 3 pods is ready, at twice the threshold: HPA would go to ceil(20/10 * 1) = 2. Its share of the hold is sent.
	w.replicas(3)
	w.reading = scaling.Reading{Lower: 20. / 3, Upper: 40. / 3, Values: 1, NotReady: 2}
	require.InDelta(t, 30, w.round(w.trigger(metricMode("metricType", "Value"))).Value, 1e-9)
}

// TestAnotherTargetBeginsAnew: who deletes a Deployment and makes another one of its name is told why its memory is gone.
func TestAnotherTargetBeginsAnew(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	triggers, err := NewTriggers(TriggersConfig{
		Scales: w, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Observe: func(plan *build.Plan) (Observer, error) { return eyes{w, plan.Scrape.Metrics[0].Name}, nil },
		Objects: func(Ref) (Object, error) { return w.object, nil },
		Store:   func(Ref) (k8s.Store, error) { return w.store, nil },
	})
	require.NoError(t, err)
	plan, err := triggers.Build(chat, replicasMode())
	require.NoError(t, err)
	w.load(1)
	w.scale.UID = "first"
	w.round(plan.Trigger)
	w.next(plan.Trigger)
	require.NotContains(t, log.String(), "beginning anew")
	w.scale.UID = "second"
	w.next(plan.Trigger)
	require.Contains(t, log.String(), "the stored state is that of another target: beginning anew")
}

func TestTargetIsGone(t *testing.T) {
	w := newWorld(t)
	w.scaleErr = fmt.Errorf("Deployment models/chat: %w", k8s.ErrNotFound)
	for _, metadata := range []map[string]string{metricMode(), replicasMode()} {
		s := w.round(w.trigger(metadata))
		require.ErrorIs(t, s.Unknown, k8s.ErrNotFound)
		require.False(t, s.Active)
		require.NoError(t, s.ActiveUnknown, "that it does not exist is certain")
	}
}

// TestKindIsAway: discovery that lacks a kind for a moment must not take a fleet to zero.
func TestKindIsAway(t *testing.T) {
	w := newWorld(t)
	w.scaleErr = fmt.Errorf("Workspace models/chat: %w", k8s.ErrNoScale)
	for _, metadata := range []map[string]string{metricMode(), replicasMode()} {
		s := w.round(w.trigger(metadata))
		require.ErrorIs(t, s.Unknown, k8s.ErrNoScale)
		require.ErrorIs(t, s.ActiveUnknown, k8s.ErrNoScale)
	}
}

// TestTargetCannotBeRead: an API server that is away says nothing about the target, so nothing is published.
func TestTargetCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.scaleErr = errors.New("connection refused")
	for _, metadata := range []map[string]string{metricMode(), replicasMode()} {
		_, err := w.trigger(metadata).Round(t.Context(), w.now)
		require.EqualError(t, err, "connection refused")
	}
}

func TestReplicasMode(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.load(15)
	s := w.round(trigger)
	require.NoError(t, s.Unknown)
	require.InDelta(t, 5, s.Value, 0)
	require.Equal(t, Spec{Metric: "desired-replicas", Target: 1}, s.Spec)
	require.Contains(t, s.Because, "Up 4 -> 5: AboveHigh")
	require.InDelta(t, 5, w.next(trigger).Value, 0, "until somebody carries it out it is asked for again")
	w.replicas(5)
	w.load(15)
	s = w.next(trigger)
	require.InDelta(t, 5, s.Value, 0, "then the cooldown runs")
	requireCooling(t, s)
	for range 3 {
		require.InDelta(t, 5, w.next(trigger).Value, 0)
	}
	require.InDelta(t, 6, w.next(trigger).Value, 0, "after 60 s from when it was seen")
}

// TestOthersChangesStartNoCooldown: a person takes replicas away while the policy asks for more.
func TestOthersChangesStartNoCooldown(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.load(15)
	require.InDelta(t, 5, w.round(trigger).Value, 0)
	w.replicas(2)
	w.load(15)
	require.InDelta(t, 3, w.next(trigger).Value, 0)
	w.load(7)
	require.InDelta(t, 2, w.next(trigger).Value, 0)
	w.replicas(6) // and somebody scales up while it holds
	w.load(15)
	require.InDelta(t, 7, w.next(trigger).Value, 0)
}

// TestUnknownHolds: no number leaves, and the target stays active.
func TestUnknownHolds(t *testing.T) {
	w := newWorld(t)
	w.seenErr = errors.New("4 pods: Timeout")
	s := w.round(w.trigger(replicasMode()))
	require.ErrorContains(t, s.Unknown, "4 pods: Timeout")
	require.True(t, s.Active)
	require.NoError(t, s.ActiveUnknown)
}

// TestNobodyIsWaitedForWhoIsItself: what a trigger has stored is not another replica's, which might see what it does not.
func TestNobodyIsWaitedForWhoIsItself(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.load(15)
	require.NoError(t, w.round(trigger).Unknown)
	w.reading, w.seenErr = scaling.Reading{}, errors.New("4 pods: Timeout")
	require.ErrorContains(t, w.next(trigger).Unknown, "4 pods: Timeout")
}

// TestRestart: the same answer from what is stored, without asking a pod.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	w.load(15)
	before := w.round(w.trigger(replicasMode()))
	seen := w.observes.Load()
	w.load(0)
	w.now = w.now.Add(5 * time.Second)
	after := w.round(w.trigger(replicasMode()))
	require.Equal(t, seen, w.observes.Load())
	require.InDelta(t, before.Value, after.Value, 0)
	require.Equal(t, before.At, after.At)
	require.Equal(t, before.Because, after.Because)
}

// TestPropRestartsChangeNothing plays an episode with and without restarts.
func TestPropRestartsChangeNothing(t *testing.T) {
	play := func(restart func(i int) bool) (values []string) {
		w := newWorld(t)
		trigger := w.trigger(replicasMode())
		for i := range 200 {
			if restart(i) {
				trigger.Close()
				trigger = w.trigger(replicasMode())
			}
			w.load(float64(i/40%2*10 + i*i*7%5)) // by turns low and high
			s := w.next(trigger)
			values = append(values, s.Because)
			if s.Unknown == nil && i%3 == 0 {
				w.replicas(int32(s.Value))
			}
		}
		return values
	}
	never := play(func(int) bool { return false })
	require.Equal(t, never, play(func(int) bool { return true }))
	require.Equal(t, never, play(func(i int) bool { return i%7 == 3 }))
	require.Positive(t, strings.Count(strings.Join(never, "\n"), "Up "))
	require.Positive(t, strings.Count(strings.Join(never, "\n"), "Down "))
}

// TestEditedMetadataGoOn: another threshold is another answer at once, and the cooldown goes on.
func TestEditedMetadataGoOn(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.load(15)
	w.round(trigger)
	w.replicas(5)
	w.load(15)
	requireCooling(t, w.next(trigger))
	w.now = w.now.Add(time.Second)
	edited := w.round(w.trigger(replicasMode("threshold", "12")))
	require.Equal(t, w.now, edited.At)
	requireCooling(t, edited)
	// Another metric has no use for the state.
	require.Contains(t, w.next(w.trigger(replicasMode("metricName", "vllm:num_requests_running"))).Because, "Up 5 -> 6")
	require.Len(t, w.store.data, 2)
}

func TestBoundsFollowTheScaledObject(t *testing.T) {
	for _, keep := range []bool{true, false} {
		w := newWorld(t)
		if !keep {
			w.store = nil
		}
		trigger := w.trigger(replicasMode())
		w.load(15)
		w.round(trigger)
		w.replicas(5)
		w.load(15)
		requireCooling(t, w.next(trigger))
		w.object.Max = 3
		s := w.next(trigger)
		require.InDelta(t, 3, s.Value, 0)
		require.Contains(t, s.Because, "AboveMax")
		w.object.Max = 20
		requireCooling(t, w.next(trigger))
	}
}

func TestNoScaledObject(t *testing.T) {
	w := newWorld(t)
	w.objErr = errors.New("ScaledObject models/chat: not found")
	for _, metadata := range []map[string]string{metricMode(), replicasMode()} {
		s := w.round(w.trigger(metadata))
		require.EqualError(t, s.Unknown, "ScaledObject models/chat: not found")
		require.EqualError(t, s.ActiveUnknown, "ScaledObject models/chat: not found", "it must not look idle")
	}
}

// TestStateIsNeverOverwritten: one that cannot be used is kept, and nothing is said until it is mended.
func TestStateIsNeverOverwritten(t *testing.T) {
	for name, stored := range map[string]string{
		"not JSON":  `{"kind":`,
		"newer":     `{"kind":"keda.trigger","version":3,"at":1768464000000,"loop":{}}`,
		"other":     `{"kind":"k8s.loop","version":1,"policy":{}}`,
		"no policy": `{"kind":"keda.trigger","version":1,"at":1768464000000}`,
		"no loop":   `{"kind":"keda.trigger","version":2,"at":1768464000000}`,
		"bad loop":  `{"kind":"keda.trigger","version":2,"at":1768464000000,"loop":{"kind":"loop","version":1,"state":{}}}`,
		"no time":   `{"kind":"keda.trigger","version":1,"policy":{"kind":"realtime","version":1}}`,
		"negative":  `{"kind":"keda.trigger","version":1,"at":1768464000000,"from":-1,"policy":{}}`,
		"damaged":   `{"kind":"keda.trigger","version":1,"at":1768464000000,"policy":{"kind":"realtime","version":99}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			trigger := w.trigger(replicasMode())
			p, ok := trigger.(*podTrigger)
			require.True(t, ok)
			key := p.meta.identity()
			w.store.data[key] = []byte(stored)
			w.load(15)
			for range 3 {
				s := w.next(trigger)
				require.ErrorAs(t, s.Unknown, new(*scaling.StateError))
				require.Error(t, s.ActiveUnknown)
				require.Equal(t, stored, string(w.store.data[key]))
			}
			delete(w.store.data, key)
			require.NoError(t, w.next(trigger).Unknown)
		})
	}
}

func TestStoreIsAway(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.load(15)
	w.round(trigger)
	w.store.fail = errors.New("the API server is away")
	_, err := trigger.Round(t.Context(), w.now.Add(15*time.Second))
	require.EqualError(t, err, "load state: the API server is away")
	w.store.fail = nil
	w.now = w.now.Add(15 * time.Second)
	require.NoError(t, w.next(trigger).Unknown)
}

// TestCronAloneAsksNobody: the clock says how many, and zero is an answer.
func TestCronAloneAsksNobody(t *testing.T) {
	w := newWorld(t)
	w.object.Min = 0
	trigger := w.trigger(map[string]string{
		"scalerName": "keda-kaito-scaler", "mode": "replicas",
		"cron.mode": "InWindow", "cron.outside": "0",
		"cron.windows": `[{name: day, start: "0 8 * * *", end: "0 20 * * *", targetReplicas: 6}]`,
	})
	w.now = time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)
	s := w.round(trigger)
	require.InDelta(t, 6, s.Value, 0)
	require.True(t, s.Active)
	w.now = time.Date(2026, 1, 15, 21, 0, 0, 0, time.UTC)
	s = w.round(trigger)
	require.InDelta(t, 0, s.Value, 0)
	require.False(t, s.Active)
	require.Zero(t, w.observes.Load())
	require.Zero(t, w.closed.Load())
}

func TestWhoseScaler(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: func(*build.Plan) (Observer, error) { return nil, errors.New("no") }})
	require.NoError(t, err)
	_, err = triggers.Build(chat, metricMode("scalerName", "another"))
	require.EqualError(t, err, `scalerName: "another": must be keda-kaito-scaler, the name of this scaler`)
	_, err = triggers.Build(chat, metricMode("workspaceNamespace", "payroll"))
	require.ErrorContains(t, err, `workspaceNamespace: "payroll": must be the ScaledObject's namespace, models, unless the scaler allows others`)
	_, err = NewTriggers(TriggersConfig{})
	require.ErrorContains(t, err, "scales: <nil>: must be set")
	require.ErrorContains(t, err, "observe: <nil>: must be set")
}
