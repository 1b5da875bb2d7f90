package keda

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
)

const watching = `
- name: same
  scaler: {proportional: {metrics: [{source: {name: "vllm:num_requests_waiting"}, target: "10"}]}}
- name: eager
  scaler: {proportional: {metrics: [{source: {name: "vllm:num_requests_waiting"}, target: "2"}]}}
`

// beside builds a trigger whose policies that watch are run by a function.
func (w *world) beside(run func(func()), observe func(plan *build.Plan) (Observer, error), metadata map[string]string) (*Triggers, *podTrigger) {
	w.t.Helper()
	triggers, err := NewTriggers(TriggersConfig{
		Scales: w, Observe: observe, Objects: func(Ref) (Object, error) { return w.object, w.objErr },
		Store: func(Ref) (k8s.Store, error) { return w.store, nil },
	})
	require.NoError(w.t, err)
	triggers.c.beside = run
	plan, err := triggers.Build(chat, metadata)
	require.NoError(w.t, err)
	return triggers, plan.Trigger.(*podTrigger)
}

func (w *world) eyes(plan *build.Plan) (Observer, error) {
	return eyes{w, plan.Scrape.Metrics[0].Name}, nil
}

func atOnce(f func()) { f() }

// TestShadowsChangeNothing: whatever watches, each round is answered and stored as without it.
func TestShadowsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alone, watched := newWorld(t), newWorld(t)
		plain := alone.trigger(inReplicas("threshold", "10"))
		_, with := watched.beside(atOnce, watched.eyes, inReplicas("threshold", "10", "shadow", watching))
		for range 12 {
			load, n := rapid.Float64Range(0, 60).Draw(rt, "load"), rapid.Int32Range(1, 12).Draw(rt, "replicas")
			var answers [2]Snapshot
			for i, w := range []*world{alone, watched} {
				w.replicas(n)
				w.load(load)
				answers[i] = w.next([]Trigger{plain, with}[i])
			}
			require.Equal(rt, answers[0], answers[1])
		}
		require.Equal(rt, alone.store.saves, watched.store.saves)
		require.Equal(rt, alone.observes.Load(), watched.observes.Load(), "what the trigger reads is not read again")
		states := with.watching()
		require.Len(rt, states, 2)
		require.GreaterOrEqual(rt, states[1].Replicas, int32(1))
	})
}

// TestShadowMetrics: one that watches with a fifth of the target asks for five times as many.
func TestShadowMetrics(t *testing.T) {
	w := newWorld(t)
	triggers, _ := w.beside(atOnce, w.eyes, inReplicas("threshold", "10", "shadow", watching))
	w.load(10)
	metrics := NewMetrics()
	engine, err := NewEngine(t.Context(), EngineConfig{Build: triggers.Build, Metrics: metrics, Now: func() time.Time { return w.now }})
	require.NoError(t, err)
	defer engine.Close()
	meta := inReplicas("threshold", "10", "shadow", watching+"- {name: wrong, scaler: {static: {replicas: -1}}}\n")
	require.Eventually(t, func() bool {
		s, err := engine.Snapshot(chat, meta)
		return err == nil && s.Unknown == nil && testutil.CollectAndCount(metrics, "inferscale_keda_shadow_replicas") == 2
	}, patience, time.Millisecond)
	text := exposed(t, metrics)
	require.Regexp(t, `inferscale_keda_shadow_replicas\{.*shadow="eager".*\} (8|20)`, text)
	require.Regexp(t, `inferscale_keda_shadow_replicas\{.*shadow="same".*\} 4`, text)
	require.Regexp(t, `inferscale_keda_shadow_left_out\{.*shadow="wrong".*\} 1`, text)
	require.Regexp(t, `inferscale_keda_shadow_left_out\{.*shadow="eager".*\} 0`, text)
	require.NotRegexp(t, `inferscale_keda_shadow_replicas\{.*shadow="wrong"`, text)
}

// TestNamesThatAreCutAlike: two wrong names of policies that watch, which are cut where they are shown, are two series alike,
// for which all metrics of the scaler were refused.
func TestNamesThatAreCutAlike(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("a", 70)
	meta := inReplicas("threshold", "10", "shadow", "- {name: "+long+"b}\n- {name: "+long+"c}\n")
	triggers, _ := w.beside(atOnce, w.eyes, meta)
	w.load(10)
	metrics := NewMetrics()
	engine, err := NewEngine(t.Context(), EngineConfig{Build: triggers.Build, Metrics: metrics, Now: func() time.Time { return w.now }})
	require.NoError(t, err)
	defer engine.Close()
	require.Eventually(t, func() bool {
		s, err := engine.Snapshot(chat, meta)
		return err == nil && s.Unknown == nil
	}, patience, time.Millisecond)
	require.Equal(t, 1, strings.Count(exposed(t, metrics), "inferscale_keda_shadow_left_out{"))
}

// exposed is what a collector says, a series a line.
func exposed(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			fmt.Fprintf(&b, "%s{", f.GetName())
			for _, l := range m.GetLabel() {
				fmt.Fprintf(&b, "%s=%q,", l.GetName(), l.GetValue())
			}
			fmt.Fprintf(&b, "} %g\n", m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return b.String()
}

// TestWrongShadows are left out where the trigger runs, and refused by a webhook's Check with their paths.
func TestWrongShadows(t *testing.T) {
	many := ""
	for i := range 9 {
		many += fmt.Sprintf("- {name: n%d, scaler: {static: {replicas: 1}}}\n", i)
	}
	for _, row := range []struct{ shadow, says string }{
		{"- {name: a, scaler: {static: {replicas: -1}}}", "spec.triggers[0].metadata.shadow[0].scaler.static.replicas"},
		{"- {name: Capital, scaler: {static: {replicas: 1}}}", "spec.triggers[0].metadata.shadow[0].name"},
		{"- {name: a, scaler: {static: {replica: 1}}}", "spec.triggers[0].metadata.shadow[0].scaler"},
		{"- {name: a, scale: {static: {replicas: 1}}}", "spec.triggers[0].metadata.shadow: "},
		{"name: a", "must be a list of name and scaler"},
		{"[", "must be a list of name and scaler"},
		{many, "must be at most 8"},
		{strings.Repeat("- {name: a, scaler: {static: {replicas: 1}}}\n", 2), "must be unique"},
	} {
		w := newWorld(t)
		triggers, trigger := w.beside(atOnce, w.eyes, inReplicas("threshold", "10", "shadow", row.shadow))
		w.load(10)
		require.NoError(t, w.round(trigger).Unknown, row.shadow)
		object := map[string]any{
			"metadata": map[string]any{"name": "chat", "namespace": "models"},
			"spec": map[string]any{
				"scaleTargetRef": map[string]any{"name": "chat"},
				"triggers":       []any{map[string]any{"type": "external", "metadata": anys(inReplicas("threshold", "10", "shadow", row.shadow))}},
			},
		}
		require.ErrorContains(t, triggers.Check(object), row.says, row.shadow)
		object["spec"].(map[string]any)["triggers"].([]any)[0].(map[string]any)["metadata"] = anys(inReplicas("threshold", "10", "shadow", watching))
		require.NoError(t, triggers.Check(object))
	}
	_, err := ParseMetadata(inMetric("threshold", "1", "shadow", watching))
	require.ErrorContains(t, err, "shadow")
	require.True(t, Known("shadow"))
	require.Equal(t, identityIn(inReplicas("threshold", "1")), identityIn(inReplicas("threshold", "1", "shadow", watching)), "the state goes on")
}

func anys(of map[string]string) map[string]any {
	all := make(map[string]any, len(of))
	for key, value := range of {
		all[key] = value
	}
	return all
}

// panics is an Observer that panics.
type panics struct{}

func (panics) Observe(context.Context, []k8s.Scale) (k8s.Observed, error) { panic("no pods") }

func (panics) Close() {}

// TestShadowsReadBeside: what only a policy that watches reads is asked beside the rounds, of which none waits for it or fails with it.
func TestShadowsReadBeside(t *testing.T) {
	const other = `[{name: other, scaler: {proportional: {metrics: [{source: {name: "vllm:num_requests_running"}, target: "10"}]}}}]`
	w := newWorld(t)
	var later []func()
	observe := func(plan *build.Plan) (Observer, error) {
		if strings.Contains(plan.Scrape.Metrics[0].Name, "running") {
			return panics{}, nil
		}
		return w.eyes(plan)
	}
	_, trigger := w.beside(func(f func()) { later = append(later, f) }, observe, inReplicas("threshold", "10", "shadow", other))
	w.load(10)
	require.NoError(t, w.next(trigger).Unknown)
	require.NoError(t, w.next(trigger).Unknown, "the first has not been asked yet")
	require.Len(t, later, 1)
	later[0]()
	require.True(t, trigger.watching()[0].leftOut)
	trigger.Close()
	require.NoError(t, w.next(trigger).Unknown)
}

// TestShadowsAskAFewPodsAtOnce: however many triggers of a namespace have policies that watch and read something of their own, the
// pods of eight are asked for them at once, and the others say so.
func TestShadowsAskAFewPodsAtOnce(t *testing.T) {
	const other = `[{name: other, scaler: {proportional: {metrics: [{source: {name: "vllm:num_requests_running"}, target: "10"}]}}}]`
	w := newWorld(t)
	w.load(10)
	asked := 0
	triggers, trigger := w.beside(func(func()) { asked++ }, w.eyes, inReplicas("threshold", "10", "shadow", other))
	for range 8 {
		w.next(trigger)
		plan, err := triggers.Build(chat, inReplicas("threshold", "10", "shadow", other))
		require.NoError(t, err)
		trigger = plan.Trigger.(*podTrigger)
	}
	require.Equal(t, 8, asked)
	w.next(trigger)
	require.Equal(t, "the pods of other objects are being asked for their shadows", trigger.watching()[0].Trouble)
}
