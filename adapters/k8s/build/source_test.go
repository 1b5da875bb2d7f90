package build_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scrape"
)

// TestSources is the source as it stands in a manifest, and what is read.
func TestSources(t *testing.T) {
	signal := func(e scrape.Engine, s scrape.Signal, change func(*scrape.Metric)) scrape.Metric {
		m, err := e.Metric(s)
		require.NoError(t, err)
		m.Endpoint.Scheme = "http"
		change(&m)
		return m
	}
	named := func(name string, change func(*scrape.Metric)) scrape.Metric {
		m := scrape.Named(name)
		m.Endpoint.Scheme = "http"
		change(&m)
		return m
	}
	same := func(*scrape.Metric) {}
	match := []scrape.Matcher{{Label: "a", Value: "1"}, {Label: "b", Value: ""}}
	for source, want := range map[string]scrape.Metric{
		`{}`:                                  named("vllm:num_requests_waiting", same),
		`{name: "vllm:num_requests_waiting"}`: named("vllm:num_requests_waiting", same),
		`{port: 9000}`:                        named("vllm:num_requests_waiting", func(m *scrape.Metric) { m.Endpoint.Port = 9000 }),
		`{port: "9000", protocol: https, path: "/m?x=1"}`: named("vllm:num_requests_waiting", func(m *scrape.Metric) {
			m.Endpoint = scrape.Endpoint{Scheme: "https", Port: 9000, Path: "/m?x=1"}
		}),
		`{name: queue, aggregation: Max}`: named("queue", func(m *scrape.Metric) { m.Terms[0].Across = scrape.Max }),
		`{name: queue, labels: {b: "", a: "1"}}`: named("queue", func(m *scrape.Metric) {
			m.Terms[0].Match = match
		}),
		`{engine: VLLM, signal: InFlight}`: signal(scrape.VLLM, scrape.InFlight, same),
		`{engine: VLLM, signal: InFlight, labels: {b: "", a: "1"}, port: 5000}`: signal(scrape.VLLM, scrape.InFlight, func(m *scrape.Metric) {
			m.Endpoint.Port = 5000
			for i := range m.Terms {
				m.Terms[i].Match = append(m.Terms[i].Match, match...)
			}
		}),
		`{engine: TRTLLM, signal: KVCacheUsage}`: signal(scrape.TRTLLM, scrape.KVCacheUsage, same),
		`{engine: Dynamo, signal: KVCacheUsage}`: signal(scrape.Dynamo, scrape.KVCacheUsage, same),
		`{engine: VLLM, signal: TTFT}`:           signal(scrape.VLLM, scrape.TTFT, same),
		`{engine: VLLM, signal: TTFT, quantile: "0.99"}`: signal(scrape.VLLM, scrape.TTFT, func(m *scrape.Metric) {
			m.Terms[0].Read, m.Terms[0].Quantile = scrape.Quantile, .99
		}),
	} {
		p := plan(t, "scaler: {realtime: {metrics: [{source: "+source+", threshold: {high: 1, low: 0}}]}}")
		want.Fill = 1
		require.Len(t, p.Scrape.Metrics, 1)
		for _, series := range [][]scrape.Series{want.Terms, want.Over, p.Scrape.Metrics[0].Terms, p.Scrape.Metrics[0].Over} {
			for i := range series {
				if len(series[i].Match) == 0 {
					series[i].Match = nil
				}
			}
		}
		require.Equal(t, want, p.Scrape.Metrics[0], source)
		_, err := scrape.New(p.Scrape)
		require.NoError(t, err)
	}
}

// TestEverySignal builds what every engine has, and refuses what it has not.
func TestEverySignal(t *testing.T) {
	for _, e := range scrape.Engines() {
		for _, s := range scrape.Signals() {
			text := "scaler: {realtime: {metrics: [{source: {engine: " + e.String() + ", signal: " + s.String() + "}, threshold: {high: 1, low: 0}}]}}"
			if _, err := e.Metric(s); err != nil {
				refused(t, text, "spec.scaler.realtime.metrics[0].source.signal: "+s.String()+": "+e.String()+" has none")
				continue
			}
			require.Equal(t, s.String(), plan(t, text).Scrape.Metrics[0].Name)
		}
	}
}

// TestShared is a metric that both scalers read: it is read once, and a missing pod counts as what is higher.
func TestShared(t *testing.T) {
	p := plan(t, `
scaler:
  realtime: {metrics: [{source: {name: queue}, threshold: {high: 7, low: 1}}]}
  proportional: {metrics: [{source: {name: queue}, target: 9}, {source: {name: other}, target: 3}]}
`)
	require.Len(t, p.Scrape.Metrics, 2)
	require.Equal(t, "queue", p.Scrape.Metrics[0].Name)
	require.InDelta(t, 9, p.Scrape.Metrics[0].Fill, 0)
	require.Equal(t, "other", p.Scrape.Metrics[1].Name)
	require.Equal(t, "realtime+proportional", p.Kinds)

	refused(t, `
scaler:
  realtime: {metrics: [{source: {name: queue}, threshold: {high: 7, low: 1}}]}
  proportional: {metrics: [{source: {name: queue, port: 9000}, target: 9}]}
`, "spec.scaler.proportional.metrics[0].source: queue: must be read as spec.scaler.realtime.metrics[0].source reads it, which has the same name")
}
