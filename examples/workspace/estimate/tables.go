package estimate

import (
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/internal/typed"
)

// Instance is an instance type: a kind of node.
type Instance struct {
	// GPUs is the number of GPUs of a node.
	GPUs int32 `json:"gpus"`
	// GPUMemoryGiB is the memory of each of them.
	GPUMemoryGiB int32 `json:"gpuMemoryGiB"`
}

// Valid says what is wrong with an instance type, or nil.
func (i Instance) Valid() error {
	switch {
	case i.GPUs < 1 || i.GPUs > 1024:
		return fmt.Errorf("gpus: %d is not from 1 to 1024", i.GPUs)
	case i.GPUMemoryGiB < 1 || i.GPUMemoryGiB > 65536:
		return fmt.Errorf("gpuMemoryGiB: %d is not from 1 to 65536", i.GPUMemoryGiB)
	}
	return nil
}

// ReadInstances reads instance types from YAML: a map of names to gpus and gpuMemoryGiB.
func ReadInstances(r io.Reader) (map[string]Instance, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var all map[string]Instance
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, typed.Error(err)
	}
	if len(all) == 0 {
		return nil, errors.New("no instance types")
	}
	for name, i := range all {
		if err := i.Valid(); err != nil {
			return nil, fmt.Errorf("%s.%w", name, err)
		}
	}
	return all, nil
}

// AzureInstances returns instance types of Azure with GPUs: GPUs of a node, and memory of each. The numbers are those of
// the table in Kaito (pkg/sku), which has the memory of all GPUs of a node together; those of the V100 are from another
// public list, as Kaito's does not have them.
func AzureInstances() map[string]Instance {
	return map[string]Instance{
		// NVIDIA T4.
		"Standard_NC4as_T4_v3":  {GPUs: 1, GPUMemoryGiB: 16},
		"Standard_NC8as_T4_v3":  {GPUs: 1, GPUMemoryGiB: 16},
		"Standard_NC16as_T4_v3": {GPUs: 1, GPUMemoryGiB: 16},
		"Standard_NC64as_T4_v3": {GPUs: 4, GPUMemoryGiB: 16},
		// NVIDIA V100.
		"Standard_NC6s_v3":  {GPUs: 1, GPUMemoryGiB: 16},
		"Standard_NC12s_v3": {GPUs: 2, GPUMemoryGiB: 16},
		"Standard_NC24s_v3": {GPUs: 4, GPUMemoryGiB: 16},
		// NVIDIA A10.
		"Standard_NV36ads_A10_v5": {GPUs: 1, GPUMemoryGiB: 24},
		"Standard_NV72ads_A10_v5": {GPUs: 2, GPUMemoryGiB: 24},
		// NVIDIA A100.
		"Standard_NC24ads_A100_v4":  {GPUs: 1, GPUMemoryGiB: 80},
		"Standard_NC48ads_A100_v4":  {GPUs: 2, GPUMemoryGiB: 80},
		"Standard_NC96ads_A100_v4":  {GPUs: 4, GPUMemoryGiB: 80},
		"Standard_ND96asr_v4":       {GPUs: 8, GPUMemoryGiB: 40},
		"Standard_ND96amsr_A100_v4": {GPUs: 8, GPUMemoryGiB: 80},
		// NVIDIA H100: NVL, then SXM.
		"Standard_NC40ads_H100_v5":  {GPUs: 1, GPUMemoryGiB: 94},
		"Standard_NC80adis_H100_v5": {GPUs: 2, GPUMemoryGiB: 94},
		"Standard_ND96isr_H100_v5":  {GPUs: 8, GPUMemoryGiB: 80},
		// NVIDIA H200.
		"Standard_ND96isr_H200_v5": {GPUs: 8, GPUMemoryGiB: 141},
	}
}

// Preset is a model that can be served by name; weights are bf16. Layers, heads and contexts agree with public
// descriptions of the models; compare them with the model's config.json before money depends on them.
type Preset struct {
	// Model is its name on the Hugging Face hub.
	Model string
	// ParametersMillion is the number of parameters, in millions.
	ParametersMillion int64
	// KVBytesPerToken is 2 * layers * key/value heads * head dimension * 2 bytes.
	KVBytesPerToken int64
	// ContextTokens is the longest sequence that it was trained for.
	ContextTokens int32
	// Heads is the number of attention heads, and KVHeads that of key/value heads. Any number of GPUs divides 0.
	Heads, KVHeads int32
}

// Parallel says how the GPUs of a node serve the model together: tensor GPUs share each layer, and pipeline groups of them
// share the layers, so that tensor * pipeline = gpus. Tensor is the largest divisor of gpus that divides the heads, and that
// divides the key/value heads or is a multiple of them: vLLM refuses others.
func (p Preset) Parallel(gpus int32) (tensor, pipeline int32) {
	for tensor = gpus; tensor > 1; tensor-- {
		if gpus%tensor == 0 && p.Heads%tensor == 0 && (p.KVHeads%tensor == 0 || tensor%p.KVHeads == 0) {
			break
		}
	}
	return tensor, gpus / tensor
}

// Context returns the longest sequence to serve.
func (p Preset) Context(spec *v1alpha1.PresetSpec) int32 {
	if spec.ContextTokens != nil {
		return *spec.ContextTokens
	}
	return p.ContextTokens
}

// Presets returns the models that are known.
func Presets() map[string]Preset {
	return map[string]Preset{
		"llama-3.1-8b-instruct": {
			Model: "meta-llama/Llama-3.1-8B-Instruct", ParametersMillion: 8_030,
			KVBytesPerToken: 2 * 32 * 8 * 128 * 2, ContextTokens: 131_072, Heads: 32, KVHeads: 8,
		},
		"llama-3.3-70b-instruct": {
			Model: "meta-llama/Llama-3.3-70B-Instruct", ParametersMillion: 70_554,
			KVBytesPerToken: 2 * 80 * 8 * 128 * 2, ContextTokens: 131_072, Heads: 64, KVHeads: 8,
		},
		"mistral-7b-instruct-v0.3": {
			Model: "mistralai/Mistral-7B-Instruct-v0.3", ParametersMillion: 7_248,
			KVBytesPerToken: 2 * 32 * 8 * 128 * 2, ContextTokens: 32_768, Heads: 32, KVHeads: 8,
		},
		"phi-4": {
			Model: "microsoft/phi-4", ParametersMillion: 14_660,
			KVBytesPerToken: 2 * 40 * 10 * 128 * 2, ContextTokens: 16_384, Heads: 40, KVHeads: 10,
		},
		"qwen2.5-7b-instruct": {
			Model: "Qwen/Qwen2.5-7B-Instruct", ParametersMillion: 7_616,
			KVBytesPerToken: 2 * 28 * 4 * 128 * 2, ContextTokens: 32_768, Heads: 28, KVHeads: 4,
		},
	}
}
