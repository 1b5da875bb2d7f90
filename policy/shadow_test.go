package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
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

const measured = `
    server:
      format: inferscale.server/v1
      name: "fitted"
      base: {value: 0.02, lower: 0.019, upper: 0.021, source: measured}
      prefillToken: {value: 6.41e-05, source: measured}
      sequence: {value: 3e-05, source: measured}
      kvToken: {value: 3.9e-08, source: measured, unknown: "K hardly varied"}
      maxSeqs: 128
      tokenBudget: 4096
      kvTokens: 200000
      startup: {starts: 12, p50: 90.5, p90: 120, p99: 150, max: 150, p50Lower: 80, p50Upper: 100, source: measured}
`

// TestAttainment takes the server's file as it is written, and reads beside the shadows what a replay takes.
func TestAttainment(t *testing.T) {
	text := watched + "  - {name: a, scaler: {static: {replicas: 2}}}\nattainment: {slo: {ttftSeconds: 2, tpotSeconds: \"0.1\"}, server:" +
		` {format: inferscale.server/v1, base: 0.02, prefillToken: 1e-4, sequence: 0, kvToken: 0, maxSeqs: 1, tokenBudget: 1, kvTokens: 1}}` + "\n"
	_, err := policy.Read([]byte(text), "p.yaml")
	require.NoError(t, err)

	text = watched + "  - {name: a, scaler: {static: {replicas: 2}}}\nattainment:\n    slo: {ttftSeconds: 2, tpotSeconds: \"0.1\"}" + measured + "    source: {engine: SGLang, port: 9}\n"
	d, err := policy.Read([]byte(text), "p.yaml")
	require.NoError(t, err)
	require.Len(t, d.Warnings, 1)
	require.EqualError(t, d.Warnings[0], `p.yaml:14: attainment.server.kvToken: "unknown": is not known beyond the loads that were seen: K hardly varied`)
	spec := &d.Policies[0].Spec
	plans, err := spec.Shadows("spec", scaling.Bounds{Max: 9}, nil)
	require.NoError(t, err)
	a, err := spec.Attained("spec", plans, scaling.Bounds{Max: 9})
	require.NoError(t, err)
	require.Equal(t, sim.Server{Name: "fitted", Base: 0.02, PrefillToken: 6.41e-5, Sequence: 3e-5, KVToken: 3.9e-8, MaxSeqs: 128, TokenBudget: 4096, KVTokens: 200000}, a.Capacity.Server)
	require.Equal(t, sim.SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond}, a.Capacity.SLO)
	require.Equal(t, 90500*time.Millisecond, a.Capacity.ColdStart)
	require.Equal(t, 15*time.Second, a.Capacity.Control)
	require.Len(t, a.Reads, len(capacity.Metrics()))
	require.Equal(t, policy.Engine("SGLang"), a.Reads[0].Source.Engine)
	require.Equal(t, 9, a.Reads[0].Source.Port.Int())

	again, err := d.Policies[0].Effective()
	require.NoError(t, err)
	e, err := policy.Read(again, "again.yaml")
	require.NoError(t, err, string(again))
	twice, err := e.Policies[0].Effective()
	require.NoError(t, err)
	require.Equal(t, string(again), string(twice))
	b, err := e.Policies[0].Attained("spec", plans, scaling.Bounds{Max: 9})
	require.NoError(t, err)
	require.Equal(t, a.Capacity, b.Capacity)

	spec.Attainment = nil
	none, err := spec.Attained("spec", plans, scaling.Bounds{Max: 9})
	require.NoError(t, err)
	require.Nil(t, none)
}

// TestWrongAttainment is refused by a document, each field by its path, and is wrong alone: the spec's plan is as it was.
func TestWrongAttainment(t *testing.T) {
	const slo = "  slo: {ttftSeconds: 2, tpotSeconds: \"0.1\"}\n"
	for text, want := range map[string]string{
		slo:                            "attainment.server: must be given",
		slo + "  server: {}":           "attainment.server.format: not there: must be inferscale.server/v1",
		slo + "  server: null":         "attainment.server: null: must be a mapping",
		slo + "  server: [1]":          "attainment.server: a list: must be a mapping",
		slo + "  server: {1: 2}":       "attainment.server: a mapping: must be what JSON can have: keys that are text",
		slo + "  server: {{a: b}: 2}":  "attainment.server: a mapping: must be what JSON can have: keys that are text",
		slo + "  server: {base: .inf}": "attainment.server: a mapping: must be what JSON can have",
		slo + "  server: {format: inferscale.server/v1, base: x}":                                      "attainment.server.base: x: must be a number",
		slo + strings.Replace(measured[1:], "value: 0.02, lower: 0.019", "value: 0.02, lower: 0.5", 1): "attainment.server.base.lower: 0.5: must be within 0 and the value",
		slo + strings.Replace(measured[1:], "128", "128.5", 1):                                         "attainment.server.maxSeqs.value: 128.5: must be whole",
		slo + strings.Replace(measured[1:], "200000", "0", 1):                                          "attainment.server.kvTokens: 0: must be within 1 and 1000000000",
		slo + strings.Replace(measured[1:], "3e-05", "4000", 1):                                        "attainment.server.sequence: 4000: must be seconds",
		strings.Replace(slo, "2,", "0,", 1) + measured[1:]:                                             `attainment.slo.ttftSeconds: "0": must be above 0`,
		slo + measured[1:] + "    source: {engine: TGI}":                                               `attainment.source.engine: "TGI": must be VLLM or SGLang`,
	} {
		document := watched + "  - {name: a, scaler: {static: {replicas: 2}}}\nattainment:\n" + indented(text)
		_, err := policy.Read([]byte(document), "p.yaml")
		require.ErrorContains(t, err, want, text)
	}
	_, err := policy.Read([]byte(watched+
		"  - {name: a, scaler: {capacity: {slo: {ttftSeconds: 2, tpotSeconds: 1}, server: {name: qwen3-32b-2xh100}, source: {port: 9}}}}\nattainment:\n"+indented(slo+measured[1:])), "p.yaml")
	require.ErrorContains(t, err, "attainment.source: \"VLLM\": must be read as shadow[0].scaler.capacity.source reads it")
}

// indented puts a text two further in.
func indented(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = "    " + strings.TrimPrefix(strings.TrimPrefix(line, "  "), "  ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestAServerInEights: YAML reads 0256 as 174, and package calibrate reads 256.
func TestAServerInEights(t *testing.T) {
	_, err := policy.ReadAttainment([]byte("slo: {ttftSeconds: 2, tpotSeconds: 1}\nserver:\n  format: inferscale.server/v1\n  maxSeqs: 0256\n"), "attainment")
	require.ErrorContains(t, err, "attainment.server: ")
	require.ErrorContains(t, err, "must have no number that begins with 0, as YAML counts by eights then")
}

// TestAnyServerDocument decodes from whatever JSON an API server has kept: what is wrong with it is told, and never a panic.
func TestAnyServerDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a policy.Attainment
		text := rapid.SampledFrom([]string{"null", "3", `"x"`, "[]", "{}", `{"format":"inferscale.server/v1"}`, `{"format":"inferscale.server/v1","base":{"value":-1}}`, `{"base":1e999}`}).Draw(t, "server")
		require.NoError(t, json.Unmarshal([]byte(`{"slo":{"ttftSeconds":2,"tpotSeconds":"0.1"},"server":`+text+`}`), &a))
		spec := policy.Spec{Settings: policy.Settings{MaxReplicas: 3}, Attainment: &a}
		spec.Scaler.Static = &policy.StaticScaler{Replicas: 2}
		_, err := spec.Attained("spec", nil, scaling.Bounds{})
		require.ErrorContains(t, err, "spec.attainment.server")
		_, err = spec.Plan("spec", scaling.Bounds{})
		require.NoError(t, err)
		_, err = json.Marshal(a)
		require.NoError(t, err)
	})
}

// FuzzReadAttainment gives ReadAttainment any bytes. What it accepts is the same again as JSON, in which it is stored, and can be planned
// or refused; what it refuses, it names by a field under the path.
func FuzzReadAttainment(f *testing.F) {
	const slo = "slo: {ttftSeconds: 2, tpotSeconds: \"0.1\"}\n"
	fitted := strings.ReplaceAll(measured, "\n    ", "\n")
	for _, text := range []string{
		"", slo, slo + fitted, slo + fitted + "source: {engine: SGLang, port: 9}\n", slo + "server: {{a: b}: 2}", slo + "server: {base: .inf}",
		slo + "server:\n  format: inferscale.server/v1\n  maxSeqs: 0256\n", slo + "server: [1]", slo + "server: &a {a: *a}", "---\n---\n",
		`{"slo":{"ttftSeconds":2,"tpotSeconds":0.1},"server":{"format":"inferscale.server/v1","base":0.02,"prefillToken":1e-4,"sequence":0,"kvToken":0,"maxSeqs":1,"tokenBudget":1,"kvTokens":1}}`,
		slo + "server: {format: 2026-01-15, base: 1_000, kvToken: 1e999, maxSeqs: !!binary aGk=}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := policy.ReadAttainment(data, "spec.attainment")
		if err != nil {
			require.Nil(t, a)
			for _, one := range typed.Split(err) {
				var field *scaling.FieldError
				require.ErrorAs(t, one, &field)
				require.True(t, strings.HasPrefix(field.Field, "spec.attainment"), one)
				require.NotEmpty(t, field.Rule, one)
			}
			return
		}
		stored, err := json.Marshal(a)
		require.NoError(t, err)
		again, err := policy.ReadAttainment(stored, "spec.attainment")
		require.NoError(t, err, "%s", stored)
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(stored), string(twice))

		plans := make([]*policy.AttainmentPlan, 2)
		errs := make([]error, 2)
		for i, of := range []*policy.Attainment{a, again} {
			spec := policy.Spec{Settings: policy.Settings{MaxReplicas: 3}, Attainment: of}
			plans[i], errs[i] = spec.Attained("spec", nil, scaling.Bounds{Max: 3})
		}
		require.Equal(t, errs[0] == nil, errs[1] == nil, "%v and %v", errs[0], errs[1])
		if errs[0] == nil {
			require.Equal(t, plans[0], plans[1])
			require.NoError(t, plans[0].Capacity.Server.Validate("server"))
		}
	})
}
