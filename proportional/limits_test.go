package proportional_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestLimitsOfAConfig: as many metrics as are allowed, a panic window of a nanosecond, and both rules that a resolution
// of a nanosecond breaks.
func TestLimitsOfAConfig(t *testing.T) {
	c := pointwise()
	for i := range proportional.MaxMetrics {
		c.Metrics = append(c.Metrics, proportional.Metric{Name: fmt.Sprint("m", i), Target: 1})
	}
	require.NoError(t, c.Validate())
	c = burst(inflight)
	c.Panic.Window = 1
	require.NoError(t, c.Validate())
	c.Resolution = 1
	require.EqualError(t, c.Validate(), fmt.Sprintf("resolution: 1ns: must be of whole milliseconds, at least one\nstableWindow: 10s: must be at most %d times resolution", proportional.MaxBuckets))
	c.Resolution, c.StableWindow = 1500*time.Microsecond, 5*time.Second // its state had more buckets than a state may have
	require.EqualError(t, c.Validate(), "resolution: 1.5ms: must be of whole milliseconds, at least one")
}

// TestWhatAConstructorReturnsBesideAnErrorDecidesUnknown, and does not panic.
func TestWhatAConstructorReturnsBesideAnErrorDecidesUnknown(t *testing.T) {
	apa, err := proportional.APA(scaling.Bounds{}, "", 0)
	require.Error(t, err)
	slo, err := proportional.SLOAware(scaling.Bounds{}, 0, 0)
	require.Error(t, err)
	for _, p := range []scaling.Policy{apa, slo} {
		d := p.Decide(start, scaling.Observation{SpecReplicas: 3})
		require.Equal(t, scaling.NotConfigured, d.Code())
	}
}

// TestSLOAwareToleratesFloatNoise: 100 replicas at 0.561 of which 0.55 is the band need two more, and not three.
func TestSLOAwareToleratesFloatNoise(t *testing.T) {
	for _, c := range []struct {
		n, want int32
		s       float64
	}{{10, 11, 0.605}, {10, 12, 0.66}, {20, 22, 0.605}, {100, 102, 0.561}, {10, 9, 0.36}, {10, 10, 0.4}, {10, 10, 0.55}} {
		p, err := proportional.SLOAware(scaling.Bounds{Min: 1, Max: 1000}, time.Second, time.Second)
		require.NoError(t, err)
		var d scaling.Decision
		for i := range 16 {
			d = p.Decide(start.Add(time.Duration(i)*15*time.Second), holding(c.n, scaling.Exactly(proportional.TTFTP90, c.s), scaling.Exactly(proportional.TPOTP90, 0)))
			require.NoError(t, scalingtest.Explained(&d))
		}
		require.Equal(t, c.want, d.Replicas, "%d at %g: %s", c.n, c.s, d.Explain())
	}
}

// TestScalerKeepsNoLimitOfTheCaller: nor those of a scale-down.
func TestScalerKeepsNoLimitOfTheCaller(t *testing.T) {
	c := pointwise(inflight)
	c.RateLimits.Down.Limits = []scaling.Limit{{Replicas: 1, Period: time.Minute}}
	s := build(t, c)
	c.RateLimits.Down.Limits[0].Replicas = 50
	_, d := s.Decide(proportional.State{}, start, holding(8, scaling.Exactly("inflight", 10)))
	require.EqualValues(t, 7, d.Replicas)
}

// TestAWindowShorterThanABucketIsThatBucket, and none is none, whatever the resolution.
func TestAWindowShorterThanABucketIsThatBucket(t *testing.T) {
	for window, want := range map[time.Duration]string{0: "BelowTarget", 1: "Uncovered"} {
		c := pointwise(inflight)
		c.StableWindow, c.Resolution = window, time.Second
		before := proportional.State{}
		before, _ = build(t, burst(inflight)).Decide(before, start, holding(8, scaling.Exactly("inflight", 80)))
		state, d := build(t, c).Decide(proportional.State{}, start, holding(8, scaling.Exactly("inflight", 10)))
		require.Equal(t, want, d.Code().String(), d.Explain())
		require.Equal(t, window > 0, len(state.Loads) > 0)
		after, _ := build(t, c).Decide(before, start.Add(time.Second), holding(8, scaling.Exactly("inflight", 10)))
		require.Equal(t, window > 0, len(after.Loads) > 0, "without a window nothing is kept of the one before")
	}
}

// TestASampleCountsOnce: by its time, however often it is seen, and not when it is as old as the window.
func TestASampleCountsOnce(t *testing.T) {
	s := build(t, burst(inflight))
	look := func(state proportional.State, now, value, sampled float64) (proportional.State, scaling.Decision) {
		r := scaling.Exactly("inflight", value)
		r.At = at(sampled)
		return s.Decide(state, at(now), holding(4, r))
	}
	state, d := look(proportional.State{}, 1, 40, 0)
	require.Equal(t, "Hold at 4: Within inflight lower=40 <= high=44, upper=40 >= low=36", d.Reason())
	state, d = look(state, 2, 50, 0)
	require.Equal(t, "Hold at 4: Within inflight lower=40 <= high=44, upper=40 >= low=36", d.Reason(), "of the same time")
	_, d = look(state, 2, 50, 1)
	require.Equal(t, "Up 4 -> 5: AboveTarget inflight load=45 > limit=44, target=10", d.Reason())
	_, d = look(proportional.State{}, 10, 40, 0)
	require.Equal(t, scaling.Unknown, d.Verdict)
	_, d = look(proportional.State{}, 9.999, 40, 0)
	require.Equal(t, scaling.Hold, d.Verdict)
}

// TestABurstIsTheAverageOfThePanicWindow: with the first bucket there is.
func TestABurstIsTheAverageOfThePanicWindow(t *testing.T) {
	s := build(t, burst(inflight))
	state, _ := s.Decide(proportional.State{}, at(0), holding(4, scaling.Exactly("inflight", 40)))
	_, d := s.Decide(state, at(1), holding(4, scaling.Exactly("inflight", 200)))
	require.Contains(t, d.Explain(), "inflight wanted=12 >= limit=8, ready=4")
	// One that ends where the window begins is not in it.
	state, _ = s.Decide(proportional.State{}, at(0), holding(4, scaling.Exactly("inflight", 200)))
	state, _ = s.Decide(state, at(2), holding(4))
	require.Equal(t, scaling.StampOf(start), state.Panic)
}

// TestWhatMayPanicIsAveraged over the samples of a bucket too; and it is only said of a scale-down.
func TestWhatMayPanicIsAveraged(t *testing.T) {
	c := burst(inflight)
	c.StableWindow, c.Panic.Window = time.Second, time.Second
	s := build(t, c)
	r := scaling.Reading{Metric: "inflight", Lower: 10, Upper: 15, Values: 1}
	obs := scaling.Observation{SpecReplicas: 4, ReadyReplicas: 1, Readings: []scaling.Reading{r}}
	state, _ := s.Decide(proportional.State{}, at(0), obs)
	state, _ = s.Decide(state, at(1), obs)
	_, d := s.Decide(state, at(1.5), obs)
	require.Equal(t, "Hold at 4: BelowTarget inflight load=15 < limit=36, target=10; MayPanic inflight wanted=2 >= limit=2, ready=1", d.Reason())
	obs.Readings[0].Upper = 40
	_, d = s.Decide(proportional.State{}, at(0), obs)
	require.Equal(t, "Hold at 4: Within inflight lower=10 <= high=44, upper=40 >= low=36", d.Reason())
}

// TestAMillisecondBackIsAStepBack: it holds.
func TestAMillisecondBackIsAStepBack(t *testing.T) {
	s := build(t, burst(inflight))
	state, _ := s.Decide(proportional.State{}, at(1), holding(4, scaling.Exactly("inflight", 40)))
	_, d := s.Decide(state, at(0.999), holding(4, scaling.Exactly("inflight", 40)))
	require.Equal(t, "Hold at 4: ClockBack back=1ms", d.Reason())
}

// TestAPanicOfTheFutureIsOneOfNow: it ends a stable window from now, not years from now.
func TestAPanicOfTheFutureIsOneOfNow(t *testing.T) {
	s := build(t, burst(inflight))
	state := proportional.State{Panic: scaling.StampOf(start.AddDate(1, 0, 0))}
	state, _ = s.Decide(state, at(0), holding(4, scaling.Exactly("inflight", 40)))
	state, _ = s.Decide(state, at(10.001), holding(4, scaling.Exactly("inflight", 40)))
	require.False(t, state.Panic.Set)
}

// TestLimitsOfAState: as many metrics and buckets as there can be, and none after the last decision.
func TestLimitsOfAState(t *testing.T) {
	require.NoError(t, proportional.State{Loads: make([]proportional.Load, proportional.MaxMetrics)}.Validate())
	var buckets []string
	for i := range proportional.MaxBuckets + 1 {
		buckets = append(buckets, fmt.Sprintf("[%d,1,0]", 1000*i))
	}
	var w proportional.Window
	require.NoError(t, json.Unmarshal([]byte(`{"samples":1,"buckets":[`+strings.Join(buckets, ",")+`]}`), &w))
	stamp := scaling.Stamp{Set: true, Milli: 1500}
	for n, want := range map[int]string{1: "", 2: "", 3: "loads[0].window: must be up to seen"} {
		require.NoError(t, json.Unmarshal([]byte(`{"samples":1,"buckets":[`+strings.Join(buckets[:n], ",")+`]}`), &w))
		err := proportional.State{Seen: stamp, Loads: []proportional.Load{{Since: stamp, Last: stamp, Window: w}}}.Validate()
		require.Equal(t, want != "", err != nil, "%d buckets: %v", n, err)
	}
	require.NoError(t, json.Unmarshal([]byte(`{"samples":1,"buckets":[[2000,1,0]]}`), &w))
	require.EqualError(t, proportional.State{Seen: stamp, Loads: []proportional.Load{{Since: stamp, Last: stamp, Window: w}}}.Validate(), "loads[0].window: must be up to seen")
}

// TestMoreMetricsThanThereMayBe: one more than MaxMetrics is refused.
func TestMoreMetricsThanThereMayBe(t *testing.T) {
	c := pointwise()
	for i := range 9 {
		c.Metrics = append(c.Metrics, proportional.Metric{Name: fmt.Sprint("m", i), Target: 1})
	}
	require.EqualError(t, c.Validate(), "metrics: 9: must be at most 8")
}

// TestReadingsOfOneMetricAreMerged: what they agree on is certain.
func TestReadingsOfOneMetricAreMerged(t *testing.T) {
	_, d := build(t, pointwise(inflight)).Decide(proportional.State{}, start, holding(4, scaling.Exactly("inflight", 10), scaling.Exactly("inflight", 100)))
	require.Equal(t, "Hold at 4: Within inflight lower=10 <= high=40, upper=100 >= low=40", d.Reason())
}

// TestAStepBackByOneBucketOfAMillisecond: samples go back with the clock, and leave the window in its time.
func TestAStepBackByOneBucketOfAMillisecond(t *testing.T) {
	c := burst(inflight)
	c.Panic, c.StableWindow, c.Resolution = proportional.Panic{}, 10*time.Millisecond, time.Millisecond
	s := build(t, c)
	state, _ := s.Decide(proportional.State{}, at(0.001), holding(4, scaling.Exactly("inflight", 40)))
	state, _ = s.Decide(state, at(0), holding(4))
	state, d := s.Decide(state, at(0.009), holding(4))
	require.Equal(t, scaling.Hold, d.Verdict, d.Explain())
	_, d = s.Decide(state, at(0.010), holding(4))
	require.Equal(t, scaling.Unknown, d.Verdict, d.Explain())
}

// TestAWindowOfTheFutureIsOneOfNow: it is kept for a stable window from now, not for years.
func TestAWindowOfTheFutureIsOneOfNow(t *testing.T) {
	s := build(t, burst(inflight))
	future, _ := s.Decide(proportional.State{}, start.AddDate(1, 0, 0), holding(4, scaling.Exactly("inflight", 40)))
	state, d := s.Decide(proportional.State{Loads: future.Loads}, at(0), holding(4))
	require.Equal(t, scaling.Hold, d.Verdict, d.Explain())
	_, d = s.Decide(state, at(10), holding(4))
	require.Equal(t, scaling.Unknown, d.Verdict, d.Explain())
}

// TestTheLongestWindow: as many buckets as there may be, and one more.
func TestTheLongestWindow(t *testing.T) {
	c := burst(inflight)
	c.StableWindow = proportional.MaxBuckets * c.Resolution
	require.NoError(t, c.Validate())
	c.StableWindow += c.Resolution
	require.ErrorContains(t, c.Validate(), "stableWindow: ")
}
