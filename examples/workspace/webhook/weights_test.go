package webhook_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/workspace/estimate"
	"github.com/inferscale/inferscale/examples/workspace/webhook"
)

// TestRegressionWeightsTakeNoTimeInReviews: see the test of that name of package v1alpha1.
func TestRegressionWeightsTakeNoTimeInReviews(t *testing.T) {
	r := request(t, "", map[string]any{
		"apiVersion": "workspace.inferscale.io/v1alpha1", "kind": "Workspace",
		"metadata": map[string]any{"name": "llama", "namespace": "default"},
		"spec": map[string]any{"resource": map[string]any{"instanceType": "Standard_NC24ads_A100_v4"}, "inference": map[string]any{
			"template": map[string]any{"image": "vllm"},
			"model":    map[string]any{"weights": "1e-9999999", "kvBytesPerToken": 1, "contextTokens": 1},
		}},
	}, nil)
	require.Equal(t, admissionv1.Create, r.Operation)
	require.True(t, json.Valid(r.Object.Raw))
	answer := webhook.NewDefaulter(admission.NewDecoder(newScheme(t)), estimate.NewMemory()).Handle(t.Context(), r)
	require.False(t, answer.Allowed)
	require.Contains(t, answer.Result.Message, "spec.inference.model.weights: must be a quantity of 32 characters")
}
