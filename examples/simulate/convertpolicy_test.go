package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/policy"
)

// TestConvertPolicies converts the sample that the old format had, in which every field was, and compares it with what
// is in force by the new one.
func TestConvertPolicies(t *testing.T) {
	code, out, errs := start(t, "-convert", "testdata/old-policies.yaml")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "# up if any is above high", "comments stay")
	d, err := policy.Read([]byte(out), "converted")
	require.NoError(t, err, out)
	require.Empty(t, d.Warnings)
	want, err := policy.Read([]byte(newPolicies), "new")
	require.NoError(t, err)
	require.Len(t, d.Policies, len(want.Policies))
	for i, p := range d.Policies {
		got, err := p.Effective()
		require.NoError(t, err)
		expected, err := want.Policies[i].Effective()
		require.NoError(t, err)
		require.Equal(t, string(expected), string(got))
	}
	file := filepath.Join(t.TempDir(), "new.yaml")
	code, _, errs = start(t, "-convert", "testdata/old-policies.yaml", "-o", file)
	require.Equal(t, exitOK, code, errs)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, out, string(written))
}

const newPolicies = `policies:
- name: queue
  minReplicas: 1
  maxReplicas: 16
  intervalSeconds: 15
  scaler:
    realtime:
      profile: responsive
      metrics:
      - {source: {engine: VLLM, signal: InFlight}, threshold: {high: 40, low: 20}}
      - {source: {name: "vllm:kv_cache_usage_perc"}, threshold: {high: "0.9", low: "0.5"}, role: DownVeto}
      scaleUpRule: {scaleStep: 1, cooldownSeconds: 30, stabilizationWindowSeconds: 30}
      scaleDownRule: {scaleStep: 1, cooldownSeconds: 600, stabilizationWindowSeconds: 300}
      cooldownScope: PerDirection
      holdWhilePending: true
- name: in-flight
  proportional:
    metrics: [{source: {engine: VLLM, signal: InFlight}, target: 35}]
    scaleUp: {tolerance: "0.1", maxRate: 1000, maxStep: 8}
    scaleDown: {tolerance: "0.1", maxRate: 2, maxStep: 0}
    stableWindowSeconds: 120
    panic: {windowSeconds: 30, threshold: 2}
    resolutionSeconds: 1
    stabilization: {upSeconds: 0, downSeconds: 300}
    rateLimits:
      up: {limits: [{replicas: 4, periodSeconds: 15}, {percent: 100, periodSeconds: 15}]}
      down: {limits: [{percent: 50, periodSeconds: 60}]}
    activationScale: 1
    startupCredit: true
- name: spare
  saturation: {}
- name: office-hours
  cron:
    policies:
    - {name: day, schedule: "0 8 * * 1-5", targetReplicas: 8, timeZone: Europe/Berlin}
    - {name: night, schedule: "0 20 * * *", targetReplicas: 1, timeZone: Europe/Berlin}
- name: lunch
  cron:
    mode: InWindow
    windows: [{name: noon, start: "0 11 * * *", end: "0 14 * * *", targetReplicas: 6, timeZone: UTC}]
    outside: 2
- {name: eight, static: {replicas: 8}}
- name: warm-mornings
  proportional: {}
  cron:
    policies:
    - {name: morning, schedule: "30 7 * * 1-5", targetReplicas: 4}
    - {name: evening, schedule: "0 18 * * *", targetReplicas: 1}
- name: either
  highest:
  - {name: by-queue, realtime: {}}
  - {name: by-load, proportional: {profile: hpa}}
  stabilization: {upSeconds: 0, downSeconds: 600}
  rateLimits:
    up: {limits: [{replicas: 8, periodSeconds: 60}]}
    down: {limits: [{percent: 25, periodSeconds: 300}]}
`

// TestConvertWhatCannotBe says what has no place in the new document, and what was wrong already.
func TestConvertWhatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"policies: [{realtime: {up: {window: 1500ms}}}]":                                                  `line 1: "1500ms": must be whole seconds`,
		"policies: [{highest: {members: [{realtime: {period: 5s}}, {name: b, realtime: {period: 9s}}]}}]": "there is one interval for all of a policy",
		"policies: [{realtime: {metrics: [{name: a, high: 1, low: 2}]}}]":                                 "policies[0].realtime.metrics[0].threshold.high: 1: must be a number above low 2",
		"policies: [": "did not find expected",
		"policies: [{name: a, static: {replicas: 1}}]\n---\npolicies: []\n":                    "must have one document, and nothing behind it",
		"policies: [{name: a, static: {replicas: 1}}]\n---\n: : [\n":                           "must have one document, and nothing behind it",
		"policies: [{bounds: {min: 1, max: 2, maximum: 3}, static: {replicas: 1}}]":            "line 1: bounds.maximum: is not a field here",
		"policies: [{highest: {members: [{name: a, static: {replicas: 1}}], stabilized: {}}}]": "line 1: highest.stabilized: is not a field here",
		"policies: [{floor: {base: {static: {replicas: 1}}, cron: {}, rateLimited: {}}}]":      "line 1: floor.rateLimited: is not a field here",
		"realtime: {up: {step: 1}}": "realtime.up: a mapping: is not a field here",
	} {
		file := filepath.Join(t.TempDir(), "old.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		code, out, errs := start(t, "-convert", file)
		require.Equal(t, exitUsage, code, text)
		require.Empty(t, out)
		require.Contains(t, errs, want)
	}
	for text, want := range map[string]string{
		"policies: [{name: a, realtime: {profile: seed, period: 5s}}]":                                                                         "intervalSeconds: 5",
		"policies: [{floor: {base: {static: {replicas: 1}, stabilized: {}}, cron: {policies: [{name: a, schedule: '@daily', replicas: 1}]}}}]": "highest:",
		"policies: [{saturation: {profile: literal, kv: a, queue: b}}]":                                                                        "kvCacheSource: {name: a}",
	} {
		out, err := converted([]byte(text))
		require.NoError(t, err)
		require.Contains(t, strings.ReplaceAll(string(out), "\n", " "), want)
		_, err = policy.Read(out, "converted")
		require.NoError(t, err, "%s", out)
	}
}

// TestRegressionBoundsOfAnAliasAreNotLost: a policy whose bounds were an alias of another one's, or no mapping, had none afterwards, and
// a metric the name of the anchor.
func TestRegressionBoundsOfAnAliasAreNotLost(t *testing.T) {
	for text, want := range map[string]string{
		"policies:\n- {name: a, bounds: &b {min: 1, max: 4}, static: {replicas: 2}}\n- {name: b, bounds: *b, static: {replicas: 2}}\n": "line 3: *b: must be written out: aliases are not taken",
		"policies:\n- {name: &n a, realtime: {metrics: [{name: *n, high: 2, low: 1}]}}\n":                                              "line 2: *n: must be written out: aliases are not taken",
		"policies: [{name: a, bounds: 3, static: {replicas: 2}}]":                                                                      "line 1: bounds: must be a mapping",
		"policies: [{name: a, bounds: [], static: {replicas: 2}}]":                                                                     "line 1: bounds: must be a mapping",
	} {
		out, err := converted([]byte(text))
		require.EqualError(t, err, want, "%s", out)
	}
	out, err := converted([]byte("policies: [{name: a, bounds: , static: {replicas: 2}}]"))
	require.NoError(t, err)
	require.NotContains(t, string(out), "Replicas")
}

// TestManifest is an LLMAutoScaler as it stands.
func TestManifest(t *testing.T) {
	long.Skip(t)
	code, out, errs := start(t, tiny("-config", "../llmautoscaler/deploy/samples/proportional.yaml", "-policy", "realtime/seed", "-report", "")...)
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `(?m)^chat-proportional +\d`, out)
	require.Contains(t, errs, "simulate: warning: -policy realtime/seed: is called realtime/kaito now")
}
