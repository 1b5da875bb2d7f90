package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

const good = `models:
  - name: meta/llama-70b
    namespace: serving
    algorithm: saturation
    interval: 30s
    dryRun: true
    variants:
      - target: {apiVersion: apps/v1, kind: Deployment, name: llama-h100}
        cost: 98
        capacity: 2
        min: 0
        max: 4
        port: http
      - target: {apiVersion: apps/v1, kind: Deployment, name: llama-a100}
        cost: 60.5
        min: 1
        max: 8
        port: http
    saturation:
      kvCacheThreshold: "0.85"
      downStabilizationSeconds: 60
      step: Deficit
      thresholdsFrom: {configMap: saturation-thresholds}
  - name: qwen
    namespace: other
    algorithm: hetero
    variants:
      - {target: {apiVersion: apps/v1, kind: Deployment, name: qwen}, cost: 1, min: 0, max: 3, port: 8000}
    hetero:
      expansionRate: 1
      exchanges: unlimited
      whenReady: true
      total:
        proportional: {profile: llm, metrics: [{source: {engine: VLLM, signal: InFlight}, target: 20}]}
  - {name: plain, namespace: other, algorithm: saturation, variants: [{target: {apiVersion: apps/v1, kind: Deployment, name: p}, cost: 1, min: 0, max: 3}]}
`

func read(t *testing.T, text string) []policy.Model {
	t.Helper()
	models, err := policy.ReadModels([]byte(text), "variants.yaml")
	require.NoError(t, err)
	require.NotNil(t, models)
	return models
}

func TestParse(t *testing.T) {
	models := read(t, good)
	require.Len(t, models, 3)

	llama := models[0]
	assert.Equal(t, "serving/meta/llama-70b", llama.String())
	assert.Equal(t, policy.AlgorithmSaturation, llama.Algorithm)
	assert.Equal(t, 30*time.Second, llama.Interval)
	assert.True(t, llama.DryRun)
	target := func(name string) policy.ScaleTargetReference {
		return policy.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	}
	two := 2.0
	assert.Equal(t, []policy.Variant{
		{Target: target("llama-h100"), Cost: 98, Capacity: &two, Min: 0, Max: 4, Port: "http"},
		{Target: target("llama-a100"), Cost: 60.5, Min: 1, Max: 8, Port: "http"},
	}, llama.Variants)
	want := saturation.Defaults()
	want.KVCache, want.DownStabilization, want.Step = 0.85, time.Minute, saturation.Deficit
	got := llama.Saturation.Config()
	assert.Len(t, llama.Metrics(), 2)
	assert.Equal(t, want, got.Config)
	assert.Equal(t, []string{saturation.DefaultKV, saturation.DefaultQueue}, []string{got.KV, got.Queue})
	assert.Equal(t, "saturation-thresholds", llama.Saturation.ThresholdsFrom.ConfigMap)
	group, err := llama.Build()
	require.NoError(t, err)
	assert.IsType(t, &saturation.Group{}, group)

	qwen := models[1]
	assert.Equal(t, policy.AlgorithmHetero, qwen.Algorithm)
	assert.Equal(t, policy.DefaultModelInterval, qwen.Interval)
	assert.Equal(t, policy.NumberOrName("8000"), qwen.Variants[0].Port)
	assert.Equal(t, policy.NumberOrName("unlimited"), qwen.Hetero.Exchanges)
	assert.True(t, qwen.Hetero.WhenReady)
	assert.InDelta(t, 1, *qwen.Hetero.ExpansionRate, 0)
	assert.Equal(t, "proportional/llm", qwen.Hetero.Total.Name)
	assert.Equal(t, policy.DefaultModelInterval, qwen.Hetero.Total.Interval())
	assert.Len(t, qwen.Metrics(), 1)
	group, err = qwen.Build()
	require.NoError(t, err)
	assert.IsType(t, &hetero.Group{}, group)

	assert.Nil(t, models[2].Saturation)
	assert.Len(t, models[2].Metrics(), 2)
}

func TestEqual(t *testing.T) {
	a := read(t, good)
	b := read(t, "# a comment\n"+strings.Replace(good, "target: 20", "target: 21", 1))
	assert.Equal(t, a[0], b[0])
	assert.NotEqual(t, a[1], b[1])
	assert.Equal(t, a[2], b[2])
}

func TestParseNoModels(t *testing.T) {
	assert.Empty(t, read(t, "models: []"))
}

func TestParseErrors(t *testing.T) {
	const fine = "    variants: [{target: {apiVersion: apps/v1, kind: Deployment, name: a}, cost: 1, min: 0, max: 3}]\n"
	head := func(algorithm string) string {
		return "models:\n  - name: m\n    namespace: ns\n    algorithm: " + algorithm + "\n"
	}
	variant := func(text string) string { return head("saturation") + "    variants:\n      - " + text + "\n" }
	const to = "target: {apiVersion: apps/v1, kind: Deployment, name: a}, "
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"empty":         {"", "variants.yaml: must have models; models: [] is none"},
		"comments":      {"# nothing\n", "variants.yaml: must have models; models: [] is none"},
		"no YAML":       {"models:\n\t- a", "variants.yaml:2: must be YAML: found character that cannot start any token"},
		"two documents": {"models: []\n---\nmodels: []\n", "variants.yaml:3: must have one document"},
		"not a mapping": {"[]", "variants.yaml:1: file: a list: must be a mapping; {} is an empty one"},
		"unknown at the top": {
			"models: []\nmodel: 1\n", "variants.yaml:2: model: 1: is not a field here: is it models? the fields are models",
		},
		"name":             {strings.Replace(head("saturation")+fine, "name: m", `name: "a\nb"`, 1), `variants.yaml:2: models[0].name: "a\nb": must be of printable characters`},
		"target":           {head("saturation") + strings.Replace(fine, "name: a", `name: "\e"`, 1), "variants.yaml:5: models[0].variants[0].target.name: \"\\x1b\": must be of printable characters"},
		"models twice":     {"models: []\nmodels: []\n", "variants.yaml:2: models: a list: must be given once; it is on line 1"},
		"models no list":   {"models: {}\n", "variants.yaml:1: models: a mapping: must be a list"},
		"model no mapping": {"models: [1]\n", "variants.yaml:1: models[0]: 1: must be a mapping; {} is an empty one"},
		"nothing in a model": {
			"models:\n  - {}\n",
			"variants.yaml:2: models[0].name: must be given\nvariants.yaml:2: models[0].namespace: must be given\n" +
				"variants.yaml:2: models[0].algorithm: must be given\nvariants.yaml:2: models[0].variants: must be given",
		},
		"algorithm": {
			head("best") + fine, `variants.yaml:4: models[0].algorithm: "best": must be saturation or hetero`,
		},
		"name a number": {
			strings.Replace(head("saturation")+fine, "name: m", "name: 7", 1),
			"variants.yaml:2: models[0].name: 7: must be text; numbers and the like need quotes",
		},
		"namespace": {
			strings.Replace(head("saturation")+fine, "ns", "My_NS", 1),
			`variants.yaml:3: models[0].namespace: "My_NS": must be the name of a namespace: at most 63 of a-z, 0-9 and -, which is neither first nor last`,
		},
		"interval": {
			head("saturation") + "    interval: 5\n" + fine,
			`variants.yaml:5: models[0].interval: 5: must be a duration with a unit, as in "30s" or "5m"`,
		},
		"short interval": {
			head("saturation") + "    interval: 5ms\n" + fine, `variants.yaml:5: models[0].interval: 5ms: must be between 1s and 1h`,
		},
		"dry run": {
			head("saturation") + "    dryRun: \"yes\"\n" + fine, `variants.yaml:5: models[0].dryRun: "yes": must be true or false`,
		},
		"no variants": {
			head("saturation") + "    variants: []\n", "variants.yaml:5: models[0].variants: 0: must be at least one",
		},
		"everything wrong in a variant": {
			variant("{target: {kind: Deployment, name: a}, cost: -1, capacity: 0, min: -2, max: x, port: 0, weight: 3}"),
			"variants.yaml:6: models[0].variants[0].weight: 3: is not a field here; the fields are target, cost, capacity, min, max, port\n" +
				"variants.yaml:6: models[0].variants[0].target.apiVersion: must be given\n" +
				`variants.yaml:6: models[0].variants[0].max: "x": must be a whole number of at most 2147483647` + "\n" +
				"variants.yaml:6: models[0].variants[0].cost: -1: must be a number above 0 and at most 1e+290\n" +
				"variants.yaml:6: models[0].variants[0].capacity: 0: must be a number above 0\n" +
				"variants.yaml:6: models[0].variants[0].min: -2: must not be negative\n" +
				"variants.yaml:6: models[0].variants[0].port: 0: must be a number from 1 to 65535 or the name of a container's port",
		},
		"max below min": {
			variant("{" + to + "cost: 1, min: 4, max: 3}"), "variants.yaml:6: models[0].variants[0].max: 3: must be between 4 and 1000000",
		},
		"max zero": {
			variant("{" + to + "cost: 1, min: 0, max: 0}"), "variants.yaml:6: models[0].variants[0].max: 0: must be between 1 and 1000000",
		},
		"cost too high": { // the rule did not say what is wrong with it
			variant("{" + to + "cost: 1e300, min: 1, max: 3}"), "variants.yaml:6: models[0].variants[0].cost: 1e+300: must be a number above 0 and at most 1e+290",
		},
		"cost no number": {
			variant("{" + to + "cost: .nan, min: 0, max: 1}"), "variants.yaml:6: models[0].variants[0].cost: .nan: must be a number",
		},
		"names and targets taken": {
			variant("{" + to + "cost: 1, min: 0, max: 1}\n      - {" + to + "cost: 1, min: 0, max: 1}"),
			`variants.yaml:7: models[0].variants[1].target.name: "a": must be unique: models[0].variants[0] has it` + "\n" +
				`variants.yaml:7: models[0].variants[1].target: "Deployment ns/a": must be unique: models[0].variants[0] has it`,
		},
		"ports that differ": {
			variant("{" + to + "cost: 1, min: 0, max: 1, port: 80}\n      - {target: {apiVersion: apps/v1, kind: Deployment, name: b}, cost: 1, min: 0, max: 1, port: 81}"),
			"variants.yaml:7: models[0].variants[1].port: 81: must be that of the first variant, 80: ports of different numbers can have one name",
		},
		"a target of two models": {
			head("saturation") + fine + "  - name: n\n    namespace: ns\n    algorithm: saturation\n" + fine,
			`variants.yaml:9: models[1].variants[0].target: "Deployment ns/a": must be unique: models[0].variants[0] has it`,
		},
		"a target of two models, in another version of its group": { // both scaled it
			head("saturation") + fine + "  - name: n\n    namespace: ns\n    algorithm: saturation\n" + strings.Replace(fine, "apps/v1", "apps/v1beta2", 1),
			`variants.yaml:9: models[1].variants[0].target: "Deployment ns/a": must be unique: models[0].variants[0] has it`,
		},
		"a model twice": {
			head("saturation") + fine + "  - name: m\n    namespace: ns\n    algorithm: saturation\n" + strings.Replace(fine, "name: a", "name: b", 1),
			`variants.yaml:6: models[1].name: "m": must be unique in its namespace: models[0] has it`,
		},
		"the other algorithm's section": {
			head("saturation") + fine + "    hetero: {total: {static: {replicas: 1}}}\n", "variants.yaml:6: models[0].hetero: a mapping: must be given only with algorithm hetero",
		},
		"saturation's fields": {
			head("saturation") + fine + "    saturation:\n      # a comment\n      kvCacheThreshold: 1.5\n\n      queueLength: 5\n      kvSpareTrigger: much\n",
			"variants.yaml:8: models[0].saturation.kvCacheThreshold: 1.5: must be from 1e-9 to 1\n" +
				"variants.yaml:10: models[0].saturation.queueLength: 5: is not a field here: is it queueLengthThreshold? the fields are profile, kvCacheThreshold, queueLengthThreshold, kvSpareTrigger, queueSpareTrigger, mode, transitionTimeoutSeconds, downStabilizationSeconds, step, kvCacheSource, queueSource, thresholdsFrom\n" +
				`variants.yaml:11: models[0].saturation.kvSpareTrigger: "much": must be a number that is not negative, as 40 or "0.9"`,
		},
		"thresholdsFrom": {
			head("saturation") + fine + "    saturation: {thresholdsFrom: {secret: s}}\n",
			`variants.yaml:6: models[0].saturation.thresholdsFrom.secret: "s": is not a field here; the fields are configMap` + "\n" +
				"variants.yaml:6: models[0].saturation.thresholdsFrom.configMap: must be given",
		},
		"no hetero": {head("hetero") + fine, "variants.yaml:2: models[0].hetero: must be given"},
		"hetero's fields": {
			head("hetero") + fine + "    hetero:\n      expansionRate: -1\n      exchanges: some\n      whenReady: 1\n      total:\n        proportional:\n          metrics:\n            - {source: {engine: VLLM, signal: InFlight}, target: -5}\n",
			"variants.yaml:7: models[0].hetero.expansionRate: -1: must be a number that is not negative\n" +
				`variants.yaml:8: models[0].hetero.exchanges: "some": must be unlimited or a whole number from 0 to 2147483647` + "\n" +
				"variants.yaml:9: models[0].hetero.whenReady: 1: must be true or false\n" +
				`variants.yaml:13: models[0].hetero.total.proportional.metrics[0].target: -5: must be a number that is not negative, as 40 or "0.9"`,
		},
		"no total": {head("hetero") + fine + "    hetero: {}\n", "variants.yaml:6: models[0].hetero.total: must be given"},
		"total of two": {
			head("hetero") + fine + "    hetero:\n      total: {static: {replicas: 1}, cron: {}}\n",
			"variants.yaml:7: models[0].hetero.total.cron.policies: 0: must have at least one",
		},
		"capacity with hetero": {
			head("hetero") + strings.Replace(fine, "cost: 1", "cost: 1, capacity: 2", 1) + "    hetero: {total: {static: {replicas: 1}}}\n",
			"variants.yaml:5: models[0].variants[0].capacity: 2: must be given only with algorithm saturation: hetero places a number of replicas",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.ReadModels([]byte(c.text), "variants.yaml")
			require.Error(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("models: &a [*a]"))
	f.Add([]byte("models: [{name: variants, variants: [{target: {name: a}}, {target: {name: a}}]}]"))
	f.Add([]byte("models: [{variants: [{target: *x}], hetero: {total: {floor: {base: 1}}}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		models, err := policy.ReadModels(data, "variants.yaml")
		if (models == nil) != (err != nil) {
			t.Fatalf("%v and %v", models, err)
		}
	})
}

// TestCapacityOfVariants: a total may find its capacity, as it sees what is counted of all variants; it does so beside the
// decisions where there is a tuner.
func TestCapacityOfVariants(t *testing.T) {
	models := read(t, `
models:
  - name: chat
    namespace: serving
    algorithm: hetero
    interval: 30s
    variants:
      - {target: {apiVersion: apps/v1, kind: Deployment, name: spot}, cost: 1, min: 0, max: 8, port: 8000}
      - {target: {apiVersion: apps/v1, kind: Deployment, name: owned}, cost: 3, min: 1, max: 8, port: 8000}
    hetero:
      total:
        capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, forecast: {}}
`)
	require.Len(t, models[0].Metrics(), len(capacity.Metrics()))
	asked := 0
	shared := capacity.Shared{Go: func(func()) { asked++ }}
	group, err := models[0].BuildWith(func() capacity.Tuner { return shared.Tuner("serving") })
	require.NoError(t, err)
	for i := range 20 {
		obs := scaling.GroupObservation{Targets: []scaling.TargetObservation{
			{Name: "spot", SpecReplicas: 2, ReadyReplicas: 2}, {Name: "owned", SpecReplicas: 1, ReadyReplicas: 1},
		}}
		for _, m := range models[0].Metrics() {
			if n := float64(60 * i); m.Counted {
				obs.Histograms = append(obs.Histograms, scaling.Histogram{Metric: m.Name, Bounds: []float64{1e4}, Counts: []float64{n, 0}, Sum: n * 100})
			} else {
				obs.Readings = append(obs.Readings, scaling.Reading{Metric: m.Name, Lower: 0.1, Upper: 0.1, Values: 3})
			}
		}
		d := group.Decide(time.Unix(1e9+30*int64(i), 0), obs)
		require.Contains(t, []scaling.Code{capacity.Warming, capacity.Untuned}, d.Total.Code(), d.Explain())
	}
	require.Equal(t, 1, asked)
}

// TestBuildRefusesWhatAModelInGoLacks: an algorithm that is misspelt was saturation, a maximum that was left out was none, and a
// placement that was left out a panic.
func TestBuildRefusesWhatAModelInGoLacks(t *testing.T) {
	variants := []policy.Variant{{Target: policy.ScaleTargetReference{Name: "a"}, Cost: 1, Max: 3}}
	high := policy.NewDecimal("high")
	total := policy.Policy{Spec: policy.Spec{Scaler: policy.Composite{Scaler: policy.Scaler{Static: &policy.StaticScaler{Replicas: 2}}}}}
	for want, m := range map[string]policy.Model{
		`algorithm: "Hetero": must be saturation or hetero`: {Algorithm: "Hetero", Variants: variants, Hetero: &policy.Placement{Total: total}},
		`hetero: <nil>: must be given`:                      {Algorithm: policy.AlgorithmHetero, Variants: variants},
		`hetero.exchanges: "some": must be unlimited or a whole number from 0 to 2147483647`: {
			Algorithm: policy.AlgorithmHetero, Variants: variants, Hetero: &policy.Placement{Total: total, Exchanges: "some"},
		},
		`hetero: a mapping: must be given only with algorithm hetero`: {
			Algorithm: policy.AlgorithmSaturation, Variants: variants, Hetero: &policy.Placement{Total: total},
		},
		`saturation.kvCacheThreshold: "high": must be a number that is not negative, as 40 or "0.9"`: {
			Algorithm: policy.AlgorithmSaturation, Variants: variants,
			Saturation: &policy.VariantSaturation{SaturationScaler: policy.SaturationScaler{KVCacheThreshold: &high}},
		},
		`variants[0].max: 0: must be between 1 and 1000000`: {
			Algorithm: policy.AlgorithmSaturation, Variants: []policy.Variant{{Target: policy.ScaleTargetReference{Name: "a"}, Cost: 1}},
		},
	} {
		group, err := m.Build()
		require.ErrorContains(t, err, want)
		assert.Nil(t, group)
		var field *scaling.FieldError
		require.ErrorAs(t, err, &field)
		m.Metrics()
	}
	m := policy.Model{Algorithm: policy.AlgorithmHetero, Variants: variants, Hetero: &policy.Placement{Total: total}}
	group, err := m.Build()
	require.NoError(t, err)
	assert.IsType(t, &hetero.Group{}, group)
}
