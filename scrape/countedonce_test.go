package scrape

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPodThatReturnsIsNotCountedAgain: a pod that was not in the list once counted as newer than the first sweep when it returned, and
// all that it had counted was added again.
func TestAPodThatReturnsIsNotCountedAgain(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 50, 1e6, 1e5}))
	f.counts(0, 0, 0, 0)
	f.say("b", countedPage(20, countedEngine{"0", 7, 0, 700, 100}))
	f.clock.advance(15 * time.Second)
	f.counts(7, 0, 600, 0)
	order := f.order
	f.order = []string{"a"} // b is not in the list, once
	f.counts(7, 0, 600, 0)
	f.order = order
	f.say("b", countedPage(20, countedEngine{"0", 8, 0, 800, 100}))
	s := f.sweep()
	require.LessOrEqual(t, s.Histograms[0].Counts[0], 8.0)
}

// TestCloseForgetsTheCounts: the counts of before stayed.
func TestCloseForgetsTheCounts(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 50, 1e6, 1e5}))
	f.counts(0, 0, 0, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 110, 50, 1e6, 1e5}))
	f.counts(10, 0, 0, 0)
	f.scraper.Close()
	f.counts(0, 0, 0, 0)
}

// TestCloseForgetsTheFirstSweep: pods that are newer than the first sweep of all were counted a second time.
func TestCloseForgetsTheFirstSweep(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 50, 1e6, 1e5}))
	f.counts(0, 0, 0, 0)
	f.say("b", countedPage(20, countedEngine{"0", 7, 0, 700, 100}))
	f.clock.advance(15 * time.Second)
	f.counts(7, 0, 600, 0)
	f.scraper.Close()
	f.counts(0, 0, 0, 0)
}

// TestCachedTokensThatAppearLate: SGLang has no counter of them before the first hit, and its first value was not subtracted.
func TestCachedTokensThatAppearLate(t *testing.T) {
	m, err := SGLang.Metric(Prefilled)
	require.NoError(t, err)
	page := func(n, tokens, cached float64) string {
		s := fmt.Sprintf("# TYPE sglang:time_to_first_token_seconds histogram\nsglang:time_to_first_token_seconds_bucket{le=\"1\",model_name=\"m\"} %v\nsglang:time_to_first_token_seconds_bucket{le=\"+Inf\",model_name=\"m\"} %v\nsglang:time_to_first_token_seconds_sum{model_name=\"m\"} 1\nsglang:time_to_first_token_seconds_count{model_name=\"m\"} %v\n# TYPE sglang:prompt_tokens_total counter\nsglang:prompt_tokens_total{model_name=\"m\"} %v\n", n, n, n, tokens)
		if cached > 0 {
			s += fmt.Sprintf("# TYPE sglang:cached_tokens_total counter\nsglang:cached_tokens_total{model_name=\"m\",cache_source=\"device\"} %v\n", cached)
		}
		return s
	}
	clock := newTestClock()
	p := newFakePod(t, "a", page(10, 1000, 0))
	s := newScraper(t, Config{Metrics: []Metric{m}, Now: clock.now})
	for _, step := range []struct{ n, tokens, cached, want float64 }{{10, 1000, 0, 0}, {20, 2000, 900, 100}, {30, 3000, 1800, 200}} {
		p.say(page(step.n, step.tokens, step.cached))
		sw := s.Scrape(t.Context(), []Pod{p.pod})
		require.NoError(t, sw.Err())
		require.LessOrEqual(t, sw.Histograms[0].Sum, step.want)
		clock.advance(15 * time.Second)
	}
}

// TestAnOldSnapshotIsNotCounted: the day between it and the first sweep was added.
func TestAnOldSnapshotIsNotCounted(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 50, 1e6, 1e5}))
	f.counts(0, 0, 0, 0)
	data, _ := f.scraper.Snapshot(1 << 20)
	f.clock.advance(24 * time.Hour)
	f.scraper = newScraper(t, Config{Metrics: countedMetrics(), Now: f.clock.now})
	require.NoError(t, f.scraper.Restore(data))
	f.say("a", countedPage(-1000, countedEngine{"0", 900, 50, 2e6, 1e5}))
	f.counts(0, 0, 0, 0)
}

// TestCachedTokensOfANewSource: the first value of a series that appears beside others was not subtracted.
func TestCachedTokensOfANewSource(t *testing.T) {
	f := newCountedFleet(t)
	page := func(tokens, device, host float64) string {
		s := fmt.Sprintf("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE tokens_total counter\ntokens_total %v\n# TYPE cache_total counter\ncache_total{s=\"device\"} %v\n", tokens, device)
		if host > 0 {
			s += fmt.Sprintf("cache_total{s=\"host\"} %v\n", host)
		}
		return s
	}
	f.say("a", page(1000, 100, 0))
	f.sweep()
	f.say("a", page(2000, 150, 900))
	require.LessOrEqual(t, f.sweep().Histograms[1].Sum, 50.0)
}

// TestBucketsStayWhileTheirPodIsThere: one missed answer of the pod with the first buckets made the histogram begin anew with those of
// another pod.
func TestBucketsStayWhileTheirPodIsThere(t *testing.T) {
	f := newCountedFleet(t)
	page := func(n int, le string) string {
		return fmt.Sprintf("# TYPE h histogram\nh_bucket{le=%q} %d\nh_bucket{le=\"+Inf\"} %d\nh_sum 1\nh_count %d\n# TYPE tokens_total counter\ntokens_total 1\n", le, n, n, n)
	}
	f.say("a", page(100, "1"))
	f.say("b", page(100, "2"))
	f.sweep()
	f.say("a", page(150, "1"))
	require.Equal(t, []float64{50, 0}, f.sweep().Histograms[0].Counts)
	f.say("a", "") // 503, once
	s := f.sweep()
	require.Equal(t, []float64{1}, s.Histograms[0].Bounds)
	require.Equal(t, []float64{50, 0}, s.Histograms[0].Counts)
}

// TestAPageWithoutAnyFamilySubtractsNothing: a page that lacks all families (a sidecar answers while the server does not) says nothing of
// cached tokens. The next page's were all subtracted, while its prompt tokens began at what they were.
func TestAPageWithoutAnyFamilySubtractsNothing(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", "# TYPE envoy_x counter\nenvoy_x 1\n")
	f.sweep()
	f.say("a", cachingPage(1000, 1))
	f.sweep()
	f.say("a", cachingPage(1010, 1))
	s := f.sweep()
	require.Equal(t, 10.0, s.Histograms[1].Counts[0])
	require.InDelta(t, 9000, s.Histograms[1].Sum, 1e-9)
}

// TestAnEngineThatReturnsSubtractsNothingOfBefore: its prompt tokens begin at what they are, but all its cached tokens were subtracted.
func TestAnEngineThatReturnsSubtractsNothingOfBefore(t *testing.T) {
	f := newCountedFleet(t)
	n := 100.0
	round := func(engines int) float64 {
		n += 10
		f.say("a", cachingPage(n, engines))
		return f.sweep().Histograms[1].Sum
	}
	round(2)
	require.InDelta(t, 18000, round(2), 1e-9)
	for range 10 {
		round(1)
	}
	before := round(2)
	require.InDelta(t, before+18000, round(2), 1e-9) // 10 requests of each engine, 900 tokens each
}

// cachingPage is a page of engines that each served n requests of 1000 tokens, of which 100 were cached.
func cachingPage(n float64, engines int) string {
	h, tokens, cache := "# TYPE h histogram\n", "# TYPE tokens_total counter\n", "# TYPE cache_total counter\n"
	for e := range engines {
		h += fmt.Sprintf("h_bucket{e=\"%d\",le=\"1\"} %v\nh_bucket{e=\"%d\",le=\"+Inf\"} %v\nh_sum{e=\"%d\"} 1\nh_count{e=\"%d\"} %v\n", e, n, e, n, e, e, n)
		tokens += fmt.Sprintf("tokens_total{e=\"%d\"} %v\n", e, 1e9+n*1000)
		cache += fmt.Sprintf("cache_total{e=\"%d\"} %v\n", e, 5e8+n*100)
	}
	return h + tokens + cache
}
