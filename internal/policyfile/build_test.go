package policyfile_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/policyfile"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// one reads a file of one policy.
func one(t require.TestingT, text string) policyfile.Policy {
	return parse(t, "policies:\n- "+text)[0]
}

// decide builds a policy and asks it once, at eight in the morning.
func decide(t *testing.T, p policyfile.Policy, bounds scaling.Bounds, spec int32, readings ...scaling.Reading) scaling.Decision {
	t.Helper()
	live, err := p.Build(bounds)
	require.NoError(t, err)
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	return live.Decide(now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec, Readings: readings})
}

func TestNamed(t *testing.T) {
	require.Equal(t, []string{
		"proportional/hpa", "proportional/kpa", "proportional/kthena", "proportional/llm", "realtime/responsive", "realtime/seed", "saturation/default", "saturation/literal",
	}, policyfile.Names())
	for _, name := range append(policyfile.Names(), "static/0", "static/8", "static/2147483647") {
		p, err := policyfile.Named(name)
		require.NoError(t, err)
		require.Equal(t, name, p.Name)
		_, err = p.Build(bounds())
		require.NoError(t, err)
		require.Equal(t, []policyfile.Policy{p}, parse(t, string(effective(t, p))))
		if p.Profile != "" {
			require.Equal(t, one(t, fmt.Sprintf("%s: {profile: %s}", p.Algorithm, p.Profile)), p, "a file that names the profile is the same")
		}
	}
	for _, name := range []string{"", "realtime", "realtime/kpa", "static", "static/", "static/-1", "static/2147483648", "static/8/8", "cron", "floor/"} {
		_, err := policyfile.Named(name)
		require.EqualError(t, err, fmt.Sprintf("policy %q: must be one of proportional/hpa, proportional/kpa, proportional/kthena, proportional/llm, "+
			"realtime/responsive, realtime/seed, saturation/default, saturation/literal or static/N", name))
	}
}

// TestBuildIsTheAlgorithm compares what a file builds with what the packages build, by their states.
func TestBuildIsTheAlgorithm(t *testing.T) {
	seed, err := realtime.New(realtime.Kaito(bounds(), realtime.Metric{Name: "queue", High: 10, Low: 2}))
	require.NoError(t, err)
	llm, err := proportional.New(proportional.LLM(bounds(), proportional.Metric{Name: "queue", Target: 7, Measure: proportional.Average}))
	require.NoError(t, err)
	for text, want := range map[string]scaling.Policy{
		"realtime: {profile: seed, metrics: [{name: queue, high: 10, low: 2}]}":                      scaling.New(seed),
		"proportional: {profile: llm, metrics: [{name: queue, target: 7, measure: Average}]}":        scaling.New(llm),
		"proportional: {metrics: [{name: queue, target: 7, measure: Average}]}\n  stabilized: {}":    must(t)(scaling.Stabilized(scaling.New(llm), scaling.Stabilization{})),
		"realtime: {metrics: [{name: queue, high: 10, low: 2}]}\n  rateLimited: {up: {select: Min}}": must(t)(scaling.RateLimited(scaling.New(seed), scaling.RateLimits{Up: scaling.RateLimit{Select: scaling.SelectMin}})),
	} {
		got, err := one(t, text).Build(bounds())
		require.NoError(t, err)
		now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
		for i := range 40 {
			obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly("queue", float64(i%25))}}
			a, b := got.Decide(now, obs), want.Decide(now, obs)
			require.Equal(t, b.Explain(), a.Explain())
			now = now.Add(15 * time.Second)
		}
	}
}

func must(t *testing.T) func(scaling.Policy, error) scaling.Policy {
	t.Helper()
	return func(p scaling.Policy, err error) scaling.Policy {
		t.Helper()
		require.NoError(t, err)
		return p
	}
}

// TestBuildIsFresh builds twice: what one remembers, the other does not know.
func TestBuildIsFresh(t *testing.T) {
	p := one(t, "realtime: {profile: responsive, metrics: [{name: queue, high: 1}]}")
	first, err := p.Build(bounds())
	require.NoError(t, err)
	fresh, err := json.Marshal(first)
	require.NoError(t, err)
	first.Decide(time.Unix(0, 0), scaling.Observation{SpecReplicas: 1, ReadyReplicas: 1, Readings: []scaling.Reading{scaling.Exactly("queue", 5)}})
	used, err := json.Marshal(first)
	require.NoError(t, err)
	require.NotEqual(t, string(fresh), string(used))
	second, err := p.Build(bounds())
	require.NoError(t, err)
	state, err := json.Marshal(second)
	require.NoError(t, err)
	require.Equal(t, string(fresh), string(state))
}

// TestBounds come from the file, or from around, or from the caller, and hold for everything.
func TestBounds(t *testing.T) {
	within := scaling.Bounds{Min: 2, Max: 6}
	for text, want := range map[string]int32{
		"static: {replicas: 9}":                              6,
		"static: {replicas: 1}":                              2,
		"static: {replicas: 9}\n  bounds: {min: 1, max: 8}":  8,
		"static: {replicas: 9}\n  bounds: {min: 0, max: 20}": 9,
		"highest: {members: [{static: {replicas: 9}}]}":      6,
		"highest: {members: [{name: a, static: {replicas: 9}, bounds: {min: 1, max: 4}}, {name: b, static: {replicas: 3}}]}":               4,
		"highest: {members: [{static: {replicas: 9}, bounds: {min: 1, max: 8}}]}":                                                          6,
		"highest: {members: [{static: {replicas: 9}}]}\n  bounds: {min: 1, max: 5}":                                                        5,
		"floor: {base: {static: {replicas: 1}, bounds: {min: 0, max: 9}}, cron: {policies: [{name: a, schedule: '@daily', replicas: 0}]}}": 2,
		"floor: {base: {static: {replicas: 1}}, cron: {policies: [{name: a, schedule: '@daily', replicas: 5}]}}":                           5,
		"cron: {policies: [{name: a, schedule: '@daily', replicas: 50}]}":                                                                  6,
		"static: {replicas: 9}\n  rateLimited: {up: {limits: [{replicas: 1, period: 1m}]}}":                                                4,
		"static: {replicas: 9}\n  rateLimited: {up: {select: Disabled}}":                                                                   3,
		"static: {replicas: 2}\n  stabilized: {down: 5m}":                                                                                  3,
	} {
		d := decide(t, one(t, text), within, 3)
		require.Equal(t, want, d.Replicas, "%s: %s", text, d.Explain())
	}
	// A count outside is taken into the bounds whatever stands around the algorithm.
	for spec, want := range map[int32]int32{1: 2, 9: 6} {
		d := decide(t, one(t, "static: {replicas: 9}\n  rateLimited: {up: {select: Disabled}, down: {select: Disabled}}\n  stabilized: {up: 5m, down: 5m}"), within, spec)
		require.Equal(t, want, d.Replicas)
	}
}

func TestStatic(t *testing.T) {
	p, err := policyfile.Named("static/8")
	require.NoError(t, err)
	for _, tt := range []struct {
		spec int32
		want string
	}{
		{3, "Up 3 -> 8: Fixed replicas=8"},
		{8, "Hold at 8: Fixed replicas=8"},
		{9, "Down 9 -> 8: Fixed replicas=8"},
	} {
		d := decide(t, p, bounds(), tt.spec)
		require.Equal(t, tt.want, d.Reason())
	}
	live, err := p.Build(bounds())
	require.NoError(t, err)
	live.Applied(time.Unix(0, 0), 3, 8)
	state, err := json.Marshal(live)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind": "static", "version": 1, "state": {}}`, string(state))
	require.NoError(t, live.UnmarshalJSON(state))
}

func TestMetrics(t *testing.T) {
	use := func(name string, fill float64) policyfile.MetricUse {
		return policyfile.MetricUse{Name: name, Fill: fill}
	}
	for text, want := range map[string][]policyfile.MetricUse{
		"static: {replicas: 1}": nil,
		"cron: {policies: [{name: a, schedule: '@daily', replicas: 1}]}":                                                                             nil,
		"realtime: {metrics: [{name: b, high: 10}, {name: a, high: 3, low: 1}]}":                                                                     {use("b", 10), use("a", 3)},
		"proportional: {metrics: [{name: b, target: 10, measure: Total}]}":                                                                           {use("b", 10)},
		"saturation: {queue: q, queueLengthThreshold: 7}":                                                                                            {use("vllm:kv_cache_usage_perc", 0.8), use("q", 7)},
		"highest: {members: [{realtime: {metrics: [{name: a, high: 2}]}}, {proportional: {metrics: [{name: b, target: 1}, {name: a, target: 3}]}}]}": {use("a", 3), use("b", 1)},
		"floor: {base: {proportional: {}}, cron: {policies: [{name: a, schedule: '@daily', replicas: 5}]}}":                                          {use("in_flight", 35)},
	} {
		require.Equal(t, want, one(t, text).Metrics(), text)
	}
}

// TestNothing can do nothing.
func TestNothing(t *testing.T) {
	var p policyfile.Policy
	_, err := p.Build(bounds())
	require.EqualError(t, err, `policy "": policy: must come from Parse or Named`)
	_, err = p.Effective()
	require.Error(t, err)
	require.Empty(t, p.Metrics())
}

func TestBuildErrors(t *testing.T) {
	p := one(t, "static: {replicas: 1}\n  name: a")
	_, err := p.Build(scaling.Bounds{Min: 3, Max: 1})
	require.EqualError(t, err, `policy "a": bounds.max: 1: must not be below min 3`)
	var field *scaling.FieldError
	require.ErrorAs(t, err, &field)
}

func ExampleParse() {
	_, err := policyfile.Parse([]byte(`policies:
  - name: mine
    realtime:
      profile: responsive
      metrics:
        - {name: "vllm:num_requests_waiting", high: 1, low: 2}
      up: {step: 1, cooldown: 30}
      donw: {step: 1}
`), "policy.yaml")
	fmt.Println(err)
	// Output:
	// policy.yaml:6: policies[0].realtime.metrics[0].high: 1: must be a number above low 2
	// policy.yaml:7: policies[0].realtime.up.cooldown: 30: must be a duration with a unit, as in "30s" or "5m", not a number alone
	// policy.yaml:8: policies[0].realtime.donw: a mapping: is not a field here; the fields are profile, metrics, up, down, period, cooldownScope, holdWhilePending
}

func ExamplePolicy_Effective() {
	p, err := policyfile.Named("realtime/seed")
	if err != nil {
		panic(err)
	}
	text, err := p.Effective()
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// policies:
	//   - name: "realtime/seed"
	//     realtime:
	//       profile: seed
	//       metrics:
	//         - {name: "vllm:num_requests_waiting", high: 5, low: 1, role: Both}
	//       up:
	//         step: 1
	//         cooldown: 10m
	//         window: 30s
	//       down:
	//         step: 1
	//         cooldown: 30m
	//         window: 5m
	//       period: 15s
	//       cooldownScope: Any
	//       holdWhilePending: false
}
