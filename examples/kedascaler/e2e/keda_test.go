package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/inferscale/inferscale/adapters/certs"
)

// replicas are the metadata of a trigger in mode replicas whose policy answers to the load of the moment.
func replicas(threshold string) []string {
	return []string{
		"mode", "replicas", "threshold", threshold, "profile", "hpa",
		"proportional.stabilization.upSeconds", "0", "proportional.stabilization.downSeconds", "0",
		"proportional.stableWindowSeconds", "0", "proportional.scaleUp.tolerance", "0", "proportional.scaleDown.tolerance", "0",
		"proportional.rateLimits.up.limits", "[{replicas: 100, periodSeconds: 1}]", "proportional.rateLimits.down.limits", "[{replicas: 100, periodSeconds: 1}]",
	}
}

// TestRealKEDA runs a Deployment and a Workspace in both modes under the real KEDA and the real HorizontalPodAutoscaler,
// over mTLS with certificates that the scaler wrote.
func TestRealKEDA(t *testing.T) {
	w := newWorld(t)
	w.say("the scaler runs as its service account; Secret, ClusterTriggerAuthentication and the webhook's CA are there")
	metric, chat := deploymentOf("metric"), deploymentOf("chat")
	wsMetric, wsChat := workspaceOf("ws-metric"), workspaceOf("ws-chat")
	w.deployment(metric.name, 1)
	w.deployment(chat.name, 1)
	w.workspace(wsMetric.name)
	w.workspace(wsChat.name)
	for _, ws := range []target{wsMetric, wsChat} {
		w.eventually("its first replica runs", func() bool {
			u, err := w.dynamic.Resource(ws.resource).Namespace(namespace).Get(t.Context(), ws.name, metav1.GetOptions{})
			require.NoError(t, err)
			n, _, _ := unstructured.NestedInt64(u.Object, "status", "inference", "replicas")
			return n == 1
		})
	}

	w.say("mode metric, up and down")
	w.scaledObject(metric, quick, "threshold", "10")
	w.scaledObject(wsMetric, quick, "threshold", "10")
	for _, ws := range []target{metric, wsMetric} {
		w.wait(ws.name, 45)
		w.follow(ws, "45 requests wait, 10 each", 5)
		w.wait(ws.name, 12)
		w.follow(ws, "12 wait", 2)
		w.wait(ws.name, 0)
		w.follow(ws, "none waits", 1)
	}

	w.fromZero()

	w.say("mode replicas, up and down, with the behavior that the webhook fills in")
	w.scaledObject(chat, "", replicas("10")...)
	w.scaledObject(wsChat, "", replicas("10")...)
	for _, ws := range []target{chat, wsChat} {
		w.wait(ws.name, 100)
		w.follow(ws, "100 requests wait, 10 each", 10)
		w.wait(ws.name, 101)
		w.follow(ws, "101 wait: a step of a tenth, which the HPA's own tolerance holds", 11)
		w.wait(ws.name, 100)
		w.follow(ws, "100 wait", 10)
		w.wait(ws.name, 25)
		w.follow(ws, "25 wait", 3)
	}
	w.defaulted("chat")
	w.trap()

	w.say("the scaler stops")
	w.scaler.Stop()
	w.wait(chat.name, 190)
	w.wait(metric.name, 190)
	w.eventually("KEDA says that it gets no answer", func() bool {
		return w.condition(chat.name, "Ready") == "False" || w.condition(chat.name, "Active") == "Unknown" || w.hpaIsBlind(chat.name)
	})
	writes := w.scaleWrites()
	w.hold(chat, "190 requests wait, and the scaler is away", 8*time.Second)
	w.hold(metric, "likewise", time.Second)
	require.Equal(t, writes, w.scaleWrites(), "nobody wrote replicas")
	require.Positive(t, w.failures(), "KEDA tells of calls that fail")
	w.start()
	w.follow(chat, "the scaler is back, 190 wait", 19)
	w.follow(metric, "likewise", 19)

	w.rotate(chat, metric)
}

// fromZero begins with targets at 0 replicas, as another scaler may have left them: both modes bring them back.
func (w *world) fromZero() {
	w.t.Helper()
	w.say("targets at 0 replicas")
	asleep, dormant := deploymentOf("asleep"), deploymentOf("dormant")
	for _, t := range []target{asleep, dormant} {
		w.deployment(t.name, 0)
	}
	w.scaledObject(asleep, quick, "threshold", "10")
	w.scaledObject(dormant, quick, replicas("10")...)
	for _, t := range []target{asleep, dormant} {
		w.follow(t, "it was at 0", 1)
		w.wait(t.name, 25)
		w.follow(t, "25 requests wait, 10 each", 3)
		w.wait(t.name, 0)
	}
}

// trap shows what the HPA's own tolerance of a tenth does to a policy's steps, where somebody has set it.
func (w *world) trap() {
	w.t.Helper()
	held := deploymentOf("held")
	w.deployment(held.name, 1)
	w.scaledObject(held, strings.ReplaceAll(quick, `"0"`, `"100m"`), replicas("10")...)
	w.wait(held.name, 100)
	w.follow(held, "100 requests wait, 10 each, and the HPA has its tolerance of a tenth", 10)
	w.wait(held.name, 101)
	w.hold(held, "101 wait, and 11 is not above 10 by more than a tenth", 5*time.Second)
	w.wait(held.name, 111)
	w.follow(held, "111 wait", 12)
	w.wait(held.name, 0)
}

// defaulted checks that a ScaledObject has what the webhook fills in, and that KEDA took it.
func (w *world) defaulted(name string) {
	w.t.Helper()
	u, err := w.dynamic.Resource(scaledObjects).Namespace(namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	triggers, _, err := unstructured.NestedSlice(u.Object, "spec", "triggers")
	require.NoError(w.t, err)
	trigger, ok := triggers[0].(map[string]any)
	require.True(w.t, ok)
	require.Equal(w.t, map[string]any{"name": "keda-kaito-creds", "kind": "ClusterTriggerAuthentication"}, trigger["authenticationRef"])
	metadata, ok := trigger["metadata"].(map[string]any)
	require.True(w.t, ok)
	require.Equal(w.t, "vllm:num_requests_waiting", metadata["metricName"])
	require.Equal(w.t, "5000", metadata["metricPort"])
	tolerance, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "advanced", "horizontalPodAutoscalerConfig", "behavior", "scaleUp", "tolerance")
	require.NoError(w.t, err)
	require.Equal(w.t, "0", tolerance)
	require.Equal(w.t, "True", w.condition(name, "Ready"))
	w.say("the defaulted ScaledObject is Ready: %v", metadata)
}

// condition returns the status of a condition of a ScaledObject.
func (w *world) condition(name, kind string) string {
	u, err := w.dynamic.Resource(scaledObjects).Namespace(namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			status, _ := m["status"].(string)
			return status
		}
	}
	return ""
}

// hpaIsBlind reports whether the HorizontalPodAutoscaler of a ScaledObject says that it has no metric.
func (w *world) hpaIsBlind(name string) bool {
	h, err := w.admin.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(w.t.Context(), "keda-hpa-"+name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	for _, c := range h.Status.Conditions {
		if c.Type == "ScalingActive" && c.Status == "False" {
			return true
		}
	}
	return false
}

// scaleWrites counts what anybody wrote to a scale subresource.
func (w *world) scaleWrites() int {
	w.t.Helper()
	writes, err := w.cluster.Writes("", "", "scale")
	require.NoError(w.t, err)
	return len(writes)
}

// rotate has the CA rotated, and the load change all the while: every change is followed, and no call of KEDA's fails.
func (w *world) rotate(follow, also target) {
	w.t.Helper()
	ctx := w.t.Context()
	before, err := w.admin.CoreV1().Secrets(system).Get(ctx, "keda-kaito-scaler-certs", metav1.GetOptions{})
	require.NoError(w.t, err)
	failures, since := w.failures(), time.Now()
	w.eventually("every ScaledObject is answered again: for three seconds no call fails", func() bool {
		if now := w.failures(); now != failures {
			failures, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second
	})
	ca, err := w.admin.CoreV1().Secrets(system).Get(ctx, "keda-kaito-scaler-ca", metav1.GetOptions{})
	require.NoError(w.t, err)
	metav1.SetMetaDataAnnotation(&ca.ObjectMeta, certs.RotateAnnotation, "once")
	_, err = w.admin.CoreV1().Secrets(system).Update(ctx, ca, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	w.say("the CA is to be rotated")

	load, step := 190, -10
	phases := []struct {
		what  string
		holds func(bundle, client string) bool
	}{
		{"two CAs are trusted, the old one signs", func(bundle, client string) bool {
			return strings.Count(bundle, "BEGIN") == 2 && client == string(before.Data["tls.crt"])
		}},
		{"two CAs are trusted, the new one signs", func(bundle, client string) bool {
			return strings.Count(bundle, "BEGIN") == 2 && client != string(before.Data["tls.crt"])
		}},
		{"only the new CA is trusted", func(bundle, _ string) bool {
			return strings.Count(bundle, "BEGIN") == 1 && bundle != string(before.Data["ca.crt"])
		}},
	}
	for _, phase := range phases {
		w.eventually(phase.what, func() bool {
			s, err := w.admin.CoreV1().Secrets(system).Get(ctx, before.Name, metav1.GetOptions{})
			return err == nil && phase.holds(string(s.Data["ca.crt"]), string(s.Data["tls.crt"]))
		})
		for range 2 {
			load += step
			w.wait(follow.name, load)
			w.wait(also.name, load)
			w.follow(follow, phase.what, int64(load/10))
			w.follow(also, phase.what, int64(load/10))
		}
	}
	require.Equal(w.t, failures, w.failures(), "calls of KEDA's failed")
	w.say("no call of KEDA's failed")
	w.scaler.Stop()
	w.start() // KEDA connects anew: with what it read at first, or with what it reads now
	w.wait(follow.name, 50)
	w.follow(follow, "connected anew, with the new CA alone", 5)
}

// failures counts the errors of the external scaler that KEDA's operator tells of.
func (w *world) failures() int {
	w.t.Helper()
	n := 0
	for line := range strings.Lines(w.keda.LogTails(100000)) {
		if strings.Contains(line, `"level":"error"`) && strings.Contains(line, `"logger":"external_scaler"`) {
			n++
		}
	}
	return n
}
