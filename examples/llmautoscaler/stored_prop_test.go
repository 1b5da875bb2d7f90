package main

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	jsonutil "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	workspace "github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// full is an object with every kind of number and time in its spec and its status.
const full = `
apiVersion: autoscaling.inferscale.io/v1alpha1
kind: LLMAutoScaler
metadata: {name: a, namespace: b}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  minReplicas: 1
  maxReplicas: 8
  intervalSeconds: 15
  grouping: Pod
  scaler:
    realtime:
      metrics: [{source: {name: a, port: 5000}, threshold: {high: 10, low: "0.5"}}]
      scaleUpRule: {scaleStep: 1, cooldownSeconds: 600, stabilizationWindowSeconds: 30}
      scaleDownRule: {scaleStep: 2, cooldownSeconds: 600, stabilizationWindowSeconds: 30}
    proportional:
      metrics: [{source: {engine: VLLM, signal: TTFT, quantile: "0.99", port: "8000"}, target: 35}]
      stableWindowSeconds: 60
      resolutionSeconds: 15
      panic: {windowSeconds: 15, threshold: 2}
      activationScale: 1
      scaleUp: {tolerance: "0.1", maxRate: 2, maxStep: 4}
      scaleDown: {tolerance: "0.1", maxRate: 2, maxStep: 4}
      stabilization: {upSeconds: 0, downSeconds: 300}
      rateLimits: {up: {limits: [{replicas: 4, periodSeconds: 60}]}, down: {limits: [{percent: 50, periodSeconds: 60}]}}
    saturation: {kvCacheThreshold: "0.8", queueLengthThreshold: 5, kvSpareTrigger: "0.1", queueSpareTrigger: 3, transitionTimeoutSeconds: 600, downStabilizationSeconds: 300}
    static: {replicas: 1}
    cron:
      mode: InWindow
      outside: 1
      windows: [{name: a, start: "0 8 * * *", end: "0 20 * * *", targetReplicas: 3}]
status:
  observedGeneration: 4
  lastScaleTime: "2026-01-15T08:00:00Z"
  currentReplicas: 1
  desiredReplicas: 2
  lastDecision: {verdict: Up, time: "2026-01-15T08:00:00Z", steps: [{code: A, from: 1, to: 2}]}
  metrics: [{name: a, pods: 1, notReady: 1, failed: 1}]
  conditions: [{type: Ready, status: "True", reason: A, message: a, observedGeneration: 3, lastTransitionTime: "2026-01-15T08:00:00Z"}]
`

const fullWorkspace = `
apiVersion: workspace.inferscale.io/v1alpha1
kind: Workspace
metadata: {name: a, namespace: b}
spec:
  resource: {instanceType: a, count: 3}
  inference:
    replicas: 2
    model: {weights: 15Gi, kvBytesPerToken: 57344, contextTokens: 32768}
    template: {image: a, port: 8000}
status:
  observedGeneration: 4
  inference: {replicas: 2, perReplicaNodeCount: 1, targetNodeCount: 2}
  conditions: [{type: Ready, status: "True", reason: A, message: a, observedGeneration: 3, lastTransitionTime: "2026-01-15T08:00:00Z"}]
`

// TestPropAdmittedDecodes changes numbers, texts and times of objects to what is near or far beyond their limits: what
// the definitions admit, all of those that are here, the types can hold. One object that they could not hold would end
// every list and every watch that it is part of. Whatever was stored before, package stored reads.
func TestPropAdmittedDecodes(t *testing.T) {
	definition, err := os.ReadFile(filepath.FromSlash("../workspace/deploy/crd/workspace.inferscale.io_workspaces.yaml"))
	require.NoError(t, err)
	values := []any{
		int64(-1), int64(0), int64(1), int64(2147483647), int64(2147483648), int64(3000000000), int64(-2147483649),
		int64(1) << 53, int64(1)<<53 - 1, int64(1)<<62 + 1, 9.2e18, 9223372036854775808.0, 1e19, 1e20, 1e21, 1e300, 0.5, 2147483646.5, 2000000000.5, 1.000000001, 8.000000001, 99999.99999999999, math.Copysign(0, -1),
		"", "a", "1e1.5", "1e5", ".5E+.5", "5.", "-1Gi", "1e9999999999", "99999999999999999999", "0x10", "1_000", "2026-01-15t08:00:00z",
		"2026-01-15T08:00:00+25:00", "2026-01-15T23:59:60Z", "0000-01-01T00:00:00Z", "2026-01-15T08:00:00,5Z", "2026-02-30T00:00:00Z", "24h", "Infinity", "NaN",
		true,
		nil,
		map[string]any{},
		[]any{},
	}
	usual := []any{int64(0), int64(1), int64(2), int64(16), int64(60), int64(100000), int64(2147483647), "2026-02-01T00:00:00.5+01:00", "0.5", "5", "a"}
	for _, tt := range []struct {
		name, object string
		admission    *admission
		decode       func(rt *rapid.T, data []byte) error
	}{
		{"LLMAutoScaler", full, newAdmission(t), func(rt *rapid.T, data []byte) error {
			var kept stored.LLMAutoScaler
			require.NoError(rt, json.Unmarshal(data, &kept))
			require.Equal(rt, "a", kept.Name)
			las := &v1alpha1.LLMAutoScaler{}
			err := jsonutil.Unmarshal(data, las)
			require.Equal(rt, err == nil, kept.SpecErr == nil && kept.StatusErr == nil)
			if err == nil {
				_, _ = build.Spec(las.Spec.Document()) // an error is the condition InvalidSpec
			}
			return err
		}},
		{"Workspace", fullWorkspace, admissionOf(t, string(definition)), func(_ *rapid.T, data []byte) error {
			w := &workspace.Workspace{}
			if err := jsonutil.Unmarshal(data, w); err != nil || w.Unreadable == "" {
				return err
			}
			return errors.New(w.Unreadable)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(tt.object), &whole))
			whole = runtime.DeepCopyJSON(integers(whole).(map[string]any))
			_, errs := tt.admission.judge(t, runtime.DeepCopyJSON(whole))
			require.NoError(t, errs.ToAggregate())
			admitted, undecoded, drawn := 0, 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				object := runtime.DeepCopyJSON(whole)
				for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(rt, "changes") {
					part := rapid.SampledFrom([]string{"spec", "status"}).Draw(rt, "part")
					all := leaves(object[part], func(any) {})
					rapid.SampledFrom(all).Draw(rt, "leaf")(rapid.SampledFrom(rapid.SampledFrom([][]any{values, usual}).Draw(rt, "values")).Draw(rt, "value"))
				}
				drawn++
				_, errs := tt.admission.judge(t, object)
				data, err := json.Marshal(object)
				require.NoError(rt, err)
				err = tt.decode(rt, data)
				if len(errs) == 0 {
					admitted++
					require.NoError(rt, err, "%s", data)
				} else if err != nil {
					undecoded++
				}
			})
			t.Logf("%d of %d were admitted, %d others could not be decoded", admitted, drawn, undecoded)
			require.Greater(t, admitted*20, drawn)
			require.Positive(t, undecoded)
		})
	}
}

// Regression: a rule compared quantities of any exponent, and the API server would have written out 1e9999999999 for it.
func TestQuantitiesAreBounded(t *testing.T) {
	definition, err := os.ReadFile(filepath.FromSlash("../workspace/deploy/crd/workspace.inferscale.io_workspaces.yaml"))
	require.NoError(t, err)
	a := admissionOf(t, string(definition))
	for weights, admitted := range map[any]bool{
		"15Gi": true, "1.5e10": true, "1E+10": true, "2E": true, "1e-2": true, int64(5): true, "99999999999999999999999999999999": true,
		"0": false, "-1Gi": false, "0e9": false, "1e1.5": false, int64(0): false,
		"1e9999999999": false, "1e-9999999999": false, "1E+100": false, "1e0001": false, "999999999999999999999999999999999": false,
	} {
		whole := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(fullWorkspace), &whole))
		whole = runtime.DeepCopyJSON(integers(whole).(map[string]any))
		whole["spec"].(map[string]any)["inference"].(map[string]any)["model"].(map[string]any)["weights"] = weights
		_, errs := a.judge(t, whole)
		require.Equal(t, admitted, len(errs) == 0, "%v: %v", weights, errs)
	}
}

// leaves returns what sets each number, text and flag below a value.
func leaves(v any, set func(any)) (all []func(any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			all = append(all, leaves(v[key], func(to any) { v[key] = to })...)
		}
	case []any:
		for i := range v {
			all = append(all, leaves(v[i], func(to any) { v[i] = to })...)
		}
	default:
		all = append(all, set)
	}
	return all
}

// TestEveryNumberIsLimited: each number of each definition has a minimum and a maximum that its Go type can hold. One has
// not, as its type is Kubernetes' own: the rule on conditions limits it.
func TestEveryNumberIsLimited(t *testing.T) {
	for _, file := range []string{
		"../../adapters/k8s/api/crd/autoscaling.inferscale.io_llmautoscalers.yaml", "../workspace/deploy/crd/workspace.inferscale.io_workspaces.yaml",
	} {
		data, err := os.ReadFile(filepath.FromSlash(file))
		require.NoError(t, err)
		definition := map[string]any{}
		require.NoError(t, yaml.Unmarshal(data, &definition))
		numbers := 0
		var walk func(path string, v any)
		walk = func(path string, v any) {
			switch v := v.(type) {
			case map[string]any:
				if v["x-kubernetes-int-or-string"] == true {
					return // a pattern and rules limit it
				}
				if v["type"] == "integer" || v["type"] == "number" {
					numbers++
					if path != "status.conditions.items.observedGeneration" {
						require.Contains(t, v, "minimum", "%s: %s", file, path)
						require.Contains(t, v, "maximum", "%s: %s", file, path)
					}
				}
				for _, key := range sortedKeys(v) {
					next := path
					if key != "properties" {
						next = filepath.ToSlash(path)
						if next != "" {
							next += "."
						}
						next += key
					}
					walk(next, v[key])
				}
			case []any:
				for _, one := range v {
					walk(path, one)
				}
			}
		}
		versions := definition["spec"].(map[string]any)["versions"].([]any)
		for _, version := range versions {
			walk("", version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"])
		}
		require.Greater(t, numbers, 5, file)
	}
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
