package proportional_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// burst is the configuration of TestSteps: a stable window of 10 s, a panic window of 2 s, from twice what is ready on.
func burst(metrics ...proportional.Metric) proportional.Config {
	return proportional.Config{
		Bounds: scaling.Bounds{Min: 1, Max: 50}, Metrics: metrics,
		Up: proportional.Rule{Tolerance: 0.1}, Down: proportional.Rule{Tolerance: 0.1},
		StableWindow: 10 * time.Second, Resolution: time.Second,
		Panic: proportional.Panic{Window: 2 * time.Second, Threshold: 2},
	}
}

// TestEveryReasonIsTold has the explanations of a run with two metrics, one of which bursts, and when time alone would
// change an answer.
func TestEveryReasonIsTold(t *testing.T) {
	queue := proportional.Metric{Name: "queue", Target: 5, Measure: proportional.Total}
	s := build(t, burst(inflight, queue))
	var state proportional.State
	var out strings.Builder
	tell := func(seconds float64, spec int32, readings ...scaling.Reading) {
		var d scaling.Decision
		state, d = s.Decide(state, at(seconds), holding(spec, readings...))
		state = copied(t, state)
		require.NoError(t, scalingtest.Explained(&d))
		next := "none"
		if !d.Next.IsZero() {
			next = d.Next.Sub(start).String()
		}
		fmt.Fprintf(&out, "# %vs, next %s\n%s\n", seconds, next, d.Explain())
	}
	two := func(a, b float64) []scaling.Reading {
		return []scaling.Reading{scaling.Exactly("inflight", a), scaling.Exactly("queue", b)}
	}
	tell(0, 4, two(20, 20)...)
	tell(4, 4, scaling.Reading{Metric: "inflight", Lower: 20, Upper: 21, Values: 1}, scaling.Exactly("queue", 20))
	tell(4.5, 4, scaling.Reading{Metric: "inflight", Lower: 20, Upper: 22, Values: 1}, scaling.Exactly("queue", 20))
	tell(5, 4, two(20, 20)...)
	tell(9.5, 4, two(20, 20)...)
	tell(10, 4, two(20, 20)...)
	tell(11, 4, two(500, 20)...)
	tell(12, 23, two(500, 500)...)
	tell(13, 23, two(500, 500)...)
	tell(14, 23, two(0, 0)...)
	for seconds := 15.0; seconds < 26; seconds++ {
		tell(seconds, 40, two(0, 0)...)
	}
	tell(26, 40, scaling.Exactly("queue", 0))
	tell(40, 40, scaling.Exactly("queue", 0))
	tell(61, 40, two(0, 0)...)
	scalingtest.Golden(t, "explained.txt", out.String())
}

// TestAPanicKeepsThePeak: what was asked for, whether it was written or not, and what somebody else asked for.
func TestAPanicKeepsThePeak(t *testing.T) {
	s := build(t, burst(inflight))
	var state proportional.State
	var d scaling.Decision
	for i := range 11 {
		state, _ = s.Decide(state, at(float64(i)), holding(4, scaling.Exactly("inflight", 40)))
	}
	state, d = s.Decide(state, at(11), holding(4, scaling.Exactly("inflight", 200)))
	require.EqualValues(t, 12, d.Replicas, d.Explain())
	state, d = s.Decide(state, at(12), holding(4, scaling.Exactly("inflight", 110))) // the write was refused; it goes on
	require.EqualValues(t, 16, d.Replicas, d.Explain())
	state, d = s.Decide(state, at(13), holding(4, scaling.Exactly("inflight", 60)))
	require.EqualValues(t, 16, d.Replicas, "no fewer than was asked for\n%s", d.Explain())
	_, d = s.Decide(state, at(14), holding(30, scaling.Exactly("inflight", 60)))
	require.EqualValues(t, 30, d.Replicas, "nor than somebody asked for\n%s", d.Explain())
	for i := 14; i < 40; i++ {
		state, _ = s.Decide(state, at(float64(i)), holding(16, scaling.Exactly("inflight", 40)))
	}
	require.Zero(t, state.Peak)
}

// TestOneReadyReplicaPanicsAtTheThreshold: twice of one is two, and so is twice of none.
func TestOneReadyReplicaPanicsAtTheThreshold(t *testing.T) {
	for ready := range int32(2) {
		state, _ := build(t, burst(inflight)).Decide(proportional.State{}, start, scaling.Observation{
			SpecReplicas: 5, ReadyReplicas: ready, Readings: []scaling.Reading{scaling.Exactly("inflight", 20)},
		})
		require.True(t, state.Panic.Set)
		state, _ = build(t, burst(inflight)).Decide(proportional.State{}, start, scaling.Observation{
			SpecReplicas: 5, ReadyReplicas: ready, Readings: []scaling.Reading{scaling.Exactly("inflight", 10)},
		})
		require.False(t, state.Panic.Set)
	}
}

// TestOfEqualMetricsTheFirstByNameDecides, and panics.
func TestOfEqualMetricsTheFirstByNameDecides(t *testing.T) {
	b := proportional.Metric{Name: "b", Target: 10, Measure: proportional.Total}
	a := proportional.Metric{Name: "a", Target: 10, Measure: proportional.Total}
	_, d := build(t, burst(b, a)).Decide(proportional.State{}, start, holding(2, scaling.Exactly("a", 90), scaling.Exactly("b", 90)))
	steps := d.Steps()
	require.Equal(t, "Panicked a, AboveTarget a", fmt.Sprintf("%s %s, %s %s", steps[0].Code, steps[0].Subject, steps[1].Code, steps[1].Subject))
}

// TestASilentMetricHasNoBurst: what is older than the panic window neither begins a panic nor extends one.
func TestASilentMetricHasNoBurst(t *testing.T) {
	s := build(t, burst(inflight, proportional.Metric{Name: "queue", Target: 10, Measure: proportional.Total}))
	state, _ := s.Decide(proportional.State{}, at(0), holding(4, scaling.Exactly("inflight", 200), scaling.Exactly("queue", 1)))
	require.Equal(t, scaling.StampOf(start), state.Panic)
	state, _ = s.Decide(state, at(5), holding(4, scaling.Exactly("queue", 1)))
	require.Equal(t, scaling.StampOf(start), state.Panic)
}

// TestOneSampleMayPanic: with what is missing, the first one there is.
func TestOneSampleMayPanic(t *testing.T) {
	c := burst(inflight)
	c.StableWindow, c.Panic.Window = time.Second, time.Second
	s := build(t, c)
	r := scaling.Exactly("inflight", 10)
	state, _ := s.Decide(proportional.State{}, at(0), holding(4, r))
	r.Upper = 30
	_, d := s.Decide(state, at(1), scaling.Observation{SpecReplicas: 4, ReadyReplicas: 1, Readings: []scaling.Reading{r}})
	require.Equal(t, "Hold at 4: BelowTarget inflight load=30 < limit=36, target=10; MayPanic inflight wanted=3 >= limit=2, ready=1", d.Reason())
}

// TestLimitsOfCorrections: what just fits is not limited, and is not said to be.
func TestLimitsOfCorrections(t *testing.T) {
	c := pointwise(inflight)
	c.Up.MaxStep, c.Down.MaxStep, c.Up.MaxRate, c.Down.MaxRate = 2, 2, 1.5, 2
	for load, want := range map[float64]string{
		60: "Up 4 -> 6: AboveTarget inflight load=60 > limit=40, target=10",
		61: "Up 4 -> 6: AboveTarget inflight load=61 > limit=40, target=10; UpRate from=7 > limit=6, rate=1.5, ready=4",
		20: "Down 4 -> 2: BelowTarget inflight load=20 < limit=40, target=10",
	} {
		_, d := build(t, c).Decide(proportional.State{}, start, holding(4, scaling.Exactly("inflight", load)))
		require.Equal(t, want, d.Reason())
	}
	c = pointwise(inflight)
	c.Down.MaxRate = 2
	_, d := build(t, c).Decide(proportional.State{}, start, scaling.Observation{SpecReplicas: 5, ReadyReplicas: 1, Readings: []scaling.Reading{scaling.Exactly("inflight", 0)}})
	require.Equal(t, "Down 5 -> 0: BelowTarget inflight load=0 < limit=50, target=10", d.Reason(), "half of one is none")
}

// TestWhatMayBeNoLoadActivatesNothing: a fleet below its activation scale stays there until there is certainly a load.
func TestWhatMayBeNoLoadActivatesNothing(t *testing.T) {
	c := pointwise(inflight)
	c.ActivationScale = 5
	for lower, want := range map[float64]int32{0: 2, 1: 5} {
		_, d := build(t, c).Decide(proportional.State{}, start, holding(2, scaling.Reading{Metric: "inflight", Lower: lower, Upper: 15, Values: 1}))
		require.Equal(t, want, d.Replicas, d.Explain())
	}
}

// TestOneStuckPodIsSaid: that it counts nothing is told of one pod as of six.
func TestOneStuckPodIsSaid(t *testing.T) {
	_, d := build(t, pointwise(inflight)).Decide(proportional.State{}, start, holding(2, scaling.FromPods("inflight", []float64{5}, scaling.Missing{NotReady: 1, Stuck: 1}, 10)))
	require.Contains(t, d.Explain(), "stuck=1 <= pods=2")
}

// TestLimitsOfAWindow: a stable window of a nanosecond needs a resolution too.
func TestLimitsOfAWindow(t *testing.T) {
	c := pointwise(inflight)
	c.StableWindow = 1
	require.ErrorContains(t, c.Validate(), "resolution: 0s: must be of whole milliseconds, at least one")
}

// TestGapsAreAveraged: the upper end of a load is averaged as the lower one is, over the samples of a bucket and over
// buckets, across a restart and whatever the gap.
func TestGapsAreAveraged(t *testing.T) {
	c := burst(inflight)
	c.Panic = proportional.Panic{}
	s := build(t, c)
	var state proportional.State
	var d scaling.Decision
	for i, r := range [][3]float64{{0, 40, 41}, {1, 40, 41}, {2, 40, 44}, {2.5, 40, 48}, {3, 40, 41}} {
		state, d = s.Decide(state, at(r[0]), holding(4, scaling.Reading{Metric: "inflight", Lower: r[1], Upper: r[2], Values: 1}))
		want := []float64{41, 41, 42, 128.0 / 3, 42.25}[i]
		require.InDelta(t, want, d.Steps()[0].Numbers[2], 1e-9, "after %v s: %s", r[0], d.Explain())
		state = copied(t, state)
	}
	for i := 4; i < 40; i++ { // old ones leave
		state, d = s.Decide(state, at(float64(i)), holding(4, scaling.Reading{Metric: "inflight", Lower: 40, Upper: 41, Values: 1}))
	}
	require.InDelta(t, 41, d.Steps()[0].Numbers[2], 1e-9, d.Explain())
}

// TestAMetricOfAnotherNameOrMeasureIsAnother: what was seen of the one before says nothing of it.
func TestAMetricOfAnotherNameOrMeasureIsAnother(t *testing.T) {
	state, _ := build(t, burst(inflight)).Decide(proportional.State{}, start, holding(4, scaling.Exactly("inflight", 40)))
	for _, m := range []proportional.Metric{{Name: "inflight", Target: 10, Measure: proportional.Average}, {Name: "queue", Target: 10, Measure: proportional.Total}} {
		_, d := build(t, burst(m)).Decide(copied(t, state), at(1), holding(4))
		require.Equal(t, scaling.Unknown, d.Verdict, "%+v", m)
	}
}

// TestWindowsThatNobodyWrote: buckets at one time, or with loads that no sum of samples has; the largest load is one.
func TestWindowsThatNobodyWrote(t *testing.T) {
	for text, want := range map[string]string{
		`{"samples":1,"buckets":[[1000,5,0],[1000,5,0]]}`:                                                "buckets[1]: 1000: must be a time in milliseconds after the one before",
		`{"samples":1,"buckets":[[1000,1.5e290,0]]}`:                                                     "buckets[0]: 1.5e+290: must be a load",
		`{"samples":1,"buckets":[[1000,1e290,0]]}`:                                                       "",
		`{"samples":2,"buckets":[[1000,2e290,0]]}`:                                                       "",
		`{"samples":1,"buckets":[` + strings.Repeat(`[1,1,1],`, proportional.MaxBuckets+1) + `[1,1,1]]}`: fmt.Sprintf("buckets: %d: must be at most %d", proportional.MaxBuckets+2, proportional.MaxBuckets+1),
	} {
		err := json.Unmarshal([]byte(text), new(proportional.Window))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

// TestStatesThatNobodyWrote: samples after the last decision, or without a time since when they are known.
func TestStatesThatNobodyWrote(t *testing.T) {
	stamp := scaling.StampOf(start)
	after := scaling.StampOf(start.Add(time.Second))
	for want, s := range map[string]proportional.State{
		"panic: must be a time up to seen":         {Seen: stamp, Panic: after},
		"peak: 3: must be 0 outside a panic":       {Seen: stamp, Peak: 3},
		"loads[0].last: must be a time up to seen": {Seen: stamp, Loads: []proportional.Load{{Last: after}}},
	} {
		require.EqualError(t, s.Validate(), want)
	}
	require.EqualError(t, proportional.State{Loads: []proportional.Load{{Last: stamp}}}.Validate(), "loads[0].last: must be a time up to seen", "no decision at all")
	before1970 := scaling.Stamp{Set: true, Milli: -1}
	require.EqualError(t, proportional.State{Panic: before1970}.Validate(), "panic: must be a time up to seen", "no decision at all")
	var w proportional.Window
	require.NoError(t, json.Unmarshal([]byte(`{"samples":1,"buckets":[[0,1,0]]}`), &w))
	require.EqualError(t, proportional.State{Seen: stamp, Loads: []proportional.Load{{Last: stamp, Window: w}}}.Validate(), "loads[0].since: must be a time up to last")
}

// TestAStepBackByLessThanTheWindowIsFollowed: what is remembered goes back with the clock, by whole buckets.
func TestAStepBackByLessThanTheWindowIsFollowed(t *testing.T) {
	s := build(t, burst(inflight))
	var state proportional.State
	var d scaling.Decision
	for i := range 11 {
		state, _ = s.Decide(state, at(float64(i)), holding(4, scaling.Exactly("inflight", 40)))
	}
	state, _ = s.Decide(state, at(5), holding(4))
	state, d = s.Decide(state, at(14.9), holding(4))
	require.Equal(t, scaling.Hold, d.Verdict, "seen a stable window ago at most\n%s", d.Explain())
	_, d = s.Decide(state, at(15), holding(4))
	require.Equal(t, scaling.Unknown, d.Verdict, "and no longer\n%s", d.Explain())
}

// TestAStepBackKeepsTheAgeOfSamples: those that were old before it are as old after it, though they would be earlier than
// the clock as it is.
func TestAStepBackKeepsTheAgeOfSamples(t *testing.T) {
	s := build(t, burst(inflight))
	state, _ := s.Decide(proportional.State{}, at(100), holding(4, scaling.Exactly("inflight", 40)))
	state, _ = s.Decide(state, at(108), holding(4))
	state, _ = s.Decide(state, at(102), holding(4)) // the sample is 8 s old
	state, d := s.Decide(state, at(103.9), holding(4))
	require.Equal(t, scaling.Hold, d.Verdict, d.Explain())
	_, d = s.Decide(state, at(104), holding(4))
	require.Equal(t, scaling.Unknown, d.Verdict, d.Explain())
}

// TestABurstThatAsksForNoMoreIsNotTold: beside the metric that decides, the average of the stable window says as much.
func TestABurstThatAsksForNoMoreIsNotTold(t *testing.T) {
	s := build(t, burst(inflight, proportional.Metric{Name: "queue", Target: 5, Measure: proportional.Total}))
	_, d := s.Decide(proportional.State{}, at(0), holding(4, scaling.Exactly("inflight", 300), scaling.Exactly("queue", 200)))
	require.Equal(t, proportional.Panicked, d.Steps()[0].Code, d.Explain())
	require.NotContains(t, d.Explain(), "Burst")
}

// TestTheLargestLoadIsALoad: a load beyond it counts as it.
func TestTheLargestLoadIsALoad(t *testing.T) {
	for _, load := range []float64{1e290, math.MaxFloat64} {
		_, d := build(t, pointwise(inflight)).Decide(proportional.State{}, start, holding(4, scaling.Exactly("inflight", load)))
		require.InDelta(t, 1e290, d.Steps()[0].Numbers[0], 0)
	}
}

// TestHugeTargetLeavesNoNaN: the load that a fleet should carry is a number, even beyond those that there are.
func TestHugeTargetLeavesNoNaN(t *testing.T) {
	c := pointwise(proportional.Metric{Name: "load", Target: 1e308, Measure: proportional.Total})
	c.Down.Tolerance = 1
	_, d := build(t, c).Decide(proportional.State{}, start, holding(100, scaling.Exactly("load", 1)))
	require.NotContains(t, d.Explain(), "NaN")
	require.Equal(t, int32(100), d.Replicas)
}
