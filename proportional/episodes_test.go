package proportional_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// drawSeconds draws whole seconds, so that runs meet boundaries exactly.
func drawSeconds(t *rapid.T, lo, hi int, label string) time.Duration {
	return time.Duration(rapid.IntRange(lo, hi).Draw(t, label)) * time.Second
}

func drawRule(t *rapid.T, label string) proportional.Rule {
	return proportional.Rule{
		Tolerance: rapid.SampledFrom([]float64{0, 0, 0.1, 0.5}).Draw(t, label+" tolerance"),
		MaxRate:   rapid.SampledFrom([]float64{0, 0, 1.5, 2, 10}).Draw(t, label+" rate"),
		MaxStep:   rapid.SampledFrom([]int32{0, 0, 0, 1, 3}).Draw(t, label+" step"),
	}
}

func drawLimit(t *rapid.T, label string) (l scaling.RateLimit) {
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, label+" limits") {
		limit := scaling.Limit{Period: drawSeconds(t, 1, 60, "period")}
		if rapid.Bool().Draw(t, "percent") {
			limit.Percent = rapid.Int32Range(1, 150).Draw(t, "value")
		} else {
			limit.Replicas = rapid.Int32Range(1, 5).Draw(t, "value")
		}
		l.Limits = append(l.Limits, limit)
		l.Select = rapid.SampledFrom([]scaling.Select{scaling.SelectMax, scaling.SelectMax, scaling.SelectMin, scaling.SelectDisabled}).Draw(t, "select")
	}
	return l
}

func drawConfig(t *rapid.T) proportional.Config {
	lowest := rapid.Int32Range(0, 3).Draw(t, "min")
	c := proportional.Config{
		Bounds: scaling.Bounds{Min: lowest, Max: max(1, lowest) + rapid.Int32Range(0, 30).Draw(t, "span")},
		Up:     drawRule(t, "up"),
		Down:   drawRule(t, "down"),
		Stabilization: scaling.Stabilization{
			Up:   max(0, drawSeconds(t, -20, 30, "up window")),
			Down: max(0, drawSeconds(t, -30, 60, "down window")),
		},
		RateLimits:      scaling.RateLimits{Up: drawLimit(t, "up"), Down: drawLimit(t, "down")},
		ActivationScale: rapid.SampledFrom([]int32{0, 0, 2, 5}).Draw(t, "activation"),
		StartupCredit:   rapid.Bool().Draw(t, "credit"),
	}
	if rapid.IntRange(0, 3).Draw(t, "windows") > 0 {
		c.StableWindow = drawSeconds(t, 1, 40, "stable")
		c.Resolution = rapid.SampledFrom([]time.Duration{time.Second, time.Second, 3 * time.Second, 500 * time.Millisecond, time.Minute}).Draw(t, "resolution")
		if rapid.Bool().Draw(t, "panics") {
			c.Panic = proportional.Panic{
				Window:    drawSeconds(t, 1, int(c.StableWindow/time.Second), "panic window"),
				Threshold: rapid.SampledFrom([]float64{1.1, 1.5, 2, 3}).Draw(t, "threshold"),
			}
		}
	}
	for _, name := range []string{"queue", "cache", "latency"}[:rapid.IntRange(1, 3).Draw(t, "metrics")] {
		c.Metrics = append(c.Metrics, proportional.Metric{
			Name: name, Target: rapid.SampledFrom([]float64{1, 10, 0.7, 3}).Draw(t, "target"),
			Measure: rapid.SampledFrom([]proportional.Measure{proportional.PerPod, proportional.Total, proportional.Average}).Draw(t, "measure"),
		})
	}
	return c
}

// drawReading draws readings around what the fleet can carry, missing ones and nonsense.
func drawReading(t *rapid.T, m proportional.Metric, mood float64, spec int32, now time.Time) (scaling.Reading, bool) {
	r := scaling.Reading{Metric: m.Name, Values: rapid.Int32Range(1, max(1, spec)).Draw(t, "values")}
	share := mood + float64(rapid.IntRange(-2, 2).Draw(t, "quarters"))/4
	r.Lower = max(0, share) * m.Target
	if m.Measure == proportional.Total {
		r.Lower *= float64(spec)
	}
	r.Upper = r.Lower
	switch rapid.IntRange(0, 15).Draw(t, "kind") {
	case 0:
		return r, false
	case 1:
		r.Lower = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e200}).Draw(t, "odd lower")
		r.Upper = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -1, 1e200, math.MaxFloat64}).Draw(t, "odd upper")
	case 2:
		r.Upper = math.Inf(1)
	case 3, 4:
		r.Failed = rapid.Int32Range(0, 2).Draw(t, "failed")
		r.NotReady = rapid.Int32Range(0, 2).Draw(t, "booting")
		r.Upper += m.Target * float64(rapid.IntRange(0, 4).Draw(t, "fill")) / 4
	}
	if rapid.IntRange(0, 5).Draw(t, "sampled earlier") == 0 {
		r.At = now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "age")) * time.Second)
	}
	return r, true
}

// TestProperties has the properties that package scalingtest checks of any policy, among them that more load never asks
// for less, and that the naive twin of this package answers the same.
func TestProperties(t *testing.T) {
	scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
		c := drawConfig(t)
		period := time.Duration(rapid.SampledFrom([]int{1000, 2000, 5000, 15000, 400}).Draw(t, "period")) * time.Millisecond
		opts := scalingtest.Options{
			Bounds: c.Bounds, Metrics: known(c), Period: period, Memory: 4 * time.Minute, MaxState: 50 + maxSize(c),
			Shift:    time.Minute, // so that buckets stay whole
			Monotone: true, Windows: true,
			// Of ticks that share a bucket only their mean counts: after two without a reading, the mean of all may be late by more.
			Lapses: 2*c.StableWindow >= 3*period && c.Resolution <= period,
			Twin:   func() scalingtest.Naive { return newNaive(c) },
		}
		return func() scaling.Policy { return scaling.New(build(t, c)) }, opts
	})
}

// TestPropertiesOfProfiles has them for the profiles that users start from. Convergence: constant load leads to
// ceil(load/target) and stays; within the tolerance the count that was there may stay.
func TestPropertiesOfProfiles(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 60}
	for name, c := range map[string]proportional.Config{
		"KPA": proportional.KPA(bounds, inflight), "HPA": proportional.HPA(bounds, inflight), "LLM": proportional.LLM(bounds, inflight), "Kthena": proportional.Kthena(bounds, inflight),
	} {
		t.Run(name, func(t *testing.T) {
			scalingtest.Run(t, func() scaling.Policy { return scaling.New(build(t, c)) }, scalingtest.Options{
				Bounds: bounds, Metrics: known(c), Memory: 10 * time.Minute, Shift: time.Minute,
				Monotone: true, Windows: true, NoFlap: true, Refused: true, Lapses: true,
				Convergence: &scalingtest.Convergence{Within: 300, Want: func(loads []scalingtest.Load) (least, most int32) {
					needed := loads[0].Sum / inflight.Target
					want := scaling.Ceil(needed)
					least = scaling.Ceil(needed/(1+c.Up.Tolerance) - 1e-9)
					most = int32(math.Floor(needed/(1-c.Down.Tolerance) + 1e-9))
					return bounds.Clamp(min(want, least)), bounds.Clamp(max(want, most))
				}},
			})
		})
	}
}

// known returns what readings matter to a configuration.
func known(c proportional.Config) (metrics []scalingtest.Metric) {
	for _, m := range c.Metrics {
		k := scalingtest.Metric{Name: m.Name, Low: m.Target / 2, High: 1.5 * m.Target}
		if m.Measure == proportional.Total { // of a fleet of 2 to 12
			k = scalingtest.Metric{Name: m.Name, Low: 2 * m.Target, High: 12 * m.Target, Whole: true}
		}
		metrics = append(metrics, k)
	}
	return metrics
}

// TestEpisodes drives a Scaler and its naive twin through the same long random life: gaps, steps back of the clock,
// missing and senseless readings, observations that are only recorded, refused writes, counts changed by others,
// restarts. In panic the count never falls, and leaving it takes a whole stable window.
func TestEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		s := build(t, c)
		twin := newNaive(c)
		var state proportional.State
		now := start
		spec := c.Bounds.Clamp(5)
		period := time.Duration(rapid.SampledFrom([]int{1000, 2000, 5000, 15000, 400}).Draw(t, "period")) * time.Millisecond
		mood := 0.75
		for range rapid.IntRange(1, 50).Draw(t, "ticks") {
			if rapid.IntRange(0, 6).Draw(t, "mood swing") == 0 {
				mood = rapid.SampledFrom([]float64{0, 0.25, 0.75, 1, 2, 4}).Draw(t, "mood")
			}
			step := period
			switch rapid.IntRange(0, 19).Draw(t, "clock") {
			case 0:
				step = -drawSeconds(t, 1, 100, "back")
			case 1:
				step = drawSeconds(t, 0, 70, "gap")
			}
			now = now.Add(step)
			wentBack := state.Seen.Set && now.UnixMilli() < state.Seen.Milli
			switch rapid.IntRange(0, 29).Draw(t, "fate") {
			case 0: // someone else scales the target
				spec = rapid.Int32Range(0, 40).Draw(t, "spec")
			case 1: // a restart from the stored state
				state = copied(t, state)
			}
			obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: max(0, spec-rapid.SampledFrom([]int32{0, 0, 0, 1, 2, 5, -1, -9}).Draw(t, "not ready"))}
			for _, m := range c.Metrics {
				if r, ok := drawReading(t, m, mood, spec, now); ok {
					obs.Readings = append(obs.Readings, r)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "only record") == 0 {
				state = s.Record(state, now, obs)
				twin.record(now, obs)
				continue
			}

			before := state
			var d scaling.Decision
			state, d = s.Decide(state, now, obs)
			verdict, replicas := twin.Decide(now, obs)
			require.Equal(t, verdict, d.Verdict, "twin wants %d\n%s", replicas, d.Explain())
			require.Equal(t, replicas, d.Replicas, "twin\n%s", d.Explain())

			if c.Bounds.Contains(spec) {
				if len(obs.Readings) == 0 && c.StableWindow == 0 && !wentBack {
					require.Equal(t, scaling.Unknown, d.Verdict, "NoData")
				}
				if state.Panic.Set {
					require.GreaterOrEqual(t, d.Replicas, spec, "in panic the output never falls")
				}
				if before.Panic.Set && !state.Panic.Set {
					window := max(c.StableWindow, c.Resolution)
					require.Greater(t, now.Sub(before.Panic.Time()), window, "leaving panic takes a full stable window")
				}
				if c.Up.MaxStep > 0 {
					require.LessOrEqual(t, d.Replicas-spec, c.Up.MaxStep)
				}
				if c.Down.MaxStep > 0 {
					require.LessOrEqual(t, spec-d.Replicas, c.Down.MaxStep)
				}
			} else {
				require.Equal(t, c.Bounds.Clamp(spec), d.Replicas)
			}
			if !d.Acts() || rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				continue // nothing is reported, and the twin is not told
			}
			state = s.Applied(state, now, spec, d.Replicas)
			twin.Applied(now, spec, d.Replicas)
			spec = d.Replicas
		}
	})
}

// maxSize bounds the JSON of a state, which is not to grow with the run (BoundedState). A bucket takes less than 80 bytes, a
// recommendation and a change less than 50.
func maxSize(c proportional.Config) int {
	buckets := 0
	if c.StableWindow > 0 {
		buckets = int((c.StableWindow+c.Resolution-1)/c.Resolution) + 1
	}
	replicas := int(c.Bounds.Max) + 45 // what loads can ask for, and others set
	seconds := 2 * 60
	return 400 + len(c.Metrics)*(150+80*buckets) + 50*(2*replicas+2*seconds)
}
