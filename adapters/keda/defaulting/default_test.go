package defaulting_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestTranscripts tells what becomes of seed 001's ScaledObjects, verbatim, and of some of ours.
func TestTranscripts(t *testing.T) {
	d := defaulter(t, func(c *defaulting.Config) {
		c.Known = func(key string) bool { return key == "workspaceName" || key == "workspaceNamespace" }
	})
	for _, name := range []string{"seed-cron", "seed-prometheus", "seed-external", "seed-trigger", "shortest", "replicas", "odd"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + name + ".yaml")
			require.NoError(t, err)
			object, err := yaml.YAMLToJSON(text)
			require.NoError(t, err)
			patch, warnings, err := d.Default(object)
			require.NoError(t, err)
			honest(t, d, object, patch)

			var b strings.Builder
			for _, w := range warnings {
				b.WriteString("Warning: " + w + "\n")
			}
			for _, op := range patch {
				value, err := json.Marshal(op.Value)
				require.NoError(t, err)
				b.WriteString(op.Op + " " + op.Path + "\n    " + string(value) + "\n")
			}
			if len(patch) == 0 {
				b.WriteString("nothing to add\n")
			}
			scalingtest.Golden(t, name+".golden", b.String())
		})
	}
}

const ours = `{"type":"external","metadata":{"scalerName":"keda-kaito-scaler","threshold":"10"}}`

func scaledObject(spec string) string {
	return `{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","spec":` + spec + `}`
}

func TestOthersAreLeftAlone(t *testing.T) {
	d := defaulter(t)
	for name, object := range map[string]string{
		"another kind":        `{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledJob","spec":{"triggers":[` + ours + `]}}`,
		"another version":     `{"apiVersion":"keda.sh/v1","kind":"ScaledObject","spec":{"triggers":[` + ours + `]}}`,
		"kinds are exact":     `{"apiVersion":"keda.sh/v1alpha1","Kind":"ScaledObject","spec":{"triggers":[` + ours + `]}}`,
		"being deleted":       `{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"triggers":[` + ours + `]}}`,
		"no spec":             `{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject"}`,
		"spec is a list":      scaledObject(`[]`),
		"triggers is a text":  scaledObject(`{"triggers":"external"}`),
		"triggers are texts":  scaledObject(`{"triggers":["external"]}`),
		"no trigger":          scaledObject(`{"triggers":[]}`),
		"another type":        scaledObject(`{"triggers":[{"type":"cron","metadata":{"scalerName":"keda-kaito-scaler"}}]}`),
		"another scaler":      scaledObject(`{"triggers":[{"type":"external","metadata":{"scalerName":"other"}}]}`),
		"metadata is a list":  scaledObject(`{"triggers":[{"type":"external","metadata":["scalerName"]}]}`),
		"type is an object":   scaledObject(`{"triggers":[{"type":{},"metadata":{"scalerName":"keda-kaito-scaler"}}]}`),
		"name is an object":   scaledObject(`{"triggers":[{"type":"external","metadata":{"scalerName":{}}}]}`),
		"an empty object":     `{}`,
		"everything is wrong": `{"apiVersion":[],"kind":{},"metadata":3,"spec":null}`,
	} {
		patch, warnings, err := d.Default([]byte(object))
		require.NoError(t, err, name)
		require.Nil(t, patch, name)
		require.Nil(t, warnings, name)
	}
}

func TestWhatIsNoObject(t *testing.T) {
	d := defaulter(t)
	for _, text := range []string{``, `null`, `[]`, `"x"`, `{`, `{}{}`, `{} x`, strings.Repeat("[", 20000)} {
		patch, warnings, err := d.Default([]byte(text))
		require.ErrorContains(t, err, "defaulting: the object: ", text)
		require.Nil(t, patch)
		require.Nil(t, warnings)
	}
}

func TestMinReplicaCount(t *testing.T) {
	three := func(c *defaulting.Config) { c.MinReplicas = 3 }
	none := "none"
	for _, row := range []struct{ spec, want string }{
		{`{}`, "3"},
		{`{"minReplicaCount":null}`, "3"},
		{`{"minReplicaCount":0}`, none},
		{`{"minReplicaCount":1}`, none},
		{`{"minReplicaCount":"x"}`, none},
		{`{"idleReplicaCount":0}`, "3"}, // KEDA refuses this without a minReplicaCount
		{`{"maxReplicaCount":10}`, "3"},
		{`{"maxReplicaCount":2}`, "2"}, // KEDA refuses a min above the max
		{`{"maxReplicaCount":0}`, none},
		{`{"maxReplicaCount":-1}`, none},
		{`{"maxReplicaCount":"2"}`, "3"},
	} {
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(row.spec), &spec))
		spec["triggers"] = []any{json.RawMessage(ours)}
		raw, err := json.Marshal(spec)
		require.NoError(t, err)
		require.Equal(t, row.want, added(t, defaulter(t, three), scaledObject(string(raw)), "/spec/minReplicaCount"), row.spec)
	}
}

// TestScaleToZeroInModeReplicas is about a policy that may ask for none, which KEDA allows only with a minReplicaCount
// of 0.
func TestScaleToZeroInModeReplicas(t *testing.T) {
	d := defaulter(t)
	for metadata, want := range map[string]string{
		`"mode":"replicas","minReplicas":"0"`:    "none",
		`"mode":"replicas","minReplicas":"2"`:    "1",
		`"mode":"replicas"`:                      "1",
		`"mode":" replicas ","minReplicas":"0 "`: "none",
		`"minReplicas":"0"`:                      "1",
		`"mode":"replicas","scaler":"minReplicas: 0\nmaxReplicas: 4\nscaler: {static: {replicas: 0}}"`:                   "none",
		`"mode":"replicas","scaler":"minReplicas: 1\nmaxReplicas: 4\nscaler: {static: {replicas: 1}}"`:                   "1",
		`"mode":"replicas","minReplicas":"1","scaler":"minReplicas: 0\nmaxReplicas: 4\nscaler: {static: {replicas: 1}}"`: "1",
	} {
		object := scaledObject(`{"triggers":[{"type":"external","metadata":{"scalerName":"keda-kaito-scaler",` + metadata + `}}]}`)
		require.Equal(t, want, added(t, d, object, "/spec/minReplicaCount"), metadata)
	}
}

func added(t *testing.T, d *defaulting.Defaulter, object, pointer string) string {
	t.Helper()
	patch, _, err := d.Default([]byte(object))
	require.NoError(t, err)
	honest(t, d, []byte(object), patch)
	for _, op := range patch {
		if op.Path == pointer {
			raw, err := json.Marshal(op.Value)
			require.NoError(t, err)
			return string(raw)
		}
	}
	return "none"
}

func TestWarnings(t *testing.T) {
	known := func(c *defaulting.Config) { c.Known = func(key string) bool { return key == "cron" } }
	object := func(spec, trigger, metadata string) string {
		return scaledObject(`{` + spec + `"triggers":[{` + trigger + `"type":"external","metadata":{` + metadata + `"scalerName":"keda-kaito-scaler"}}]}`)
	}
	const threshold = `"threshold":"1",`
	behavior := func(s string) string { return `"advanced":{"horizontalPodAutoscalerConfig":{"behavior":` + s + `}},` }
	const left = `"selectPolicy":"Max","stabilizationWindowSeconds":30,"tolerance":"100m","policies":[{"type":"Pods","value":1,"periodSeconds":300}]`
	at := "spec.triggers[0].metadata."
	hpa := "spec.advanced.horizontalPodAutoscalerConfig.behavior"
	for _, row := range []struct {
		name, object string
		want         []string
	}{
		{"none", object("", "", threshold), nil},
		{"no threshold", object("", "", ""), []string{at + "threshold: is required in mode metric"}},
		{"threshold from the environment", object("", "", `"thresholdFromEnv":"T",`), nil},
		{"misspelt", object("", "", threshold+`"metricPorotocol":"https",`), []string{at + "metricPorotocol: is read as metricProtocol: write that"}},
		{"mode", object("", "", threshold+`"mode":"Metric",`), []string{at + "mode: Metric is neither metric nor replicas"}},
		{"empty mode", object("", "", threshold+`"mode":"",`), []string{at + `mode: "" is neither metric nor replicas`}},
		{"not a string", object("", "", `"threshold":1,`), []string{at + "threshold: is not a string: write it in quotes"}},
		{"mode is not a string", object("", "", `"mode":true,`), []string{at + "mode: is not a string: write it in quotes"}},
		{"unknown key", object("", "", threshold+`"cron":"","cronFromEnv":"","x/y":"",`), []string{at + `"x/y": is not a key that keda-kaito-scaler knows`}},
		{"metricType", object("", "", threshold+`"metricType":"Value",`), []string{at + "metricType: Value contradicts the trigger's metricType, which is AverageValue"}},
		{"metricType that KEDA refuses", object("", `"metricType":"Utilization",`, threshold+`"metricType":"Value",`), nil},
		{"Value in mode replicas", object("", `"metricType":"Value",`, `"mode":"replicas",`), []string{
			"spec.triggers[0].metricType: Value does not suit mode replicas: the HPA would multiply the count by the ready pods",
		}},
		{"min of 0", object(`"minReplicaCount":0,`, "", threshold), []string{
			"spec.minReplicaCount: 0 has no effect in mode metric: the scaler is active as long as its target exists",
		}},
		{"min of 0 in mode replicas", object(`"minReplicaCount":0,`, "", `"mode":"replicas",`), nil},
		{"the seed's bounds", object(`"minReplicas":1,"maxReplicas":2,`, "", threshold), []string{
			"spec.minReplicas: unknown field, which the API server drops: the field is minReplicaCount",
			"spec.maxReplicas: unknown field, which the API server drops: the field is maxReplicaCount",
		}},
		{"the seed's tolerance", object(behavior(`{"scaleUp":{"tolerance":0.1},"scaleDown":{"tolerance":0}}`), "", threshold), []string{
			hpa + ".scaleUp.tolerance: the number 0.1 is refused by the schema: write it in quotes",
		}},
		{"advanced is a list", object(`"advanced":[],`, "", threshold), []string{"spec.advanced: is not an object: no defaults below it"}},
		{"left over", object(behavior(`{"scaleUp":{`+left+`}}`), "", `"mode":"replicas",`), []string{
			hpa + ".scaleUp: is the default of mode metric, and kept in mode replicas: remove it to get the other",
		}},
		{"not left over", object(behavior(`{"scaleUp":{`+left+`}}`), "", threshold), nil},
	} {
		patch, warnings, err := defaulter(t, known).Default([]byte(row.object))
		require.NoError(t, err, row.name)
		require.Equal(t, row.want, warnings, row.name)
		honest(t, defaulter(t), []byte(row.object), patch)
	}
}

// TestWarningsSuitAHeader is about what a user writes and a warning repeats.
func TestWarningsSuitAHeader(t *testing.T) {
	d := defaulter(t, func(c *defaulting.Config) { c.Known = func(string) bool { return false } })
	key, err := json.Marshal("é\n\x00" + strings.Repeat("x", 1000))
	require.NoError(t, err)
	_, warnings, err := d.Default([]byte(scaledObject(`{"triggers":[{"type":"external","metadata":{"scalerName":"keda-kaito-scaler","mode":` + string(key) + `,` + string(key) + `:""}}]}`)))
	require.NoError(t, err)
	require.Len(t, warnings, 2)
	for _, w := range warnings {
		require.Less(t, len(w), 256)
		require.NotContains(t, w, "\n")
		require.Equal(t, strconv.Quote(w), strconv.QuoteToASCII(w), "only ASCII")
	}
}

// TestCronBesideModeMetric: the behavior is the HPA's, so that one pod in five minutes limits cron too.
func TestCronBesideModeMetric(t *testing.T) {
	d := defaulter(t)
	cron := `{"type":"cron","metadata":{}}`
	object := []byte(scaledObject(`{"triggers":[` + ours + `,` + cron + `]}`))
	patch, warnings, err := d.Default(object)
	require.NoError(t, err)
	require.Equal(t, []string{"spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp.policies: limit the cron triggers beside it too: give policies of your own if they ask for more at once"}, warnings)
	_, warnings, err = d.Default(apply(t, object, patch))
	require.NoError(t, err)
	require.Empty(t, warnings, "once they are there they are the user's")
}

// TestNumbersSurvive: nothing is written anew, not even a number that no float holds.
func TestNumbersSurvive(t *testing.T) {
	d := defaulter(t)
	object := []byte(scaledObject(`{"z":1e999,"a":0.10000000000000000000001,"pollingInterval":123456789012345678901234567890,"triggers":[` + ours + `]}`))
	patch, _, err := d.Default(object)
	require.NoError(t, err)
	honest(t, d, object, patch)
	patched := string(apply(t, object, patch))
	for _, number := range []string{"1e999", "0.10000000000000000000001", "123456789012345678901234567890"} {
		require.Contains(t, patched, number)
	}
}

func TestPlaintext(t *testing.T) {
	d := defaulter(t, func(c *defaulting.Config) { c.Plaintext, c.Auth = true, defaulting.AuthRef{} })
	require.Equal(t, "none", added(t, d, scaledObject(`{"triggers":[`+ours+`]}`), "/spec/triggers/0/authenticationRef"))
}

// TestTheCallerOwnsThePatch: what one call returned can be changed without changing what the next one does.
func TestTheCallerOwnsThePatch(t *testing.T) {
	d := defaulter(t)
	object := []byte(scaledObject(`{"triggers":[` + ours + `]}`))
	want, _, err := d.Default(object)
	require.NoError(t, err)
	spoilt, _, err := d.Default(object)
	require.NoError(t, err)
	for _, op := range spoilt {
		if m, ok := op.Value.(map[string]any); ok {
			clear(m)
		}
	}
	got, _, err := d.Default(object)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
