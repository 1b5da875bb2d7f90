package scrape

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

func waiting(fill float64) Metric {
	m := Named("vllm:num_requests_waiting")
	m.Fill = fill
	return m
}

// brief is the part of a reading that changes.
type brief struct {
	lower, upper             float64
	values, notReady, failed int32
	reused                   int32
}

func briefOf(r scaling.Reading) brief {
	return brief{r.Lower, r.Upper, r.Values, r.NotReady, r.Failed, r.Reused}
}

func TestPartialFleetAndReuseSteps(t *testing.T) {
	clock := newTestClock()
	a, b := newFakePod(t, "a", waitingPage(4)), newFakePod(t, "b", waitingPage(8))
	booting := Pod{Name: "c", Host: "192.0.2.1", State: NotReady}
	s := newScraper(t, Config{Metrics: []Metric{waiting(10)}, Now: clock.now})
	pods := []Pod{b.pod, booting, a.pod}
	for i, step := range []struct {
		a, b string
		want brief
		why  Reason // of b
	}{
		{waitingPage(4), waitingPage(8), brief{4, 22.0 / 3, 2, 1, 0, 0}, None},
		// A server too busy to answer must not look idle: its last value stands in, once, being younger than 30 s.
		{waitingPage(5), "", brief{13.0 / 3, 23.0 / 3, 2, 1, 0, 1}, Status},
		{waitingPage(5), "", brief{5.0 / 3, 25.0 / 3, 1, 1, 1, 0}, Status},
		{waitingPage(5), waitingPage(2), brief{7.0 / 3, 17.0 / 3, 2, 1, 0, 0}, None},
		// What is on the page counts, even if it says nothing.
		{waitingPage(5), "x 1\n", brief{5.0 / 3, 25.0 / 3, 1, 1, 1, 0}, NotFound},
		{waitingPage(5), waitingPage(math.NaN()), brief{5.0 / 3, 25.0 / 3, 1, 1, 1, 0}, NonFinite},
		{waitingPage(5), "", brief{5.0 / 3, 25.0 / 3, 1, 1, 1, 0}, Status}, // and is not forgotten for a failure after it
		{waitingPage(5), waitingPage(-1), brief{5.0 / 3, 25.0 / 3, 1, 1, 1, 0}, Negative},
	} {
		a.say(step.a)
		b.say(step.b)
		sweep := s.Scrape(t.Context(), pods)
		require.NoError(t, sweep.Err(), "step %d", i)
		got := briefOf(sweep.Readings[0])
		require.InDelta(t, step.want.lower, got.lower, 1e-12, "step %d", i)
		require.InDelta(t, step.want.upper, got.upper, 1e-12, "step %d", i)
		got.lower, got.upper = step.want.lower, step.want.upper
		require.Equal(t, step.want, got, "step %d", i)
		require.Equal(t, clock.now(), sweep.Readings[0].At)
		require.Equal(t, []string{"a", "b", "c"}, []string{sweep.Pods[0].Name, sweep.Pods[1].Name, sweep.Pods[2].Name})
		value := sweep.Pods[1].Values[0]
		require.Equal(t, step.why, reasonOf(value.Err), "step %d", i)
		require.Equal(t, step.want.reused > 0, value.Reused)
		if value.Reused {
			require.True(t, value.OK)
			require.Equal(t, 15*time.Second, clock.now().Sub(value.At))
		}
		require.Empty(t, sweep.Pods[2].Fetches)
		clock.advance(15 * time.Second)
	}
}

func TestStaleBeyondTheLimitIsMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := newTestClock()
		staleness := time.Duration(rapid.IntRange(1, 100).Draw(t, "staleness")) * time.Second
		age := time.Duration(rapid.IntRange(-5, 150).Draw(t, "age")) * time.Second
		s, err := New(Config{Metrics: []Metric{waiting(0)}, Staleness: staleness, Now: clock.now})
		require.NoError(t, err)
		visits := s.visits([]Pod{{Name: "p"}})
		visits[0].memory.last[0] = &share{num: 3, den: 1, value: 3, at: clock.now()}
		visits[0].result.Values[0].Err = failf(Timeout, "late")
		s.reuse(visits[0], clock.now().Add(age))
		fresh := age >= 0 && age < staleness
		require.Equal(t, fresh, visits[0].result.Values[0].Reused)
		require.Equal(t, fresh, visits[0].shares[0] != nil)
	})
}

func TestPageTimestamps(t *testing.T) {
	clock := newTestClock()
	p := newFakePod(t, "p", "")
	s := newScraper(t, Config{Metrics: []Metric{waiting(0)}, Now: clock.now})
	at := func(age time.Duration) string {
		return fmt.Sprintf("vllm:num_requests_waiting 3 %d\n", clock.now().Add(-age).UnixMilli())
	}
	p.say(at(30 * time.Second))
	sweep := s.Scrape(t.Context(), []Pod{p.pod})
	require.NoError(t, sweep.Err())
	p.say(at(30*time.Second + time.Millisecond))
	sweep = s.Scrape(t.Context(), []Pod{p.pod})
	require.EqualError(t, sweep.Err(), "metric vllm:num_requests_waiting: Stale: no pod gave a value: 1 Stale")
	require.False(t, sweep.Readings[0].Known())
}

func TestDuplicatesCountOnce(t *testing.T) {
	a, b := newFakePod(t, "a", waitingPage(4)), newFakePod(t, "b", waitingPage(8))
	s := newScraper(t, Config{Metrics: []Metric{waiting(10)}})
	sameUID, sameName := a.pod, b.pod
	sameUID.Name = "z"
	sameName.UID = "other"
	lower := b.pod
	lower.State = NotReady // one entry says ready: the pod is
	all := []Pod{a.pod, b.pod, sameUID, sameName, a.pod, lower}
	first := s.Scrape(t.Context(), all)
	require.NoError(t, first.Err())
	require.Equal(t, brief{6, 6, 2, 0, 0, 0}, briefOf(first.Readings[0]))
	slices.Reverse(all)
	second := s.Scrape(t.Context(), all)
	require.Equal(t, briefOf(first.Readings[0]), briefOf(second.Readings[0]))
	require.Equal(t, int32(2), a.requests.Load())
}

func TestRosterDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Pod {
			return Pod{
				Name:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
				UID:   rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "uid"),
				Host:  rapid.SampledFrom([]string{"h", "g"}).Draw(t, "host"),
				State: PodState(rapid.IntRange(0, 4).Draw(t, "state")),
			}
		})).Draw(t, "pods")
		got := roster(pods)
		require.Equal(t, got, roster(rapid.Permutation(pods).Draw(t, "shuffled")))
		names, uids := map[string]bool{}, map[string]bool{}
		for _, p := range got {
			require.False(t, names[p.Name] || p.UID != "" && uids[p.UID])
			names[p.Name], uids[p.UID] = true, true
			require.LessOrEqual(t, p.State, NotReady)
		}
		for _, p := range pods {
			require.True(t, p.State > NotReady || names[p.Name] || uids[p.UID], "%v is lost", p)
		}
	})
}

func TestPodsThatGoAreLeftOutAndForgotten(t *testing.T) {
	clock := newTestClock()
	a, b := newFakePod(t, "a", waitingPage(4)), newFakePod(t, "b", waitingPage(8))
	s := newScraper(t, Config{Metrics: []Metric{waiting(10)}, Now: clock.now})
	for _, state := range []PodState{Terminating, Failed, Completed} {
		gone := b.pod
		gone.State = state
		sweep := s.Scrape(t.Context(), []Pod{a.pod, gone})
		require.Equal(t, brief{4, 4, 1, 0, 0, 0}, briefOf(sweep.Readings[0]), state)
		require.Len(t, sweep.Pods, 1)
	}
	require.Zero(t, b.requests.Load())
	s.Scrape(t.Context(), []Pod{a.pod, b.pod})
	require.Len(t, s.memory, 2)
	s.Scrape(t.Context(), []Pod{a.pod})
	require.Len(t, s.memory, 1)
	// Back again, and failing: there is nothing to reuse.
	b.say("")
	sweep := s.Scrape(t.Context(), []Pod{a.pod, b.pod})
	require.Equal(t, int32(0), sweep.Readings[0].Reused)
	// A pod of the same name and another UID is another pod.
	b.say(waitingPage(8))
	s.Scrape(t.Context(), []Pod{b.pod})
	b.say("")
	replaced := b.pod
	replaced.UID = "new"
	require.Zero(t, s.Scrape(t.Context(), []Pod{replaced}).Readings[0].Reused)
}

func TestAbsentEverywhereIsAnError(t *testing.T) {
	clock := newTestClock()
	a, b := newFakePod(t, "a", "x 1\n"), newFakePod(t, "b", "x 1\n")
	s := newScraper(t, Config{Metrics: []Metric{waiting(10), Named("x")}, Now: clock.now})
	pods := []Pod{a.pod, b.pod, {Name: "c", State: NotReady}}
	sweep := s.Scrape(t.Context(), pods)
	var e *Error
	require.ErrorAs(t, sweep.Errors[0], &e)
	require.Equal(t, NotFound, e.Reason)
	require.EqualError(t, e, "metric vllm:num_requests_waiting: NotFound: no pod gave a value: 2 NotFound, 1 not ready")
	require.NoError(t, sweep.Errors[1])
	require.Equal(t, brief{0, 0, 0, 1, 2, 0}, briefOf(sweep.Readings[0]))
	require.False(t, sweep.Readings[0].Known())
	// An old value on one pod does not hide that the others have no such metric.
	b.say(waitingPage(3))
	s.Scrape(t.Context(), pods)
	b.say("")
	sweep = s.Scrape(t.Context(), pods)
	require.EqualError(t, sweep.Errors[0], "metric vllm:num_requests_waiting: NotFound: absent from all 1 pages that were had")
	require.Equal(t, int32(1), sweep.Readings[0].Reused)
}

func TestNoPodsIsAnError(t *testing.T) {
	s := newScraper(t, Config{})
	for _, pods := range [][]Pod{nil, {{Name: "a", State: Terminating}}} {
		sweep := s.Scrape(t.Context(), pods)
		require.ErrorIs(t, sweep.Errors[0], ErrNoPods)
		require.Equal(t, "vllm:num_requests_waiting", sweep.Readings[0].Metric)
		require.False(t, sweep.Readings[0].Known())
		require.Empty(t, sweep.Pods)
	}
	sweep := s.Scrape(t.Context(), []Pod{{Name: "a", State: NotReady}})
	require.EqualError(t, sweep.Err(), "metric vllm:num_requests_waiting: NoPods: none of 1 pods is ready")
	require.Equal(t, int32(1), sweep.Readings[0].NotReady)
}

func TestOneBadNumberIsOneMissingPod(t *testing.T) {
	good := newFakePod(t, "good", waitingPage(4))
	for value, reason := range map[string]Reason{"NaN": NonFinite, "+Inf": NonFinite, "-Inf": NonFinite, "-1.0": Negative, "-0.5": Negative} {
		bad := newFakePod(t, "bad", "vllm:num_requests_waiting "+value+"\n")
		s := newScraper(t, Config{Metrics: []Metric{waiting(10)}})
		sweep := s.Scrape(t.Context(), []Pod{good.pod, bad.pod})
		require.Equal(t, brief{2, 7, 1, 0, 1, 0}, briefOf(sweep.Readings[0]), value)
		require.Equal(t, reason, sweep.Pods[0].Values[0].Err.Reason)
	}
}
