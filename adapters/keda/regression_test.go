package keda

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// TestRegressionShadowsHaveNoAliases: 32 kB of aliases took 39 s of CPU and 200 MiB, in each round.
func TestRegressionShadowsHaveNoAliases(t *testing.T) {
	bomb := "- &a\n  name: x\n  scaler: {a: [" + strings.Repeat("1,", 8<<10) + "1]}\n" + strings.Repeat("- *a\n", 3<<10)
	_, err := shadowsOf(bomb)
	require.EqualError(t, err, "all must be written out: aliases are not taken")
	_, err = shadowsOf(strings.Repeat("- {}\n", 9))
	require.EqualError(t, err, "there are 9: must be at most 8")
	all, err := shadowsOf("- {name: a, scaler: {static: {replicas: 1}}}\n")
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = shadowsOf("- {name: a, other: 1}\n")
	require.ErrorContains(t, err, "other")
}

// TestRegressionNamesAreBounded: a name of 250 KiB counted as one place, and a thousand triggers of ScaledObjects that do not exist took
// 1.4 GiB.
func TestRegressionNamesAreBounded(t *testing.T) {
	s := newStage(t, nil)
	server, metadata := NewServer(s.engine), s.add("a", counting())
	for _, row := range []struct {
		namespace, name int
		want            codes.Code
	}{
		{63, 253, codes.OK},
		{63, 254, codes.InvalidArgument},
		{64, 253, codes.InvalidArgument},
		{1, 250 << 10, codes.InvalidArgument},
	} {
		_, err := server.GetMetricSpec(t.Context(), &externalscaler.ScaledObjectRef{
			Namespace: strings.Repeat("x", row.namespace), Name: strings.Repeat("n", row.name), ScalerMetadata: metadata,
		})
		require.Equal(t, row.want, code(err), "%d and %d", row.namespace, row.name)
		if err != nil {
			require.Less(t, len(err.Error()), 300)
		}
	}
	require.Equal(t, 1, s.engine.running())
}

// TestRegressionKeysTakeMemory: 256 KiB of keys of three bytes took 5.3 MiB in the cache of the informer, for each ScaledObject.
func TestRegressionKeysTakeMemory(t *testing.T) {
	metadata := map[string]any{"scalerName": "x"}
	for i := range 80_000 {
		metadata[fmt.Sprintf("%x", i)] = ""
	}
	u := manifest(t, "spec: {scaleTargetRef: {name: chat}}")
	u.Object["spec"].(map[string]any)["triggers"] = []any{map[string]any{"type": "external", "metadata": metadata}}
	_, err := ObjectOf(u)
	require.ErrorContains(t, err, "80001: must be at most 4096 keys of metadata")
	small := TrimObject(u)
	_, err = ObjectOf(small)
	require.ErrorContains(t, err, "must be at most")
	triggers, _, err := unstructured.NestedSlice(small.Object, "spec", "triggers")
	require.NoError(t, err)
	kept, _, err := unstructured.NestedStringMap(triggers[0].(map[string]any), "metadata")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	for _, text := range kept {
		require.Same(t, unsafe.StringData(excess), unsafe.StringData(text), "all share the text that stands for the rest")
	}
}

// TestRegressionWhatCannotBeBuiltIsBuiltOnce: the triggers of the whole ScaledObject were parsed once a second.
func TestRegressionWhatCannotBeBuiltIsBuiltOnce(t *testing.T) {
	u := manifest(t, "spec: {scaleTargetRef: {name: chat}}")
	metadata := map[string]any{"scalerName": DefaultScalerName, "threshold": "10"}
	u.Object["spec"].(map[string]any)["triggers"] = []any{
		map[string]any{"type": "external", "metricType": "Value", "metadata": metadata}, map[string]any{"type": "external", "metadata": metadata},
	}
	o, err := ObjectOf(u)
	require.NoError(t, err)
	p := podTrigger{
		c:    &TriggersConfig{Objects: func(Ref) (Object, error) { return o, nil }, Observe: func(*build.Plan) (Observer, error) { return nil, errors.New("not reached") }},
		meta: parsed(t, map[string]string{"scalerName": DefaultScalerName, "threshold": "10"}), ref: Ref{Namespace: "models", Name: "chat"},
	}
	first := p.build()
	require.ErrorContains(t, first, "metricType")
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = p.build() }))
	require.Equal(t, first, p.build())
	o.Max++
	require.ErrorContains(t, p.build(), "metricType")
	require.Equal(t, o.Max, p.refused.Max)
}

// TestRegressionAServiceHasOneName: two triggers with one state were not seen if their addresses were spelt in different ways.
func TestRegressionAServiceHasOneName(t *testing.T) {
	for _, address := range []string{"scaler.keda.svc.cluster.local:9090", "scaler.keda.svc:9090", "scaler.keda:9090", "Scaler.keda.svc.cluster.local.:9090"} {
		require.Equal(t, "scaler.keda", service(address), address)
	}
	for _, address := range []string{"scaler.other:9090", "scaler.svc1:9090", "10.0.0.1:9090", "10.0.0.2:9090", "[::1]:9090", "[::2]:9090", "scaler"} {
		require.NotEqual(t, "scaler.keda", service(address))
		for _, other := range []string{"scaler.svc2:9090", "10.0.1.1:9090", "[::3]:9090"} {
			require.NotEqual(t, service(other), service(address))
		}
	}
}

// TestRegressionAScalerNameHasNoSpaces: the scaler took a trigger that the webhook did not see.
func TestRegressionAScalerNameHasNoSpaces(t *testing.T) {
	_, err := ParseMetadata(map[string]string{"scalerName": " " + DefaultScalerName, "threshold": "10"})
	require.ErrorContains(t, err, "must not begin or end with spaces")
}

// TestRegressionAFailedRoundIsMadeAgainSoon: with an interval of an hour, one error left the trigger without an answer for an hour.
func TestRegressionAFailedRoundIsMadeAgainSoon(t *testing.T) {
	began, failed := time.Unix(1e9, 0), errors.New("the API server is away")
	require.Equal(t, 15*time.Second, nextAfter(began, time.Hour, time.Time{}, failed).Sub(began))
	require.Equal(t, time.Second, nextAfter(began, time.Second, time.Time{}, failed).Sub(began))
	require.Equal(t, time.Hour, nextAfter(began, time.Hour, time.Time{}, nil).Sub(began))
	require.Equal(t, time.Minute, nextAfter(began, time.Hour, began.Add(time.Minute), nil).Sub(began))
}

// TestRegressionPortAsWritten: metricPort "0080" and "+80" were read as 80, which no field of a document is.
func TestRegressionPortAsWritten(t *testing.T) {
	for _, port := range []string{"0080", "+80", "-0"} {
		_, err := ParseMetadata(metricMode("metricPort", port))
		require.ErrorContains(t, err, "metricPort: \""+port+"\": must be a number, or the name of a container's port")
	}
	_, err := ParseMetadata(metricMode("metricPort", "80"))
	require.NoError(t, err)
}

// TestRegressionARoundBuildsNoRules: each round built the whole document twice, for the name of its state. With 268 timetables that
// took 120 ms.
func TestRegressionARoundBuildsNoRules(t *testing.T) {
	rounds := func(members int) float64 {
		var text strings.Builder
		text.WriteString("highest:\n")
		for i := range members {
			fmt.Fprintf(&text, "- {name: m%d, cron: {policies: [{name: day, schedule: \"0 8 * * *\", targetReplicas: 3}]}}\n", i)
		}
		w := newWorld(t)
		trigger := w.trigger(map[string]string{"scalerName": DefaultScalerName, "mode": "replicas", "scaler": text.String()})
		w.round(trigger)
		return testing.AllocsPerRun(10, func() { w.round(trigger) }) // the answer is that of the first round
	}
	require.InDelta(t, rounds(1), rounds(100), 5)
}

// TestRegressionATargetIsCompleted: without ScaledObjects, a trigger with only the name of its target, or only the kind, never had
// a value.
func TestRegressionATargetIsCompleted(t *testing.T) {
	for _, c := range []struct {
		metadata map[string]string
		want     string
	}{
		{metricMode(), "Deployment models/chat"},
		{metricMode("targetName", "llama"), "Deployment models/llama"},
		{metricMode("targetKind", "StatefulSet", "targetAPIVersion", "apps/v1"), "StatefulSet models/chat"},
	} {
		w := newWorld(t)
		w.load(5)
		observe := func(*build.Plan) (Observer, error) { return eyes{w, "q"}, nil }
		triggers, err := NewTriggers(TriggersConfig{Scales: w, Observe: observe})
		require.NoError(t, err)
		plan, err := triggers.Build(chat, c.metadata)
		require.NoError(t, err)
		s, err := plan.Trigger.Round(t.Context(), w.now)
		require.NoError(t, err)
		require.NoError(t, s.Unknown)
		target := plan.Trigger.(*podTrigger).target
		require.Equal(t, c.want, target.String())
		require.Equal(t, "apps/v1", target.APIVersion)
	}
}

// TestRegressionMetricsLetGoOfClosedEngines: each engine that a process had made stayed in memory, as after a change of the leader.
func TestRegressionMetricsLetGoOfClosedEngines(t *testing.T) {
	m := NewMetrics()
	for range 3 {
		s := newStage(t, func(c *EngineConfig) { c.Metrics = m })
		require.Len(t, m.engines, 1)
		s.engine.Close()
		require.Empty(t, m.engines)
	}
}

// TestRegressionBoundsOfAMemberMakeAnotherState: bounds of a scaler in the list highest are a layer around all of them, whose state the
// policy without them refuses, and the other way round. The two had one name for their states, and a trigger that was edited never had a
// value again.
func TestRegressionBoundsOfAMemberMakeAnotherState(t *testing.T) {
	const (
		without  = "highest: [{name: a, static: {replicas: 2}}, {name: b, static: {replicas: 3}}]"
		with     = "highest: [{name: a, static: {replicas: 2}}, {name: b, maxReplicas: 3, static: {replicas: 3}}]"
		smoothed = "\nstabilization: {}"
	)
	for _, edit := range [][2]string{{without, with}, {with, without}} {
		w := newWorld(t)
		require.NoError(t, w.next(w.trigger(inDocument(edit[0]))).Unknown)
		s := w.next(w.trigger(inDocument(edit[1])))
		require.NoError(t, s.Unknown)
		require.InDelta(t, 3, s.Value, 0)
	}
	require.Equal(t, identityOf(t, inDocument(without+smoothed)), identityOf(t, inDocument(with+smoothed)), "it brings that layer already")
	require.Equal(t, identityOf(t, inDocument(with)), identityOf(t, inDocument("highest: [{name: a, maxReplicas: 2, static: {replicas: 2}}, {name: b, maxReplicas: 5, static: {replicas: 3}}]")))
}

// TestRegressionADocumentWithAMaximumKeepsOneReplica: in a document minReplicas is 1 beside a maxReplicas unless it says otherwise. Under
// the key policy a timetable without replicas took the last one away, which the same document in an LLMAutoScaler keeps.
func TestRegressionADocumentWithAMaximumKeepsOneReplica(t *testing.T) {
	const rules = `scaler: {cron: {mode: InWindow, windows: [{name: day, start: "0 9 * * *", end: "0 18 * * *", targetReplicas: 5}]}}`
	for _, row := range []struct {
		text  string
		more  []string
		least int32 // of the ScaledObject
		want  float64
	}{
		{"maxReplicas: 5\n" + rules, nil, 0, 1},
		{"maxReplicas: 5\n" + rules, nil, 2, 2},
		{"maxReplicas: 5\n" + rules, []string{"minReplicas", "0"}, 0, 0},
		{"minReplicas: 0\nmaxReplicas: 5\n" + rules, nil, 0, 0},
		{rules, nil, 0, 0},
	} {
		w := newWorld(t)
		w.object.Min = row.least
		s := w.round(w.trigger(inDocument(row.text, row.more...))) // at 8 o'clock
		require.NoError(t, s.Unknown)
		require.InDelta(t, row.want, s.Value, 0, "%+v", row)
		require.Equal(t, row.want > 0, s.Active)
	}
}

// TestRegressionScrapeTimeoutFitsTheIntervalOfTheDocument: it had to be below the 15 s of a trigger that does not say its interval, also
// beside a document that does.
func TestRegressionScrapeTimeoutFitsTheIntervalOfTheDocument(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless})
	require.NoError(t, err)
	const rules = "scaler: {proportional: {metrics: [{target: 1}]}}"
	plan, err := triggers.Build(chat, inDocument("intervalSeconds: 60\n"+rules, "scrapeTimeout", "20"))
	require.NoError(t, err)
	require.Equal(t, time.Minute, plan.Interval)
	_, err = triggers.Build(chat, inDocument("intervalSeconds: 60\n"+rules, "scrapeTimeout", "60"))
	require.EqualError(t, err, "scrapeTimeout: 1m0s: must be positive and below interval")
	_, err = triggers.Build(chat, inDocument(rules, "scrapeTimeout", "20"))
	require.EqualError(t, err, "scrapeTimeout: 20s: must be positive and below interval")
	_, err = triggers.Build(chat, inDocument("intervalSeconds: 60\n"+rules, "scrapeTimeout", "20", "interval", "15"))
	require.ErrorContains(t, err, `scrapeTimeout: "20": must be seconds or a duration`)
}
