package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests must not depend on the machine's database

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

func bounds() scaling.Bounds { return scaling.Bounds{Min: 1, Max: 20} }

// one reads a document of one policy.
func one(t require.TestingT, text string) policy.Policy {
	all := parse(t, text)
	require.Len(t, all, 1)
	return all[0]
}

func parse(t require.TestingT, text string) []policy.Policy {
	d, err := policy.Read([]byte(text), "policy.yaml")
	require.NoError(t, err)
	return d.Policies
}

func effective(t require.TestingT, p policy.Policy) string {
	data, err := p.Effective()
	require.NoError(t, err)
	return string(data)
}

// readsBack requires that the effective document of a policy is the policy, and returns it.
func readsBack(t require.TestingT, p policy.Policy) string {
	text := effective(t, p)
	again := one(t, text)
	require.Equal(t, text, effective(t, again))
	require.Equal(t, p.Name, again.Name)
	return text
}

// decide builds a policy and asks it once, at eight in the morning.
func decide(t *testing.T, p policy.Policy, bounds scaling.Bounds, spec int32) scaling.Decision {
	t.Helper()
	live, err := p.Build(bounds)
	require.NoError(t, err)
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	return live.Decide(now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec})
}

func TestNamed(t *testing.T) {
	require.Equal(t, []string{
		"proportional/hpa", "proportional/kpa", "proportional/kthena", "proportional/llm", "realtime/kaito", "realtime/responsive", "saturation/default", "saturation/wva",
	}, policy.Names())
	for _, name := range append(policy.Names(), "static/0", "static/8", "static/2147483647") {
		p, err := policy.Named(name)
		require.NoError(t, err)
		require.Equal(t, name, p.Name)
		_, err = p.Build(bounds())
		require.NoError(t, err)
		readsBack(t, p)
	}
	for _, name := range policy.Names() {
		p, err := policy.Named(name)
		require.NoError(t, err)
		kind, profile, _ := strings.Cut(name, "/")
		same := one(t, fmt.Sprintf("%s: {profile: %s}", kind, profile))
		require.Equal(t, p, same, "a document that names the profile is the same")
	}
	for _, name := range []string{"", "realtime", "realtime/kpa", "static", "static/", "static/-1", "static/2147483648", "static/8/8", "cron", "floor/"} {
		_, err := policy.Named(name)
		require.EqualError(t, err, fmt.Sprintf("policy %q: must be one of proportional/hpa, proportional/kpa, proportional/kthena, proportional/llm, "+
			"realtime/kaito, realtime/responsive, saturation/default, saturation/wva or static/N", name))
	}
}

// TestOldNames are read, with a warning.
func TestOldNames(t *testing.T) {
	for _, tt := range []struct{ old, now, text string }{
		{"realtime/seed", "realtime/kaito", "realtime: {profile: seed}"}, {"saturation/literal", "saturation/wva", "saturation: {profile: literal}"},
	} {
		old, err := policy.Named(tt.old)
		require.NoError(t, err)
		now, err := policy.Named(tt.now)
		require.NoError(t, err)
		require.Equal(t, now, old)
		d, err := policy.Read([]byte("highest:\n- "+tt.text+"\n"), "p.yaml")
		require.NoError(t, err)
		require.Len(t, d.Warnings, 1)
		_, profile, _ := strings.Cut(tt.now, "/")
		require.ErrorContains(t, d.Warnings[0], "is called "+profile+" now")
		require.Equal(t, 2, d.Warnings[0].Line)
		require.Contains(t, effective(t, d.Policies[0]), tt.now)
	}
}

// TestBuildIsTheAlgorithm compares what a document builds with what the packages build, by their decisions.
func TestBuildIsTheAlgorithm(t *testing.T) {
	kaito, err := realtime.New(realtime.Kaito(bounds(), realtime.Metric{Name: "queue", High: 10, Low: 2}))
	require.NoError(t, err)
	llm, err := proportional.New(proportional.LLM(bounds(), proportional.Metric{Name: "queue", Target: 7, Measure: proportional.Average}))
	require.NoError(t, err)
	const (
		thresholds = "realtime: {metrics: [{source: {name: queue}, threshold: {high: 10, low: 2}}]}\n"
		target     = "proportional: {metrics: [{source: {name: queue}, target: 7, measure: Average}]}\n"
	)
	bounded := func(p scaling.Policy) scaling.Policy { return must(t)(scaling.Bounded(p, bounds())) }
	for text, want := range map[string]scaling.Policy{
		thresholds: scaling.New(kaito),
		target:     scaling.New(llm),
		"highest: [{" + target[:len(target)-1] + "}]":  scaling.New(llm),
		target + "stabilization: {}":                   bounded(must(t)(scaling.Stabilized(scaling.New(llm), scaling.Stabilization{}))),
		thresholds + "rateLimits: {up: {select: Min}}": bounded(must(t)(scaling.RateLimited(scaling.New(kaito), scaling.RateLimits{Up: scaling.RateLimit{Select: scaling.SelectMin}}))),
		thresholds + target:                            must(t)(scaling.Highest(scaling.Member{Name: "realtime", Policy: scaling.New(kaito)}, scaling.Member{Name: "proportional", Policy: scaling.New(llm)})),
	} {
		p := one(t, text)
		got, err := p.Build(bounds())
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
	p := one(t, "realtime: {profile: responsive, metrics: [{source: {name: queue}, threshold: {high: 1, low: 0}}]}")
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

// TestBounds come from the document, or from around, or from the caller, and hold for everything.
func TestBounds(t *testing.T) {
	within := scaling.Bounds{Min: 2, Max: 6}
	for text, want := range map[string]int32{
		"static: {replicas: 9}": 6,
		"static: {replicas: 1}": 2,
		"{scaler: {static: {replicas: 1}}, minReplicas: 8, maxReplicas: 9}":                                                                          8,
		"{scaler: {static: {replicas: 9}}, minReplicas: 0, maxReplicas: 20}":                                                                         9,
		"highest: [{static: {replicas: 9}}]":                                                                                                         6,
		"highest: [{name: a, static: {replicas: 1}, minReplicas: 4, maxReplicas: 4}, {name: b, static: {replicas: 3}}]":                              4,
		"highest: [{static: {replicas: 8}, maxReplicas: 8}]":                                                                                         6,
		"{scaler: {highest: [{static: {replicas: 9}, maxReplicas: 9}]}, maxReplicas: 5}":                                                             5,
		"{highest: [{static: {replicas: 1}, minReplicas: 0, maxReplicas: 9}], cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 0}]}}": 2,
		"{static: {replicas: 1}, cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 5}]}}":                                              5,
		"cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 50}]}":                                                                      6,
		"{static: {replicas: 9}, rateLimits: {up: {limits: [{replicas: 1, periodSeconds: 60}]}}}":                                                    4,
		"{static: {replicas: 9}, rateLimits: {up: {select: Disabled}}}":                                                                              3,
		"{static: {replicas: 2}, stabilization: {downSeconds: 300}}":                                                                                 3,
	} {
		d := decide(t, one(t, text), within, 3)
		require.Equal(t, want, d.Replicas, "%s: %s", text, d.Explain())
	}
	// A count outside is taken into the bounds whatever stands around the algorithm.
	for spec, want := range map[int32]int32{1: 2, 9: 6} {
		d := decide(t, one(t, "{static: {replicas: 9}, rateLimits: {up: {select: Disabled}, down: {select: Disabled}}, stabilization: {upSeconds: 300, downSeconds: 300}}"), within, spec)
		require.Equal(t, want, d.Replicas)
	}
}

func TestStatic(t *testing.T) {
	p, err := policy.Named("static/8")
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
	type use struct {
		name string
		fill float64
	}
	for text, want := range map[string][]use{
		"static: {replicas: 1}": nil,
		"cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 1}]}":                                                                                                               nil,
		"realtime: {metrics: [{source: {name: b}, threshold: {high: 10, low: 0}}, {source: {name: a}, threshold: {high: 3, low: 1}}]}":                                                       {{"b", 10}, {"a", 3}},
		"proportional: {metrics: [{source: {name: b}, target: 10, measure: Total}]}":                                                                                                         {{"b", 10}},
		"saturation: {queueSource: {name: q}, queueLengthThreshold: 7}":                                                                                                                      {{"vllm:kv_cache_usage_perc", 0.8}, {"q", 7}},
		"saturation: {kvCacheSource: {engine: SGLang, signal: KVCacheUsage}}":                                                                                                                {{"KVCacheUsage", 0.8}, {"vllm:num_requests_waiting", 5}},
		"highest: [{realtime: {metrics: [{source: {name: a}, threshold: {high: 2, low: 1}}]}}, {proportional: {metrics: [{source: {name: b}, target: 1}, {source: {name: a}, target: 3}]}}]": {{"a", 3}, {"b", 1}},
		"{proportional: {}, cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 5}]}}":                                                                                           {{"InFlight", 35}},
	} {
		p := one(t, text)
		var got []use
		for _, m := range p.Metrics() {
			got = append(got, use{m.Name, m.Fill})
		}
		require.Equal(t, want, got, text)
	}
}

// TestNothing can do nothing.
func TestNothing(t *testing.T) {
	var p policy.Policy
	_, err := p.Build(bounds())
	require.EqualError(t, err, `policy "": scaler: 0: must have at least one of realtime, proportional, saturation, capacity, static and cron`)
	_, err = p.Effective()
	require.Error(t, err)
	require.Empty(t, p.Metrics())
}

func TestBuildErrors(t *testing.T) {
	p := one(t, "{static: {replicas: 1}, name: a}")
	_, err := p.Build(scaling.Bounds{Min: 3, Max: 1})
	require.EqualError(t, err, `policy "a": bounds.max: 1: must not be below min 3`)
	var field *scaling.FieldError
	require.ErrorAs(t, err, &field)
}

// TestRegressionCountsThatAreCutDownAreTold: of a document without bounds, counts above those of its reader were cut down without a word.
func TestRegressionCountsThatAreCutDownAreTold(t *testing.T) {
	warned := func(text string) (all []string) {
		p := one(t, text)
		plan, err := p.Plan("spec", scaling.Bounds{Min: 2, Max: 6})
		require.NoError(t, err)
		for _, w := range plan.Warnings {
			all = append(all, w.Error())
		}
		return all
	}
	require.Equal(t, []string{
		"spec.scaler.cron.windows[0].targetReplicas: 50: is above the upper bound, and cut down to 6",
		"spec.scaler.cron.outside: 7: is above the upper bound, and cut down to 6",
	}, warned("cron: {mode: InWindow, outside: 7, windows: [{name: day, start: '0 8 * * *', end: '0 20 * * *', targetReplicas: 50}, {name: night, start: '0 22 * * *', end: '0 23 * * *', targetReplicas: 6}]}"))
	require.Equal(t, []string{"spec.scaler.cron.policies[0].targetReplicas: 9: is above the upper bound, and cut down to 6"},
		warned("{static: {replicas: 1}, cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 9}]}}"))
	require.Equal(t, []string{"spec.scaler.highest[0].static.replicas: 9: is above the upper bound, and cut down to 6"}, warned("highest: [{static: {replicas: 9}}]"))
	require.Empty(t, warned("{maxReplicas: 9, scaler: {static: {replicas: 9}}}"), "of its own bounds")
	require.Empty(t, warned("cron: {mode: InWindow, windows: [{name: day, start: '0 8 * * *', end: '0 20 * * *', targetReplicas: 0}]}"), "0 is how none is asked for")
}

// TestRegressionANumberThatCannotBeReadBreaksNoOtherRule: it counted as 0, and the first error was of two numbers that nobody had written.
func TestRegressionANumberThatCannotBeReadBreaksNoOtherRule(t *testing.T) {
	_, err := policy.Read([]byte("saturation:\n  kvCacheThreshold: .8\n"), "p.yaml")
	require.EqualError(t, err, `p.yaml:2: saturation.kvCacheThreshold: .8: must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`)
}

// TestRegressionAFieldThatCannotBeReadIsNotMissing: a server with an unreadable field was told to have it, and a list of scalers that is
// none, to be there. An unreadable threshold of panic made the window beside it wrong.
func TestRegressionAFieldThatCannotBeReadIsNotMissing(t *testing.T) {
	for text, want := range map[string]string{
		`capacity: {slo: {ttftSeconds: 2, tpotSeconds: 1}, server: {baseMicroseconds: 4, prefillTokenMicroseconds: 3, maxSeqs: x, tokenBudget: 8, kvTokens: 1000}}`: `p.yaml:1: capacity.server.maxSeqs: "x": must be a whole number of at most 2147483647`,
		`highest: many`: `p.yaml:1: highest: "many": must be a list`,
		`proportional: {panic: {windowSeconds: 6, threshold: .5}}`: `p.yaml:1: proportional.panic.threshold: .5: must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`,
	} {
		_, err := policy.Read([]byte(text), "p.yaml")
		require.EqualError(t, err, want)
	}
	_, err := policy.Read([]byte("capacity: {slo: {ttftSeconds: 2, tpotSeconds: 1}, server: {maxSeqs: 4}}"), "p.yaml")
	require.ErrorContains(t, err, "capacity.server: \"\": must have a name")
}

// TestRegressionALayoutHasWhatIsInAHighest: policies of one layout read each other's states. A member that had another algorithm, or another
// layer around it, refused the state that it found under the same layout, and a model of variantautoscaler held from then on.
func TestRegressionALayoutHasWhatIsInAHighest(t *testing.T) {
	const (
		steps = "realtime: {metrics: [{threshold: {high: 9, low: 1}}]}"
		load  = "proportional: {metrics: [{target: 9}]}"
		clock = `cron: {policies: [{name: c, schedule: "0 8 * * *", targetReplicas: 3}]}`
		ahead = "proportional: {metrics: [{target: 9}], forecast: {}}"
	)
	planned := func(members ...string) policy.Plan {
		p := one(t, "highest: ["+strings.Join(members, ", ")+"]")
		plan, err := p.Plan("", bounds())
		require.NoError(t, err)
		return plan
	}
	plans := [][]string{
		{"{name: a, " + steps + "}"},
		{"{name: a, " + load + "}"},
		{"{name: a, " + ahead + "}"},
		{"{name: a, " + steps + "}", "{name: b, " + load + "}"},
		{"{name: b, " + steps + "}", "{name: a, " + load + "}"},
		{"{name: b, " + ahead + "}", "{name: a, " + load + "}"},
		{"{name: b, " + load + "}", "{name: a, " + ahead + "}"},
		{"{name: a, " + steps + ", " + clock + "}", "{name: b, " + load + "}"},
		{"{name: a, " + steps + ", stabilization: {upSeconds: 60}}", "{name: b, " + load + "}"},
		{"{name: a, " + steps + ", rateLimits: {}}", "{name: b, " + load + "}"},
		{"{name: a, maxReplicas: 3, " + steps + "}", "{name: b, " + load + "}"},
		{"{name: a, highest: [{maxReplicas: 3, " + steps + "}]}", "{name: b, " + load + "}"},
		{"{name: a, highest: [{" + steps + "}]}", "{name: b, " + load + "}"},
	}
	for _, stored := range plans {
		before := planned(stored...)
		state, err := before.Policy.MarshalJSON()
		require.NoError(t, err)
		for _, members := range plans {
			if after := planned(members...); after.Layout == before.Layout {
				require.NoError(t, after.Policy.UnmarshalJSON(state), "%v reads the state of %v", members, stored)
			}
		}
	}
	tuned := "{name: a, " + strings.Replace(steps, "9", "12", 1) + "}"
	require.Equal(t, planned(plans[3]...).Layout, planned(plans[3][1], tuned).Layout, "numbers and order are not in the layout")
}

// TestRegressionAStableWindowThatIsNeverCovered: the simulator, whose rounds are 60 s apart to the nanosecond, took a fleet without load from
// six replicas to one. Where each gap is 5 ms longer than two windows of 30 s all six stay for good, and reading the document told nobody.
func TestRegressionAStableWindowThatIsNeverCovered(t *testing.T) {
	const text = "{maxReplicas: 8, intervalSeconds: %d, scaler: {proportional: {%smetrics: [{target: 9}]}}}"
	for _, c := range []struct {
		interval int
		more     string
		window   int // that is warned of
	}{{59, "", 0}, {60, "", 30}, {120, "profile: kpa, ", 60}, {60, "stableWindowSeconds: 31, ", 0}, {60, "stableWindowSeconds: 0, ", 0}, {3600, "profile: hpa, ", 0}} {
		d, err := policy.Read(fmt.Appendf(nil, text, c.interval, c.more), "d.yaml")
		require.NoError(t, err)
		var told []string
		for _, w := range d.Warnings {
			told = append(told, w.Error())
		}
		var want []string
		if c.window > 0 {
			want = append(want, fmt.Sprintf("d.yaml:1: scaler.proportional.stableWindowSeconds: %d: is not more than half of the interval of %s: "+
				"where decisions are further apart than two windows, no replica is ever removed", c.window, time.Duration(c.interval)*time.Second))
		}
		require.Equal(t, want, told)
		p, err := d.Policies[0].Build(bounds())
		require.NoError(t, err)
		now, spec := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), int32(6)
		for range 60 {
			now = now.Add(time.Duration(c.interval)*time.Second + 5*time.Millisecond)
			one := p.Decide(now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec, Readings: []scaling.Reading{scaling.Exactly(policy.DefaultMetricName, 0)}})
			if one.Acts() {
				p.Applied(now, spec, one.Replicas)
				spec = one.Replicas
			}
		}
		require.Equal(t, c.window > 0, spec == 6, "%d %s", c.interval, c.more)
	}
}
