package scrape

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// A countedEngine is what one data-parallel engine shows: so many first tokens within a second, so many later, and prompts of
// so many tokens, of which a cache had some.
type countedEngine struct {
	name                      string
	fast, slow, tokens, cache float64
}

// countedPage is the page of a pod whose process started so many seconds after the first sweep.
func countedPage(start int64, engines ...countedEngine) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %s\n", unix(start))
	b.WriteString("# TYPE h histogram\n")
	for _, e := range engines {
		n := e.fast + e.slow
		fmt.Fprintf(&b, "h_bucket{e=%q,le=\"1\"} %v\nh_bucket{e=%q,le=\"+Inf\"} %v\nh_sum{e=%q} %v\nh_count{e=%q} %v\n", e.name, e.fast, e.name, n, e.name, n/2, e.name, n)
	}
	b.WriteString("# TYPE tokens_total counter\n")
	for _, e := range engines {
		fmt.Fprintf(&b, "tokens_total{e=%q} %v\n", e.name, e.tokens)
	}
	b.WriteString("# TYPE cache_total counter\n")
	for _, e := range engines {
		fmt.Fprintf(&b, "cache_total{e=%q} %v\n", e.name, e.cache)
	}
	return b.String()
}

func countedMetrics() []Metric {
	h := []Series{{Families: []string{"h"}, Read: Counts}}
	return []Metric{
		{Name: "ttft", Terms: h},
		{Name: "prefilled", Terms: h, Sum: []Series{rate("tokens_total")}, Less: []Series{rate("cache_total")}},
	}
}

// A countedFleet is pods and the scraper that counts what they do.
type countedFleet struct {
	*testing.T

	clock   *testClock
	scraper *Scraper
	pods    map[string]*fakePod
	order   []string
	hidden  map[string]PodState
}

func newCountedFleet(t *testing.T) *countedFleet {
	t.Helper()
	clock := newTestClock()
	return &countedFleet{
		T: t, clock: clock, scraper: newScraper(t, Config{Metrics: countedMetrics(), Now: clock.now}),
		pods: map[string]*fakePod{}, hidden: map[string]PodState{},
	}
}

func (f *countedFleet) say(name, page string) {
	if p := f.pods[name]; p != nil {
		p.say(page)
		return
	}
	f.pods[name], f.order = newFakePod(f, name, page), append(f.order, name)
}

func (f *countedFleet) sweep() Sweep {
	var pods []Pod
	for _, name := range f.order {
		p := f.pods[name].pod
		p.State = f.hidden[name]
		pods = append(pods, p)
	}
	s := f.scraper.Scrape(f.Context(), pods)
	f.clock.advance(15 * time.Second)
	return s
}

// counts sweeps, and wants so many first tokens within a second and later, so many tokens computed, and so many pods failed.
func (f *countedFleet) counts(fast, slow, tokens float64, failed int32) {
	f.Helper()
	s := f.sweep()
	require.Empty(f, s.Readings)
	require.Len(f, s.Histograms, 2)
	ttft, prefilled := s.Histograms[0], s.Histograms[1]
	require.True(f, ttft.Known() && prefilled.Known(), "%v", s.Err())
	require.Equal(f, scaling.Histogram{Metric: "ttft", Bounds: []float64{1}, Counts: []float64{fast, slow}, Sum: (fast + slow) / 2, Failed: failed, At: s.At}, ttft)
	require.Equal(f, []float64{fast + slow}, prefilled.Counts)
	require.InDelta(f, tokens, prefilled.Sum, 1e-9)
	require.Equal(f, failed, prefilled.Failed)
}

func TestCountsAreWhatCameSinceTheFirstSweep(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 50, 1e6, 1e5}))
	f.counts(0, 0, 0, 0) // what was there before is not part of it
	f.say("a", countedPage(-1000, countedEngine{"0", 110, 52, 1e6 + 5000, 1e5 + 1000}))
	f.counts(10, 2, 4000, 0)
	f.counts(10, 2, 4000, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 110, 56, 1e6 + 9000, 1e5 + 1000}))
	require.InDelta(t, 4, f.sweep().Pods[0].Values[0].Value, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 113, 61, 1e6 + 9000, 1e5 + 1000}))
	for _, v := range f.sweep().Pods[0].Values {
		require.Equal(t, [4]float64{8, 8, 8, 1}, [4]float64{v.Value, v.Min, v.Max, v.Weight}, "what came since its last page")
		require.Equal(t, [2]int{1, 1}, [2]int{v.Engines, v.Series})
	}
}

// TestManyCountedEnginesThatAreGone: a thousand are waited for, and more are not.
func TestManyCountedEnginesThatAreGone(t *testing.T) {
	for gone, failed := range map[int]int32{1024: 1, 1025: 0} {
		f := newCountedFleet(t)
		engines := make([]countedEngine, gone+1)
		for i := range engines {
			engines[i].name = fmt.Sprint(i)
		}
		f.say("a", countedPage(-1000, engines...))
		f.counts(0, 0, 0, 0)
		f.say("a", countedPage(-1000, countedEngine{"0", 5, 0, 50, 0}))
		f.counts(5, 0, 50, failed)
	}
}

// TestACountedEngineThatRestartsAlone: its creation time says so, however high it counts.
func TestACountedEngineThatRestartsAlone(t *testing.T) {
	f := newCountedFleet(t)
	page := func(created string, n float64) string {
		return countedPage(-1000, countedEngine{"0", 100, 0, 1000, 0}, countedEngine{"1", n, 0, 10 * n, 0}) +
			"h_created{e=\"1\"} " + created + "\ntokens_created{e=\"1\"} " + created + "\n"
	}
	f.say("a", page("5", 100))
	f.counts(0, 0, 0, 0)
	f.say("a", page("9", 120))
	f.counts(120, 0, 1200, 0)
	f.say("a", page("9", 121))
	f.counts(121, 0, 1210, 0)
	f.say("a", page("0", 125)) // not known
	f.counts(125, 0, 1250, 0)
	f.say("a", page("9", 127))
	f.counts(127, 0, 1270, 0)
}

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

// TestACountedPodThatRestarts: what it shows came since, be the counters lower or higher than they were.
func TestACountedPodThatRestarts(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 0, 1000, 0}))
	f.counts(0, 0, 0, 0)
	f.say("a", countedPage(10, countedEngine{"0", 3, 1, 40, 0})) // lower
	f.counts(3, 1, 40, 0)
	f.say("a", countedPage(20, countedEngine{"0", 30, 10, 400, 0})) // higher than before, by the start of its process
	f.counts(33, 11, 440, 0)
	f.say("a", strings.ReplaceAll(countedPage(20, countedEngine{"0", 2, 0, 20, 0}), "process_start", "other_start")) // a counter that fell
	f.counts(35, 11, 460, 0)
}

// TestACountedEngineThatIsMissingForOnce: the others count on, the pod is said to have failed, and what the engine counted
// meanwhile comes with its next page, once.
func TestACountedEngineThatIsMissingForOnce(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 0, 1000, 0}, countedEngine{"1", 500, 0, 5000, 0}))
	f.counts(0, 0, 0, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 110, 0, 1100, 0}))
	f.counts(10, 0, 100, 1)
	f.say("a", countedPage(-1000, countedEngine{"0", 120, 0, 1200, 0}, countedEngine{"1", 507, 0, 5070, 0}))
	f.counts(27, 0, 270, 0)
	// One that stays away is forgotten after four intervals, and was nobody's fault.
	f.say("a", countedPage(-1000, countedEngine{"0", 120, 0, 1200, 0}))
	for range 5 {
		f.counts(27, 0, 270, 1)
	}
	f.counts(27, 0, 270, 0)
	// Another that goes just then is waited for anew.
	three := []countedEngine{{"0", 120, 0, 1200, 0}, {"1", 507, 0, 5070, 0}, {"2", 5, 0, 50, 0}}
	f.say("a", countedPage(-1000, three...))
	f.counts(27, 0, 270, 0)
	f.say("a", countedPage(-1000, three[0], three[2]))
	for range 5 {
		f.counts(27, 0, 270, 1)
	}
	f.counts(27, 0, 270, 0)
	f.say("a", countedPage(-1000, three[0]))
	f.counts(27, 0, 270, 1)
	f.say("a", countedPage(-1000, three[0], three[2]))
	f.counts(27, 0, 270, 0)
	f.say("a", countedPage(-1000, three[0]))
	for range 5 {
		f.counts(27, 0, 270, 1)
	}
	f.counts(27, 0, 270, 0)
	// An engine that comes and does not say since when it counts is counted from then on.
	f.say("a", countedPage(-1000, countedEngine{"0", 120, 0, 1200, 0}, countedEngine{"1", 900, 0, 9000, 0}))
	f.counts(27, 0, 270, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 120, 0, 1200, 0}, countedEngine{"1", 901, 0, 9010, 0}))
	f.counts(28, 0, 280, 0)
}

// TestACountedPodThatIsSilent: it is said to have failed, and what it counted meanwhile comes with its next page.
func TestACountedPodThatIsSilent(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 0, 1000, 0}))
	f.say("b", countedPage(-1000, countedEngine{"0", 100, 0, 1000, 0}))
	f.counts(0, 0, 0, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 110, 0, 1100, 0}))
	f.say("b", "")
	for range 6 {
		f.counts(10, 0, 100, 1)
	}
	f.say("b", countedPage(-1000, countedEngine{"0", 200, 0, 2000, 0}))
	f.counts(110, 0, 1100, 0)
	// With nobody who answers there is no histogram, and no zero.
	f.say("a", "")
	f.say("b", "")
	s := f.sweep()
	require.False(t, s.Histograms[0].Known())
	require.EqualValues(t, 2, s.Histograms[0].Failed)
	require.ErrorContains(t, s.Errors[0], "no pod gave a value")
	f.say("a", countedPage(-1000, countedEngine{"0", 111, 0, 1110, 0}))
	f.say("b", countedPage(-1000, countedEngine{"0", 201, 0, 2010, 0}))
	f.counts(112, 0, 1120, 0)
}

// TestCountedPodsThatComeAndGo: one that is new has counted all that it shows, if its page says that it is; what one had
// counted stays counted when it goes.
func TestCountedPodsThatComeAndGo(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 0, 1000, 0}))
	f.counts(0, 0, 0, 0)
	f.say("b", countedPage(20, countedEngine{"0", 4, 0, 40, 0}))
	f.hidden["b"] = NotReady
	f.counts(0, 0, 0, 0)
	f.hidden["b"] = Ready
	f.counts(4, 0, 40, 0)
	f.say("c", countedPage(-500, countedEngine{"0", 7000, 0, 70000, 0})) // it was somewhere else before
	f.counts(4, 0, 40, 0)
	f.say("d", countedPage(3600, countedEngine{"0", 9000, 0, 90000, 0})) // its clock is ahead
	f.counts(4, 0, 40, 0)
	f.hidden["b"] = Terminating
	f.say("a", countedPage(-1000, countedEngine{"0", 101, 0, 1010, 0}))
	f.counts(5, 0, 50, 0)
}

// TestACountedPodOfTheFirstSweep: what it had counted is no part of it, however new its process is.
func TestACountedPodOfTheFirstSweep(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(0, countedEngine{"0", 5, 0, 50, 0}))
	f.counts(0, 0, 0, 0)
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

// TestCountsNeverFall: a cache's counter that runs ahead of the prompts' takes nothing back.
func TestCountsNeverFall(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 0, 0, 0, 0}))
	f.counts(0, 0, 0, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 1, 0, 100, 20}))
	f.counts(1, 0, 80, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 1, 0, 100, 70}))
	f.counts(1, 0, 80, 0)
	f.say("a", countedPage(-1000, countedEngine{"0", 2, 0, 200, 70}))
	f.counts(2, 0, 130, 0)
}

// TestCountsOfOtherBuckets: during an upgrade they are put where their lower end is, so that none counts as over a bound that
// may not be; after it the histogram begins anew.
func TestCountsOfOtherBuckets(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 0, 0, 0, 0}))
	other := strings.NewReplacer(`le="1"`, `le="0.5"`)
	f.say("b", other.Replace(countedPage(-1000, countedEngine{"0", 0, 0, 0, 0})))
	f.counts(0, 0, 0, 0)
	f.say("b", other.Replace(countedPage(-1000, countedEngine{"0", 5, 3, 80, 0})))
	f.counts(8, 0, 80, 0) // of the three above 0.5 nobody knows that they are above 1
	f.hidden["a"] = Terminating
	f.say("b", other.Replace(countedPage(-1000, countedEngine{"0", 6, 4, 100, 0})))
	h := f.sweep().Histograms[0]
	require.Equal(t, []float64{0.5}, h.Bounds)
	require.Equal(t, []float64{1, 1}, h.Counts)
}

// TestAMissingHistogramIsNoZero: an engine whose pages lack a family is an error with its name, and not known.
func TestAMissingHistogramIsNoZero(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", "# TYPE tokens_total counter\ntokens_total 5\n")
	s := f.sweep()
	require.False(t, s.Histograms[0].Known())
	require.EqualValues(t, 1, s.Histograms[0].Failed)
	require.ErrorContains(t, s.Errors[0], "NotFound")
	require.ErrorContains(t, s.Err(), "ttft")
	for _, e := range []Engine{TGI, TRTLLM, Triton, Dynamo, LlamaCPP} {
		_, err := e.Metric(Prefilled)
		require.EqualError(t, err, e.String()+" has no Prefilled")
	}
}

// TestCountsGoOnFromASnapshot: nothing is counted twice, and nothing of what came between.
func TestCountsGoOnFromASnapshot(t *testing.T) {
	f := newCountedFleet(t)
	f.say("a", countedPage(-1000, countedEngine{"0", 100, 0, 1000, 0}))
	f.counts(0, 0, 0, 0)
	data, left := f.scraper.Snapshot(1 << 20)
	require.Zero(t, left)
	f.scraper = newScraper(t, Config{Metrics: countedMetrics(), Now: f.clock.now})
	require.NoError(t, f.scraper.Restore(data))
	f.say("a", countedPage(-1000, countedEngine{"0", 107, 0, 1070, 0}))
	f.counts(7, 0, 70, 0)
}

// TestCountsOfARealPage reads what package capacity looks at of a page of vLLM V1 with eight engines.
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
