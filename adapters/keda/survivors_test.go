package keda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
)

// TestReadyIsOfThePods: what a policy is told of readiness is what was seen of the pods, and not what the target's status says.
func TestReadyIsOfThePods(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode("realtime.holdWhilePending", "true"))
	w.reading = scaling.Reading{Lower: 30, Upper: 30, Values: 3, NotReady: 1}
	require.Contains(t, w.round(trigger).Because, "Pending", "3 of 4 are ready, whatever the status says")
	w.load(30)
	require.Contains(t, w.next(trigger).Because, "Up 4 -> 5")

	obs := shownOf(k8s.Scale{Replicas: 4, StatusReplicas: 4}, &k8s.Observed{Fleets: []k8s.FleetView{{Ready: 3}}})
	require.Equal(t, int32(3), obs.ReadyReplicas)
	require.Equal(t, int32(4), shownOf(k8s.Scale{Replicas: 4, StatusReplicas: 4}, &k8s.Observed{}).ReadyReplicas)
}

// TestARoundThatWasCutShortIsAnError: what its pods have not said in time is not what they say.
func TestARoundThatWasCutShortIsAnError(t *testing.T) {
	for _, metadata := range []map[string]string{metricMode(), replicasMode()} {
		w := newWorld(t)
		triggers, err := NewTriggers(TriggersConfig{
			Scales: w, Observe: func(*build.Plan) (Observer, error) { return blind{}, nil }, Objects: func(Ref) (Object, error) { return w.object, nil },
			Store: func(Ref) (k8s.Store, error) { return w.store, nil },
		})
		require.NoError(t, err)
		plan, err := triggers.Build(chat, metadata)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = plan.Trigger.Round(ctx, w.now)
		require.EqualError(t, err, "no selector")
		require.Zero(t, w.store.saves)
	}
}

// TestWhatCannotBeBuiltIsTriedSoon: KEDA may ask for a ScaledObject before the informer has it.
func TestWhatCannotBeBuiltIsTriedSoon(t *testing.T) {
	w := newWorld(t)
	w.objErr = errors.New("not in the cache")
	s := w.round(w.trigger(replicasMode()))
	require.EqualError(t, s.Unknown, "not in the cache")
	require.Equal(t, w.now.Add(time.Second), s.Next)
}

// TestFollowersLookSoonForARoundThatIsLate: of what another replica of the scaler sees, this one that sees nothing says what
// that has said last, and looks after a quarter of an interval for more.
func TestFollowersLookSoonForARoundThatIsLate(t *testing.T) {
	w := newWorld(t)
	w.load(15)
	w.round(w.trigger(replicasMode()))
	w.now = w.now.Add(20 * time.Second)
	w.reading = scaling.Reading{}
	s := w.round(w.trigger(replicasMode()))
	require.NoError(t, s.Unknown)
	require.InDelta(t, 5, s.Value, 0)
	require.Equal(t, w.now.Add(15*time.Second/4), s.Next)
}

// TestPoliciesThatWatchBeginAnewWithTheTarget: for a Deployment that was made anew they have nothing left of the one before, go
// on with the rounds, and the connections that were theirs are closed.
func TestPoliciesThatWatchBeginAnewWithTheTarget(t *testing.T) {
	const other = `[{name: other, scaler: {proportional: {metrics: [{source: {name: "vllm:num_requests_running"}, target: "10"}]}}}]`
	w := newWorld(t)
	made, closed := 0, 0
	observe := func(plan *build.Plan) (Observer, error) {
		o, err := w.eyes(plan)
		if strings.Contains(plan.Scrape.Metrics[0].Name, "running") {
			made++
			o = &closing{o, &closed}
		}
		return o, err
	}
	var later []func()
	_, trigger := w.beside(func(f func()) { later = append(later, f) }, observe, inReplicas("threshold", "10", "shadow", other))
	next := func() {
		w.next(trigger)
		for len(later) > 0 {
			f := later[0]
			later = later[1:]
			f()
		}
	}
	w.load(10)
	w.scale.UID = "first"
	next()
	first := trigger.watchers.Load()
	require.Equal(t, []int{1, 0}, []int{made, closed})
	w.scale.UID = "second"
	next()
	require.Equal(t, []int{2, 1}, []int{made, closed})
	require.NotSame(t, first, trigger.watchers.Load())
	w.load(20)
	next()
	require.Equal(t, []int{2, 1}, []int{made, closed}, "it is the same target")
	require.False(t, trigger.watching()[0].leftOut)
	require.Greater(t, trigger.watching()[0].Replicas, int32(4), "they go on")
	trigger.Close()
	require.Equal(t, []int{2, 2}, []int{made, closed})
}

// closing is an Observer that counts its Close.
type closing struct {
	Observer

	n *int
}

func (c *closing) Close() { *c.n++ }

// TestTuningsTakeTurns: what policies of one namespace tune is tuned beside the rounds, in turn with those of others, also for
// those that watch.
func TestTuningsTakeTurns(t *testing.T) {
	w := newWorld(t)
	triggers, err := NewTriggers(TriggersConfig{Scales: w, Observe: podless, Objects: func(Ref) (Object, error) { return w.object, nil }})
	require.NoError(t, err)
	plan, err := triggers.Build(chat, replicasMode())
	require.NoError(t, err)
	meta := plan.Trigger.(*podTrigger).meta
	require.IsType(t, new(capacity.Shared).Tuner("a"), meta.tuner())
	require.IsType(t, new(capacity.Shared).Tuner("a"), meta.shadowTuner())
}

// TestWatchersThatAreWrongAreLogged: they are left out, and nobody else says so.
func TestWatchersThatAreWrongAreLogged(t *testing.T) {
	var j journal
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless, Logger: j.logger()})
	require.NoError(t, err)
	_, err = triggers.Build(chat, inReplicas("threshold", "10", "shadow", watching))
	require.NoError(t, err)
	require.Empty(t, j.String())
	_, err = triggers.Build(chat, inReplicas("threshold", "10", "shadow", "- {name: a, scaler: {static: {replicas: -1}}}"))
	require.NoError(t, err)
	require.Contains(t, j.String(), "policies that watch are left out")
	require.Contains(t, j.String(), "shadow[0].scaler.static.replicas")
}

// TestAsManyFaultsAsAreTold: one more, and the rest is counted.
func TestAsManyFaultsAsAreTold(t *testing.T) {
	var all []error
	for i := range mostFaults + 1 {
		all = append(all, fmt.Errorf("%d", i))
	}
	require.Len(t, each(few(errors.Join(all[:mostFaults]...))), mostFaults)
	require.NotContains(t, few(errors.Join(all[:mostFaults]...)).Error(), "more")
	require.ErrorContains(t, few(errors.Join(all...)), "and 1 more")
}

// TestAClosedEngineKeepsNothing: what it has of objects goes with it.
func TestAClosedEngineKeepsNothing(t *testing.T) {
	s := newStage(t, nil)
	s.value(chat, s.add("a", counting()))
	require.Len(t, s.engine.objects, 1)
	s.engine.Close()
	require.Empty(t, s.engine.objects)
}

// TestRoundsUpToTheirLimitHaveBuckets: from a millisecond to more than the seconds that a round may take.
func TestRoundsUpToTheirLimitHaveBuckets(t *testing.T) {
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(NewMetrics()))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "inferscale_keda_round_duration_seconds" {
			continue
		}
		buckets := f.GetMetric()[0].GetHistogram().GetBucket()
		require.Len(t, buckets, 11)
		require.InDelta(t, 0.001, buckets[0].GetUpperBound(), 1e-9)
		require.InDelta(t, 9.5367, buckets[10].GetUpperBound(), 1e-4)
		return
	}
	t.Fatal("it is not there")
}
