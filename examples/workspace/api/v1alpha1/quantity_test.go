package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// TestRegressionWeightsTakeNoTimeToRead: the webhook that fills in defaults reads what the definition has not judged yet.
// Weights of 1e-99999999 took it minutes and gigabytes, so that nobody could write a Workspace.
func TestRegressionWeightsTakeNoTimeToRead(t *testing.T) {
	read := func(weights string) (w v1alpha1.Workspace) {
		text := fmt.Sprintf(`{"metadata": {"name": "a"}, "spec": {"inference": {"model": {"contextTokens": 7, %s}}}}`, weights)
		require.NoError(t, json.Unmarshal([]byte(text), &w))
		return w
	}
	for _, weights := range []string{
		`"weights": "1e-9999999"`, `"weights": 1e-9999999`, `"weights": "1E-009999999"`, `"weights": "1e\u002d9999999"`,
		`"weights": "1e-9999999", "weights": "1Gi"`,
	} {
		w := read(weights)
		require.Contains(t, w.Unreadable, "weights: must be a quantity of 32 characters and an exponent of two digits at most", weights)
		require.Nil(t, w.Spec.Inference)
		require.Equal(t, "a", w.Name)
	}
	for weights, want := range map[string]string{
		`"15Gi"`: "15Gi", `1e9`: "1e9", `16000000000`: "16G", `"1e+12"`: "1e+12", `"0.5Ti"`: "512Gi",
	} {
		w := read(`"weights": ` + weights)
		require.Empty(t, w.Unreadable, weights)
		require.Equal(t, want, w.Spec.Inference.Model.Weights.String())
		require.EqualValues(t, 7, w.Spec.Inference.Model.ContextTokens)
	}
	for _, weights := range []string{`"weights": null`, `"precision": "bf16"`, `"Weights": "1e-9999999"`} {
		w := read(weights)
		require.Empty(t, w.Unreadable, weights)
		require.Nil(t, w.Spec.Inference.Model.Weights)
	}
}
