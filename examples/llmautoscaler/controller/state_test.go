package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
)

const (
	withCron         = "    cron: {policies: [{name: a, schedule: \"@daily\", targetReplicas: 1}]}\n"
	withProportional = "    proportional: {metrics: [{source: {name: other, port: PORT}, target: 10}]}\n"
	withForecast     = "    proportional: {metrics: [{source: {name: other, port: PORT}, target: 10}], forecast: {timeZone: Europe/Berlin}}\n"
	withWindow       = "    stabilization: {downSeconds: 60}\n"
	withLimits       = "    rateLimits: {up: {limits: [{replicas: 4, periodSeconds: 60}]}}\n"
)

// TestCooldownOutlivesScalers: a scaler that is added or removed changes nothing in the cooldown of another, and has
// none of its own to pass by.
func TestCooldownOutlivesScalers(t *testing.T) {
	long := strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 600")
	for name, specs := range map[string][2]string{
		"cron is added":           {long, long + withCron},
		"cron is removed":         {long + withCron, long},
		"proportional is added":   {long, long + withProportional},
		"proportional is removed": {long + withProportional, long},
		"a forecast is added":     {long + withProportional, long + withForecast},
		"a forecast is removed":   {long + withForecast, long + withProportional},
		"a window is added":       {long, long + withWindow},
		"a window is removed":     {long + withWindow, long},
		"limits are added":        {long + withWindow, long + withWindow + withLimits},
		"limits are removed":      {long + withLimits, long},
		"all is added":            {long, long + withForecast + withCron + withWindow + withLimits + "    static: {replicas: 1}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deployment(2)
			w.apply(specs[0])
			w.queue(20)
			w.round("chat")
			w.round("chat")
			require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
			scaled := w.now
			w.apply(specs[1])
			las := w.round("chat")
			require.Len(t, las.Annotations, 1, "the state of before is gone")
			for w.targets["chat"].Spec.Replicas == 3 && w.now.Sub(scaled) < 15*time.Minute {
				w.round("chat")
			}
			require.InDelta(t, 10*time.Minute, w.now.Sub(scaled), float64(time.Minute))
			require.EqualValues(t, 4, w.targets["chat"].Spec.Replicas)
		})
	}
}

// TestReplaceErasesNoCooldown: a kubectl replace removes the annotations that it does not have, whether the process goes
// on, the spec changes with it, or a new process begins; what is known, and the status, say when it was last scaled.
func TestReplaceErasesNoCooldown(t *testing.T) {
	long := strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 600")
	for name, after := range map[string]func(w *world){
		"same process": func(*world) {}, "a new process": func(w *world) { w.restart() },
		"another spec":   func(w *world) { w.apply(long + "  intervalSeconds: 10\n") },
		"another scaler": func(w *world) { w.apply(long + withCron) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deployment(2)
			w.apply(long)
			w.queue(20)
			w.round("chat")
			w.round("chat")
			require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
			scaled := w.now
			for w.targets["chat"].Spec.Replicas == 3 && w.now.Sub(scaled) < 15*time.Minute {
				if w.now.Sub(scaled) < 9*time.Minute {
					las := w.get("chat")
					las.Annotations = nil
					require.NoError(t, w.client.Update(t.Context(), whole(las)))
					after(w)
				}
				w.round("chat")
			}
			require.InDelta(t, 10*time.Minute, w.now.Sub(scaled), float64(time.Minute))
		})
	}
}

// TestAtRestNoStateIsWritten: a thousand autoscalers that have nothing to do cost the API server nothing.
func TestAtRestNoStateIsWritten(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(5)
	w.round("chat")
	version := func() string { return w.get("chat").Annotations[k8s.AnnotationPrefix+"/state-realtime"] }
	before := version()
	require.NotEmpty(t, before)
	for range 40 {
		w.round("chat")
		require.Equal(t, before, version())
	}
}

// TestStateOfManyEdits: it is handed on from edit to edit, and from process to process.
func TestStateOfManyEdits(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	long := strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 600")
	w.apply(long)
	w.queue(20)
	w.round("chat")
	w.round("chat")
	for i := range 12 { // three minutes
		w.apply(long + []string{withCron, withProportional, withCron + withProportional, ""}[i%4])
		require.Len(t, w.round("chat").Annotations, 1)
		w.restart()
	}
	require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
}

// other makes the target other with one pod.
func (w *world) other() {
	w.targets["other"] = &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other", UID: "other", ResourceVersion: "1"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: 1},
		Status:     autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app=other"},
	}
	w.follow("other")
}

// TestOtherTarget begins anew with a target that is put in the place of another: what the other one had to carry is none
// of its load.
func TestOtherTarget(t *testing.T) {
	const text = `
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  maxReplicas: 100
  scaler:
    proportional: {metrics: [{source: {port: PORT}, target: 10}]}
`
	w := newWorld(t)
	w.deployment(8)
	w.other()
	w.apply(strings.Replace(text, "NAME", "chat", 1))
	w.queue(10) // 80 in all, which is what 8 replicas carry
	for range 5 {
		w.round("chat")
	}
	require.EqualValues(t, 8, w.targets["chat"].Spec.Replicas)
	w.apply(strings.Replace(text, "NAME", "other", 1))
	w.queue(5) // half of what its one replica carries
	w.round("chat")
	require.EqualValues(t, 1, w.targets["other"].Spec.Replicas)
}

// TestDryRunOver: the state of a dry run goes with it, and the real one stays while there is one.
func TestDryRunOver(t *testing.T) {
	const kept, dry = k8s.AnnotationPrefix + "/state-realtime", k8s.AnnotationPrefix + "/state-realtime.dry-run"
	w := newWorld(t)
	w.deployment(2)
	w.queue(5)
	w.apply(chat)
	require.Contains(t, w.round("chat").Annotations, kept)
	w.apply(chat + "  dryRun: true\n")
	las := w.round("chat")
	require.Contains(t, las.Annotations, kept)
	require.Contains(t, las.Annotations, dry)
	before := las.Annotations[kept]
	las = w.round("chat")
	require.Equal(t, before, las.Annotations[kept])
	w.apply(chat)
	las = w.round("chat")
	require.Contains(t, las.Annotations, kept)
	require.NotContains(t, las.Annotations, dry)
}

// TestStateBesideDryRun: a large state of a dry run that is over takes no room from the real one.
func TestStateBesideDryRun(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.queue(5)
	w.apply(chat + "  dryRun: true\n")
	las := w.round("chat")
	las.Annotations[k8s.AnnotationPrefix+"/state-realtime.dry-run"] = strings.Repeat(" ", 256<<10-100)
	require.NoError(t, w.client.Update(t.Context(), whole(las)))
	w.apply(chat)
	require.Equal(t, "True Ready", condition(w.round("chat"), k8s.ConditionReady))
}

// decisions returns how many decisions the metrics show for a target.
func (w *world) decisions(target string) (n float64) {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.config.Metrics)
	families, err := registry.Gather()
	require.NoError(w.t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "inferscale_decisions_total" && l.GetName() == "name" && l.GetValue() == target {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// TestCountersOutliveEdits: an edit resets no counter, and the series of a target go with the last object that had it.
func TestCountersOutliveEdits(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.other()
	w.queue(5)
	w.apply(chat)
	w.round("chat")
	w.apply(chat + "  intervalSeconds: 30\n")
	w.round("chat")
	w.apply(strings.Replace(chat, "high: 10, low: 2", "high: 2, low: 10", 1)) // invalid
	w.round("chat")
	w.apply(chat)
	w.round("chat")
	require.InDelta(t, 3, w.decisions("chat"), 0)

	w.apply(strings.Replace(chat, "kind: Deployment, name: chat", "kind: Deployment, name: other", 1))
	w.round("chat")
	require.Zero(t, w.decisions("chat"))
	require.InDelta(t, 1, w.decisions("other"), 0)
	require.NoError(t, w.client.Delete(t.Context(), whole(w.get("chat"))))
	_, err := w.ctl.Reconcile(t.Context(), request("chat"))
	require.NoError(t, err)
	require.Zero(t, w.decisions("other"))
}

// TestCountersOfTheWinner: who lost a target to another one and goes takes nothing of the winner's.
func TestCountersOfTheWinner(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.other()
	w.queue(5)
	w.apply(chat)
	w.now = w.now.Add(time.Minute)
	loser := strings.Replace(chat, "name: chat}", "name: later}", 1)
	w.apply(strings.Replace(chat, "kind: Deployment, name: chat", "kind: Deployment, name: other", 1))
	w.apply(loser)
	w.round("later") // it has the target
	require.InDelta(t, 1, w.decisions("chat"), 0)
	w.apply(chat) // the older object comes back to it
	w.round("chat")
	require.Equal(t, "False TargetTaken", condition(w.round("later"), k8s.ConditionReady))
	require.NoError(t, w.client.Delete(t.Context(), whole(w.get("later"))))
	_, err := w.ctl.Reconcile(t.Context(), request("later"))
	require.NoError(t, err)
	require.InDelta(t, 1, w.decisions("chat"), 0, "those of the winner alone")
}

func TestTarget(t *testing.T) {
	las := &stored.LLMAutoScaler{}
	las.Namespace = "models"
	las.Spec.ScaleTargetRef.APIVersion, las.Spec.ScaleTargetRef.Kind, las.Spec.ScaleTargetRef.Name = "apps/v1", "Deployment", "chat"
	require.Equal(t, k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "chat"}, controller.Target(&las.LLMAutoScaler))
}

// TestBaselinesOutliveAnEdit: counters and histograms go on after a change of the spec; a new process has no baseline in its
// first round, and one afterwards.
func TestBaselinesOutliveAnEdit(t *testing.T) {
	const ttft = `
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  maxReplicas: 8
  scaler:
    realtime:
      metrics: [{source: {engine: VLLM, signal: TTFT, port: PORT}, threshold: {high: HIGH, low: 0.1}}]
`
	w := newWorld(t)
	w.deployment(2)
	requests := 0
	round := func() *v1alpha1.LLMAutoScaler {
		requests += 100
		w.says("# TYPE vllm:time_to_first_token_seconds histogram\n"+
			"vllm:time_to_first_token_seconds_bucket{le=\"1\"} %d\nvllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} %d\n"+
			"vllm:time_to_first_token_seconds_sum %d\nvllm:time_to_first_token_seconds_count %d\n", requests, requests, requests/2, requests)
		return w.round("chat")
	}
	known := func(las *v1alpha1.LLMAutoScaler) bool { return las.Status.Metrics[0].Lower != "" }
	w.apply(strings.ReplaceAll(ttft, "HIGH", "2"))
	require.False(t, known(round()), "nothing to compare with")
	require.True(t, known(round()))
	w.now = w.now.Add(15 * time.Second)
	for _, high := range []string{"3", "4"} {
		w.apply(strings.ReplaceAll(ttft, "HIGH", high))
		las := round()
		require.True(t, known(las), "%+v", las.Status.Metrics[0])
		w.now = w.now.Add(time.Second)
	}
	w.restart()
	require.False(t, known(round()), "a new process")
	require.True(t, known(round()))
}
