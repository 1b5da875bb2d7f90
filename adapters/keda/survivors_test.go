package keda

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/typed"
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
	require.Len(t, typed.Split(few(errors.Join(all[:mostFaults]...))), mostFaults)
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

// TestWhatWasNotStoredIsNotRemembered: the change that a round asked for that could not be stored is nobody's, and the round
// that sees it done has no cooldown of it.
func TestWhatWasNotStoredIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	store := &unsaved{Store: w.store}
	triggers, err := NewTriggers(TriggersConfig{
		Scales: w, Observe: w.eyes, Objects: func(Ref) (Object, error) { return w.object, nil }, Store: func(Ref) (k8s.Store, error) { return store, nil },
	})
	require.NoError(t, err)
	plan, err := triggers.Build(chat, replicasMode())
	require.NoError(t, err)
	w.load(7)
	w.round(plan.Trigger)
	store.fail = errors.New("the API server is away")
	w.now = w.now.Add(15 * time.Second)
	w.load(15)
	_, err = plan.Trigger.Round(t.Context(), w.now)
	require.EqualError(t, err, "store state: the API server is away")
	store.fail = nil
	w.replicas(5) // by somebody else
	w.load(15)
	require.InDelta(t, 6, w.next(plan.Trigger).Value, 0)
}

// unsaved is a Store that can be read, and fails to save.
type unsaved struct {
	k8s.Store

	fail error
}

func (s *unsaved) Save(ctx context.Context, key string, old, state []byte) error {
	if s.fail != nil {
		return s.fail
	}
	return s.Store.Save(ctx, key, old, state)
}

// TestWhoFollowsForgetsNothing: one that sees nothing, and says what another has found, goes on from what that has stored, and
// not from its own round: the change that was asked for starts its cooldown.
func TestWhoFollowsForgetsNothing(t *testing.T) {
	w := newWorld(t)
	w.load(15)
	w.round(w.trigger(replicasMode()))
	trigger := w.trigger(replicasMode())
	w.now = w.now.Add(14 * time.Second)
	w.reading = scaling.Reading{}
	require.InDelta(t, 5, w.round(trigger).Value, 0, "it says what the other has found")
	w.replicas(5)
	w.load(15)
	requireCooling(t, w.next(trigger))
}

// TestWhoCannotLoadWhatOthersFound has come to nothing.
func TestWhoCannotLoadWhatOthersFound(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.reading = scaling.Reading{}
	trigger.(*podTrigger).c.Scales = between{w, func() { w.store.fail = errors.New("the API server is away") }}
	_, err := trigger.Round(t.Context(), w.now)
	require.EqualError(t, err, "load state: the API server is away")
	require.Zero(t, w.store.saves)
}

// TestARoundThatChangesNothingKeepsTheState, so that another replica of the scaler goes on with it.
func TestARoundThatChangesNothingKeepsTheState(t *testing.T) {
	w := newWorld(t)
	metadata := map[string]string{"scalerName": "keda-kaito-scaler", "mode": "replicas", "scaler": "static: {replicas: 4}"}
	trigger := w.trigger(metadata)
	for range 3 {
		require.InDelta(t, 4, w.next(trigger).Value, 0)
	}
	for _, data := range w.store.data {
		require.NotContains(t, string(data), `"loop":null`)
	}
	w.scaleErr = errors.New("nobody asks")
	w.now = w.now.Add(time.Second)
	require.InDelta(t, 4, w.round(w.trigger(metadata)).Value, 0)
}

// TestBoundsThatDoNotFitAreToldOnce: what is wrong with metadata for this ScaledObject is not told a second time by what is
// built of both.
func TestBoundsThatDoNotFitAreToldOnce(t *testing.T) {
	w := newWorld(t)
	w.object.Min = 5
	require.EqualError(t, w.round(w.trigger(replicasMode("maxReplicas", "3"))).Unknown, "maxReplicas: 3: must be at least minReplicas 5")
}

// TestWrongRulesAreToldAlone: that there are no other ones follows from it.
func TestWrongRulesAreToldAlone(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless})
	require.NoError(t, err)
	for _, row := range []struct {
		metadata map[string]string
		want     []string
	}{
		{inReplicas("threshold", "-", "cron.mode", "InWindow", "cron.outside", "x"), []string{"cron.windows: 0: must have at least one in mode InWindow", `cron.outside: "x": must be a whole number of at most 2147483647`}},
		{inReplicas("threshold", "-", "scaler", "{"), []string{`scaler: "{": must be a policy document: scaler:1: must be YAML: did not find expected node content`}},
		{inReplicas("threshold", "-", "policy", "a: {"), []string{`policy: "a: {": must be a policy document: policy:1: must be YAML: did not find expected node content`}},
		{inReplicas("realtime.scaleUpRule", "{scaleStep: 1, scaleStep: 2}", "lowThreshold", "5"), []string{"realtime.scaleUpRule.scaleStep: 2: must be given once; it is on line 9"}},
		{inReplicas("realtime.scaleUpRule", "{[a]: 1}", "lowThreshold", "5"), []string{"realtime.scaleUpRule.key: a list: must be one of scaleStep, cooldownSeconds, stabilizationWindowSeconds"}},
		{inReplicas("realtime.scaleUpRule", "5", "realtime.scaleUpRule.scaleStep", "1", "lowThreshold", "5"), []string{
			`realtime.scaleUpRule.scaleStep: "1": must not be given in part and as a whole`, "realtime.scaleUpRule: 5: must be a mapping; {} is an empty one",
		}},
		{inReplicas("targetNameFromEnv", "secret-one", "workspaceName", "other"), []string{`workspaceName: "other": must be that of targetName, (not shown), or not be given`}},
		{inMetric("targetKind", "InferenceSet"), []string{`targetKind: "InferenceSet": must be given with targetAPIVersion, and only with it`}},
		{inMetric("targetAPIVersion", "a/b/c", "targetKind", "K"), []string{`targetAPIVersion: "a/b/c": must be "version" or "group/version"`}},
	} {
		_, err := triggers.Build(chat, row.metadata)
		require.EqualError(t, err, strings.Join(row.want, "\n"))
	}
}

// TestPoliciesThatWatchAreToldWhatTheyLack: while pods cannot be asked for them they are left out, and no longer; what is
// still asked when the trigger ends is closed then, once.
func TestPoliciesThatWatchAreToldWhatTheyLack(t *testing.T) {
	const other = `[{name: other, scaler: {proportional: {metrics: [{source: {name: "vllm:num_requests_running"}, target: "10"}]}}}]`
	w := newWorld(t)
	closed, fails := 0, error(nil)
	observe := func(plan *build.Plan) (Observer, error) {
		o, err := w.eyes(plan)
		if strings.Contains(plan.Scrape.Metrics[0].Name, "running") {
			return &closing{o, &closed}, fails
		}
		return o, err
	}
	var later []func()
	_, trigger := w.beside(func(f func()) { later = append(later, f) }, observe, inReplicas("threshold", "10", "shadow", other))
	next := func(leftOut bool, says string) {
		w.next(trigger)
		for len(later) > 0 {
			f := later[0]
			later = later[1:]
			f()
		}
		require.Len(t, trigger.watching(), 1)
		require.Equal(t, leftOut, trigger.watching()[0].leftOut)
		require.Equal(t, says, trigger.watching()[0].Trouble)
	}
	w.load(10)
	fails = errors.New("no certificate")
	next(true, "pods cannot be asked: no certificate")
	require.Zero(t, trigger.watching()[0].Replicas)
	fails = nil
	next(false, "")
	w.next(trigger)
	require.Len(t, later, 1, "they are being asked")
	w.next(trigger)
	require.Len(t, later, 1)
	require.Equal(t, "the pods that were asked in the round before have not answered yet", trigger.watching()[0].Trouble)
	trigger.Close()
	require.Zero(t, closed, "not under it")
	at := trigger.watching()[0].At
	later[0]()
	require.Equal(t, 1, closed)
	require.Equal(t, at, trigger.watching()[0].At, "it is too late to be shown")
}

// TestPoliciesThatWatchRunByThemselves where nobody says how: in goroutines.
func TestPoliciesThatWatchRunByThemselves(t *testing.T) {
	w := newWorld(t)
	_, trigger := w.beside(nil, w.eyes, inReplicas("threshold", "10", "shadow", `[{name: a, scaler: {proportional: {metrics: [{source: {name: "vllm:num_requests_running"}, target: "2"}]}}}]`))
	w.load(10)
	w.next(trigger)
	require.Eventually(t, func() bool {
		s := trigger.watching()
		return len(s) == 1 && s[0].Replicas > 4
	}, patience, time.Millisecond)
	trigger.Close()
}

// TestPoliciesThatWatchWithOneNameAreShownOnce: no two series may be alike.
func TestPoliciesThatWatchWithOneNameAreShownOnce(t *testing.T) {
	w := newWorld(t)
	_, trigger := w.beside(atOnce, w.eyes, inReplicas("threshold", "10", "shadow", strings.Repeat("- {name: a, scaler: {static: {replicas: 1}}}\n", 2)))
	w.load(10)
	w.next(trigger)
	require.Len(t, trigger.watching(), 1)
	require.False(t, trigger.watching()[0].leftOut, "the first is right")
}

// TestWatchersThatCannotBeRunEndNothing: a panic of what builds them, two documents in place of one, and no time to start in.
func TestWatchersThatCannotBeRunEndNothing(t *testing.T) {
	m := parsed(t, inReplicas("shadow", `[{name: a, scaler: {capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}}}}]`))
	m.shadowTuner = func() capacity.Tuner { panic("no turn") }
	plan, err := m.shadows(chatTarget, oneToTen)
	require.ErrorContains(t, err, "panic: no turn")
	require.Empty(t, plan.All)

	m = parsed(t, inReplicas("shadow", "[]\n---\n[]"))
	_, err = m.shadows(chatTarget, oneToTen)
	require.ErrorContains(t, err, "must be one list")
}

// TestCallsAreEncrypted where there is a TLS configuration, and only then.
func TestCallsAreEncrypted(t *testing.T) {
	site := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate will do
	t.Cleanup(site.Close)
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	conn := serve(t, GRPCConfig{Engine: s.engine, TLS: &tls.Config{Certificates: site.TLS.Certificates, MinVersion: tls.VersionTLS13}})
	_, err := externalscaler.NewExternalScalerClient(conn).GetMetricSpec(t.Context(), scaledObject(chat, metadata))
	require.Equal(t, codes.Unavailable, code(err), "it is asked in the clear")
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	conn, err = grpc.NewClient(conn.Target(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS13})))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = externalscaler.NewExternalScalerClient(conn).GetMetricSpec(t.Context(), scaledObject(chat, metadata))
	require.NoError(t, err)
}

// TestMetricsOfCallsAreRegisteredOnce: what is there already is an error, and no server.
func TestMetricsOfCallsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newStage(t, nil)
	_, _, err := NewGRPC(GRPCConfig{Engine: s.engine, Registerer: registry})
	require.NoError(t, err)
	_, _, err = NewGRPC(GRPCConfig{Engine: s.engine, Registerer: registry})
	require.ErrorContains(t, err, "metrics of calls: duplicate")
}

// TestAStoreThatCannotBeMadeIsAnError, as the trigger would begin anew at each restart.
func TestAStoreThatCannotBeMadeIsAnError(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless, Store: func(Ref) (k8s.Store, error) { return nil, errors.New("no client") }})
	require.NoError(t, err)
	_, err = triggers.Build(chat, replicasMode())
	require.EqualError(t, err, "store: no client")
	_, err = triggers.Build(chat, metricMode())
	require.NoError(t, err, "which has no state")
}

// TestEachOfTwoFaultsIsOfItsKey.
func TestEachOfTwoFaultsIsOfItsKey(t *testing.T) {
	m := parsed(t, inReplicas())
	err := m.inKeys(errors.Join(&scaling.FieldError{Field: "spec.intervalSeconds", Value: 1, Rule: "a"}, &scaling.FieldError{Field: "timeout", Value: 2, Rule: "b"}))
	require.EqualError(t, err, "interval: 1: a\nscrapeTimeout: 2: b")
}
