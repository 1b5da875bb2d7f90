package forecast_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
)

// stateWith is the state after three days and twelve hours, changed; nil policy if it is refused.
func stateWith(t *testing.T, change func(memory map[string]any)) scaling.Policy {
	t.Helper()
	p := policyOf(t, minuteConfig(nil), history(day(0), day(3), everyDay)...)
	drive(t, p, day(3), day(3).Add(12*time.Hour), always(everyDay), nil)
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(data, &m))
	change(m["state"].(map[string]any)["memory"].(map[string]any))
	data, err = json.Marshal(m)
	require.NoError(t, err)
	p = policyOf(t, minuteConfig(nil))
	if p.UnmarshalJSON(data) != nil {
		return nil
	}
	return p
}

// decideOnce decides a minute later.
func decideOnce(p scaling.Policy) {
	p.Decide(day(3).Add(12*time.Hour+time.Minute), scaling.Observation{SpecReplicas: 10, ReadyReplicas: 10, Readings: []scaling.Reading{scaling.Exactly(metric, 100)}})
}

// TestAStateWithoutItsPresentIsRefused: every slot since 1970 would be filled with what is seen now.
func TestAStateWithoutItsPresentIsRefused(t *testing.T) {
	night := func(p scaling.Policy) (most int32) {
		decideOnce(p)
		drive(t, p, day(4).Add(2*time.Hour), day(4).Add(6*time.Hour), always(everyDay), func(_ time.Time, d *scaling.Decision) { most = max(most, d.Replicas) })
		return most
	}
	good := night(stateWith(t, func(map[string]any) {}))
	if p := stateWith(t, func(m map[string]any) { m["now"] = map[string]any{} }); p != nil {
		require.Equal(t, good, night(p), "replicas at night")
	}
}

// TestAPresentOfLongAgoIsRefused: it would be caught up with slot by slot.
func TestAPresentOfLongAgoIsRefused(t *testing.T) {
	p := stateWith(t, func(m map[string]any) { m["now"] = map[string]any{"n": -1e12} })
	if p == nil {
		return
	}
	done := make(chan struct{})
	go func() { decideOnce(p); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("one decision has not come to an end in 20 s")
	}
}

// TestADayToComeIsRefused: nothing would be learned before it.
func TestADayToComeIsRefused(t *testing.T) {
	p := stateWith(t, func(m map[string]any) {
		d := m["days"].([]any)
		d[len(d)-1].(map[string]any)["n"] = 40000.0 // in 2079
	})
	if p == nil {
		return
	}
	foreseen := 0
	drive(t, p, day(3).Add(12*time.Hour), day(12), always(everyDay), nil)
	drive(t, p, day(12), day(19), always(everyDay), func(_ time.Time, d *scaling.Decision) {
		if _, ok := d.Find(forecast.Foreseen); ok {
			foreseen++
		}
	})
	require.NotZero(t, foreseen, "minutes in the third week")
}

// TestRegressionDemandsThatNoForecastSawAreRefused: with a unit of 1e308 the fleet was at its maximum, as +Inf was expected.
func TestRegressionDemandsThatNoForecastSawAreRefused(t *testing.T) {
	require.Nil(t, stateWith(t, func(m map[string]any) { m["unit"] = 1e308 }))
	require.Nil(t, stateWith(t, func(m map[string]any) { m["now"].(map[string]any)["l"] = 1e308 }))
	require.NotNil(t, stateWith(t, func(m map[string]any) { m["unit"] = 2e15 }), "of one demand of 1e15, by an earlier version")
}

// TestRegressionAWrongScoreHasItsName: that of Sure was called scores[2].
func TestRegressionAWrongScoreHasItsName(t *testing.T) {
	s := forecast.State{}
	s.Sure[0].Loss = -1
	require.EqualError(t, s.Validate(), "sure[0]: must be numbers that are not negative")
}

// TestRegressionUnknownSlotsOfOtherDaysExcuseNothing: on a holiday, ten minutes of the day before of which nothing is known, or a fifth,
// counted as ten minutes of little demand, by which today might be late. So they hid what the forecast cost.
func TestRegressionUnknownSlotsOfOtherDaysExcuseNothing(t *testing.T) {
	quarter := day(1).Add(10*time.Hour + 15*time.Minute)
	cost := func(until time.Duration, known func(time.Time) bool) float64 {
		p := policyOf(t, minuteConfig(nil), history(day(0), day(1), everyDay)...)
		drive(t, p, day(1), day(2), func(at time.Time) (float64, bool) { return everyDay(at), known(at) }, nil)
		drive(t, p, day(2), quarter.Add(24*time.Hour+until), always(func(time.Time) float64 { return 20 }), nil)
		data, err := p.MarshalJSON()
		require.NoError(t, err)
		var m struct {
			State struct{ Memory forecast.State }
		}
		require.NoError(t, json.Unmarshal(data, &m))
		return m.State.Memory.Scores[forecast.Daily].OnTime
	}
	for _, edge := range []time.Duration{0, time.Minute} {
		hidden := func(until time.Duration) float64 {
			unknown := func(at time.Time) bool {
				return at.After(quarter.Add(edge)) && !at.After(quarter.Add(10*time.Minute-edge))
			}
			all := cost(until, func(time.Time) bool { return true })
			require.Positive(t, all)
			return all - cost(until, func(at time.Time) bool { return !unknown(at) })
		}
		require.LessOrEqual(t, hidden(21*time.Minute), hidden(16*time.Minute)+1e-9, edge)
	}
}
