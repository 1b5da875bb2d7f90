package proportional_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// Faults of the systems that were studied, each with the counterexample that shows it there, and the answer here.

// desired returns what one observation is answered with, by a fresh state.
func desired(t *testing.T, c proportional.Config, obs scaling.Observation) scaling.Decision {
	t.Helper()
	_, d := build(t, c).Decide(proportional.State{}, start, obs)
	return d
}

// TestRegressNonMonotoneTotals: a tolerance that compares a total with the target of one replica holds five replicas at
// totals of 9.5 and 10.5 and asks for two at 12, so that more load means fewer replicas. Here the tolerance is a hold
// around the present count, and the answer rises with the load everywhere.
func TestRegressNonMonotoneTotals(t *testing.T) {
	c := pointwise(inflight)
	c.Up.Tolerance, c.Down.Tolerance = 0.1, 0.1
	for _, row := range []struct {
		total float64
		want  int32
	}{
		{9.5, 1}, {10.5, 2}, {12, 2}, // as totals
		{5 * 9.5, 5}, {5 * 10.5, 5}, {5 * 12, 6}, // as loads per replica
		{44, 5}, {45, 5}, {55, 5}, {55.1, 6},
	} {
		d := desired(t, c, holding(5, scaling.Exactly("inflight", row.total)))
		require.Equal(t, row.want, d.Replicas, "%v\n%s", row.total, d.Explain())
	}
	last := int32(0)
	for total := 0.0; total < 150; total += 0.25 {
		d := desired(t, c, holding(5, scaling.Exactly("inflight", total)))
		require.GreaterOrEqual(t, d.Replicas, last, "%v\n%s", total, d.Explain())
		last = d.Replicas
	}
}

// TestRegressFleetShrunkByAverages: ten replicas at 95 % with a target of 60 %, the average taken for a total, become
// two. Here it counts for each of the ten. A reading that does not say of how many pods it is, under a measure that
// needs to know, holds.
func TestRegressFleetShrunkByAverages(t *testing.T) {
	util := proportional.Metric{Name: "util", Target: 60, Measure: proportional.Average}
	d := desired(t, pointwise(util), holding(10, scaling.Exactly("util", 95)))
	require.EqualValues(t, 16, d.Replicas, d.Explain())

	util.Measure = proportional.PerPod
	d = desired(t, pointwise(util), holding(10, scaling.Reading{Metric: "util", Lower: 95, Upper: 95, Values: 10}))
	require.EqualValues(t, 16, d.Replicas, d.Explain())
	d = desired(t, pointwise(util), holding(10, scaling.Exactly("util", 95)))
	require.Equal(t, scaling.Hold, d.Verdict, d.Explain())
	require.Equal(t, "Hold at 10: Within util lower=95 <= high=600, upper=950 >= low=600", d.Reason())
}

// TestRegressInt32Wrap: a quotient beyond int32, or not a number, became -2147483648 and was valid.
func TestRegressInt32Wrap(t *testing.T) {
	for _, row := range []struct {
		target, load float64
	}{{1e-300, 1}, {1e-9, 1e300}, {5e-324, math.MaxFloat64}, {1, 1e18}, {0.001, 9.2e18}} {
		m := proportional.Metric{Name: "load", Target: row.target, Measure: proportional.Total}
		d := desired(t, pointwise(m), holding(3, scaling.Exactly("load", row.load)))
		require.EqualValues(t, math.MaxInt32, d.Replicas, d.Explain())
		c := pointwise(m)
		c.Bounds.Max = 40
		c.Up.MaxRate, c.Up.MaxStep = 1e300, math.MaxInt32
		d = desired(t, c, holding(3, scaling.Exactly("load", row.load)))
		require.EqualValues(t, 40, d.Replicas, d.Explain())
	}
	// Rates and steps at the edge: thirty million replicas times a thousand percent is beyond int32.
	c := pointwise(byLoad)
	c.RateLimits.Down.Limits = []scaling.Limit{{Percent: 100, Period: time.Minute}}
	c.RateLimits.Up.Limits = []scaling.Limit{{Percent: 1000, Period: time.Minute}}
	d := desired(t, c, holding(30_000_000, scaling.Exactly("load", 1)))
	require.EqualValues(t, 1, d.Replicas)
	d = desired(t, c, holding(1_000_000_000, scaling.Exactly("load", 1e18)))
	require.EqualValues(t, math.MaxInt32, d.Replicas)
}

// TestRegressCeilNoise: 2.1 of 0.7 each is three replicas, not four, though the quotient is 3.0000000000000004.
func TestRegressCeilNoise(t *testing.T) {
	m := proportional.Metric{Name: "load", Target: 0.7, Measure: proportional.Total}
	for k := int32(1); k <= 2000; k++ {
		load := float64(k) * 0.7
		require.Equal(t, k, desired(t, pointwise(m), holding(1, scaling.Exactly("load", load))).Replicas)
		require.Equal(t, k, desired(t, pointwise(m), holding(5000, scaling.Exactly("load", load))).Replicas)
		kpa := proportional.KPA(anyCount, m)
		kpa.Up.MaxRate = 0
		require.Equal(t, k, max(1, desired(t, kpa, holding(1, scaling.Exactly("load", load))).Replicas))
	}
	load := 2.1
	require.Greater(t, math.Ceil(load/m.Target), 3.0, "the quotient that rounds up too far")
}

// TestRegressNaNDoesNotPoisonAWindow: one NaN made a running sum NaN for ever.
func TestRegressNaNDoesNotPoisonAWindow(t *testing.T) {
	c := pointwise(inflight)
	c.StableWindow, c.Resolution = 5*time.Second, time.Second
	s := build(t, c)
	state, d := s.Decide(proportional.State{}, at(0), holding(3, scaling.Exactly("inflight", 30)))
	require.Equal(t, scaling.Hold, d.Verdict)
	for i, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -5} {
		state, d = s.Decide(state, at(float64(i+1)), holding(3, scaling.Exactly("inflight", odd)))
		require.Equal(t, "Hold at 3: Within inflight lower=30 <= high=30, upper=30 >= low=30", d.Reason(), "the sample before it still counts")
	}
	state, d = s.Decide(state, at(5), holding(3, scaling.Exactly("inflight", math.NaN())))
	require.Equal(t, scaling.Unknown, d.Verdict, "and when it is gone, nothing is known")
	for i := 6; i < 20; i++ {
		state, d = s.Decide(state, at(float64(i)), holding(3, scaling.Exactly("inflight", 10)))
		require.Equal(t, 10.0, d.Steps()[0].Numbers[0])
	}
	require.EqualValues(t, 1, d.Replicas)
}

// TestRegressPercentPolicyThatCannotMove: 10 % of seven replicas, truncated, is none: the fleet was stuck for ever.
func TestRegressPercentPolicyThatCannotMove(t *testing.T) {
	for spec := int32(1); spec <= 30; spec++ {
		for _, percent := range []int32{1, 10, 50} {
			c := pointwise(byLoad)
			c.RateLimits.Down.Limits = []scaling.Limit{{Percent: percent, Period: time.Minute}}
			c.RateLimits.Up.Limits = c.RateLimits.Down.Limits
			require.Less(t, desired(t, c, holding(spec, scaling.Exactly("load", 0))).Replicas, spec)
			require.Greater(t, desired(t, c, holding(spec, scaling.Exactly("load", 1e6))).Replicas, spec)
		}
	}
	c := pointwise(byLoad)
	c.RateLimits.Up.Limits = []scaling.Limit{{Percent: 100, Period: time.Minute}}
	require.EqualValues(t, 1, desired(t, c, holding(0, scaling.Exactly("load", 9))).Replicas, "from zero too")
}

// TestRegressPanicThatNeverHolds: a panic whose memory is rebuilt at each decision lets the fleet fall on the next
// quiet sample. Here it is part of the state, also of one that was stored.
func TestRegressPanicThatNeverHolds(t *testing.T) {
	c := proportional.KPA(scaling.Bounds{Min: 1, Max: 100}, inflight)
	s := build(t, c)
	var state proportional.State
	for i := range 61 {
		state, _ = s.Decide(state, at(float64(i)), holding(2, scaling.Exactly("inflight", 20)))
	}
	var d scaling.Decision
	for i := 61; i < 67; i++ {
		state, d = s.Decide(state, at(float64(i)), holding(2, scaling.Exactly("inflight", 200)))
	}
	require.EqualValues(t, 20, d.Replicas, d.Explain())
	for i := 67; i <= 126; i++ { // the last breach was at 66
		state = copied(t, state)
		state, d = s.Decide(state, at(float64(i)), holding(20, scaling.Exactly("inflight", 0)))
		if i-66 > 6 { // once the burst has left its window it breaches no more
			require.Equal(t, scaling.Hold, d.Verdict, "at %d\n%s", i, d.Explain())
		}
	}
	require.Equal(t, proportional.NoFewer, d.Code(), d.Explain())
}

// TestRegressCorrectedValuesReenterTheHistory: a history of counts that limits have cut already holds a fleet below
// what was asked for, or above it, for as long as the window. Here the history has what was asked for.
func TestRegressCorrectedValuesReenterTheHistory(t *testing.T) {
	c := pointwise(byLoad)
	c.Bounds.Max = 100
	c.Stabilization.Down = time.Minute
	c.Down.MaxStep = 1
	s := build(t, c)
	var state proportional.State
	var d scaling.Decision
	spec := int32(10)
	for i := range 5 { // asks for 2, 3, 2, ... while the window holds the 10 of the start
		state, d = s.Decide(state, at(float64(i)), holding(spec, scaling.Exactly("load", float64(2+i%2))))
		require.Equal(t, scaling.Hold, d.Verdict)
	}
	// The 10 is gone after a minute; then it goes down by one a decision without waiting for a minute each.
	for i := 60; spec > 3; i++ {
		state, d = s.Decide(state, at(float64(i)), holding(spec, scaling.Exactly("load", 2)))
		require.Equal(t, spec-1, d.Replicas, "at %d\n%s", i, d.Explain())
		spec = d.Replicas
	}
}

// TestRegressColdStartDoublesEachCycle: a load judged against the replicas that are ready asks for twice as many at
// each decision of a cold start. Here a total asks for what it needs, and with the start-up credit a panic is not
// extended by the replicas that are still on their way.
func TestRegressColdStartDoublesEachCycle(t *testing.T) {
	for _, credit := range []bool{false, true} {
		c := proportional.Kthena(scaling.Bounds{Min: 1, Max: 100}, inflight)
		c.StartupCredit = credit
		s := build(t, c)
		var state proportional.State
		spec := int32(1)
		var breaches int
		for i := range 20 { // replicas take five minutes
			now := at(float64(15 * i))
			var d scaling.Decision
			state, d = s.Decide(state, now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: 1, Readings: []scaling.Reading{
				scaling.Exactly("inflight", 40),
			}})
			if state.Panic == scaling.StampOf(now) {
				breaches++
			}
			spec = max(spec, d.Replicas)
			require.EqualValues(t, 4, spec, d.Explain())
		}
		if credit {
			require.Equal(t, 1, breaches, "the burst panicked once")
		} else {
			require.Equal(t, 20, breaches, "without it every decision finds the burst anew")
		}
	}
}

// TestUpRateDoesNotCompound: the rate counts from what is ready, so that a cold start does not multiply at each cycle,
// and it never takes back what was asked for.
func TestUpRateDoesNotCompound(t *testing.T) {
	c := pointwise(byLoad)
	c.Up.MaxRate = 2
	obs := scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly("load", 100)}}
	d := desired(t, c, obs)
	require.Equal(t, "Up 2 -> 4: AboveTarget load load=100 > limit=2, target=1; UpRate from=100 > limit=4, rate=2, ready=2", d.Reason())
	obs.SpecReplicas = 4
	require.Equal(t, scaling.Hold, desired(t, c, obs).Verdict)
	obs.SpecReplicas = 9
	require.EqualValues(t, 9, desired(t, c, obs).Replicas)
	obs.ReadyReplicas = 9
	require.EqualValues(t, 18, desired(t, c, obs).Replicas)
}

// TestHugeLoadsAreTakenBack: sums of the largest load round up, and so do their averages. The state that has them is taken
// back all the same.
func TestHugeLoadsAreTakenBack(t *testing.T) {
	c := pointwise(inflight)
	c.StableWindow, c.Resolution = time.Minute, 10*time.Second
	s := build(t, c)
	var state proportional.State
	for i := range 30 {
		state, _ = s.Decide(state, at(float64(i)), holding(1, scaling.Exactly("inflight", 1e290)))
		copied(t, state)
	}
}

// TestAToleranceAboveOneIsTaken: an HPA takes one, and with it never scales down, whatever the load.
func TestAToleranceAboveOneIsTaken(t *testing.T) {
	for _, tolerance := range []float64{1, 1.5, 1e9} {
		c := pointwise(inflight)
		c.Down.Tolerance = tolerance
		s := build(t, c)
		for _, load := range []float64{0, 1e-9, 39, 40} {
			_, d := s.Decide(proportional.State{}, start, holding(4, scaling.Exactly("inflight", load)))
			require.Equal(t, scaling.Hold, d.Verdict, d.Explain())
			for _, step := range d.Steps() {
				require.True(t, step.Holds(), d.Explain())
			}
		}
		_, d := s.Decide(proportional.State{}, start, holding(4, scaling.Exactly("inflight", 41)))
		require.Equal(t, int32(5), d.Replicas)
	}
}

// TestMayPanicHolds: a load that may be a burst, as far as is known, was answered with a Down, and the same load known
// exactly with a panic.
func TestMayPanicHolds(t *testing.T) {
	c := proportional.KPA(scaling.Bounds{Min: 1, Max: 12}, inflight)
	s := build(t, c)
	var state proportional.State
	var d scaling.Decision
	for at := range 62 {
		r := scaling.Exactly("inflight", 20)
		if at > 57 {
			r.Upper = 200
		}
		state, d = s.Decide(state, start.Add(time.Duration(at)*time.Second), holding(6, r))
	}
	require.Equal(t, "Hold at 6: BelowTarget inflight load=32 < limit=60, target=10; MayPanic inflight wanted=14 >= limit=12, ready=6", d.Reason())
}

// TestRegressionTwoReadingsAskForNoMoreThanEither: two readings of one metric that each hold scaled up together, as the pods that are
// not ready of one and those that failed of the other were added up.
func TestRegressionTwoReadingsAskForNoMoreThanEither(t *testing.T) {
	s, err := proportional.New(proportional.HPA(scaling.Bounds{Min: 1, Max: 100}, proportional.Metric{Name: "m", Target: 10}))
	require.NoError(t, err)
	a := scaling.Reading{Metric: "m", Lower: 10, Upper: 10, Values: 10, NotReady: 5}
	b := scaling.Reading{Metric: "m", Lower: 10, Upper: 10, Values: 10, Failed: 5}
	now := time.Unix(1_800_000_000, 0)
	for _, readings := range [][]scaling.Reading{{a}, {b}, {a, b}} {
		d := scaling.New(s).Decide(now, scaling.Observation{SpecReplicas: 15, ReadyReplicas: 10, Readings: readings})
		require.Equal(t, int32(15), d.Replicas, "%d readings: %s", len(readings), d.Explain())
	}
}

// TestRegressionTwoReadingsContainBoth: of two readings of one metric the load of the one with more pods was lost.
func TestRegressionTwoReadingsContainBoth(t *testing.T) {
	m := proportional.Metric{Name: "m", Target: 10}
	s, err := proportional.New(proportional.HPA(scaling.Bounds{Min: 1, Max: 100}, m))
	require.NoError(t, err)
	a := scaling.Reading{Metric: "m", Lower: 10, Upper: 10, Values: 20} // of 20 pods, of which 10 are still ready when counted
	b := scaling.Reading{Metric: "m", Lower: 10, Upper: 10, Values: 10}
	obs := scaling.Observation{SpecReplicas: 20, ReadyReplicas: 10, Readings: []scaling.Reading{a, b}}
	load, _ := m.Demand(&obs, nil)
	require.LessOrEqual(t, load.Lower, 100.)
	require.GreaterOrEqual(t, load.Upper, 200.)
	p := scaling.New(s)
	now := time.Unix(1_800_000_000, 0)
	var d scaling.Decision
	for range 40 {
		d = p.Decide(now, obs)
		require.False(t, d.Acts(), "%s", d.Explain())
		now = now.Add(15 * time.Second)
	}
}
