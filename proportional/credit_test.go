package proportional_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// TestDownRateCountsFromWhatIsReadyOrFromWhatWasAskedFor: with the start-up credit replicas that are still starting count
// as ready, whichever is more.
func TestDownRateCountsFromWhatIsReadyOrFromWhatWasAskedFor(t *testing.T) {
	for _, row := range []struct {
		credit bool
		ready  int32
		want   string
	}{
		{false, 4, "Down 8 -> 2"}, {true, 4, "Down 8 -> 4"}, {true, 8, "Down 8 -> 4"}, {true, 12, "Down 8 -> 6"}, {false, 12, "Down 8 -> 6"},
	} {
		c := proportional.Config{
			Bounds: scaling.Bounds{Min: 1, Max: 20}, Metrics: []proportional.Metric{{Name: "inflight", Target: 10, Measure: proportional.Total}},
			StartupCredit: row.credit,
		}
		c.Down.MaxRate = 2
		_, d := build(t, c).Decide(proportional.State{}, start, scaling.Observation{
			SpecReplicas: 8, ReadyReplicas: row.ready, Readings: []scaling.Reading{scaling.Exactly("inflight", 5)},
		})
		require.Contains(t, d.Explain(), row.want+"\n", "%+v", row)
		require.Equal(t, "DownRate", d.Code().String())
	}
}
