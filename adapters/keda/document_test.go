package keda

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// inDocument is the metadata of a trigger whose rules are a document.
func inDocument(text string, more ...string) map[string]string {
	m := map[string]string{"scalerName": DefaultScalerName, "mode": "replicas", "policy": text}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// TestDocument is an LLMAutoScaler as it stands under the key policy: what is built decides as the document does.
func TestDocument(t *testing.T) {
	for _, file := range []string{"kaito", "proportional"} {
		data, err := os.ReadFile("../../examples/llmautoscaler/deploy/samples/" + file + ".yaml")
		require.NoError(t, err)
		m := parsed(t, inDocument(string(data)))
		require.Empty(t, m.Unknown)
		d, err := policy.Read(data, file)
		require.NoError(t, err)
		doc := d.Policies[0]
		require.Equal(t, doc.MaxReplicas, *m.MaxReplicas)
		bounds := scaling.Bounds{Min: 1, Max: doc.MaxReplicas}
		plan, err := m.plan(chatTarget, bounds)
		require.NoError(t, err)
		want, err := doc.Build(bounds)
		require.NoError(t, err)
		now, count := time.Date(2026, 1, 15, 12, 58, 0, 0, time.UTC), int32(2)
		for i := range 60 {
			obs := scaling.Observation{SpecReplicas: count, ReadyReplicas: count}
			for _, metric := range doc.Metrics() {
				value := metric.Fill * float64(i%9) / 4
				obs.Readings = append(obs.Readings, scaling.Reading{Metric: metric.Name, Lower: value, Upper: value, Values: count})
			}
			a, b := plan.Policy.Decide(now, obs), want.Decide(now, obs)
			require.Equal(t, b.Explain(), a.Explain())
			if a.Acts() {
				plan.Policy.Applied(now, count, a.Replicas)
				want.Applied(now, count, a.Replicas)
				count = a.Replicas
			}
			now = now.Add(15 * time.Second)
		}
	}
}

// TestDocumentFields are those beside the rules: a key counts before them.
func TestDocumentFields(t *testing.T) {
	const text = "minReplicas: 0\nmaxReplicas: 4\nintervalSeconds: 30\ngrouping: LeaderWorkerSet\nscrape: {portName: web}\nscaler: {highest: [{static: {replicas: 2}}, {name: b, realtime: {profile: seed}}]}\n"
	m := parsed(t, inDocument(text))
	require.Equal(t, []int32{0, 4}, []int32{*m.MinReplicas, *m.MaxReplicas})
	require.Equal(t, 30*time.Second, m.Interval)
	require.Equal(t, "LeaderWorkerSet", m.Grouping)
	require.Equal(t, "web", m.PortName)
	require.Equal(t, []string{"policy: scaler.highest[1].realtime.profile is called kaito now"}, m.Warnings)
	_, err := m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	m = parsed(t, inDocument(text, "minReplicas", "1", "maxReplicas", "9", "interval", "5", "grouping", "Pod"))
	require.Equal(t, []int32{1, 9}, []int32{*m.MinReplicas, *m.MaxReplicas})
	require.Equal(t, 5*time.Second, m.Interval)
	require.Equal(t, "Pod", m.Grouping)
	require.NotEqual(t, identityOf(t, inDocument(text)), identityOf(t, inDocument("highest: [{static: {replicas: 2}}]")))
}

// TestDocumentFaults are the document's, and what a trigger cannot do.
func TestDocumentFaults(t *testing.T) {
	for text, want := range map[string]string{
		"static: {replica: 1}": "policy:1: static.replica: 1: is not a field here: is it replicas?",
		"policies: [{name: a, static: {replicas: 1}}, {name: b, static: {replicas: 1}}]":          "must have one policy",
		"{scaler: {static: {replicas: 1}}, shadow: [{name: a, scaler: {static: {replicas: 2}}}]}": "must not have shadow",
		"{paused: true, scaler: {static: {replicas: 1}}}":                                         "must not have paused",
		"{dryRun: true, scaler: {static: {replicas: 1}}}":                                         "must not have dryRun",
		"{scrape: {bearerTokenSecretRef: {name: a}}, scaler: {static: {replicas: 1}}}":            "must not refer to Secrets",
	} {
		_, err := ParseMetadata(inDocument(text))
		require.ErrorContains(t, err, want)
	}
	_, err := ParseMetadata(inDocument("static: {replicas: 1}", "threshold", "1"))
	require.ErrorContains(t, err, "must not be given beside policy, which says it all")
	_, err = ParseMetadata(map[string]string{"scalerName": DefaultScalerName, "mode": "replicas", "policyFromEnv": "token: abc"})
	require.NotContains(t, err.Error(), "abc", "what is from the environment is not shown")
}

// TestForecast stands in a document and in keys, and a state with one is not that of a state without.
func TestForecast(t *testing.T) {
	const text = `{slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, forecast: {timeZone: Europe/Berlin}}`
	seen := map[string]bool{}
	for _, metadata := range []map[string]string{
		inDocument("capacity: " + text),
		inDocument("capacity: " + strings.Replace(text, "timeZone: Europe/Berlin", "mode: Disabled", 1)),
		inReplicas("policy", "proportional", "proportional.forecast.timeZone", "Europe/Berlin"),
		inReplicas("policy", "proportional"),
		inDocument("highest: [{name: a, static: {replicas: 1}}, {name: b, capacity: " + text + "}]"),
		inDocument("highest: [{name: a, static: {replicas: 1}}, {name: b, capacity: " + strings.Replace(text, "timeZone: Europe/Berlin", "mode: Disabled", 1) + "}]"),
	} {
		m := parsed(t, metadata)
		plan, err := m.plan(chatTarget, oneToTen)
		require.NoError(t, err)
		state, err := plan.Policy.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, strings.Contains(metadata["policy"]+metadata["proportional.forecast.timeZone"], "Europe/Berlin"), strings.Contains(string(state), `"zone":"Europe/Berlin"`))
		require.NotContains(t, seen, m.identity())
		seen[m.identity()] = true
	}
	_, err := ParseMetadata(inReplicas("policy", "proportional", "proportional.forecast.timeZone", "Mars/Base"))
	if err == nil {
		m := parsed(t, inReplicas("policy", "proportional", "proportional.forecast.timeZone", "Mars/Base"))
		_, err = m.plan(chatTarget, oneToTen)
	}
	require.ErrorContains(t, err, `proportional.forecast.timeZone: "Mars/Base": must be in the time zone database`)
}

// TestADocumentFitsTheKeysBesideIt, or the key that does not is told: its interval counts for the document's rules, and the
// document's for it.
func TestADocumentFitsTheKeysBesideIt(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless})
	require.NoError(t, err)
	const rules = "scaler: {proportional: {stableWindowSeconds: 601, metrics: [{target: 1}]}}"
	_, err = triggers.Build(chat, inDocument(rules, "interval", "2"))
	require.NoError(t, err)
	_, err = triggers.Build(chat, inDocument(rules, "interval", "1"))
	require.ErrorContains(t, err, "policy.proportional.stableWindowSeconds: 601: must be at most 600 times interval 1")
	_, err = triggers.Build(chat, inDocument("intervalSeconds: 1\n"+rules))
	require.ErrorContains(t, err, "proportional.stableWindowSeconds: 601: must be at most 600 times intervalSeconds 1")
	_, err = triggers.Build(chat, inDocument("intervalSeconds: 4\n"+rules, "scrapeTimeout", "5"))
	require.EqualError(t, err, "scrapeTimeout: 5s: must be positive and below interval")
}
