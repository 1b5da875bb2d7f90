package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/policy"
)

// TestScale runs the controller over many autoscalers at once, each with pods of its own, and reports what it costs. In
// the gate there are 20 of 2 pods for half a minute; INFERSCALE_SCALE=1000x10 is the full measurement, and takes about
// ten minutes on two cores.
func TestScale(t *testing.T) {
	objects, pods, interval, span := 20, 2, 5, 30*time.Second
	if size := os.Getenv("INFERSCALE_SCALE"); size != "" {
		_, err := fmt.Sscanf(size, "%dx%d", &objects, &pods)
		require.NoError(t, err, "INFERSCALE_SCALE must be as 1000x10")
		interval, span = 15, 2*time.Minute
	}
	w := newWorld(t)
	begin := time.Now()
	for i := range objects {
		name := fmt.Sprintf("model-%04d", i)
		labels := map[string]string{"app": name}
		require.NoError(t, w.client.Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr(int32(pods)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "vllm"}}},
				},
			},
		}))
		require.NoError(t, w.client.Create(t.Context(), &v1alpha1.LLMAutoScaler{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Spec: v1alpha1.LLMAutoScalerSpec{
				Settings: policy.Settings{
					ScaleTargetRef: policy.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
					MinReplicas:    ptr(int32(pods)), MaxReplicas: int32(pods) + 4, IntervalSeconds: ptr(int32(interval)),
				},
				Scaler: policy.Scaler{Realtime: &policy.RealtimeScaler{
					Metrics: []policy.ThresholdMetric{{Threshold: policy.MetricThreshold{High: policy.NewDecimal("1000"), Low: policy.NewDecimal("1")}}},
				}},
			},
		}))
	}
	ready := func() (n int) {
		for _, p := range w.kubelet.Pods() {
			if p.Ready {
				n++
			}
		}
		return n
	}
	w.eventually("all pods are ready", 15*time.Minute, func() bool { return ready() >= objects*pods })
	t.Logf("%d autoscalers with %d pods each are there after %s", objects, pods, time.Since(begin).Round(time.Second))

	w.fleet.SetRate(20)
	address := cluster.FreeAddress(t)
	p := w.run("-leader-elect=false", "-metrics-address", address, "-metrics-insecure")
	seen := func() map[string]float64 { return timestamps(t, "http://"+address+"/metrics") }
	w.eventually("each has been decided", 5*time.Minute, func() bool { return len(seen()) >= objects })

	// From here on it is steady: nothing is to be scaled.
	before, cpu := len(w.all()), cpuSeconds(t, p.cmd.Process.Pid)
	begin = time.Now()
	last := seen()
	var gaps []float64
	w.eventually("the time is over", span+time.Minute, func() bool {
		for name, at := range seen() {
			if at > last[name] {
				gaps = append(gaps, at-last[name]-float64(interval))
				last[name] = at
			}
		}
		return time.Since(begin) >= span
	})
	took := time.Since(begin).Seconds()
	writes := w.all()[before:]
	byKind := map[string]int{}
	for _, write := range writes {
		byKind[write.Resource+"/"+write.Subresource+" "+write.Verb]++
	}
	slices.SortFunc(gaps, cmp.Compare[float64])
	require.NotEmpty(t, gaps)
	late := func(q float64) float64 { return gaps[min(len(gaps)-1, int(q*float64(len(gaps))))] }
	t.Logf("steady, %.0f s: %d rounds, %.2f cores, %d MiB, %.1f API writes/s %v; late by %.2f s (p50), %.2f s (p99), %.2f s (most)",
		took, len(gaps), (cpuSeconds(t, p.cmd.Process.Pid)-cpu)/took, memoryMiB(t, p.cmd.Process.Pid),
		float64(len(writes))/took, byKind, late(0.5), late(0.99), late(1))

	require.Zero(t, byKind["deployments/scale update"], "nothing was to be scaled")
	require.Less(t, byKind["llmautoscalers/status update"]+byKind["llmautoscalers/status patch"], len(gaps)/2, "only a status that changed is written")
	if objects <= 100 {
		require.Less(t, late(0.99), float64(interval), "a round comes before the next one is due")
	}
}

// all returns all writes of the controller.
func (w *world) all() []write {
	w.t.Helper()
	writes, err := w.cluster.Writes(w.user, "", "*")
	require.NoError(w.t, err)
	kept := make([]write, len(writes))
	for i, one := range writes {
		kept[i] = write{one.Resource, one.Subresource, one.Verb}
	}
	return kept
}

type write struct{ Resource, Subresource, Verb string }

// timestamps returns when each target was last decided, by name.
func timestamps(t *testing.T, url string) map[string]float64 {
	t.Helper()
	at := map[string]float64{}
	answer, err := http.Get(url) //nolint:noctx // a test's loopback
	if err != nil {
		return at
	}
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	require.NoError(t, err)
	for _, m := range families["inferscale_last_decision_timestamp_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "name" {
				at[l.GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return at
}

// cpuSeconds returns how long a process has computed, by /proc.
func cpuSeconds(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	require.NoError(t, err)
	system, err := strconv.ParseFloat(fields[12], 64)
	require.NoError(t, err)
	return (user + system) / 100
}

// memoryMiB returns the resident memory of a process.
func memoryMiB(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib / 1024
}
