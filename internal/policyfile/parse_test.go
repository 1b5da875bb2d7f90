package policyfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/policyfile"
	"github.com/inferscale/inferscale/scaling"
)

func parse(t require.TestingT, text string) []policyfile.Policy {
	policies, err := policyfile.Parse([]byte(text), "policy.yaml")
	require.NoError(t, err)
	return policies
}

// TestParse compares files with their effective configuration, from which what the profile has is left out.
func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		text, name, profile string
		has                 []string
	}{
		"profile alone": {"realtime: {}", "realtime/seed", "seed", []string{
			`{name: "vllm:num_requests_waiting", high: 5, low: 1, role: Both}`, "cooldown: 10m", "cooldown: 30m", "cooldownScope: Any",
		}},
		"another profile": {"realtime: {profile: responsive}", "realtime/responsive", "responsive", []string{"step: 2", "cooldown: 30s", "cooldownScope: PerDirection"}},
		"fields over it":  {"realtime: {profile: responsive, up: {step: 7}}", "realtime/responsive", "responsive", []string{"step: 7", "cooldown: 30s", "cooldown: 1m"}},
		"zero stays":      {"realtime: {up: {cooldown: 0s}}\n    name: n", "n", "seed", []string{"cooldown: 0s", "window: 30s"}},
		"list replaces":   {"realtime: {metrics: [{name: a, high: 2e1}, {name: b, high: 0x10, low: 1_0}]}", "realtime/seed", "seed", []string{`{name: "a", high: 20, low: 0, role: Both}`, `{name: "b", high: 16, low: 10, role: Both}`}},
		"kpa":             {"proportional: {profile: kpa}", "proportional/kpa", "kpa", []string{"maxRate: 1000", "stableWindow: 1m", "window: 6s"}},
		"hpa":             {"proportional: {profile: hpa}", "proportional/hpa", "hpa", []string{"stableWindow: 0s", "{replicas: 4, percent: 0, period: 15s}"}},
		"list emptied":    {"proportional: {profile: hpa, rateLimits: {up: {limits: []}}}", "proportional/hpa", "hpa", []string{"limits: []", "{replicas: 0, percent: 100, period: 15s}"}},
		"llm":             {"proportional: {}", "proportional/llm", "llm", []string{`{name: "in_flight", target: 35, measure: PerPod}`, "stableWindow: 30s"}},
		"saturation":      {"saturation: {kvCacheThreshold: 0.9}", "saturation/default", "default", []string{"kvCacheThreshold: 0.9", "queueLengthThreshold: 5", "mode: Default", `kv: "vllm:kv_cache_usage_perc"`}},
		"literal":         {"saturation: {profile: literal}", "saturation/literal", "literal", []string{"mode: Literal", "transitionTimeout: 0s"}},
		"cron":            {"cron: {policies: [{name: a, schedule: '@daily', replicas: 0}]}", "cron", "", []string{`schedule: "@daily", replicas: 0`}},
		"static":          {"static: {replicas: 0}", "static", "", []string{"replicas: 0"}},
		"anchor":          {"static: &a {replicas: 8}", "static", "", []string{"replicas: 8"}},
	} {
		t.Run(name, func(t *testing.T) {
			policies := parse(t, "policies:\n  - "+tt.text)
			require.Len(t, policies, 1)
			p := policies[0]
			require.Equal(t, tt.name, p.Name)
			require.Equal(t, tt.profile, p.Profile)
			text := string(effective(t, p))
			for _, has := range tt.has {
				require.Contains(t, text, has)
			}
			require.Equal(t, policies, parse(t, text))
			_, err := p.Build(bounds())
			require.NoError(t, err)
		})
	}
}

// TestParseErrors has the exact text for every mistake; the line is counted from the one of policies.
func TestParseErrors(t *testing.T) {
	const algorithms = "realtime, proportional, saturation, cron, static, floor, highest"
	deep := "policies:\n- " + strings.Repeat("floor: {cron: {policies: [{name: a, schedule: '@daily', replicas: 1}]}, base: {", 8) + "static: {replicas: 1}" + strings.Repeat("}}", 8)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"empty":     {"", []string{"p.yaml: must have policies"}},
		"comment":   {"# nothing\n", []string{"p.yaml: must have policies"}},
		"text":      {"hello", []string{`p.yaml:1: file: "hello": must be a mapping; {} is an empty one`}},
		"null":      {"~", []string{`p.yaml:1: file: ~: must be a mapping; {} is an empty one`}},
		"no key":    {"{}", []string{"p.yaml:1: policies: must be given"}},
		"other key": {"policy: []", []string{`p.yaml:1: policy: a list: is not a field here; the fields are policies`, "p.yaml:1: policies: must be given"}},
		"none":      {"policies: []", []string{"p.yaml:1: policies: 0: must be at least one"}},
		"mapping":   {"policies: {}", []string{"p.yaml:1: policies: a mapping: must be a list"}},
		"tab":       {"policies:\n\t- a", []string{"p.yaml:2: must be YAML: found character that cannot start any token"}},
		"not UTF-8": {"\xff\xff\xff", []string{"p.yaml: must be YAML: invalid leading UTF-8 octet"}},
		"documents": {"policies:\n- static: {replicas: 1}\n---\na: b\n", []string{"p.yaml:3: must have one document"}},
		"broken second": {
			"policies:\n- static: {replicas: 1}\n---\na: [\n", []string{"p.yaml:4: must be YAML: did not find expected node content"},
		},
		"large":         {strings.Repeat("#", 1<<20) + "\n", []string{"p.yaml: must not be larger than 1048576 bytes"}},
		"many policies": {"policies: [" + strings.Repeat("a,", 1001) + "]", []string{"p.yaml:1: policies: 1001: must be at most 1000"}},
		"deep":          {deep, []string{`p.yaml:2: policies[0]` + strings.Repeat(".floor.base", 8) + `: a mapping: must not be more than 8 policies deep`}},
		"alias bomb": {
			"policies:\n- static: &a {replicas: &b [1]}\n- {name: b, static: *a}\n- *a\n- {name: c, static: {replicas: *b}}\n",
			[]string{
				"p.yaml:2: policies[0].static.replicas: a list: must be one value",
				"p.yaml:3: policies[1].static: *a: must be written out: aliases are not taken",
				"p.yaml:4: policies[2]: *a: must be written out: aliases are not taken",
				"p.yaml:5: policies[3].static.replicas: *b: must be written out: aliases are not taken",
			},
		},
		"merge key":    {"policies:\n- static: &a {replicas: 1}\n- {name: b, static: {<<: *a}}", []string{"p.yaml:3: policies[1].static.<<: *a: is not a field here; the fields are replicas", "p.yaml:3: policies[1].static.replicas: must be given"}},
		"no algorithm": {"policies:\n\n- name: a", []string{"p.yaml:3: policies[0]: must have exactly one of " + algorithms}},
		"two algorithms": {
			"policies:\n- static: {replicas: 1}\n  realtime: {}", []string{"p.yaml:2: policies[0]: realtime, static: must have exactly one of " + algorithms},
		},
		"unknown algorithm": {"policies:\n- statics: {replicas: 1}", []string{
			"p.yaml:2: policies[0].statics: a mapping: is not a field here; the fields are name, bounds, stabilized, rateLimited, " + algorithms,
			"p.yaml:2: policies[0]: must have exactly one of " + algorithms,
		}},
		"null algorithm":  {"policies:\n- realtime:", []string{"p.yaml:2: policies[0].realtime: null: must be a mapping; {} is an empty one"}},
		"key is a list":   {"policies:\n- static: {[a]: 1, replicas: 1}", []string{"p.yaml:2: policies[0].static.key: a list: must be replicas"}},
		"given twice":     {"policies:\n- static:\n    replicas: 1\n    replicas: 2", []string{"p.yaml:4: policies[0].static.replicas: 2: must be given once; it is on line 3"}},
		"name twice":      {"policies:\n- static: {replicas: 1}\n- static: {replicas: 2}\n- {name: static, static: {replicas: 2}}", []string{`p.yaml:3: policies[1].name: "static": must be unique: policies[0] has it`, `p.yaml:4: policies[2].name: "static": must be unique: policies[0] has it`}},
		"name empty":      {"policies:\n- name: ''\n  static: {replicas: 1}", []string{`p.yaml:2: policies[0].name: "": must not be empty`}},
		"name a number":   {"policies:\n- name: 8\n  static: {replicas: 1}", []string{`p.yaml:2: policies[0].name: 8: must be text; numbers and the like need quotes`}},
		"profile":         {"policies:\n- realtime: {profile: kpa, period: 1}", []string{`p.yaml:2: policies[0].realtime.profile: "kpa": must be seed or responsive`, `p.yaml:2: policies[0].realtime.period: 1: must be a duration with a unit, as in "30s" or "5m", not a number alone`}},
		"profile of cron": {"policies:\n- cron: {profile: a}", []string{`p.yaml:2: policies[0].cron.profile: "a": is not a field here; the fields are mode, policies, windows, outside`, "p.yaml:2: policies[0].cron.policies: 0: must have at least one"}},
		"unknown field":   {"policies:\n- realtime:\n    up: {stap: 1}", []string{`p.yaml:3: policies[0].realtime.up.stap: 1: is not a field here; the fields are step, cooldown, window`}},
		"inner bounds":    {"policies:\n- realtime: {bounds: {min: 1, max: 2}}", []string{`p.yaml:2: policies[0].realtime.bounds: a mapping: is not a field here; the fields are profile, metrics, up, down, period, cooldownScope, holdWhilePending`}},
		"no unit": {"policies:\n- realtime:\n    up: {cooldown: 30, window: 1.5}\n    down: {cooldown: '30', window: soon}\n    period: true", []string{
			`p.yaml:3: policies[0].realtime.up.cooldown: 30: must be a duration with a unit, as in "30s" or "5m", not a number alone`,
			`p.yaml:3: policies[0].realtime.up.window: 1.5: must be a duration with a unit, as in "30s" or "5m", not a number alone`,
			`p.yaml:4: policies[0].realtime.down.cooldown: "30": must be a duration with a unit, as in "30s" or "5m"`,
			`p.yaml:4: policies[0].realtime.down.window: "soon": must be a duration with a unit, as in "30s" or "5m"`,
			`p.yaml:5: policies[0].realtime.period: true: must be a duration with a unit, as in "30s" or "5m"`,
		}},
		"wrong types": {"policies:\n- realtime:\n    metrics:\n    - {name: [a], high: ten, role: both}\n    up: 5\n    down: {step: 1.0}\n    holdWhilePending: yes", []string{
			`p.yaml:4: policies[0].realtime.metrics[0].name: a list: must be one value`,
			`p.yaml:4: policies[0].realtime.metrics[0].high: "ten": must be a number`,
			`p.yaml:4: policies[0].realtime.metrics[0].role: "both": must be Both, UpOnly or DownVeto`,
			`p.yaml:5: policies[0].realtime.up: 5: must be a mapping; {} is an empty one`,
			`p.yaml:6: policies[0].realtime.down.step: 1.0: must be a whole number of at most 2147483647`,
			`p.yaml:7: policies[0].realtime.holdWhilePending: "yes": must be true or false`,
		}},
		"many replicas": {"policies:\n- static: {replicas: 3000000000}", []string{"p.yaml:2: policies[0].static.replicas: 3000000000: must be a whole number of at most 2147483647"}},
		"null value":    {"policies:\n- static: {replicas: }", []string{"p.yaml:2: policies[0].static.replicas: null: must be a whole number of at most 2147483647"}},
		"tag":           {"policies:\n- static: {replicas: !!int eight}", []string{"p.yaml:2: policies[0].static.replicas: eight: must be a whole number of at most 2147483647"}},
		"own rules": {"policies:\n- name: a\n  realtime:\n    metrics:\n    - name: waiting\n      high: 1\n      low: 2\n    - low: .nan\n    up:\n      window: -1s\n", []string{
			`p.yaml:6: policies[0].realtime.metrics[0].high: 1: must be a number above low 2`,
			`p.yaml:8: policies[0].realtime.metrics[1].name: "": must not be empty`,
			`p.yaml:8: policies[0].realtime.metrics[1].low: NaN: must be a number that is not negative`,
			`p.yaml:8: policies[0].realtime.metrics[1].high: 0: must be a number above low NaN`,
			`p.yaml:10: policies[0].realtime.up.window: -1s: must not be negative`,
		}},
		"proportional": {"policies:\n- proportional:\n    profile: hpa\n    panic:\n      window: 1m\n    rateLimits:\n      up:\n        limits:\n        - {period: 15s}\n", []string{
			"p.yaml:5: policies[0].proportional.panic.window: 1m0s: must be 0 without a threshold",
			"p.yaml:9: policies[0].proportional.rateLimits.up.limits[0].replicas: 0: must be set, or percent",
		}},
		"saturation": {"policies:\n- saturation:\n    mode: Literal\n    kvCacheThreshold: 2", []string{
			"p.yaml:2: policies[0].saturation.transitionTimeout: 10m0s: must be 0 in mode Literal",
			"p.yaml:2: policies[0].saturation.downStabilization: 5m0s: must be 0 in mode Literal",
			"p.yaml:4: policies[0].saturation.kvCacheThreshold: 2: must be in [0, 1]",
		}},
		"cron": {"policies:\n- cron:\n    policies:\n    - {name: day, schedule: 0 8 * * *}\n    - name: \"ni\\\"ght].x\"\n      replicas: -1\n      schedule: never\n      timeZone: Nope", []string{
			"p.yaml:4: policies[0].cron.policies[0].replicas: must be given",
			"p.yaml:6: policies[0].cron.policies[1].replicas: -1: must not be negative",
			`p.yaml:7: policies[0].cron.policies[1].schedule: "never": is not a cron expression of five fields: expected exactly 5 fields, found 1: [never]`,
			`p.yaml:8: policies[0].cron.policies[1].timeZone: "Nope": must be in the time zone database: unknown time zone Nope`,
		}},
		"cron mode": {"policies:\n- cron:\n    mode: inWindow\n    windows: []", []string{`p.yaml:3: policies[0].cron.mode: "inWindow": must be HoldLast, Match or InWindow`}},
		"static":    {"policies:\n- static: {replicas: -1}\n- name: b\n  static: {}", []string{"p.yaml:2: policies[0].static.replicas: -1: must not be negative", "p.yaml:4: policies[1].static.replicas: must be given"}},
		"bounds": {"policies:\n- static: {replicas: 1}\n  bounds:\n    min: 3\n    max: 2\n- name: b\n  static: {replicas: 1}\n  bounds: {max: 2}\n- name: c\n  static: {replicas: 1}\n  bounds: 5", []string{
			"p.yaml:5: policies[0].bounds.max: 2: must not be below min 3",
			"p.yaml:8: policies[1].bounds.min: must be given",
			"p.yaml:11: policies[2].bounds: 5: must be a mapping; {} is an empty one",
		}},
		"around": {"policies:\n- static: {replicas: 1}\n  stabilized: {down: -5m}\n  rateLimited:\n    down: {limits: [{percent: -5, period: 1s}], select: max}", []string{
			"p.yaml:3: policies[0].stabilized.down: -5m0s: must not be negative",
			`p.yaml:5: policies[0].rateLimited.down.select: "max": must be Max, Min or Disabled`,
			"p.yaml:5: policies[0].rateLimited.down.limits[0].percent: -5: must not be negative",
		}},
		"floor": {"policies:\n- floor: {}\n- floor:\n    base:\n      static: {replicas: -1}\n    cron:\n      outside: 5\n  name: f\n- floor: 5\n  name: g", []string{
			"p.yaml:2: policies[0].floor.base: must be given",
			"p.yaml:2: policies[0].floor.cron: must be given",
			"p.yaml:5: policies[1].floor.base.static.replicas: -1: must not be negative",
			"p.yaml:6: policies[1].floor.cron.policies: 0: must have at least one",
			"p.yaml:7: policies[1].floor.cron.outside: 5: must be 0 unless mode is InWindow",
			"p.yaml:9: policies[2].floor: 5: must be a mapping; {} is an empty one",
		}},
		"highest": {"policies:\n- highest: {}\n- highest: {members: []}\n  name: h\n- name: i\n  highest:\n    members:\n    - realtime: {}\n    - realtime: {period: 0s}\n", []string{
			"p.yaml:2: policies[0].highest.members: must be given",
			"p.yaml:3: policies[1].highest.members: 0: must be at least one",
			`p.yaml:9: policies[2].highest.members[1].realtime.period: 0s: must be at least one millisecond`,
			`p.yaml:9: policies[2].highest.members[1].name: "realtime/seed": must be unique: policies[2].highest.members[0] has it`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			policies, err := policyfile.Parse([]byte(tt.text), "p.yaml")
			require.EqualError(t, err, strings.Join(tt.want, "\n"))
			require.Nil(t, policies)
			var position *policyfile.PositionError
			require.ErrorAs(t, err, &position)
			require.Equal(t, "p.yaml", position.File)
			var field *scaling.FieldError
			require.ErrorAs(t, err, &field)
		})
	}
}

// TestParseHostile reads files that are made to take long, a quarter of the largest in size, and does not.
func TestParseHostile(t *testing.T) {
	fill := func(before, part, after string) string {
		return before + strings.Repeat(part, (1<<18-len(before)-len(after))/len(part)) + after
	}
	for name, text := range map[string]string{
		"lists":    fill("", "[", ""),
		"mappings": fill("", "{a: ", ""),
		"keys":     fill("policies: [{", "x: 1, ", "}]"),
		"same key": fill("policies: [{static: {", "replicas: 1, ", "}}]"),
		"policies": fill("policies:\n", "- {name: a, realtime: {}}\n", ""),
		"metrics":  fill("policies: [{realtime: {metrics: [", "{name: a, high: 1},", "]}}]"),
		"members":  fill("policies: [{highest: {members: [", "{static: {replicas: 1}},", "]}}]"),
		"schedule": fill("policies: [{cron: {policies: [", "{name: a, schedule: '* * * * *', replicas: 1},", "]}}]"),
		"zones":    "policies: [{cron: {policies: [" + strings.Repeat("{name: a, schedule: '* * * * *', timeZone: Asia/Tokyo, replicas: 1},", 1000) + "]}}]",
		"long key": fill("policies: [{", "x", ": 1}]"),
		"value":    fill("policies: [{name: ", "x", ", static: 5}]"),
		"aliases":  "a: &a [x]\n" + fill("b: [", "*a, ", "]\n")[:1<<17],
	} {
		t.Run(name, func(t *testing.T) {
			policies, err := policyfile.Parse([]byte(text), "p.yaml")
			require.Error(t, err)
			require.Nil(t, policies)
			require.LessOrEqual(t, strings.Count(err.Error(), "\n"), 100)
			require.Less(t, len(err.Error()), 100_000)
		})
	}
}
