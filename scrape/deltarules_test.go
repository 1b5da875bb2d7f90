package scrape

import (
	"hash/fnv"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASeriesHasTheSameIdentityEverywhere(t *testing.T) {
	for _, key := range []string{"", "e\xff0\xff", "model_name\xffä\xff"} {
		h := fnv.New64a()
		_, _ = h.Write([]byte(key))
		require.Equal(t, h.Sum64(), identity([]byte(key)))
	}
}

func TestWhatHasBegunSince(t *testing.T) {
	page := func(second int64) *baseline { return &baseline{at: time.Unix(second, 0)} }
	for unix, want := range map[float64]bool{98.9: false, 99: true, 105: true, 111: true, 111.1: false} {
		require.Equal(t, want, page(100).isBefore(unix, page(110)), unix)
	}
	require.False(t, page(0).isBefore(0, page(10)), "0 is not known, whatever the clock says")
	require.True(t, page(0).isBefore(1, page(10)))
}

func TestAQuantileThatCannotBeRemembered(t *testing.T) {
	p50 := Metric{Name: "p50", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}}
	tape := newPageTape(t, p50)
	at := func(i int) time.Time { return origin().Add(time.Duration(i) * 15 * time.Second) }
	more := "h_created{e=\"1\"} " + unix(5) + "\n"
	_, _ = tape.read([]byte(histogramPage([]float64{10, 10, 10, 10, 5})), at(0))
	b := tape.memory.budget
	require.True(t, b.keep("other", b.kept.size-b.kept.used))
	shares, fails := tape.read([]byte(histogramPage([]float64{10, 14, 14, 14, 9}, []float64{0, 4, 4, 4, 6})+more), at(1))
	require.Nil(t, fails[0])
	require.Zero(t, b.kept.accounts[""].held)
	_, fails = tape.read([]byte(histogramPage([]float64{20, 20, 20, 20, 9})), at(2))
	require.ErrorContains(t, fails[0], "the budget had no memory left for the last scrape")
	require.InDelta(t, 1.5, shares[0].dist.at(4), 1e-12)
}

func TestWhatIsRememberedTakesItsRoom(t *testing.T) {
	many, few := make([]float64, 9000), []float64{1, 2}
	kept := refill(many, few)
	require.Equal(t, few, kept)
	require.Less(t, cap(kept), 100)
	require.Equal(t, few, refill(nil, few))
}

func TestIncreaseOfAHistogramStaysCumulative(t *testing.T) {
	// The page was rendered while a request finished: le="2" has it already, le="4" not yet.
	row := []float64{9, 25, 15, 24, 25} // the sum, the count, the buckets
	increase(row, []float64{4, 20, 10, 20, 20})
	require.Equal(t, []float64{5, 5, 5, 5, 5}, row)
	row = []float64{6, 3, 0, 3}
	increase(row, []float64{5, 2, 1, 2})
	require.Equal(t, []float64{6, 3, 0, 3}, row, "a bucket that fell to 0 began again")
}

func TestDistributionAt(t *testing.T) {
	d := &distribution{bounds: []float64{1, 2, 4}, counts: []float64{2, 2, 6, 8}}
	for _, row := range []struct{ rank, want float64 }{
		{-1, 0},
		{0, 0},
		{1, 0.5},                  // the first bucket begins at 0
		{2, 1},                    // its end
		{math.Nextafter(2, 3), 2}, // the empty bucket is passed over
		{4, 3},
		{6, 4},
		{7, 4}, // the last bucket: its lower end
		{8, 4},
		{9, math.Inf(1)},
	} {
		if math.IsInf(row.want, 1) {
			require.True(t, math.IsInf(d.at(row.rank), 1))
			continue
		}
		require.InDelta(t, row.want, d.at(row.rank), 1e-9, "rank %v", row.rank)
	}
	require.Zero(t, (&distribution{bounds: []float64{1}, counts: []float64{0, 4}}).at(0), "though nothing is in the first bucket")
	zero := &distribution{bounds: []float64{0, 1}, counts: []float64{4, 4, 4}}
	require.Zero(t, zero.at(2))
}
