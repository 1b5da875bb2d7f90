package policyfile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

func drawDuration(t *rapid.T, least time.Duration, label string) time.Duration {
	return time.Duration(rapid.Int64Range(int64(least), int64(48*time.Hour)).Draw(t, label))
}

func drawName(t *rapid.T) string { return rapid.StringN(1, 12, -1).Draw(t, "name") }

func drawNames(t *rapid.T, most int) []string {
	return rapid.SliceOfNDistinct(rapid.StringN(1, 8, -1), 1, most, rapid.ID[string]).Draw(t, "names")
}

func drawRealtime(t *rapid.T) realtime.Config {
	c := realtime.Config{
		Period:           drawDuration(t, time.Millisecond, "period"),
		CooldownScope:    rapid.SampledFrom([]realtime.CooldownScope{realtime.Any, realtime.PerDirection}).Draw(t, "scope"),
		HoldWhilePending: rapid.Bool().Draw(t, "hold"),
	}
	for _, rule := range []*realtime.Rule{&c.Up, &c.Down} {
		*rule = realtime.Rule{
			Step: rapid.Int32Min(1).Draw(t, "step"), Cooldown: drawDuration(t, 0, "cooldown"), Window: drawDuration(t, 0, "window"),
		}
	}
	for _, name := range drawNames(t, realtime.MaxMetrics) {
		low := rapid.Float64Range(0, 1e6).Draw(t, "low")
		c.Metrics = append(c.Metrics, realtime.Metric{
			Name: name, Low: low, High: low + rapid.Float64Range(0.001, 1e20).Draw(t, "high"),
			Role: rapid.SampledFrom([]realtime.Role{realtime.Both, realtime.UpOnly, realtime.DownVeto}).Draw(t, "role"),
		})
	}
	return c
}

func drawProportional(t *rapid.T) proportional.Config {
	c := rapid.SampledFrom([]func(scaling.Bounds, ...proportional.Metric) proportional.Config{proportional.KPA, proportional.HPA, proportional.LLM}).
		Draw(t, "start")(scaling.Bounds{})
	for _, name := range drawNames(t, proportional.MaxMetrics) {
		c.Metrics = append(c.Metrics, proportional.Metric{
			Name: name, Target: rapid.Float64Range(1e-9, 1e20).Draw(t, "target"),
			Measure: rapid.SampledFrom([]proportional.Measure{proportional.PerPod, proportional.Total, proportional.Average}).Draw(t, "measure"),
		})
	}
	c.Up.Tolerance = rapid.Float64Range(0, 10).Draw(t, "tolerance")
	c.Down.Tolerance = rapid.Float64Range(0, 1).Draw(t, "tolerance")
	c.Up.MaxStep = rapid.Int32Min(0).Draw(t, "step")
	c.Stabilization = scaling.Stabilization{Up: drawDuration(t, 0, "up"), Down: drawDuration(t, 0, "down")}
	c.RateLimits = drawLimits(t)
	c.ActivationScale = rapid.Int32Min(0).Draw(t, "activation")
	c.StartupCredit = rapid.Bool().Draw(t, "credit")
	return c
}

func drawLimits(t *rapid.T) (l scaling.RateLimits) {
	for _, side := range []*scaling.RateLimit{&l.Up, &l.Down} {
		side.Select = rapid.SampledFrom([]scaling.Select{scaling.SelectMax, scaling.SelectMin, scaling.SelectDisabled}).Draw(t, "select")
		for range rapid.IntRange(0, 3).Draw(t, "limits") {
			limit := scaling.Limit{Period: drawDuration(t, time.Second, "period")}
			if rapid.Bool().Draw(t, "percent") {
				limit.Percent = rapid.Int32Min(1).Draw(t, "limit")
			} else {
				limit.Replicas = rapid.Int32Min(1).Draw(t, "limit")
			}
			side.Limits = append(side.Limits, limit)
		}
	}
	return l
}

func drawCron(t *rapid.T) cronBody {
	schedules := rapid.SampledFrom([]string{"@daily", "0 8 * * 1-5", "*/5 7-19 * * MON", "30 6 1 * *"})
	zones := rapid.SampledFrom([]string{"", "UTC", "Etc/UTC"})
	c := cronscale.Config{Mode: rapid.SampledFrom([]cronscale.Mode{cronscale.HoldLast, cronscale.Match, cronscale.InWindow}).Draw(t, "mode")}
	for _, name := range drawNames(t, 4) {
		name = "x" + name // a name of spaces is none
		replicas := rapid.Int32Min(0).Draw(t, "replicas")
		if c.Mode == cronscale.InWindow {
			c.Windows = append(c.Windows, cronscale.Window{
				Name: name, Start: schedules.Draw(t, "start"), End: "0 20 * * *", Replicas: replicas, TimeZone: zones.Draw(t, "zone"),
			})
			continue
		}
		c.Policies = append(c.Policies, cronscale.Policy{Name: name, Schedule: schedules.Draw(t, "schedule"), TargetReplicas: replicas, TimeZone: zones.Draw(t, "zone")})
	}
	return cronBody{c}
}

// drawPolicy draws a valid policy, with policies in it down to a depth.
func drawPolicy(t *rapid.T, depth int) Policy {
	p := Policy{Name: drawName(t)}
	kinds := algorithms()
	if depth == 0 {
		kinds = kinds[:5]
	}
	p.Algorithm = rapid.SampledFrom(kinds).Draw(t, "algorithm")
	if names := profiles(p.Algorithm); len(names) > 0 {
		p.Profile = rapid.SampledFrom(names).Draw(t, "profile") // which no longer matters
	}
	switch p.Algorithm {
	case kindRealtime:
		p.body = realtimeBody{drawRealtime(t)}
	case kindProportional:
		p.body = proportionalBody{drawProportional(t)}
	case kindSaturation:
		c := saturation.SingleConfig{Config: saturation.Defaults(), KV: "kv" + drawName(t), Queue: "queue" + drawName(t)}
		c.KVCache = rapid.Float64Range(0.11, 1).Draw(t, "threshold")
		c.DownStabilization = drawDuration(t, 0, "stabilization")
		c.Step = rapid.SampledFrom([]saturation.StepRule{saturation.One, saturation.Deficit}).Draw(t, "step")
		p.body = saturationBody{c}
	case kindCron:
		p.body = drawCron(t)
	case kindStatic:
		p.body = staticBody{rapid.Int32Min(0).Draw(t, "replicas")}
	case kindFloor:
		p.body = floorBody{Base: drawPolicy(t, depth-1), Cron: drawCron(t)}
	case kindHighest:
		var b highestBody
		for _, name := range drawNames(t, 3) {
			m := drawPolicy(t, depth-1)
			m.Name = name
			b.Members = append(b.Members, m)
		}
		p.body = b
	}
	if rapid.Bool().Draw(t, "bounded") {
		least := rapid.Int32Range(0, 10).Draw(t, "min")
		p.Bounds = &scaling.Bounds{Min: least, Max: least + rapid.Int32Range(1, 100).Draw(t, "max")}
	}
	if rapid.Bool().Draw(t, "stabilized") {
		p.stabilized = &scaling.Stabilization{Up: drawDuration(t, 0, "up"), Down: drawDuration(t, 0, "down")}
	}
	if rapid.Bool().Draw(t, "limited") {
		limits := drawLimits(t)
		p.rateLimited = &limits
	}
	return p
}

// TestPropEffectiveReadsBack writes any valid policy and reads the same, which then decides within its bounds.
func TestPropEffectiveReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, 2)
		data, err := p.Effective()
		require.NoError(t, err)
		again, err := Parse(data, "effective.yaml")
		require.NoError(t, err, "%s", data)
		require.Equal(t, []Policy{p}, again)
		twice, err := again[0].Effective()
		require.NoError(t, err)
		require.Equal(t, string(data), string(twice))

		bounds := scaling.Bounds{Min: 1, Max: 9}
		live, err := p.Build(bounds)
		require.NoError(t, err)
		if p.Bounds != nil {
			bounds = *p.Bounds
		}
		spec := rapid.Int32Range(0, 200).Draw(t, "spec")
		d := live.Decide(time.Unix(1e9, 0), scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec})
		require.True(t, d.Verdict == scaling.Unknown || bounds.Contains(d.Replicas), d.Explain())
	})
}
