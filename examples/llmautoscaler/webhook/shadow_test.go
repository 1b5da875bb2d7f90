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

// TestShadowsAreJudged as the scaler is, each field by its path, and those that see the real fleet's times are warned of.
func TestShadowsAreJudged(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	v := &webhook.Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).Build()}
	judge := func(shadows string) ([]string, error) {
		return v.ValidateCreate(t.Context(), object(t, "first", deployment, thresholds+"\n  shadow: "+shadows))
	}
	warnings, err := judge(`[{name: a, scaler: {proportional: {profile: llm}}}, {name: b, scaler: {highest: [{static: {replicas: 2}}]}}]`)
	require.NoError(t, err)
	require.Empty(t, warnings)
	warnings, err = judge(`[{name: a, scaler: {realtime: {metrics: [{source: {engine: VLLM, signal: TTFT}, threshold: {high: 2, low: 1}}]}}}]`)
	require.NoError(t, err)
	require.Equal(t, []string{
		`spec.shadow[0].scaler.realtime.metrics[0].source: "TTFT": is of the real fleet, whatever the shadow asks for: where the two differ its wish says little`,
	}, warnings)
	for shadows, want := range map[string]string{
		`[{name: a, scaler: {realtme: {}}}]`:                                                                                                 `spec.shadow[0].scaler.realtme: Invalid value: "a mapping": is not a field here: is it realtime?`,
		`[{name: a, scaler: {static: {replicas: -1}}}]`:                                                                                      `spec.shadow[0].scaler.static.replicas`,
		`[{name: a, scaler: {cron: {policies: [{name: x, schedule: "0 0 31 2 *", targetReplicas: 1}]}}}]`:                                    `spec.shadow[0].scaler.cron.policies[0].schedule: Invalid value: "0 0 31 2 *": never fires`,
		`[{name: a, scaler: {realtime: {metrics: [{source: {name: "vllm:num_requests_waiting", port: 1}, threshold: {high: 2, low: 1}}]}}}]`: `must be read as spec.scaler.realtime.metrics[0].source reads it`,
		`[{name: a, scaler: {realtime: {metrics: [{source: {engine: TGI, signal: TTFT}, threshold: {high: 2, low: 1}}]}}}]`:                  `spec.shadow[0].scaler.realtime.metrics[0].source.signal`,
	} {
		_, err := judge(shadows)
		require.ErrorContains(t, err, want)
	}
}

// TestAttainmentIsJudged as the scaler is, each field by its path, and what the server does not tell is warned of.
func TestAttainmentIsJudged(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	v := &webhook.Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).Build()}
	judge := func(shadow, attainment string) ([]string, error) {
		return v.ValidateCreate(t.Context(), object(t, "first", deployment, thresholds+shadow+"\n  attainment: "+attainment))
	}
	const watch = "\n  shadow: [{name: a, scaler: {static: {replicas: 2}}}]"
	server := func(more string) string {
		return `{slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {format: inferscale.server/v1, base: 0.014, prefillToken: 6.4e-05, sequence: 0.00004, maxSeqs: 256, tokenBudget: 8192, kvTokens: 350000` + more + "}}"
	}
	warnings, err := judge(watch, server(", kvToken: 3.9e-08"))
	require.NoError(t, err)
	require.Empty(t, warnings)
	warnings, err = judge(watch, server(`, kvToken: {value: 3.9e-08, source: measured, unknown: "it hardly varied"}`))
	require.NoError(t, err)
	require.Equal(t, []string{`spec.attainment.server.kvToken: "unknown": is not known beyond the loads that were seen: it hardly varied`}, warnings)
	warnings, err = judge("", server(", kvToken: 0"))
	require.NoError(t, err)
	require.Equal(t, []string{`spec.attainment: "given": says nothing without shadow: it is their counts that are judged`}, warnings)
	for attainment, want := range map[string]string{
		server(""):                           "spec.attainment.server.kvToken: Invalid value: \"not there\": must be there",
		server(", kvToken: 0.01"):            "spec.attainment.server.kvToken: Invalid value: 0.01: must be at most 0.001",
		server(", kvToken: 0, kvTokens2: 1"): "spec.attainment.server.kvTokens2",
		`{slo: {ttftSeconds: 2, tpotSeconds: 1}, server: {}}`:                               "spec.attainment.server.format",
		`{slo: {ttftSeconds: 0, tpotSeconds: 1}, server: {name: x}}`:                        "spec.attainment.slo.ttftSeconds",
		server(", kvToken: 0")[:len(server(", kvToken: 0"))-1] + ", source: {engine: TGI}}": "spec.attainment.source.engine",
	} {
		_, err := judge(watch, attainment)
		require.ErrorContains(t, err, want)
	}
}
