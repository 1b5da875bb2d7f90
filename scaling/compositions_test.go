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

// A plan says how to make a policy, any number of times, and what is known of it.
type plan struct {
	build   func() (scaling.Policy, error)
	timed   bool // a timetable is in it
	windows bool // averages over time or a stabilization
}

// make returns a new policy.
func (p plan) make(t require.TestingT) scaling.Policy {
	policy, err := p.build()
	require.NoError(t, err)
	return policy
}

// drawLeaf draws an algorithm of this module.
func drawLeaf(t *rapid.T) plan {
	if rapid.Bool().Draw(t, "realtime") {
		c := realtime.Kaito(fleetBounds, realtime.Metric{Name: "queue", High: 10, Low: 4}, realtime.Metric{Name: "cache", High: 0.8, Low: 0.3})
		c.Up.Cooldown, c.Down.Cooldown, c.Down.Window = time.Minute, 2*time.Minute, time.Minute
		c.Up.Step = rapid.Int32Range(1, 3).Draw(t, "step")
		return plan{build: func() (scaling.Policy, error) {
			s, err := realtime.New(c)
			return scaling.New(s), err
		}}
	}
	profile := rapid.SampledFrom([]func(scaling.Bounds, ...proportional.Metric) proportional.Config{
		proportional.KPA, proportional.HPA, proportional.LLM,
	}).Draw(t, "profile")
	return plan{windows: true, build: func() (scaling.Policy, error) {
		s, err := proportional.New(profile(fleetBounds, proportional.Metric{Name: "queue", Target: 7}))
		return scaling.New(s), err
	}}
}

// drawComposition draws compositions of compositions.
func drawComposition(t *rapid.T, depth int) plan {
	if depth == 0 {
		return drawLeaf(t)
	}
	p := drawComposition(t, depth-1)
	base := p.make
	switch rapid.SampledFrom([]string{"highest", "floor", "bounded", "stabilized", "limited"}).Draw(t, "composition") {
	case "highest":
		other := drawComposition(t, rapid.IntRange(0, depth-1).Draw(t, "depth"))
		p.timed, p.windows = p.timed || other.timed, p.windows || other.windows
		p.build = func() (scaling.Policy, error) {
			return scaling.Highest(scaling.Member{Name: "b", Policy: base(t)}, scaling.Member{Name: "a", Policy: other.make(t)})
		}
	case "floor":
		table, err := cronscale.New(cronscale.Config{Bounds: fleetBounds, Policies: []cronscale.Policy{
			{Name: "often", Schedule: "*/3 * * * *", TargetReplicas: rapid.Int32Range(0, 14).Draw(t, "often")},
			{Name: "seldom", Schedule: "1,7 * * * *", TargetReplicas: rapid.Int32Range(0, 14).Draw(t, "seldom")},
		}})
		require.NoError(t, err)
		p.timed = true
		p.build = func() (scaling.Policy, error) { return scaling.Floor(base(t), table, fleetBounds) }
	case "bounded":
		p.build = func() (scaling.Policy, error) { return scaling.Bounded(base(t), fleetBounds) }
	case "stabilized":
		s := scaling.Stabilization{Up: drawSeconds(t, "up window"), Down: drawSeconds(t, "down window")}
		p.windows = true
		p.build = func() (scaling.Policy, error) { return scaling.Stabilized(base(t), s) }
	default:
		l := scaling.RateLimits{Up: drawLimit(t), Down: drawLimit(t)}
		p.build = func() (scaling.Policy, error) { return scaling.RateLimited(base(t), l) }
	}
	return p
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
		inner := drawComposition(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		whole := plan{build: func() (scaling.Policy, error) { return scaling.Bounded(inner.make(t), fleetBounds) }}
		return func() scaling.Policy { return whole.make(t) }, scalingtest.Options{
			Metrics: []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}, {Name: "cache", Low: 0.3, High: 0.8}},
			Bounds:  fleetBounds, Memory: 10 * time.Minute, Shift: 24 * time.Hour,
			ActsWithoutData: inner.timed, Windows: inner.windows, Monotone: true,
			Lapses: true, Skip: []string{"Lapse"}, // realtime's memory survives a tick without a reading; a rate limit puts off what it asks for
		}
	})
}

// TestTrackerHasTheCommonProperties: so does the policy of the example, to which authors of others are sent.
func TestTrackerHasTheCommonProperties(t *testing.T) {
	scalingtest.Run(t, func() scaling.Policy { return scaling.New(Tracker{}) }, scalingtest.Options{
		Metrics:  []scalingtest.Metric{{Name: "inflight", Low: 10, High: 80, Whole: true}},
		Skip:     []string{"ClockBack"}, // it has no memory, so that no clock goes back
		Monotone: true, NoFlap: true, Refused: true,
	})
}

// TestTrackerDoesNotScaleUpOnWhatIsMissing: of 4 replicas three carried nothing, one was missing and counted as full,
// and the tracker answered 8.
func TestTrackerDoesNotScaleUpOnWhatIsMissing(t *testing.T) {
	scalingtest.Steps(t, scaling.New(Tracker{}), 4, scalingtest.At(0, "Hold Enough 4", scaling.Reading{
		Metric: "inflight", Lower: 0, Upper: 80, Values: 3, Failed: 1,
	}))
}

// TestFloorThroughALimitStartsNoCooldown: of a lift that a limit made smaller the base was told, whose cooldown then kept it from an
// overload for ten minutes.
func TestFloorThroughALimitStartsNoCooldown(t *testing.T) {
	acts := func(limited bool) time.Duration {
		bounds := scaling.Bounds{Min: 1, Max: 20}
		c := realtime.Kaito(bounds, realtime.Metric{Name: "queue", High: 10, Low: 4})
		s, err := realtime.New(c)
		require.NoError(t, err)
		p, err := scaling.Floor(scaling.New(s), timetable(5), bounds)
		require.NoError(t, err)
		if limited {
			p, err = scaling.RateLimited(p, scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: time.Minute}, {Replicas: 2, Period: 15 * time.Second}}, Select: scaling.SelectMin}})
			require.NoError(t, err)
		}
		spec := int32(1)
		for at := time.Duration(0); ; at += 15 * time.Second {
			load := 7.0
			if at >= 2*time.Minute {
				load = 50
			}
			obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec}
			r := scaling.Exactly("queue", load)
			r.At = start.Add(at)
			obs.Readings = []scaling.Reading{r}
			d := p.Decide(start.Add(at), obs)
			if d.Acts() {
				p.Applied(start.Add(at), spec, d.Replicas)
				spec = d.Replicas
			}
			if spec > 5 {
				return at
			}
			require.Less(t, at, time.Hour)
		}
	}
	require.Equal(t, acts(false), acts(true))
}
