package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// fleetBounds are those of every policy in a composition.
var fleetBounds = scaling.Bounds{Min: 1, Max: 12}

// A plan says how to make a policy, any number of times.
type plan func() scaling.Policy

// composed makes a plan of what a constructor returns.
func composed(t require.TestingT, build func() (scaling.Policy, error)) plan {
	return func() scaling.Policy {
		p, err := build()
		require.NoError(t, err)
		return p
	}
}

// drawLeaf draws an algorithm of this module.
func drawLeaf(t *rapid.T) plan {
	return composed(t, func() func() (scaling.Policy, error) {
		if rapid.Bool().Draw(t, "realtime") {
			c := realtime.Kaito(fleetBounds, realtime.Metric{Name: "queue", High: 10, Low: 4}, realtime.Metric{Name: "cache", High: 0.8, Low: 0.3})
			c.Up.Cooldown, c.Down.Cooldown, c.Down.Window = time.Minute, 2*time.Minute, time.Minute
			c.Up.Step = rapid.Int32Range(1, 3).Draw(t, "step")
			return func() (scaling.Policy, error) {
				s, err := realtime.New(c)
				return scaling.New(s), err
			}
		}
		profile := rapid.SampledFrom([]func(scaling.Bounds, ...proportional.Metric) proportional.Config{
			proportional.KPA, proportional.HPA, proportional.LLM,
		}).Draw(t, "profile")
		return func() (scaling.Policy, error) {
			s, err := proportional.New(profile(fleetBounds, proportional.Metric{Name: "queue", Target: 7}))
			return scaling.New(s), err
		}
	}())
}

// drawComposition draws compositions of compositions. timed reports whether a timetable is among them.
func drawComposition(t *rapid.T, depth int) (p plan, timed bool) {
	if depth == 0 {
		return drawLeaf(t), false
	}
	base, timed := drawComposition(t, depth-1)
	switch rapid.SampledFrom([]string{"highest", "floor", "bounded", "stabilized", "limited"}).Draw(t, "composition") {
	case "highest":
		other, otherTimed := drawComposition(t, rapid.IntRange(0, depth-1).Draw(t, "depth"))
		return composed(t, func() (scaling.Policy, error) {
			return scaling.Highest(scaling.Member{Name: "b", Policy: base()}, scaling.Member{Name: "a", Policy: other()})
		}), timed || otherTimed
	case "floor":
		table, err := cronscale.New(cronscale.Config{Bounds: fleetBounds, Policies: []cronscale.Policy{
			{Name: "often", Schedule: "*/3 * * * *", TargetReplicas: rapid.Int32Range(0, 14).Draw(t, "often")},
			{Name: "seldom", Schedule: "1,7 * * * *", TargetReplicas: rapid.Int32Range(0, 14).Draw(t, "seldom")},
		}})
		require.NoError(t, err)
		return composed(t, func() (scaling.Policy, error) { return scaling.Floor(base(), table, fleetBounds) }), true
	case "bounded":
		return composed(t, func() (scaling.Policy, error) { return scaling.Bounded(base(), fleetBounds) }), timed
	case "stabilized":
		s := scaling.Stabilization{Up: drawSeconds(t, "up window"), Down: drawSeconds(t, "down window")}
		return composed(t, func() (scaling.Policy, error) { return scaling.Stabilized(base(), s) }), timed
	default:
		l := scaling.RateLimits{Up: drawLimit(t), Down: drawLimit(t)}
		return composed(t, func() (scaling.Policy, error) { return scaling.RateLimited(base(), l) }), timed
	}
}

func drawSeconds(t *rapid.T, label string) time.Duration {
	return time.Duration(max(0, rapid.IntRange(-30, 90).Draw(t, label))) * time.Second
}

func drawLimit(t *rapid.T) scaling.RateLimit {
	l := scaling.RateLimit{Select: rapid.SampledFrom([]scaling.Select{scaling.SelectMax, scaling.SelectMin}).Draw(t, "select")}
	for range rapid.IntRange(0, 2).Draw(t, "limits") {
		limit := scaling.Limit{Period: time.Duration(rapid.IntRange(1, 90).Draw(t, "period")) * time.Second}
		if rapid.Bool().Draw(t, "percent") {
			limit.Percent = rapid.Int32Range(1, 150).Draw(t, "value")
		} else {
			limit.Replicas = rapid.Int32Range(1, 5).Draw(t, "value")
		}
		l.Limits = append(l.Limits, limit)
	}
	return l
}

// TestCompositionsHaveTheCommonProperties: what holds of the algorithms holds of any composition of them that keeps
// within bounds in the end.
func TestCompositionsHaveTheCommonProperties(t *testing.T) {
	scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
		inner, timed := drawComposition(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		whole := composed(t, func() (scaling.Policy, error) { return scaling.Bounded(inner(), fleetBounds) })
		return whole, scalingtest.Options{
			Metrics: []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}, {Name: "cache", Low: 0.3, High: 0.8}},
			Bounds:  fleetBounds, Memory: 10 * time.Minute, Shift: 24 * time.Hour,
			ActsWithoutData: timed, Monotone: true,
		}
	})
}
