package controller_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/controller"
)

// made returns the Deployment of a workspace as JSON.
func made(t *testing.T, w *v1alpha1.Workspace) string {
	t.Helper()
	d, err := servers().Deployment(w, controller.Plan{PerReplicaNodes: 1, Replicas: 2, TargetNodes: 2})
	require.NoError(t, err)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return string(text)
}

func TestServerOfAPreset(t *testing.T) {
	text := made(t, served(func(w *v1alpha1.Workspace) {
		w.Spec.Inference.Preset.ContextTokens = new(int32(4096))
		w.Spec.Inference.Preset.AccessSecret = "huggingface"
	}))
	for _, part := range []string{
		`"image":"vllm/vllm-openai:test"`,
		`"args":["--model=microsoft/phi-4","--port=8000","--max-model-len=4096","--tensor-parallel-size=2"]`,
		`"limits":{"nvidia.com/gpu":"2"}`,
		`"secretKeyRef":{"name":"huggingface","key":"HF_TOKEN"}`,
		`"containerPort":8000`,
		`"automountServiceAccountToken":false`,
		`"maxSurge":0`,
	} {
		assert.Contains(t, text, part)
	}
}

func TestServerOfATemplate(t *testing.T) {
	text := made(t, served(func(w *v1alpha1.Workspace) {
		w.Spec.Inference.Preset = nil
		w.Spec.Inference.Template = &v1alpha1.TemplateSpec{Image: "mine:1", Args: []string{"--a", "b"}, Port: 9000}
		w.Spec.Resource.LabelSelector = &metav1.LabelSelector{
			MatchLabels: map[string]string{"z": "1", "a": "2"},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "pool", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"cpu"}},
			},
		}
	}))
	for _, part := range []string{
		`"image":"mine:1"`,
		`"args":["--a","b"]`,
		`"containerPort":9000`,
		`"matchExpressions":[{"key":"a","operator":"In","values":["2"]},{"key":"z","operator":"In","values":["1"]},{"key":"pool","operator":"NotIn","values":["cpu"]}]`,
	} {
		assert.Contains(t, text, part)
	}
	assert.NotContains(t, text, "preferredDuringScheduling")
}

func TestUnknownSettingsNameTheField(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.Workspace){
		`spec.resource.instanceType: "x" is not known`: func(w *v1alpha1.Workspace) { w.Spec.Resource.InstanceType = "x" },
		`spec.inference.preset.name: "x" is not known`: func(w *v1alpha1.Workspace) { w.Spec.Inference.Preset.Name = "x" },
		`spec.inference: neither preset nor template`:  func(w *v1alpha1.Workspace) { w.Spec.Inference.Preset = nil },
	} {
		w := newWorld(t, served(change))
		w.settle(t.Context(), t)
		got := w.workspace(t.Context(), t)
		assert.Equal(t, "False UnknownSettings", condition(got, v1alpha1.ConditionInferenceReady))
		assert.Contains(t, message(got, v1alpha1.ConditionInferenceReady), want)
	}
}

// TestGPUsThatDoNotDivideTheHeads: vLLM refuses a tensor-parallel size of 8 for 28 heads.
func TestGPUsThatDoNotDivideTheHeads(t *testing.T) {
	text := made(t, served(func(w *v1alpha1.Workspace) {
		w.Spec.Resource.InstanceType = "Standard_ND96isr_H100_v5"
		w.Spec.Inference.Preset.Name = "qwen2.5-7b-instruct"
	}))
	assert.Contains(t, text, `"--tensor-parallel-size=4","--pipeline-parallel-size=2"]`)
	assert.Contains(t, text, `"limits":{"nvidia.com/gpu":"8"}`)
}
