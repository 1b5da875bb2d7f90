package scrape

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A deltaStep is one page of a pod, seconds after the first, and the rate or reason that it gives.
type deltaStep struct {
	at     float64
	page   string
	want   float64
	reason Reason
}

func rateOf(families ...string) Metric {
	return Metric{Name: "rate", Terms: []Series{{Families: families, Read: Rate, Across: Sum, Match: []Matcher{{Label: "gone"}}}}}
}

// unix is a time of tests, seconds after the first page, as pages say it.
func unix(after int64) string { return strconv.FormatInt(origin().Unix()+after, 10) }

func TestCounterSteps(t *testing.T) {
	const typ = "# TYPE c_total counter\n"
	start := func(s string) string { return startFamily + " " + s + "\n" }
	for _, row := range []struct {
		name     string
		families []string
		steps    []deltaStep
	}{
		{"increase", nil, []deltaStep{
			{0, typ + "c_total 100\n", 0, NoBaseline},
			{10, typ + "c_total 150\n", 5, None},
			{20, typ + "c_total 150\n", 0, None},
		}},
		{"drop: from 0", nil, []deltaStep{
			{0, typ + "c_total 100\n", 0, NoBaseline},
			{10, typ + "c_total 30\n", 3, None},
		}},
		{"restart with a higher value, told by the start time", nil, []deltaStep{
			{0, start("1000") + typ + "c_total 100\n", 0, NoBaseline},
			{10, start("2000") + typ + "c_total 130\n", 13, None},
			{20, start("2000") + typ + "c_total 140\n", 1, None},
		}},
		{"restart of one engine, told by its creation time", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\nc_total{e=\"1\"} 100\nc_created{e=\"0\"} 5\nc_created{e=\"1\"} 5\n", 0, NoBaseline},
			{10, typ + "c_total{e=\"0\"} 110\nc_total{e=\"1\"} 120\nc_created{e=\"0\"} 5\nc_created{e=\"1\"} 9\n", 13, None},
		}},
		{"a creation time may be any number but 0", nil, []deltaStep{
			{0, typ + "c_total 100\nc_created 1\n", 0, NoBaseline},
			{10, typ + "c_total 120\nc_created 9\n", 12, None},
			{20, typ + "c_total 130\nc_created 1\n", 13, None},
			{30, typ + "c_total 140\nc_created 0\n", 1, None},
			{40, typ + "c_total 150\nc_created 9\n", 1, None},
		}},
		{"a start time that wobbles by a second is no restart", nil, []deltaStep{
			{0, start("1000.5") + typ + "c_total 100\n", 0, NoBaseline},
			{10, start("1001.5") + typ + "c_total 130\n", 3, None},
			{20, start("1003.25") + typ + "c_total 140\n", 0, NoBaseline}, // nor is more one, while it was seen to serve
			{30, start("1003.25") + typ + "c_total 150\n", 1, None},
			{40, start("1035") + typ + "c_total 20\n", 2, None},
			{50, start("1035") + typ + "c_total 130\n", 11, None},
			{60, start("1003.25") + typ + "c_total 160\n", 0, NoBaseline}, // another server at the same address
		}},
		{"a start time that appears is no restart", nil, []deltaStep{
			{0, typ + "c_total 100\n", 0, NoBaseline},
			{10, start("1000") + typ + "c_total 130\n", 3, None},
			{20, start("NaN") + typ + "c_total 160\n", 3, None},
		}},
		{"a new series that says that it began since counts from 0", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\n", 0, NoBaseline},
			{10, typ + "c_total{e=\"0\"} 110\nc_total{e=\"1\"} 20\nc_created{e=\"1\"} " + unix(4) + "\n", 3, None},
		}},
		{"a pod whose clock is an hour ahead has not begun since", nil, []deltaStep{
			{0, start(unix(3600)) + typ + "c_total 100\n", 0, NoBaseline},
			{10, start(unix(3600)) + typ + "c_total 150\n", 5, None},
		}},
		{"a new series of a pod whose clock is an hour ahead", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\n", 0, NoBaseline},
			{10, typ + "c_total{e=\"0\"} 110\nc_total{e=\"1\"} 2000000\nc_created{e=\"1\"} " + unix(3600) + "\n", 0, NoBaseline},
		}},
		{"a new series that has counted one", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\n", 0, NoBaseline},
			{10, typ + "c_total{e=\"0\"} 110\nc_total{e=\"1\"} 1\n", 0, NoBaseline},
		}},
		{"a new series that has counted nothing", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\n", 0, NoBaseline},
			{10, typ + "c_total{e=\"0\"} 110\nc_total{e=\"1\"} 0\n", 1, None},
		}},
		{"a new series may have been there before: nothing is told of it", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\n", 0, NoBaseline},
			{10, typ + "c_total{e=\"0\"} 110\nc_total{e=\"1\"} 1333730\n", 0, NoBaseline},
			{20, typ + "c_total{e=\"0\"} 120\nc_total{e=\"1\"} 1333740\n", 2, None},
			{30, typ + "c_total{e=\"0\"} 120\nc_total{e=\"1\"} 1333740\nc_total{e=\"2\"} 9\nc_created{e=\"2\"} " + unix(-60) + "\n", 0, NoBaseline},
		}},
		{"a series that is absent from a page leaves the rate unknown, and goes on from where it was", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\nc_total{e=\"1\"} 1333500\n", 0, NoBaseline},
			{10, typ + "c_total{e=\"0\"} 200\nc_total{e=\"1\"} 1333600\n", 20, None},
			{20, typ + "c_total{e=\"0\"} 300\n", 0, NoBaseline},
			{30, typ + "c_total{e=\"1\"} 1333730\n", 0, NoBaseline},
			{40, typ + "c_total{e=\"0\"} 500\nc_total{e=\"1\"} 1333900\n", 20, None},
		}},
		{"a series that is gone for good", nil, []deltaStep{
			{0, typ + "c_total{e=\"0\"} 100\nc_total{e=\"1\"} 500\n", 0, NoBaseline},
			{30, typ + "c_total{e=\"0\"} 130\n", 0, NoBaseline},
			{61, typ + "c_total{e=\"0\"} 160\n", 0, NoBaseline},
			{71, typ + "c_total{e=\"0\"} 170\n", 1, None},
			{81, typ + "c_total{e=\"0\"} 180\nc_total{e=\"1\"} 1000000\n", 0, NoBaseline},
		}},
		{"a restart of the process explains a series that is gone", nil, []deltaStep{
			{0, start("1000") + typ + "c_total{e=\"0\"} 100\nc_total{e=\"1\"} 500\n", 0, NoBaseline},
			{10, start("2000") + typ + "c_total{e=\"0\"} 110\n", 11, None},
		}},
		{"a family that appears after the process began counts from 0", nil, []deltaStep{
			{0, "x 1\n", 0, NotFound},
			{10, start(unix(1)) + typ + "c_total 20\n", 2, None},
		}},
		{"a family is absent since the last page without it, not since the first", nil, []deltaStep{
			{0, "x 1\n", 0, NotFound},
			{10, "x 1\n", 0, NotFound},
			{20, start(unix(5)) + typ + "c_total 20\n", 0, NoBaseline},
		}},
		{"no series matched, and then one that began since", nil, []deltaStep{
			{0, typ + "c_total{gone=\"1\"} 7\n", 0, NotFound},
			{10, typ + "c_total 20\nc_created " + unix(1) + "\n", 2, None},
		}},
		{"a family that appears may have been there before", nil, []deltaStep{
			{0, "x 1\n", 0, NotFound},
			{10, typ + "c_total 20\n", 0, NoBaseline},
			{20, typ + "c_total 40\n", 2, None},
		}},
		{"a family that flickers keeps its baseline", nil, []deltaStep{
			{0, typ + "c_total 1000\n", 0, NoBaseline},
			{10, "x 1\n", 0, NotFound},
			{20, typ + "c_total 1040\n", 2, None},
		}},
		{"an alias that takes over is another count", []string{"new_total", "c_total"}, []deltaStep{
			{0, typ + "c_total 1000\n", 0, NoBaseline},
			{10, "# TYPE new_total counter\nnew_total 2000\n" + typ + "c_total 1000\n", 0, NoBaseline},
			{20, "# TYPE new_total counter\nnew_total 2010\n" + typ + "c_total 1000\n", 1, None},
		}},
		{"a baseline at the limit, and one beyond", nil, []deltaStep{
			{0, typ + "c_total 100\n", 0, NoBaseline},
			{60, typ + "c_total 160\n", 1, None},
			{120.001, typ + "c_total 260\n", 0, NoBaseline},
			{130.001, typ + "c_total 270\n", 1, None},
		}},
		{"a clock that stands still or goes back", nil, []deltaStep{
			{10, typ + "c_total 100\n", 0, NoBaseline},
			{10, typ + "c_total 200\n", 0, NoBaseline},
			{5, typ + "c_total 300\n", 0, NoBaseline},
			{15, typ + "c_total 310\n", 1, None},
		}},
		{"a bad value leaves the baseline", nil, []deltaStep{
			{0, typ + "c_total 100\n", 0, NoBaseline},
			{10, typ + "c_total NaN\n", 0, NonFinite},
			{20, typ + "c_total 120\n", 1, None},
		}},
		{"untyped counters, as of OpenMetrics", nil, []deltaStep{
			{0, "# TYPE c counter\nc_total 100\n", 0, NoBaseline},
			{10, "# TYPE c counter\nc_total 150\n", 5, None},
		}},
		{"a gauge has no rate", nil, []deltaStep{{0, "# TYPE c_total gauge\nc_total 100\n", 0, Type}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.families == nil {
				row.families = []string{"c_total"}
			}
			tape := newPageTape(t, rateOf(row.families...))
			for i, step := range row.steps {
				shares, fails := tape.read([]byte(step.page), origin().Add(time.Duration(step.at*1e9)))
				require.Equal(t, step.reason, reasonOf(fails[0]), "step %d: %v", i, fails[0])
				if step.reason == None {
					require.InDelta(t, step.want, shares[0].value, 1e-9, "step %d", i)
				}
			}
		})
	}
}

func TestIncreaseIsNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tape := newPageTape(&testing.T{}, rateOf("c_total"))
		value, at, began := 0.0, 0, 1000
		for i := range rapid.IntRange(2, 20).Draw(t, "scrapes") {
			before, step := value, rapid.IntRange(3, 60).Draw(t, "seconds")
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0: // a restart that the page tells of
				began = 1000 + at + rapid.IntRange(2, step).Draw(t, "restart") // not while the last one served
				before, value = 0, rapid.Float64Range(0, 1e6).Draw(t, "after")
			case 1: // a restart that only a drop can tell of
				value = rapid.Float64Range(0, max(value-1, 0)).Draw(t, "after")
				if value < before {
					before = 0
				}
			default:
				value += rapid.Float64Range(0, 1e3).Draw(t, "events")
			}
			at += step
			page := fmt.Sprintf("%s %d\n# TYPE c_total counter\nc_total %v\n", startFamily, began, value)
			shares, fails := tape.read([]byte(page), origin().Add(time.Duration(at)*time.Second))
			if i == 0 {
				require.Equal(t, NoBaseline, reasonOf(fails[0]))
				continue
			}
			require.Nil(t, fails[0])
			require.GreaterOrEqual(t, shares[0].value, 0.0)
			require.InDelta(t, (value-before)/float64(step), shares[0].value, 1e-6)
		}
	})
}

func histogramPage(engines ...[]float64) string {
	var b strings.Builder
	b.WriteString("# TYPE h histogram\n")
	bounds := []string{"1", "2", "4", "+Inf"}
	for e, counts := range engines {
		for i, n := range counts[:4] {
			fmt.Fprintf(&b, "h_bucket{e=\"%d\",le=\"%s\"} %v\n", e, bounds[i], n)
		}
		fmt.Fprintf(&b, "h_sum{e=\"%d\"} %v\nh_count{e=\"%d\"} %v\n", e, counts[4], e, counts[3])
	}
	return b.String()
}

func TestHistogramsMergeOverEngines(t *testing.T) {
	q := func(v float64) Series { return Series{Families: []string{"h"}, Read: Quantile, Quantile: v} }
	tape := newPageTape(t,
		Metric{Name: "p50", Terms: []Series{q(0.5)}}, Metric{Name: "p99", Terms: []Series{q(0.99)}},
		Metric{Name: "mean", Terms: []Series{{Families: []string{"h"}, Read: Mean}}})
	_, fails := tape.read([]byte(histogramPage([]float64{90, 90, 90, 90, 9}, []float64{0, 0, 0, 0, 0})), origin())
	for _, f := range fails {
		require.Equal(t, NoBaseline, reasonOf(f))
	}
	// Engine 0 sees 10 below 1, engine 1 10 between 2 and 4: the median of each is 0.5 and 3, of both 1.
	page := histogramPage([]float64{100, 100, 100, 100, 12}, []float64{0, 0, 10, 10, 33})
	shares, fails := tape.read([]byte(page), origin().Add(15*time.Second))
	for _, f := range fails {
		require.Nil(t, f)
	}
	require.InDelta(t, 1, shares[0].value, 1e-12)
	require.InDelta(t, 2+2*(0.99*20-10)/10, shares[1].value, 1e-12)
	require.InDelta(t, 36.0/20, shares[2].value, 1e-12)
	for _, s := range shares {
		require.Equal(t, [2]float64{s.value, s.value}, [2]float64{s.min, s.max})
		require.Equal(t, [2]int{2, 2}, [2]int{s.engines, s.series})
	}
	require.InDelta(t, 20, shares[0].den, 0)
	// Nothing new: unknown and not 0.
	shares, fails = tape.read([]byte(page), origin().Add(30*time.Second))
	require.Nil(t, fails[0])
	require.True(t, shares[0].idle())
	require.True(t, shares[2].idle())
}

func TestHistogramResetsAndBounds(t *testing.T) {
	m := Metric{Name: "mean", Terms: []Series{{Families: []string{"h"}, Read: Mean}}}
	p := Metric{Name: "p50", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}}
	tape := newPageTape(t, m, p)
	at := func(s int) time.Time { return origin().Add(time.Duration(s) * time.Second) }
	_, _ = tape.read([]byte(histogramPage([]float64{10, 10, 10, 10, 5})), at(0))
	// A drop means that all of it is new.
	shares, fails := tape.read([]byte(histogramPage([]float64{0, 4, 4, 4, 6})), at(15))
	require.Nil(t, fails[0])
	require.InDelta(t, 1.5, shares[0].value, 1e-12)
	require.InDelta(t, 1.5, shares[1].value, 1e-12)
	// Other bounds without a restart are no increase of anything; with one they are all new.
	other := "# TYPE h histogram\nh_bucket{e=\"0\",le=\"8\"} 9\nh_sum{e=\"0\"} 9\nh_count{e=\"0\"} 9\n"
	_, fails = tape.read([]byte(other), at(30))
	require.Nil(t, fails[0])
	require.Equal(t, Buckets, reasonOf(fails[1]))
	shares, fails = tape.read([]byte(strings.ReplaceAll(other, " 9", " 11")), at(40))
	require.Nil(t, fails[1])
	require.InDelta(t, 2, shares[1].den, 0, "the next page goes on from them")
	_, _ = tape.read([]byte(startFamily+" 5000\n"+histogramPage([]float64{10, 10, 10, 10, 5})), at(45))
	shares, fails = tape.read([]byte(startFamily+" 6000\n"+other), at(60))
	require.Nil(t, fails[1])
	require.InDelta(t, 4, shares[1].value, 1e-12)
	// Two engines with different bounds cannot be added.
	_, fails = tape.read([]byte(startFamily+" 6000\n"+other+"h_bucket{e=\"1\",le=\"9\"} 9\nh_sum{e=\"1\"} 9\nh_count{e=\"1\"} 9\n"), at(75))
	require.Equal(t, Buckets, reasonOf(fails[1]))
}

// TestHistogramOfAnEngineThatIsAbsentFromAPage: as for counters, what an engine has counted before is no increase.
func TestHistogramOfAnEngineThatIsAbsentFromAPage(t *testing.T) {
	tape := newPageTape(t,
		Metric{Name: "mean", Terms: []Series{{Families: []string{"h"}, Read: Mean}}},
		Metric{Name: "p50", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}})
	long := []float64{0, 0, 1e6, 1e6, 3e6}
	for i, step := range []struct {
		engines [][]float64
		reason  Reason
		mean    float64
	}{
		{[][]float64{{10, 10, 10, 10, 5}, long}, NoBaseline, 0},
		{[][]float64{{10, 10, 10, 10, 5}}, NoBaseline, 0},
		{[][]float64{{20, 20, 20, 20, 10}, long}, None, 0.5},
		{[][]float64{{30, 30, 30, 30, 15}, long, {5, 5, 5, 5, 2}}, NoBaseline, 0},
		{[][]float64{{40, 40, 40, 40, 20}, long, {5, 5, 5, 5, 2}}, None, 0.5},
	} {
		shares, fails := tape.read([]byte(histogramPage(step.engines...)), origin().Add(time.Duration(i)*15*time.Second))
		for k := range shares {
			require.Equal(t, step.reason, reasonOf(fails[k]), "step %d: %v", i, fails[k])
			if i == 1 {
				require.ErrorContains(t, fails[k], "1 of 2 series of the last scrape are gone")
			}
			if step.reason == None {
				require.InDelta(t, step.mean, shares[k].value, 1e-9)
			}
		}
	}
}

// TestASeriesHasTheSameIdentityEverywhere: a snapshot is read by other processes, of other versions.
// TestWhatHasBegunSince: from a second before the last page to a second after this one, as clocks differ by as much.
// TestAQuantileThatCannotBeRemembered: a page for which the budget has no room is still compared with the one before; it is
// the next that has no baseline.
// TestWhatIsRememberedTakesItsRoom: a pod that had many series and has few gives their room back, not the account alone.
// TestDistributionAt follows Prometheus' histogram_quantile through its edges.
