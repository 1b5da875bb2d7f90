package scrape

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCountsWithoutASum: where the histogram's own sum is told, a page must have it; where a counter takes its place, it
// need not.
func TestCountsWithoutASum(t *testing.T) {
	f := newCountedFleet(t)
	page := func(n float64) string {
		text := countedPage(-1000, countedEngine{"0", n, 0, 10 * n, 0})
		return strings.ReplaceAll(text, "h_sum", "other_sum")
	}
	f.say("a", page(1))
	f.sweep()
	f.say("a", page(4))
	s := f.sweep()
	require.ErrorContains(t, s.Errors[0], "Buckets")
	require.ErrorContains(t, s.Pods[0].Values[0].Err, "h has no _sum")
	require.NoError(t, s.Errors[1])
	require.Equal(t, []float64{3}, s.Histograms[1].Counts)
	require.InDelta(t, 30, s.Histograms[1].Sum, 0)
}

// TestPagesWithoutACache: a page may lack the counters of Less, and no other; one of another type is no counter.
func TestPagesWithoutACache(t *testing.T) {
	f := newCountedFleet(t)
	page := countedPage(-1000, countedEngine{"0", 5, 0, 50, 9})
	f.say("a", strings.ReplaceAll(page, "cache_total", "other_total"))
	require.NoError(t, func() error { s := f.sweep(); return s.Err() }())
	f.say("a", strings.ReplaceAll(page, "TYPE cache_total counter", "TYPE cache_total gauge"))
	require.ErrorContains(t, f.sweep().Pods[0].Values[1].Err, "Type: cache_total is a gauge: read it as Value, not Rate")
	f.say("a", strings.ReplaceAll(page, "tokens_total", "other_total"))
	require.ErrorContains(t, f.sweep().Pods[0].Values[1].Err, "NotFound: no family tokens_total")
}

// TestCountsOfAnOldPage: one that says that it is older than the staleness limit is none.
func TestCountsOfAnOldPage(t *testing.T) {
	for age, reason := range map[time.Duration]Reason{30 * time.Second: None, 30*time.Second + time.Millisecond: Stale} {
		f := newCountedFleet(t)
		at := fmt.Sprint(f.clock.now().Add(-age).UnixMilli())
		f.say("a", strings.ReplaceAll(countedPage(-1000, countedEngine{"0", 5, 0, 50, 0}), "\nh_count{e=\"0\"} 5", "\nh_count{e=\"0\"} 5 "+at))
		require.Equal(t, reason, reasonOf(f.sweep().Pods[0].Values[0].Err), age)
	}
}

// TestHistogramsOfEngines: which engine has which, and that only Prefilled counts something else than it observes.
func TestHistogramsOfEngines(t *testing.T) {
	have := map[Signal][]Engine{
		PromptTokens: {VLLM, SGLang, TGI, Dynamo}, GenerationTokens: {VLLM, SGLang, TGI, Dynamo}, Prefilled: {VLLM, SGLang},
		TTFTs: {VLLM, SGLang, TRTLLM, Dynamo}, TPOTs: {VLLM, SGLang, TGI, TRTLLM, Dynamo},
	}
	for _, e := range Engines() {
		for _, s := range Histograms() {
			m, err := e.Metric(s)
			if !slices.Contains(have[s], e) {
				require.ErrorAs(t, err, new(*NoSignalError), "%v %v", e, s)
				continue
			}
			require.NoError(t, err, "%v %v", e, s)
			require.NoError(t, m.Validate())
			require.Equal(t, s == Prefilled, len(m.Sum) == 1 && len(m.Less) == 1, "%v %v", e, s)
		}
	}
}

// TestPrefilledOfVLLM: of prompts, it counts the tokens that no cache had.
func TestPrefilledOfVLLM(t *testing.T) {
	page := func(requests, tokens, cached int) string {
		return fmt.Sprintf("# TYPE vllm:time_to_first_token_seconds histogram\nvllm:time_to_first_token_seconds_bucket{le=\"1\"} %d\n"+
			"vllm:time_to_first_token_seconds_sum 1\nvllm:time_to_first_token_seconds_count %d\n"+
			"# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total %d\n"+
			"# TYPE vllm:prefix_cache_hits_total counter\nvllm:prefix_cache_hits_total %d\n", requests, requests, tokens, cached)
	}
	tape := newPageTape(t, signal(t, VLLM, Prefilled))
	_, _ = tape.read([]byte(page(10, 1000, 100)), origin())
	_, fails := tape.read([]byte(page(12, 1500, 300)), origin().Add(15*time.Second))
	require.Nil(t, fails[0])
	got := tape.memory.counted[0]
	require.Equal(t, []float64{2}, got.counts)
	require.InDelta(t, 500, got.sum, 0)
	require.InDelta(t, 200, got.less, 0)
}

// TestACountedPodThatShowsOtherNumbers: between pages of other buckets, or of another name of the family, nothing is told.
func TestACountedPodThatShowsOtherNumbers(t *testing.T) {
	h := []Series{{Families: []string{"new_h", "h"}, Read: Counts}}
	for _, change := range []*strings.Replacer{strings.NewReplacer(`le="1"`, `le="0.5"`), strings.NewReplacer("h_", "new_h_", "TYPE h ", "TYPE new_h ")} {
		tape := newPageTape(t, Metric{Name: "m", Terms: h})
		for i, step := range []struct {
			page string
			want float64
		}{
			{countedPage(-1000, countedEngine{"0", 100, 0, 0, 0}), 0},
			{countedPage(-1000, countedEngine{"0", 103, 0, 0, 0}), 3},
			{change.Replace(countedPage(-1000, countedEngine{"0", 200, 0, 0, 0})), 0},
			{change.Replace(countedPage(-1000, countedEngine{"0", 205, 0, 0, 0})), 5},
		} {
			shares, fails := tape.read([]byte(step.page), origin().Add(time.Duration(i)*15*time.Second))
			require.Nil(t, fails[0])
			require.InDelta(t, step.want, shares[0].value, 0, "page %d", i)
		}
	}
}

// TestWhereCountsOfOtherBucketsGo: to the bucket that has what is just above their lower end.
func TestWhereCountsOfOtherBucketsGo(t *testing.T) {
	for _, row := range []struct{ bounds, counts, want []float64 }{
		{[]float64{1, 2, 4}, []float64{1, 20, 300, 4000}, []float64{1, 20, 300, 4000}},
		{[]float64{0.5, 1, 3}, []float64{1, 20, 300, 4000}, []float64{21, 300, 4000, 0}},
		{[]float64{4}, []float64{1, 20}, []float64{1, 0, 0, 20}},
		{[]float64{5}, []float64{1, 20}, []float64{1, 0, 0, 20}},
	} {
		total := tally{bounds: []float64{1, 2, 4}, counts: make([]float64, 4)}
		total.add(&tally{bounds: row.bounds, counts: row.counts, sum: 5, less: 2})
		require.Equal(t, row.want, total.counts)
		require.Equal(t, [2]float64{5, 2}, [2]float64{total.sum, total.less})
	}
}

func TestCountsOfARealPage(t *testing.T) {
	page := string(loadPage(t, "constructed-vllm-v1-dp8.txt"))
	for _, signal := range Histograms() {
		m, err := VLLM.Metric(signal)
		require.NoError(t, err)
		clock := newTestClock()
		scraper := newScraper(t, Config{Metrics: []Metric{m}, Now: clock.now})
		p := newFakePod(t, "p", page)
		for range 2 {
			s := scraper.Scrape(t.Context(), []Pod{p.pod})
			require.NoError(t, s.Err(), signal)
			require.True(t, s.Histograms[0].Known())
			require.Equal(t, 8, s.Pods[0].Values[0].Engines)
			clock.advance(15 * time.Second)
		}
	}
}

func TestCountsStandBehindReadings(t *testing.T) {
	metrics := append(countedMetrics(), waiting(0))
	require.ErrorContains(t, Config{Metrics: metrics}.Validate(), "metrics[2].name")
	bad := countedMetrics()[1]
	bad.Terms = []Series{{Families: []string{"h"}, Read: Mean}}
	require.ErrorContains(t, bad.Validate(), "only with Counts")
}

// TestRegressionPodsThatAreGoneAreCounted: a scraper kept the names of up to 1,024, which no budget counted, also if it read no Counts.
func TestRegressionPodsThatAreGoneAreCounted(t *testing.T) {
	clock, budget := newTestClock(), newBudget(leastBudget)
	p := newFakePod(t, "p", countedPage(-1000, countedEngine{"0", 10, 0, 100, 0}))
	counts := Metric{Name: "counts", Terms: []Series{{Families: []string{"h"}, Read: Counts}}}
	for _, row := range []struct {
		metric Metric
		gone   int
	}{{waiting(0), 0}, {counts, 3}} {
		s := newScraper(t, Config{Metrics: []Metric{row.metric}, Budget: budget, Now: clock.now})
		sweep := func(name string) {
			pod := p.pod
			pod.Name, pod.UID = name, name
			s.Scrape(t.Context(), []Pod{pod})
			clock.advance(15 * time.Second)
		}
		for _, name := range []string{"a", "b", "c"} {
			sweep(name)
		}
		s.Scrape(t.Context(), nil)
		require.Len(t, s.gone, row.gone)
		require.Equal(t, int64(row.gone)*goneBytes("a"), budget.kept.used)
		sweep("a")
		s.Scrape(t.Context(), nil)
		require.Len(t, s.gone, row.gone, "it was there before")
		require.Equal(t, int64(row.gone)*goneBytes("a"), budget.kept.used)
		require.True(t, budget.keep("other", budget.kept.size-budget.kept.used))
		sweep("d")
		began := clock.now()
		s.Scrape(t.Context(), nil)
		require.Empty(t, s.gone, "no room for another one")
		require.Equal(t, row.gone > 0, s.began.Equal(began), "a process that began before may have been counted")
		budget.keep("other", -budget.kept.accounts["other"].held)
		sweep("e")
		s.Scrape(t.Context(), nil)
		s.Close()
		require.Zero(t, budget.kept.used)
	}
}

// TestRegressionNamesOfPodsThatAreGoneTakeNoMemory: 1,024 took 160 KB of each scraper of gauges.
func TestRegressionNamesOfPodsThatAreGoneTakeNoMemory(t *testing.T) {
	s := newScraper(t, Config{Metrics: []Metric{waiting(0)}})
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range maxGone {
		s.visits([]Pod{{Name: fmt.Sprintf("%050d", i)}})
	}
	s.visits(nil)
	used := heap() - before
	t.Log(used)
	require.Less(t, used, int64(16<<10))
	runtime.KeepAlive(s)
}
