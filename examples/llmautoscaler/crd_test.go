package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s/api/crd"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/sim"
)

const head = "apiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\nmetadata: {name: chat}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}\n"

// TestDefaults are what the schema fills in.
func TestDefaults(t *testing.T) {
	a := newAdmission(t)
	las, err := a.admit(t, head+`  maxReplicas: 8
  scaler:
    realtime: {metrics: [{threshold: {high: 10, low: 2}}]}
    proportional: {metrics: [{source: {engine: VLLM, signal: InFlight}, target: 35}]}
    cron: {policies: [{name: a, schedule: "0 8 * * *", targetReplicas: 5}]}
`)
	require.NoError(t, err)
	require.Equal(t, int32(1), *las.Spec.MinReplicas)
	require.Equal(t, int32(15), *las.Spec.IntervalSeconds)
	require.Equal(t, "Pod", las.Spec.Grouping)
	require.False(t, las.Spec.DryRun)
	r := las.Spec.Scaler.Realtime
	require.Equal(t, policy.ProfileKaito, r.Profile)
	require.Equal(t, policy.ThresholdMetric{Source: policy.MetricSource{Protocol: policy.HTTP}, Threshold: policy.MetricThreshold{High: policy.NewDecimal("10"), Low: policy.NewDecimal("2")}, Role: "Both"}, r.Metrics[0])
	require.Equal(t, policy.ProfileLLM, las.Spec.Scaler.Proportional.Profile)
	require.Equal(t, "PerPod", las.Spec.Scaler.Proportional.Metrics[0].Measure)
	require.Equal(t, "HoldLast", las.Spec.Scaler.Cron.Mode)
	require.Equal(t, policy.TimeZone("Etc/UTC"), las.Spec.Scaler.Cron.Policies[0].TimeZone)
	_, err = build.Spec(las.Spec.Document())
	require.NoError(t, err)
}

// TestShadowsAreKept as they were written, be it what a scaler of the spec cannot have: the webhook judges them.
func TestShadowsAreKept(t *testing.T) {
	las, err := newAdmission(t).admit(t, head+"  maxReplicas: 8\n  scaler: {static: {replicas: 2}}\n  shadow: [{name: a, scaler: {highest: [{static: {replicas: 3}}]}}]\n")
	require.NoError(t, err)
	plan, err := build.Shadows(las.Spec.Document(), las.Spec.Shadows(), nil)
	require.NoError(t, err)
	require.Equal(t, "a", plan.All[0].Name)
	require.NoError(t, plan.All[0].Err)
	require.Empty(t, plan.Scrape.Metrics)
}

// TestServerOfAttainmentIsKept as calibrate writes it: numbers with fractions, and what has no place in a schema.
func TestServerOfAttainmentIsKept(t *testing.T) {
	server := sim.Qwen32B()
	given := func(x float64) calibrate.Estimate {
		return calibrate.Estimate{Value: x, Lower: x / 2, Upper: math.Inf(1), Source: calibrate.Measured}
	}
	d := calibrate.Document{
		Name: "chat's", Base: given(server.Base), PrefillToken: given(server.PrefillToken), Sequence: given(server.Sequence), KVToken: given(server.KVToken),
		MaxSeqs: given(256), TokenBudget: given(8192), KVTokens: given(350000),
		Startup: &calibrate.Startup{Starts: 2, P50: 61500 * time.Millisecond, P90: 90 * time.Second, P99: 90 * time.Second, Max: 90 * time.Second, P50Lower: time.Second, P50Upper: 2 * time.Minute, Source: calibrate.Measured},
	}
	d.KVToken.Unknown = "it hardly varied"
	las, err := newAdmission(t).admit(t, head+"  maxReplicas: 8\n  scaler: {static: {replicas: 2}}\n  shadow: [{name: a, scaler: {static: {replicas: 3}}}]\n"+
		"  attainment:\n    slo: {ttftSeconds: 2, tpotSeconds: \"0.1\"}\n    server:\n      "+strings.ReplaceAll(strings.TrimSpace(string(d.Text())), "\n", "\n      ")+"\n")
	require.NoError(t, err)
	kept, err := calibrate.Read(las.Spec.Attainment.Server, "kept")
	require.NoError(t, err)
	require.Equal(t, d, kept)
	plan, err := build.Shadows(las.Spec.Document(), las.Spec.Shadows(), nil)
	require.NoError(t, err)
	server.Name = "chat's"
	require.Equal(t, server, plan.Capacity.Server)
	require.Equal(t, 61500*time.Millisecond, plan.ColdStart)
	require.Len(t, plan.Scrape.Metrics, 8)
}

// TestSeedExample is the proposal's way of writing: whole numbers, a port in quotes, a zero that is kept.
func TestSeedExample(t *testing.T) {
	las, err := newAdmission(t).admit(t, head+`  minReplicas: 0
  maxReplicas: 8
  scaler:
    realtime:
      metrics: [{source: {name: "vllm:num_requests_waiting", protocol: http, port: "5000", path: /metrics}, threshold: {high: "0.9", low: "0.25"}}]
      scaleUpRule: {scaleStep: 1, cooldownSeconds: 0, stabilizationWindowSeconds: 30}
`)
	require.NoError(t, err)
	require.Equal(t, 5000, las.Spec.Scaler.Realtime.Metrics[0].Source.Port.Int())
	require.Equal(t, int32(0), *las.Spec.MinReplicas)
	require.Equal(t, int32(0), *las.Spec.Scaler.Realtime.ScaleUpRule.CooldownSeconds)
	plan, err := build.Spec(las.Spec.Document())
	require.NoError(t, err)
	require.InDelta(t, 0.9, plan.Scrape.Metrics[0].Fill, 0)
}

// TestAdmission has an object for every rule of the schema, and what an API server says of it.
func TestAdmission(t *testing.T) {
	a := newAdmission(t)
	const ok = "  maxReplicas: 8\n  scaler: {realtime: {metrics: [{threshold: {high: 7, low: 1}}]}}\n"
	scaler := func(text string) string { return "  maxReplicas: 8\n  scaler: {" + text + "}\n" }
	realtime := func(text string) string {
		return scaler("realtime: {metrics: [{threshold: {high: 7, low: 1}}], " + text + "}")
	}
	source := func(text string) string {
		return scaler("realtime: {metrics: [{threshold: {high: 7, low: 1}, source: {" + text + "}}]}")
	}
	load := func(text string) string { return scaler("proportional: {metrics: [{target: 7}], " + text + "}") }
	policy := func(text string) string { return scaler("cron: {policies: [{" + text + "}]}") }
	for _, tt := range []struct{ text, want string }{
		{ok + "  attainment: {}\n", "spec.attainment.slo: Required value"},
		{ok + "  attainment: {slo: {ttftSeconds: 2, tpotSeconds: 1}}\n", "spec.attainment.server: Required value"},
		{ok + "  attainment: {slo: {ttftSeconds: 0, tpotSeconds: 1}, server: {}}\n", "spec.attainment.slo.ttftSeconds: Invalid value: 0: must be above 0 and at most 3600"},
		{ok + "  attainment: {slo: {ttftSeconds: 2, tpotSeconds: 3601}, server: {}}\n", "spec.attainment.slo.tpotSeconds: Invalid value: 3601: must be above 0 and at most 3600"},
		{ok + "  attainment: {slo: {ttftSeconds: 2, tpotSeconds: 1}, server: 3}\n", "spec.attainment.server: Invalid value"},
		{ok + "  attainment: {slo: {ttftSeconds: 2, tpotSeconds: 1}, server: {}, source: {engine: TGI}}\n", "spec.attainment.source.engine: Unsupported value"},
		{ok + "  attainment: {slo: {ttftSeconds: 2, tpotSeconds: 1}, server: {" + strings.Join(strings.Split("abcdefghijklmnopq", ""), ": 1, ") + ": 1}}\n", "spec.attainment.server: Too many: 17: must have at most 16 items"},
		{ok + "  shadow: [{name: A, scaler: {}}]\n", "spec.shadow[0].name: Invalid value"},
		{ok + "  shadow: [{name: a}]\n", "spec.shadow[0].scaler: Required value"},
		{ok + "  shadow: [{name: a, scaler: 3}]\n", "spec.shadow[0].scaler: Invalid value"},
		{ok + "  shadow: [{name: a, scaler: {}}, {name: a, scaler: {}}]\n", "spec.shadow[1]: Duplicate value"},
		{ok + "  shadow: [" + strings.TrimSuffix(strings.Repeat("{name: a, scaler: {}}, ", 9), ", ") + "]\n", "spec.shadow: Too many: 9: must have at most 8 items"},
		{"  maxReplicas: 8\n", "spec.scaler: Required value"},
		{"  maxReplicas: 8\n  scaler: {}\n", "spec.scaler: Invalid value: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{"  scaler: {}\n", "spec.maxReplicas: Required value"},
		{"  maxReplicas: 0\n  scaler: {}\n", "spec.maxReplicas: Invalid value: 0: spec.maxReplicas in body should be greater than or equal to 1"},
		{ok + "  minReplicas: -1\n", "spec.minReplicas: Invalid value: -1: spec.minReplicas in body should be greater than or equal to 0"},
		{ok + "  minReplicas: 9\n", "spec.minReplicas: Invalid value: 9: must not be above maxReplicas 8"},
		{ok + "  intervalSeconds: 0\n", "spec.intervalSeconds: Invalid value: 0"},
		{ok + "  grouping: Both\n", `spec.grouping: Unsupported value: "Both"`},
		{ok + "  scrape: {tls: {caSecretRef: {name: a}, insecureSkipVerify: true}}\n", "spec.scrape.tls.caSecretRef: Invalid value: must not be given with insecureSkipVerify"},
		{ok + "  scrape: {portName: '80'}\n", "spec.scrape.portName: Invalid value"},
		{scaler("realtime: {}"), "spec.scaler.realtime.metrics: Required value"},
		{scaler("realtime: {metrics: []}"), "spec.scaler.realtime.metrics: Invalid value: 0: spec.scaler.realtime.metrics in body should have at least 1 items"},
		{realtime("profile: kpa"), `spec.scaler.realtime.profile: Unsupported value: "kpa"`},
		{realtime("cooldownScope: None"), "spec.scaler.realtime.cooldownScope: Unsupported value"},
		{realtime("scaleUpRule: {scaleStep: 0}"), "spec.scaler.realtime.scaleUpRule.scaleStep: Invalid value: 0"},
		{realtime("scaleDownRule: {cooldownSeconds: -1}"), "spec.scaler.realtime.scaleDownRule.cooldownSeconds: Invalid value: -1"},
		{realtime("scaleDownRule: {stabilizationWindowSeconds: -1}"), "spec.scaler.realtime.scaleDownRule.stabilizationWindowSeconds: Invalid value: -1"},
		{scaler("realtime: {metrics: [{threshold: {high: 1, low: 1}}]}"), "spec.scaler.realtime.metrics[0].threshold.high: Invalid value: 1: must be above low 1"},
		{scaler(`realtime: {metrics: [{threshold: {high: "0.5", low: 2}}]}`), "spec.scaler.realtime.metrics[0].threshold.high: Invalid value: 0.5: must be above low 2"},
		{scaler("realtime: {metrics: [{threshold: {high: 1, low: -1}}]}"), "spec.scaler.realtime.metrics[0].threshold.low: Invalid value: -1: must be at least 0"},
		{scaler("realtime: {metrics: [{threshold: {high: 0.5, low: 0}}]}"), "spec.scaler.realtime.metrics[0].threshold.high: Invalid value"},
		{scaler("realtime: {metrics: [{threshold: {high: 900m, low: 0}}]}"), "spec.scaler.realtime.metrics[0].threshold.high: Invalid value"},
		{scaler("realtime: {metrics: [{threshold: {high: 7, low: 1}}, {threshold: {high: 8, low: 1}}]}"), "spec.scaler.realtime: Invalid value: metrics: the name, or the signal, of each source must be unique"},
		{source("engine: VLLM"), "spec.scaler.realtime.metrics[0].source: Invalid value: engine and signal must be given together"},
		{source("engine: vLLM, signal: Waiting"), "spec.scaler.realtime.metrics[0].source.engine: Unsupported value"},
		{source("engine: TGI, signal: TTFT"), "spec.scaler.realtime.metrics[0].source: Invalid value: signal: TTFT: TGI has none"},
		{source("engine: VLLM, signal: Waiting, name: a"), "spec.scaler.realtime.metrics[0].source.name: Invalid value: must not be given beside engine and signal"},
		{source("engine: VLLM, signal: Waiting, aggregation: Max"), "spec.scaler.realtime.metrics[0].source.aggregation: Invalid value: must not be given beside"},
		{source("name: a, quantile: '0.9'"), "quantile: must be given only with the signals TTFT and TPOT"},
		{source("engine: VLLM, signal: TTFT, quantile: 1"), "quantile: must be above 0 and below 1"},
		{source("name: 1a"), "spec.scaler.realtime.metrics[0].source.name: Invalid value"},
		{source("protocol: ftp"), "spec.scaler.realtime.metrics[0].source.protocol: Unsupported value"},
		{source("port: 0"), "spec.scaler.realtime.metrics[0].source.port: Invalid value: 0: must be between 1 and 65535"},
		{source("port: '65536'"), "spec.scaler.realtime.metrics[0].source.port: Invalid value"},
		{source("path: metrics"), "spec.scaler.realtime.metrics[0].source.path: Invalid value"},
		{source("path: //host/x"), "spec.scaler.realtime.metrics[0].source.path: Invalid value"},
		{source("labels: {'': a}"), "labels: must not have an empty name"},
		{
			"  scrape: {portName: web}\n" + scaler("realtime: {metrics: [{threshold: {high: 7, low: 1}}, {source: {name: b, protocol: https}, threshold: {high: 7, low: 1}}]}"),
			"scrape.portName: the sources of scaler.realtime.metrics must have one protocol",
		},
		{
			scaler("realtime: {metrics: [{source: {name: a}, threshold: {high: 7, low: 1}}]}, proportional: {metrics: [{source: {name: a, port: 1}, target: 1}]}"),
			"spec.scaler: Invalid value: sources of realtime and proportional with one name, or signal, must be the same",
		},
		{scaler("proportional: {metrics: [{target: 0}]}"), "spec.scaler.proportional.metrics[0].target: Invalid value: 0: must be above 0"},
		{scaler("proportional: {metrics: [{target: 1, measure: Sum}]}"), "spec.scaler.proportional.metrics[0].measure: Unsupported value"},
		{load("scaleUp: {maxRate: 1}"), "maxRate: must be above 1, or 0 for none"},
		{load("forecast: {timeZone: Local}"), "spec.scaler.proportional.forecast.timeZone: Invalid value: must not be Local, which differs between machines"},
		{load("forecast: {timeZone: a b}"), "spec.scaler.proportional.forecast.timeZone: Invalid value: \"a b\""},
		{scaler("proportional: {metrics: [{target: 7}, {source: {name: other}, target: 7}], forecast: {}}"), "spec.scaler.proportional.forecast: Invalid value: must stand beside one metric: it is the load on it that is foreseen"},
		{load("scaleUp: {maxStep: -1}"), "spec.scaler.proportional.scaleUp.maxStep: Invalid value: -1"},
		{load("stableWindowSeconds: 3601"), "spec.scaler.proportional.stableWindowSeconds: Invalid value: 3601"},
		{"  intervalSeconds: 1\n" + load("stableWindowSeconds: 601"), "scaler.proportional.stableWindowSeconds: 601: must be at most 600 times intervalSeconds 1"},
		{"  intervalSeconds: 1\n" + load("stabilization: {downSeconds: 601}"), "scaler.proportional.stabilization.downSeconds: 601: must be at most 600 times intervalSeconds 1"},
		{load("panic: {windowSeconds: 31, threshold: 2}"), "panic.windowSeconds: must be at most stableWindowSeconds"},
		{load("profile: kthena, stableWindowSeconds: 14"), "panic.windowSeconds: must be at most stableWindowSeconds"},
		{load("panic: {windowSeconds: 0, threshold: 2}"), "panic.windowSeconds: Invalid value: 0: must be 0 if and only if threshold is, which is 2"},
		{load("panic: {windowSeconds: 5, threshold: 1}"), "panic.threshold: Invalid value: 1: must be above 1, or 0 for none"},
		{load("rateLimits: {up: {limits: [{periodSeconds: 5}]}}"), "must have either replicas or percent"},
		{load("rateLimits: {up: {limits: [{replicas: 1, percent: 1, periodSeconds: 5}]}}"), "must have either replicas or percent"},
		{load("rateLimits: {up: {limits: [{replicas: 1, periodSeconds: 0}]}}"), "periodSeconds: Invalid value: 0"},
		{scaler("cron: {}"), "policies: must have at least one, unless mode is InWindow"},
		{scaler("cron: {mode: InWindow}"), "windows: must have at least one in mode InWindow"},
		{scaler("cron: {outside: 1, policies: [{name: a, schedule: '@daily', targetReplicas: 1}]}"), "spec.scaler.cron.outside: Invalid value: 1: must be 0 unless mode is InWindow"},
		{scaler("cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 1}, {name: a, schedule: '@daily', targetReplicas: 2}]}"), "spec.scaler.cron.policies[1]: Duplicate value"},
		{policy("name: '', schedule: '@daily', targetReplicas: 1"), "spec.scaler.cron.policies[0].name: Invalid value"},
		{policy("name: a, schedule: '@every 1m', targetReplicas: 1"), "spec.scaler.cron.policies[0].schedule: Invalid value"},
		{policy("name: a, schedule: '* * * *', targetReplicas: 1"), "spec.scaler.cron.policies[0].schedule: Invalid value"},
		{policy("name: a, schedule: 'TZ=UTC 0 8 * * *', targetReplicas: 1"), "spec.scaler.cron.policies[0].schedule: Invalid value"},
		{policy("name: a, schedule: '@daily', targetReplicas: -1"), "spec.scaler.cron.policies[0].targetReplicas: Invalid value: -1"},
		{policy("name: a, schedule: '@daily', targetReplicas: 1, timeZone: Local"), "must not be Local, which differs between machines"},
		{policy("name: a, schedule: '@daily', targetReplicas: 1, timeZone: localtime"), "must not be localtime, which differs between machines"},
		{scaler("cron: {mode: InWindow, windows: [{name: a, start: '0 8 * * *', end: '0 8 * * *', targetReplicas: 1}]}"), "spec.scaler.cron.windows[0].end: Invalid value: must not be the same times as start"},
		{policy("name: a, schedule: '@daily'"), "spec.scaler.cron.policies[0].targetReplicas: Required value"},
	} {
		_, err := a.admit(t, head+tt.text)
		require.Error(t, err, tt.text)
		said := strings.NewReplacer(`"object": `, "", `"string": `, "", `"integer": `, "", `"": `, "", `null: `, "").Replace(err.Error())
		require.Contains(t, said, tt.want, tt.text)
	}
}

// TestGenerated makes what is generated anew, and compares.
func TestGenerated(t *testing.T) {
	long.Skip(t) // runs controller-gen
	if runtime.GOOS == "windows" {
		t.Skip("generate.sh is for bash")
	}
	dir, err := filepath.Abs("../../adapters/k8s/api")
	require.NoError(t, err)
	out := t.TempDir()
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "generate.sh"))
	c.Env = append(os.Environ(), "OUT="+out)
	said, err := c.CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, file := range []string{"v1alpha1/zz_generated.deepcopy.go", "crd/autoscaling.inferscale.io_llmautoscalers.yaml", "policy/zz_generated.deepcopy.go"} {
		want, err := os.ReadFile(filepath.Join(out, file))
		require.NoError(t, err)
		if strings.HasPrefix(file, "policy") {
			dir = filepath.Join(dir, "../../..")
		}
		got, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "%s is not up to date: run go generate ./... in adapters/k8s/api", file)
	}
}

// TestSharedSource may be read by both scalers, however it is written.
func TestSharedSource(t *testing.T) {
	a := newAdmission(t)
	for _, tt := range []struct{ one, other string }{
		{"{name: a, port: 1, labels: {a: b}}", "{name: a, port: 1, labels: {a: b}}"},
		{"{name: a, port: 5001}", "{name: a, port: '5001'}"},
		{"{}", "{name: 'vllm:num_requests_waiting'}"},
		{"{engine: VLLM, signal: TTFT, quantile: '0.5'}", "{engine: VLLM, signal: TTFT, quantile: '0.50', protocol: http}"},
	} {
		las, err := a.admit(t, head+`  maxReplicas: 8
  scaler:
    realtime: {metrics: [{source: `+tt.one+`, threshold: {high: 7, low: 1}}]}
    proportional: {metrics: [{source: `+tt.other+`, target: 1}]}
`)
		require.NoError(t, err, "%s and %s", tt.one, tt.other)
		plan, err := build.Spec(las.Spec.Document())
		require.NoError(t, err)
		require.Len(t, plan.Scrape.Metrics, 1)
	}
}

// TestTargetVersion: a target has a version, and a group unless it is of the first.
func TestTargetVersion(t *testing.T) {
	a := newAdmission(t)
	for version, ok := range map[string]bool{
		"apps/v1": true, "v1": true, "kaito.sh/v1beta1": true, "leaderworkerset.x-k8s.io/v1": true,
		"": false, "/": false, "a/b/c": false, "apps/": false, "/v1": false, "apps /v1": false,
	} {
		las, err := a.admit(t, strings.Replace(head, "apps/v1", `"`+version+`"`, 1)+"  maxReplicas: 8\n  scaler: {realtime: {metrics: [{threshold: {high: 7, low: 1}}]}}\n")
		require.Equal(t, ok, err == nil, "%q: %v", version, err)
		if ok {
			_, err = build.Spec(las.Spec.Document())
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "spec.scaleTargetRef.apiVersion")
		}
	}
	_, err := a.admit(t, strings.Replace(head, "apiVersion: apps/v1, ", "", 1)+"  maxReplicas: 8\n  scaler: {realtime: {metrics: [{threshold: {high: 7, low: 1}}]}}\n")
	require.ErrorContains(t, err, "spec.scaleTargetRef.apiVersion: Required value")
}

// TestCopies has the definition in the manifests as it is generated.
func TestCopies(t *testing.T) {
	for _, file := range []string{"deploy/kustomize/crd.yaml", "deploy/chart/crds/llmautoscalers.yaml"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, string(data) == crd.LLMAutoScaler(), "%s: copy adapters/k8s/api/crd/*.yaml there", file)
	}
}
