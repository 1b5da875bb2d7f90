package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

const watched = `
maxReplicas: 8
scaler: {realtime: {profile: responsive}}
shadow:
`

func shadows(t *testing.T, text string) ([]policy.ShadowPlan, error) {
	t.Helper()
	d, err := policy.Read([]byte(watched+text), "p.yaml")
	if err != nil {
		return nil, err
	}
	return d.Policies[0].Shadows("spec", scaling.Bounds{Max: 9}, nil)
}

// TestShadows have plans of their own, say what their readings are of, and leave the spec's plan as it is without them.
func TestShadows(t *testing.T) {
	const text = `
  - {name: load, scaler: {proportional: {profile: llm}}}
  - name: query
    scaler:
      proportional: {metrics: [{source: {name: a}, target: 3, measure: Average}, {source: {name: b}, target: 4, measure: Total}]}
  - {name: slow, scaler: {realtime: {metrics: [{source: {engine: VLLM, signal: TTFT}, threshold: {high: 2, low: 1}}, {source: {name: wait_seconds}, threshold: {high: 2, low: 1}}]}}}
  - {name: any, scaler: {highest: [{static: {replicas: 3}}, {saturation: {}}]}}
  - {name: work, scaler: {capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}}}}
`
	plans, err := shadows(t, text)
	require.NoError(t, err)
	want := [][]shadow.Metric{
		{{Name: "InFlight", Fill: 35}},
		{{Name: "a", Fill: 3, Kind: shadow.Average}, {Name: "b", Fill: 4, Kind: shadow.Fleet}},
		{{Name: "TTFT", Fill: 2, Kind: shadow.Fleet}, {Name: "wait_seconds", Fill: 2, Kind: shadow.Fleet}},
		{{Name: "vllm:kv_cache_usage_perc", Fill: 0.8}, {Name: "vllm:num_requests_waiting", Fill: 5}},
		{{Name: "capacity/waiting"}, {Name: "capacity/running"}, {Name: "capacity/kv_use"}},
	}
	c := shadow.Config{}
	for i, p := range plans {
		require.NoError(t, p.Err)
		for k := range want[i] {
			require.Contains(t, p.Metrics[k].Name, want[i][k].Name)
			require.Equal(t, want[i][k].Kind, p.Metrics[k].Kind)
			require.InDelta(t, want[i][k].Fill, p.Metrics[k].Fill, 1e-12)
		}
		require.Len(t, p.Metrics, len(want[i]))
		c.Policies = append(c.Policies, p.Policy)
	}
	require.Len(t, plans[4].Reads, 8, "histograms too")
	_, err = shadow.New(c)
	require.NoError(t, err)
	require.Len(t, policy.ShadowWarnings(plans), 2)
	require.Equal(t, "spec.shadow[2].scaler.realtime.metrics[0].source", plans[2].Warnings[0].Field)

	with, err := policy.Read([]byte(watched+text), "p.yaml")
	require.NoError(t, err)
	require.Len(t, with.Warnings, 2)
	without, err := policy.Read([]byte(strings.TrimSuffix(watched, "shadow:\n")), "p.yaml")
	require.NoError(t, err)
	a, err := with.Policies[0].Plan("spec", scaling.Bounds{Max: 9})
	require.NoError(t, err)
	b, err := without.Policies[0].Plan("spec", scaling.Bounds{Max: 9})
	require.NoError(t, err)
	require.Equal(t, b, a, "a shadow with a higher target has no part in what a missing pod counts")

	again, err := with.Policies[0].Effective()
	require.NoError(t, err)
	d, err := policy.Read(again, "again.yaml")
	require.NoError(t, err, string(again))
	require.Len(t, d.Policies[0].Shadow, 5)
	twice, err := d.Policies[0].Effective()
	require.NoError(t, err)
	require.Equal(t, string(again), string(twice))
}

// TestWrongShadows are refused by a document, each field by its path.
func TestWrongShadows(t *testing.T) {
	for text, want := range map[string]string{
		"  - {name: A, scaler: {static: {replicas: 1}}}": `p.yaml:5: shadow[0].name: "A": must be at most 63 of a-z`,
		"  - {scaler: {static: {replicas: 1}}}":          `shadow[0].name: must be given`,
		"  - {name: a}":                                  `shadow[0].scaler: must be given`,
		"  - {name: a, scaler: {}}":                      `shadow[0].scaler: 0: must have at least one of`,
		"  - {name: a, scaler: {static: {replicas: 1}}}\n  - {name: a, scaler: {static: {replicas: 1}}}":                     `shadow[1].name: "a": must be unique`,
		"  - {name: a, scaler: {realtime: {scaleUpRule: {cooldownSeconds: -1}}}}":                                            `shadow[0].scaler.realtime.scaleUpRule.cooldownSeconds`,
		"  - {name: a, maxReplicas: 3, scaler: {static: {replicas: 1}}}":                                                     `shadow[0].maxReplicas: 3: is not a field here`,
		"  - {name: a, scaler: {proportional: {metrics: [{source: {engine: VLLM, signal: InFlight, port: 9}, target: 3}]}}}": `shadow[0].scaler.proportional.metrics[0].source: "InFlight": must be read as scaler.realtime.metrics[0].source reads it`,
		strings.Repeat("  - {name: a, scaler: {static: {replicas: 1}}}\n", 9):                                                `shadow: 9: must be at most 8`,
	} {
		_, err := shadows(t, text)
		require.ErrorContains(t, err, want)
	}
}

// TestRawShadows: what cannot be read of one is wrong with that one alone, and nothing of it is a panic.
func TestRawShadows(t *testing.T) {
	d, err := policy.Read([]byte(strings.TrimSuffix(watched, "shadow:\n")), "p.yaml")
	require.NoError(t, err)
	spec := &d.Policies[0].Spec
	plans, err := spec.RawShadows("spec", []policy.RawShadow{
		{Name: "good", Scaler: []byte(`{"proportional":{"profile":"llm"}}`)},
		{Name: "none"},
		{Name: "null", Scaler: []byte("null")},
		{Name: "bad", Scaler: []byte(`{"proportionl":{}}`)},
		{Name: "number", Scaler: []byte(`{"realtime":{"metrics":[{"threshold":{"high":"x","low":1}}]}}`)},
		{Name: "text", Scaler: []byte(`{"realtime`)},
		{Name: "list", Scaler: []byte(`[1]`)},
	}, scaling.Bounds{Max: 9}, nil)
	for _, want := range []string{
		"spec.shadow[1].scaler: <nil>: must be given", "spec.shadow[2].scaler", "spec.shadow[3].scaler.proportionl", "is it proportional?",
		`spec.shadow[4].scaler.realtime.metrics[0].threshold.high: "x"`, "spec.shadow[5].scaler", "spec.shadow[6].scaler: ",
	} {
		require.ErrorContains(t, err, want)
	}
	require.Len(t, plans, 7)
	require.NoError(t, plans[0].Err)
	require.NotNil(t, plans[0].Policy.Policy)
	for _, p := range plans[1:] {
		require.Nil(t, p.Policy.Policy)
		var wrong *scaling.FieldError
		require.True(t, errors.As(p.Err, &wrong), "%v", p.Err)
		require.Contains(t, wrong.Field, "spec.shadow[")
	}

	spec.IntervalSeconds = new(int32)
	plans, err = spec.RawShadows("spec", []policy.RawShadow{{Name: "good", Scaler: []byte(`{"proportional":{"profile":"llm"}}`)}}, scaling.Bounds{Max: 9}, nil)
	require.NoError(t, err, "what is wrong with the rest is told of that")
	require.EqualError(t, plans[0].Err, "the rest of the spec is wrong")
}
