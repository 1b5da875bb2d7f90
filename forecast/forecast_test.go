package forecast_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

const metric = "load"

func bounds() scaling.Bounds { return scaling.Bounds{Min: 1, Max: 100} }

// follower is a policy without a memory: a replica takes so much load.
type follower float64

func (follower) Kind() scaling.Kind { return scaling.Kind{Name: "follower", Version: 1} }

func (follower) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

func (f follower) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	r := obs.Reading(metric)
	if !r.Known() {
		return s, scaling.UnknownAt(obs.SpecReplicas, "NoSample", metric)
	}
	d := scaling.HoldAt(obs.SpecReplicas)
	n := d.From
	n = max(n, bounds().Clamp(scaling.Ceil(r.Lower/float64(f))))
	if down := bounds().Clamp(scaling.Ceil(r.Upper / float64(f))); down < n {
		n = down
	}
	d.To(n, "Followed", metric)
	return s, d
}

func source(each float64) forecast.Source {
	return proportional.Metric{Name: metric, Target: each, Measure: proportional.Total}.Demand
}

// configOf has a cold start of 300 s.
func configOf(location *time.Location) forecast.Config { return forecast.For(bounds(), location) }

func policyOf(tb testing.TB, c forecast.Config, past ...forecast.Sample) scaling.Policy {
	tb.Helper()
	p, err := forecast.New(scaling.New(follower(10)), source(10), c, past...)
	require.NoError(tb, err)
	return p
}

// officeHours is 20, and 100 from 8 to 18 o'clock on weekdays, rising and falling within half an hour.
func officeHours(t time.Time) float64 {
	hour := float64(t.Hour()) + float64(t.Minute())/60 + float64(t.Second())/3600
	if day := t.Weekday(); day == time.Saturday || day == time.Sunday {
		return 20
	}
	return 20 + 80*min(max(2*(hour-8), 0), 1)*min(max(2*(18.5-hour), 0), 1)
}

// everyDay is the same on each day.
func everyDay(t time.Time) float64 {
	hour := float64(t.Hour()) + float64(t.Minute())/60
	return 20 + 80*min(max(2*(hour-8), 0), 1)*min(max(2*(18.5-hour), 0), 1)
}

// history samples a demand every five minutes.
func history(from, to time.Time, demand func(time.Time) float64) (all []forecast.Sample) {
	for t := from.Add(5 * time.Minute); !t.After(to); t = t.Add(5 * time.Minute) {
		all = append(all, forecast.Sample{At: t, Demand: demand(t.Add(-150 * time.Second))})
	}
	return all
}

// helper is a testing.T, or one of rapid.
type helper interface{ Helper() }

// drive asks a policy every minute and carries out what it says, at once; see is told of each decision.
func drive(tb helper, p scaling.Policy, from, to time.Time, demand func(time.Time) (float64, bool), see func(time.Time, *scaling.Decision)) {
	tb.Helper()
	spec := int32(1)
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec}
		if x, ok := demand(t); ok {
			obs.Readings = []scaling.Reading{scaling.Exactly(metric, x)}
		}
		d := p.Decide(t, obs)
		if see != nil {
			see(t, &d)
		}
		if d.Acts() {
			p.Applied(t, spec, d.Replicas)
			spec = d.Replicas
		}
	}
}

func always(demand func(time.Time) float64) func(time.Time) (float64, bool) {
	return func(t time.Time) (float64, bool) { return demand(t), true }
}

func day(n int) time.Time { return time.Date(2026, 3, 2+n, 0, 0, 0, 0, time.UTC) } // from a Monday on

// minuteConfig is for decisions every minute.
func minuteConfig(location *time.Location) forecast.Config {
	c := configOf(location)
	c.Control, c.Scrape = time.Minute, time.Minute
	return c
}

// lifts returns at which times the floor raised the count above what the load needs, and to how much in the mean.
func lifts(tb testing.TB, p scaling.Policy, from, to time.Time, demand func(time.Time) float64) (times []time.Time, extra float64) {
	tb.Helper()
	drive(tb, p, from, to, always(demand), func(t time.Time, d *scaling.Decision) {
		if need := scaling.Ceil(demand(t) / 10); d.Replicas > need {
			times = append(times, t)
			extra += float64(d.Replicas - need)
		}
	})
	return times, extra
}

// TestNothingIsForeseenOnTheFirstDay: a launch has no day before it.
func TestNothingIsForeseenOnTheFirstDay(t *testing.T) {
	times, _ := lifts(t, policyOf(t, minuteConfig(nil)), day(0), day(1), everyDay)
	assert.Empty(t, times)
}

// TestTheMorningIsThereBeforeItComes: on the third day replicas are asked for a start and ten minutes before they are
// needed, and on no other occasion than then and within as long after the evening.
func TestTheMorningIsThereBeforeItComes(t *testing.T) {
	p := policyOf(t, minuteConfig(nil), history(day(0), day(2), everyDay)...)
	times, _ := lifts(t, p, day(2), day(3), everyDay)
	require.NotEmpty(t, times)
	first := times[0].Sub(day(2)).Hours()
	assert.Greater(t, first, 7.5)
	assert.Less(t, first, 8.0-5.0/60)
	for _, at := range times {
		hour := at.Sub(day(2)).Hours()
		require.True(t, hour >= 7.5 && hour <= 9.1 || hour >= 17.7 && hour <= 19, "%s", at)
	}
}

// TestWeekendsAreKnownAfterTwoWeeks: after weeks Monday morning is foreseen, and Saturday's is not.
func TestWeekendsAreKnownAfterTwoWeeks(t *testing.T) {
	p := policyOf(t, minuteConfig(nil), history(day(0), day(19), officeHours)...)
	times, _ := lifts(t, p, day(19), day(22), officeHours) // Saturday to Monday
	require.NotEmpty(t, times)
	assert.Equal(t, time.Monday, times[0].Weekday())
	assert.Less(t, times[0].Sub(day(21)).Hours(), 8.0)
}

// TestTrafficWithoutSeasonsCostsNothing: a random walk, and noise around a mean, are not foreseen.
func TestTrafficWithoutSeasonsCostsNothing(t *testing.T) {
	for name, next := range map[string]func(*splitmix.Stream, float64) float64{
		"walk": func(r *splitmix.Stream, x float64) float64 {
			return min(max(x+8*(r.Uniform()-0.5), 10), 200)
		},
		"noise": func(r *splitmix.Stream, _ float64) float64 { return 100 + 40*(r.Uniform()-0.5) },
	} {
		for seed := range uint64(3) {
			random := splitmix.Stream{State: seed}
			x, needed := 100.0, 0.0
			values := map[time.Time]float64{}
			for at := day(0); at.Before(day(10)); at = at.Add(time.Minute) {
				x = next(&random, x)
				values[at] = x
				needed += math.Ceil(x / 10)
			}
			_, extra := lifts(t, policyOf(t, minuteConfig(nil)), day(0), day(10), func(at time.Time) float64 { return values[at] })
			assert.Less(t, extra, 0.01*needed, "%s, seed %d", name, seed)
		}
	}
}

// TestTheFloorDoesNotWindUp: days that are the same never raise each other, in weeks.
func TestTheFloorDoesNotWindUp(t *testing.T) {
	p := policyOf(t, minuteConfig(nil))
	drive(t, p, day(0), day(30), always(everyDay), func(at time.Time, d *scaling.Decision) {
		require.LessOrEqual(t, d.Replicas, int32(11), "%s", at) // 10, and what rounding makes of it
	})
}

// TestDaysAreThoseOfThePlace: where clocks are put forward or back, mornings stay at 8 by the clock.
func TestDaysAreThoseOfThePlace(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	local := func(t time.Time) float64 { return everyDay(t.In(berlin)) }
	for _, change := range []time.Time{
		time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), // a day of 23 hours
		time.Date(2026, 10, 25, 0, 0, 0, 0, berlin),
	} {
		p := policyOf(t, minuteConfig(berlin), history(change.AddDate(0, 0, -4), change.AddDate(0, 0, -1), local)...)
		drive(t, p, change.AddDate(0, 0, -1), change, always(local), nil)
		for n := range 3 {
			begin := change.AddDate(0, 0, n)
			times, _ := lifts(t, p, begin, change.AddDate(0, 0, n+1), local)
			require.NotEmpty(t, times, "%s", begin)
			at := times[0].In(berlin)
			assert.Equal(t, 7, at.Hour(), "%s", at)
			assert.Greater(t, at.Minute(), 30, "%s", at)
		}
	}
}

// TestWhatIsMissingMakesNoForecast: neither a day of which nothing was seen, nor half an hour of yesterday in which pods
// were silent, which makes today seem to have twice as much, nor a present that is not known.
func TestWhatIsMissingMakesNoForecast(t *testing.T) {
	steady := func(time.Time) float64 { return 50 }
	p := policyOf(t, minuteConfig(nil), history(day(0), day(2), everyDay)...)
	drive(t, p, day(2), day(4), func(time.Time) (float64, bool) { return 0, false }, func(at time.Time, d *scaling.Decision) {
		require.Equal(t, scaling.Unknown, d.Verdict, "%s", at)
	})

	// Yesterday's 10:00 to 10:30 was seen for a part only.
	var past []forecast.Sample
	for _, x := range history(day(0), day(3), steady) {
		if hour := x.At.Sub(day(2)).Hours(); hour <= 10 || hour > 10.5 {
			past = append(past, x)
		}
	}
	p = policyOf(t, minuteConfig(nil), past...)
	_, extra := lifts(t, p, day(3), day(4), steady)
	assert.Zero(t, extra)
}

// TestAMissingDayIsLeftOut: of three days one was not seen; the others make the forecast.
func TestAMissingDayIsLeftOut(t *testing.T) {
	past := append(history(day(0), day(2), everyDay), history(day(3).Add(-6*time.Hour), day(3), everyDay)...)
	times, _ := lifts(t, policyOf(t, minuteConfig(nil), past...), day(3), day(4), everyDay)
	require.NotEmpty(t, times)
	assert.Less(t, times[0].Sub(day(3)).Hours(), 8.0)
}

// TestAHolidayIsNotMadeAWorkday: on a day on which nobody comes the floor gives up before noon, and is there again the day
// after. At first it kept half of a usual day's replicas until the evening: what days had been worth outweighed it.
func TestAHolidayIsNotMadeAWorkday(t *testing.T) {
	random := splitmix.Stream{State: 5}
	noisy := func(at time.Time) float64 { return everyDay(at) * (0.95 + 0.1*random.Uniform()) }
	p := policyOf(t, minuteConfig(nil), history(day(0), day(4), noisy)...)
	times, extra := lifts(t, p, day(4), day(5), func(time.Time) float64 { return 20 })
	require.NotEmpty(t, times)
	assert.Less(t, times[len(times)-1].Sub(day(4)).Hours(), 12.0)
	assert.Less(t, extra/60, 12.0, "replica-hours")
	times, _ = lifts(t, p, day(5), day(5).Add(10*time.Hour), everyDay)
	require.NotEmpty(t, times)
	assert.Less(t, times[0].Sub(day(5)).Hours(), 8.0)
}

// TestALaunchIsNotForGood: the day after one with three times as many from 10 to 16 o'clock is foreseen as usual.
func TestALaunchIsNotForGood(t *testing.T) {
	random := splitmix.Stream{State: 5}
	noisy := func(at time.Time) float64 {
		x := everyDay(at) * (0.95 + 0.1*random.Uniform())
		if hour := at.Sub(day(9)).Hours(); hour > 10 && hour < 16 {
			x *= 3
		}
		return x
	}
	p := policyOf(t, minuteConfig(nil), history(day(0), day(10), noisy)...)
	times, extra := lifts(t, p, day(10), day(11), everyDay)
	require.NotEmpty(t, times)
	assert.Less(t, times[0].Sub(day(10)).Hours(), 8.0)
	assert.Less(t, extra/60, 30.0, "replica-hours")
}

// TestRegressionADayThatIsLateIsNotSmall: today's jump at nine comes seven minutes late, or early. It was taken for a third less than other
// days have, or twice as much, while it was compared with them: the replicas went before it came, or were twice as many.
func TestRegressionADayThatIsLateIsNotSmall(t *testing.T) {
	jump := func(at time.Time) float64 {
		if hour := at.Sub(at.Truncate(24 * time.Hour)).Hours(); hour >= 9 && hour < 17 {
			return 100
		}
		return 20
	}
	for _, late := range []time.Duration{-7 * time.Minute, 0, 7 * time.Minute} {
		p := policyOf(t, minuteConfig(nil), history(day(0), day(4), jump)...)
		least, most := int32(100), int32(0)
		drive(t, p, day(4), day(4).Add(10*time.Hour), always(func(at time.Time) float64 { return jump(at.Add(-late)) }), func(at time.Time, d *scaling.Decision) {
			if from := at.Sub(day(4).Add(9 * time.Hour)); from >= -3*time.Minute && from < 30*time.Minute {
				least, most = min(least, d.Replicas), max(most, d.Replicas)
			}
		})
		assert.GreaterOrEqual(t, least, int32(9), late)
		assert.LessOrEqual(t, most, int32(11), late)
	}
}

// TestTheLeadIsMeasured: the longer starts take, the earlier replicas are asked for.
func TestTheLeadIsMeasured(t *testing.T) {
	first := func(start time.Duration) float64 {
		p := policyOf(t, minuteConfig(nil), history(day(0), day(2), everyDay)...)
		at := day(2)
		for range 20 {
			p.Applied(at, 1, 2)
			for end := at.Add(start); at.Before(end.Add(-time.Minute)); {
				at = at.Add(time.Minute)
				p.Decide(at, scaling.Observation{SpecReplicas: 2, ReadyReplicas: 1, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}})
			}
			at = at.Add(time.Minute)
			p.Decide(at, scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}})
			at = at.Add(time.Minute)
		}
		times, _ := lifts(t, p, at, day(3), everyDay)
		require.NotEmpty(t, times)
		return times[0].Sub(day(2)).Hours()
	}
	assert.InDelta(t, first(time.Minute)-0.25, first(16*time.Minute), 0.1)
}

// TestAChangeOfTheFloorIsNotTheBases: base learns of its own changes only.
func TestAChangeOfTheFloorIsNotTheBases(t *testing.T) {
	base := &watcher{Policy: scaling.New(follower(10))}
	p, err := forecast.New(base, source(10), minuteConfig(nil), history(day(0), day(2), everyDay)...)
	require.NoError(t, err)
	lifted := 0
	drive(t, p, day(2), day(2).Add(8*time.Hour+10*time.Minute), always(everyDay), func(_ time.Time, d *scaling.Decision) {
		if d.Code() == scaling.Lifted && d.Verdict == scaling.Up && base.last.Verdict != scaling.Up {
			lifted++
		}
	})
	assert.Positive(t, lifted)
	assert.Less(t, base.applied, 3)
}

// TestATinyFirstDemand: days are kept in multiples of the first demand, and what was 2^32 times that was cut. With 21 no expected count is
// within the rounding of a stored demand.
func TestATinyFirstDemand(t *testing.T) {
	most := func(first float64) (most int32) {
		past := history(day(0), day(4).Add(8*time.Hour), everyDay)
		past[0].Demand, past[1].Demand = 0, first
		p := policyOf(t, configOf(time.UTC), past...)
		drive(t, p, day(4).Add(8*time.Hour), day(4).Add(8*time.Hour+15*time.Minute), func(time.Time) (float64, bool) { return 21, true }, func(_ time.Time, d *scaling.Decision) {
			most = max(most, d.Replicas)
		})
		return most
	}
	usual := most(20)
	require.Greater(t, usual, int32(3), "the floor foresees the morning")
	for _, tiny := range []float64{1e-8, 1e-9, 1e-30} {
		require.Equal(t, usual, most(tiny), "%g", tiny)
	}
}

// watcher notes what a base says and is told.
type watcher struct {
	scaling.Policy
	last    scaling.Decision
	applied int
}

func (w *watcher) Decide(now time.Time, obs scaling.Observation) scaling.Decision {
	w.last = w.Policy.Decide(now, obs)
	return w.last
}

func (w *watcher) Applied(now time.Time, from, to int32) {
	w.applied++
	w.Policy.Applied(now, from, to)
}

// TestAClockThatIsWrongForgetsNoDays: a tick years ahead, and back again, leaves the days but one.
func TestAClockThatIsWrongForgetsNoDays(t *testing.T) {
	p := policyOf(t, minuteConfig(nil), history(day(0), day(2), everyDay)...)
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}}
	p.Decide(day(2), obs)
	for range 10 {
		p.Decide(day(4000), obs)
		p.Decide(day(4000).Add(time.Minute), obs)
	}
	d := p.Decide(day(2).Add(time.Minute), obs)
	assert.False(t, d.Verdict == scaling.Up)
	times, _ := lifts(t, p, day(2).Add(2*time.Minute), day(3), everyDay)
	require.NotEmpty(t, times)
	assert.Less(t, times[0].Sub(day(2)).Hours(), 8.0)
}

// TestDaysOfAnotherPlaceAreForgotten: a state of days in UTC says nothing of those in Berlin, but of how long starts take.
func TestDaysOfAnotherPlaceAreForgotten(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	stored, err := policyOf(t, minuteConfig(nil), history(day(0), day(2), everyDay)...).MarshalJSON()
	require.NoError(t, err)
	p := policyOf(t, minuteConfig(berlin))
	require.NoError(t, p.UnmarshalJSON(stored))
	d := p.Decide(day(2).Add(8*time.Hour), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}})
	assert.Contains(t, d.Explain(), "Unseen")
}

// TestStatesThatNobodyWroteAreRefused, and kept as they are.
func TestStatesThatNobodyWroteAreRefused(t *testing.T) {
	good, err := policyOf(t, minuteConfig(nil), history(day(0), day(1), everyDay)...).MarshalJSON()
	require.NoError(t, err)
	for _, change := range [][2]string{
		{`"kind":"forecast"`, `"kind":"other"`},
		{`"version":1`, `"version":2`},
		{`"unit":`, `"unit":-`},
		{`"s":"`, `"s":"AAAA`},
		{`"scores":[`, `"scores":[{"loss":-1,"constant":0,"slots":0},`},
		{`"zone":`, `"town":`},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		require.NotEqual(t, string(good), bad, change[0])
		p := policyOf(t, minuteConfig(nil))
		var refused *scaling.StateError
		require.ErrorAs(t, p.UnmarshalJSON([]byte(bad)), &refused, change[1])
		d := p.Decide(day(2), scaling.Observation{SpecReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}})
		assert.Equal(t, scaling.StateRefused, d.Code())
		kept, err := p.MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, bad, string(kept))
	}
}

// TestWrongConfigurationsAreNamed, each field with its rule.
func TestWrongConfigurationsAreNamed(t *testing.T) {
	_, err := forecast.New(nil, nil, forecast.Config{Spread: math.NaN()}, forecast.Sample{At: day(1), Demand: -1}, forecast.Sample{At: day(1)})
	require.Error(t, err)
	for _, field := range []string{"base", "source", "coldStart", "scrape", "control", "spread", "past[0].demand", "past[1].at"} {
		assert.Contains(t, err.Error(), field+": ")
	}
	p, _ := forecast.New(nil, nil, forecast.Config{})
	d := p.Decide(day(0), scaling.Observation{SpecReplicas: 2})
	assert.Equal(t, scaling.NotConfigured, d.Code())
}

// TestExplained shows the chain of a lift.
func TestExplained(t *testing.T) {
	p := policyOf(t, minuteConfig(nil), history(day(0), day(2), everyDay)...)
	story := ""
	drive(t, p, day(2), day(2).Add(8*time.Hour), always(everyDay), func(_ time.Time, d *scaling.Decision) {
		if d.Verdict == scaling.Up && story == "" && strings.Contains(d.Explain(), "Lifted") {
			story = d.Explain()
			_, err := json.Marshal(d)
			require.NoError(t, err)
		}
	})
	assert.Contains(t, story, "Foreseen")
	assert.Contains(t, story, "Daily expected=")
}

// TestRegressionReplicasThatStartForAJumpStay: in every other minute a replica takes a fourth more, as a capacity that was learned does. Of
// eight replicas that had started for today's jump at nine, one was taken away every other minute. They stay until it is over.
func TestRegressionReplicasThatStartForAJumpStay(t *testing.T) {
	jump := func(at time.Time) float64 {
		if hour := at.Hour(); hour >= 9 && hour < 17 {
			return 80
		}
		return 20
	}
	more := false
	takes := func(obs *scaling.Observation, d *scaling.Decision) (scaling.Reading, float64) {
		demand, each := source(10)(obs, d)
		if more = !more; more {
			each *= 1.25
		}
		return demand, each
	}
	p, err := forecast.New(scaling.New(follower(40)), takes, minuteConfig(nil), history(day(0), day(4), jump)...)
	require.NoError(t, err)
	nine := day(4).Add(9 * time.Hour)
	before, after := int32(100), int32(100)
	drive(t, p, day(4), nine.Add(40*time.Minute), always(jump), func(at time.Time, d *scaling.Decision) {
		switch {
		case !at.Before(nine.Add(-12*time.Minute)) && at.Before(nine):
			before = min(before, d.Replicas)
		case !at.Before(nine.Add(30 * time.Minute)):
			after = min(after, d.Replicas)
		}
	})
	assert.Equal(t, int32(8), before)
	assert.Equal(t, int32(7), after)
}
