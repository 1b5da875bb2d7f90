package forecast_test

import (
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
func TestProperties(t *testing.T) {
	for name, draw := range map[string]func(*rapid.T) (func() scaling.Policy, scalingtest.Options){
		"fresh": func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
			period := rapid.SampledFrom([]time.Duration{15 * time.Second, 5 * time.Minute, 15 * time.Minute}).Draw(t, "period")
			newPolicy, o := floored(period, nil)
			o.Shift, o.Ticks = 7*24*time.Hour, 100
			return newPolicy, o
		},
		"warm": func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
			period := rapid.SampledFrom([]time.Duration{15 * time.Second, time.Minute, 5 * time.Minute}).Draw(t, "period")
			newPolicy, o := floored(period, history(day(0), day(2), everyDay))
			o.Start = day(2).Add(time.Duration(rapid.IntRange(0, 95).Draw(t, "quarter")) * 15 * time.Minute)
			o.Skip = append(o.Skip, "TimeShift") // the history does not move with it
			return newPolicy, o
		},
	} {
		t.Run(name, func(t *testing.T) { scalingtest.RunDrawn(t, draw) })
	}
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
