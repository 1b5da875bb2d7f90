package defaulting_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
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
		{"mode": "replicas", "policy": "proportional: {metrics: [{target: 10}]}"},
		{"mode": "replicas", "policy": "proportional:\n  metrics:\n    - source: {engine: VLLM, signal: InFlight}\n      target: 35\n"},
	}
	taken := 0
	ours := triggers(t)
	identity := func(metadata map[string]string) string {
		plan, err := ours.Build(keda.Ref{Namespace: "models", Name: "chat"}, metadata)
		if err != nil {
			return err.Error()
		}
		return plan.Identity
	}
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
		require.Equal(t, identity(given), identity(so.Spec.Triggers[0].Metadata), "the state goes on")
	})
	require.NotZero(t, taken)
}

// TestOneMetricOfThresholdAndRule: a threshold and a rule by its path may read one metric, and go on to read it in one way.
func TestOneMetricOfThresholdAndRule(t *testing.T) {
	object := scaledObject(`{"triggers": [{"type": "external", "metadata": {"scalerName": "keda-kaito-scaler", "mode": "replicas",
		"threshold": "10", "policy": "realtime", "lowThreshold": "2", "proportional.metrics": "[{target: 3}]"}}]}`)
	d := defaulter(t)
	require.Equal(t, "none", added(t, d, object, "/spec/triggers/0/metadata/metricPort"))
	patch, warnings, err := d.Default([]byte(object))
	require.NoError(t, err)
	require.Empty(t, warnings)
	parses(t, apply(t, []byte(object), patch))
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
	parses(t, apply(t, []byte(clock), patch))
}

// parses has the scaler read the metadata of the first trigger.
func parses(t *testing.T, object []byte) {
	t.Helper()
	var so struct {
		Spec struct {
			Triggers []struct {
				Metadata map[string]string `json:"metadata"`
			} `json:"triggers"`
		} `json:"spec"`
	}
	require.NoError(t, json.Unmarshal(object, &so))
	_, err := keda.ParseMetadata(so.Spec.Triggers[0].Metadata)
	require.NoError(t, err)
}

// A nowhere has no targets.
type nowhere struct{}

func (nowhere) Get(context.Context, k8s.Target) (k8s.Scale, error) {
	return k8s.Scale{}, k8s.ErrNotFound
}

// strict has the scaler itself look at what is admitted.
func strict(tb testing.TB) *defaulting.Defaulter {
	tb.Helper()
	return defaulter(tb, func(c *defaulting.Config) { c.Check, c.Known = triggers(tb).Check, keda.Known })
}

func triggers(tb testing.TB) *keda.Triggers {
	tb.Helper()
	triggers, err := keda.NewTriggers(keda.TriggersConfig{
		Scales: nowhere{}, Observe: func(*build.Plan) (keda.Observer, error) { return nil, k8s.ErrNotFound },
	})
	require.NoError(tb, err)
	return triggers
}

// admitted returns a ScaledObject with triggers, each the JSON of metadata and what follows it.
func admitted(triggers ...string) string {
	all := make([]string, 0, len(triggers))
	for _, t := range triggers {
		all = append(all, `{"type": "external", "metadata": {"scalerName": "keda-kaito-scaler"`+t+`}`)
	}
	return `{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "chat", "namespace": "models"},
		"spec": {"scaleTargetRef": {"name": "chat"}, "triggers": [` + strings.Join(all, ",") + `]}}`
}

// refusal returns why an object is not admitted; nothing if it is.
func refusal(tb testing.TB, d *defaulting.Defaulter, req *admissionv1.AdmissionRequest) string {
	tb.Helper()
	res := d.Review(req)
	require.Equal(tb, res.Allowed, res.Result == nil)
	if res.Allowed {
		return ""
	}
	require.Equal(tb, req.UID, res.UID)
	require.Nil(tb, res.Patch)
	require.EqualValues(tb, http.StatusUnprocessableEntity, res.Result.Code)
	return res.Result.Message
}

// TestWhatTheScalerRefusesIsNotAdmitted: the webhook let metadata in that the scaler refuses, whereupon KEDA said "no
// metric specs returned", and only the scaler's log said why.
func TestWhatTheScalerRefusesIsNotAdmitted(t *testing.T) {
	d := strict(t)
	at := "spec.triggers[0].metadata."
	for metadata, want := range map[string]string{
		`, "threshold": "abc"}`: at + `threshold: "abc": must be a number`,
		`}`:                     at + `threshold: "": must be given in mode metric`,
		`, "threshold": "1", "metricPort": "99999"}`:                                           at + `metricPort: 99999: must be between 1 and 65535`,
		`, "threshold": "1", "interval": "0"}`:                                                 at + `interval: "0": must be seconds or a duration`,
		`, "threshold": "1", "mode": "Metric"}`:                                                at + `mode: "Metric": must be metric or replicas`,
		`, "threshold": "1", "metricType": "Value"}`:                                           at + `metricType: "Value": must be the trigger's own metricType, AverageValue, or not be given`,
		`, "threshold": "1", "mode": "replicas"}, "metricType": "Value"`:                       at + `metricType: "Value": must be AverageValue in mode replicas`,
		`, "threshold": "1", "metricPath": "metrics"}`:                                         at + `metricPath: "metrics": must begin with a single '/'`,
		`, "threshold": "1", "targetNamespace": "other"}`:                                      at + `targetNamespace: "other": must be the ScaledObject's namespace, models`,
		`, "threshold": "1", "engine": "VLLM"}`:                                                at + `signal: "": must be one of Waiting`,
		`, "threshold": "1", "mode": "replicas", "minReplicas": "101"}`:                        at + `maxReplicas: 100: must be at least minReplicas 101`,
		`, "threshold": "1", "mode": "replicas", "proportional.foo": "1"}`:                     at + `proportional.foo: 1: is not a field here`,
		`, "threshold": "1", "mode": "replicas", "lowThreshold": "2"}`:                         at + `threshold: 1: must be a number above low 2`,
		`, "mode": "replicas", "policy": "{highest: [{static: {replicas: 1}}, {statik: 1}]}"}`: at + `policy: `,
	} {
		require.Contains(t, refusal(t, d, request(admissionv1.Create, admitted(metadata))), want, metadata)
		require.Contains(t, refusal(t, d, request(admissionv1.Update, admitted(metadata))), want, metadata)
		require.Empty(t, refusal(t, defaulter(t), request(admissionv1.Create, admitted(metadata))), "without Check")
	}
	for _, metadata := range []string{
		`, "threshold": "1"}`, `, "thresholdFromEnv": "T"}`, `, "mode": "replicas", "threshold": "1", "modeFromEnv": "M", "interval": "x"}`,
		`, "threshold": "1"}, "metricType": "Value"`, `, "threshold": "1", "unknown": "x"}`,
	} {
		require.Empty(t, refusal(t, d, request(admissionv1.Create, admitted(metadata))), metadata)
	}
}

// TestWrongMetadataAllAtOnce: nobody applies a manifest eleven times.
func TestWrongMetadataAllAtOnce(t *testing.T) {
	one := `, "threshold": "abc", "metricPort": "99999", "interval": "0", "scrapeTimeout": "x", "grouping": "x",
		"metricProtocol": "ftp", "tlsInsecureSkipVerify": "1", "targetKind": "K", "aggregation": "Mean", "maxReplicas": "0", "treshold": "1"}`
	said := refusal(t, strict(t), request(admissionv1.Create, admitted(one, `, "threshold": "1", "metricPath": "m"}`, `, "mode": "x"}`)))
	for _, key := range []string{
		"[0].metadata.threshold", "[0].metadata.metricPort", "[0].metadata.interval", "[0].metadata.scrapeTimeout", "[0].metadata.grouping",
		"[0].metadata.metricProtocol", "[0].metadata.tlsInsecureSkipVerify", "[0].metadata.targetKind",
		"[0].metadata.aggregation", "[0].metadata.maxReplicas", "[0].metadata.treshold", "[1].metadata.metricPath", "[2].metadata.mode", "[2].metadata.threshold",
	} {
		require.Equal(t, 1, strings.Count(said, "spec.triggers"+key+": "), "%s in\n%s", key, said)
	}
	require.Equal(t, 14, strings.Count(said, "spec.triggers"), said)
}

// TestOthersAreAdmitted: what is none of ours, or was there before, is nobody's to refuse.
func TestOthersAreAdmitted(t *testing.T) {
	d := strict(t)
	const wrong = `, "threshold": "abc"}`
	for _, object := range []string{
		strings.ReplaceAll(admitted(wrong), "keda-kaito-scaler", "other"),
		strings.ReplaceAll(admitted(wrong), `"external"`, `"cron"`),
		strings.ReplaceAll(admitted(wrong), "ScaledObject", "ScaledJob"),
		strings.ReplaceAll(admitted(wrong), `"name": "chat", "namespace"`, `"deletionTimestamp": "2026-01-01T00:00:00Z", "namespace"`),
	} {
		require.Empty(t, refusal(t, d, request(admissionv1.Create, object)), object)
	}
	req := request(admissionv1.Update, strings.Replace(admitted(wrong), `"name": "chat"`, `"name": "chat", "labels": {"a": "é"}`, 1))
	req.OldObject.Raw = []byte(admitted(wrong))
	require.Empty(t, refusal(t, d, req), "only a label is new")
	require.Empty(t, d.Review(req).Patch, "what stays wrong is not changed")
	require.Contains(t, strings.Join(d.Review(req).Warnings, "\n"), `spec.triggers[0].metadata.threshold: "abc": must be a number`)
	req.OldObject.Raw = []byte(admitted(`, "threshold": "abcd"}`))
	require.NotEmpty(t, refusal(t, d, req))
}

// TestTriggersThatWouldShareAState: what the scaler refuses is said at admission.
func TestTriggersThatWouldShareAState(t *testing.T) {
	d := strict(t)
	const one, two = `, "mode": "replicas", "threshold": "10"}`, `, "mode": "replicas", "threshold": "20"`
	said := refusal(t, d, request(admissionv1.Create, admitted(one, two+"}")))
	for _, i := range []string{"0", "1"} {
		require.Contains(t, said, "spec.triggers["+i+`].metadata.stateName: "": must tell this trigger from another of the ScaledObject`)
	}
	for _, more := range []string{`, "stateName": "b"}`, `, "metricPort": "8000"}`} {
		require.Empty(t, refusal(t, d, request(admissionv1.Create, admitted(one, two+more))))
	}
}
