package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// recommends is a comparison in which capacity is the cheapest that attains the goal, and a named policy the next.
func recommends(engine string) *comparison {
	w := world{bounds: scaling.Bounds{Min: 2, Max: 9}, workload: "chat", engine: engine, title: "traffic"}
	w.SLO = sim.SLO{TTFT: 2 * time.Second, TPOT: 80 * time.Millisecond}
	w.Types = []sim.Type{{Server: sim.Qwen32B(), Startup: sim.ColdStart(100 * time.Second)}}
	w.Scrape.Interval, w.Control.Interval = 15*time.Second, 15*time.Second
	named := func(name string) *line {
		return &line{contender: contender{name: name, sort: ofPolicy}, summary: summary{attains: true, attained: estimate{Mean: 0.995}}}
	}
	return &comparison{world: &w, alpha: 0.99, lines: []*line{named(learnedName), named("proportional/llm")}}
}

// TestManifestOfCapacity: it could not be recommended in a manifest, which has the server with which it was simulated.
func TestManifestOfCapacity(t *testing.T) {
	for engine, want := range map[string]string{"": "capacity", "SGLang": "capacity", "LlamaCPP": "proportional/llm"} {
		var text strings.Builder
		require.NoError(t, recommends(engine).llmAutoScaler(&text))
		d, err := policy.Read([]byte(text.String()), "manifest")
		require.NoError(t, err)
		require.Equal(t, "chat", d.Policies[0].Name)
		require.Contains(t, text.String(), "# "+want+": 99.50 % of the requests in time")
		if want == "capacity" {
			require.Contains(t, text.String(), "tpotSeconds: \"0.08\"")
			require.Contains(t, text.String(), "baseMicroseconds: 14000")
			require.Contains(t, text.String(), "coldStartSeconds: 100")
			require.Contains(t, text.String(), "engine: "+map[string]string{"": "VLLM", "SGLang": "SGLang"}[engine])
		}
		require.Contains(t, text.String(), "# Warning: kube-state-metrics said nothing of the workload: check its kind and namespace.\n")
		text.Reset()
		require.NoError(t, recommends(engine).scaledObject(&text))
		require.Contains(t, text.String(), map[string]string{"capacity": "          capacity:\n", "proportional/llm": "          proportional:\n"}[want])
	}
}

// TestRegressionManifestOfCapacityWithoutForecast: once it had a name of its own, it was left out, as if it did not attain the goal.
func TestRegressionManifestOfCapacityWithoutForecast(t *testing.T) {
	for name, mode := range map[string]policy.ForecastMode{learnedName: policy.ForecastAuto, reactiveLearnedName: policy.ForecastDisabled} {
		c := recommends("")
		c.lines[0].name, c.lines = name, c.lines[:1]
		var text strings.Builder
		require.NoError(t, c.llmAutoScaler(&text), name)
		d, err := policy.Read([]byte(text.String()), "manifest")
		require.NoError(t, err)
		require.Equal(t, mode, d.Policies[0].Scaler.Capacity.Forecast.Mode)
		text.Reset()
		require.NoError(t, c.scaledObject(&text))
		require.Contains(t, text.String(), "mode: "+string(mode)+"\n")
	}
}

// TestRegressionNamesInManifestsAreTexts: a namespace or workload called 123, no or 1e3 was a number or a truth value in the manifest: KEDA's
// was refused by the API server, the other was not written.
func TestRegressionNamesInManifestsAreTexts(t *testing.T) {
	for _, name := range []string{"123", "no", "on", "1e3", "0x10", "null", "true", "chat"} {
		c := recommends("")
		c.world.workload, c.world.namespace = name, name
		var auto, keda strings.Builder
		require.NoError(t, c.llmAutoScaler(&auto), name)
		require.NoError(t, c.scaledObject(&keda), name)
		for _, text := range []string{auto.String(), keda.String()} {
			var m struct {
				Metadata struct{ Name, Namespace any }
				Spec     struct{ ScaleTargetRef struct{ Name any } }
			}
			require.NoError(t, sigsyaml.Unmarshal([]byte(text), &m), name)
			require.Equal(t, []any{name, name, name}, []any{m.Metadata.Name, m.Metadata.Namespace, m.Spec.ScaleTargetRef.Name})
		}
	}
}

// TestManifestReadsTheEngine: what was recommended for a fleet of vLLM read port 5000, and for others vLLM's names; what an engine
// does not say is not recommended.
func TestManifestReadsTheEngine(t *testing.T) {
	for _, row := range []struct {
		engine, name, want string
	}{
		{"", "realtime/kaito", "engine: VLLM\n          signal: Waiting"},
		{"VLLM", "realtime/kaito", "engine: VLLM\n          signal: Waiting"},
		{"SGLang", "realtime/kaito", "engine: SGLang\n          signal: Waiting"},
		{"SGLang", "realtime/responsive", "engine: SGLang\n          signal: InFlight"},
		{"SGLang", "proportional/hpa", "engine: SGLang\n          signal: InFlight"},
		{"VLLM", "saturation/default", "kvCacheSource:\n        engine: VLLM\n        signal: KVCacheUsage\n"},
		{"TRTLLM", "saturation/wva", "queueSource:\n        engine: TRTLLM\n        signal: Waiting"},
		{"LlamaCPP", "saturation/wva", ""},
		{"Dynamo", "proportional/llm", "engine: Dynamo\n          signal: InFlight"},
		{"TGI", "proportional/llm", "engine: TGI\n          signal: InFlight"},
	} {
		c := recommends(row.engine)
		c.lines = c.lines[:1]
		c.lines[0].name = row.name
		var text strings.Builder
		err := c.llmAutoScaler(&text)
		if row.want == "" {
			require.ErrorContains(t, err, "none is recommended", row.name)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, text.String(), row.want)
		require.NotContains(t, text.String(), "source: {}")
	}
}

// TestServersHaveTheNamesOfDocuments: each server of a policy document has its name there, and is the same.
func TestServersHaveTheNamesOfDocuments(t *testing.T) {
	for _, name := range policy.Servers() {
		p, ok := (&options{serverName: name}).profile()
		require.True(t, ok, name)
		d, err := policy.Read([]byte(`capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: `+name+"}}\n"), "p.yaml")
		require.NoError(t, err)
		plan, err := d.Policies[0].Plan("", scaling.Bounds{Max: 4})
		require.NoError(t, err)
		require.Equal(t, p.server, plan.Capacity.Server)
		old, ok := (&options{serverName: p.old}).profile()
		require.True(t, ok)
		require.Equal(t, p, old)
	}
}
