package scrape

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scrape/internal/page"
)

// hostilePage serves 16 MiB without a pause.
func hostilePage(tb testing.TB, line func(i int) string) string {
	tb.Helper()
	var text strings.Builder
	for i := 0; text.Len() < 16<<20-64; i++ {
		text.WriteString(line(i))
	}
	page := text.String()
	return serve(tb, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", textVersion)
		_, _ = io.WriteString(w, page)
	})
}

// TestPagesOfManySeriesStayWithinTheBudget: 25 pods serve 16 MiB of short wanted lines each, to two tenants with two
// objects at once. What is live never exceeds the budget and a few MiB; a well-behaved tenant beside them is served.
func TestPagesOfManySeriesStayWithinTheBudget(t *testing.T) {
	long.Skip(t)
	const size = 64 << 20
	for _, row := range []struct {
		name   string
		line   func(i int) string
		series int
	}{
		{"a 1", func(int) string { return "a 1\n" }, 0},
		{"distinct labels", func(i int) string { return fmt.Sprintf("a{x=\"%d\"} 1\n", i) }, 0},
		{"distinct labels, a limit that does not help", func(i int) string { return fmt.Sprintf("a{x=\"%d\"} 1\n", i) }, 1 << 30},
		{"buckets", func(i int) string {
			if i == 0 {
				return "# TYPE h histogram\n"
			}
			return fmt.Sprintf("h_bucket{le=\"%d\"} 1\n", i)
		}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := hostilePage(t, row.line)
			well := newFakePod(t, "well", waitingPage(7))
			budget, err := NewBudget(size)
			require.NoError(t, err)
			metrics := []Metric{
				{Name: "a", Terms: []Series{{Families: []string{"a"}, Across: Sum}}},
				{Name: "rate", Terms: []Series{{Families: []string{"a"}, Read: Rate, Across: Sum}}},
				{Name: "h", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.9}}},
			}
			var pods []Pod
			for i := range 25 {
				pods = append(pods, Pod{Name: fmt.Sprint("hostile-", i), URL: base + "/metrics"})
			}
			defer debug.SetGCPercent(debug.SetGCPercent(20))
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			var peak atomic.Uint64
			done := make(chan struct{})
			var watch, sweeps sync.WaitGroup
			watch.Add(1)
			go func() {
				defer watch.Done()
				for {
					var now runtime.MemStats
					runtime.ReadMemStats(&now)
					peak.Store(max(peak.Load(), now.HeapAlloc))
					select {
					case <-done:
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			}()
			for i := range 4 {
				sweeps.Add(1)
				go func() {
					defer sweeps.Done()
					s := newScraper(t, Config{Metrics: metrics, Budget: budget, Tenant: fmt.Sprint("tenant-", i/2), MaxSeries: row.series})
					sweep := s.Scrape(t.Context(), pods)
					for _, p := range sweep.Pods {
						for k := range metrics {
							if p.Values[k].OK || p.Values[k].Err == nil {
								t.Error("a hostile page gave a number")
								return
							}
						}
					}
				}()
			}
			s := newScraper(t, Config{Budget: budget, Tenant: "victim", Interval: time.Minute, Timeout: 30 * time.Second, DialTimeout: 30 * time.Second})
			for range 3 {
				sweep := s.Scrape(t.Context(), []Pod{well.pod})
				if err := sweep.Err(); err != nil {
					t.Error(err)
				}
			}
			sweeps.Wait()
			close(done)
			watch.Wait()
			used := int64(peak.Load()) - int64(before.HeapAlloc)
			t.Logf("peak %d MiB above what was there", used>>20)
			require.Less(t, used, int64(size), "the heap with its garbage")
			budget.mu.Lock()
			require.Zero(t, budget.reading.used)
			budget.mu.Unlock()
			runtime.GC()
			runtime.GC()
			var after runtime.MemStats
			runtime.ReadMemStats(&after)
			require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(8<<20), "buffers are given back")
		})
	}
}

// TestWhatIsRememberedStaysWithinTheBudget: counters of many series on many pods are remembered while there is room, and
// give their room back with the pod and with the scraper.
func TestWhatIsRememberedStaysWithinTheBudget(t *testing.T) {
	long.Skip(t)
	clock := newTestClock()
	var text strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&text, "a_total{x=\"%d\"} 5\n", i)
	}
	p := newFakePod(t, "p", text.String())
	budget := newBudget(leastBudget)
	s := newScraper(t, Config{Metrics: []Metric{rateOf("a_total")}, Budget: budget, Now: clock.now, Concurrency: 2})
	var pods []Pod
	for i := range 60 {
		pods = append(pods, Pod{Name: fmt.Sprintf("p-%02d", i), URL: p.pod.URL})
	}
	s.Scrape(t.Context(), pods)
	require.LessOrEqual(t, budget.kept.used, budget.kept.size/2)
	require.Greater(t, budget.kept.used, budget.kept.size/4)
	clock.advance(15 * time.Second)
	sweep := s.Scrape(t.Context(), pods)
	with, lost := 0, 0
	for _, p := range sweep.Pods {
		switch {
		case p.Values[0].OK:
			with++
		case strings.Contains(p.Values[0].Err.Error(), "NoBaseline: a_total: the budget had no memory left"):
			lost++
		}
	}
	require.Equal(t, 60, with+lost)
	require.Greater(t, with, 20)
	require.Positive(t, lost)
	s.Scrape(t.Context(), pods[:1])
	require.Equal(t, s.plan.bytes+int64(3*8*9000), budget.kept.used)
	s.Close()
	require.Zero(t, budget.kept.used)
	require.Empty(t, budget.kept.accounts)
}

// liveHeap is what the heap has without garbage.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// allMetrics are as many metrics of a series as there may be.
func allMetrics(term Series) (metrics []Metric) {
	for i := range MaxMetrics {
		metrics = append(metrics, Metric{Name: fmt.Sprint(i), Terms: []Series{term}})
	}
	return metrics
}

// TestRegressionAPodThatNeverAnswersTakesLittleMemory: no budget counts it. It took 84 KB if 256 metrics are read, and 45 KB more in
// a sweep that waits for another pod.
func TestRegressionAPodThatNeverAnswersTakesLittleMemory(t *testing.T) {
	const n, most = 200, 4 << 10
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	var within int64
	slow := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		within = liveHeap()
		answer(textVersion, "a 1\n")(w, nil)
	})
	var pods []Pod
	for i := range n {
		pods = append(pods, Pod{Name: fmt.Sprintf("p-%03d", i), URL: closed.URL + "/metrics"})
	}
	pods = append(pods, Pod{Name: "slow", URL: slow + "/metrics"})
	s := newScraper(t, Config{Metrics: allMetrics(Series{Families: []string{"a"}}), Concurrency: 1})
	s.Scrape(t.Context(), pods[n:])
	before := liveHeap()
	sweep := s.Scrape(t.Context(), pods)
	require.Equal(t, Refused, sweep.Pods[0].Values[MaxMetrics-1].Err.Reason)
	require.True(t, sweep.Pods[n].Values[0].OK)
	sweep = Sweep{}
	require.Less(t, (within-before)/n, int64(most), "while another pod is waited for")
	require.Less(t, (liveHeap()-before)/n, int64(most), "afterwards")
	runtime.KeepAlive(s)
}

// TestRegressionWhatIsRememberedIsCounted: a budget counted the contents of baselines only.
func TestRegressionWhatIsRememberedIsCounted(t *testing.T) {
	const few, many = 10, 60
	for name, row := range map[string]struct {
		page string
		term Series
	}{
		"gauges":    {"a 1\n", Series{Families: []string{"a"}}},
		"absent":    {"a 1\n", Series{Families: []string{"b"}, Read: Rate}},
		"counters":  {"a 1\n", Series{Families: []string{"a"}, Read: Rate}},
		"quantiles": {histogramPage(make([]float64, 5)), Series{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}},
		"counts":    {histogramPage(make([]float64, 5)), Series{Families: []string{"h"}, Read: Counts}},
	} {
		t.Run(name, func(t *testing.T) {
			clock, budget := newTestClock(), newBudget(1<<30)
			p := newFakePod(t, "p", row.page)
			var pods []Pod
			for i := range many {
				pods = append(pods, Pod{Name: fmt.Sprint("p-", i), URL: p.pod.URL})
			}
			s := newScraper(t, Config{Metrics: allMetrics(row.term), Budget: budget, Now: clock.now, Concurrency: 1})
			sweep := func(pods []Pod) (heap, counted int64) {
				for range 2 {
					s.Scrape(t.Context(), pods)
					clock.advance(15 * time.Second)
				}
				return liveHeap(), budget.kept.used
			}
			heap, counted := sweep(pods[:few])
			heaps, counts := sweep(pods)
			t.Logf("of a pod %d bytes, of which %d are counted", (heaps-heap)/(many-few), (counts-counted)/(many-few))
			require.Less(t, (heaps-heap)/(many-few), (counts-counted)/(many-few)*5/4+4<<10)
			s.Close()
			require.Zero(t, budget.kept.used)
		})
	}
}

// TestPodsForWhichThereIsNoRoom: their gauges are read, but are not reused, and nothing is counted until there is room.
func TestPodsForWhichThereIsNoRoom(t *testing.T) {
	clock, budget := newTestClock(), newBudget(leastBudget)
	counts := Metric{Name: "counts", Terms: []Series{{Families: []string{"h"}, Read: Counts}}}
	page := func(n float64) string {
		return waitingPage(4) + "c_total 5\n" + histogramPage([]float64{n, n, n, n, n})
	}
	p := newFakePod(t, "p", page(10))
	s := newScraper(t, Config{Metrics: []Metric{waiting(0), rateOf("c_total"), counts}, Budget: budget, Now: clock.now})
	sweep := func(say string) Sweep {
		p.say(say)
		clock.advance(15 * time.Second)
		return s.Scrape(t.Context(), []Pod{p.pod})
	}
	require.True(t, budget.keep("other", budget.kept.size))
	for range 2 {
		full := sweep(page(10))
		require.True(t, full.Pods[0].Values[0].OK)
		for _, i := range []int{1, 2} {
			require.ErrorContains(t, full.Pods[0].Values[i].Err, "NoBaseline: ")
			require.ErrorContains(t, full.Pods[0].Values[i].Err, "the budget had no memory left for the last scrape")
		}
		require.Equal(t, int32(1), full.Histograms[0].Failed)
		require.Equal(t, budget.kept.size, budget.kept.used)
	}
	silent := sweep("")
	require.False(t, silent.Pods[0].Values[0].Reused)
	require.True(t, budget.keep("other", -budget.kept.size))
	first := sweep(page(10))
	require.ErrorContains(t, first.Pods[0].Values[1].Err, "first scrape")
	then := sweep(page(12))
	require.NoError(t, then.Err())
	require.InDelta(t, 2, then.Histograms[0].Total(), 0)
	require.True(t, sweep("").Pods[0].Values[0].Reused)
}

// TestAPageWaitsForItsMemory: it is acquired before the body is read, and a page that gets none in time fails.
func TestAPageWaitsForItsMemory(t *testing.T) {
	p := newFakePod(t, "p", waitingPage(4))
	budget := newBudget(leastBudget)
	require.NoError(t, budget.Acquire(t.Context(), "greedy", budget.reading.size))
	s := newScraper(t, Config{Budget: budget, Timeout: 500 * time.Millisecond})
	sweep := s.Scrape(t.Context(), []Pod{p.pod})
	require.Equal(t, Memory, sweep.Pods[0].Values[0].Err.Reason, "%v", sweep.Err())
	require.ErrorIs(t, sweep.Pods[0].Values[0].Err, context.DeadlineExceeded)
	go budget.Release("greedy", 2*page.Start)
	s = newScraper(t, Config{Budget: budget})
	require.NoError(t, func() error { s := s.Scrape(t.Context(), []Pod{p.pod}); return s.Err() }())
}

// TestAWorkerIsUsedAgainWithoutWhatAPageTook: a lease that ends gives back its worker, and of one that has read a page of
// many series not the room for them.
func TestAWorkerIsUsedAgainWithoutWhatAPageTook(t *testing.T) {
	b := newBudget(64 << 20)
	for _, large := range []int{0, 100 * keptSeries} {
		l := &lease{budget: b, tenant: "a"}
		require.Nil(t, l.begin(t.Context()))
		page := l.page
		l.list = make([]chosen, 0, large)
		l.end()
		require.Zero(t, b.reading.used)
		require.Nil(t, l.begin(t.Context()))
		require.Same(t, page, l.page)
		require.LessOrEqual(t, cap(l.list), keptSeries)
		l.end()
	}
	// Of as many as there may be at once, so many stay.
	leases := make([]*lease, 2*keptWorkers)
	for i := range leases {
		leases[i] = &lease{budget: b, tenant: "a"}
		require.Nil(t, leases[i].begin(t.Context()))
	}
	for _, l := range leases {
		l.end()
	}
	require.Len(t, b.workers, keptWorkers)
}
