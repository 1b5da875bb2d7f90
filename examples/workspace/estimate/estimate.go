// Package estimate says how many nodes one replica of a model needs.
//
// The rule of [Memory]:
//
//	need  = weights + context tokens * key/value bytes per token
//	node  = GPUs * (memory of a GPU * utilization - overhead of a GPU)
//	nodes = ceil(need / node)
//
// Weights are parameters * bytes per parameter. One sequence of the full context must fit beside them: an inference
// server as vLLM refuses to start otherwise. More requests at a time are what further replicas are for. Utilization is
// vLLM's --gpu-memory-utilization, whose default is 0.9; the overhead stands for activations, CUDA graphs and the
// runtime. It is an estimate of memory and of nothing else: how a model is divided over GPUs costs more than it says.
package estimate

import (
	"context"
	"maps"
	"math"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// A NodeEstimator says how many nodes one replica of a workspace needs: at least 1. An error names the field that it
// cannot make an estimate from; it is a [field.Error] when the workspace is at fault.
type NodeEstimator interface {
	Estimate(ctx context.Context, w *v1alpha1.Workspace) (int32, error)
}

// Limits of what is computed with: everything below stays far from the end of an int64.
const (
	maxWeights = 1 << 50 // a pebibyte
	maxKV      = 1 << 50
)

// Memory is a [NodeEstimator] that compares memory with memory. Its zero value knows no instance type.
type Memory struct {
	// Instances are the instance types that are known, by name.
	Instances map[string]Instance
	// Presets are the models that are known, by name.
	Presets map[string]Preset
	// UtilizationPercent is the part of a GPU's memory that may be used. 0 means 90.
	UtilizationPercent int64
	// OverheadMiB is what each GPU needs beside weights and cache. 0 means 1536; negative means none.
	OverheadMiB int64
}

var _ NodeEstimator = Memory{}

// NewMemory returns an estimator that knows [AzureInstances] and [Presets].
func NewMemory() Memory {
	return Memory{Instances: AzureInstances(), Presets: Presets()}
}

// Estimate implements [NodeEstimator].
func (m Memory) Estimate(_ context.Context, w *v1alpha1.Workspace) (int32, error) {
	node, err := m.node(w)
	if err != nil {
		return 0, err
	}
	need, err := m.need(w)
	if err != nil {
		return 0, err
	}
	nodes := (need-1)/node + 1 // need and node are positive
	if nodes > math.MaxInt32 {
		return 0, field.Invalid(instancePath(), w.Spec.Resource.InstanceType, "a replica needs more nodes than can be counted")
	}
	return int32(nodes), nil
}

// node returns the bytes of one node that weights and cache may take.
func (m Memory) node(w *v1alpha1.Workspace) (int64, error) {
	kind := w.Spec.Resource.InstanceType
	instance, ok := m.Instances[kind]
	if !ok {
		return 0, field.NotSupported(instancePath(), kind, slices.Sorted(maps.Keys(m.Instances)))
	}
	if err := instance.Valid(); err != nil {
		return 0, field.Invalid(instancePath(), kind, err.Error())
	}
	percent := m.UtilizationPercent
	if percent == 0 {
		percent = 90
	}
	overhead := m.OverheadMiB
	if overhead == 0 {
		overhead = 1536
	}
	perGPU := int64(instance.GPUMemoryGiB)<<30/100*percent - max(0, overhead)<<20
	if perGPU <= 0 {
		return 0, field.Invalid(instancePath(), kind, "its GPUs have no memory left for a model")
	}
	return int64(instance.GPUs) * perGPU, nil
}

// need returns the bytes of one replica.
func (m Memory) need(w *v1alpha1.Workspace) (int64, error) {
	inference := w.Spec.Inference
	path := field.NewPath("spec", "inference")
	switch {
	case inference == nil:
		return 0, field.Required(path, "there is nothing to estimate without inference settings")
	case inference.Preset != nil:
		preset, ok := m.Presets[inference.Preset.Name]
		if !ok {
			return 0, field.NotSupported(path.Child("preset", "name"), inference.Preset.Name,
				slices.Sorted(maps.Keys(m.Presets)))
		}
		tokens := preset.Context(inference.Preset)
		if tokens < 1 || tokens > preset.ContextTokens {
			return 0, field.Invalid(path.Child("preset", "contextTokens"), tokens,
				"must be from 1 to what the model was trained for")
		}
		return sum(path.Child("preset"), preset.ParametersMillion*1_000_000*2, preset.KVBytesPerToken, tokens)
	case inference.Model == nil:
		return 0, field.Required(path.Child("model"), "the estimate needs a preset or a description of the model")
	}
	path = path.Child("model")
	weights, err := weights(path, inference.Model)
	if err != nil {
		return 0, err
	}
	return sum(path, weights, inference.Model.KVBytesPerToken, inference.Model.ContextTokens)
}

// weights returns the bytes of the weights of a model.
func weights(path *field.Path, model *v1alpha1.ModelSpec) (int64, error) {
	if model.Weights != nil {
		// Only what is near is compared exactly: 1e9999999999 would be written out for it.
		if near := model.Weights.AsApproximateFloat64(); !(near > 0 && near < 2*maxWeights) || model.Weights.CmpInt64(maxWeights) > 0 {
			return 0, field.Invalid(path.Child("weights"), model.Weights.String(), "must be more than 0 and at most 1Pi")
		}
		return model.Weights.Value(), nil // whole bytes, rounded up
	}
	if model.ParametersMillion == nil {
		return 0, field.Required(path.Child("parametersMillion"), "or weights")
	}
	width, ok := bitsOf(model.Precision)
	if !ok {
		return 0, field.NotSupported(path.Child("precision"), model.Precision, []v1alpha1.Precision{
			v1alpha1.FP32, v1alpha1.BF16, v1alpha1.FP16, v1alpha1.FP8, v1alpha1.Int8, v1alpha1.Int4,
		})
	}
	millions := *model.ParametersMillion
	if millions < 1 || millions > 100_000_000 {
		return 0, field.Invalid(path.Child("parametersMillion"), millions, "must be from 1 to 100000000")
	}
	return millions * 1_000_000 / 8 * width, nil
}

// bitsOf returns the size of a parameter. The empty precision is the schema's default.
func bitsOf(p v1alpha1.Precision) (int64, bool) {
	switch p {
	case v1alpha1.FP32:
		return 32, true
	case "", v1alpha1.BF16, v1alpha1.FP16:
		return 16, true
	case v1alpha1.FP8, v1alpha1.Int8:
		return 8, true
	case v1alpha1.Int4:
		return 4, true
	}
	return 0, false
}

// sum returns weights and cache together.
func sum(path *field.Path, weights, kvBytes int64, tokens int32) (int64, error) {
	if kvBytes < 0 {
		return 0, field.Invalid(path.Child("kvBytesPerToken"), kvBytes, "must not be negative")
	}
	if tokens < 1 {
		return 0, field.Invalid(path.Child("contextTokens"), tokens, "must be positive")
	}
	high, low := bits.Mul64(uint64(kvBytes), uint64(tokens))
	if high > 0 || low > maxKV {
		return 0, field.Invalid(path.Child("kvBytesPerToken"), kvBytes, "the cache of one sequence would be more than 1Pi")
	}
	return weights + int64(low), nil
}

func instancePath() *field.Path { return field.NewPath("spec", "resource", "instanceType") }
