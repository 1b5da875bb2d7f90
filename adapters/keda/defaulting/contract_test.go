package defaulting_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

// TestDefaultsSuitTheScaler: metadata that the scaler takes are taken with the defaults too, and mean the same.
func TestDefaultsSuitTheScaler(t *testing.T) {
	require.Equal(t, keda.DefaultScalerName, defaulting.Default().ScalerName)
	require.Equal(t, keda.DefaultScrapeTimeout, defaulting.Default().ScrapeTimeout)

	d := defaulter(t)
	parts := []map[string]string{
		{"threshold": "10"},
		{"threshold": "0.8", "engine": "SGLang", "signal": "Waiting"},
		{"threshold": "1", "engine": "VLLM", "signal": "TTFT", "quantile": "0.9"},
		{"metricName": "x", "aggregation": "Max"},
		{"mode": "replicas"},
		{"mode": "metric"},
		{"policy": "realtime", "lowThreshold": "2"},
		{"scaler": "proportional: {metrics: [{target: 10}]}"},
		{"mode": "replicas", "cron.policies": "[{name: a, schedule: '@daily', targetReplicas: 1}]"},
		{"metricPorotocol": "https"},
		{"metricProtocol": "https"},
		{"metricPort": "8000"},
		{"metricPortFromEnv": "9000"},
		{"metricPath": "/m"},
		{"metricType": "Value"},
		{"interval": "2"},
		{"interval": "60"},
		{"scrapeTimeout": "1"},
		{"minReplicas": "0"},
		{"mode": "replicas", "realtime.metrics": "[{source: {name: a}, threshold: {high: 2, low: 1}}]"},
		{"mode": "replicas", "proportional.metrics": "[{target: 3}]"},
	}
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		given := map[string]string{"scalerName": "keda-kaito-scaler"}
		for _, part := range rapid.SliceOfN(rapid.SampledFrom(parts), 1, 4).Draw(t, "metadata") {
			maps.Copy(given, part)
		}
		before, err := keda.ParseMetadata(given)
		if err != nil {
			return
		}
		taken++
		var so struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Spec       struct {
				Triggers [1]struct {
					Type     string            `json:"type"`
					Metadata map[string]string `json:"metadata"`
				} `json:"triggers"`
			} `json:"spec"`
		}
		so.APIVersion, so.Kind = "keda.sh/v1alpha1", "ScaledObject"
		so.Spec.Triggers[0].Type, so.Spec.Triggers[0].Metadata = "external", given
		object, err := json.Marshal(so)
		require.NoError(t, err)
		patch, _, err := d.Default(object)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(apply(t, object, patch), &so))
		after, err := keda.ParseMetadata(so.Spec.Triggers[0].Metadata)
		require.NoError(t, err, "%v became %v", given, so.Spec.Triggers[0].Metadata)
		require.Equal(t, before.Spec(), after.Spec())
		require.Equal(t, before.Mode, after.Mode)
		require.Equal(t, before.MetricType, after.MetricType)
		require.Equal(t, before.Interval, after.Interval)
		require.Equal(t, before.ScrapeTimeout, after.ScrapeTimeout)
		require.Equal(t, before.Unknown, after.Unknown)
		require.Equal(t, keda.Identity(given), keda.Identity(so.Spec.Triggers[0].Metadata), "the state goes on")
	})
	require.NotZero(t, taken)
}

// TestClockAloneGetsNoMetric: where the clock alone decides, the scaler refuses to be told which metric to read.
func TestClockAloneGetsNoMetric(t *testing.T) {
	clock := `{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {"triggers": [{"type": "external", "metadata":
		{"scalerName": "keda-kaito-scaler", "mode": "replicas", "cron.policies": "[{name: a, schedule: '@daily', targetReplicas: 1}]"}}]}}`
	patch, warnings, err := defaulter(t).Default([]byte(clock))
	require.NoError(t, err)
	require.Empty(t, warnings)
	for _, o := range patch {
		require.NotRegexp(t, "metadata/(metric(Name|Port|Path|Protocol)|scrapeTimeout)$", o.Path)
	}
	var so struct {
		Spec struct {
			Triggers []struct {
				Metadata map[string]string `json:"metadata"`
			} `json:"triggers"`
		} `json:"spec"`
	}
	require.NoError(t, json.Unmarshal(apply(t, []byte(clock), patch), &so))
	_, err = keda.ParseMetadata(so.Spec.Triggers[0].Metadata)
	require.NoError(t, err)
}

// TestTriggersThatWouldShareAState: what the scaler refuses is said at admission.
func TestTriggersThatWouldShareAState(t *testing.T) {
	d := defaulter(t, func(c *defaulting.Config) { c.Identity, c.Known = keda.Identity, keda.Known })
	object := func(more string) []byte {
		const one = `{"type": "external", "metadata": {"scalerName": "keda-kaito-scaler", "mode": "replicas", "threshold": "10"}}`
		const theirs = `{"type": "prometheus", "metadata": {"mode": "replicas", "threshold": "10"}}`
		return []byte(`{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {"triggers": [` + one + "," + theirs + `,
			{"type": "external", "metadata": {"scalerName": "keda-kaito-scaler", "mode": "replicas", "threshold": "20"` + more + `}}]}}`)
	}
	_, warnings, err := d.Default(object(""))
	require.NoError(t, err)
	require.Equal(t, []string{"spec.triggers[2].metadata: has the metric and the pods of spec.triggers[0], and would share its state: give it a stateName"}, warnings)
	for _, more := range []string{`, "stateName": "b"`, `, "metricPort": "8000"`} {
		_, warnings, err = d.Default(object(more))
		require.NoError(t, err)
		require.Empty(t, warnings)
	}
}
