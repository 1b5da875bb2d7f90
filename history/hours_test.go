package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/sim"
)

func TestHoursSayWhatWasMissed(t *testing.T) {
	r := record(t, scenario(sim.Qwen32B(), bursts(), 0))
	f := reduced(t, dumped(t, r))
	late, firsts, hours, requests := [2]float64{}, 0.0, 0.0, 0.0
	for _, h := range f.Hours(2500*time.Millisecond, 30*time.Millisecond) { // a bound, and within a bucket
		require.Equal(t, h.Late[0], h.Late[1])
		require.LessOrEqual(t, h.Slow[0], h.Slow[1])
		require.LessOrEqual(t, h.Slow[1], h.Answers)
		late[0] += h.Late[0]
		firsts += h.Firsts
		hours += h.ReplicaHours
		requests += h.Requests
	}
	want := 0.0
	for _, o := range r.Done {
		if o.TTFT > 2500*time.Millisecond {
			want++
		}
	}
	require.InDelta(t, want, late[0], 0.01*firsts)
	require.InDelta(t, spec(r), hours, 1e-9)
	require.InDelta(t, float64(r.Result.Requests), requests, 1e-6)

	m := history.Mixture{{Bounds: []float64{1, 2}, Counts: []float64{5, 3, 2}}, {Bounds: []float64{1.5}, Counts: []float64{4, 1}}}
	low, high := m.Over(1.5)
	require.Equal(t, [2]float64{3, 6}, [2]float64{low, high})
	low, high = m.Over(2)
	require.Equal(t, [2]float64{2, 3}, [2]float64{low, high})
	low, high = history.Mixture(nil).Over(1)
	require.Equal(t, [2]float64{}, [2]float64{low, high})
}
