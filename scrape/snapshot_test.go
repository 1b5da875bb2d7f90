package scrape

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func countingPage(total float64) string {
	return fmt.Sprintf("# TYPE c_total counter\nc_total{e=\"0\"} %v\nc_total{e=\"1\"} %v\n", total, 2*total) +
		histogramPage([]float64{total, 2 * total, 2 * total, 2 * total, total})
}

func countingMetrics(q, fill float64) []Metric {
	return []Metric{
		{Name: "rate", Fill: fill, Terms: []Series{{Families: []string{"c_total"}, Read: Rate, Across: Sum}}},
		{Name: "mean", Fill: fill, Terms: []Series{{Families: []string{"h"}, Read: Mean}}},
		{Name: "quantile", Fill: fill, Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: q}}},
	}
}

// TestASnapshotGoesOnWhereAnotherScraperWas: after a restart, a change of the leader or an edit of thresholds, the first
// sweep has rates.
func TestASnapshotGoesOnWhereAnotherScraperWas(t *testing.T) {
	clock := newTestClock()
	p := newFakePod(t, "p", countingPage(100))
	before := newScraper(t, Config{Metrics: countingMetrics(0.5, 1), Now: clock.now})
	before.Scrape(t.Context(), []Pod{p.pod})
	data, left := before.Snapshot(1 << 20)
	require.Zero(t, left)
	clock.advance(10 * time.Second)
	p.say(countingPage(150))

	fresh := newScraper(t, Config{Metrics: countingMetrics(0.5, 1), Now: clock.now})
	require.ErrorContains(t, fresh.Scrape(t.Context(), []Pod{p.pod}).Errors[0], "NoBaseline")

	after := newScraper(t, Config{Metrics: append([]Metric{waiting(0)}, countingMetrics(0.9, 7)...), Now: clock.now})
	require.NoError(t, after.Restore(data))
	again, _ := after.Snapshot(1 << 20)
	require.JSONEq(t, string(data), string(again))
	sweep := after.Scrape(t.Context(), []Pod{p.pod})
	require.InDelta(t, 15, sweep.Readings[1].Lower, 1e-9, "%v", sweep.Err())
	require.InDelta(t, 0.5, sweep.Readings[2].Lower, 1e-9)
	require.InDelta(t, 1.8, sweep.Readings[3].Lower, 1e-9)

	// What is too old is of no use, and another pod of the name is another pod.
	late := newScraper(t, Config{Metrics: countingMetrics(0.5, 1), Now: clock.now})
	require.NoError(t, late.Restore(data))
	other := p.pod
	other.UID = "another"
	require.ErrorContains(t, late.Scrape(t.Context(), []Pod{other}).Pods[0].Values[0].Err, "first scrape")
	require.NoError(t, late.Restore(data))
	clock.advance(51 * time.Second)
	require.ErrorContains(t, late.Scrape(t.Context(), []Pod{p.pod}).Pods[0].Values[0].Err, "old, more than")
}

func TestASnapshotIsBounded(t *testing.T) {
	clock := newTestClock()
	small, large := newFakePod(t, "small", countingPage(1)), newFakePod(t, "large", countingPage(1)+strings.Repeat("#", 9))
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, "c_total{e=\"x%d\"} 1\n", i)
	}
	large.say(lines.String())
	s := newScraper(t, Config{Metrics: countingMetrics(0.5, 1), Now: clock.now})
	s.Scrape(t.Context(), []Pod{small.pod, large.pod})
	all, left := s.Snapshot(1 << 20)
	require.Zero(t, left)
	one, left := s.Snapshot(len(all) / 2)
	require.Equal(t, 1, left)
	for limit := range len(all) + 64 {
		if limit > 1024 && limit < len(all)-64 && limit%97 != 0 {
			continue
		}
		data, left := s.Snapshot(limit)
		require.LessOrEqual(t, len(data), limit)
		require.Equal(t, left > 0, len(data) != len(all), limit)
		require.True(t, limit < len(one)+16 || left < 2, "what fits is taken")
		if left == 1 {
			require.Contains(t, string(data), "uid-small")
		}
	}
}

// TestASnapshotHasWhatIsCounted: a pod of one counter, or of a histogram whose sum is no number, is in it; one of gauges alone
// is not.
func TestASnapshotHasWhatIsCounted(t *testing.T) {
	const page = "# TYPE h histogram\nh_bucket{le=\"1\"} 4\nh_sum NaN\nh_count 4\n# TYPE c_total counter\nc_total 5\n"
	for _, row := range []struct {
		metric Metric
		pods   int
	}{
		{rateOf("c_total"), 1},
		{Metric{Name: "p50", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}}, 1},
		{waiting(0), 0},
	} {
		clock := newTestClock()
		p := newFakePod(t, "p", waitingPage(1)+page)
		s := newScraper(t, Config{Metrics: []Metric{row.metric}, Now: clock.now})
		s.Scrape(t.Context(), []Pod{p.pod})
		data, left := s.Snapshot(1 << 20)
		require.Zero(t, left)
		var from snapshot
		require.NoError(t, json.Unmarshal(data, &from))
		require.Len(t, from.Pods, row.pods, row.metric.Name)
		after := newScraper(t, Config{Metrics: []Metric{row.metric}, Now: clock.now})
		require.NoError(t, after.Restore(data))
		again, _ := after.Snapshot(1 << 20)
		require.JSONEq(t, string(data), string(again))
	}
}

func TestPlausible(t *testing.T) {
	fine := func(read Read, n int) *stored {
		x := &stored{At: 1, Family: "f"}
		width := map[Read]int{Rate: 1, Mean: 2, Quantile: 4, Counts: 4}[read]
		if width > 3 {
			x.Bounds = []float64{0}
		}
		x.IDs, x.Began, x.Rows = make([]identifier, n), make([]float64, n), make([]float64, n*width)
		return x
	}
	many := func(n int) *stored {
		x := fine(Quantile, 1)
		x.Bounds, x.Rows = make([]float64, n), make([]float64, 3+n)
		return x
	}
	with := func(x *stored, change func(*stored)) *stored { change(x); return x }
	for _, row := range []struct {
		name string
		read Read
		x    *stored
		want bool
	}{
		{"rate", Rate, fine(Rate, 2), true},
		{"mean", Mean, fine(Mean, 2), true},
		{"quantile", Quantile, fine(Quantile, 2), true},
		{"counts", Counts, fine(Counts, 2), true},
		{"as many series as may be", Rate, fine(Rate, 10), true},
		{"more", Rate, fine(Rate, 11), false},
		{"as many buckets as may be", Quantile, many(255), true},
		{"more buckets", Quantile, many(256), false},
		{"a page without the family", Rate, &stored{At: 1}, true},
		{"series of no family", Rate, with(fine(Rate, 1), func(x *stored) { x.Family = "" }), false},
		{"a family without series", Rate, &stored{At: 1, Family: "f"}, false},
		{"bounds of a rate", Rate, with(fine(Rate, 1), func(x *stored) { x.Bounds = []float64{1} }), false},
		{"bounds of a mean", Mean, with(fine(Mean, 1), func(x *stored) { x.Bounds = []float64{1} }), false},
		{"bounds that fall", Quantile, with(many(2), func(x *stored) { x.Bounds = []float64{2, 1} }), false},
		{"a time of 0", Rate, with(fine(Rate, 1), func(x *stored) { x.At = 0 }), false},
		{"rows that are missing", Rate, with(fine(Rate, 2), func(x *stored) { x.Rows = x.Rows[1:] }), false},
		{"a sum that is not known", Quantile, with(fine(Quantile, 1), func(x *stored) { x.Rows[0] = -1 }), true},
		{"a sum below zero", Quantile, with(fine(Quantile, 1), func(x *stored) { x.Rows[0] = -2 }), false},
		{"a rate that is not known", Rate, with(fine(Rate, 1), func(x *stored) { x.Rows[0] = -1 }), false},
		{"NaN", Rate, with(fine(Rate, 1), func(x *stored) { x.Rows[0] = math.NaN() }), false},
		{"NaN as a start", Rate, with(fine(Rate, 1), func(x *stored) { x.Start = math.NaN() }), false},
	} {
		require.Equal(t, row.want, row.x.plausible(row.read, 10), row.name)
	}
}

func TestASnapshotThatWasTamperedWith(t *testing.T) {
	clock := newTestClock()
	p := newFakePod(t, "p", countingPage(100))
	s := newScraper(t, Config{Metrics: countingMetrics(0.5, 1), Now: clock.now})
	s.Scrape(t.Context(), []Pod{p.pod})
	data, _ := s.Snapshot(1 << 20)
	clock.advance(10 * time.Second)
	for i := range data {
		require.NotPanics(t, func() {
			for _, bad := range [][]byte{data[:i], append(append(append([]byte{}, data[:i]...), '9'), data[i+1:]...)} {
				s := newScraper(t, Config{Metrics: countingMetrics(0.5, 1), Now: clock.now})
				if s.Restore(bad) == nil && i%50 == 0 {
					sweep := s.Scrape(t.Context(), []Pod{p.pod})
					for _, r := range sweep.Readings {
						require.False(t, r.Lower < 0)
					}
				}
			}
		})
	}
	for _, change := range []func(*stored){
		func(x *stored) { x.Rows = x.Rows[1:] },
		func(x *stored) { x.Rows[0] = -5 },
		func(x *stored) { x.Began = nil },
		func(x *stored) { x.Began[0] = -1 },
		func(x *stored) { x.IDs = append(x.IDs, 1) },
		func(x *stored) { x.Family = "" },
		func(x *stored) { x.At = -1 << 62 },
		func(x *stored) { x.Start = -2 },
		func(x *stored) { x.Bounds = []float64{1} },
		func(x *stored) { x.Of = "other" },
	} {
		var from snapshot
		require.NoError(t, json.Unmarshal(data, &from))
		var list []stored
		require.NoError(t, json.Unmarshal(from.Pods["uid/uid-p"], &list))
		change(&list[0])
		from.Pods["uid/uid-p"], _ = json.Marshal(list)
		bad, err := json.Marshal(from)
		require.NoError(t, err)
		s := newScraper(t, Config{Metrics: countingMetrics(0.5, 1), Now: clock.now})
		require.NoError(t, s.Restore(bad))
		sweep := s.Scrape(t.Context(), []Pod{p.pod})
		require.ErrorContains(t, sweep.Errors[0], "NoBaseline")
		require.NotContains(t, sweep.Pods[0].Values[1].Err.Error(), "first scrape", "the others were taken")
	}
	require.Error(t, s.Restore(nil))
	require.ErrorContains(t, s.Restore([]byte(`{"version":2}`)), "version 2")
}
