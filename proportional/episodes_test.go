package proportional_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/explain"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
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

// TestEpisodes drives a Scaler and its naive twin through the same long random life: gaps, steps back of the clock,
// missing and senseless readings, refused writes, counts changed by others, restarts. On the way it checks
//
//	P1 P2 P3 P10 C1 C2 C5 C6 C7 C8 C9 C10
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
			case 1: // C5: a restart from the stored state
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

			input := slices.Clone(obs.Readings)
			before := state
			_, again := s.Decide(copied(t, state), now, obs) // C5 C6: a copy that went through JSON answers the same
			next, d := s.Decide(state, now, obs)
			require.Equal(t, again, d)
			for i := range input { // C6: the input is left alone; NaN is not equal to itself
				require.Equal(t, math.Float64bits(input[i].Lower), math.Float64bits(obs.Readings[i].Lower))
			}
			state = next

			require.NoError(t, explain.Check(&d), "C10\n%s", d.Explain())
			verdict, replicas := twin.decide(now, obs)
			require.Equal(t, verdict, d.Verdict, "twin wants %d\n%s", replicas, d.Explain())
			require.Equal(t, replicas, d.Replicas, "twin\n%s", d.Explain())

			if c.Bounds.Contains(spec) {
				if wentBack {
					require.False(t, d.Acts(), "C8: a clock that steps back causes no action")
				}
				if len(obs.Readings) == 0 && c.StableWindow == 0 && !wentBack {
					require.Equal(t, scaling.Unknown, d.Verdict, "C9")
				}
				if state.Panic.Set {
					require.GreaterOrEqual(t, d.Replicas, spec, "P1: in panic the output never falls")
				}
				if before.Panic.Set && !state.Panic.Set {
					window := max(c.StableWindow, c.Resolution)
					require.Greater(t, now.Sub(before.Panic.Time()), window, "P2: leaving panic takes a full stable window")
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
			if !d.Acts() {
				continue
			}
			require.True(t, c.Bounds.Contains(d.Replicas), "C1")
			if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				continue // nothing is reported, and the twin is not told
			}
			state = s.Applied(state, now, spec, d.Replicas)
			twin.applied(now, spec, d.Replicas)
			spec = d.Replicas
		}
		checkSize(t, c, state)
	})
}

// checkSize checks C7: the size of the state does not grow with the run. A bucket takes less than 80 bytes of JSON, a
// recommendation and a change less than 50.
func checkSize(t require.TestingT, c proportional.Config, state proportional.State) {
	data, err := json.Marshal(state)
	require.NoError(t, err)
	buckets := 0
	if c.StableWindow > 0 {
		buckets = int((c.StableWindow+c.Resolution-1)/c.Resolution) + 1
	}
	replicas := int(c.Bounds.Max) + 45 // what loads can ask for, and others set
	seconds := 2 * 60
	require.LessOrEqual(t, len(data), 400+len(c.Metrics)*(150+80*buckets)+50*(2*replicas+2*seconds), string(data))
}
