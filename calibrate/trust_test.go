package calibrate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

func bounds() []float64 {
	return []float64{0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 40}
}

// hoursOf simulates a server under a schedule of replicas and returns its times by hour, and its replica-hours as asked for.
func hoursOf(t *testing.T, server sim.Server, w sim.Workload, counts []int32, seed uint64) ([]calibrate.Times, float64) {
	t.Helper()
	s := sim.Scenario{
		Name: "replay", Workload: w, SLO: sim.SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond},
		Types:  []sim.Type{{Server: server, Initial: counts[0], Startup: sim.ColdStart(time.Minute)}},
		Scrape: sim.Scrape{Interval: time.Minute}, Control: sim.Control{Interval: 15 * time.Second}, Grace: time.Hour,
	}
	var times []calibrate.Times
	hour := func(at time.Duration) *calibrate.Times {
		for i := len(times); i <= int(at/time.Hour); i++ {
			times = append(times, calibrate.Times{
				From: s.Begin().Add(time.Duration(i) * time.Hour), TTFT: calibrate.NewHistogram(bounds()), TPOT: calibrate.NewHistogram(bounds()),
			})
		}
		return &times[at/time.Hour]
	}
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return sim.Schedule(s.Begin(), time.Hour, counts), nil }, sim.Options{Seed: seed, Request: func(o sim.Outcome) {
		hour(o.Arrived + o.TTFT).TTFT.(*calibrate.Histogram).Add(o.TTFT.Seconds())
		if o.Output > 1 {
			hour(o.Arrived + o.Total).TPOT.(*calibrate.Histogram).Add((o.Total - o.TTFT).Seconds() / float64(o.Output-1))
		}
	}})
	require.NoError(t, err)
	return times, r.AverageSpec * s.Workload.Duration().Hours()
}

// TestTrustHeldOut: a server that is fitted to the first part of a history is believed on the rest, where requests are others of the
// same lengths; one that is a third slower is not, nor one whose prompts take half as long again.
func TestTrustHeldOut(t *testing.T) {
	long.Skip(t)
	server := sim.Qwen32B()
	w := day(10, 1, 5, lengths(3000, 2000, 16000), lengths(500, 300, 4000))
	replicas := []int32{3, 3, 4, 4, 5, 5, 4, 4, 3, 3}
	points := production{server: server, workload: w, replicas: replicas, scrape: 15 * time.Second, counted: true, seed: 1}.points(t)
	at, before, after := calibrate.SplitAt(points, 0.6)
	require.Equal(t, len(points), len(before)+len(after))
	require.False(t, before[len(before)-1].At.After(at))
	fitted, err := calibrate.Fit(before, calibrate.Options{})
	require.NoError(t, err)
	got, err := fitted.Server()
	require.NoError(t, err)

	recorded, hours := hoursOf(t, server, w, replicas, 1)
	recorded = recorded[6:10]
	check := calibrate.Check{TTFT: 0.3, TPOT: 0.01}
	simulated, same := hoursOf(t, got, w, replicas, 2)
	trust, err := calibrate.Compare(recorded, simulated, hours, same, check)
	require.NoError(t, err)
	require.True(t, trust.Trusted(), trust.String())
	require.Equal(t, 4, trust.Counted)
	for k := range trust.Error {
		require.Less(t, trust.Error[k], 0.15, trust.String())
	}
	slower := got
	slower.Base *= 1.35
	slower.PrefillToken *= 1.35
	simulated, _ = hoursOf(t, slower, w, replicas, 2)
	trust, err = calibrate.Compare(recorded, simulated, hours, same, check)
	require.NoError(t, err)
	require.False(t, trust.Trusted())
	require.Contains(t, trust.String(), "not believed: TPOT p50 is off by")
	require.Contains(t, trust.String(), "the simulator is the slower one throughout")

	prompts := got
	prompts.PrefillToken *= 1.5
	simulated, _ = hoursOf(t, prompts, w, replicas, 2)
	trust, err = calibrate.Compare(recorded, simulated, hours, same, check)
	require.NoError(t, err)
	require.Contains(t, trust.String(), "TTFT p50 is off by")

	none, _ := hoursOf(t, got, w, replicas, 2)
	for i := range none {
		none[i].TTFT, none[i].TPOT = calibrate.NewHistogram([]float64{1}), calibrate.NewHistogram([]float64{1})
	}
	trust, err = calibrate.Compare(recorded, none, hours, same, check)
	require.NoError(t, err)
	require.Contains(t, trust.String(), "s recorded and none simulated")
	require.NotContains(t, trust.String(), "NaN")
	require.NotContains(t, trust.String(), "the slower one")

	other, fewer := hoursOf(t, got, w, []int32{3, 3, 4, 4, 5, 5, 4, 4, 3, 2}, 2)
	trust, err = calibrate.Compare(recorded, other, hours, fewer, check)
	require.NoError(t, err)
	require.Contains(t, trust.String(), "the same replicas were not replayed")
}

// TestCompareIsExact: what is compared with itself has no error; a factor is the error; a floor makes it less; hours with few requests
// and hours that only one side has are told.
func TestCompareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		factor := rapid.SampledFrom([]float64{0.25, 0.5, 2, 4}).Draw(t, "factor")
		var a, b []calibrate.Times
		for i := range rapid.IntRange(1, 5).Draw(t, "hours") {
			n := rapid.IntRange(1, 300).Draw(t, "requests")
			one := func(scale float64) calibrate.Times {
				x := calibrate.Times{From: begin.Add(time.Duration(i) * time.Hour)}
				edges := bounds()
				for j := range edges {
					edges[j] *= scale
				}
				h, g := calibrate.NewHistogram(edges), calibrate.NewHistogram(edges)
				for k := range n {
					h.Add(scale * float64(k) / 300)
					g.Add(scale * float64(k) / 3000)
				}
				x.TTFT, x.TPOT = h, g
				return x
			}
			a, b = append(a, one(1)), append(b, one(factor))
		}
		same, err := calibrate.Compare(a, a, 3, 3, calibrate.Check{Least: 1})
		require.NoError(t, err)
		require.True(t, same.Trusted(), same.String())
		require.Zero(t, same.Error)
		off, err := calibrate.Compare(a, b, 3, 3, calibrate.Check{Least: 1})
		require.NoError(t, err)
		for k := range off.Error {
			require.InDelta(t, max(factor-1, 1-factor), off.Error[k], 1e-9)
			require.InDelta(t, factor-1, off.Bias[k], 1e-9)
		}
		floored, err := calibrate.Compare(a, b, 3, 3, calibrate.Check{Least: 1, TTFT: 100, TPOT: 100})
		require.NoError(t, err)
		require.Less(t, floored.Error[0], 0.05)
	})
}

// TestNothingToCompareIsNotTrusted: no hour with enough requests, hours that the simulation does not have, and replica-hours that are not a
// number are reasons, never trust.
func TestNothingToCompareIsNotTrusted(t *testing.T) {
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	h := calibrate.NewHistogram(bounds())
	for range 99 {
		h.Add(0.05)
	}
	few := []calibrate.Times{{From: begin, TTFT: h, TPOT: h}}
	trust, err := calibrate.Compare(few, few, 1, 1, calibrate.Check{})
	require.NoError(t, err)
	require.False(t, trust.Trusted())
	require.Contains(t, trust.String(), "no hour has as many as 100 requests")
	trust, err = calibrate.Compare(few, nil, 1, 1, calibrate.Check{Least: 10})
	require.NoError(t, err)
	require.False(t, trust.Trusted())
	require.Equal(t, [4]float64{1, 1, 1, 1}, trust.Error)
	trust, err = calibrate.Compare(few, few, 1, nan(), calibrate.Check{Least: 10})
	require.NoError(t, err)
	require.False(t, trust.Trusted())
	_, err = calibrate.Compare(nil, nil, 0, 0, calibrate.Check{Limit: -1, TPOT: nan()})
	require.ErrorContains(t, err, "limit: -1")
	require.ErrorContains(t, err, "tpot: NaN")
}

// TestRegressAStretchWithoutDistributionsIsAnError: it once was a nil pointer that was used.
func TestRegressAStretchWithoutDistributionsIsAnError(t *testing.T) {
	_, err := calibrate.Compare([]calibrate.Times{{}}, nil, 1, 1, calibrate.Check{})
	require.EqualError(t, err, `recorded[0]: "no distribution": must have TTFT and TPOT, of no requests an empty Histogram`)
}

// TestRegressionAHistogramOfItsBounds: a histogram that was made of its bounds, without NewHistogram, panicked at the first value.
func TestRegressionAHistogramOfItsBounds(t *testing.T) {
	var none calibrate.Histogram
	none.Add(1)
	require.Equal(t, 1.0, none.Total())
	h := calibrate.Histogram{Bounds: []float64{1, 2}}
	h.Add(1.5)
	require.Equal(t, []float64{0, 1, 0}, h.Counts)
	require.Equal(t, 1.5, h.Quantile(0.5))
}
