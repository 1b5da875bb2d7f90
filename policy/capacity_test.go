package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestCapacityOf: what is written for a configuration decides as that does, tuned or not.
func TestCapacityOf(t *testing.T) {
	odd := sim.Qwen32B()
	odd.Base, odd.PrefillToken, odd.Sequence, odd.KVToken, odd.MaxSeqs, odd.KVTokens = 0.0123456789, 1.23e-5, 2.5e-4, 1.25e-9, 77, 123_456
	for _, server := range []sim.Server{sim.Qwen32B(), sim.Llama70BA100(), odd} {
		c := capacity.For(bounds(), sim.SLO{TTFT: 1500 * time.Millisecond, TPOT: 75 * time.Millisecond}, server)
		c.Goal, c.ColdStart = 0.95, 90*time.Second
		s := policy.CapacityOf(c)
		s.Forecast = &policy.Forecast{Mode: policy.ForecastDisabled}
		text, err := json.Marshal(policy.Scaler{Capacity: s})
		require.NoError(t, err)
		p := one(t, string(text))
		got, err := p.Build(bounds())
		require.NoError(t, err, "%s", text)
		scaler, err := capacity.New(c, nil)
		require.NoError(t, err)
		want, spec := scaling.New(scaler), int32(2)
		for i := range 12 {
			now := time.Unix(1e9, 0).Add(time.Duration(i) * 15 * time.Second)
			a, b := got.Decide(now, served(spec, float64(i)*40)), want.Decide(now, served(spec, float64(i)*40))
			require.Equal(t, b.Explain(), a.Explain())
			spec = b.Replicas
		}
		state, err := want.MarshalJSON()
		require.NoError(t, err)
		require.Contains(t, string(state), `"capacity":`, "it was tuned")
	}
	c := capacity.For(bounds(), sim.SLO{TTFT: time.Second, TPOT: time.Second}, odd)
	c.ColdStart = 100 * time.Millisecond
	require.Equal(t, int32(1), *policy.CapacityOf(c).ColdStartSeconds, "never less than a second")
}

// served is what a fleet says that has answered so many requests.
func served(spec int32, n float64) scaling.Observation {
	obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec}
	each := map[string]float64{capacity.PromptSize: 1500, capacity.AnswerSize: 200, capacity.Prefilled: 1500, capacity.TTFT: 0.5, capacity.TPOT: 0.05}
	for _, m := range capacity.Metrics() {
		size, counted := each[m.Name]
		if !counted {
			obs.Readings = append(obs.Readings, scaling.Reading{Metric: m.Name, Lower: 0.1, Upper: 0.1, Values: spec})
			continue
		}
		obs.Histograms = append(obs.Histograms, scaling.Histogram{Metric: m.Name, Bounds: []float64{size, 1e6}, Counts: []float64{n, 0, 0}, Sum: n * size})
	}
	return obs
}

// TestWhatADocumentRefusesIsSaidOnce: a field that the document's rules refuse was refused a second time in the unit of Go, and a
// server whose name is unknown had no step times either.
func TestWhatADocumentRefusesIsSaidOnce(t *testing.T) {
	const slo = `capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: `
	for server, want := range map[string]string{
		`{name: abacus}}`: `capacity.server.name: "abacus": must be qwen3-32b-2xh100, llama2-70b-8xa100, llama2-70b-4xh100 or llama2-70b-8xh100`,
		`{name: qwen3-32b-2xh100, baseMicroseconds: 0, kvTokenMicroseconds: 2000}}`: "capacity.server.baseMicroseconds: \"0\": must be at least 1\n" +
			"capacity.server.kvTokenMicroseconds: \"2000\": must be at most 1000",
		`{name: qwen3-32b-2xh100, prefillTokenMicroseconds: 3600000000}}`: "capacity.server.prefillTokenMicroseconds: 3.6e+09: must make no step of more than 90 days, together with the other times: " +
			"all are times, and not tokens per second",
	} {
		_, err := policy.Read([]byte(slo+server+"\n"), "p.yaml")
		require.Error(t, err)
		require.Equal(t, want, strings.ReplaceAll(err.Error(), "p.yaml:1: ", ""))
	}
}
