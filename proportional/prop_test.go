package proportional_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// An episode is a run without changes: times and readings, for properties that compare two runs.
type episode struct {
	config proportional.Config
	spec   int32
	ready  int32
	times  []time.Time
	looks  [][]scaling.Reading
}

func drawEpisode(t *rapid.T, change func(*proportional.Config)) episode {
	e := episode{config: drawConfig(t)}
	if change != nil {
		change(&e.config)
	}
	e.spec = rapid.Int32Range(e.config.Bounds.Min, e.config.Bounds.Max).Draw(t, "spec")
	e.ready = rapid.Int32Range(0, e.spec).Draw(t, "ready")
	now := start
	mood := rapid.SampledFrom([]float64{0, 0.5, 1, 2}).Draw(t, "mood")
	for range rapid.IntRange(1, 25).Draw(t, "ticks") {
		now = now.Add(drawSeconds(t, 1, 8, "step"))
		var readings []scaling.Reading
		for _, m := range e.config.Metrics {
			if r, ok := drawReading(t, m, mood, e.spec, now); ok {
				readings = append(readings, r)
			}
		}
		e.times = append(e.times, now)
		e.looks = append(e.looks, readings)
	}
	return e
}

func (e episode) observation(i int) scaling.Observation {
	return scaling.Observation{SpecReplicas: e.spec, ReadyReplicas: e.ready, Readings: e.looks[i]}
}

func (e episode) run(t require.TestingT) (d scaling.Decision) {
	s := build(t, e.config)
	var state proportional.State
	for i, now := range e.times {
		state, d = s.Decide(state, now, e.observation(i))
	}
	return d
}

// mapped returns the episode with every reading passed through f.
func (e episode) mapped(f func(tick int, r scaling.Reading) scaling.Reading) episode {
	looks := make([][]scaling.Reading, len(e.looks))
	for i := range e.looks {
		for _, r := range e.looks[i] {
			looks[i] = append(looks[i], f(i, r))
		}
	}
	e.looks = looks
	return e
}

// steady draws a KPA-like configuration of one metric, a fleet and its load at which nothing has happened yet.
func steady(t *rapid.T) (proportional.Config, proportional.Metric) {
	m := proportional.Metric{Name: "inflight", Target: rapid.Float64Range(0.1, 100).Draw(t, "target"), Measure: proportional.Total}
	c := proportional.KPA(scaling.Bounds{Min: 0, Max: 1000}, m)
	c.StableWindow = drawSeconds(t, 6, 90, "stable")
	c.Panic.Window = proportional.PanicWindow(c.StableWindow, 10)
	c.Panic.Threshold = rapid.SampledFrom([]float64{1.5, 2, 3}).Draw(t, "threshold")
	c.Down.MaxRate = 0
	return c, m
}

func TestPanicIffTheThresholdIsMet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, m := steady(t)
		s := build(t, c)
		ready := rapid.Int32Range(0, 50).Draw(t, "ready")
		replicas := rapid.Int32Range(0, 150).Draw(t, "needed")
		load := float64(replicas) * m.Target
		state, d := s.Decide(proportional.State{}, start, scaling.Observation{
			SpecReplicas: ready, ReadyReplicas: ready, Readings: []scaling.Reading{scaling.Exactly("inflight", load)},
		})
		meets := float64(replicas) >= c.Panic.Threshold*float64(max(1, ready))
		require.Equal(t, meets, state.Panic.Set, "%d of %d\n%s", replicas, ready, d.Explain())
		spec, now := d.Replicas, start
		for range rapid.IntRange(1, 40).Draw(t, "ticks") { // in panic the output never falls
			now = now.Add(2 * time.Second)
			load := rapid.Float64Range(0, 150).Draw(t, "load") * m.Target
			state, d = s.Decide(state, now, holding(spec, scaling.Exactly("inflight", load)))
			if state.Panic.Set {
				require.GreaterOrEqual(t, d.Replicas, spec, d.Explain())
			}
			spec = d.Replicas
		}
	})
}

func TestLeavingPanicTakesAFullStableWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, m := steady(t)
		s := build(t, c)
		state, d := s.Decide(proportional.State{}, start, holding(2, scaling.Exactly("inflight", 20*m.Target)))
		require.True(t, state.Panic.Set, d.Explain())
		spec := d.Replicas
		elapsed := time.Duration(0)
		for last := state.Panic; ; {
			elapsed += time.Second
			state, d = s.Decide(state, start.Add(elapsed), holding(spec, scaling.Exactly("inflight", 0)))
			if !state.Panic.Set {
				require.Greater(t, start.Add(elapsed).Sub(last.Time()), c.StableWindow)
				require.LessOrEqual(t, start.Add(elapsed).Sub(last.Time()), c.StableWindow+time.Second)
				require.Equal(t, scaling.Down, d.Verdict, "once it is over the fleet shrinks\n%s", d.Explain())
				return
			}
			require.Equal(t, spec, d.Replicas)
			last = state.Panic
		}
	})
}

func TestRateLimitsHoldBeforeBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := pointwise(inflight)
		c.Bounds = scaling.Bounds{Min: 2, Max: 60}
		up, down := rapid.Int32Range(1, 5).Draw(t, "up"), rapid.Int32Range(1, 5).Draw(t, "down")
		period := drawSeconds(t, 5, 60, "period")
		c.RateLimits.Up.Limits = []scaling.Limit{{Replicas: up, Period: period}}
		c.RateLimits.Down.Limits = []scaling.Limit{{Replicas: down, Period: period}}
		s := build(t, c)
		var state proportional.State
		type point struct {
			at time.Time
			n  int32
		}
		spec, now := int32(10), start
		history := []point{{now.Add(-time.Hour), spec}}
		for range rapid.IntRange(1, 40).Draw(t, "ticks") {
			now = now.Add(drawSeconds(t, 1, 20, "step"))
			load := float64(rapid.IntRange(0, 1000).Draw(t, "load"))
			var d scaling.Decision
			state, d = s.Decide(state, now, holding(spec, scaling.Exactly("inflight", load)))
			begin := spec // the count when the period began
			for _, p := range slices.Backward(history) {
				begin = p.n
				if now.Sub(p.at) >= period {
					break
				}
			}
			if d.Acts() {
				if d.Verdict == scaling.Up {
					require.LessOrEqual(t, d.Replicas, begin+up, d.Explain())
				} else {
					require.GreaterOrEqual(t, d.Replicas, begin-down, d.Explain())
				}
				state = s.Applied(state, now, spec, d.Replicas)
				spec = d.Replicas
				history = append(history, point{now, spec})
			}
		}
		// A count outside the bounds is taken back whatever the limits say.
		_, d := s.Decide(state, now.Add(time.Second), holding(70, scaling.Exactly("inflight", 0)))
		require.EqualValues(t, 60, d.Replicas)
	})
}

// loadSeen is the average that a decision says it looked at.
func loadSeen(t require.TestingT, s proportional.Scaler, state proportional.State, now time.Time) float64 {
	_, d := s.Decide(copied(t, state), now, holding(0))
	require.NotEqual(t, scaling.Unknown, d.Verdict)
	return d.Steps()[0].Numbers[0]
}

func TestAverageOfAConstantIsTheConstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := pointwise(proportional.Metric{Name: "load", Target: 1e-3, Measure: proportional.Total})
		c.StableWindow, c.Resolution = drawSeconds(t, 1, 60, "window"), time.Second
		s := build(t, c)
		constant := rapid.Bool().Draw(t, "constant")
		v := rapid.Float64Range(0, 1e6).Draw(t, "value")
		var state proportional.State
		values := map[int64]float64{}
		now := start
		for range rapid.IntRange(1, 100).Draw(t, "samples") {
			now = now.Add(drawSeconds(t, 1, 5, "step"))
			if !constant {
				v = rapid.Float64Range(0, 1e6).Draw(t, "value")
			}
			values[now.Unix()] = v
			state = s.Record(state, now, holding(0, scaling.Exactly("load", v)))
			got := loadSeen(t, s, state, now)
			if constant {
				require.Equal(t, v, got)
			}
			lowest, highest := math.Inf(1), math.Inf(-1)
			for at, v := range values {
				if at > now.Add(-c.StableWindow).Unix() {
					lowest, highest = min(lowest, v), max(highest, v)
				}
			}
			require.True(t, lowest <= got && got <= highest, "%v is not in [%v, %v]", got, lowest, highest)
		}
	})
}

func TestScaleDownDelayIsTheMaximumOverTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := pointwise(inflight)
		c.Stabilization.Down = drawSeconds(t, 1, 120, "delay")
		s := build(t, c)
		var state proportional.State
		type point struct {
			at time.Time
			n  int32
		}
		now, spec := start, int32(0)
		var history []point
		for range rapid.IntRange(1, 60).Draw(t, "ticks") {
			now = now.Add(drawSeconds(t, 1, 40, "step"))
			need := rapid.Int32Range(0, 30).Draw(t, "needed")
			history = append(history, point{now, need})
			var d scaling.Decision
			state, d = s.Decide(state, now, holding(spec, scaling.Exactly("inflight", float64(need)*inflight.Target)))
			highest := int32(0)
			for _, p := range history {
				if now.Sub(p.at) < c.Stabilization.Down {
					highest = max(highest, p.n)
				}
			}
			require.Equal(t, highest, d.Replicas, d.Explain())
			spec = d.Replicas
		}
	})
}

func TestRestartCausesNoDip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := scaling.Bounds{Min: 0, Max: 60}
		c := rapid.SampledFrom([]proportional.Config{proportional.KPA(bounds, inflight), proportional.LLM(bounds, inflight), proportional.Kthena(bounds, inflight)}).Draw(t, "profile")
		if rapid.Bool().Draw(t, "no panic") {
			c.Panic = proportional.Panic{}
		}
		s := build(t, c)
		spec := rapid.Int32Range(2, 60).Draw(t, "spec")
		ready := rapid.Int32Range(0, spec).Draw(t, "ready")
		var state proportional.State // fresh: the old one is lost
		first := time.Duration(0)
		if rapid.Bool().Draw(t, "no metrics yet") {
			first = drawSeconds(t, 1, 300, "silence")
		}
		for elapsed := time.Duration(0); elapsed < first+c.StableWindow; elapsed += 2 * time.Second {
			var readings []scaling.Reading
			if elapsed >= first {
				readings = append(readings, scaling.Exactly("inflight", rapid.Float64Range(0, 30).Draw(t, "load")))
			}
			var d scaling.Decision
			state, d = s.Decide(state, start.Add(elapsed), scaling.Observation{SpecReplicas: spec, ReadyReplicas: ready, Readings: readings})
			require.GreaterOrEqual(t, d.Replicas, spec, "%s after the restart\n%s", elapsed, d.Explain())
			spec = max(spec, d.Replicas)
		}
	})
}

func TestUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil).mapped(func(_ int, r scaling.Reading) scaling.Reading {
			if r.Lower > 1e100 || r.Upper > 1e100 && !math.IsInf(r.Upper, 1) {
				r.Lower, r.Upper = 1, 1 // huge loads saturate in one unit and not in another
			}
			return r
		})
		before := e.run(t)
		unit := rapid.Float64Range(1e-6, 1e6).Draw(t, "unit")
		e.config.Metrics = slices.Clone(e.config.Metrics)
		for i := range e.config.Metrics {
			e.config.Metrics[i].Target *= unit
		}
		after := e.mapped(func(_ int, r scaling.Reading) scaling.Reading {
			r.Lower *= unit
			r.Upper *= unit
			return r
		}).run(t)
		require.Equal(t, before.Verdict, after.Verdict, "before %s\nafter %s", before.Explain(), after.Explain())
		require.Equal(t, before.Replicas, after.Replicas)
	})
}

func TestPanicNeverAsksForLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, func(c *proportional.Config) {
			c.StableWindow, c.Resolution = 30*time.Second, time.Second
			c.Panic = proportional.Panic{Window: 6 * time.Second, Threshold: 1.5}
		})
		with := e.run(t)
		e.config.Panic = proportional.Panic{}
		without := e.run(t)
		require.GreaterOrEqual(t, with.Replicas, without.Replicas, "with %s\nwithout %s", with.Explain(), without.Explain())
	})
}

// TestUpNeedsWhatIsKnownDownWhatIsPossible: an up holds for every completion of the missing values, a down for every
// completion up to the fill; an unknown metric only suppresses downs.
func TestUpNeedsWhatIsKnownDownWhatIsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, func(c *proportional.Config) {
			*c = proportional.Config{Bounds: c.Bounds, Metrics: c.Metrics, Up: c.Up, Down: c.Down}
			c.Up.MaxRate, c.Down.MaxRate = 0, 0
			c.Up.MaxStep, c.Down.MaxStep = 0, 0
		})
		last := len(e.looks) - 1
		e.times, e.looks = e.times[last:], e.looks[last:]
		before := e.run(t)
		completed := e.mapped(func(_ int, r scaling.Reading) scaling.Reading {
			if r.Known() && !math.IsInf(r.Upper, 1) {
				r.Lower += rapid.Float64Range(0, 1).Draw(t, "share") * (r.Upper - r.Lower)
				r.Lower = min(r.Lower, r.Upper)
				r.Upper = r.Lower
			}
			return r
		}).run(t)
		switch before.Verdict {
		case scaling.Up:
			require.GreaterOrEqual(t, completed.Replicas, before.Replicas, "before %s\nafter %s", before.Explain(), completed.Explain())
		case scaling.Down:
			require.LessOrEqual(t, completed.Replicas, before.Replicas, "before %s\nafter %s", before.Explain(), completed.Explain())
		case scaling.Hold, scaling.Unknown:
		}
		e.config.Metrics = append(slices.Clone(e.config.Metrics), proportional.Metric{Name: "absent", Target: 1})
		after := e.run(t)
		require.Equal(t, max(e.spec, before.Replicas), after.Replicas, "before %s\nafter %s", before.Explain(), after.Explain())
	})
}

// TestOrderOfConfigurationChangesNothing has that for the configuration; TestProperties has it for readings.
func TestOrderOfConfigurationChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		e.config.Metrics = rapid.Permutation(e.config.Metrics).Draw(t, "metrics")
		for _, l := range []*scaling.RateLimit{&e.config.RateLimits.Up, &e.config.RateLimits.Down} {
			if len(l.Limits) > 0 {
				l.Limits = rapid.Permutation(l.Limits).Draw(t, "limits")
			}
		}
		require.Equal(t, before, e.run(t))
	})
}
