package policy_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// TestExample reads the sample, builds all that is in it and lets each decide once.
func TestExample(t *testing.T) {
	d, err := policy.Read([]byte(policy.Example()), "sample.yaml")
	require.NoError(t, err)
	require.Empty(t, d.Warnings)
	for _, p := range d.Policies {
		readsBack(t, p)
		live, err := p.Build(bounds())
		require.NoError(t, err)
		d := live.Decide(time.Unix(1e9, 0), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3})
		require.True(t, d.Replicas >= 1 && d.Replicas <= 20)
	}
}

// TestManifests reads the samples of LLMAutoScalers as they stand.
func TestManifests(t *testing.T) {
	if _, err := os.Stat("../examples"); err != nil {
		t.Skip("the samples are of another module, which is not beside this one")
	}
	for file, want := range map[string]string{
		"dry-run": "capacity", "kaito": "realtime+cron", "proportional": "realtime+proportional",
	} {
		data, err := os.ReadFile("../examples/llmautoscaler/deploy/samples/" + file + ".yaml")
		require.NoError(t, err)
		p := one(t, string(data))
		require.True(t, p.Manifest)
		require.Equal(t, "default", p.Namespace)
		require.NotEmpty(t, p.ScaleTargetRef.Name)
		plan, err := p.Plan("", scaling.Bounds{})
		require.NoError(t, err)
		require.Equal(t, want, plan.Kinds)
		require.Equal(t, scaling.Bounds{Min: 1, Max: p.MaxReplicas}, plan.Bounds)
		text := readsBack(t, p)
		require.Contains(t, text, "kind: LLMAutoScaler")
		require.Contains(t, text, "intervalSeconds: 15")
	}
}

// TestRead compares documents with their effective ones, from which what the profile has is left out.
func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		text, name string
		has        []string
	}{
		"profile alone": {"realtime: {}", "realtime/kaito", []string{
			`- {source: {name: 'vllm:num_requests_waiting', protocol: http}, threshold: {high: 5, low: 1}, role: Both}`, "cooldownSeconds: 600", "cooldownSeconds: 1800", "cooldownScope: Any",
		}},
		"another profile": {"realtime: {profile: responsive}", "realtime/responsive", []string{"scaleStep: 2", "cooldownSeconds: 30", "cooldownScope: PerDirection", "signal: InFlight"}},
		"fields over it":  {"realtime: {profile: responsive, scaleUpRule: {scaleStep: 7}}", "realtime/responsive", []string{"scaleStep: 7", "cooldownSeconds: 30", "cooldownSeconds: 60"}},
		"zero stays":      {"realtime: {scaleUpRule: {cooldownSeconds: 0}}\nname: n", "n", []string{"cooldownSeconds: 0", "stabilizationWindowSeconds: 30"}},
		"list replaces":   {`realtime: {metrics: [{source: {name: a}, threshold: {high: "2.5", low: 1}}, {source: {name: b}, threshold: {high: 16, low: "10"}}]}`, "realtime/kaito", []string{`{high: "2.5", low: 1}, role: Both}`, `{high: 16, low: 10}`}},
		"kpa":             {"proportional: {profile: kpa}", "proportional/kpa", []string{"maxRate: 1000", "stableWindowSeconds: 60", "windowSeconds: 6"}},
		"hpa":             {"proportional: {profile: hpa}", "proportional/hpa", []string{"stableWindowSeconds: 0", "{replicas: 4, periodSeconds: 15}"}},
		"list emptied":    {"proportional: {profile: hpa, rateLimits: {up: {limits: []}}}", "proportional/hpa", []string{"up:\n        select: Max", "{percent: 100, periodSeconds: 15}"}},
		"llm":             {"proportional: {}", "proportional/llm", []string{`{source: {engine: VLLM, signal: InFlight, protocol: http}, target: 35, measure: PerPod}`, "stableWindowSeconds: 30"}},
		"saturation":      {"saturation: {kvCacheThreshold: '0.9'}", "saturation/default", []string{`kvCacheThreshold: "0.9"`, "queueLengthThreshold: 5", "mode: Default", `name: vllm:kv_cache_usage_perc`}},
		"wva":             {"saturation: {profile: wva}", "saturation/wva", []string{"mode: Literal", "transitionTimeoutSeconds: 0"}},
		"cron":            {"cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 0}]}", "cron", []string{`schedule: '@daily', targetReplicas: 0, timeZone: Etc/UTC`}},
		"static":          {"static: {replicas: 0}", "static", []string{"replicas: 0"}},
		"anchor":          {"static: &a {replicas: 8}", "static", []string{"replicas: 8"}},
		"several":         {"{static: {replicas: 8}, realtime: {}, cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 0}]}}", "realtime+static+cron", []string{"replicas: 8"}},
		"spec":            {"{maxReplicas: 3, scaler: {static: {replicas: 2}}}", "static", []string{"minReplicas: 1\n", "maxReplicas: 3", "intervalSeconds: 15"}},
		"interval":        {"{intervalSeconds: 5, scaler: {realtime: {}}}", "realtime/kaito", []string{"intervalSeconds: 5"}},
		"JSON":            {"{\n\t\"maxReplicas\": 3,\n\t\"scaler\": {\"static\": {\"replicas\": 2}}\n}", "static", []string{"maxReplicas: 3"}},
		"list":            {"policies: [{static: {replicas: 8}}]", "static", []string{"replicas: 8"}},
		"empty documents": {"---\n---\n# nothing\n---\nstatic: {replicas: 8}\n---\n", "static", []string{"replicas: 8"}},
		"merge label":     {"realtime: {metrics: [{source: {labels: {'<<': '<<'}}, threshold: {high: 2, low: 1}}]}", "realtime/kaito", []string{`labels: {"<<": "<<"}`}},
		"port":            {"realtime: {metrics: [{source: {port: '9000', labels: {b: '', a: c}}, threshold: {high: 2, low: 1}}]}", "realtime/kaito", []string{"port: 9000, labels: {a: c, b: \"\"}"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(t, tt.text)
			require.Equal(t, tt.name, p.Name)
			text := readsBack(t, p)
			for _, has := range tt.has {
				require.Contains(t, text, has)
			}
			_, err := p.Build(bounds())
			require.NoError(t, err)
		})
	}
}

// TestNumbersThatBeginWithZero: 010 was 8 as a count of replicas, as with an API server, and 10 as a target.
func TestNumbersThatBeginWithZero(t *testing.T) {
	const rule = "must not begin with 0, as YAML counts by eights then"
	for text, want := range map[string]string{
		"maxReplicas: 010\nscaler: {static: {replicas: 1}}":                                  "p.yaml:1: maxReplicas: 010: " + rule,
		"static: {replicas: 08}":                                                             "p.yaml:1: static.replicas: 08: " + rule,
		"proportional: {metrics: [{source: {name: a}, target: 010}]}":                        "p.yaml:1: proportional.metrics[0].target: 010: " + rule,
		"proportional: {metrics: [{source: {name: a}, target: 00.5}]}":                       "p.yaml:1: proportional.metrics[0].target: 00.5: " + rule,
		"proportional: {metrics: [{source: {name: a, port: 010}, target: 1}]}":               "p.yaml:1: proportional.metrics[0].source.port: 010: " + rule,
		"proportional: {metrics: [{source: {name: a}, target: 1}], scaleUp: {maxStep: 010}}": "p.yaml:1: proportional.scaleUp.maxStep: 010: " + rule,
	} {
		_, err := policy.Read([]byte(text), "p.yaml")
		require.EqualError(t, err, want)
	}
	p := one(t, "proportional: {metrics: [{source: {name: a, port: '80'}, target: '010'}, {source: {name: b}, target: 0.5}]}")
	require.Equal(t, "010", p.Scaler.Proportional.Metrics[0].Target.String())
}

// TestSeveral are documents of a file, and entries of a list.
func TestSeveral(t *testing.T) {
	all := parse(t, "static: {replicas: 8}\n---\npolicies:\n- name: a\n  static: {replicas: 1}\n- name: b\n  maxReplicas: 2\n  scaler: {static: {replicas: 1}}\n")
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"static", "a", "b"}, names)
}

// TestFractions without quotes are read, with a warning, but not where an API server would refuse them.
func TestFractions(t *testing.T) {
	d, err := policy.Read([]byte("realtime:\n  metrics:\n  - {source: {name: q}, threshold: {high: 0.9, low: 0}}\n"), "p.yaml")
	require.NoError(t, err)
	require.Len(t, d.Warnings, 1)
	require.EqualError(t, d.Warnings[0], `p.yaml:3: realtime.metrics[0].threshold.high: 0.9: needs quotes in an LLMAutoScaler, as "0.9"`)
	require.Contains(t, effective(t, d.Policies[0]), `high: "0.9"`)
}

const head = "apiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\nmetadata: {name: a}\n"

// TestReadErrors has the exact text for every mistake; the line is counted from 1.
func TestReadErrors(t *testing.T) {
	const (
		rules = "realtime, proportional, saturation, capacity, static, cron, stabilization, rateLimits, highest"
		none  = "must have at least one of realtime, proportional, saturation, capacity, static and cron"
	)
	deep := strings.Repeat("highest: [{", 9) + "static: {replicas: 1}" + strings.Repeat("}]", 9)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"empty":     {"", []string{"p.yaml: must have a policy"}},
		"comment":   {"# nothing\n", []string{"p.yaml: must have a policy"}},
		"text":      {"hello", []string{`p.yaml:1: file: "hello": must be a mapping; {} is an empty one`}},
		"null":      {"~", []string{`p.yaml:1: file: ~: must be a mapping; {} is an empty one`}},
		"no key":    {"{}", []string{"p.yaml:1: " + none}},
		"other key": {"policy: []", []string{`p.yaml:1: policy: a list: is not a field here; the fields are name, ` + rules, "p.yaml:1: " + none}},
		"none":      {"policies: []", []string{"p.yaml:1: policies: 0: must be at least one"}},
		"mapping":   {"policies: {}", []string{"p.yaml:1: policies: a mapping: must be a list"}},
		"beside":    {"policies: [{static: {replicas: 1}}]\nbounds: {}", []string{"p.yaml:2: bounds: a mapping: is not a field here; the fields are policies"}},
		"tab":       {"policies:\n\t- a", []string{"p.yaml:2: must be YAML: found character that cannot start any token"}},
		"not UTF-8": {"\xff\xff\xff", []string{"p.yaml: must be YAML: invalid leading UTF-8 octet"}},
		"names": {
			"policies:\n- {name: \"a\\e[2J\", static: {replicas: 1}}\n- highest:\n  - {name: \"\\u202e\", static: {replicas: 1}}\n",
			[]string{`p.yaml:2: policies[0].name: "a\x1b[2J": must be of printable characters`, `p.yaml:4: policies[1].highest[0].name: "\u202e": must be of printable characters`},
		},
		"name of a wrong profile": {`realtime: {profile: "a\nb"}`, []string{`p.yaml:1: realtime.profile: "a\nb": must be kaito or responsive`}},
		"broken second": {
			"static: {replicas: 1}\n---\na: [\n", []string{"p.yaml:3: must be YAML: did not find expected node content"},
		},
		"large":         {strings.Repeat("#", 1<<20) + "\n", []string{"p.yaml: must not be larger than 1048576 bytes"}},
		"many policies": {"policies: [" + strings.Repeat("a,", 1001) + "]", []string{"p.yaml:1: policies: 1001: must be at most 1000"}},
		"deep":          {deep, []string{"p.yaml:1: " + strings.TrimSuffix(strings.Repeat("highest[0].", 9), ".") + ": a mapping: must not be more than 8 scalers deep"}},
		"alias bomb": {
			"policies:\n- static: &a {replicas: &b [1]}\n- {name: b, static: *a}\n- *a\n- {name: c, static: {replicas: *b}}\n",
			[]string{
				"p.yaml:2: policies[0].static.replicas: a list: must be one value",
				"p.yaml:3: policies[1].static: *a: must be written out: aliases are not taken",
				"p.yaml:4: policies[2]: *a: must be written out: aliases are not taken",
				"p.yaml:5: policies[3].static.replicas: *b: must be written out: aliases are not taken",
			},
		},
		"merge key":       {"policies:\n- static: &a {replicas: 1}\n- {name: b, static: {<<: *a}}", []string{"p.yaml:3: policies[1].static.<<: *a: is not a field here; the fields are replicas", "p.yaml:3: policies[1].static.replicas: must be given"}},
		"no algorithm":    {"policies:\n\n- name: a", []string{"p.yaml:3: policies[0]: 0: " + none}},
		"no scaler":       {"maxReplicas: 3\n", []string{"p.yaml:1: scaler: must be given"}},
		"min alone":       {"minReplicas: 3\nscaler: {static: {replicas: 1}}", []string{"p.yaml:1: maxReplicas: must be given beside minReplicas"}},
		"null algorithm":  {"realtime:", []string{"p.yaml:1: realtime: null: must be a mapping; {} is an empty one"}},
		"key is a list":   {"static: {[a]: 1, replicas: 1}", []string{"p.yaml:1: static.key: a list: must be one of replicas"}},
		"given twice":     {"static:\n  replicas: 1\n  replicas: 2", []string{"p.yaml:3: static.replicas: 2: must be given once; it is on line 2"}},
		"name twice":      {"policies:\n- static: {replicas: 1}\n- {name: static, static: {replicas: 2}}\n- static: {replicas: 2}", []string{`p.yaml:3: policies[1].name: "static": must be unique`, `p.yaml:4: policies[2].name: "static": must be unique`}},
		"name a number":   {"name: 8\nstatic: {replicas: 1}", []string{`p.yaml:1: name: 8: must be text; numbers and the like need quotes`}},
		"profile":         {"realtime: {profile: kpa, holdWhilePending: 1}", []string{`p.yaml:1: realtime.holdWhilePending: 1: must be true or false`, `p.yaml:1: realtime.profile: "kpa": must be kaito or responsive`}},
		"profile of cron": {"cron: {profile: a}", []string{`p.yaml:1: cron.profile: "a": is not a field here; the fields are mode, policies, windows, outside`, "p.yaml:1: cron.policies: 0: must have at least one"}},
		"misspelt": {"realtime:\n  scaleUpRul: {}\n  scaleDownRule: {step: 1, cooldown: 2, stabilisationWindowSeconds: 3}", []string{
			`p.yaml:2: realtime.scaleUpRul: a mapping: is not a field here: is it scaleUpRule? the fields are profile, metrics, scaleUpRule, scaleDownRule, cooldownScope, holdWhilePending`,
			`p.yaml:3: realtime.scaleDownRule.step: 1: is not a field here: is it scaleStep? the fields are scaleStep, cooldownSeconds, stabilizationWindowSeconds`,
			`p.yaml:3: realtime.scaleDownRule.cooldown: 2: is not a field here: is it cooldownSeconds? the fields are scaleStep, cooldownSeconds, stabilizationWindowSeconds`,
			`p.yaml:3: realtime.scaleDownRule.stabilisationWindowSeconds: 3: is not a field here: is it stabilizationWindowSeconds? the fields are scaleStep, cooldownSeconds, stabilizationWindowSeconds`,
		}},
		"units": {"realtime:\n  scaleUpRule: {cooldownSeconds: 10m, stabilizationWindowSeconds: 1.5}\n  scaleDownRule: {cooldownSeconds: '30', stabilizationWindowSeconds: soon}", []string{
			`p.yaml:2: realtime.scaleUpRule.cooldownSeconds: "10m": must be a whole number of seconds, without a unit: 600`,
			`p.yaml:2: realtime.scaleUpRule.stabilizationWindowSeconds: 1.5: must be a whole number of seconds, as 30`,
			`p.yaml:3: realtime.scaleDownRule.cooldownSeconds: "30": must be a whole number of seconds, as 30`,
			`p.yaml:3: realtime.scaleDownRule.stabilizationWindowSeconds: "soon": must be a whole number of seconds, as 30`,
		}},
		// Of these it said that they must be what they are: a number that is not negative, and a whole number of seconds.
		"numbers out of range": {"realtime:\n  metrics:\n  - threshold: {high: 1e3, low: 0.0000000001}\n  - {source: {name: b}, threshold: {high: 1000000000000, low: \"1e400\"}}\n  scaleUpRule: {cooldownSeconds: 3000000000}", []string{
			`p.yaml:3: realtime.metrics[0].threshold.high: 1e3: must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`,
			`p.yaml:3: realtime.metrics[0].threshold.low: 0.0000000001: must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`,
			`p.yaml:4: realtime.metrics[1].threshold.high: 1000000000000: must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`,
			`p.yaml:4: realtime.metrics[1].threshold.low: "1e400": must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`,
			`p.yaml:5: realtime.scaleUpRule.cooldownSeconds: 3000000000: must be a whole number of seconds of at most 2147483647`,
		}},
		"wrong types": {"realtime:\n  metrics:\n  - {source: {name: [a], port: http}, threshold: {high: ten}, role: both}\n  scaleUpRule: 5\n  scaleDownRule: {scaleStep: 1.0}\n  holdWhilePending: yes", []string{
			`p.yaml:3: realtime.metrics[0].source.name: a list: must be one value`,
			`p.yaml:3: realtime.metrics[0].source.port: "http": must be the number of a port`,
			`p.yaml:3: realtime.metrics[0].threshold.high: "ten": must be a number that is not negative, as 40 or "0.9"`,
			`p.yaml:3: realtime.metrics[0].threshold.low: must be given`,
			`p.yaml:3: realtime.metrics[0].role: "both": must be Both, UpOnly or DownVeto`,
			`p.yaml:4: realtime.scaleUpRule: 5: must be a mapping; {} is an empty one`,
			`p.yaml:5: realtime.scaleDownRule.scaleStep: 1.0: must be a whole number of at most 2147483647`,
			`p.yaml:6: realtime.holdWhilePending: "yes": must be true or false`,
		}},
		"many replicas": {"static: {replicas: 3000000000}", []string{"p.yaml:1: static.replicas: 3000000000: must be a whole number of at most 2147483647"}},
		"null value":    {"static: {replicas: }", []string{"p.yaml:1: static.replicas: null: must be a whole number of at most 2147483647"}},
		"tag":           {"static: {replicas: !!int eight}", []string{"p.yaml:1: static.replicas: eight: must be a whole number of at most 2147483647"}},
		"own rules": {"name: a\nrealtime:\n  metrics:\n  - source: {name: waiting}\n    threshold:\n      high: 1\n      low: 2\n  - threshold: {high: 1, low: .nan}\n  scaleUpRule:\n    stabilizationWindowSeconds: -1\n    cooldownSeconds: 604801\n", []string{
			`p.yaml:6: realtime.metrics[0].threshold.high: 1: must be a number above low 2`,
			`p.yaml:8: realtime.metrics[1].threshold.low: .nan: must be a number that is not negative, as 40 or "0.9"`,
			`p.yaml:10: realtime.scaleUpRule.stabilizationWindowSeconds: -1: must not be negative`,
			`p.yaml:11: realtime.scaleUpRule.cooldownSeconds: 604801: must be at most 604800`,
		}},
		"proportional": {"proportional:\n  profile: hpa\n  panic:\n    windowSeconds: 60\n    threshold: 0\n  rateLimits:\n    up:\n      limits:\n      - {periodSeconds: 15}\n", []string{
			"p.yaml:4: proportional.panic.windowSeconds: 60: must be 0 without a threshold",
			"p.yaml:9: proportional.rateLimits.up.limits[0].replicas: 0: must be set, or percent",
		}},
		"long window": {"intervalSeconds: 1\nscaler:\n  proportional:\n    stableWindowSeconds: 601", []string{
			"p.yaml:4: scaler.proportional.stableWindowSeconds: 601: must be at most 600 times intervalSeconds 1",
		}},
		"saturation": {"saturation:\n  mode: Literal\n  kvCacheThreshold: 2", []string{
			"p.yaml:1: saturation.transitionTimeoutSeconds: 600: must be 0 in mode Literal",
			"p.yaml:1: saturation.downStabilizationSeconds: 300: must be 0 in mode Literal",
			"p.yaml:3: saturation.kvCacheThreshold: 2: must be in [0, 1]",
		}},
		"same sources": {"saturation:\n  kvCacheSource: {name: a}\n  queueSource:\n    name: a\n", []string{`p.yaml:3: saturation.queueSource: "a": must not be kv`}},
		"cron": {"cron:\n  policies:\n  - {name: day, schedule: 0 8 * * *}\n  - name: \"ni\\\"ght].x\"\n    targetReplicas: -1\n    schedule: never\n    timeZone: Nope", []string{
			"p.yaml:3: cron.policies[0].targetReplicas: must be given",
			"p.yaml:5: cron.policies[1].targetReplicas: -1: must not be negative",
			`p.yaml:6: cron.policies[1].schedule: "never": is not a cron expression of five fields: expected exactly 5 fields, found 1: [never]`,
			`p.yaml:7: cron.policies[1].timeZone: "Nope": must be in the time zone database: unknown time zone Nope`,
		}},
		"floor above": {"maxReplicas: 8\nscaler:\n  cron:\n    policies:\n    - {name: a, schedule: '@daily', targetReplicas: 9}\n    - {name: b, schedule: '@hourly', targetReplicas: 8}", []string{
			"p.yaml:5: scaler.cron.policies[0].targetReplicas: 9: must not be above maxReplicas 8",
		}},
		"window above": {"maxReplicas: 8\nscaler:\n  cron:\n    mode: InWindow\n    outside: 9\n    windows:\n    - {name: a, start: 0 8 * * *, end: 0 9 * * *, targetReplicas: 10}", []string{
			"p.yaml:5: scaler.cron.outside: 9: must not be above maxReplicas 8",
			"p.yaml:7: scaler.cron.windows[0].targetReplicas: 10: must not be above maxReplicas 8",
		}},
		"fraction": {"realtime:\n  metrics:\n  - {source: {name: 'vllm:kv_cache_usage_perc'}, threshold: {high: 90, low: 50}}\n  - {source: {engine: SGLang, signal: KVCacheUsage}, threshold: {high: 1, low: 0}}\nproportional:\n  metrics:\n  - {source: {engine: VLLM, signal: PrefixCacheHitRate}, target: 2}\n  - {source: {name: 'sglang:token_usage', aggregation: Sum}, target: 2}\n", []string{
			"p.yaml:3: realtime.metrics[0].threshold.high: 90: must be at most 1: the metric is a fraction",
			"p.yaml:7: proportional.metrics[0].target: 2: must be at most 1: the metric is a fraction",
		}},
		"sources": {"realtime:\n  metrics:\n  - {source: {engine: vLLM, signal: Waiting}, threshold: {high: 2, low: 1}}\n  - {source: {name: a, quantile: 2, protocol: ftp, port: 70000}, threshold: {high: 2, low: 1}}\n", []string{
			`p.yaml:3: realtime.metrics[0].source.engine: "vLLM": must be one of VLLM, SGLang, TGI, TRTLLM, Triton, Dynamo and LlamaCPP, beside a signal`,
			`p.yaml:4: realtime.metrics[1].source.quantile: "2": must be given only with the signals TTFT and TPOT`,
			`p.yaml:4: realtime.metrics[1].source.protocol: "ftp": must be http or https`,
			`p.yaml:4: realtime.metrics[1].source.port: 70000: must be between 1 and 65535`,
		}},
		"two of one name": {"realtime:\n  metrics:\n  - {source: {name: a}, threshold: {high: 2, low: 1}}\nproportional:\n  metrics:\n  - {source: {name: a, path: /m}, target: 2}\n", []string{
			`p.yaml:6: proportional.metrics[0].source: "a": must be read as realtime.metrics[0].source reads it, which has the same name`,
		}},
		"static": {"policies:\n- static: {replicas: -1}\n- name: b\n  static: {}", []string{"p.yaml:2: policies[0].static.replicas: -1: must not be negative", "p.yaml:4: policies[1].static.replicas: must be given"}},
		"bounds": {"policies:\n- scaler: {static: {replicas: 1}}\n  minReplicas: 3\n  maxReplicas: 2\n- name: c\n  scaler: {static: {replicas: 1}}\n  maxReplicas: [5]", []string{
			"p.yaml:4: policies[0].maxReplicas: 2: must not be below min 3",
			"p.yaml:7: policies[1].maxReplicas: a list: must be one value",
		}},
		"around": {"static: {replicas: 1}\nstabilization: {downSeconds: -5}\nrateLimits:\n  down: {limits: [{percent: -5, periodSeconds: 1801}], select: max}", []string{
			"p.yaml:2: stabilization.downSeconds: -5: must not be negative",
			`p.yaml:4: rateLimits.down.select: "max": must be Max, Min or Disabled`,
			"p.yaml:4: rateLimits.down.limits[0].periodSeconds: 1801: must be at most 1800",
			"p.yaml:4: rateLimits.down.limits[0].percent: -5: must not be negative",
		}},
		"highest": {"policies:\n- highest: []\n- name: i\n  highest:\n  - realtime: {}\n  - realtime: {scaleUpRule: {scaleStep: 0}}\n  - {name: static, static: {replicas: 1}}\n  static: {replicas: 1}\n", []string{
			"p.yaml:2: policies[0].highest: 0: must be at least one",
			`p.yaml:6: policies[1].highest[1].name: "realtime/kaito": must be unique: policies[1].highest[0] has it`,
			`p.yaml:6: policies[1].highest[1].realtime.scaleUpRule.scaleStep: 0: must be at least 1`,
			`p.yaml:7: policies[1].highest[2].name: "static": must be unique: policies[1].static has it`,
		}},
		"manifest": {head + "spec:\n  scaler:\n    realtime: {}\n  grouping: Both\n  dryrun: true\nstatus: {anything: [1]}\n", []string{
			"p.yaml:5: spec.scaleTargetRef: must be given",
			"p.yaml:5: spec.maxReplicas: must be given",
			"p.yaml:6: spec.scaler.realtime.metrics: must be given",
			`p.yaml:7: spec.grouping: "Both": must be Pod, LeaderWorkerSet or KaitoWorkspace`,
			"p.yaml:8: spec.dryrun: true: is not a field here: is it dryRun? the fields are scaleTargetRef, minReplicas, maxReplicas, dryRun, paused, intervalSeconds, grouping, scrape, scaler, shadow, attainment",
		}},
		"another kind": {strings.Replace(head, "LLMAutoScaler", "Deployment", 1) + "spec: {}\n", []string{
			`p.yaml:2: kind: "Deployment": must be LLMAutoScaler`,
			"p.yaml:4: spec.scaleTargetRef: must be given", "p.yaml:4: spec.maxReplicas: must be given", "p.yaml:4: spec.scaler: must be given",
		}},
		"manifest's fraction": {head + "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n  maxReplicas: 3\n  scaler:\n    realtime: {metrics: [{threshold: {high: 1.5, low: 1}}]}\n    highest: [{static: {replicas: 1}}]\n", []string{
			`p.yaml:8: spec.scaler.realtime.metrics[0].threshold.high: 1.5: must have quotes, as "1.5": an API server takes no fractions without`,
			"p.yaml:9: spec.scaler.highest: a list: is not a field of an LLMAutoScaler: it has one of each kind",
		}},
		"two of them": {"a: 1\n---\nb: 2\n", []string{
			"p.yaml:1: a: 1: is not a field here; the fields are name, " + rules, "p.yaml:1: " + none,
			"p.yaml:3: b: 2: is not a field here; the fields are name, " + rules, "p.yaml:3: " + none,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := policy.Read([]byte(tt.text), "p.yaml")
			require.EqualError(t, err, strings.Join(tt.want, "\n"))
			require.Nil(t, d)
			var position *policy.PositionError
			require.ErrorAs(t, err, &position)
			require.Equal(t, "p.yaml", position.File)
			var field *scaling.FieldError
			require.ErrorAs(t, err, &field)
		})
	}
}

// TestReadHostile reads files that are made to take long, a quarter of the largest in size, and does not.
func TestReadHostile(t *testing.T) {
	fill := func(before, part, after string) string {
		return before + strings.Repeat(part, (1<<18-len(before)-len(after))/len(part)) + after
	}
	for name, text := range map[string]string{
		"lists":     fill("", "[", ""),
		"mappings":  fill("", "{a: ", ""),
		"keys":      fill("policies: [{", "x: 1, ", "}]"),
		"same key":  fill("policies: [{static: {", "replicas: 1, ", "}}]"),
		"policies":  fill("policies:\n", "- {name: a, realtime: {}}\n", ""),
		"documents": fill("", "static: {replicas: 1}\n---\n", ""),
		"metrics":   fill("realtime: {metrics: [", "{source: {name: a}, threshold: {high: 1, low: 0}},", "]}"),
		"members":   fill("highest: [", "{static: {replicas: 1}},", "]"),
		"depth":     fill("", "highest: [{", ""),
		"schedule":  fill("cron: {policies: [", "{name: a, schedule: '* * * * *', targetReplicas: 1},", "]}"),
		"zones":     "cron: {policies: [" + strings.Repeat("{name: a, schedule: '* * * * *', timeZone: Asia/Tokyo, targetReplicas: 1},", 1000) + "]}",
		"labels":    fill("realtime: {metrics: [{source: {labels: {", "a: 1,", "}}}]}"),
		"long key":  fill("policies: [{", "x", ": 1}]"),
		"value":     fill("policies: [{name: ", "x", ", static: 5}]"),
		"aliases":   "a: &a [x]\n" + fill("b: [", "*a, ", "]\n")[:1<<17],
	} {
		t.Run(name, func(t *testing.T) {
			d, err := policy.Read([]byte(text), "p.yaml")
			require.Error(t, err)
			require.Nil(t, d)
			require.LessOrEqual(t, strings.Count(err.Error(), "\n"), 100)
			require.Less(t, len(err.Error()), 100_000)
		})
	}
}

func ExampleRead() {
	_, err := policy.Read([]byte(`realtime:
  profile: responsive
  metrics:
    - {source: {engine: VLLM, signal: Waiting}, threshold: {high: 1, low: 2}}
  scaleUpRule: {scaleStep: 1, cooldownSeconds: 30s}
  scaleDwonRule: {scaleStep: 1}
`), "policy.yaml")
	fmt.Println(err)
	// Output:
	// policy.yaml:4: realtime.metrics[0].threshold.high: 1: must be a number above low 2
	// policy.yaml:5: realtime.scaleUpRule.cooldownSeconds: "30s": must be a whole number of seconds, without a unit: 30
	// policy.yaml:6: realtime.scaleDwonRule: a mapping: is not a field here: is it scaleDownRule? the fields are profile, metrics, scaleUpRule, scaleDownRule, cooldownScope, holdWhilePending
}

func ExamplePolicy_Effective() {
	p, err := policy.Named("realtime/kaito")
	if err != nil {
		panic(err)
	}
	text, err := p.Effective()
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// name: realtime/kaito
	// intervalSeconds: 15
	// scaler:
	//   realtime:
	//     profile: kaito
	//     metrics:
	//       - {source: {name: 'vllm:num_requests_waiting', protocol: http}, threshold: {high: 5, low: 1}, role: Both}
	//     scaleUpRule:
	//       scaleStep: 1
	//       cooldownSeconds: 600
	//       stabilizationWindowSeconds: 30
	//     scaleDownRule:
	//       scaleStep: 1
	//       cooldownSeconds: 1800
	//       stabilizationWindowSeconds: 300
	//     cooldownScope: Any
	//     holdWhilePending: false
}

// TestRegressionManyWrongScalersAreReadInLinearTime: each looked at all errors before it. A document of 96 KB took 44 s and 7 GB.
func TestRegressionManyWrongScalersAreReadInLinearTime(t *testing.T) {
	list := "{name: x, highest: [" + strings.Repeat("{static: {replicas: 3}},", 499) + "]},"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := policy.Read([]byte("highest: ["+strings.Repeat(list, 2)+"]"), "f")
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, `f:1: highest[0].highest[1].name: "static": must be unique: highest[0].highest[0] has it`)
	require.ErrorContains(t, err, "f: and 897 more")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "twice as many took 1.7 GB before, and 17 MB now")
}

// TestRegressionNoScalersAreNamed: of an empty list it was said that none of the other kinds was given, and of a manifest, where there
// is no such list, nothing else.
func TestRegressionNoScalersAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"highest: []":                           "p.yaml:1: highest: 0: must be at least one",
		"maxReplicas: 3\nscaler: {highest: []}": "p.yaml:2: scaler.highest: 0: must be at least one",
		"highest:\n- name: a\n  highest: []\n":  "p.yaml:3: highest[0].highest: 0: must be at least one",
		"{}":                                    "p.yaml:1: must have at least one of realtime, proportional, saturation, capacity, static and cron",
		"highest: []\nstatic: {replicas: 1}":    "",
	} {
		_, err := policy.Read([]byte(text), "p.yaml")
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
	_, err := policy.Read([]byte("apiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\nmetadata: {name: a}\nspec:\n"+
		"  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n  maxReplicas: 3\n  scaler: {highest: []}\n"), "p.yaml")
	require.EqualError(t, err, "p.yaml:7: spec.scaler.highest: a list: is not a field of an LLMAutoScaler: it has one of each kind")
}

// TestRegressionTooManyScalers: lists of 1,000 in lists were taken. Of 35,000 scalers in a document of a mebibyte, Effective made 27 MB
// in 20 s.
func TestRegressionTooManyScalers(t *testing.T) {
	of := func(lists, each int) string {
		var b strings.Builder
		b.WriteString("highest:\n")
		for i := range lists {
			fmt.Fprintf(&b, "- name: list%d\n  highest:\n", i)
			for k := range each {
				fmt.Fprintf(&b, "  - {name: n%d, realtime: {}, proportional: {}, saturation: {}}\n", k)
			}
		}
		return b.String()
	}
	d, err := policy.Read([]byte(of(2, 499)), "p.yaml")
	require.NoError(t, err)
	text, err := d.Policies[0].Effective()
	require.NoError(t, err)
	require.Less(t, len(text), 5<<20)
	for _, n := range []int{500, 1000} {
		_, err = policy.Read([]byte(of(2, n)), "p.yaml")
		require.ErrorContains(t, err, "must not be more than 1000 scalers, with those in them")
		require.Equal(t, 1, strings.Count(err.Error(), "must not be more"))
	}
}
