package build_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// refused requires that a spec is refused with exactly these errors.
func refused(tb testing.TB, text string, want ...string) {
	tb.Helper()
	if !strings.Contains(text, "scaleTargetRef") {
		text = target + text
	}
	p, err := build.Spec(read(tb, text))
	require.Error(tb, err, text)
	require.Equal(tb, build.Plan{}, p)
	require.Equal(tb, strings.Join(want, "\n"), unquoted(err), text)
}

// unquoted is an error whose values have no quotes, to be read more easily.
func unquoted(err error) string {
	return regexp.MustCompile(`(?m)^([^ ]+): "(.*?)": `).ReplaceAllString(err.Error(), "$1: $2: ")
}

// TestRefused has an object for every rule, and what is said of it: field, value and rule.
func TestRefused(t *testing.T) {
	const ok = "scaler: {realtime: {metrics: [{threshold: {high: 7, low: 1}}]}}\n"
	at := func(kind, text string) string { return "scaler: {" + kind + ": {" + text + "}}" }
	realtime := func(text string) string {
		return at("realtime", "metrics: [{threshold: {high: 7, low: 1}}], "+text)
	}
	metric := func(text string) string { return at("realtime", "metrics: [{"+text+"}]") }
	source := func(text string) string { return metric("threshold: {high: 7, low: 1}, source: {" + text + "}") }
	load := func(text string) string { return at("proportional", "metrics: [{target: 7}], "+text) }
	cron := func(text string) string { return at("cron", text) }
	policy := func(text string) string { return cron("policies: [{" + text + "}]") }
	for _, tt := range []struct{ text, want string }{
		{"scaler: {}", "spec.scaler: 0: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{"minReplicas: -1\n" + ok, "spec.minReplicas: -1: must not be negative"},
		{"minReplicas: 9\n" + ok, "spec.maxReplicas: 8: must not be below min 9"},
		{"intervalSeconds: 3601\n" + ok, "spec.intervalSeconds: 3601: must be between 1 and 3600"},
		{"grouping: Both\n" + ok, "spec.grouping: Both: must be Pod, LeaderWorkerSet or KaitoWorkspace"},
		{"scaleTargetRef: {}\nmaxReplicas: 1\n" + ok, "spec.scaleTargetRef.apiVersion: : must be \"version\" or \"group/version\"\nspec.scaleTargetRef.kind: : must not be empty\nspec.scaleTargetRef.name: : must not be empty"},
		{"scaleTargetRef: {apiVersion: a/b/c, kind: Deployment, name: chat}\nmaxReplicas: 1\n" + ok, "spec.scaleTargetRef.apiVersion: a/b/c: must be \"version\" or \"group/version\""},
		{"scrape: {tls: {caSecretRef: {name: ca}, insecureSkipVerify: true}}\n" + ok, "spec.scrape.tls.caSecretRef: ca: must not be given with insecureSkipVerify"},

		{at("realtime", ""), "spec.scaler.realtime.metrics: 0: must be at least one"},
		{realtime("profile: kpa"), "spec.scaler.realtime.profile: kpa: must be kaito or responsive"},
		{realtime("cooldownScope: None"), "spec.scaler.realtime.cooldownScope: None: must be Any or PerDirection"},
		{realtime("scaleUpRule: {scaleStep: 0}"), "spec.scaler.realtime.scaleUpRule.scaleStep: 0: must be at least 1"},
		{realtime("scaleUpRule: {cooldownSeconds: -30}"), "spec.scaler.realtime.scaleUpRule.cooldownSeconds: -30: must not be negative"},
		{realtime("scaleUpRule: {stabilizationWindowSeconds: -1}"), "spec.scaler.realtime.scaleUpRule.stabilizationWindowSeconds: -1: must not be negative"},
		{realtime("scaleDownRule: {scaleStep: -1}"), "spec.scaler.realtime.scaleDownRule.scaleStep: -1: must be at least 1"},
		{realtime("scaleDownRule: {cooldownSeconds: -1}"), "spec.scaler.realtime.scaleDownRule.cooldownSeconds: -1: must not be negative"},
		{realtime("scaleDownRule: {stabilizationWindowSeconds: -1}"), "spec.scaler.realtime.scaleDownRule.stabilizationWindowSeconds: -1: must not be negative"},
		{metric("threshold: {high: 1, low: 1}"), "spec.scaler.realtime.metrics[0].threshold.high: 1: must be a number above low 1"},
		{metric("threshold: {high: 1, low: -1}"), `spec.scaler.realtime.metrics[0].threshold.low: -1: must be a number that is not negative, as 40 or "0.9"`},
		{metric("threshold: {high: 10m, low: 0}"), `spec.scaler.realtime.metrics[0].threshold.high: 10m: must be a number that is not negative, as 40 or "0.9"`},
		{metric("threshold: {high: 7, low: 1}, role: Down"), "spec.scaler.realtime.metrics[0].role: Down: must be Both, UpOnly or DownVeto"},
		{at("realtime", "metrics: [{threshold: {high: 7, low: 1}}, {threshold: {high: 8, low: 1}}]"), "spec.scaler.realtime.metrics[1].source.name: vllm:num_requests_waiting: must be unique"},

		{source("engine: VLLM"), "spec.scaler.realtime.metrics[0].source.signal: : must be one of Waiting, Running, InFlight, KVCacheUsage, TTFT, TPOT, PrefixCacheHitRate and Preemptions, beside an engine"},
		{source("signal: Waiting"), "spec.scaler.realtime.metrics[0].source.engine: : must be one of VLLM, SGLang, TGI, TRTLLM, Triton, Dynamo and LlamaCPP, beside a signal"},
		{source("engine: VLLM, signal: Waiting, name: queue"), "spec.scaler.realtime.metrics[0].source.name: queue: must not be given beside engine and signal"},
		{source("engine: VLLM, signal: Waiting, aggregation: Max"), "spec.scaler.realtime.metrics[0].source.aggregation: Max: must not be given beside engine and signal: how a signal is aggregated is known"},
		{source("aggregation: Mean"), "spec.scaler.realtime.metrics[0].source.aggregation: Mean: must be one of Only, Sum, Average, Max and Min"},
		{source("engine: VLLM, signal: Waiting, quantile: '0.9'"), "spec.scaler.realtime.metrics[0].source.quantile: 0.9: must be given only with the signals TTFT and TPOT"},
		{source("quantile: '0.9'"), "spec.scaler.realtime.metrics[0].source.quantile: 0.9: must be given only with the signals TTFT and TPOT"},
		{source("engine: VLLM, signal: TTFT, quantile: 1"), "spec.scaler.realtime.metrics[0].source.quantile: 1: must be above 0 and below 1"},
		{source("protocol: ftp"), "spec.scaler.realtime.metrics[0].source.protocol: ftp: must be http or https"},
		{source("port: 65536"), "spec.scaler.realtime.metrics[0].source.port: 65536: must be between 1 and 65535"},
		{source("path: metrics"), "spec.scaler.realtime.metrics[0].source.path: metrics: must begin with a single '/' and have no fragment, space or control byte"},
		{source("labels: {'': a}"), "spec.scaler.realtime.metrics[0].source.labels[0].label: : must not be empty"},
		{
			"scrape: {portName: http}\n" + at("realtime", "metrics: [{threshold: {high: 7, low: 1}}, {source: {name: b, protocol: https}, threshold: {high: 7, low: 1}}]"),
			"spec.scaler.realtime.metrics[1].source.protocol: https: must be that of every other source, http, as spec.scrape.portName is given",
		},

		{at("proportional", ""), "spec.scaler.proportional.metrics: 0: must be at least one"},
		{load("profile: seed"), "spec.scaler.proportional.profile: seed: must be llm, kthena, kpa or hpa"},
		{at("proportional", "metrics: [{target: 0}]"), "spec.scaler.proportional.metrics[0].target: 0: must be a number above 0"},
		{at("proportional", "metrics: [{target: 1, measure: Sum}]"), "spec.scaler.proportional.metrics[0].measure: Sum: must be PerPod, Total or Average"},
		{load("scaleUp: {tolerance: -1}"), `spec.scaler.proportional.scaleUp.tolerance: -1: must be a number that is not negative, as 40 or "0.9"`},
		{load("scaleUp: {maxRate: 1}"), "spec.scaler.proportional.scaleUp.maxRate: 1: must be a number above 1, or 0 for none"},
		{load("scaleDown: {maxStep: -1}"), "spec.scaler.proportional.scaleDown.maxStep: -1: must not be negative"},
		{load("stableWindowSeconds: -1"), "spec.scaler.proportional.stableWindowSeconds: -1: must not be negative"},
		{"intervalSeconds: 1\n" + load("stableWindowSeconds: 601"), "spec.scaler.proportional.stableWindowSeconds: 601: must be at most 600 times spec.intervalSeconds 1"},
		{load("stableWindowSeconds: 3601"), "spec.scaler.proportional.stableWindowSeconds: 3601: must be at most 3600 times resolution"},
		{load("panic: {windowSeconds: 31, threshold: 2}"), "spec.scaler.proportional.panic.windowSeconds: 31: must be at most stableWindow 30s"},
		{load("panic: {windowSeconds: 0, threshold: 2}"), "spec.scaler.proportional.panic.windowSeconds: 0: must be above 0"},
		{load("panic: {windowSeconds: 1, threshold: 0}"), "spec.scaler.proportional.panic.windowSeconds: 1: must be 0 without a threshold"},
		{load("panic: {windowSeconds: 1, threshold: 1}"), "spec.scaler.proportional.panic.threshold: 1: must be a number above 1, or 0 for none"},
		{load("profile: kthena, stableWindowSeconds: 5"), "spec.scaler.proportional.panic.windowSeconds: 15: must be at most stableWindow 5s"},
		{load("stabilization: {upSeconds: -1}"), "spec.scaler.proportional.stabilization.upSeconds: -1: must not be negative"},
		{"intervalSeconds: 1\n" + load("stabilization: {downSeconds: 601}"), "spec.scaler.proportional.stabilization.downSeconds: 601: must be at most 600 times spec.intervalSeconds 1"},
		{load("rateLimits: {up: {select: Most}}"), "spec.scaler.proportional.rateLimits.up.select: Most: must be Max, Min or Disabled"},
		{load("rateLimits: {up: {limits: [{replicas: 1, periodSeconds: 0}]}}"), "spec.scaler.proportional.rateLimits.up.limits[0].periodSeconds: 0: must be at least one second"},
		{load("rateLimits: {down: {limits: [{replicas: 1, percent: 1, periodSeconds: 1}]}}"), "spec.scaler.proportional.rateLimits.down.limits[0].percent: 1: must not be set beside replicas"},
		{load("rateLimits: {down: {limits: [{periodSeconds: 1}]}}"), "spec.scaler.proportional.rateLimits.down.limits[0].replicas: 0: must be set, or percent"},
		{load("activationScale: -1"), "spec.scaler.proportional.activationScale: -1: must not be negative"},

		{cron(""), "spec.scaler.cron.policies: 0: must have at least one"},
		{cron("mode: Last"), "spec.scaler.cron.mode: Last: must be HoldLast, Match or InWindow\nspec.scaler.cron.policies: 0: must have at least one"},
		{cron("mode: InWindow"), "spec.scaler.cron.windows: 0: must have at least one in mode InWindow"},
		{cron("outside: 1, policies: [{name: a, schedule: '@daily', targetReplicas: 1}]"), "spec.scaler.cron.outside: 1: must be 0 unless mode is InWindow"},
		{policy("name: '', schedule: '@daily', targetReplicas: 1"), "spec.scaler.cron.policies[0].name: : must not be empty"},
		{policy("name: a, schedule: '@daily', targetReplicas: -1"), "spec.scaler.cron.policies[0].targetReplicas: -1: must not be negative"},
		{policy("name: a, schedule: '61 * * * *', targetReplicas: 1"), "spec.scaler.cron.policies[0].schedule: 61 * * * *: is not a cron expression of five fields: end of range (61) above maximum (59): 61"},
		{policy("name: a, schedule: '0 0 31 2 *', targetReplicas: 1"), "spec.scaler.cron.policies[0].schedule: 0 0 31 2 *: never fires: no date has these fields"},
		{policy(`name: 'a" b]', schedule: '@every 1m', targetReplicas: 1`), "spec.scaler.cron.policies[0].schedule: @every 1m: @every has no fixed times: write the minutes, as in */15"},
		{policy("name: a, schedule: '@daily', targetReplicas: 1, timeZone: Mars/Base"), "spec.scaler.cron.policies[0].timeZone: Mars/Base: must be in the time zone database: unknown time zone Mars/Base"},
		{cron("mode: InWindow, windows: [{name: a, start: '@daily', end: '0 0 * * *', targetReplicas: -2}]"), "spec.scaler.cron.windows[0].targetReplicas: -2: must not be negative\nspec.scaler.cron.windows[0].end: 0 0 * * *: must not be the same times as start"},
	} {
		refused(t, tt.text, tt.want)
	}
}

// TestAllAtOnce reports everything that is wrong, in the order of the object, and the bounds once.
func TestAllAtOnce(t *testing.T) {
	refused(t, `
minReplicas: 9
scaler:
  realtime: {metrics: [{source: {port: 70000}, threshold: {high: 1, low: 2}}], scaleUpRule: {scaleStep: 0}}
  proportional: {metrics: [{target: 0}]}
  cron: {policies: [{name: a, schedule: nonsense, targetReplicas: 1}]}
`,
		"spec.maxReplicas: 8: must not be below min 9",
		"spec.scaler.realtime.metrics[0].source.port: 70000: must be between 1 and 65535",
		"spec.scaler.realtime.metrics[0].threshold.high: 1: must be a number above low 2",
		"spec.scaler.realtime.scaleUpRule.scaleStep: 0: must be at least 1",
		"spec.scaler.proportional.metrics[0].source: vllm:num_requests_waiting: must be read as spec.scaler.realtime.metrics[0].source reads it, which has the same name",
		"spec.scaler.proportional.metrics[0].target: 0: must be a number above 0",
		"spec.scaler.cron.policies[0].schedule: nonsense: is not a cron expression of five fields: expected exactly 5 fields, found 1: [nonsense]",
	)
	_, err := build.Spec(&policy.Spec{})
	var field *scaling.FieldError
	require.ErrorAs(t, err, &field)
}

// TestAllAtOnceWithScrape: what is wrong with reading the pods is told beside what is wrong with deciding.
func TestAllAtOnceWithScrape(t *testing.T) {
	refused(t, `
minReplicas: 9
intervalSeconds: 0
grouping: Both
scrape: {portName: web, bearerTokenSecretRef: {}, tls: {serverName: "a b", caSecretRef: {name: ca}, insecureSkipVerify: true}}
scaler:
  realtime:
    metrics:
      - {source: {engine: TGI, signal: TTFT, protocol: https}, threshold: {high: 1, low: 2}}
      - {source: {name: b, protocol: http}, threshold: {high: 2, low: 1}}
  cron: {policies: [{name: a, schedule: nonsense, targetReplicas: 1}]}
`,
		"spec.intervalSeconds: 0: must be between 1 and 3600",
		"spec.maxReplicas: 8: must not be below min 9",
		"spec.grouping: Both: must be Pod, LeaderWorkerSet or KaitoWorkspace",
		"spec.scaler.realtime.metrics[0].source.signal: TTFT: TGI has none",
		"spec.scaler.realtime.metrics[0].threshold.high: 1: must be a number above low 2",
		"spec.scaler.cron.policies[0].schedule: nonsense: is not a cron expression of five fields: expected exactly 5 fields, found 1: [nonsense]",
		"spec.scrape.tls.serverName: a b: must be a host name",
		"spec.scrape.tls.caSecretRef: ca: must not be given with insecureSkipVerify",
		"spec.scrape.bearerTokenSecretRef.name: : must not be empty",
		"spec.scaler.realtime.metrics[1].source.protocol: http: must be that of every other source, https, as spec.scrape.portName is given",
		"spec.scaler.realtime.metrics[1].source.protocol: http: must be https with spec.scrape.bearerTokenSecretRef: a token is not sent in the open",
	)
}

// TestTokenInTheOpen is refused, not left out: who writes it expects it to be sent.
func TestTokenInTheOpen(t *testing.T) {
	const token = "scrape: {bearerTokenSecretRef: {name: a}}\n"
	for protocol, ok := range map[string]bool{"protocol: https": true, "protocol: http": false, "": false} {
		text := token + "scaler: {realtime: {metrics: [{source: {name: a, " + protocol + "}, threshold: {high: 7, low: 1}}]}}"
		if ok {
			_, err := build.Spec(read(t, target+text))
			require.NoError(t, err)
			continue
		}
		refused(t, text, "spec.scaler.realtime.metrics[0].source.protocol: http: must be https with spec.scrape.bearerTokenSecretRef: a token is not sent in the open")
	}
}

// TestMoreMetricsThanArePossible: of compositions and of shadows, which are read together.
func TestMoreMetricsThanArePossible(t *testing.T) {
	const most = scrape.MaxMetrics / 8
	members := func(from, n int) string {
		var all []string
		for i := from; i < from+n; i++ {
			var metrics []string
			for k := range 8 {
				metrics = append(metrics, fmt.Sprintf(`{"source":{"name":"m%d_%d"},"target":"1"}`, i, k))
			}
			all = append(all, fmt.Sprintf(`{"name":"p%d","proportional":{"metrics":[%s]}}`, i, strings.Join(metrics, ",")))
		}
		return `{"highest":[` + strings.Join(all, ",") + `]}`
	}
	raw := func(from, n int) policy.RawShadow {
		return policy.RawShadow{Name: fmt.Sprintf("s%d", from), Scaler: []byte(members(from, n))}
	}
	s := spec(t, "scaler: {static: {replicas: 1}}")
	_, err := build.Shadows(s, []policy.RawShadow{raw(0, most-1), raw(most-1, 1)}, nil)
	require.NoError(t, err)
	plan, err := build.Shadows(s, []policy.RawShadow{raw(0, most), raw(most, 1)}, nil)
	require.EqualError(t, err, "spec.shadow: 264: must be at most 256 metrics")
	require.Empty(t, plan.Scrape.Metrics)
}

// TestShadowsOfADocument: without raw shadows those of the spec are built. They were left out without a word.
func TestShadowsOfADocument(t *testing.T) {
	document, err := policy.Read([]byte(target+`
scaler: {static: {replicas: 1}}
shadow:
- name: by-load
  scaler: {proportional: {metrics: [{source: {name: load}, target: 35}]}}
`), "policy.yaml")
	require.NoError(t, err)
	s := &document.Policies[0].Spec
	plan, err := build.Shadows(s, nil, nil)
	require.NoError(t, err)
	require.Len(t, plan.All, 1)
	require.Equal(t, "by-load", plan.All[0].Name)
	require.NotNil(t, plan.All[0].Policy)
	require.Len(t, plan.Scrape.Metrics, 1)

	none, err := build.Shadows(s, []policy.RawShadow{}, nil)
	require.NoError(t, err)
	require.Empty(t, none.All)
}
