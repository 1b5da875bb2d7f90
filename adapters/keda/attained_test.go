package keda

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

const judging = `
slo: {ttftSeconds: 2, tpotSeconds: "0.06"}
server:
  format: inferscale.server/v1
  name: "Qwen3-32B on 2 H100"
  base: 0.014
  prefillToken: {value: 6.41e-05, source: measured}
  sequence: 4e-05
  kvToken: {value: 3.9e-08, source: measured}
  maxSeqs: 256
  tokenBudget: 8192
  kvTokens: 350000
  startup: {starts: 12, p50: 60, p90: 70, p99: 80, max: 80, p50Lower: 50, p50Upper: 65, source: measured}
`

const counts = "- {name: one, scaler: {static: {replicas: 1}}}\n- {name: six, scaler: {static: {replicas: 6}}}\n"

// simulated is an Observer that finds what a simulated fleet says.
type simulated struct{ seen *k8s.Observed }

func (s simulated) Observe(context.Context, []k8s.Scale) (k8s.Observed, error) { return *s.seen, nil }

func (simulated) Close() {}

// TestWhatShadowsWouldHaveAttained is told as metrics, where metadata say by what counts are judged: one replica is too few, six
// are as good as the four that there are.
func TestWhatShadowsWouldHaveAttained(t *testing.T) {
	w := newWorld(t)
	var seen k8s.Observed
	replays := 0
	_, trigger := w.beside(func(f func()) { replays++; f() }, func(*build.Plan) (Observer, error) { return simulated{&seen}, nil },
		inReplicas("threshold", "10", "shadow", counts, "attainment", judging))
	s := simhistory.Chat(sim.Qwen32B(), 4, sim.Stage{Rate: 10, Duration: 15 * time.Minute})
	s.Metrics = capacity.Metrics()
	_, err := sim.Run(t.Context(), &s, func() (scaling.Group, error) { return sim.Schedule(s.Begin(), time.Hour, []int32{4}), nil }, sim.Options{
		Seed: 1,
		Decision: func(now time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
			seen = k8s.Observed{Readings: append(slices.Clip(obs.Readings), obs.Readings[0]), Histograms: obs.Histograms, Fleets: []k8s.FleetView{{Ready: obs.Targets[0].ReadyReplicas}}}
			seen.Readings[len(obs.Readings)].Metric = "vllm:num_requests_waiting"
			w.now = now
			require.NoError(t, w.round(trigger).Unknown)
		},
	})
	require.NoError(t, err)
	require.Greater(t, replays, 1)
	metrics := NewMetrics()
	engine, err := NewEngine(t.Context(), EngineConfig{Build: func(Ref, map[string]string) (Plan, error) {
		return Plan{Trigger: trigger, Spec: trigger.meta.Spec(), Interval: time.Minute}, nil
	}, Metrics: metrics, Now: func() time.Time { return w.now }})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := engine.Snapshot(chat, inReplicas("threshold", "10"))
		return err == nil && testutil.CollectAndCount(metrics, "inferscale_keda_shadow_attained") == 6
	}, patience, time.Millisecond)
	text := exposed(t, metrics)
	engine.Close()
	share := func(shadow, of string) float64 {
		found := regexp.MustCompile(`inferscale_keda_shadow_attained\{.*of="` + of + `".*shadow="` + shadow + `".*\} (.*)`).FindStringSubmatch(text)
		require.Len(t, found, 2, text)
		x, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		return x
	}
	require.Less(t, share("one", "shadow"), 0.5)
	require.Greater(t, share("six", "shadow"), 0.95)
	require.Greater(t, share("six", "measured"), 0.95)
	require.InDelta(t, share("six", "measured"), share("six", "real"), 0.05)
}

// TestAttainmentChangesNothing: whatever it says, right or wrong, each round is answered and stored as without it, and shadows watch.
func TestAttainmentChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		attainment := rapid.SampledFrom([]string{judging, "{}", "[", "3", "slo: {ttftSeconds: 0}", judging + "source: {port: 9}", judging + "source: {engine: TGI}", judging + "more: 1"}).Draw(rt, "attainment")
		alone, watched := newWorld(t), newWorld(t)
		plain := alone.trigger(inReplicas("threshold", "10"))
		_, with := watched.beside(atOnce, watched.eyes, inReplicas("threshold", "10", "shadow", watching, "attainment", attainment))
		for range 6 {
			load := rapid.Float64Range(0, 60).Draw(rt, "load")
			var answers [2]Snapshot
			for i, w := range []*world{alone, watched} {
				w.load(load)
				answers[i] = w.next([]Trigger{plain, with}[i])
			}
			require.Equal(rt, answers[0], answers[1])
		}
		require.Equal(rt, alone.store.saves, watched.store.saves)
		require.Len(rt, with.watching(), 2)
		require.False(rt, with.watching()[0].leftOut)
	})
}

// TestWrongAttainment is refused by a webhook's Check with its paths.
func TestWrongAttainment(t *testing.T) {
	triggers, _ := newWorld(t).beside(atOnce, newWorld(t).eyes, inReplicas("threshold", "10"))
	check := func(metadata map[string]string) error {
		return triggers.Check(map[string]any{
			"metadata": map[string]any{"name": "chat", "namespace": "models"},
			"spec": map[string]any{
				"scaleTargetRef": map[string]any{"name": "chat"},
				"triggers":       []any{map[string]any{"type": "external", "metadata": anys(metadata)}},
			},
		})
	}
	for attainment, says := range map[string]string{
		"{}":                          "metadata.attainment.slo",
		"[":                           "metadata.attainment: ",
		judging + "sorce: {}":         "metadata.attainment.sorce",
		judging + "source: {port: 0}": "metadata.attainment.source.port",
		judging + "  kvTokens: 1":     "metadata.attainment",
		"slo: {ttftSeconds: 2, tpotSeconds: 1}\nserver: {format: inferscale.server/v1}": "metadata.attainment.server.base",
	} {
		require.ErrorContains(t, check(inReplicas("threshold", "10", "shadow", counts, "attainment", attainment)), says, attainment)
	}
	require.ErrorContains(t, check(inReplicas("threshold", "10", "attainment", judging)), "metadata.attainment: ")
	require.NoError(t, check(inReplicas("threshold", "10", "shadow", counts, "attainment", judging)))
	_, err := ParseMetadata(inMetric("threshold", "1", "attainment", judging))
	require.ErrorContains(t, err, "attainment")
	require.True(t, Known("attainment"))
	require.Equal(t, identityIn(inReplicas("threshold", "1")), identityIn(inReplicas("threshold", "1", "attainment", judging)), "the state goes on")
}
