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

// TestLengthsAreThoseOfTheirTime has prompts that change their size every quarter of an hour: an hour's mean would hide when
// the fleet had too much to do.
func TestLengthsAreThoseOfTheirTime(t *testing.T) {
	w := sim.Series{
		Step: 15 * time.Minute, Input: sim.Length{Mean: 1000, Deviation: 800, Min: 1, Max: 16000, LogNormal: true},
		Output: sim.Length{Mean: 200, Deviation: 150, Min: 1, Max: 2000, LogNormal: true},
	}
	for i := range 12 {
		w.Rates = append(w.Rates, sim.Rate{PerSecond: 4, Input: []float64{600, 2400}[i%2], Output: 200})
	}
	r := record(t, scenario(sim.Qwen32B(), w, 0))
	traffic, _, err := reduced(t, dumped(t, r)).Workload()
	require.NoError(t, err)
	sums, counts := make([]float64, 12), make([]float64, 12)
	next := traffic.Arrivals(1)
	for q, more := next(); more; q, more = next() {
		if at := q.At % w.Step; q.At < 3*time.Hour && at > 5*time.Minute && at < 10*time.Minute {
			sums[q.At/w.Step] += float64(q.Input)
			counts[q.At/w.Step]++
		}
	}
	for i := range sums {
		require.InDelta(t, 1, sums[i]/counts[i]/w.Rates[i].Input, 0.15, "quarter %d", i)
	}
}
