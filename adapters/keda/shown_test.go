package keda

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
)

// answered returns all that a trigger of these metadata says before it looks at pods.
func answered(metadata map[string]string) string {
	m, err := ParseMetadata(metadata)
	if err != nil {
		return err.Error()
	}
	ref := Ref{Namespace: "models", Name: "chat"}
	said := fmt.Sprintln(m.Warnings)
	object := Object{Target: chatTarget, Min: 1, Max: 10}.with([]external{{Metadata: metadata}, {Metadata: metadata, MetricType: Value}})
	target, bounds, err := m.resolve(ref, object, false)
	said += fmt.Sprintln(err)
	if err == nil {
		_, err = m.plan(target, bounds)
		said += fmt.Sprintln(err)
	}
	object = Object{Target: chatTarget, Min: 1, Max: 10}
	if target, bounds, err = m.resolve(ref, object, true); err == nil {
		_, err = m.plan(target, bounds)
	}
	said += fmt.Sprintln(err)
	triggers, err := NewTriggers(TriggersConfig{Scales: new(world), Observe: func(*build.Plan) (Observer, error) { return nil, k8s.ErrNotFound }})
	if err == nil {
		_, err = triggers.Build(ref, metadata)
	}
	return said + fmt.Sprintln(err)
}

// TestRoundsDoNotShowSecrets: what a trigger took from the environment comes back neither from pods nor from the API
// server.
func TestRoundsDoNotShowSecrets(t *testing.T) {
	for _, token := range []string{"hfSECRETvalue", `a"b\c d/e`, "/metrics?token=ä%2F1"} {
		w := newWorld(t)
		trigger := w.trigger(metricMode("targetNameFromEnv", token, "intervalFromEnv", "15"))
		inside := strconv.Quote(token)
		for _, form := range []string{token, inside, url.PathEscape(token), url.QueryEscape(token)} {
			w.scaleErr = fmt.Errorf("get %s in 15 s: %w", form, k8s.ErrNoScale)
			s := w.round(trigger)
			require.EqualError(t, s.Unknown, "get "+strings.Replace(form, strings.Trim(form, `"`), "(not shown)", 1)+" in 15 s: "+k8s.ErrNoScale.Error())
			require.Equal(t, s.Unknown, s.ActiveUnknown)
			w.scaleErr = fmt.Errorf("get %s", form)
			_, err := trigger.Round(t.Context(), w.now)
			require.NotContains(t, err.Error(), strings.Trim(form, `"`))
		}
	}
}

// TestRecordsHaveNoSecrets: what a pod's error says is stored, too.
func TestRecordsHaveNoSecrets(t *testing.T) {
	w := newWorld(t)
	w.seenErr = errors.New("get http://10.0.0.1:5000/hfSECRETvalue: refused")
	w.round(w.trigger(replicasMode("metricPathFromEnv", "/hfSECRETvalue")))
	require.NotEmpty(t, w.store.data)
	for _, data := range w.store.data {
		require.Contains(t, string(data), "refused")
		require.NotContains(t, string(data), "SECRET")
	}
}

// secretly has a value in each of the forms in which something of a key can be wrong.
func secretly(value string) []string {
	return []string{
		value, "{" + value + ": 1}", "[" + value + "]", value + ": 1\n" + value + ": 2", "[{source: {port: " + value + "}}]",
		"[{source: {name: a, path: " + value + "}, threshold: {high: " + value + ", low: 2}}]", "[{target: " + value + "}]",
		"{realtime: {" + value + ": 1}}", "{realtime: {metrics: [{source: {aggregation: " + value + "}}]}}",
		"[{name: " + value + ", schedule: " + value + ", targetReplicas: 1}]",
	}
}

func aKey(t *rapid.T) string {
	return rapid.SampledFrom(slices.Concat(ownKeys(), sourceKeys(), []string{
		"hfToken", "realtime.metrics", "realtime.profile", "realtime.scaleUpRule", "realtime.scaleUpRule.scaleStep", "proportional.metrics",
		"proportional.profile", "cron.policies", "cron.windows", "cron.mode", "cron.outside",
	})).Draw(t, "key")
}

// TestSecretsAreNotShown: KEDA puts what it takes from the environment of a container into the metadata. No error and no
// warning has it.
func TestSecretsAreNotShown(t *testing.T) {
	const token = "hfSECRETvalue"
	_, err := ParseMetadata(map[string]string{"scalerName": "k", "hfTokenFromEnv": token})
	require.EqualError(t, err, "threshold: \"\": must be given in mode metric\nhfTokenFromEnv: (not shown): is no key of this scaler")
	_, err = ParseMetadata(map[string]string{"scalerName": "k", "hfToken": token})
	require.NotContains(t, err.Error(), token, "it may be a secret all the same")
	_, err = ParseMetadata(inReplicas("cron.policiesFromEnv", `[{name: a, schedule: "`+token+`", targetReplicas: 1}]`))
	require.EqualError(t, err, "cron.policiesFromEnv: (not shown): is not a cron expression of five fields", "which field is wrong would quote from it")
	rapid.Check(t, func(t *rapid.T) {
		metadata := maps.Clone(rapid.SampledFrom([]map[string]string{inMetric(), inReplicas(), inReplicas("lowThreshold", "1"), inReplicas("threshold", "-"), {}}).Draw(t, "base"))
		for range rapid.IntRange(1, 3).Draw(t, "more") {
			key := aKey(t)
			delete(metadata, key)
			metadata[key+fromEnv] = rapid.SampledFrom(secretly(token)).Draw(t, "value")
		}
		require.NotContains(t, answered(metadata), token, "%v", metadata)
	})
}

// TestRegressionAWrongTargetIsNamedOnce: a target that is wrong was checked again as the document's scaleTargetRef, and that
// error had its value although it is from the environment.
func TestRegressionAWrongTargetIsNamedOnce(t *testing.T) {
	w := newWorld(t)
	triggers, err := NewTriggers(TriggersConfig{Scales: w, Observe: func(*build.Plan) (Observer, error) { return eyes{w, ""}, nil }})
	require.NoError(t, err)
	_, err = triggers.Build(chat, inMetric("targetAPIVersionFromEnv", "hfSECRETvalue", "targetKind", "Deployment"))
	require.EqualError(t, err, `targetAPIVersionFromEnv: (not shown): must be "version" or "group/version"`)
	_, err = triggers.Build(chat, inMetric("targetAPIVersion", "a/b/c", "targetKind", "Deployment"))
	require.EqualError(t, err, `targetAPIVersion: "a/b/c": must be "version" or "group/version"`)
}

// TestMetadataAreBounded: they are kept as long as the trigger is.
func TestMetadataAreBounded(t *testing.T) {
	w := newWorld(t)
	triggers, err := NewTriggers(TriggersConfig{Scales: w, Observe: func(*build.Plan) (Observer, error) { return eyes{w, ""}, nil }})
	require.NoError(t, err)
	_, err = triggers.Build(chat, inMetric("other", strings.Repeat("x", 32<<10)))
	require.ErrorContains(t, err, ": must be at most 32768 bytes")
	_, err = triggers.Build(chat, inMetric("other", strings.Repeat("x", 32<<10-100)))
	require.NoError(t, err)
}

// TestErrorsAreShort: whoever writes a ScaledObject does not decide how long the scaler's answers are.
func TestErrorsAreShort(t *testing.T) {
	_, err := ParseMetadata(inMetric("threshold", strings.Repeat("x", 200_000)))
	require.EqualError(t, err, `threshold: "`+strings.Repeat("x", 60)+`...": must be a number from 0.001 to below 1e+12: KEDA counts in thousandths`)
	many := inMetric("threshold", "-")
	for i := range 200 {
		many[fmt.Sprintf("key%04d", i)] = "x"
	}
	_, err = ParseMetadata(many)
	require.ErrorContains(t, err, "key0018: (not shown): is no key of this scaler\nand 181 more")
	rapid.Check(t, func(t *rapid.T) {
		metadata := maps.Clone(rapid.SampledFrom([]map[string]string{inMetric(), inReplicas(), inReplicas("lowThreshold", "1"), inReplicas("threshold", "-"), {}}).Draw(t, "base"))
		for range rapid.IntRange(1, 3).Draw(t, "more") {
			metadata[aKey(t)] = rapid.SampledFrom(secretly(strings.Repeat("long", 10_000))).Draw(t, "value")
		}
		require.Less(t, len(answered(metadata)), 12_000)
	})
}
