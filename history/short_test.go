package history_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
)

// TestAShortHistoryHasAScrapeInterval: where no pod has twenty distances between scrapes, those of all show how often they are scraped, here
// every minute. So a pod that comes later is new, and its first count came within the minute before; what lies between has no gaps.
func TestAShortHistoryHasAScrapeInterval(t *testing.T) {
	d := empty(61)
	everyMinute := func(i int) bool { return i%4 != 0 }
	lived{pod: "a-0", created: -9000, ready: -8000, first: 0, last: 60, finished: counting(-100, 1), skipped: everyMinute}.add(d, told{}, "0")
	lived{pod: "a-1", created: 310, ready: 330, first: 24, last: 60, finished: counting(20, 2), skipped: everyMinute}.add(d, told{}, "1")
	d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool { return strings.HasPrefix(s.Family, "kube_") })
	f := reduced(t, d.Dump)
	require.Zero(t, f.Repairs.Gaps)
	require.Zero(t, f.Repairs.Spread)
	for _, n := range f.Notes {
		require.NotContains(t, n.Text, "from before", "the second one is new")
	}
	require.InDelta(t, 60+2*40, total(f), 16) // that are in flight at the ends
	require.InDelta(t, f.Arrivals[22], f.Arrivals[23], 1e-9, "of one scrape")
	require.Greater(t, f.Arrivals[22], f.Arrivals[18]+1, "what the new one has counted")
}

// TestAHundredRequestsDoNotMakeAPodOld: without Kubernetes a pod that had so many by its first scrape, and none later, is new, and they came
// then. One that had more is not.
func TestAHundredRequestsDoNotMakeAPodOld(t *testing.T) {
	for first, isNew := range map[float64]bool{100: true, 101: false} {
		d := empty(121)
		lived{pod: "a-0", created: -9000, ready: -8000, first: 0, last: 120, finished: counting(-100, 1)}.add(d, told{}, "0")
		lived{pod: "a-1", created: 310, ready: 330, first: 40, last: 120, finished: func(int) float64 { return first }}.add(d, told{}, "1")
		d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool { return strings.HasPrefix(s.Family, "kube_") })
		f := reduced(t, d.Dump)
		if isNew {
			require.Greater(t, f.Arrivals[39], 90.0)
			continue
		}
		require.True(t, math.IsNaN(f.Arrivals[39]) || f.Arrivals[39] < 20, "%v", f.Arrivals[39])
		requireNote(t, f, history.Finished, "1 pods have counts from before they were first seen")
	}
}

// TestAPodOfBeforeThatIsScrapedLaterIsNotNew: of a pod that was created before the history, what it had counted by its first scrape, ten
// minutes after the begin, did not come then.
func TestAPodOfBeforeThatIsScrapedLaterIsNotNew(t *testing.T) {
	for created, counted := range map[int]float64{-15: 80, 0: 80 + 1040} {
		d := empty(121)
		lived{pod: "a-0", created: created, ready: created, first: 40, last: 120, finished: counting(-1000, 1)}.add(d, told{uid: true}, "0")
		f := reduced(t, d.Dump)
		require.InDelta(t, counted, total(f), 16, "created %d s after the begin", created) // that are in flight at the ends
		require.Equal(t, created < 0, math.IsNaN(f.Arrivals[39]))
	}
}
