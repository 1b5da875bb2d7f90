package hetero_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestTotalHasTheCommonProperties: placing a total on types leaves it the properties that it has by itself.
func TestTotalHasTheCommonProperties(t *testing.T) {
	scalingtest.RunGroupDrawn(t, func(t *rapid.T) (func() scaling.Group, scalingtest.Options) {
		f, newGroup := total(t, float64(rapid.IntRange(1, 3).Draw(t, "rate")), rapid.Int32Range(1, 3).Draw(t, "step"), rapid.Int32Range(0, 2).Draw(t, "exchanges"))
		return newGroup, scalingtest.Options{
			Metrics: []scalingtest.Metric{{Name: "queue", Low: 3, High: 10}},
			Targets: []scalingtest.Target{{Name: "a", Bounds: scaling.Bounds{Min: 1, Max: 20}}, {Name: "b", Bounds: scaling.Bounds{Max: 20}}},
			Bounds:  f.Bounds(), Memory: 5 * time.Minute,
			Monotone: true, Refused: true, Lapses: true, Cooldown: &scalingtest.Cooldown{Up: time.Minute, Down: 2 * time.Minute},
		}
	})
}

// TestClockBackAfterATargetWasMissing: the time of a round of which nothing else is known counts too.
func TestClockBackAfterATargetWasMissing(t *testing.T) {
	replay(t, "ClockBack", scalingtest.Episode{
		Specs: []int32{1, 1},
		Ticks: []scalingtest.Tick{
			{Readings: []scaling.Reading{{Metric: "queue", Lower: 3, Upper: 3, Values: 1}}, Targets: []scalingtest.TargetTick{{}, {Missing: true}}},
			{After: -1 * time.Second, Readings: []scaling.Reading{{Metric: "queue", Lower: 3, Upper: 3, Values: 1}}},
		},
	})
}

// TestAnExchangeMayComeWithTheNextAnswer: where readings are missing for two rounds an exchange waits, and comes with the
// scale-down that they have put off.
func TestAnExchangeMayComeWithTheNextAnswer(t *testing.T) {
	replay(t, "Lapse", scalingtest.Episode{
		Specs:   []int32{1, 3},
		Changes: []scalingtest.Change{{Tick: 1, Metric: "queue", Gone: true}, {Tick: 2, Metric: "queue", Gone: true}},
		Ticks: []scalingtest.Tick{
			{After: 15 * time.Second, Times: 22, Readings: []scaling.Reading{{Metric: "queue", Lower: 1.25, Upper: 1.25, Values: 1}}},
		},
	})
}

// total returns a fleet, and what makes groups that place on it a total by Kaito's rules.
func total(t require.TestingT, rate float64, step, exchanges int32) (*hetero.Fleet, func() scaling.Group) {
	f := fleet(t, rate, hetero.Type{Name: "a", Cost: 10, Min: 1, Max: 20}, hetero.Type{Name: "b", Cost: 25, Max: 20})
	c := realtime.Kaito(f.Bounds(), realtime.Metric{Name: "queue", High: 10, Low: 3})
	c.Up.Cooldown, c.Down.Cooldown, c.Down.Window, c.Up.Step = time.Minute, 2*time.Minute, time.Minute, step
	return f, func() scaling.Group {
		s, err := realtime.New(c)
		require.NoError(t, err)
		return groupOf(t, scaling.New(s), f, hetero.Options{Exchanges: exchanges})
	}
}

// replay checks a property on one episode of a total by Kaito's rules, with an exchange in a round.
func replay(t *testing.T, property string, e scalingtest.Episode) {
	t.Helper()
	f, newGroup := total(t, 1, 1, 1)
	scalingtest.ReplayGroup(t, newGroup, scalingtest.Options{
		Bounds: f.Bounds(), Lapses: true,
		Targets: []scalingtest.Target{{Name: "a", Bounds: scaling.Bounds{Min: 1, Max: 20}}, {Name: "b", Bounds: scaling.Bounds{Max: 20}}},
	}, property, e)
}
