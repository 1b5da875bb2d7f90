package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
	"github.com/inferscale/inferscale/examples/llmautoscaler/webhook"
)

// TestRegressionPausedIsReadAsKEDADoes: a ScaledObject with autoscaling.keda.sh/paused "False" or "0", which KEDA scales,
// counted as paused, so that an LLMAutoScaler of the same target was let in.
func TestRegressionPausedIsReadAsKEDADoes(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	for annotation, paused := range map[string]bool{
		`paused: "true"`: true, `paused: "1"`: true, `paused: "yes"`: true, `paused: ""`: true,
		`paused: "false"`: false, `paused: "False"`: false, `paused: "F"`: false, `paused: "0"`: false,
		`paused-replicas: "0"`: true, `paused-replicas: "false"`: true,
	} {
		text := "metadata: {name: theirs, annotations: {autoscaling.keda.sh/" + annotation + "}}\n" +
			"spec: {scaleTargetRef: {name: chat}}"
		reader := fake.NewClientBuilder().WithScheme(scheme)
		reader.WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index)
		v := &webhook.Validator{Others: others{objects: map[string][]string{"ScaledObjectList": {text}}}, Reader: reader.Build()}
		_, err := v.ValidateCreate(t.Context(), object(t, "mine", deployment, thresholds))
		require.Equal(t, paused, err == nil, "%s: %v", annotation, err)
	}
}

// TestRegressionAnHPAIsNeverPaused: a HorizontalPodAutoscaler with KEDA's annotation, which says nothing to it, counted as paused.
func TestRegressionAnHPAIsNeverPaused(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	for _, annotation := range []string{`paused: "true"`, `paused-replicas: "0"`} {
		text := "metadata: {name: theirs, annotations: {autoscaling.keda.sh/" + annotation + "}}\n" +
			"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}}"
		reader := fake.NewClientBuilder().WithScheme(scheme)
		reader.WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index)
		v := &webhook.Validator{Others: others{objects: map[string][]string{"HorizontalPodAutoscalerList": {text}}}, Reader: reader.Build()}
		_, err := v.ValidateCreate(t.Context(), object(t, "mine", deployment, thresholds))
		require.ErrorContains(t, err, "is scaled by HorizontalPodAutoscaler theirs already", annotation)
	}
}
