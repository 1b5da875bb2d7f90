package realtime_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/explain"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

var start = time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)

// drawSeconds draws whole seconds, so that runs meet boundaries exactly.
func drawSeconds(t *rapid.T, lo, hi int, label string) time.Duration {
	return time.Duration(rapid.IntRange(lo, hi).Draw(t, label)) * time.Second
}

func drawConfig(t *rapid.T) realtime.Config {
	lowest := rapid.Int32Range(0, 4).Draw(t, "min")
	c := realtime.Config{
		Bounds:           scaling.Bounds{Min: lowest, Max: max(1, lowest) + rapid.Int32Range(0, 8).Draw(t, "span")},
		Period:           drawSeconds(t, 1, 20, "period"),
		Up:               realtime.Rule{Step: rapid.Int32Range(1, 4).Draw(t, "up step"), Cooldown: drawSeconds(t, 0, 90, "up cooldown"), Window: drawSeconds(t, 0, 60, "up window")},
		Down:             realtime.Rule{Step: rapid.Int32Range(1, 4).Draw(t, "down step"), Cooldown: drawSeconds(t, 0, 90, "down cooldown"), Window: drawSeconds(t, 0, 60, "down window")},
		CooldownScope:    rapid.SampledFrom([]realtime.CooldownScope{realtime.Any, realtime.PerDirection}).Draw(t, "scope"),
		HoldWhilePending: rapid.Bool().Draw(t, "pending"),
	}
	for _, name := range []string{"queue", "cache", "latency"}[:rapid.IntRange(1, 3).Draw(t, "metrics")] {
		low := float64(rapid.IntRange(0, 5).Draw(t, "low"))
		c.Metrics = append(c.Metrics, realtime.Metric{
			Name: name, Low: low, High: low + float64(rapid.IntRange(1, 5).Draw(t, "gap")),
			Role: rapid.SampledFrom([]realtime.Role{realtime.Both, realtime.Both, realtime.UpOnly, realtime.DownVeto}).Draw(t, "role"),
		})
	}
	return c
}

// drawReading draws readings around the thresholds, missing ones and nonsense. A streak of one kind is likely, so that
// windows fill.
func drawReading(t *rapid.T, m realtime.Metric, mood int, now time.Time, c realtime.Config) (scaling.Reading, bool) {
	kind := mood
	if rapid.IntRange(0, 9).Draw(t, "whim") == 0 {
		kind = rapid.IntRange(0, 5).Draw(t, "kind")
	}
	r := scaling.Exactly(m.Name, 0)
	switch kind {
	case 0:
		r.Lower = m.High + float64(rapid.IntRange(0, 2).Draw(t, "above"))
		r.Upper = r.Lower
	case 1:
		r.Upper = max(0, m.Low-float64(rapid.IntRange(0, 2).Draw(t, "below")))
		r.Lower = r.Upper
	case 2:
		r.Lower = m.Low
		r.Upper = m.High
	case 3:
		r.Lower = float64(rapid.IntRange(0, 12).Draw(t, "lower"))
		r.Upper = r.Lower + float64(rapid.IntRange(0, 12).Draw(t, "width"))
	case 4:
		r.Lower = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e290}).Draw(t, "odd lower")
		r.Upper = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -1, 1e290, math.MaxFloat64}).Draw(t, "odd upper")
	case 5:
		return r, false
	}
	if rapid.IntRange(0, 5).Draw(t, "sampled earlier") == 0 {
		r.At = now.Add(-time.Duration(rapid.IntRange(0, int(3*c.Period/time.Second)).Draw(t, "age")) * time.Second)
	}
	return r, true
}

// TestEpisodes drives a Scaler and its naive twin through the same long random life: gaps, steps back of the clock,
// missing and senseless readings, refused writes, counts changed by others, restarts. On the way it checks
//
//	R1 R3 R8 R9 R10 R13 C1 C2 C5 C6 C7 C8 C10
func TestEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		s, err := realtime.New(c)
		require.NoError(t, err)
		twin := newNaive(c)
		var state realtime.State
		now := start
		spec := c.Bounds.Clamp(3)
		var lastUp, lastDown time.Time
		mood := 2
		for range rapid.IntRange(1, 60).Draw(t, "ticks") {
			if rapid.IntRange(0, 6).Draw(t, "mood swing") == 0 {
				mood = rapid.IntRange(0, 2).Draw(t, "mood")
			}
			step := time.Duration(0)
			back := false
			switch rapid.IntRange(0, 19).Draw(t, "clock") {
			case 0:
				step = -drawSeconds(t, 1, 100, "back")
				back = state.Seen.Set
				lastUp, lastDown = lastUp.Add(step), lastDown.Add(step)
			case 1:
				step = drawSeconds(t, 0, 70, "gap")
			default:
				step = c.Period
			}
			now = now.Add(step)
			switch rapid.IntRange(0, 29).Draw(t, "fate") {
			case 0: // someone else scales the target
				spec = rapid.Int32Range(0, 14).Draw(t, "spec")
			case 1: // C5: a restart from the stored state
				data, err := json.Marshal(state)
				require.NoError(t, err)
				var restored realtime.State
				require.NoError(t, json.Unmarshal(data, &restored))
				state = restored
			}
			obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec - rapid.Int32Range(0, 1).Draw(t, "not ready")}
			for _, m := range c.Metrics {
				if r, ok := drawReading(t, m, mood, now, c); ok {
					obs.Readings = append(obs.Readings, r)
				}
			}

			input := slices.Clone(obs.Readings)
			again, same := s.Decide(state, now, obs) // C6: the same input twice gives the same output
			next, d := s.Decide(state, now, obs)
			require.Equal(t, again, next)
			require.Equal(t, same, d)
			for i := range input { // C6: and is left alone; NaN is not equal to itself
				require.Equal(t, math.Float64bits(input[i].Lower), math.Float64bits(obs.Readings[i].Lower))
			}
			state = next

			require.NoError(t, explain.Check(&d), "C10\n%s", d.Explain())
			verdict, replicas := twin.decide(now, obs)
			require.Equal(t, verdict, d.Verdict, "twin\n%s", d.Explain())
			require.Equal(t, replicas, d.Replicas, "twin\n%s", d.Explain())

			if !d.Acts() {
				continue
			}
			require.True(t, c.Bounds.Contains(d.Replicas), "C1")
			if !c.Bounds.Contains(spec) {
				require.Equal(t, c.Bounds.Clamp(spec), d.Replicas, "R10")
			} else {
				require.False(t, back, "C8: a clock that steps back causes no action")
				require.LessOrEqual(t, d.Replicas-spec, c.Up.Step, "R1")
				require.LessOrEqual(t, spec-d.Replicas, c.Down.Step, "R1")
				last := lastUp
				if d.Verdict == scaling.Down {
					last = lastDown
				}
				if c.CooldownScope == realtime.Any && lastUp.After(last) {
					last = lastUp
				}
				if c.CooldownScope == realtime.Any && lastDown.After(last) {
					last = lastDown
				}
				rule := c.Up
				if d.Verdict == scaling.Down {
					rule = c.Down
				}
				if !last.IsZero() && last.After(start.AddDate(-1, 0, 0)) {
					require.GreaterOrEqual(t, now.Sub(last), rule.Cooldown, "R3")
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				continue // R13: nothing is reported, and the twin forgets it too
			}
			if c.Bounds.Contains(spec) {
				if d.Verdict == scaling.Up {
					lastUp = now
				} else {
					lastDown = now
				}
			}
			state = s.Applied(state, now, spec, d.Replicas)
			twin.applied(now, spec, d.Replicas)
			spec = d.Replicas
			obs.SpecReplicas, obs.ReadyReplicas = spec, spec
			state, d = s.Decide(state, now, obs)
			require.False(t, d.Acts(), "R9: at one instant a second decision holds\n%s", d.Explain())
			twin.decide(now, obs)
		}
		// C7: the size of the state does not grow with the run.
		data, err := json.Marshal(state)
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), 100+90*len(c.Metrics), string(data))
	})
}

// An episode is a run without changes: times and readings, for properties that compare two runs.
type episode struct {
	config realtime.Config
	spec   int32
	times  []time.Time
	looks  [][]scaling.Reading
}

func drawEpisode(t *rapid.T, change func(*realtime.Config)) episode {
	e := episode{config: drawConfig(t)}
	if change != nil {
		change(&e.config)
	}
	e.spec = rapid.Int32Range(e.config.Bounds.Min, e.config.Bounds.Max).Draw(t, "spec")
	now := start
	mood := rapid.IntRange(0, 2).Draw(t, "mood")
	for range rapid.IntRange(1, 25).Draw(t, "ticks") {
		now = now.Add(e.config.Period)
		var readings []scaling.Reading
		for _, m := range e.config.Metrics {
			if r, ok := drawReading(t, m, mood, now, e.config); ok {
				readings = append(readings, r)
			}
		}
		e.times = append(e.times, now)
		e.looks = append(e.looks, readings)
	}
	return e
}

func (e episode) run(t require.TestingT) (d scaling.Decision) {
	s, err := realtime.New(e.config)
	require.NoError(t, err)
	var state realtime.State
	for i, now := range e.times {
		state, d = s.Decide(state, now, scaling.Observation{SpecReplicas: e.spec, ReadyReplicas: e.spec, Readings: e.looks[i]})
	}
	return d
}

// map returns the episode with every reading passed through f.
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

func TestR2RaisingAValueNeverLowersDesired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		after := e.mapped(func(_ int, r scaling.Reading) scaling.Reading {
			if r.Known() && rapid.Bool().Draw(t, "raised") {
				up := float64(rapid.IntRange(0, 10).Draw(t, "by"))
				r.Lower += up
				r.Upper += up
			}
			return r
		}).run(t)
		require.GreaterOrEqual(t, after.Replicas, before.Replicas, "before %s\nafter %s", before.Explain(), after.Explain())
	})
}

func TestR4OneCalmSampleInTheWindowPreventsAChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		up := rapid.Bool().Draw(t, "up")
		e := drawEpisode(t, func(c *realtime.Config) {
			c.Metrics = c.Metrics[:1]
			c.Metrics[0].Role = realtime.Both
			c.Metrics[0].Low++ // something can be below it
			c.Metrics[0].High++
			c.Bounds.Max = max(c.Bounds.Max, c.Bounds.Min+1)
		})
		m := e.config.Metrics[0]
		value, calm, window := m.High+1, m.High, e.config.Up.Window
		e.spec = e.config.Bounds.Min
		if !up {
			value, calm, window = m.Low-1, m.Low, e.config.Down.Window
			e.spec = e.config.Bounds.Max
		}
		samples := max(1, int((window+e.config.Period-1)/e.config.Period))
		e.times, e.looks = nil, nil
		for i := range samples {
			e.times = append(e.times, start.Add(time.Duration(i)*e.config.Period))
			e.looks = append(e.looks, []scaling.Reading{scaling.Exactly(m.Name, value)})
		}
		d := e.run(t)
		require.True(t, d.Acts(), "a covered window acts\n%s", d.Explain())

		place := rapid.IntRange(0, samples-1).Draw(t, "place")
		e.looks[place] = []scaling.Reading{scaling.Exactly(m.Name, calm)}
		d = e.run(t)
		require.Equal(t, scaling.Hold, d.Verdict, "R4\n%s", d.Explain())

		if samples > 1 { // R5: one sample fewer does not cover the window
			e.times, e.looks = e.times[1:], e.looks[1:]
			e.looks[0] = []scaling.Reading{scaling.Exactly(m.Name, value)}
			for i := range e.looks {
				e.looks[i] = []scaling.Reading{scaling.Exactly(m.Name, value)}
			}
			d = e.run(t)
			require.Equal(t, scaling.Hold, d.Verdict, "R5\n%s", d.Explain())
		}
	})
}

func TestR6DeadZoneNeverActs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		d := e.mapped(func(_ int, r scaling.Reading) scaling.Reading {
			i := slices.IndexFunc(e.config.Metrics, func(m realtime.Metric) bool { return m.Name == r.Metric })
			m := e.config.Metrics[i]
			return scaling.Exactly(r.Metric, rapid.Float64Range(m.Low, m.High).Draw(t, "value"))
		}).run(t)
		require.False(t, d.Acts(), d.Explain())
	})
}

func TestR7ConstantLoadNeverGoesBothWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		c.Metrics = c.Metrics[:1]
		c.Metrics[0].Role = realtime.Both
		c.Bounds.Min = max(1, c.Bounds.Min)
		c.Bounds.Max = max(c.Bounds.Min, c.Bounds.Max)
		m := &c.Metrics[0]
		step := float64(max(c.Up.Step, c.Down.Step))
		m.Low = rapid.Float64Range(0, 1).Draw(t, "share") * m.High / (1 + step)
		s, err := realtime.New(c)
		require.NoError(t, err)
		load := rapid.Float64Range(0, 100).Draw(t, "load")
		spec := rapid.Int32Range(c.Bounds.Min, c.Bounds.Max).Draw(t, "spec")
		var state realtime.State
		ups, downs := 0, 0
		now := start
		for range 300 {
			now = now.Add(c.Period)
			var d scaling.Decision
			state, d = s.Decide(state, now, scaling.Observation{
				SpecReplicas: spec, ReadyReplicas: spec,
				Readings: []scaling.Reading{scaling.Exactly(m.Name, load/float64(spec))},
			})
			switch d.Verdict {
			case scaling.Up:
				ups++
			case scaling.Down:
				downs++
			case scaling.Hold, scaling.Unknown:
				continue
			}
			state = s.Applied(state, now, spec, d.Replicas)
			spec = d.Replicas
		}
		require.True(t, ups == 0 || downs == 0, "%d ups and %d downs under load %v", ups, downs, load)
	})
}

func TestR8AnInvalidMetricOnlySuppressesDowns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		e.config.Metrics = append(slices.Clone(e.config.Metrics), realtime.Metric{Name: "absent", High: 1, Role: rapid.SampledFrom([]realtime.Role{realtime.Both, realtime.UpOnly, realtime.DownVeto}).Draw(t, "role")})
		after := e.run(t)
		switch {
		case before.Verdict == scaling.Down && e.config.Metrics[len(e.config.Metrics)-1].Role != realtime.UpOnly && e.config.Bounds.Contains(e.spec):
			require.Equal(t, scaling.Hold, after.Verdict)
		default:
			require.Equal(t, before.Verdict, after.Verdict, "before %s\nafter %s", before.Explain(), after.Explain())
			require.Equal(t, before.Replicas, after.Replicas)
		}
	})
}

func TestR11ChangesHoldForEveryCompletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		completed := e.mapped(func(_ int, r scaling.Reading) scaling.Reading {
			if !r.Known() {
				return r
			}
			switch before.Verdict {
			case scaling.Up: // any value the missing pods may have had: the average is no less than Lower
				r.Lower += float64(rapid.IntRange(0, 100).Draw(t, "more"))
				r.Upper = r.Lower
			case scaling.Down: // any value up to the fill: the average is no more than Upper
				i := slices.IndexFunc(e.config.Metrics, func(m realtime.Metric) bool { return m.Name == r.Metric })
				if e.config.Metrics[i].Role == realtime.UpOnly {
					return r // has no say in a scale-down, whatever its missing pods would have said
				}
				r.Upper -= rapid.Float64Range(0, 1).Draw(t, "share") * (r.Upper - r.Lower)
				if math.IsNaN(r.Upper) {
					r.Upper = r.Lower
				}
				r.Lower = r.Upper
			case scaling.Hold, scaling.Unknown:
			}
			return r
		}).run(t)
		if before.Acts() {
			require.Equal(t, before.Replicas, completed.Replicas, "before %s\nafter %s", before.Explain(), completed.Explain())
		}
	})
}

func TestR12UnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		c := rapid.Float64Range(1e-6, 1e6).Draw(t, "unit")
		e.config.Metrics = slices.Clone(e.config.Metrics)
		for i := range e.config.Metrics {
			e.config.Metrics[i].High *= c
			e.config.Metrics[i].Low *= c
		}
		after := e.mapped(func(_ int, r scaling.Reading) scaling.Reading {
			r.Lower *= c
			r.Upper *= c // beyond the largest number it is +Inf, which is an Upper like any other
			return r
		}).run(t)
		require.Equal(t, before.Verdict, after.Verdict, "before %s\nafter %s", before.Explain(), after.Explain())
		require.Equal(t, before.Replicas, after.Replicas)
	})
}

func TestC3TimeShiftChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		// Whole seconds from before 1970 to after 2100; the epoch itself is a time like any other.
		shift := rapid.OneOf(
			rapid.Map(rapid.Int64Range(-2e9, 2e9), func(s int64) time.Duration { return time.Duration(s) * time.Second }),
			rapid.Just(time.Unix(0, 0).Sub(e.times[0])),
		).Draw(t, "shift")
		shifted := e.mapped(func(_ int, r scaling.Reading) scaling.Reading {
			if !r.At.IsZero() {
				r.At = r.At.Add(shift)
			}
			return r
		})
		shifted.times = nil
		for _, now := range e.times {
			shifted.times = append(shifted.times, now.Add(shift))
		}
		after := shifted.run(t)
		require.Equal(t, before.Explain(), after.Explain())
		if !before.Next.IsZero() {
			require.True(t, before.Next.Add(shift).Equal(after.Next))
		}
	})
}

func TestC4OrderChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		e.config.Metrics = rapid.Permutation(e.config.Metrics).Draw(t, "metrics")
		for i := range e.looks {
			if len(e.looks[i]) > 0 {
				e.looks[i] = rapid.Permutation(e.looks[i]).Draw(t, "readings")
			}
		}
		after := e.run(t)
		require.Equal(t, before, after)
	})
}

// TestNextIsWhenTimeAloneChangesTheAnswer checks Decision.Next: the same readings again, at any time before it,
// answer the same.
func TestNextIsWhenTimeAloneChangesTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		e = e.mapped(func(_ int, r scaling.Reading) scaling.Reading { r.At = time.Time{}; return r })
		s, err := realtime.New(e.config)
		require.NoError(t, err)
		state := s.Applied(realtime.State{}, start, e.config.Bounds.Min, e.config.Bounds.Min+1)
		var d scaling.Decision
		for i, now := range e.times {
			state, d = s.Decide(state, now, scaling.Observation{SpecReplicas: e.spec, ReadyReplicas: e.spec, Readings: e.looks[i]})
		}
		if d.Acts() || d.Next.IsZero() {
			return
		}
		last := e.times[len(e.times)-1]
		require.True(t, d.Next.After(last))
		gap := min(d.Next.Sub(last)-time.Millisecond, 2*e.config.Period)
		later := last.Add(time.Duration(rapid.Int64Range(0, gap.Milliseconds()).Draw(t, "later")) * time.Millisecond)
		_, again := s.Decide(state, later, scaling.Observation{SpecReplicas: e.spec, ReadyReplicas: e.spec, Readings: e.looks[len(e.looks)-1]})
		require.Equal(t, d.Verdict, again.Verdict, "at %s before %s: %s", later, d.Next, again.Explain())
	})
}
