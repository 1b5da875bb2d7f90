package forecast_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
)

// TestRegressionAWrongSampleIsForgotten: after one sample of 1e15 the fleet was at its maximum for ten hours of each of five days, and
// after one of 1e6 no morning was foreseen for three weeks.
func TestRegressionAWrongSampleIsForgotten(t *testing.T) {
	for _, wrong := range []float64{1e3, 1e6, 1e15} {
		p := policyOf(t, minuteConfig(nil), history(day(0), day(2), everyDay)...)
		var lifted, full [14]int
		drive(t, p, day(2), day(14), func(at time.Time) (float64, bool) {
			if at.Equal(day(5).Add(3 * time.Hour)) {
				return wrong, true
			}
			return everyDay(at), true
		}, func(at time.Time, d *scaling.Decision) {
			i := int(at.Sub(day(0)).Hours() / 24)
			if d.Replicas > scaling.Ceil(everyDay(at)/10) {
				lifted[i]++
			}
			if d.Replicas == 100 {
				full[i]++
			}
		})
		for i := 6; i < 14; i++ {
			require.Zero(t, full[i], "%g, day %d", wrong, i)
			require.InDelta(t, 110, lifted[i], 25, "%g, day %d: minutes of the morning's floor", wrong, i)
		}
	}
}

// TestRegressionAWrongSampleOfTheFirstDayIsForgotten: after one of 1e15 in the first minutes, or at three, no forecast was ever in force: all
// other demands were too small to be told apart in the unit of that one. After one of 1e6 at three there was none for 25 days.
func TestRegressionAWrongSampleOfTheFirstDayIsForgotten(t *testing.T) {
	for _, wrong := range []float64{1e6, 1e15} {
		for _, when := range []time.Duration{0, time.Minute, 25 * time.Minute, 3 * time.Hour} {
			p := policyOf(t, minuteConfig(nil))
			foreseen := 0
			drive(t, p, day(0), day(6), func(at time.Time) (float64, bool) {
				if at.Equal(day(0).Add(when)) {
					return wrong, true
				}
				return everyDay(at), true
			}, func(at time.Time, d *scaling.Decision) {
				if _, ok := d.Find(forecast.Foreseen); ok && !at.Before(day(5)) {
					foreseen++
				}
			})
			require.Greater(t, foreseen, 23*60, "%g after %s: minutes of the sixth day", wrong, when)
		}
	}
}

// TestGrowthIsRemembered: a demand that is twenty times as high from one day on is the memory of that day, but for the first slots.
func TestGrowthIsRemembered(t *testing.T) {
	c := minuteConfig(nil)
	c.Bounds.Max = 1000
	p := policyOf(t, c, history(day(0), day(4), everyDay)...)
	grown := func(at time.Time) float64 { return 20 * everyDay(at) }
	lifted := 0
	drive(t, p, day(4), day(7), always(grown), func(at time.Time, d *scaling.Decision) {
		if !at.Before(day(6)) && d.Replicas > scaling.Ceil(grown(at)/10) {
			lifted++
		}
	})
	require.Greater(t, lifted, 60)
}

// TestRegressionAClockThatIsWrongOnceForgetsNoDay: one decision in 1970 deleted two weeks.
func TestRegressionAClockThatIsWrongOnceForgetsNoDay(t *testing.T) {
	for _, wrong := range []time.Time{time.Unix(0, 0), day(14).AddDate(1, 0, 0)} {
		p := policyOf(t, minuteConfig(nil), history(day(0), day(14), everyDay)...)
		days := func() int {
			var s struct {
				State struct {
					Memory struct{ Days []struct{ N int } }
				}
			}
			data, err := json.Marshal(p)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &s))
			return len(s.State.Memory.Days)
		}
		obs := scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}}
		p.Decide(day(14), obs)
		before := days()
		p.Decide(wrong, obs)
		p.Decide(day(14).Add(time.Minute), obs)
		require.Equal(t, before, days(), wrong)
	}
}

// TestRegressionNoStateIsRefusedThatWasWritten: what these configurations stored was refused after a restart, and the policy stood still.
func TestRegressionNoStateIsRefusedThatWasWritten(t *testing.T) {
	for text, change := range map[string]func(c *forecast.Config){
		"location: \"zzz":          func(c *forecast.Config) { c.Location = time.FixedZone(strings.Repeat("z", 65), 3600) },
		"location: \"far\"":        func(c *forecast.Config) { c.Location = time.FixedZone("far", 3*86400) },
		"demand: \"a\\xff\"":       func(c *forecast.Config) { c.Demand = "a\xff" },
		"demand: \"<<<":            func(c *forecast.Config) { c.Demand = strings.Repeat("<", 512) },
		"demand: \"a\\nb\": must ": func(c *forecast.Config) { c.Demand = "a\nb" },
	} {
		c := minuteConfig(nil)
		change(&c)
		_, err := forecast.New(scaling.New(follower(10)), source(10), c)
		require.ErrorContains(t, err, text)
	}
}

// TestRegressionAHistoryMayBeginWithAByteOrderMark: spreadsheets write one, and the header was refused.
func TestRegressionAHistoryMayBeginWithAByteOrderMark(t *testing.T) {
	all, err := forecast.Read(strings.NewReader("\ufefftime,demand\r\n2026-03-01T00:05:00+01:00,212.5\r\n"), "h.csv")
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// TestRegressionAJumpAtTheMinuteIsNotUnlike: replicas for a jump that comes each day at eight are there ten minutes early. That they are
// early counted as a day that is unlike others, and from 7:55 on half of them were taken away.
func TestRegressionAJumpAtTheMinuteIsNotUnlike(t *testing.T) {
	jump := func(at time.Time) float64 {
		if h := at.Hour(); h < 8 || h >= 18 {
			return 20
		}
		return 200
	}
	before := func(at time.Time) float64 { return jump(at.Add(-time.Second)) } // a row has what was since the last
	for _, start := range []time.Duration{time.Minute, 5 * time.Minute} {
		c := minuteConfig(nil)
		c.ColdStart = start
		p := policyOf(t, c, history(day(0), day(7), before)...)
		drive(t, p, day(7), day(11), always(jump), func(at time.Time, d *scaling.Decision) {
			if at.Hour() == 7 && at.Minute() >= 55 {
				require.GreaterOrEqual(t, d.Replicas, int32(16), "%s: %s\n%s", start, at, d.Explain())
			}
		})
	}
}

// TestRegressionAClockThatStepsBackKeepsTheLastHalfHour: after a step of ten milliseconds, or a year, back to the right time, nothing was
// known of today but that it may be half of other days, and a jump found half of its replicas.
func TestRegressionAClockThatStepsBackKeepsTheLastHalfHour(t *testing.T) {
	jump := func(at time.Time) float64 {
		if h := at.Hour(); h < 8 || h >= 18 {
			return 20
		}
		return 200
	}
	before := func(at time.Time) float64 { return jump(at.Add(-time.Second)) } // a row has what was since the last
	begin := day(4).Add(7*time.Hour + 46*time.Minute)
	morning := func(wrong time.Duration) (counts []int32) {
		p := policyOf(t, minuteConfig(nil), history(day(0), day(4), before)...)
		drive(t, p, day(4), begin, always(jump), nil)
		if wrong != 0 {
			p.Decide(begin.Add(wrong-time.Minute), scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}})
		}
		drive(t, p, begin, begin.Add(20*time.Minute), always(jump), func(_ time.Time, d *scaling.Decision) { counts = append(counts, d.Replicas) })
		return counts
	}
	want := morning(0)
	require.Contains(t, want[:14], int32(20))
	for _, wrong := range []time.Duration{-10 * time.Millisecond, -90 * time.Second, -4 * time.Minute, 365 * 24 * time.Hour} {
		require.Equal(t, want, morning(wrong), wrong)
	}
}

// TestWhatPassesTwiceCountsOnce: a clock that goes back each minute makes no demand larger.
func TestWhatPassesTwiceCountsOnce(t *testing.T) {
	p := policyOf(t, minuteConfig(nil))
	obs := scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}}
	for at := day(0); at.Before(day(0).Add(2 * time.Hour)); at = at.Add(time.Minute) {
		p.Decide(at, obs)
		p.Decide(at.Add(-50*time.Second), obs)
		data, err := p.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, policyOf(t, minuteConfig(nil)).UnmarshalJSON(data))
		var s struct {
			State struct{ Memory forecast.State }
		}
		require.NoError(t, json.Unmarshal(data, &s))
		for _, x := range append(s.State.Memory.Past, s.State.Memory.Now) {
			require.InDelta(t, 20*x.Seen, x.Lower, 1e-6)
			require.LessOrEqual(t, x.Seen, 300.0)
		}
	}
}
