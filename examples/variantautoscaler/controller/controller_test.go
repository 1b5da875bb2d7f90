package controller_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/examples/variantautoscaler/controller"
	"github.com/inferscale/inferscale/policy"
)

const saturated = `models:
  - name: meta/llama-70b
    namespace: serving
    algorithm: saturation
    interval: 1s
    variants:
      - {target: {apiVersion: apps/v1, kind: Deployment, name: llama-h100}, cost: 98, min: 1, max: 4, port: http}
      - {target: {apiVersion: apps/v1, kind: Deployment, name: llama-a100}, cost: 60, min: 1, max: 8, port: http}
`

const placed = `models:
  - name: meta/llama-70b
    namespace: serving
    algorithm: hetero
    interval: 1s
    variants:
      - {target: {apiVersion: apps/v1, kind: Deployment, name: llama-h100}, cost: 98, min: 1, max: 4, port: http}
      - {target: {apiVersion: apps/v1, kind: Deployment, name: llama-a100}, cost: 60, min: 1, max: 8, port: http}
    hetero: {expansionRate: 1, total: {static: {replicas: 4}}}
`

// key is the key of the model's state.
const key = "serving.meta-llama-70b.d2d5376d.saturation"

func parse(t *testing.T, text string) []policy.Model {
	t.Helper()
	models, err := controller.Parse([]byte(text))
	require.NoError(t, err)
	return models
}

func TestOnce(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		load float64
		want string
	}{
		"enough": {saturated, 0.5, `
serving/meta/llama-70b  saturation  Hold 2 -> 2  cost 158 -> 158
VARIANT     COST  BOUNDS  READY  COUNT   VERDICT  REASON
llama-h100  98    1..4    1      1 -> 1  Hold     FullKV after=1 > limit=0.7
llama-a100  60    1..8    1      1 -> 1  Hold     FullKV after=1 > limit=0.7
`},
		"saturated": {saturated, 0.78, `
serving/meta/llama-70b  saturation  Up 2 -> 3  cost 158 -> 218
VARIANT     COST  BOUNDS  READY  COUNT   VERDICT  REASON
llama-h100  98    1..4    1      1 -> 1  Hold     Dearer llama-a100 price=98 >= cheapest=60
llama-a100  60    1..8    1      1 -> 2  Up       ShortKV llama-a100-0 spare=0.02 < trigger=0.1, saturated=0, replicas=2; Cheapest llama-a100 price=60 <= next=98
`},
		"placed": {placed, 0.5, `
serving/meta/llama-70b  hetero  Up 2 -> 4  cost 158 -> 278
VARIANT     COST  BOUNDS  READY  COUNT   VERDICT  REASON
llama-h100  98    1..4    1      1 -> 1  Hold     Placed llama-h100 total=4
llama-a100  60    1..8    1      1 -> 3  Up       Within llama-a100 batch=60 <= margin=60, total=4
`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.load["llama-h100"], w.load["llama-a100"] = c.load, c.load
			var out bytes.Buffer
			require.NoError(t, controller.Once(t.Context(), w.env, parse(t, c.text), &out, false, 10*time.Second))
			assert.Equal(t, strings.TrimPrefix(c.want, "\n"), out.String())
			assert.Empty(t, w.done(), "nothing is written")
		})
	}
}

func TestOnceExplains(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"] = 0.95
	delete(w.scales, "llama-a100")
	var out bytes.Buffer
	err := controller.Once(t.Context(), w.env, parse(t, saturated), &out, true, 10*time.Second)
	require.ErrorContains(t, err, "model serving/meta/llama-70b: cannot read Deployment serving/llama-a100: not found")
	assert.Contains(t, out.String(), "llama-a100  60    1..8    -      -       Unknown  cannot read Deployment serving/llama-a100: not found")
	assert.Contains(t, out.String(), "\nall variants\n  Up 1 -> 2\n")
	assert.Contains(t, out.String(), "\nllama-h100\n  Up 1 -> 2\n")
	assert.Contains(t, out.String(), "vllm:kv_cache_usage_perc")
}

// TestRegressionOnceTellsWhatWasDecided: with a stored state the loop asks the policy what it would do in the next rounds, and the first line
// and the chain of all variants were those of such an answer.
func TestRegressionOnceTellsWhatWasDecided(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"], w.load["llama-a100"] = 0.5, 0.5
	t.Run("controller", func(t *testing.T) {
		w.configure(t, "1", saturated)
		story(t, w)
		eventually(t, "a state is stored", func() bool { return len(w.done()) > 0 })
	})
	w.load["llama-h100"], w.load["llama-a100"] = 0.78, 0.78
	var out bytes.Buffer
	require.NoError(t, controller.Once(t.Context(), w.env, parse(t, saturated), &out, true, 10*time.Second))
	assert.Contains(t, out.String(), "saturation  Up 2 -> 3  cost 158 -> 218\n")
	assert.Contains(t, out.String(), "\nall variants\n  Up 2 -> 3\n")
	assert.Contains(t, out.String(), "1 -> 2  Up       ShortKV")
}

func TestOnceReadsInFlight(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"], w.load["llama-a100"] = 0.5, 0.25 // 10 and 5 running
	var out bytes.Buffer
	text := strings.Replace(placed, "static: {replicas: 4}", "realtime: {profile: responsive}", 1)
	require.NoError(t, controller.Once(t.Context(), w.env, parse(t, text), &out, true, 10*time.Second))
	assert.Contains(t, out.String(), "reading  InFlight  7.5 to 7.5, from 2 of 2 replicas\n")
}

// TestStatesOfModelsThatAreGoneMakeRoom: each name and algorithm that a model ever had left a state. Once the ConfigMap was full, no
// model's state could be stored, and so nothing was scaled.
func TestStatesOfModelsThatAreGoneMakeRoom(t *testing.T) {
	w := newWorld(t)
	w.load["llama-a100"], w.load["llama-h100"] = 0.78, 0.78
	full := map[string]string{"notes": "of a person", "serving.other.00000000.saturation.dry-run": "dry"}
	for i := range 16 {
		full[fmt.Sprintf("serving.gone-%d.%08x.hetero-static", i, i)] = strings.Repeat("x", 65_490)
	}
	_, err := w.client.CoreV1().ConfigMaps(system).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "states", ResourceVersion: "1"}, Data: full,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.env.Store, err = k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: w.client.CoreV1(), Namespace: system, Name: "states"})
	require.NoError(t, err)
	w.configure(t, "1", saturated)
	story(t, w)
	eventually(t, "the model scales", func() bool { return slices.Contains(w.done(), "write llama-a100 2") })
	m, err := w.client.CoreV1().ConfigMaps(system).Get(t.Context(), "states", metav1.GetOptions{})
	require.NoError(t, err)
	keys := slices.Sorted(maps.Keys(m.Data))
	require.Equal(t, []string{"notes", key}, keys)
}

// TestRegressionAMemberNamedVolatileIsStored: the controller's wrapper hid how the policy stores its state. The name of a member was cut out,
// and its windows and cooldowns began anew after each restart.
func TestRegressionAMemberNamedVolatileIsStored(t *testing.T) {
	w := newWorld(t)
	w.configure(t, "1", strings.Replace(placed, "static: {replicas: 4}",
		"highest: [{name: volatile, realtime: {profile: responsive}}, {name: other, realtime: {profile: responsive}}]", 1))
	story(t, w)
	eventually(t, "a state is stored", func() bool { return len(w.done()) > 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.saved, 1)
	for _, state := range w.saved {
		require.Contains(t, state, `"other":{`)
		require.Contains(t, state, `"volatile":{`)
	}
}

// TestEventsAreText: a message was cut within a letter, which JSON replaces and Protobuf refuses.
func TestEventsAreText(t *testing.T) {
	w := newWorld(t)
	_, events := story(t, w)
	require.Contains(t, <-events.Events, "it is not there")
	var wrong []string
	for i := range 20 {
		wrong = append(wrong, strings.Repeat("\U0001f600", 10+i))
	}
	for i := range 40 { // one byte more each time, so that the end is everywhere in a letter
		w.configure(t, fmt.Sprint(i+1), "models: [{"+strings.Repeat("y", i+1)+": 1, "+strings.Join(wrong, ": 1, ")+": 1}]")
		said := <-events.Events
		require.Contains(t, said, "ConfigRefused")
		require.True(t, utf8.ValidString(said), said)
	}
}

// story is a Runner that runs on a Watcher.
func story(t *testing.T, w *world) (*controller.Watcher, *record.FakeRecorder) {
	t.Helper()
	events := record.NewFakeRecorder(1000)
	w.env.Recorder = events
	watcher, err := controller.NewWatcher(w.maps, system, "variants", events, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	go func() { watcher.Run(ctx); ended <- struct{}{} }()
	go func() { controller.NewRunner(w.env, watcher).Run(ctx); ended <- struct{}{} }()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
	})
	return watcher, events
}

func TestRound(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"], w.load["llama-a100"] = 0.78, 0.78
	w.configure(t, "1", saturated)
	_, events := story(t, w)
	eventually(t, "two saves and a write between", func() bool { return len(w.done()) >= 3 })
	assert.Equal(t, []string{"save " + key, "write llama-a100 2", "save " + key}, w.done()[:3], "the cheaper one grows, and what is intended is stored first")
	eventually(t, "an event", func() bool { return said(events, "Normal ScaledUp") })
	for _, call := range w.done() {
		assert.NotContains(t, call, "write llama-h100", "the model waits for what it asked for")
	}
}

func TestDryRunWritesNoReplicas(t *testing.T) {
	w := newWorld(t)
	w.env.DryRun = true
	w.load["llama-h100"], w.load["llama-a100"] = 0.78, 0.78
	w.configure(t, "1", saturated)
	_, events := story(t, w)
	eventually(t, "an event", func() bool { return said(events, "Normal WouldScaleUp dry run") })
	for _, call := range w.done() {
		assert.Equal(t, "save "+key+".dry-run", call)
	}
}

func TestConfigurationChanges(t *testing.T) {
	w := newWorld(t)
	watcher, events := story(t, w)
	eventually(t, "what is missing is told", func() bool {
		return said(events, "Warning ConfigRefused nothing is scaled: it is not there")
	})
	require.Error(t, watcher.Ready())

	w.configure(t, "1", saturated)
	eventually(t, "a good one is accepted", func() bool { return said(events, "Normal ConfigAccepted 1 models") })
	require.NoError(t, watcher.Ready())
	eventually(t, "and runs", func() bool { return len(w.done()) > 0 })

	w.configure(t, "2", strings.Replace(saturated, "cost: 60", "cost: -60", 1))
	eventually(t, "a bad one is refused", func() bool {
		return said(events, "Warning ConfigRefused the last good configuration stays in force: variants.yaml:8: models[0].variants[1].cost: -60: must be a number above 0")
	})
	assert.InDelta(t, 1, gauge(t, watcher, "inferscale_configuration_refused"), 0)
	assert.InDelta(t, 1, gauge(t, watcher, "inferscale_configuration_models"), 0)
	require.NoError(t, watcher.Ready())
	w.mu.Lock()
	w.load["llama-h100"], w.load["llama-a100"] = 0.95, 0.95
	w.mu.Unlock()
	eventually(t, "the last good one still works", func() bool { return said(events, "Normal ScaledUp") })

	w.configure(t, "3", saturated+"    saturation: {kvCacheSource: {name: \"a\\nb\"}}\n")
	eventually(t, "one that cannot be run is refused too", func() bool {
		return said(events, "Warning ConfigRefused the last good configuration stays in force: variants.yaml: models[0]: ")
	})

	w.configure(t, "4", placed)
	eventually(t, "another one takes over", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.scales["llama-h100"].Spec.Replicas+w.scales["llama-a100"].Spec.Replicas == 4
	})
	assert.InDelta(t, 0, gauge(t, watcher, "inferscale_configuration_refused"), 0)

	require.NoError(t, w.client.CoreV1().ConfigMaps(system).Delete(t.Context(), "variants", metav1.DeleteOptions{}))
	eventually(t, "that it went is told", func() bool {
		return said(events, "Warning ConfigRefused the last good configuration stays in force: it is not there")
	})
	assert.Len(t, watcher.Current(), 1)
}

func TestThresholdsFromConfigMap(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"], w.load["llama-a100"] = 0.5, 0.5
	_, err := w.client.CoreV1().ConfigMaps(system).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "thresholds", ResourceVersion: "1"},
		Data: map[string]string{
			"default":                   "{kvCacheThreshold: 0.9, queueLengthThreshold: 5, kvSpareTrigger: 0.1, queueSpareTrigger: 3}",
			"meta/llama-70b#" + serving: "{kvCacheThreshold: 0.4, queueLengthThreshold: 5, kvSpareTrigger: 0.1, queueSpareTrigger: 3}",
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, "it is known", func() bool { return len(w.maps.GetStore().List()) == 1 })
	var out bytes.Buffer
	text := saturated + "    saturation: {thresholdsFrom: {configMap: thresholds}}\n"
	require.NoError(t, controller.Once(t.Context(), w.env, parse(t, text), &out, false, 10*time.Second))
	assert.Contains(t, out.String(), "Up 2 -> 3", "with those of its own entry the model is saturated")
}

// said reports whether an event begins with a text; the events before it are gone then.
func said(events *record.FakeRecorder, text string) bool {
	for {
		select {
		case e := <-events.Events:
			if strings.HasPrefix(e, text) {
				return true
			}
		default:
			return false
		}
	}
}

func gauge(t *testing.T, c prometheus.Collector, name string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name && f.GetType() == dto.MetricType_GAUGE {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	require.Fail(t, "no metric "+name)
	return 0
}
