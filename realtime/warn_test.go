package realtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestDecidedTooRarelyIsSaid: decided once a minute, Kaito's windows never fill. Every decision but the first says why;
// at twice the period nothing is said.
func TestDecidedTooRarelyIsSaid(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: "queue", High: 10, Low: 2})
	for _, row := range []struct {
		value  float64
		period time.Duration
		reason string
	}{
		{12, time.Minute, "Hold at 3: UpWindow queue lower=12 > high=10, held=15s < window=30s; DecidedTooRarely queue gap=1m > most=30s"},
		{1, time.Minute, "Hold at 3: DownWindow queue upper=1 < low=2, held=15s < window=5m; DecidedTooRarely queue gap=1m > most=30s"},
		{5, time.Minute, "Hold at 3: Between queue lower=5 <= high=10, upper=5 >= low=2"},
		{1, 30 * time.Second, "Hold at 3: DownWindow queue upper=1 < low=2, held=2m15s < window=5m"},
	} {
		var state realtime.State
		var d scaling.Decision
		now := start
		for i := range 5 {
			state, d = s.Decide(state, now, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly("queue", row.value)}})
			require.NoError(t, scalingtest.Explained(&d))
			if i == 0 {
				require.NotContains(t, d.Reason(), "DecidedTooRarely")
			}
			now = now.Add(row.period)
		}
		require.Equal(t, row.reason, d.Reason())
	}
}

// TestASampleThatWasMissingIsNoLateDecision: every decision came within two periods of the last, so nothing is said of it.
func TestASampleThatWasMissingIsNoLateDecision(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: "queue", High: 10, Low: 2})
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly("queue", 12)}}
	state, _ := s.Decide(realtime.State{}, start, obs)
	state, _ = s.Decide(state, start.Add(30*time.Second), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3})
	_, d := s.Decide(state, start.Add(60*time.Second), obs)
	require.Equal(t, "Hold at 3: UpWindow queue lower=12 > high=10, held=15s < window=30s", d.Reason())
}

// TestMisspeltMetricIsNamed: where no metric has a reading, those that there are under other names are named.
func TestMisspeltMetricIsNamed(t *testing.T) {
	p := build(t, realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "vllm:num_request_waiting", High: 10, Low: 2}))
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
		scaling.Exactly("vllm:num_requests_waiting", 12), scaling.Exactly("vllm:num_requests_running", 3), scaling.Exactly("vllm:num_requests_waiting", 12),
	}}
	d := p.Decide(start, obs)
	require.Equal(t, "Unknown at 3: NoSample vllm:num_request_waiting; Unmatched vllm:num_requests_running; Unmatched vllm:num_requests_waiting", d.Reason())
	require.Equal(t, `Unknown at 3
  NoSample          3 -> 3    vllm:num_request_waiting
warnings
  Unmatched         3 -> 3    vllm:num_requests_running
  Unmatched         3 -> 3    vllm:num_requests_waiting
`, d.Explain())
	require.NoError(t, scalingtest.Explained(&d))

	obs.Readings = append(obs.Readings, scaling.Reading{Metric: "vllm:num_request_waiting", Failed: 3})
	d = p.Decide(start, obs)
	require.Equal(t, "Unknown at 3: NoSample vllm:num_request_waiting", d.Reason(), "a metric whose pods all failed is not misspelt")
}
