package policy_test

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// names draws what a name may be made of.
func names() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom(nil, unicode.PrintRanges...), 0, 8, -1)
}

func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) *T {
	if !rapid.Bool().Draw(t, label+" given") {
		return nil
	}
	v := g.Draw(t, label)
	return &v
}

func oneOf[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func seconds(most int32) *rapid.Generator[int32] { return rapid.Int32Range(0, most) }

// decimals are numbers from low to high, in thousandths.
func decimals(low, high int64) *rapid.Generator[policy.Decimal] {
	return rapid.Map(rapid.Int64Range(low*1000, high*1000), func(n int64) policy.Decimal {
		if n%1000 == 0 {
			return policy.NewDecimal(fmt.Sprint(n / 1000))
		}
		return policy.NewDecimal(fmt.Sprintf("%d.%03d", n/1000, n%1000))
	})
}

// drawSources draws sources whose names differ; of one prefix, so that two scalers have no name in common.
func drawSources(t *rapid.T, prefix string) []policy.MetricSource {
	var all []policy.MetricSource
	for i := range rapid.IntRange(1, 4).Draw(t, "metrics") {
		s := policy.MetricSource{Name: fmt.Sprintf("%s%d", prefix, i)}
		s.Protocol = oneOf(t, "protocol", "", policy.HTTP, policy.HTTPS)
		s.Path = oneOf(t, "path", "", "/metrics", "/a?b=c")
		s.Aggregation = oneOf[policy.Aggregation](t, "aggregation", "", "Sum", "Max")
		s.Labels = rapid.MapOfN(rapid.StringN(1, 5, -1), rapid.Map(rapid.String(), func(s string) policy.LabelValue { return policy.LabelValue(s) }), 0, 2).Draw(t, "labels")
		if port := maybe(t, rapid.Int32Range(1, 65535), "port"); port != nil {
			number := policy.NewPortNumber(*port)
			s.Port = &number
		}
		all = append(all, s)
	}
	return all
}

func drawRealtime(t *rapid.T, prefix string) *policy.RealtimeScaler {
	s := &policy.RealtimeScaler{
		Profile: oneOf(t, "profile", "", policy.ProfileKaito, policy.ProfileResponsive, "seed"), CooldownScope: oneOf(t, "scope", "", "Any", "PerDirection"),
		HoldWhilePending: rapid.Bool().Draw(t, "hold"),
	}
	for _, source := range drawSources(t, prefix+"r") {
		s.Metrics = append(s.Metrics, policy.ThresholdMetric{
			Source: source, Role: oneOf(t, "role", "", "Both", "UpOnly", "DownVeto"),
			Threshold: policy.MetricThreshold{High: decimals(11, 1000).Draw(t, "high"), Low: decimals(0, 10).Draw(t, "low")},
		})
	}
	rule := rapid.Custom(func(t *rapid.T) policy.ScalerRule {
		return policy.ScalerRule{
			ScaleStep: maybe(t, rapid.Int32Min(1), "step"), CooldownSeconds: maybe(t, seconds(604800), "cooldown"), StabilizationWindowSeconds: maybe(t, seconds(86400), "window"),
		}
	})
	s.ScaleUpRule, s.ScaleDownRule = maybe(t, rule, "up"), maybe(t, rule, "down")
	return s
}

func drawLimits(t *rapid.T) *policy.RateLimits {
	one := rapid.Custom(func(t *rapid.T) policy.RateLimit {
		l := policy.RateLimit{Select: oneOf(t, "select", "", "Max", "Min", "Disabled")}
		for range rapid.IntRange(0, 3).Draw(t, "limits") {
			limit := policy.Limit{PeriodSeconds: rapid.Int32Range(1, 1800).Draw(t, "period")}
			if rapid.Bool().Draw(t, "percent") {
				limit.Percent = rapid.Int32Min(1).Draw(t, "limit")
			} else {
				limit.Replicas = rapid.Int32Min(1).Draw(t, "limit")
			}
			l.Limits = append(l.Limits, limit)
		}
		return l
	})
	return &policy.RateLimits{Up: maybe(t, one, "up"), Down: maybe(t, one, "down")}
}

func drawStabilization(t *rapid.T) *policy.Stabilization {
	return &policy.Stabilization{UpSeconds: maybe(t, seconds(600), "up"), DownSeconds: maybe(t, seconds(600), "down")}
}

func drawProportional(t *rapid.T, prefix string) *policy.ProportionalScaler {
	s := &policy.ProportionalScaler{
		Profile:         oneOf(t, "profile", "", policy.ProfileLLM, policy.ProfileKthena, policy.ProfileKPA, policy.ProfileHPA),
		ActivationScale: maybe(t, rapid.Int32Min(0), "activation"), StartupCredit: maybe(t, rapid.Bool(), "credit"),
	}
	for _, source := range drawSources(t, prefix+"p") {
		s.Metrics = append(s.Metrics, policy.TargetMetric{Source: source, Target: decimals(1, 1000).Draw(t, "target"), Measure: oneOf(t, "measure", "", "PerPod", "Total", "Average")})
	}
	rule := rapid.Custom(func(t *rapid.T) policy.ProportionalRule {
		return policy.ProportionalRule{
			Tolerance: maybe(t, decimals(0, 1), "tolerance"), MaxRate: maybe(t, decimals(2, 10), "rate"), MaxStep: maybe(t, rapid.Int32Min(0), "step"),
		}
	})
	s.ScaleUp, s.ScaleDown = maybe(t, rule, "up"), maybe(t, rule, "down")
	if len(s.Metrics) == 1 {
		s.Forecast = drawForecast(t)
	}
	if rapid.Bool().Draw(t, "window") {
		window := rapid.Int32Range(100, 600).Draw(t, "stable")
		s.StableWindowSeconds = &window
		s.ResolutionSeconds = maybe(t, rapid.Int32Range(1, 60), "resolution")
		s.Panic = &policy.Panic{WindowSeconds: rapid.Int32Range(1, 100).Draw(t, "panic"), Threshold: decimals(2, 9).Draw(t, "threshold")}
	}
	if rapid.Bool().Draw(t, "stabilized") {
		s.Stabilization = drawStabilization(t)
	}
	if rapid.Bool().Draw(t, "limited") {
		s.RateLimits = drawLimits(t)
	}
	return s
}

func drawForecast(t *rapid.T) *policy.Forecast {
	return maybe(t, rapid.Custom(func(t *rapid.T) policy.Forecast {
		return policy.Forecast{Mode: oneOf[policy.ForecastMode](t, "mode", "", "Auto", "Disabled"), TimeZone: oneOf[policy.TimeZone](t, "zone", "", "UTC", "Europe/Berlin")}
	}), "forecast")
}

func drawCapacity(t *rapid.T) *policy.CapacityScaler {
	s := &policy.CapacityScaler{
		SLO: policy.CapacitySLO{TTFTSeconds: decimals(1, 3600).Draw(t, "ttft"), TPOTSeconds: decimals(1, 3600).Draw(t, "tpot")},
		Server: policy.CapacityServer{
			Name: oneOf(t, "server", append(policy.Servers(), "")...), BaseMicroseconds: maybe(t, decimals(1, 3_600_000_000), "base"),
			PrefillTokenMicroseconds: maybe(t, decimals(0, 5000), "prefill"), SequenceMicroseconds: maybe(t, decimals(0, 1_000_000), "sequence"),
			KVTokenMicroseconds: maybe(t, decimals(0, 1000), "kv"), MaxSeqs: maybe(t, rapid.Int32Range(1, 1<<20), "seqs"),
			TokenBudget: maybe(t, rapid.Int32Min(1), "budget"), KVTokens: maybe(t, rapid.Int32Range(1, 1_000_000_000), "tokens"),
		},
		ColdStartSeconds: maybe(t, rapid.Int32Range(1, 86400), "start"), Source: policy.CapacitySource{Engine: oneOf(t, "engine", "", "VLLM", "SGLang"), Path: oneOf(t, "path", "", "/a")},
		Forecast: drawForecast(t),
	}
	if g := &s.Server; g.Name == "" && (g.BaseMicroseconds == nil || g.PrefillTokenMicroseconds == nil || g.MaxSeqs == nil || g.TokenBudget == nil || g.KVTokens == nil) {
		g.Name = policy.Servers()[0]
	}
	if rapid.Bool().Draw(t, "goal given") {
		goal := policy.NewDecimal(oneOf(t, "goal", "0.5", "0.9", "0.999999999"))
		s.SLO.Goal = &goal
	}
	return s
}

func drawCron(t *rapid.T) *policy.CronScaler {
	schedules := rapid.SampledFrom([]policy.CronSchedule{"@daily", "0 8 * * 1-5", "*/5 7-19 * * MON", "30 6 1 * *"})
	zones := rapid.SampledFrom([]policy.TimeZone{"", "UTC", "Etc/UTC"})
	s := &policy.CronScaler{Mode: oneOf(t, "mode", "", "HoldLast", "Match", "InWindow")}
	for _, name := range rapid.SliceOfNDistinct(names().Filter(func(s string) bool { return s != "" }), 1, 4, rapid.ID[string]).Draw(t, "names") {
		name = "x" + name // a name of spaces is none
		replicas := rapid.Int32Range(0, 5).Draw(t, "replicas")
		if s.Mode == "InWindow" {
			s.Windows = append(s.Windows, policy.CronWindow{Name: name, Start: schedules.Draw(t, "start"), End: "0 20 * * *", TargetReplicas: replicas, TimeZone: zones.Draw(t, "zone")})
			continue
		}
		s.Policies = append(s.Policies, policy.CronPolicy{Name: name, Schedule: schedules.Draw(t, "schedule"), TargetReplicas: replicas, TimeZone: zones.Draw(t, "zone")})
	}
	return s
}

// drawComposite draws a valid scaler, with scalers in it down to a depth.
func drawComposite(t *rapid.T, prefix string, depth int) policy.Composite {
	var c policy.Composite
	given := rapid.Bool()
	if given.Draw(t, "realtime") {
		c.Realtime = drawRealtime(t, prefix)
	}
	if given.Draw(t, "proportional") {
		c.Proportional = drawProportional(t, prefix)
	}
	if given.Draw(t, "saturation") {
		c.Saturation = &policy.SaturationScaler{
			Profile: oneOf(t, "profile", "", policy.ProfileDefault), KVCacheThreshold: maybe(t, decimals(1, 1), "kv"), Step: oneOf(t, "step", "", "One", "Deficit"),
			KVCacheSource: &policy.MetricSource{Name: prefix + "kv"}, QueueSource: &policy.MetricSource{Name: prefix + "queue"},
			DownStabilizationSeconds: maybe(t, seconds(86400), "down"),
		}
	}
	if depth == 2 && given.Draw(t, "capacity") { // one, as two with different sources contradict each other
		c.Capacity = drawCapacity(t)
	}
	if given.Draw(t, "cron") {
		c.Cron = drawCron(t)
	}
	if given.Draw(t, "stabilized") {
		c.Stabilization = drawStabilization(t)
	}
	if given.Draw(t, "limited") {
		c.RateLimits = drawLimits(t)
	}
	if depth > 0 {
		for i := range rapid.IntRange(0, 2).Draw(t, "members") {
			m := policy.Member{Name: fmt.Sprintf("m%d%s", i, names().Draw(t, "name")), Composite: drawComposite(t, fmt.Sprintf("%sm%d", prefix, i), depth-1)}
			m.MaxReplicas = oneOf[int32](t, "max", 0, 7, 100)
			if m.MaxReplicas > 0 {
				m.MinReplicas = maybe(t, rapid.Int32Range(0, 7), "min")
			}
			c.Highest = append(c.Highest, m)
		}
	}
	if c.Realtime == nil && c.Proportional == nil && c.Saturation == nil && c.Capacity == nil && c.Cron == nil && len(c.Highest) == 0 {
		c.Static = &policy.StaticScaler{Replicas: rapid.Int32Min(0).Draw(t, "static")}
	}
	return c
}

// lower takes static counts down to the maximum that holds for each; 0 is none.
func lower(c *policy.Composite, most int32) {
	if c.Static != nil && most > 0 {
		c.Static.Replicas = min(c.Static.Replicas, most)
	}
	for i := range c.Highest {
		lower(&c.Highest[i].Composite, cmp.Or(c.Highest[i].MaxReplicas, most))
	}
}

// TestPropEffectiveReadsBack writes any valid policy and reads the same, which then decides alike, within its bounds.
func TestPropEffectiveReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Policy{Name: "n" + names().Draw(t, "name"), Spec: policy.Spec{Scaler: drawComposite(t, "m", 2)}}
		within := scaling.Bounds{Min: 1, Max: 9}
		if rapid.Bool().Draw(t, "bounded") {
			p.MaxReplicas = 5 + rapid.Int32Range(0, 100).Draw(t, "max")
			p.MinReplicas = maybe(t, rapid.Int32Range(0, 5), "min")
			within = scaling.Bounds{Min: 1, Max: p.MaxReplicas}
			if p.MinReplicas != nil {
				within.Min = *p.MinReplicas
			}
		}
		lower(&p.Scaler, p.MaxReplicas)
		again := one(t, readsBack(t, p))
		require.Equal(t, p.MaxReplicas, again.MaxReplicas)
		live, err := p.Build(within)
		require.NoError(t, err)
		other, err := again.Build(within)
		require.NoError(t, err)
		now, spec := time.Unix(1e9, 0), rapid.Int32Range(0, 200).Draw(t, "spec")
		for range 5 {
			obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec}
			for _, m := range p.Metrics() {
				if rapid.Bool().Draw(t, m.Name) {
					obs.Readings = append(obs.Readings, scaling.Exactly(m.Name, rapid.Float64Range(0, 100).Draw(t, "value")))
				}
			}
			d := live.Decide(now, obs)
			require.Equal(t, d.Explain(), func() string { d := other.Decide(now, obs); return d.Explain() }())
			require.True(t, d.Verdict == scaling.Unknown || within.Contains(d.Replicas), d.Explain())
			if d.Acts() {
				live.Applied(now, spec, d.Replicas)
				other.Applied(now, spec, d.Replicas)
				spec = d.Replicas
			}
			now = now.Add(time.Duration(rapid.Int64Range(1, 600).Draw(t, "seconds")) * time.Second)
		}
	})
}

// FuzzRead gives Read any bytes. What it accepts can be built, and its effective document is the same again; what it
// refuses, it places.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		policy.Example(), head + "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n  maxReplicas: 3\n  scaler: {static: {replicas: 2}}\n",
		"policies:\n- static: {replicas: 8}\n",
		"realtime: {metrics: [{source: {name: a}, threshold: {high: .inf, low: -0.0}}], scaleUpRule: {cooldownSeconds: 30}}\n",
		"&a\nhighest: [*a]\ncron: {mode: InWindow, windows: [{name: w, start: 0 8 * * *, end: 0 9 * * *, targetReplicas: 2}]}\n",
		"highest: [{proportional: {profile: kpa}}, {saturation: {}}]\nstabilization: {upSeconds: 60}\n",
		"policies: []\n---\n", "a: &a [*a]", "\xff\xfe", "{? {a: b} : c}", "name: \"\\u0085\\0\"\nstatic: {replicas: 0x10}\n",
		"maxReplicas: 0\nscaler: {static: {replicas: 1}}\n", "highest: [{maxReplicas: 0, static: {replicas: 1}}]\n",
		"name: 'yes'\nstatic: {replicas: 0b1}\n---\nrealtime: {profile: seed}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := policy.Read(data, "f.yaml")
		if err != nil {
			require.Nil(t, d)
			position := new(policy.PositionError)
			require.True(t, errors.As(err, &position))
			return
		}
		for _, p := range d.Policies {
			_, err := p.Build(bounds())
			require.NoError(t, err)
			readsBack(t, p)
		}
	})
}
