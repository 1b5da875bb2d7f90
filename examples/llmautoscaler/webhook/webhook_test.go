package webhook_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
	"github.com/inferscale/inferscale/examples/llmautoscaler/webhook"
)

func object(t *testing.T, name, target, rest string) *stored.LLMAutoScaler {
	t.Helper()
	las := &stored.LLMAutoScaler{}
	text := "metadata: {namespace: models, name: " + name + "}\nspec:\n  scaleTargetRef: " + target + "\n  maxReplicas: 8\n  " + rest
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), las))
	return las
}

const (
	deployment = "{apiVersion: apps/v1, kind: Deployment, name: chat}"
	thresholds = "scaler: {realtime: {metrics: [{threshold: {high: 10, low: 2}}]}}"
)

func TestWebhook(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	v := &webhook.Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).
		WithObjects(object(t, "first", deployment, thresholds)).Build()}
	never := `scaler: {cron: {policies: [{name: a, schedule: "0 0 31 2 *", targetReplicas: 1}, {name: b, schedule: "@daily", timeZone: Mars/Base, targetReplicas: 1}]}}`
	for _, tt := range []struct{ name, target, rest, want string }{
		{"second", "{apiVersion: apps/v1, kind: Deployment, name: other}", thresholds, ""},
		{"first", deployment, thresholds, ""},
		{
			"second", deployment, thresholds,
			`LLMAutoScaler.autoscaling.inferscale.io "second" is invalid: spec.scaleTargetRef: Invalid value: "Deployment chat": is scaled by LLMAutoScaler first already`,
		},
		{
			"second", "{apiVersion: apps/v1beta1, kind: Deployment, name: chat}", thresholds,
			`LLMAutoScaler.autoscaling.inferscale.io "second" is invalid: spec.scaleTargetRef: Invalid value: "Deployment chat": is scaled by LLMAutoScaler first already`,
		},
		{
			"first", deployment, never,
			`LLMAutoScaler.autoscaling.inferscale.io "first" is invalid: [spec.scaler.cron.policies[0].schedule: Invalid value: "0 0 31 2 *": never fires: no date has these fields, ` +
				`spec.scaler.cron.policies[1].timeZone: Invalid value: "Mars/Base": must be in the time zone database: unknown time zone Mars/Base]`,
		},
	} {
		warnings, err := v.ValidateCreate(t.Context(), object(t, tt.name, tt.target, tt.rest))
		require.Empty(t, warnings)
		if tt.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, tt.want)
		require.True(t, apierrors.IsInvalid(err))
	}

	// An update is judged as a whole, and the target only if it changes.
	old, bad := object(t, "second", deployment, thresholds), object(t, "second", deployment, never)
	old.Generation, bad.Generation = 1, 2
	_, err := v.ValidateUpdate(t.Context(), old, bad)
	require.ErrorContains(t, err, "never fires")
	require.NotContains(t, err.Error(), "already")
	moved := object(t, "second", "{apiVersion: apps/v1, kind: Deployment, name: other}", thresholds)
	_, err = v.ValidateUpdate(t.Context(), moved, old)
	require.ErrorContains(t, err, "already")
	bad.Generation = 1
	_, err = v.ValidateUpdate(t.Context(), bad, bad)
	require.NoError(t, err, "labels may change of what a newer version would refuse")
	_, err = v.ValidateDelete(t.Context(), bad)
	require.NoError(t, err)
}

func TestWarnings(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	v := &webhook.Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).Build()}
	warnings, err := v.ValidateCreate(t.Context(), object(t, "a", deployment, `intervalSeconds: 90
  scrape: {tls: {insecureSkipVerify: true}}
  scaler:
    realtime: {metrics: [{threshold: {high: 10, low: 0}}, {source: {name: b}, threshold: {high: 10, low: 0}, role: UpOnly}]}
    cron: {mode: Match, policies: [{name: a, schedule: "@daily", targetReplicas: 1}]}
`))
	require.NoError(t, err)
	require.Len(t, warnings, 3)
	require.Contains(t, warnings[0], "spec.scaler.realtime.metrics[0].threshold.low: 0: nothing is below 0")
	require.Contains(t, warnings[1], "spec.scaler.cron.mode: Match")
	require.Contains(t, warnings[2], "insecureSkipVerify")
}

// TestWarningOfZero: metrics alone do not come back from 0 replicas.
func TestWarningOfZero(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	v := &webhook.Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).Build()}
	const load = "proportional: {metrics: [{target: 10}]}"
	policy := func(replicas string) string {
		return "cron: {policies: [{name: a, schedule: '@daily', targetReplicas: " + replicas + "}]}"
	}
	for _, tt := range []struct {
		rest   string
		warned bool
	}{
		{"minReplicas: 0\n  " + thresholds, true},
		{"minReplicas: 0\n  scaler: {" + load + "}", true},
		{"minReplicas: 0\n  scaler: {" + load + ", " + policy("0") + "}", true},
		{"minReplicas: 0\n  scaler: {" + load + ", " + policy("1") + "}", false},
		{"minReplicas: 0\n  scaler: {" + load + ", cron: {mode: InWindow, windows: [{name: a, start: '0 8 * * *', end: '0 9 * * *', targetReplicas: 2}]}}", false},
		{"minReplicas: 0\n  scaler: {" + policy("1") + "}", false},
		{"minReplicas: 1\n  " + thresholds, false},
		{thresholds, false},
	} {
		warnings, err := v.ValidateCreate(t.Context(), object(t, "a", deployment, tt.rest))
		require.NoError(t, err)
		if !tt.warned {
			require.Empty(t, warnings, tt.rest)
			continue
		}
		require.Len(t, warnings, 1, tt.rest)
		require.Contains(t, warnings[0], "spec.minReplicas: 0: metrics may take the last replica away and cannot bring one back")
	}
}

// TestOtherNamespaces are not looked at, and cannot be: the cache of a controller that works in some has no others.
func TestOtherNamespaces(t *testing.T) {
	v := &webhook.Validator{Reader: noReader{}, Namespaces: []string{"a", "b"}}
	las := object(t, "chat", deployment, thresholds)
	_, err := v.ValidateCreate(t.Context(), las)
	require.NoError(t, err)
	_, err = v.ValidateUpdate(t.Context(), las, object(t, "chat", "{apiVersion: apps/v1, kind: Deployment, name: other}", thresholds))
	require.NoError(t, err)
	las.Namespace = "b"
	_, err = v.ValidateCreate(t.Context(), las)
	require.ErrorContains(t, err, "unable to list")
}

type noReader struct{ client.Reader }

func (noReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("unable to list: models because of unknown namespace for the cache")
}
