package estimate_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/estimate"
)

// workspace returns a workspace with a model of its own.
func workspace(instance string, model v1alpha1.ModelSpec) *v1alpha1.Workspace {
	w := &v1alpha1.Workspace{}
	w.Spec.Resource.InstanceType = instance
	w.Spec.Inference = &v1alpha1.InferenceSpec{Model: &model, Template: &v1alpha1.TemplateSpec{Image: "image"}}
	return w
}

// preset returns a workspace with a preset; no tokens means the default.
func preset(instance, name string, tokens int32) *v1alpha1.Workspace {
	w := &v1alpha1.Workspace{}
	w.Spec.Resource.InstanceType = instance
	w.Spec.Inference = &v1alpha1.InferenceSpec{Preset: &v1alpha1.PresetSpec{Name: name}}
	if tokens > 0 {
		w.Spec.Inference.Preset.ContextTokens = &tokens
	}
	return w
}

func TestPresetsOnInstanceTypes(t *testing.T) {
	for _, c := range []struct {
		instance, preset string
		tokens           int32
		want             int32
	}{
		// 16.06 GB of weights; a GPU of 80 GiB leaves 75.7 GB, a T4 13.9 GB.
		{"Standard_NC24ads_A100_v4", "llama-3.1-8b-instruct", 8192, 1},
		{"Standard_NC24ads_A100_v4", "llama-3.1-8b-instruct", 0, 1}, // 17.2 GB for 131072 tokens
		{"Standard_NC4as_T4_v3", "llama-3.1-8b-instruct", 8192, 2},
		{"Standard_NC64as_T4_v3", "llama-3.1-8b-instruct", 8192, 1},
		// 141.1 GB of weights.
		{"Standard_NC24ads_A100_v4", "llama-3.3-70b-instruct", 8192, 2},
		{"Standard_NC48ads_A100_v4", "llama-3.3-70b-instruct", 8192, 1}, // 143.8 of 151.4 GB
		{"Standard_NC48ads_A100_v4", "llama-3.3-70b-instruct", 0, 2},    // 43 GB for 131072 tokens
		{"Standard_ND96isr_H100_v5", "llama-3.3-70b-instruct", 0, 1},
		{"Standard_NC4as_T4_v3", "llama-3.3-70b-instruct", 8192, 11},
	} {
		got, err := estimate.NewMemory().Estimate(t.Context(), preset(c.instance, c.preset, c.tokens))
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%s on %s, %d tokens", c.preset, c.instance, c.tokens)
	}
}

func TestEveryPresetFitsOnTheLargestNode(t *testing.T) {
	m := estimate.NewMemory()
	for name := range m.Presets {
		got, err := m.Estimate(t.Context(), preset("Standard_ND96isr_H200_v5", name, 0))
		require.NoError(t, err)
		assert.Equal(t, int32(1), got, name)
	}
	for name, i := range m.Instances {
		assert.NoError(t, i.Valid(), name)
	}
}

func TestTheEdgeOfANode(t *testing.T) {
	m := estimate.Memory{
		Instances:   map[string]estimate.Instance{"one": {GPUs: 1, GPUMemoryGiB: 100}},
		OverheadMiB: -1, UtilizationPercent: 100,
	}
	node := int64(100) << 30 / 100 * 100
	for _, c := range []struct {
		weights int64
		want    int32
	}{{1, 1}, {node - 1, 1}, {node, 1}, {node + 1, 2}, {2 * node, 2}, {2*node + 1, 3}} {
		got, err := m.Estimate(t.Context(), workspace("one", v1alpha1.ModelSpec{
			Weights: resource.NewQuantity(c.weights, resource.BinarySI), ContextTokens: 1,
		}))
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%d bytes", c.weights)
	}
}

func TestErrorsNameTheField(t *testing.T) {
	good := v1alpha1.ModelSpec{ParametersMillion: new(int64(7000)), ContextTokens: 1}
	with := func(change func(*v1alpha1.ModelSpec)) *v1alpha1.Workspace {
		m := good
		change(&m)
		return workspace("Standard_NC4as_T4_v3", m)
	}
	for _, c := range []struct {
		w     *v1alpha1.Workspace
		field string
		value string
	}{
		{workspace("Standard_D2", good), "spec.resource.instanceType", `"Standard_D2"`},
		{preset("Standard_NC4as_T4_v3", "gpt-99", 0), "spec.inference.preset.name", `"gpt-99"`},
		{preset("Standard_NC4as_T4_v3", "phi-4", 16385), "spec.inference.preset.contextTokens", "16385"},
		{&v1alpha1.Workspace{Spec: v1alpha1.WorkspaceSpec{
			Resource: v1alpha1.ResourceSpec{InstanceType: "Standard_NC4as_T4_v3"},
		}}, "spec.inference", ""},
		{with(func(m *v1alpha1.ModelSpec) { m.ParametersMillion = nil }), "spec.inference.model.parametersMillion", ""},
		{with(func(m *v1alpha1.ModelSpec) { m.ParametersMillion = new(int64(0)) }), "spec.inference.model.parametersMillion", "0"},
		{with(func(m *v1alpha1.ModelSpec) { m.Precision = "fp3" }), "spec.inference.model.precision", `"fp3"`},
		{with(func(m *v1alpha1.ModelSpec) { m.KVBytesPerToken = -1 }), "spec.inference.model.kvBytesPerToken", "-1"},
		{with(func(m *v1alpha1.ModelSpec) { m.KVBytesPerToken = 1 << 62; m.ContextTokens = 1 << 30 }), "spec.inference.model.kvBytesPerToken", ""},
		{with(func(m *v1alpha1.ModelSpec) { m.ContextTokens = 0 }), "spec.inference.model.contextTokens", "0"},
		{with(func(m *v1alpha1.ModelSpec) { m.Weights = new(resource.MustParse("0")) }), "spec.inference.model.weights", `"0"`},
		{with(func(m *v1alpha1.ModelSpec) { m.Weights = new(resource.MustParse("2Pi")) }), "spec.inference.model.weights", `"2Pi"`},
		{with(func(m *v1alpha1.ModelSpec) { m.Weights = new(resource.MustParse("1e9999999999")) }), "spec.inference.model.weights", `"10e1410065406"`},
		{with(func(m *v1alpha1.ModelSpec) { m.Weights = new(resource.MustParse("0e9999999999")) }), "spec.inference.model.weights", `"0`},
	} {
		_, err := estimate.NewMemory().Estimate(t.Context(), c.w)
		var invalid *field.Error
		require.ErrorAs(t, err, &invalid, c.field)
		assert.Equal(t, c.field, invalid.Field)
		assert.Contains(t, err.Error(), c.value)
	}
	none := workspace("Standard_NC4as_T4_v3", good)
	none.Spec.Inference.Model = nil
	_, err := estimate.NewMemory().Estimate(t.Context(), none)
	require.ErrorContains(t, err, "spec.inference.model: Required value")
}

func TestInstancesWithoutRoom(t *testing.T) {
	m := estimate.Memory{Instances: map[string]estimate.Instance{"tiny": {GPUs: 1, GPUMemoryGiB: 1}, "bad": {}}}
	model := v1alpha1.ModelSpec{ParametersMillion: new(int64(1)), ContextTokens: 1}
	_, err := m.Estimate(t.Context(), workspace("tiny", model))
	require.ErrorContains(t, err, `spec.resource.instanceType: Invalid value: "tiny": its GPUs have no memory left for a model`)
	_, err = m.Estimate(t.Context(), workspace("bad", model))
	require.ErrorContains(t, err, "gpus: 0 is not from 1 to 1024")
}

// The estimate is the smallest number of nodes that hold weights and cache, computed here with rationals.
func TestEstimateIsTheSmallestThatFits(t *testing.T) {
	precisions := map[v1alpha1.Precision]int64{
		v1alpha1.FP32: 32, v1alpha1.BF16: 16, v1alpha1.FP16: 16, v1alpha1.FP8: 8, v1alpha1.Int8: 8, v1alpha1.Int4: 4, "": 16,
	}
	rapid.Check(t, func(t *rapid.T) {
		instance := estimate.Instance{
			GPUs:         rapid.Int32Range(1, 16).Draw(t, "gpus"),
			GPUMemoryGiB: rapid.Int32Range(4, 200).Draw(t, "memory"),
		}
		model := v1alpha1.ModelSpec{
			ParametersMillion: new(rapid.Int64Range(1, 2_000_000).Draw(t, "parameters")),
			Precision: rapid.SampledFrom([]v1alpha1.Precision{
				"", v1alpha1.FP32, v1alpha1.BF16, v1alpha1.FP16, v1alpha1.FP8, v1alpha1.Int8, v1alpha1.Int4,
			}).Draw(t, "precision"),
			KVBytesPerToken: rapid.Int64Range(0, 1<<21).Draw(t, "kv"),
			ContextTokens:   rapid.Int32Range(1, 1<<20).Draw(t, "tokens"),
		}
		m := estimate.Memory{Instances: map[string]estimate.Instance{"kind": instance}}
		got, err := m.Estimate(t.Context(), workspace("kind", model))
		require.NoError(t, err)

		need := new(big.Rat).SetInt64(*model.ParametersMillion * 1_000_000)
		need.Mul(need, big.NewRat(precisions[model.Precision], 8))
		need.Add(need, new(big.Rat).SetInt64(model.KVBytesPerToken*int64(model.ContextTokens)))
		node := big.NewRat(int64(instance.GPUMemoryGiB)<<30/100*90-1536<<20, 1)
		node.Mul(node, big.NewRat(int64(instance.GPUs), 1))
		holds := func(nodes int32) bool {
			return new(big.Rat).Mul(node, big.NewRat(int64(nodes), 1)).Cmp(need) >= 0
		}
		require.GreaterOrEqual(t, got, int32(1))
		require.True(t, holds(got), "%d nodes do not hold it", got)
		require.True(t, got == 1 || !holds(got-1), "%d nodes would do", got-1)
	})
}

func TestReadInstances(t *testing.T) {
	all, err := estimate.ReadInstances(strings.NewReader("p5.48xlarge: {gpus: 8, gpuMemoryGiB: 80}\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]estimate.Instance{"p5.48xlarge": {GPUs: 8, GPUMemoryGiB: 80}}, all)

	for text, want := range map[string]string{
		"":                                      "no instance types",
		"a: {gpus: 1}":                          "a.gpuMemoryGiB: 0 is not",
		"a: {gpus: 0, gpuMemoryGiB: 1}":         "a.gpus: 0 is not",
		"a: {gpus: 1, gpuMemoryGiB: 1, cpu: 2}": "cpu",
		"- a":                                   "must be an object, and not: array",
		"a: {gpus: x}":                          "gpus: string: must be a whole number of at most",
	} {
		_, err := estimate.ReadInstances(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

// TestPresetsDivideTheirGPUs: vLLM starts on all GPUs of every instance type.
func TestPresetsDivideTheirGPUs(t *testing.T) {
	for name, p := range estimate.Presets() {
		for kind, i := range estimate.AzureInstances() {
			tensor, pipeline := p.Parallel(i.GPUs)
			require.Equal(t, i.GPUs, tensor*pipeline, "%s on %s", name, kind)
			require.Zero(t, p.Heads%tensor, "%s on %s: %d GPUs share %d heads", name, kind, tensor, p.Heads)
			require.Zero(t, max(p.KVHeads, tensor)%min(p.KVHeads, tensor), "%s on %s: %d GPUs share %d key/value heads", name, kind, tensor, p.KVHeads)
		}
	}
	for _, c := range []struct {
		preset                 string
		gpus, tensor, pipeline int32
	}{
		{"phi-4", 1, 1, 1},
		{"phi-4", 2, 2, 1},
		{"phi-4", 4, 2, 2},
		{"phi-4", 8, 2, 4},
		{"qwen2.5-7b-instruct", 4, 4, 1},
		{"qwen2.5-7b-instruct", 8, 4, 2},
		{"llama-3.3-70b-instruct", 8, 8, 1},
		{"llama-3.3-70b-instruct", 16, 16, 1},
		{"llama-3.3-70b-instruct", 3, 1, 3},
	} {
		tensor, pipeline := estimate.Presets()[c.preset].Parallel(c.gpus)
		require.Equal(t, []int32{c.tensor, c.pipeline}, []int32{tensor, pipeline}, "%s on %d GPUs", c.preset, c.gpus)
	}
}
