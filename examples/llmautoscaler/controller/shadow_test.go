package controller_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
	"github.com/inferscale/inferscale/internal/long"
)

const shadows = `
  shadow:
  - {name: calm, scaler: {static: {replicas: 5}}}
  - name: load
    scaler:
      proportional:
        profile: hpa
        metrics: [{source: {port: PORT}, target: 10}]
`

// watchedWorld is one in which what is beside the rounds is done at once.
func watchedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.config.Beside = func(f func()) { f() }
	w.restart()
	return w
}

func (w *world) said(reason string) (events []string) {
	for {
		select {
		case e := <-w.events.Events:
			if strings.Contains(e, reason) {
				events = append(events, e)
			}
		default:
			return events
		}
	}
}

// TestShadowsAreTold in the status, in metrics and events, and write nothing: replicas and the stored state are as without.
func TestShadowsAreTold(t *testing.T) {
	w, alone := watchedWorld(t), newWorld(t)
	for _, one := range []*world{w, alone} {
		one.deployment(2)
		one.queue(20)
	}
	w.apply(chat + shadows)
	alone.apply(chat)
	las := w.round("chat")
	alone.round("chat")
	first := las.Status.Shadows
	require.Len(t, first, 2)
	at := first[0].Time
	require.Equal(t, v1alpha1.ShadowStatus{
		Name: "calm", Replicas: 5, ReadyReplicas: 2, Verdict: "Up", Reason: first[0].Reason, Since: at, RemembersSince: at, LastScaleTime: at, Time: at,
	}, first[0])
	require.Equal(t, "2026-01-15T08:00:00Z", at.UTC().Format(time.RFC3339))
	require.Contains(t, first[0].Reason, "Up 2 -> 5")
	require.Equal(t, int32(4), first[1].Replicas, "twice the target on each")

	for range 20 {
		las = w.round("chat")
		other := alone.round("chat")
		require.Equal(t, other.Annotations, las.Annotations)
		require.Equal(t, other.Status.LastDecision, las.Status.LastDecision)
		require.Equal(t, other.Status.Conditions, las.Status.Conditions)
		require.Equal(t, alone.targets["chat"], w.targets["chat"])
	}
	require.Equal(t, alone.scales, w.scales)
	require.Equal(t, alone.statuses, w.statuses, "no more writes")
	require.NotNil(t, las.Status.Shadows[1].LastScaleTime)

	events := w.said("ShadowApart")
	require.Len(t, events, 2, "one of each, however long they are apart")
	require.Contains(t, events[0], "Normal ShadowApart shadow calm would run 5 replicas, 2 are asked for: Up 2 -> 5")
	require.NoError(t, testutil.CollectAndCompare(w.config.Numbers, strings.NewReader(`
# HELP inferscale_shadow_left_out Whether a shadow is left out, as it is wrong, has failed or has not decided in time.
# TYPE inferscale_shadow_left_out gauge
inferscale_shadow_left_out{name="chat",namespace="models",shadow="calm"} 0
inferscale_shadow_left_out{name="chat",namespace="models",shadow="load"} 0
`), "inferscale_shadow_left_out"))
	require.InDelta(t, 5*15*20, w.number("inferscale_shadow_replica_seconds_total", "calm"), 0)
	require.InDelta(t, 5, w.number("inferscale_shadow_replicas", "calm"), 0)
}

// number is the value of a shadow's series.
func (w *world) number(name, shadow string) float64 {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(w.t, registry.Register(w.config.Numbers))
	all, err := registry.Gather()
	require.NoError(w.t, err)
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == shadow }) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// TestShadowsGoOn with their counts over a restart, and say that they remember nothing; an edit keeps those that are as they were.
func TestShadowsGoOn(t *testing.T) {
	w := watchedWorld(t)
	w.deployment(2)
	w.queue(1)
	w.apply(chat + shadows)
	for range 40 { // until the status is written for its age
		w.round("chat")
	}
	before := w.get("chat").Status.Shadows[0]
	require.Positive(t, before.ReplicaSeconds)
	w.restart()
	w.now = w.now.Add(10 * time.Minute)
	w.round("chat")
	w.now = w.now.Add(10 * time.Minute)
	after := w.round("chat").Status.Shadows[0]
	require.Equal(t, before.Since, after.Since)
	require.True(t, before.RemembersSince.Before(after.RemembersSince))
	require.Equal(t, int32(5), after.Replicas)
	require.InDelta(t, 5*after.Time.Sub(after.Since.Time).Seconds(), float64(after.ReplicaSeconds), 5, "of the time between too")

	w.apply(chat + strings.Replace(shadows, "target: 10", "target: 9", 1))
	las := w.round("chat")
	require.Equal(t, before.Since, las.Status.Shadows[0].Since)
	require.True(t, before.Since.Before(las.Status.Shadows[1].Since), "this is another one now")

	w.apply(chat)
	require.Empty(t, w.round("chat").Status.Shadows)
	require.Zero(t, testutil.CollectAndCount(w.config.Numbers, "inferscale_shadow_replicas"))
}

// TestWrongShadowIsLeftOut alone, with the reason: the object's own scaling and the other shadows go on.
func TestWrongShadowIsLeftOut(t *testing.T) {
	w := watchedWorld(t)
	w.deployment(2)
	w.queue(20)
	w.apply(chat + `
  shadow:
  - {name: bad, scaler: {realtime: {metrics: [{threshold: {high: x, low: 1}}]}}}
  - {name: clash, scaler: {realtime: {metrics: [{source: {port: 1}, threshold: {high: 2, low: 1}}]}}}
  - {name: good, scaler: {static: {replicas: 5}}}
  - {name: good, scaler: {static: {replicas: 6}}}
`)
	w.round("chat")
	las := w.round("chat")
	require.Equal(t, int32(3), w.targets["chat"].Spec.Replicas)
	require.Equal(t, "True Ready", condition(las, k8s.ConditionReady))
	s := las.Status.Shadows
	require.Len(t, s, 3, "no name twice, which an API server would refuse")
	require.Equal(t, "Refused", s[0].LeftOut)
	require.Contains(t, s[0].Message, `spec.shadow[0].scaler.realtime.metrics[0].threshold.high: "x"`)
	require.Equal(t, "Refused", s[1].LeftOut)
	require.Contains(t, s[1].Message, "must be read as spec.scaler.realtime.metrics[0].source reads it")
	require.Empty(t, s[2].LeftOut)
	require.Equal(t, int32(5), s[2].Replicas)
	require.Len(t, w.said("ShadowLeftOut"), 3)
}

// TestShadowsWithMetricsOfTheirOwn have pods asked beside the rounds: a metric that no pod has, and a page that never
// ends, are nothing to the object's own scaling.
func TestShadowsWithMetricsOfTheirOwn(t *testing.T) {
	w := watchedWorld(t)
	var asked []func()
	w.config.Beside = func(f func()) { asked = append(asked, f) }
	w.restart()
	w.deployment(2)
	w.apply(chat + `
  shadow:
  - {name: own, scaler: {proportional: {profile: hpa, metrics: [{source: {name: "vllm:num_requests_running", port: PORT}, target: 10}]}}}
`)
	w.queue(20)
	w.round("chat")
	require.Len(t, asked, 1, "the round did not wait")
	w.round("chat")
	las := w.round("chat")
	require.Len(t, asked, 1, "nor does another one ask again")
	require.Equal(t, int32(3), w.targets["chat"].Spec.Replicas)
	require.Equal(t, "True Ready", condition(las, k8s.ConditionReady))
	require.Len(t, las.Status.Metrics, 1)
	run := func() {
		for len(asked) > 0 {
			f := asked[0]
			asked = asked[1:]
			f()
		}
	}
	run()
	for range 25 { // for the status to be written for its age
		las = w.round("chat")
		run()
	}
	require.Equal(t, "Unknown", las.Status.Shadows[0].Verdict)
	require.Contains(t, las.Status.Shadows[0].Message, "metrics without a value: metric vllm:num_requests_running: NotFound")
	require.Equal(t, "True Ready", condition(las, k8s.ConditionReady))
	require.Len(t, las.Status.Metrics, 1, "those of the object's own")

	w.says("vllm:num_requests_waiting 20\nvllm:num_requests_running 20\n")
	for range 25 {
		las = w.round("chat")
		run()
	}
	require.Empty(t, las.Status.Shadows[0].Message)
	require.Equal(t, int32(8), las.Status.Shadows[0].Replicas)
}

// TestShadowsBeginAnewWithATarget that was made anew under its name.
func TestShadowsBeginAnewWithATarget(t *testing.T) {
	w := watchedWorld(t)
	w.deployment(2)
	w.queue(5)
	w.apply(chat + shadows)
	w.round("chat")
	w.targets["chat"] = &autoscalingv1.Scale{ObjectMeta: w.targets["chat"].ObjectMeta, Spec: w.targets["chat"].Spec, Status: w.targets["chat"].Status}
	w.targets["chat"].UID = "another"
	var las *v1alpha1.LLMAutoScaler
	for range 25 {
		las = w.round("chat")
	}
	require.True(t, las.Status.Shadows[0].Since.After(las.CreationTimestamp.Time))
}

// TestShadowsAreNotWaitedFor: beside the rounds, what they wish is told a round or more later.
func TestShadowsAreNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.queue(5)
	w.apply(chat + shadows)
	for range 10_000 {
		if w.round("chat"); w.number("inferscale_shadow_replicas", "calm") == 5 {
			return
		}
		runtime.Gosched()
	}
	t.Fatal("no shadow decided")
}

// counted has every pod's page say that so many requests of 1,000 and 200 tokens were served, in 0.2 s and 15 ms a token.
func (w *world) counted(n float64) {
	var b strings.Builder
	b.WriteString("vllm:num_requests_waiting 3\nvllm:num_requests_running 3\nvllm:kv_cache_usage_perc 0.02\n")
	fmt.Fprintf(&b, "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total %g\n", 1000*n)
	for name, each := range map[string]float64{
		"vllm:request_prompt_tokens": 1000, "vllm:request_generation_tokens": 200, "vllm:time_to_first_token_seconds": 0.2,
		"vllm:request_time_per_output_token_seconds": 0.015,
	} {
		fmt.Fprintf(&b, "# TYPE %s histogram\n%s_bucket{le=\"%g\"} %g\n%s_bucket{le=\"+Inf\"} %g\n%s_sum %g\n%s_count %g\n", name, name, each, n, name, n, name, each*n, name, n)
	}
	w.says("%s", b.String())
}

// TestWhatShadowsWouldHaveAttained is told where a capacity scaler says the SLO and the server: one replica less than enough
// misses it, and the real ones attain what was measured. No round waits for it, and one object is replayed at a time.
func TestWhatShadowsWouldHaveAttained(t *testing.T) {
	long.Skip(t)
	judged(t, `
  - {name: work, scaler: {capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, coldStartSeconds: 60, server: {name: qwen3-32b-2xh100}, source: {port: PORT}}}}
`)
}

// calibrated is a server as simulate -write-server writes it, of the port that a world's pods have.
const calibrated = `
  attainment:
    slo: {ttftSeconds: 2, tpotSeconds: "0.1"}
    source: {port: PORT}
    server:
      format: inferscale.server/v1
      name: "Qwen3-32B on 2 H100"
      base: {value: 0.014, lower: 0.0138, upper: 0.0142, source: measured}
      prefillToken: {value: 6.41e-05, source: measured}
      sequence: {value: 4e-05, source: measured}
      kvToken: {value: 3.9e-08, lower: 3e-08, source: measured}
      maxSeqs: 256
      tokenBudget: 8192
      kvTokens: {value: 350000, source: measured}
      startup: {starts: 12, p50: 60, p90: 70, p99: 80, max: 80, p50Lower: 50, p50Upper: 65, source: measured}
`

// TestWhatShadowsWouldHaveAttainedOnACalibratedServer is told without any capacity scaler, where the spec has the server.
func TestWhatShadowsWouldHaveAttainedOnACalibratedServer(t *testing.T) {
	long.Skip(t)
	judged(t, calibrated)
}

// TestWrongAttainmentEndsNothing: the real target is scaled, shadows watch, and an event says what is wrong.
func TestWrongAttainmentEndsNothing(t *testing.T) {
	for _, server := range []string{"{}", "{format: inferscale.server/v1}", "[1]", "3", strings.Replace(strings.SplitN(calibrated, "server:", 2)[1], "0.014", "-1", 1)} {
		w, alone := watchedWorld(t), watchedWorld(t)
		for _, one := range []*world{w, alone} {
			one.deployment(2)
			one.queue(20)
		}
		w.apply(chat + shadows + "  attainment:\n    slo: {ttftSeconds: 2, tpotSeconds: 1}\n    source: {port: PORT}\n    server: " + server + "\n")
		alone.apply(chat + shadows)
		for range 10 {
			require.Equal(t, alone.round("chat").Status.Shadows, w.round("chat").Status.Shadows, server)
			require.Equal(t, alone.targets["chat"].Spec.Replicas, w.targets["chat"].Spec.Replicas)
		}
		require.Len(t, w.said("NotReplayed"), 1)
	}
}

func judged(t *testing.T, by string) {
	t.Helper()
	w := watchedWorld(t)
	var replays []func()
	w.config.Beside = func(f func()) {
		if len(w.get("chat").Status.Shadows) == 0 || w.now.Before(time.Date(2026, 1, 15, 8, 5, 0, 0, time.UTC)) {
			f()
			return
		}
		replays = append(replays, f)
	}
	w.restart()
	w.deployment(4)
	w.apply(chat + `
  shadow:
  - {name: one, scaler: {static: {replicas: 1}}}
  - {name: six, scaler: {static: {replicas: 6}}}` + by)
	n := 100.0
	var las *v1alpha1.LLMAutoScaler
	for range 90 {
		n += 5 * 15 // each of four pods serves five requests a second
		w.counted(n)
		las = w.round("chat")
		for len(replays) > 0 {
			f := replays[0]
			replays = replays[1:]
			f()
		}
	}
	require.Equal(t, int32(4), w.targets["chat"].Spec.Replicas)
	s := las.Status.Shadows
	require.GreaterOrEqual(t, len(s), 2)
	for _, one := range s {
		t.Logf("%s: %d replicas, attained %s, real %s, measured %s %s", one.Name, one.Replicas, one.Attained, one.RealAttained, one.MeasuredAttained, one.Message)
	}
	require.Equal(t, "1.000", s[0].MeasuredAttained)
	attained := func(i int) float64 {
		x, err := strconv.ParseFloat(s[i].Attained, 64)
		require.NoError(t, err)
		return x
	}
	require.Greater(t, attained(1), 0.98)
	require.Less(t, attained(0), 0.5)
	require.Less(t, w.number("inferscale_shadow_attained", "one"), 1.1)
	require.GreaterOrEqual(t, w.number("inferscale_shadow_attained", "one"), 0.0)
}

// onlyOfShadows reads nothing but what its shadow needs.
const onlyOfShadows = `
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  maxReplicas: 8
  scaler: {static: {replicas: 1}}
  shadow: [{name: load, scaler: {proportional: {metrics: [{source: {protocol: PROTO, port: PORT}, target: "10"}]}}}]
`

// TestShadowsAskAFewPodsAtOnce: sweeps for shadows are in no round, so that the workers of rounds do not bound them.
func TestShadowsAskAFewPodsAtOnce(t *testing.T) {
	w := newWorld(t)
	var asked []func()
	w.config.Beside = func(f func()) { asked = append(asked, f) }
	w.restart()
	w.deployment(1)
	const objects, atOnce = 20, 8
	for i := range objects {
		name := fmt.Sprintf("t%d", i)
		w.targets[name] = &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(name), ResourceVersion: "1"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: 1}, Status: autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app=chat"},
		}
		w.apply(strings.NewReplacer("PROTO", "http", "name: chat", "name: "+name).Replace(onlyOfShadows))
	}
	for range 3 {
		for i := range objects {
			_, err := w.ctl.Reconcile(t.Context(), request(fmt.Sprintf("t%d", i)))
			require.NoError(t, err)
		}
		require.Len(t, asked, atOnce)
		w.now = w.now.Add(15 * time.Second)
		for _, f := range asked {
			f()
		}
		asked = nil
	}
	require.Contains(t, w.get("t19").Status.Shadows[0].Message, "the pods of other objects are being asked for their shadows")
}

// TestATokenOfShadowsIsReadAgain: one that was replaced is sent no more, and one whose Secret is gone neither.
func TestATokenOfShadowsIsReadAgain(t *testing.T) {
	w := watchedWorld(t)
	w.deployment(1)
	tokens := make(map[string]int)
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		tokens[r.Header.Get("Authorization")]++
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rw, "vllm:num_requests_waiting 5\n")
	}))
	defer server.Close()
	sent := func(token string) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return tokens["Bearer "+token]
	}
	w.port = server.Listener.Addr().(*net.TCPAddr).Port
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pods", Labels: map[string]string{controller.CredentialsLabel: "true"}}, Data: map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), "token": []byte("first-token"),
	}}
	require.NoError(t, w.client.Create(t.Context(), secret))
	w.apply(strings.Replace(onlyOfShadows, "PROTO", "https", 1) + "  scrape: {tls: {caSecretRef: {name: pods}, serverName: example.com}, bearerTokenSecretRef: {name: pods}}\n")
	aMinute := func() {
		for range 6 {
			w.round("chat")
		}
	}
	aMinute()
	first := sent("first-token")
	require.Positive(t, first)

	secret.Data["token"] = []byte("second-token")
	require.NoError(t, w.client.Update(t.Context(), secret))
	aMinute()
	require.Positive(t, sent("second-token"))
	require.LessOrEqual(t, sent("first-token"), first+4, "Secrets are read again after a minute")
	first = sent("first-token")

	require.NoError(t, w.client.Delete(t.Context(), secret))
	aMinute()
	second := sent("second-token")
	aMinute()
	require.Equal(t, second, sent("second-token"))
	require.Equal(t, first, sent("first-token"))
	las := w.get("chat")
	require.Contains(t, las.Status.Shadows[0].Message, "pods cannot be asked: spec.scrape.tls.caSecretRef")
}
