package forecast_test

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestProperties: what holds of every policy holds with a floor under it, while days are learned and when they are known.
//
// What was missing before can be what would have refuted a forecast, so that MissingNeverActs is asked for the latest readings. By
// what was missing at any time it holds but for one case in thousands: at most 100 of a seed are asked for.
func TestProperties(t *testing.T) {
	for name, draw := range map[string]func(*rapid.T) (func() scaling.Policy, scalingtest.Options){
		"fresh": func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
			period := rapid.SampledFrom([]time.Duration{15 * time.Second, 5 * time.Minute, 15 * time.Minute}).Draw(t, "period")
			newPolicy, o := floored(period, nil)
			o.Learns = true
			o.Shift, o.Ticks = 7*24*time.Hour, 100
			return newPolicy, o
		},
		"warm": func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
			newPolicy, o := warm(t)
			o.Learns = true
			return newPolicy, o
		},
	} {
		t.Run(name, func(t *testing.T) { scalingtest.RunDrawn(t, draw) })
	}
	t.Run("missing before", func(t *testing.T) {
		checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
		require.NoError(t, err)
		for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": strconv.Itoa(min(checks, 100))} {
			before := flag.Lookup(name).Value.String()
			require.NoError(t, flag.Set(name, value))
			t.Cleanup(func() { require.NoError(t, flag.Set(name, before)) })
		}
		scalingtest.RunDrawn(t, warm)
	})
}

func warm(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
	period := rapid.SampledFrom([]time.Duration{15 * time.Second, time.Minute, 5 * time.Minute}).Draw(t, "period")
	newPolicy, o := floored(period, history(day(0), day(2), everyDay))
	o.Start = day(2).Add(time.Duration(rapid.IntRange(0, 95).Draw(t, "quarter")) * 15 * time.Minute)
	o.Skip = append(o.Skip, "TimeShift") // the history does not move with it
	return newPolicy, o
}

// TestLessKnownRefutesAMethodAsMuch: slots of which less was known were not backtested on, so that a day that was not like others stayed
// foreseen.
func TestLessKnownRefutesAMethodAsMuch(t *testing.T) {
	newPolicy, o := floored(5*time.Minute, history(day(0), day(2), everyDay))
	o.Start = day(2)
	load := func(lower, upper float64) []scaling.Reading {
		return []scaling.Reading{{Metric: metric, Lower: lower, Upper: upper, Values: 1}}
	}
	scalingtest.Replay(t, newPolicy, o, "MissingNeverActs", scalingtest.Episode{
		Spec:    1,
		Changes: []scalingtest.Change{{Metric: metric, Upper: 25}, {Tick: 1, Metric: metric, Upper: 25}},
		Ticks: []scalingtest.Tick{
			{After: 5 * time.Minute, Readings: load(20, 100)},
			{After: 5 * time.Minute, Times: 3, Readings: load(120, 120)},
			{After: 5 * time.Minute, Spec: scalingtest.CountOf(0), Readings: load(340, 340), Refuse: true},
			{After: 5 * time.Minute, Readings: load(120, 120)},
		},
	})
}

func floored(period time.Duration, past []forecast.Sample) (func() scaling.Policy, scalingtest.Options) {
	base := proportional.LLM(bounds(), proportional.Metric{Name: metric, Target: 10, Measure: proportional.Total})
	c := configOf(nil)
	c.Control, c.Scrape = period, period
	newPolicy := func() scaling.Policy {
		s, err := proportional.New(base)
		if err != nil {
			panic(err)
		}
		p, err := forecast.New(scaling.New(s), base.Metrics[0].Demand, c, past...)
		if err != nil {
			panic(err)
		}
		return p
	}
	return newPolicy, scalingtest.Options{
		Metrics: []scalingtest.Metric{{Name: metric, Low: 20, High: 100, Whole: true}},
		Bounds:  bounds(), Period: period, Windows: true,
		Skip: []string{"BoundedState"}, // which would take two weeks: TestStateIsSmall
	}
}

// BenchmarkDecide is a decision of a policy that does nothing, with a floor in force under it: beside that, without one.
func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{"base", "floor"} {
		b.Run(name, func(b *testing.B) {
			p := scaling.New(follower(10))
			if name == "floor" {
				var err error
				p, err = forecast.New(p, source(10), configOf(nil), history(day(0), day(2), everyDay)...)
				require.NoError(b, err)
			}
			at := day(2)
			obs := scaling.Observation{SpecReplicas: 100, ReadyReplicas: 100, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}}
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(15 * time.Second)
				p.Decide(at, obs)
			}
		})
	}
}
