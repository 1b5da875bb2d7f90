package scrape

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

func TestOneFetchForAllMetricsOfAnEndpoint(t *testing.T) {
	p := newFakePod(t, "p", string(loadPage(t, "constructed-vllm-v1-dp8.txt")))
	kv, running := signal(t, VLLM, KVCacheUsage), signal(t, VLLM, Running)
	s := newScraper(t, Config{Metrics: []Metric{waiting(0), kv, running}})
	sweep := s.Scrape(t.Context(), []Pod{p.pod})
	require.NoError(t, sweep.Err())
	require.Equal(t, int32(1), p.requests.Load(), "the pod's URL has a path: everything is on that page")
	require.InDelta(t, 147, sweep.Readings[0].Lower, 0)
	require.InDelta(t, 0.57, sweep.Readings[1].Lower, 0.005)
	require.InDelta(t, 0.91, sweep.Pods[0].Values[1].Max, 0.005)
	require.Len(t, loadPage(t, "constructed-vllm-v1-dp8.txt"), sweep.Pods[0].Fetches[0].Bytes)

	// Without a path in the URL each endpoint is asked for, once.
	p.pod.URL = p.pod.URL[:len(p.pod.URL)-len("/metrics")]
	other := signal(t, TRTLLM, Waiting)
	s = newScraper(t, Config{Metrics: []Metric{kv, other, running}})
	sweep = s.Scrape(t.Context(), []Pod{p.pod})
	require.Equal(t, int32(3), p.requests.Load())
	require.Len(t, sweep.Pods[0].Fetches, 2)
	require.NoError(t, sweep.Errors[0])
	require.Error(t, sweep.Errors[1])
	require.NoError(t, sweep.Errors[2])
}

func TestDamageToOneMetricLeavesTheOthers(t *testing.T) {
	p := newFakePod(t, "p", "vllm:num_requests_waiting 4\nvllm:kv_cache_usage_perc{ 0.5\n")
	s := newScraper(t, Config{Metrics: []Metric{waiting(0), signal(t, VLLM, KVCacheUsage)}})
	sweep := s.Scrape(t.Context(), []Pod{p.pod})
	require.NoError(t, sweep.Errors[0])
	require.Equal(t, Parse, sweep.Pods[0].Values[1].Err.Reason)
	require.ErrorContains(t, sweep.Errors[1], "1 Parse")
}

func TestRestartedPodsCountersAndIdleFleet(t *testing.T) {
	clock := newTestClock()
	page := func(start, tokens, n, sum int) string {
		return fmt.Sprintf("%s %d\n# TYPE t_total counter\nt_total %d\n# TYPE h histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"2\"} %d\nh_bucket{le=\"+Inf\"} %d\nh_sum %d\nh_count %d\n",
			startFamily, start, tokens, n, n, n, sum, n)
	}
	a, b := newFakePod(t, "a", page(1000, 500, 10, 5)), newFakePod(t, "b", page(1000, 900, 20, 10))
	s := newScraper(t, Config{Now: clock.now, Metrics: []Metric{
		{Name: "tokens", Fill: 100, Terms: []Series{{Families: []string{"t_total"}, Read: Rate, Across: Sum}}},
		{Name: "mean", Fill: 2, Terms: []Series{{Families: []string{"h"}, Read: Mean}}},
		{Name: "p50", Fill: 2, Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}},
	}})
	pods := []Pod{a.pod, b.pod}
	sweep := s.Scrape(t.Context(), pods)
	for i := range 3 {
		require.ErrorContains(t, sweep.Errors[i], "2 NoBaseline")
	}
	// a goes on; b restarted and has counted further than before.
	clock.advance(10 * time.Second)
	a.say(page(1000, 600, 14, 8))
	b.say(page(1500, 1200, 36, 18))
	sweep = s.Scrape(t.Context(), pods)
	require.NoError(t, sweep.Err())
	require.InDelta(t, (10.0+120)/2, sweep.Readings[0].Lower, 1e-9)
	require.InDelta(t, (3.0+18)/(4+36), sweep.Readings[1].Lower, 1e-9)
	require.InDelta(t, 0.5, sweep.Readings[2].Lower, 1e-9)
	require.InDelta(t, 36, sweep.Pods[1].Values[2].Weight, 0)
	// One pod fails: its last increase stands in, with its weight.
	clock.advance(10 * time.Second)
	a.say(page(1000, 700, 18, 12))
	b.say("")
	sweep = s.Scrape(t.Context(), pods)
	require.NoError(t, sweep.Err())
	require.Equal(t, int32(1), sweep.Readings[1].Reused)
	require.InDelta(t, (4.0+18)/(4+36), sweep.Readings[1].Lower, 1e-9)
	// Nobody finishes anything: the rate is 0, the latency unknown.
	b.say(page(1500, 1200, 36, 18))
	clock.advance(10 * time.Second)
	sweep = s.Scrape(t.Context(), pods)
	require.NoError(t, sweep.Errors[0])
	require.Zero(t, sweep.Readings[0].Lower)
	for _, i := range []int{1, 2} {
		require.ErrorContains(t, sweep.Errors[i], "NoObservations")
		require.False(t, sweep.Readings[i].Known())
		require.Equal(t, int32(2), sweep.Readings[i].Failed)
		require.Equal(t, NoObservations, sweep.Pods[0].Values[i].Err.Reason)
		require.False(t, sweep.Pods[0].Values[i].OK)
		require.False(t, sweep.Pods[0].Values[i].Reused)
	}
}

func TestPodsWithOtherBucketsAreMissing(t *testing.T) {
	clock := newTestClock()
	var pods []Pod
	var fakes []*fakePod
	page := func(bound, n int) string {
		return fmt.Sprintf("# TYPE h histogram\nh_bucket{le=\"%d\"} %d\nh_sum %d\nh_count %d\n", bound, n, n, n)
	}
	for i, bound := range []int{1, 1, 9} {
		fakes = append(fakes, newFakePod(t, fmt.Sprint(i), page(bound, 1)))
		pods = append(pods, fakes[i].pod)
	}
	s := newScraper(t, Config{Now: clock.now, Metrics: []Metric{
		{Name: "p50", Fill: 2, Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}},
	}})
	s.Scrape(t.Context(), pods)
	clock.advance(15 * time.Second)
	for i, bound := range []int{1, 1, 9} {
		fakes[i].say(page(bound, 5))
	}
	sweep := s.Scrape(t.Context(), pods)
	require.NoError(t, sweep.Err())
	require.Equal(t, int32(2), sweep.Readings[0].Values)
	require.Equal(t, int32(1), sweep.Readings[0].Failed)
	require.Equal(t, Buckets, sweep.Pods[2].Values[0].Err.Reason)
	require.False(t, sweep.Pods[2].Values[0].OK)
	require.InDelta(t, 0.25, sweep.Readings[0].Lower, 1e-12) // rank 6-4 of 8 in one bucket
	require.InDelta(t, 0.75, sweep.Readings[0].Upper, 1e-12)
	// Nor does the last value of such a pod stand in.
	clock.advance(15 * time.Second)
	fakes[0].say(page(1, 9))
	fakes[1].say(page(1, 9))
	fakes[2].say("")
	sweep = s.Scrape(t.Context(), pods)
	require.Equal(t, int32(2), sweep.Readings[0].Values)
	require.Zero(t, sweep.Readings[0].Reused)
	require.Equal(t, Buckets, sweep.Pods[2].Values[0].Err.Reason)
	require.False(t, sweep.Pods[2].Values[0].OK || sweep.Pods[2].Values[0].Reused)
}

func TestTheSweepEndsByItsDeadline(t *testing.T) {
	release := make(chan struct{})
	base := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	var pods []Pod
	for i := range 20 {
		pods = append(pods, Pod{Name: fmt.Sprintf("%02d", i), URL: base + "/metrics"})
	}
	s := newScraper(t, Config{Timeout: 10 * time.Second, SweepTimeout: 300 * time.Millisecond, Concurrency: 2})
	begun := time.Now()
	sweep := s.Scrape(t.Context(), pods)
	require.Less(t, time.Since(begun), 3*time.Second)
	for _, p := range sweep.Pods {
		require.Equal(t, Deadline, p.Values[0].Err.Reason)
		require.ErrorIs(t, p.Values[0].Err, context.DeadlineExceeded)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sweep = s.Scrape(ctx, pods)
	require.Equal(t, Canceled, sweep.Pods[0].Values[0].Err.Reason)
	require.ErrorContains(t, sweep.Err(), "20 Canceled")
}

// TestRegressASweepWaitsForAnotherNoLongerThanItsContext: a sweep behind one that hangs once waited for the end of that one,
// whatever its own context and its own SweepTimeout said.
func TestRegressASweepWaitsForAnotherNoLongerThanItsContext(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	base := serve(t, func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	pods := []Pod{{Name: "a", URL: base + "/metrics"}}
	s := newScraper(t, Config{Interval: 20 * time.Second, Timeout: 5 * time.Second, SweepTimeout: 5 * time.Second})
	first := make(chan Sweep, 1)
	go func() { first <- s.Scrape(t.Context(), pods) }()
	<-asked

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sweep := s.Scrape(ctx, pods)
	require.Empty(t, first, "it waited for the other sweep")
	require.Equal(t, Canceled, sweep.Pods[0].Values[0].Err.Reason)
	require.False(t, sweep.Readings[0].Known())
	require.Error(t, sweep.Err())
	end()
	require.False(t, (<-first).At.IsZero())
}

func TestSpreadGivesEveryPodItsPlace(t *testing.T) {
	const spread = 200 * time.Millisecond
	seen := map[time.Duration]bool{}
	for i := range 100 {
		p := Pod{Name: fmt.Sprint("pod-", i)}
		d := offset(&p, spread)
		require.True(t, d >= 0 && d < spread)
		require.Equal(t, d, offset(&p, spread))
		seen[d/(spread/10)] = true
	}
	require.Len(t, seen, 10, "no tenth of the spread is empty")
	require.Zero(t, offset(&Pod{Name: "pod-0"}, 0))

	var mu sync.Mutex
	at := map[string]time.Time{}
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		at[r.URL.RawQuery] = time.Now()
		mu.Unlock()
		answer(textVersion, waitingPage(1))(w, r)
	})
	var pods []Pod
	for i := range 20 {
		pods = append(pods, Pod{Name: fmt.Sprint(i), URL: fmt.Sprintf("%s/metrics?%d", base, i)})
	}
	s := newScraper(t, Config{Spread: spread})
	begun := time.Now()
	sweep := s.Scrape(t.Context(), pods)
	require.NoError(t, sweep.Err())
	for i := range pods {
		require.GreaterOrEqual(t, at[fmt.Sprint(i)].Sub(begun), offset(&pods[i], spread))
	}
}

// TestEachMetricIsReadFromItsEndpoint: whichever order the metrics have.
func TestEachMetricIsReadFromItsEndpoint(t *testing.T) {
	var asked atomic.Int32
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(textVersion, fmt.Sprintf("a %d\nb %[1]d\nc %[1]d\n", len(r.URL.Path)))(w, r)
	})
	var metrics []Metric
	for name, path := range []string{"/1", "/12", "/1"} {
		m := Named(string(rune('a' + name)))
		m.Endpoint.Path = path
		metrics = append(metrics, m)
	}
	s := newScraper(t, Config{Metrics: metrics})
	sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base}})
	require.NoError(t, sweep.Err())
	require.Equal(t, [3]float64{2, 3, 2}, [3]float64{sweep.Readings[0].Lower, sweep.Readings[1].Lower, sweep.Readings[2].Lower})
	require.Equal(t, int32(2), asked.Load())
}

// TestASpreadSweepIsInOrder: pods are asked in the order of their places, and the sweep is over when the last one's has come.
func TestASpreadSweepIsInOrder(t *testing.T) {
	const spread = 50 * time.Millisecond
	var mu sync.Mutex
	var asked []time.Duration
	var pods []Pod
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, offset(&Pod{Name: r.URL.RawQuery}, spread))
		mu.Unlock()
		answer(textVersion, waitingPage(1))(w, r)
	})
	for i := range 100 {
		pods = append(pods, Pod{Name: fmt.Sprint(i), URL: fmt.Sprintf("%s/metrics?%d", base, i)})
	}
	s := newScraper(t, Config{Spread: spread, Concurrency: 1})
	begun := time.Now()
	sweep := s.Scrape(t.Context(), pods)
	require.NoError(t, sweep.Err())
	require.Less(t, time.Since(begun), 40*spread) // waiting for each by itself takes 50
	require.Len(t, asked, len(pods))
	require.IsNonDecreasing(t, asked)
}

// TestWhatIsToldOfAFetch: when it began, how long it took, and how long the page is.
func TestWhatIsToldOfAFetch(t *testing.T) {
	clock := newTestClock()
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		clock.advance(2 * time.Second)
		answer(textVersion, waitingPage(1))(w, r)
	})
	s := newScraper(t, Config{Now: clock.now})
	sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: p + "/metrics"}})
	require.Equal(t, []Fetch{{At: origin(), Duration: 2 * time.Second, Bytes: len(waitingPage(1))}}, sweep.Pods[0].Fetches)
	require.Equal(t, origin(), sweep.Pods[0].Values[0].At)
}

func TestSweepsMayBeAskedForAtOnce(t *testing.T) {
	p := newFakePod(t, "p", waitingPage(4))
	s := newScraper(t, Config{})
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			sweep := s.Scrape(t.Context(), []Pod{p.pod})
			if sweep.Readings[0].Lower != 4 {
				t.Error(sweep.Err())
			}
		}()
	}
	group.Wait()
}

func TestTargetsThatCannotBeUsed(t *testing.T) {
	ok := newFakePod(t, "ok", waitingPage(4))
	s := newScraper(t, Config{})
	pods := []Pod{
		ok.pod,
		{Name: "empty"},
		{Name: "userinfo", Host: "user@127.0.0.1"},
		{Name: "with path", Host: "127.0.0.1/x"},
		{Name: "with port", Host: "127.0.0.1:80"},
		{Name: "brackets", Host: "[::1]"},
		{Name: "scheme", URL: "file:///etc/passwd"},
		{Name: "password", URL: "http://user:" + secret + "@127.0.0.1/metrics"},
		{Name: "fragment", URL: "http://127.0.0.1/metrics#x"},
		{Name: "port", URL: "http://127.0.0.1:99999/metrics"},
		{Name: "not a url", URL: "http://" + secret + ":\x00/"},
		{Name: "slashes", URL: "http://127.0.0.1//evil/x"},
		{Name: "no host", URL: "http:///metrics"},
	}
	sweep := s.Scrape(t.Context(), pods)
	require.Equal(t, int32(1), sweep.Readings[0].Values)
	for _, p := range sweep.Pods {
		if p.Name == "ok" {
			continue
		}
		require.Equal(t, Target, p.Values[0].Err.Reason, p.Name)
		require.NotContains(t, p.Values[0].Err.Error(), secret)
		var field *scaling.FieldError
		require.ErrorAs(t, p.Values[0].Err, &field)
	}
}
