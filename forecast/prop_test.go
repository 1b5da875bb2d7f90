package forecast_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
)

// drawnDemand draws days of a shape that recurs with noise.
func drawnDemand(t *rapid.T) func(time.Time) float64 {
	seed, noise := rapid.Uint64().Draw(t, "seed"), rapid.Float64Range(0, 0.3).Draw(t, "noise")
	low, high := rapid.Float64Range(0, 50).Draw(t, "low"), rapid.Float64Range(50, 300).Draw(t, "high")
	morning := rapid.Float64Range(4, 12).Draw(t, "morning")
	return func(at time.Time) float64 {
		random := splitmix.Stream{State: seed ^ uint64(at.Unix()/60)}
		hour := at.Sub(at.Truncate(24 * time.Hour)).Hours()
		x := low + (high-low)*min(max(2*(hour-morning), 0), 1)*min(max(2*(morning+8-hour), 0), 1)
		return x * (1 + noise*(random.Uniform()-0.5))
	}
}

// TestNeverBelowReactive: whatever happens, no fewer replicas than base asks for, and the bounds are kept.
func TestNeverBelowReactive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand := drawnDemand(t)
		base := &watcher{Policy: scaling.New(follower(10))}
		p, err := forecast.New(base, source(10), minuteConfig(nil), history(day(0), day(2), demand)...)
		require.NoError(t, err)
		from := day(2).Add(time.Duration(rapid.IntRange(0, 1300).Draw(t, "from")) * time.Minute)
		spec := rapid.Int32Range(1, 60).Draw(t, "spec")
		for at := from; at.Before(from.Add(90 * time.Minute)); at = at.Add(time.Minute) {
			obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec}
			if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
				r := scaling.Exactly(metric, demand(at))
				r.Upper *= rapid.Float64Range(1, 2).Draw(t, "width")
				obs.Readings = append(obs.Readings, r)
			}
			d := p.Decide(at, obs)
			require.GreaterOrEqual(t, d.Replicas, base.last.Replicas)
			require.True(t, d.Verdict != scaling.Unknown || base.last.Verdict == scaling.Unknown)
			require.LessOrEqual(t, d.Replicas, bounds().Max)
			if d.Acts() && rapid.Bool().Draw(t, "carried out") {
				p.Applied(at, spec, d.Replicas)
				spec = d.Replicas
			}
		}
	})
}

// TestUnitsDoNotMatter: demand and what a replica takes in another unit make the same decisions.
func TestUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand, unit := drawnDemand(t), math.Exp(rapid.Float64Range(-20, 20).Draw(t, "unit"))
		run := func(unit float64) (all []string) {
			past := history(day(0), day(2), demand)
			for i := range past {
				past[i].Demand *= unit
			}
			p, err := forecast.New(scaling.New(follower(10*unit)), source(10*unit), minuteConfig(nil), past...)
			require.NoError(t, err)
			drive(t, p, day(2), day(3), always(func(at time.Time) float64 { return demand(at) * unit }), func(_ time.Time, d *scaling.Decision) {
				all = append(all, fmt.Sprintf("%s %d %s", d.Verdict, d.Replicas, d.Code()))
			})
			return all
		}
		require.Equal(t, run(1), run(unit))
	})
}

// TestMonotoneInDemand: with the same past, a larger demand now never asks for less.
func TestMonotoneInDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand := drawnDemand(t)
		from := day(2).Add(time.Duration(rapid.IntRange(0, 1300).Draw(t, "from")) * time.Minute)
		past := append(history(day(0), day(2), demand), history(day(2), from, demand)...)
		more := rapid.Float64Range(1, 3).Draw(t, "more")
		var counts [2][]int32
		for i, factor := range []float64{1, more} {
			p, err := forecast.New(scaling.New(follower(10)), source(10), minuteConfig(nil), past...)
			require.NoError(t, err)
			for at := from; at.Before(from.Add(20 * time.Minute)); at = at.Add(time.Minute) {
				d := p.Decide(at, scaling.Observation{SpecReplicas: 5, ReadyReplicas: 5, Readings: []scaling.Reading{scaling.Exactly(metric, demand(at)*factor)}})
				if at.Unix()/300 > from.Unix()/300 {
					break // slots that are over are scored, and what foresees worse counts no longer
				}
				counts[i] = append(counts[i], d.Replicas)
			}
		}
		for i := range counts[0] {
			require.GreaterOrEqual(t, counts[1][i], counts[0][i])
		}
	})
}

// TestARestartChangesNothing: days with a restart now and then are as without.
func TestARestartChangesNothing(t *testing.T) {
	demand := func(at time.Time) float64 {
		random := splitmix.Stream{State: uint64(at.Unix())}
		return officeHours(at) * (0.9 + 0.2*random.Uniform())
	}
	var runs [2][]string
	for i := range runs {
		p := policyOf(t, minuteConfig(nil))
		spec := int32(1)
		for n, at := 0, day(0); at.Before(day(9)); n, at = n+1, at.Add(time.Minute) {
			if i == 1 && n%97 == 0 {
				stored, err := p.MarshalJSON()
				require.NoError(t, err)
				p = policyOf(t, minuteConfig(nil))
				require.NoError(t, p.UnmarshalJSON(stored))
				again, err := p.MarshalJSON()
				require.NoError(t, err)
				require.JSONEq(t, string(stored), string(again))
			}
			d := p.Decide(at, scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec, Readings: []scaling.Reading{scaling.Exactly(metric, demand(at))}})
			runs[i] = append(runs[i], d.Explain())
			if d.Acts() {
				p.Applied(at, spec, d.Replicas)
				spec = d.Replicas
			}
		}
	}
	require.Equal(t, runs[0], runs[1])
	assert.True(t, slices.ContainsFunc(runs[0], func(s string) bool { return strings.Contains(s, "Lifted") }))
}

// TestStateIsSmall: no state is above 16 KB, base's own apart.
func TestStateIsSmall(t *testing.T) {
	random := splitmix.Stream{State: 3}
	p := policyOf(t, minuteConfig(nil))
	most := 0
	drive(t, p, day(0), day(25), func(at time.Time) (float64, bool) {
		return officeHours(at) * (0.7 + random.Uniform()/3), random.Uniform() > 0.05
	}, func(at time.Time, _ *scaling.Decision) {
		if random.Uniform() < 0.3 { // starts that never end, and many that do
			p.Applied(at, 1, 1+int32(20*random.Uniform()))
		}
		if at.Minute() == 1 {
			data, err := p.MarshalJSON()
			require.NoError(t, err)
			most = max(most, len(data))
		}
	})
	assert.Less(t, most, 16<<10)
	assert.Greater(t, most, 11<<10, "two weeks were not kept")
}

// TestRegressionHalvesInAnyUnit: a demand of exactly half a step of the encoding was rounded up in one unit and down in another.
func TestRegressionHalvesInAnyUnit(t *testing.T) {
	const low, high = 0.9375, 300.0
	demand := func(at time.Time) float64 {
		hour := at.Sub(at.Truncate(24 * time.Hour)).Hours()
		return low + (high-low)*min(max(2*(hour-4), 0), 1)*min(max(2*(12-hour), 0), 1)
	}
	var first []int32
	for i, unit := range []float64{1, math.E, 1 / math.E, math.Pi, 1e-3, 1e5} {
		past := history(day(0), day(2), demand)
		for i := range past {
			past[i].Demand *= unit
		}
		p, err := forecast.New(scaling.New(follower(10*unit)), source(10*unit), minuteConfig(nil), past...)
		require.NoError(t, err)
		var all []int32
		drive(t, p, day(2), day(3), always(func(at time.Time) float64 { return demand(at) * unit }), func(_ time.Time, d *scaling.Decision) {
			all = append(all, d.Replicas)
		})
		if i == 0 {
			first = all
		}
		require.Equal(t, first, all, unit)
	}
}
