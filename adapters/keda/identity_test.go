package keda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/inferscale/inferscale/policy"
)

// identityIn returns the identity of metadata in mode replicas; those of mode metric have none.
func identityIn(metadata map[string]string) string {
	if m, err := ParseMetadata(metadata); err == nil && m.Mode == Replicas {
		return m.identity()
	}
	return ""
}

func identityOf(t *testing.T, metadata map[string]string) string {
	t.Helper()
	m := parsed(t, metadata)
	return m.identity()
}

// TestIdentity: what is read, and of whom, makes a state another; how it is judged does not.
func TestIdentity(t *testing.T) {
	of := func(more ...string) string { return identityOf(t, replicasMode(more...)) }
	same := of()
	require.Regexp(t, "^realtime-[0-9a-f]{12}$", same)
	for _, more := range [][]string{
		{"threshold", "20"},
		{"lowThreshold", "1"},
		{"maxReplicas", "7"},
		{"interval", "30"},
		{"scrapeTimeout", "1"},
		{"realtime.scaleUpRule.cooldownSeconds", "61"},
		{"scalerAddress", "a:1"},
		{"metricName", "vllm:num_requests_waiting", "metricPort", "5000", "metricPath", "/metrics", "metricProtocol", "http"}, // as the webhook writes it
	} {
		require.Equal(t, same, of(more...), "%v", more)
	}
	seen := map[string][]string{same: nil}
	for _, more := range [][]string{
		{"metricName", "other"},
		{"metricPort", "8000"},
		{"metricPort", "http"},
		{"metricPath", "/m"},
		{"metricProtocol", "https"},
		{"aggregation", "Max"},
		{"engine", "VLLM", "signal", "TTFT"},
		{"engine", "VLLM", "signal", "TTFT", "quantile", "0.5"},
		{"engine", "VLLM", "signal", "TTFT", "quantile", "0.99"},
		{"engine", "VLLM", "signal", "TTFT", "quantile", "0.99", "metricPort", "9000"},
		{"targetName", "other"},
		{"targetAPIVersion", "kaito.sh/v1beta1", "targetKind", "InferenceSet"},
		{"cron.policies", `[{name: a, schedule: "0 0 * * *", targetReplicas: 2}]`},
		{"stateName", "other"},
	} {
		identity := of(more...)
		require.NotContains(t, seen, identity, "%v", more)
		seen[identity] = more
	}
}

// TestTwoTriggersOfOneScaledObject: each has its own state where they read the same family at other ports, so the window
// of one is not broken by the rounds of the other.
func TestTwoTriggersOfOneScaledObject(t *testing.T) {
	const window = "realtime.scaleUpRule.stabilizationWindowSeconds"
	rounds := func(triggers ...map[string]string) (up int) {
		w := newWorld(t)
		w.load(15)
		var all []Trigger
		for _, metadata := range triggers {
			all = append(all, w.trigger(metadata))
		}
		for range 40 {
			if w.next(all[0]).Value > 4 {
				up++
			}
			for _, other := range all[1:] {
				require.InDelta(t, 4, w.round(other).Value, 0, "its threshold is far above the load")
			}
		}
		return up
	}
	one := replicasMode(window, "60", "metricPort", "8000")
	alone := rounds(one)
	require.Positive(t, alone)
	require.Equal(t, alone, rounds(one, replicasMode(window, "60", "metricPort", "9000", "threshold", "1000", "lowThreshold", "1")))
	require.Equal(t, alone, rounds(one, replicasMode(window, "60", "metricPort", "8000", "threshold", "1000", "lowThreshold", "1", "stateName", "far")))
}

// scaledObjectOf returns a ScaledObject with external triggers.
func scaledObjectOf(t *testing.T, triggers ...map[string]string) Object {
	t.Helper()
	var all []any
	for _, metadata := range triggers {
		values := make(map[string]any)
		for key, value := range metadata {
			values[key] = value
		}
		all = append(all, map[string]any{"type": "external", "metadata": values})
	}
	o, err := ObjectOf(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "chat", "namespace": "models"},
		"spec":     map[string]any{"scaleTargetRef": map[string]any{"name": "chat"}, "minReplicaCount": 1, "maxReplicaCount": 20, "triggers": all},
	}})
	require.NoError(t, err)
	return o
}

// TestTriggersThatWouldShareAState are told so, instead of taking each other's windows away.
func TestTriggersThatWouldShareAState(t *testing.T) {
	one, two := replicasMode("threshold", "10"), replicasMode("threshold", "20")
	const rule = `stateName: "": must tell this trigger from another of the ScaledObject, which has the same metric of the same pods: they would share one state`
	w := newWorld(t)
	w.load(15)
	w.object = scaledObjectOf(t, one, two)
	for _, metadata := range []map[string]string{one, two} {
		s := w.round(w.trigger(metadata))
		require.EqualError(t, s.Unknown, rule)
		require.EqualError(t, s.ActiveUnknown, rule)
	}
	require.Zero(t, w.store.saves)
	require.Zero(t, w.observes.Load())

	two["stateName"] = "twenty"
	w.object = scaledObjectOf(t, one, two)
	first, second := w.round(w.trigger(one)), w.round(w.trigger(two))
	require.InDelta(t, 5, first.Value, 0)
	require.InDelta(t, 4, second.Value, 0)
	require.Len(t, w.store.data, 2)

	// None of these is another trigger with the same state.
	for _, other := range []map[string]string{
		metricMode(), replicasMode("metricPort", "8000"), replicasMode("scalerName", "theirs"), replicasMode("scalerAddress", "elsewhere:1"),
		replicasMode("threshold", "wrong"),
		{"value": "50"},
	} {
		w := newWorld(t)
		w.load(15)
		w.object = scaledObjectOf(t, one, other)
		require.NoError(t, w.round(w.trigger(one)).Unknown, "%v", other)
	}
}

// TestIdentityNamesTheAlgorithms: each that has a state is in the name of the state.
func TestIdentityNamesTheAlgorithms(t *testing.T) {
	const target = `capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}`
	for scaler, want := range map[string]string{
		"realtime: {metrics: [{threshold: {high: 10, low: 5}}]}":                      "realtime",
		"proportional: {metrics: [{target: 3}]}":                                      "proportional",
		"proportional: {metrics: [{target: 3}], forecast: {timeZone: Europe/Berlin}}": "proportional-forecast",
		"saturation: {}":                                  "saturation",
		target + ", forecast: {mode: Disabled}}":          "capacity",
		target + ", forecast: {timeZone: Europe/Berlin}}": "capacity-forecast",
		target + "}":            "capacity-forecast",
		"static: {replicas: 2}": "static",
		"static: {replicas: 2}\nstabilization: {downSeconds: 60}":                                          "static-stabilization",
		"static: {replicas: 2}\nrateLimits: {up: {limits: [{replicas: 2, periodSeconds: 30}]}}":            "static-ratelimits",
		"highest: [{name: a, static: {replicas: 1}}]":                                                      "highest",
		"static: {replicas: 2}\ncron: {policies: [{name: a, schedule: \"0 0 * * *\", targetReplicas: 2}]}": "static-cron",
	} {
		require.Regexp(t, "^"+want+"-[0-9a-f]{12}$", identityOf(t, inDocument(scaler)), scaler)
		require.True(t, isIdentity(identityOf(t, inDocument(scaler))), scaler)
	}
}

// TestIdentityOfWhatIsRead: of whichever algorithm, another source has another state, and one that is spelt out has the same.
func TestIdentityOfWhatIsRead(t *testing.T) {
	of := func(scaler string) string { return identityOf(t, inDocument(scaler)) }
	for _, row := range []struct{ one, other string }{
		{"proportional: {metrics: [{target: 3, source: {name: a}}]}", "proportional: {metrics: [{target: 3, source: {name: b}}]}"},
		{"saturation: {kvCacheSource: {name: a}}", "saturation: {kvCacheSource: {name: b}}"},
		{
			`capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, source: {port: 8000}}`,
			`capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, source: {port: 8001}}`,
		},
		{"highest: [{name: a, proportional: {metrics: [{target: 3, source: {name: a}}]}}]", "highest: [{name: a, proportional: {metrics: [{target: 3, source: {name: b}}]}}]"},
		{"highest: [{name: a, static: {replicas: 1}}]", "highest: [{name: b, static: {replicas: 1}}]"},
	} {
		require.NotEqual(t, of(row.one), of(row.other), row.one)
	}
	const engine = "proportional: {metrics: [{target: 3, source: {engine: VLLM, signal: Waiting%s}}]}"
	require.NotEqual(t, of(fmt.Sprintf(engine, "")), of(fmt.Sprintf(engine, ", port: 5000")), "an engine has a port of its own")
	require.Equal(t, of("proportional: {metrics: [{target: 3}]}"), of("proportional: {metrics: [{target: 3, source: {name: \"vllm:num_requests_waiting\", port: 5000}}]}"))
}

// TestAround: what keeps a state around or within a member of highest is named, the rest is not.
func TestAround(t *testing.T) {
	least := int32(2)
	member := func(change func(*policy.Member)) *policy.Member {
		m := &policy.Member{Name: "m"}
		change(m)
		return m
	}
	within := func(change func(*policy.Member)) func(*policy.Member) {
		return func(m *policy.Member) { m.Highest = []policy.Member{*member(change)} }
	}
	inner := "in m: m " + (&policy.Composite{}).Name()
	for _, row := range []struct {
		change func(*policy.Member)
		want   []string
	}{
		{func(*policy.Member) {}, nil},
		{func(m *policy.Member) { m.MaxReplicas, m.MinReplicas = 3, &least }, nil},
		{func(m *policy.Member) { m.Proportional = &policy.ProportionalScaler{} }, nil},
		{func(m *policy.Member) { m.Proportional = &policy.ProportionalScaler{Forecast: &policy.Forecast{}} }, []string{"proportional.forecast"}},
		{func(m *policy.Member) {
			m.Capacity = &policy.CapacityScaler{Forecast: &policy.Forecast{Mode: policy.ForecastDisabled}}
		}, nil},
		{func(m *policy.Member) { m.Capacity = &policy.CapacityScaler{} }, []string{"capacity.forecast"}},
		{func(m *policy.Member) { m.Stabilization = &policy.Stabilization{} }, []string{"stabilization"}},
		{func(m *policy.Member) { m.RateLimits = &policy.RateLimits{} }, []string{"ratelimits"}},
		{within(func(*policy.Member) {}), []string{inner}},
		{within(func(m *policy.Member) { m.MaxReplicas = 1 }), []string{inner, "bounds"}},
		{within(func(m *policy.Member) { m.MinReplicas = &least }), []string{inner, "bounds"}},
		{within(func(m *policy.Member) { m.RateLimits = &policy.RateLimits{} }), []string{inner, "ratelimits"}},
	} {
		require.Equal(t, row.want, around(member(row.change)))
	}
}

// TestRegressionMembersOfAHighestKeepTheirState: that they stand in another order, or that a named one gets another profile, began all
// states anew: cooldowns, and two weeks of a forecast.
func TestRegressionMembersOfAHighestKeepTheirState(t *testing.T) {
	const (
		a    = "{name: a, realtime: {%smetrics: [{threshold: {high: 5, low: 1}}]}}"
		b    = "{name: b, proportional: {metrics: [{target: 3}], forecast: {}}, stabilization: {downSeconds: 60}}"
		none = "{realtime: {%smetrics: [{threshold: {high: 5, low: 1}}]}}"
	)
	of := func(list string, more ...any) string {
		return identityOf(t, inDocument(fmt.Sprintf("highest: ["+list+"]", more...)))
	}
	require.Equal(t, of(a+", "+b, ""), of(b+", "+a, ""))
	require.Equal(t, of(a+", "+b, ""), of(a+", "+b, "profile: responsive, "))
	require.Equal(t, of(none+", "+b, ""), of(b+", "+none, ""))
	require.NotEqual(t, of(none, ""), of(none, "profile: responsive, "), "its profile is its name")
	require.NotEqual(t, of("{name: a, static: {replicas: 1}, stabilization: {}}, {name: b, static: {replicas: 1}}"), of("{name: a, static: {replicas: 1}}, {name: b, static: {replicas: 1}, stabilization: {}}"))
	within := "{name: c, highest: [%s, %s]}"
	one, two := "{name: x, static: {replicas: 1}}", "{name: y, cron: {policies: [{name: n, schedule: \"0 0 * * *\", targetReplicas: 2}]}, maxReplicas: 4}"
	require.Equal(t, of(within, one, two), of(within, two, one))
	require.NotEqual(t, of(within, one, two), of("{name: d, highest: [%s, %s]}", one, two))
	require.Equal(t, "highest-0a2192b50d3f", of("{name: a, static: {replicas: 1}}, {name: b, static: {replicas: 1}}"), "as it was")
}
