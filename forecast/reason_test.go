package forecast_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
)

// loaded is an observation of so many replicas and an interval of load.
func loaded(replicas int32, lower, upper float64) scaling.Observation {
	return scaling.Observation{
		SpecReplicas: replicas, ReadyReplicas: replicas, Readings: []scaling.Reading{{Metric: metric, Lower: lower, Upper: upper, Values: replicas}},
	}
}

// TestWhyNothingIsForeseen: no other day, too few slots that were backtested, a constant that predicts as well, and a day unlike others.
func TestWhyNothingIsForeseen(t *testing.T) {
	steady := func(time.Time) float64 { return 50 }
	holiday := func(at time.Time) float64 {
		if at.Before(day(4)) {
			return everyDay(at)
		}
		return 20
	}
	for code, row := range map[scaling.Code]struct {
		until  time.Time
		demand func(time.Time) float64
	}{
		forecast.Unseen:   {day(0).Add(12 * time.Hour), everyDay},
		forecast.Unscored: {day(1).Add(2 * time.Hour), everyDay},
		forecast.Unproven: {day(3), steady},
		forecast.Unlike:   {day(4).Add(13 * time.Hour), holiday},
		forecast.Foreseen: {day(3).Add(13 * time.Hour), everyDay},
	} {
		p := policyOf(t, minuteConfig(nil), history(day(0), row.until, row.demand)...)
		x := row.demand(row.until)
		d := p.Decide(row.until.Add(time.Minute), loaded(10, x, x))
		for _, other := range []scaling.Code{forecast.Unseen, forecast.Unscored, forecast.Unproven, forecast.Unlike, forecast.Foreseen, forecast.PartlyForeseen} {
			_, said := d.Find(other)
			require.Equal(t, other == code, said, "%s: %s", code, d.Explain())
		}
	}
}

// TestReplicasThatMayBeNeededAreKept: from 9:00 on, when it is as on other days, today's load is known as at least a fifth and at most all
// of what they have. Half of their ten replicas are certain, and the other half stays while it is there, and is not started.
func TestReplicasThatMayBeNeededAreKept(t *testing.T) {
	nine := day(2).Add(9 * time.Hour)
	for spec, want := range map[int32]int32{10: 10, 7: 7, 2: 5, 30: 10} {
		p, err := forecast.New(scaling.New(follower(1000)), source(10), minuteConfig(nil), history(day(0), nine, everyDay)...)
		require.NoError(t, err)
		var d scaling.Decision
		for at := nine; !at.After(nine.Add(40 * time.Minute)); at = at.Add(time.Minute) {
			d = p.Decide(at, loaded(spec, 20, 100))
		}
		require.Equal(t, want, d.Replicas, d.Explain())
		_, partly := d.Find(forecast.PartlyForeseen)
		require.True(t, partly, d.Explain())
		_, kept := d.Find(forecast.Kept)
		require.Equal(t, spec > 5, kept, d.Explain())
	}
}

// TestWhatWasNotSeenOfTodayMayHaveBeenMore: after 20 minutes without a reading it is not known that today is as other days. It may have twice
// as much, and twenty replicas stay; ten are enough where all was seen.
func TestWhatWasNotSeenOfTodayMayHaveBeenMore(t *testing.T) {
	nine := day(2).Add(9 * time.Hour)
	for unseen, want := range map[time.Duration]int32{0: 10, 20 * time.Minute: 20} {
		p, err := forecast.New(scaling.New(follower(1000)), source(10), minuteConfig(nil), history(day(0), nine, everyDay)...)
		require.NoError(t, err)
		var d scaling.Decision
		for at := nine; !at.After(nine.Add(22 * time.Minute)); at = at.Add(time.Minute) {
			obs := loaded(20, 100, 100)
			if at.Before(nine.Add(unseen)) {
				obs.Readings = nil
			}
			d = p.Decide(at, obs)
		}
		require.Equal(t, want, d.Replicas, d.Explain())
	}
}

// TestAMethodThatOneScoreProvesKeepsOnly: where all slots prove it and too few fully known ones were scored, as in a state of an earlier
// version, a morning is not foreseen, and what is there for it is not taken away.
func TestAMethodThatOneScoreProvesKeepsOnly(t *testing.T) {
	morning := day(3).Add(7*time.Hour + 50*time.Minute)
	for _, score := range []string{"", "sure", "scores"} {
		p, err := forecast.New(scaling.New(follower(1000)), source(10), minuteConfig(nil), history(day(0), morning, everyDay)...)
		require.NoError(t, err)
		data, err := p.MarshalJSON()
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(data, &m))
		if memory := m["state"].(map[string]any)["memory"].(map[string]any); score != "" {
			memory[score] = []forecast.Score{{}, {}}
		}
		data, err = json.Marshal(m)
		require.NoError(t, err)
		require.NoError(t, p.UnmarshalJSON(data))
		up := p.Decide(morning.Add(time.Minute), loaded(2, 20, 20))
		down := p.Decide(morning.Add(2*time.Minute), loaded(10, 20, 20))
		if score == "" {
			require.Greater(t, up.Replicas, int32(2), up.Explain())
			require.Equal(t, up.Replicas, down.Replicas, down.Explain())
			continue
		}
		require.Equal(t, int32(2), up.Replicas, "%s: %s", score, up.Explain())
		require.Greater(t, down.Replicas, int32(2), "%s: %s", score, down.Explain())
		require.Equal(t, forecast.Kept, down.Code(), "%s: %s", score, down.Explain())
	}
}

// TestTheSpreadIsOfTheExpectedReplicas: 100 of load are ten replicas, and 14 with one square root of them.
func TestTheSpreadIsOfTheExpectedReplicas(t *testing.T) {
	for spread, want := range map[float64]int32{0: 10, 1: 14, 3: 20} {
		c := minuteConfig(nil)
		c.Spread = spread
		p := policyOf(t, c, history(day(0), day(3).Add(12*time.Hour), everyDay)...)
		require.Equal(t, want, p.Decide(day(3).Add(12*time.Hour+time.Minute), loaded(10, 100, 100)).Replicas)
	}
}

// TestAnOldDemandRaisesNothing: at 7:50 the morning is foreseen with a demand of 8 min ago, and not with an older one.
func TestAnOldDemandRaisesNothing(t *testing.T) {
	at := day(2).Add(7*time.Hour + 50*time.Minute)
	for age, want := range map[time.Duration]bool{0: true, 8 * time.Minute: true, 8*time.Minute + time.Second: false} {
		p := policyOf(t, minuteConfig(nil), history(day(0), at, everyDay)...)
		obs := loaded(2, 20, 20)
		obs.Readings[0].At = at.Add(time.Minute - age)
		d := p.Decide(at.Add(time.Minute), obs)
		require.Equal(t, want, d.Replicas > 2, "%s: %s", age, d.Explain())
	}
}

// TestPodsThatDidNotAnswerYesterdayAreNotCompared: for half an hour three of five of them did not, and one was not ready; today is not five times
// as large.
func TestPodsThatDidNotAnswerYesterdayAreNotCompared(t *testing.T) {
	p := policyOf(t, minuteConfig(nil), history(day(0), day(3), everyDay)...)
	for at := day(3).Add(time.Minute); at.Before(day(4).Add(13 * time.Hour)); at = at.Add(time.Minute) {
		x := everyDay(at)
		obs := loaded(5, x, x)
		if hour := at.Sub(day(3)).Hours(); hour > 12 && hour <= 12.5 {
			obs.Readings[0] = scaling.Reading{Metric: metric, Lower: x / 5, Upper: math.Inf(1), Values: 1, Failed: 3, NotReady: 1}
		}
		if d := p.Decide(at, obs); at.After(day(4).Add(12 * time.Hour)) {
			require.LessOrEqual(t, d.Replicas, int32(11), "%s: %s", at, d.Explain())
		}
	}
}
