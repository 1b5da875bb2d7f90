package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
)

const chat = `
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  maxReplicas: 8
  scaler:
    realtime:
      metrics: [{source: {port: PORT}, threshold: {high: 10, low: 2}}]
      scaleUpRule: {cooldownSeconds: 60}
      scaleDownRule: {cooldownSeconds: 60, stabilizationWindowSeconds: 30}
`

// TestStory goes up, holds, and comes down, with what the status says on the way.
func TestStory(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(20)
	las := w.round("chat")
	require.Equal(t, "UpWindow", las.Status.LastDecision.Code)
	require.Equal(t, int32(2), *las.Status.CurrentReplicas)
	require.Equal(t, "True Ready", condition(las, k8s.ConditionReady))
	require.Equal(t, "True MetricsKnown", condition(las, k8s.ConditionMetricsAvailable))
	require.Equal(t, []v1alpha1.MetricReading{{Name: "vllm:num_requests_waiting", Lower: "20", Upper: "20", Pods: 2}}, las.Status.Metrics)
	require.Nil(t, las.Status.LastScaleTime)

	las = w.round("chat")
	require.Equal(t, int32(3), w.targets["chat"].Spec.Replicas)
	require.Equal(t, "Up", las.Status.LastDecision.Verdict)
	require.Equal(t, int32(3), *las.Status.CurrentReplicas)
	require.Equal(t, int32(3), *las.Status.DesiredReplicas)
	require.Equal(t, "2026-01-15T08:00:15Z", las.Status.LastScaleTime.UTC().Format(time.RFC3339))
	require.Contains(t, las.Status.LastDecision.Explain, "AboveHigh         2 -> 3    vllm:num_requests_waiting lower=20 > high=10, held=30s >= window=30s")
	require.Equal(t, v1alpha1.DecisionStep{
		Code: "AboveHigh", Subject: "vllm:num_requests_waiting", From: 2, To: 3, Because: "vllm:num_requests_waiting lower=20 > high=10, held=30s >= window=30s",
	}, las.Status.LastDecision.Steps[0])

	las = w.round("chat")
	require.Equal(t, "Hold", las.Status.LastDecision.Verdict)
	require.Equal(t, int32(3), w.targets["chat"].Spec.Replicas)

	w.queue(0)
	for range 10 {
		las = w.round("chat")
	}
	require.Less(t, w.targets["chat"].Spec.Replicas, int32(3))
	require.Equal(t, w.targets["chat"].Spec.Replicas, *las.Status.CurrentReplicas)
	require.Contains(t, las.Annotations[k8s.AnnotationPrefix+"/state-realtime"], `"kind":"loop"`)
}

// TestDryRun decides, says so, and writes nothing.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat + "  dryRun: true\n")
	w.queue(20)
	var las *v1alpha1.LLMAutoScaler
	for range 20 {
		las = w.round("chat")
	}
	require.Equal(t, 0, w.scales)
	require.Equal(t, int32(2), w.targets["chat"].Spec.Replicas)
	require.True(t, las.Status.LastDecision.DryRun)
	require.Nil(t, las.Status.LastScaleTime)
	require.Equal(t, int32(2), *las.Status.CurrentReplicas)
	require.Contains(t, las.Annotations, k8s.AnnotationPrefix+"/state-realtime.dry-run")
	require.NotContains(t, las.Annotations, k8s.AnnotationPrefix+"/state-realtime")
	said := ""
	for len(w.events.Events) > 0 {
		said += <-w.events.Events + "\n"
	}
	require.Contains(t, said, "WouldScaleUp dry run, nothing was written: Up 2 -> 3")
}

// TestZero is what metrics alone do not come back from, and what cron does.
func TestZero(t *testing.T) {
	const night = "    cron: {policies: [{name: day, schedule: '0 9 * * *', targetReplicas: 2}, {name: night, schedule: '@daily', targetReplicas: 0}]}\n"
	for cron, back := range map[string]bool{"": false, night: true} {
		w := newWorld(t)
		w.deployment(1)
		w.apply(chat + cron + "  minReplicas: 0\n")
		w.queue(0)
		for range 8 {
			w.round("chat")
		}
		require.EqualValues(t, 0, w.targets["chat"].Spec.Replicas)
		w.queue(1000)
		las := w.round("chat")
		require.Equal(t, "True AtZeroReplicas", condition(las, k8s.ConditionReady), "it is as it was asked for")
		require.Equal(t, "False AtZeroReplicas", condition(las, k8s.ConditionScalingActive))
		for w.now.Hour() == 8 || w.now.Minute() == 0 {
			w.round("chat")
		}
		require.Equal(t, back, w.targets["chat"].Spec.Replicas > 0)
	}
}

// TestInvalidTarget is no matter of credentials.
func TestInvalidTarget(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(strings.Replace(chat, "apps/v1", "a/b/c", 1))
	las := w.round("chat")
	require.Equal(t, "False InvalidSpec", condition(las, k8s.ConditionReady))
	require.Equal(t, `spec.scaleTargetRef.apiVersion: "a/b/c": must be "version" or "group/version"`, las.Status.Conditions[0].Message)
}

// TestInvalidSpec is reported in conditions, in an event, and does nothing else.
func TestInvalidSpec(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(`
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  maxReplicas: 8
  scaler: {cron: {policies: [{name: never, schedule: "0 0 31 2 *", targetReplicas: 5}]}}
`)
	las := w.round("chat")
	require.Equal(t, "False InvalidSpec", condition(las, k8s.ConditionReady))
	require.Equal(t, "False InvalidSpec", condition(las, k8s.ConditionScalingActive))
	require.Contains(t, las.Status.Conditions[0].Message, `spec.scaler.cron.policies[0].schedule: "0 0 31 2 *": never fires`)
	require.Contains(t, <-w.events.Events, "InvalidSpec")
	w.round("chat")
	require.Empty(t, w.events.Events)
	require.Equal(t, 1, w.statuses)
	require.Equal(t, 0, w.scales)

	w.queue(5)
	w.apply(chat) // mended
	las = w.round("chat")
	require.Equal(t, "True Ready", condition(las, k8s.ConditionReady))
	require.Equal(t, int64(2), las.Status.ObservedGeneration)
}

// TestRival lets the older of two objects have their target.
func TestRival(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(20)
	w.now = w.now.Add(time.Minute)
	w.apply(strings.Replace(chat, "name: chat}", "name: again}", 1))
	require.Equal(t, "False TargetTaken", condition(w.round("again"), k8s.ConditionReady))
	require.Equal(t, "True Ready", condition(w.round("chat"), k8s.ConditionReady))
	require.NoError(t, w.client.Delete(t.Context(), whole(w.get("chat"))))
	require.Equal(t, "True Ready", condition(w.round("again"), k8s.ConditionReady))
}

func TestPrecedes(t *testing.T) {
	at := func(name string, second int64) *v1alpha1.LLMAutoScaler {
		return &v1alpha1.LLMAutoScaler{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)}}
	}
	require.True(t, controller.Precedes(at("b", 1), at("a", 2)))
	require.False(t, controller.Precedes(at("a", 2), at("b", 1)))
	require.True(t, controller.Precedes(at("a", 1), at("b", 1)))
	require.False(t, controller.Precedes(at("a", 1), at("a", 1)))
	going := at("a", 1)
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(3, 0)}
	require.False(t, controller.Precedes(going, at("b", 2)))
}

// TestQuietStatus writes a status when it says something new, and its numbers now and then.
func TestQuietStatus(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	for i := range 80 { // twenty minutes of numbers between the thresholds that never stay the same
		w.queue(3 + i%7)
		w.round("chat")
	}
	require.Equal(t, 4, w.statuses)
	w.queue(20)
	w.round("chat")
	require.Equal(t, 5, w.statuses)
	w.restart() // the status is as it was
	w.now = w.now.Add(-10 * time.Second)
	w.round("chat")
	require.Equal(t, 5, w.statuses)
}

// TestRestlessStatus: what comes and goes in each round is told twice a minute at most, and another count at once.
func TestRestlessStatus(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(5)
	w.round("chat")
	before, began := w.statuses, w.now
	for i := range 120 {
		w.queue(50 * (i % 2))
		w.round("chat")
	}
	minutes := w.now.Sub(began).Minutes()
	require.LessOrEqual(t, float64(w.statuses-before), 5+2*minutes, "in %.0f minutes", minutes)
	require.Greater(t, float64(w.statuses-before), minutes)
	w.queue(5)
	for _, replicas := range []int32{3, 4, 3, 2, 3, 4, 3} {
		w.deployment(replicas)
		require.Equal(t, replicas, *w.round("chat").Status.CurrentReplicas)
	}
}

// TestDryRunSaysWhatItWouldDo: a step that a dry run would have made is in the status when it would have been made, and the
// status is not written more often than four times a minute for it.
func TestDryRunSaysWhatItWouldDo(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(strings.Replace(chat, "cooldownSeconds: 60", "cooldownSeconds: 20", 1) + "  dryRun: true\n")
	w.queue(50)
	before, began, said := w.statuses, w.now, w.now
	for range 120 {
		if d := w.round("chat").Status.LastDecision; d != nil && d.Verdict == "Up" {
			require.True(t, d.DryRun)
			said = w.now
		}
		require.LessOrEqual(t, w.now.Sub(said), 30*time.Second)
	}
	require.NotEqual(t, began, said)
	require.LessOrEqual(t, float64(w.statuses-before), 10+4*w.now.Sub(began).Minutes())
	require.EqualValues(t, 2, w.targets["chat"].Spec.Replicas)
}

// TestRestart keeps the cooldown: a new process does not scale again.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(strings.Replace(chat, "cooldownSeconds: 60", "cooldownSeconds: 600", 1))
	w.queue(20)
	for range 30 {
		w.round("chat")
		w.restart()
	}
	require.Equal(t, int32(3), w.targets["chat"].Spec.Replicas)
	require.Equal(t, 1, w.scales)
	for range 20 {
		w.round("chat")
	}
	require.Equal(t, int32(4), w.targets["chat"].Spec.Replicas)
}

// TestOtherAlgorithm drops the state of the one before, and begins anew.
func TestOtherAlgorithm(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(20)
	require.Contains(t, w.round("chat").Annotations, k8s.AnnotationPrefix+"/state-realtime")
	w.apply(`
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  maxReplicas: 8
  scaler:
    proportional: {metrics: [{source: {port: PORT}, target: 10}]}
    cron: {policies: [{name: a, schedule: "@daily", targetReplicas: 3}]}
`)
	las := w.round("chat")
	require.NotContains(t, las.Annotations, k8s.AnnotationPrefix+"/state-realtime")
	require.Contains(t, las.Annotations, k8s.AnnotationPrefix+"/state-proportional-cron")
	require.Equal(t, int32(4), w.targets["chat"].Spec.Replicas)
}

// TestTroubles are in the conditions, and nothing is written.
func TestTroubles(t *testing.T) {
	w := newWorld(t)
	w.apply(chat)
	las := w.round("chat")
	require.Equal(t, "False TargetNotFound", condition(las, k8s.ConditionReady))
	w.deployment(2)
	w.says("not a page")
	las = w.round("chat")
	require.Equal(t, "False MetricsUnavailable", condition(las, k8s.ConditionMetricsAvailable))
	require.Equal(t, "Unknown", las.Status.LastDecision.Verdict)
	require.Equal(t, int32(2), las.Status.Metrics[0].Failed)
	require.NotEmpty(t, las.Status.Metrics[0].Error)
	require.Empty(t, las.Status.Metrics[0].Lower)
	require.Equal(t, 0, w.scales)
}

// TestDue waits for the interval, does a round at once after an edit, and none of what is gone.
func TestDue(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(5)
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ns, Name: "chat"}}
	result, err := w.ctl.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 15*time.Second, result.RequeueAfter)
	w.now = w.now.Add(5 * time.Second)
	result, err = w.ctl.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, result.RequeueAfter)
	w.apply(chat + "  intervalSeconds: 30\n")
	result, err = w.ctl.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, result.RequeueAfter)
	require.NoError(t, w.client.Delete(t.Context(), whole(w.get("chat"))))
	result, err = w.ctl.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Zero(t, result)

	// What was there before this process has a place of its own in the interval.
	w.config.Random = func() float64 { return .4 }
	w.apply(chat)
	w.now = w.now.Add(time.Hour)
	w.restart()
	result, err = w.ctl.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 6*time.Second, result.RequeueAfter)
	w.now = w.now.Add(6 * time.Second)
	result, err = w.ctl.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 15*time.Second-600*time.Millisecond, result.RequeueAfter, "less the jitter")
}

// TestTakeOver has objects spread by a process that waited for an hour to be the leader, as by one that starts.
func TestTakeOver(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.apply(strings.Replace(chat, "name: chat}", "name: "+name+"}", 1))
	}
	w.now = w.now.Add(time.Hour)
	w.config.Random = func() float64 { return .4 }
	w.restart()
	w.now = w.now.Add(time.Hour)
	for _, name := range []string{"a", "b", "c"} {
		result, err := w.ctl.Reconcile(t.Context(), request(name))
		require.NoError(t, err)
		require.Equal(t, 6*time.Second, result.RequeueAfter, name)
	}
	w.now = w.now.Add(time.Hour)
	w.apply(strings.Replace(chat, "name: chat}", "name: new}", 1))
	_, err := w.ctl.Reconcile(t.Context(), request("new"))
	require.NoError(t, err)
	require.NotEmpty(t, w.get("new").Status.Conditions, "what is new has its round at once")
}

// TestNew must have what it works with.
func TestNew(t *testing.T) {
	_, err := controller.New(controller.Config{})
	require.EqualError(t, err, "controller: Client, Secrets, Scales, Metadata, Mapper and Pods must be set")
}

// TestUnreadable is an object that a definition without limits let pass: it is told so, others go on, and once it is
// mended it does too. A status that cannot be read is replaced.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	w.deployment(1)
	w.queue(0)
	w.apply(chat)
	las := &stored.LLMAutoScaler{LLMAutoScaler: *w.get("chat")}
	unread := errors.New("json: cannot unmarshal number 3000000000")
	las.Spec, las.SpecErr = v1alpha1.LLMAutoScalerSpec{}, unread
	las.StatusErr = errors.New("json: cannot unmarshal number 1e19")
	kept := w.config.Client
	w.config.Client = reads{kept, las}
	w.restart()
	w.round("chat")
	require.Equal(t, "False InvalidSpec", condition(w.get("chat"), "Ready"))
	require.Contains(t, w.get("chat").Status.Conditions[0].Message, "3000000000")
	require.Empty(t, controller.Index(las), "it takes no target from others")
	w.config.Client = kept
	w.restart()
	w.round("chat")
	require.Contains(t, condition(w.get("chat"), "Ready"), "True")
}

// reads is a client that reads one object as it is.
type reads struct {
	client.Client

	object *stored.LLMAutoScaler
}

func (r reads) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	r.object.DeepCopyInto(o.(*stored.LLMAutoScaler))
	return nil
}

// TestReadySeries has one series of each object, of those too that make no rounds, until they are gone.
func TestReadySeries(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.queue(5)
	w.apply(chat)
	w.now = w.now.Add(time.Minute)
	w.apply(strings.Replace(chat, "name: chat}", "name: later}", 1))
	w.apply(strings.Replace(strings.Replace(chat, "name: chat}", "name: wrong}", 1), "apps/v1", "a/b/c", 1))
	for _, name := range []string{"chat", "later", "wrong"} {
		w.round(name)
	}
	shows := func(lines ...string) {
		t.Helper()
		text := "# HELP inferscale_ready Whether an LLMAutoScaler is ready, with the reason of its condition Ready.\n# TYPE inferscale_ready gauge\n"
		require.NoError(t, testutil.CollectAndCompare(w.config.Numbers, strings.NewReader(text+strings.Join(lines, "\n")+"\n"), "inferscale_ready"))
	}
	shows(
		`inferscale_ready{name="chat",namespace="models",reason="Ready"} 1`,
		`inferscale_ready{name="later",namespace="models",reason="TargetTaken"} 0`,
		`inferscale_ready{name="wrong",namespace="models",reason="InvalidSpec"} 0`,
	)
	require.NoError(t, w.client.Delete(t.Context(), whole(w.get("wrong"))))
	_, err := w.ctl.Reconcile(t.Context(), request("wrong"))
	require.NoError(t, err)
	delete(w.targets, "chat")
	w.round("chat")
	shows(
		`inferscale_ready{name="chat",namespace="models",reason="TargetNotFound"} 0`,
		`inferscale_ready{name="later",namespace="models",reason="TargetTaken"} 0`,
	)
}

// TestRowWhenNotReady: what cannot be decided is not shown as decided, as kubectl get does of what is in these fields.
func TestRowWhenNotReady(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.queue(5)
	w.apply(chat)
	las := w.round("chat")
	require.Equal(t, "True Between", condition(las, k8s.ConditionScalingActive))
	require.NotNil(t, las.Status.DesiredReplicas)
	delete(w.targets, "chat")
	las = w.round("chat")
	require.Equal(t, "False TargetNotFound", condition(las, k8s.ConditionReady))
	require.Equal(t, "Unknown NotDecided", condition(las, k8s.ConditionScalingActive))
	require.Nil(t, las.Status.DesiredReplicas)
	require.Nil(t, las.Status.CurrentReplicas)
	require.Equal(t, "Between", las.Status.LastDecision.Code, "with its time: it is of the past")
}

// TestCooldownUntil is a time that stays, so that the status need not be written for it.
func TestCooldownUntil(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(strings.Replace(chat, "cooldownSeconds: 60}", "cooldownSeconds: 200}", 1))
	w.queue(20)
	w.round("chat")
	las := w.round("chat")
	require.Equal(t, 1, w.scales)
	require.Nil(t, las.Status.CooldownUntil)
	until := las.Status.LastScaleTime.Add(200 * time.Second)
	writes := 0
	for w.now.Before(until) {
		las = w.round("chat")
		if d := las.Status.LastDecision; d.Code == "Cooldown" {
			if writes == 0 {
				writes = w.statuses
			}
			require.Equal(t, until.UTC(), las.Status.CooldownUntil.UTC())
			for _, text := range []string{d.Reason, d.Explain, d.Steps[len(d.Steps)-1].Because, las.Status.Conditions[2].Message} {
				require.Contains(t, text, "until="+until.UTC().Format(time.RFC3339)+" cooldown=3m20s")
				require.NotContains(t, text, "elapsed")
			}
		}
	}
	require.Positive(t, writes)
	require.LessOrEqual(t, w.statuses, writes+1, "for the end of it")
}

// TestPaused writes nothing, says so, and acts at once when the pause ends.
func TestPaused(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.queue(20)
	w.apply(chat + "  paused: true\n")
	for range 10 {
		require.Equal(t, "True Paused", condition(w.round("chat"), k8s.ConditionReady))
	}
	require.Zero(t, w.scales)
	w.apply(chat)
	w.round("chat")
	require.Equal(t, 1, w.scales)
}

// TestStalled tells a controller that makes no rounds from one that has none to make.
func TestStalled(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.ctl.Stalled())
	w.deployment(2)
	w.queue(5)
	w.apply(chat)
	w.round("chat")
	require.NoError(t, w.ctl.Stalled())
	w.now = w.now.Add(2 * time.Minute)
	require.NoError(t, w.ctl.Stalled(), "it may be that late")
	w.now = w.now.Add(time.Minute)
	require.ErrorContains(t, w.ctl.Stalled(), "those of 1 objects are overdue")
	delete(w.targets, "chat")
	w.round("chat")
	require.NoError(t, w.ctl.Stalled(), "a round that fails is one")
}

// TestRoundsGoOnWhenTheClockIsSetBack: the next round was waited for as long as the clock had been set back.
func TestRoundsGoOnWhenTheClockIsSetBack(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(5)
	for range 4 {
		w.round("chat")
	}
	w.now = w.now.Add(-time.Hour)
	r, err := w.ctl.Reconcile(t.Context(), request("chat"))
	require.NoError(t, err)
	require.LessOrEqual(t, r.RequeueAfter, 15*time.Second)
}

// TestTheCooldownOfAnotherTargetIsNotKept: a target that was deleted and created again begins afresh, and goes on so after an edit or a
// restart. The time of the last change came back from the status.
func TestTheCooldownOfAnotherTargetIsNotKept(t *testing.T) {
	long := strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 600")
	for name, then := range map[string]func(w *world){
		"nothing": func(*world) {},
		"edit":    func(w *world) { w.apply(long + "  intervalSeconds: 10\n") },
		"restart": func(w *world) { w.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deployment(2)
			w.apply(long)
			w.queue(20)
			w.round("chat")
			w.round("chat")
			require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
			w.deployment(2)
			w.targets["chat"].UID, w.targets["chat"].ResourceVersion = "another", "77"
			began := w.now
			w.round("chat")
			then(w)
			for w.targets["chat"].Spec.Replicas == 2 && w.now.Sub(began) < 15*time.Minute {
				w.round("chat")
			}
			require.Less(t, w.now.Sub(began), 2*time.Minute)
		})
	}
}
