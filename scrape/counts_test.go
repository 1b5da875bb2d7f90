package scrape

import (
	"fmt"
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
