package realtime_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
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

// TestProperties has the properties that package scalingtest checks of any policy: among them that more load never asks
// for less, that cooldowns hold and end, that between the thresholds nothing happens, that a constant load does not make
// the count swing, that a refused write starts no cooldown, and that the naive twin of this package answers the same.
func TestProperties(t *testing.T) {
	scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
		c := drawConfig(t)
		if rapid.Bool().Draw(t, "no flap") { // constant total load with Low <= High*m/(m+step), m = 1
			c.Bounds.Min = max(1, c.Bounds.Min)
			for i := range c.Metrics {
				c.Metrics[i].Role = realtime.Both
				c.Metrics[i].Low = rapid.Float64Range(0, 1).Draw(t, "share") * c.Metrics[i].High / (1 + float64(max(c.Up.Step, c.Down.Step)))
			}
		}
		return func() scaling.Policy { return build(t, c) }, known(c)
	})
}

// known returns what is known of the policy of a configuration.
func known(c realtime.Config) scalingtest.Options {
	opts := scalingtest.Options{
		Bounds: c.Bounds, Period: c.Period, Memory: 5 * time.Minute, MaxState: 150 + 90*len(c.Metrics),
		Monotone: true, NoFlap: c.Bounds.Min > 0, Refused: true, Lapses: true,
		Twin: func() scalingtest.Naive { return newNaive(c) },
	}
	asksUp, asksDown := false, false
	for _, m := range c.Metrics {
		opts.Metrics = append(opts.Metrics, scalingtest.Metric{Name: m.Name, Low: m.Low, High: m.High, UpOnly: m.Role == realtime.UpOnly})
		asksUp = asksUp || m.Role != realtime.DownVeto
		asksDown = asksDown || m.Role != realtime.UpOnly
		opts.NoFlap = opts.NoFlap && m.Role == realtime.Both && m.Low <= m.High/(1+float64(max(c.Up.Step, c.Down.Step)))
	}
	opts.DeadZone = opts.Metrics
	if asksUp && asksDown { // otherwise readings far away have no effect
		opts.Cooldown = &scalingtest.Cooldown{Up: c.Up.Cooldown, Down: c.Down.Cooldown, PerDirection: c.CooldownScope == realtime.PerDirection}
	}
	return opts
}

func build(t require.TestingT, c realtime.Config) scaling.Policy {
	return scaling.New(scaler(t, c))
}

func scaler(t require.TestingT, c realtime.Config) realtime.Scaler {
	s, err := realtime.New(c)
	require.NoError(t, err)
	return s
}

// TestEpisodes drives a Scaler through a long random life: gaps, steps back of the clock, missing and senseless
// readings, refused writes, counts changed by others. A decision within bounds moves by a step at most, one outside
// goes to the nearest bound, and at one instant there is no second one.
func TestEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		s := scaler(t, c)
		var state realtime.State
		now := start
		spec := c.Bounds.Clamp(3)
		mood := 2
		for range rapid.IntRange(1, 60).Draw(t, "ticks") {
			if rapid.IntRange(0, 6).Draw(t, "mood swing") == 0 {
				mood = rapid.IntRange(0, 2).Draw(t, "mood")
			}
			switch rapid.IntRange(0, 19).Draw(t, "clock") {
			case 0:
				now = now.Add(-drawSeconds(t, 1, 100, "back"))
			case 1:
				now = now.Add(drawSeconds(t, 0, 70, "gap"))
			default:
				now = now.Add(c.Period)
			}
			if rapid.IntRange(0, 29).Draw(t, "fate") == 0 { // someone else scales the target
				spec = rapid.Int32Range(0, 14).Draw(t, "spec")
			}
			obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec - rapid.Int32Range(0, 1).Draw(t, "not ready")}
			for _, m := range c.Metrics {
				if r, ok := drawReading(t, m, mood, now, c); ok {
					obs.Readings = append(obs.Readings, r)
				}
			}
			var d scaling.Decision
			state, d = s.Decide(state, now, obs)
			if !d.Acts() {
				continue
			}
			if !c.Bounds.Contains(spec) {
				require.Equal(t, c.Bounds.Clamp(spec), d.Replicas, "to the nearest bound")
			} else {
				require.LessOrEqual(t, d.Replicas-spec, c.Up.Step, "one step at most")
				require.LessOrEqual(t, spec-d.Replicas, c.Down.Step, "one step at most")
			}
			if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				continue
			}
			state = s.Applied(state, now, spec, d.Replicas)
			spec = d.Replicas
			obs.SpecReplicas, obs.ReadyReplicas = spec, spec
			state, d = s.Decide(state, now, obs)
			require.False(t, d.Acts(), "at one instant a second decision holds\n%s", d.Explain())
		}
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
	s := scaler(t, e.config)
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

func TestOneCalmSampleInTheWindowPreventsAChange(t *testing.T) {
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
		require.Equal(t, scaling.Hold, d.Verdict, "a calm sample starts the window anew\n%s", d.Explain())

		if samples > 1 {
			e.times, e.looks = e.times[1:], e.looks[1:]
			e.looks[0] = []scaling.Reading{scaling.Exactly(m.Name, value)}
			for i := range e.looks {
				e.looks[i] = []scaling.Reading{scaling.Exactly(m.Name, value)}
			}
			d = e.run(t)
			require.Equal(t, scaling.Hold, d.Verdict, "one sample fewer does not cover the window\n%s", d.Explain())
		}
	})
}

func TestAnInvalidMetricOnlySuppressesDowns(t *testing.T) {
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

func TestChangesHoldForEveryCompletion(t *testing.T) {
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

func TestUnitsDoNotMatter(t *testing.T) {
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

// TestOrderOfMetricsChangesNothing has that for the configuration; TestProperties has it for readings.
func TestOrderOfMetricsChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		before := e.run(t)
		e.config.Metrics = rapid.Permutation(e.config.Metrics).Draw(t, "metrics")
		require.Equal(t, before, e.run(t))
	})
}

// TestNextIsWhenTimeAloneChangesTheAnswer checks Decision.Next: the same readings again, at any time before it,
// answer the same.
func TestNextIsWhenTimeAloneChangesTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEpisode(t, nil)
		e = e.mapped(func(_ int, r scaling.Reading) scaling.Reading { r.At = time.Time{}; return r })
		s := scaler(t, e.config)
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
