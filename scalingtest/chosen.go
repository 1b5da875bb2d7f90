package scalingtest

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// chosen returns the properties that options turn on.
func chosen() []property {
	cooldown := func(o *Options) bool { return o.Cooldown != nil }
	convergence := func(o *Options) bool { return o.Convergence != nil }
	twin := func(o *Options) bool { return o.Twin != nil }
	onward, single := anything(), anything()
	onward.back, single.twice = false, false
	return []property{
		{name: "Monotone", on: func(o *Options) bool { return o.Monotone }, draw: drawRaised, check: checkMonotone},
		{name: "NoFlap", on: func(o *Options) bool { return o.NoFlap }, draw: drawLoaded, check: checkNoFlap},
		{name: "DeadZone", on: func(o *Options) bool { return len(o.DeadZone) > 0 }, draw: drawInZone, check: idle(anytime, "all readings have been within the dead zone")},
		{name: "Cooldown", on: cooldown, needs: cooldown, draw: living(onward), check: checkCooldown},
		{name: "CooldownEnds", on: cooldown, needs: cooldown, draw: drawPressed, check: checkCooldownEnds, whole: true},
		{name: "ClockBackEnds", on: cooldown, needs: cooldown, draw: drawSteppedBack, check: checkClockBackEnds, whole: true},
		{name: "Refused", on: func(o *Options) bool { return o.Refused }, draw: drawRefused, check: checkRefused, whole: true},
		{name: "Lapse", on: func(o *Options) bool { return o.Lapses }, draw: drawLapse, check: checkLapse},
		{name: "Convergence", on: convergence, needs: convergence, draw: drawConverging, check: checkConvergence, whole: true},
		{name: "Twin", on: twin, needs: twin, draw: living(single), check: checkTwins},
	}
}

// loaded draws constant loads for so many ticks.
func loaded(t *rapid.T, o *Options, ticks int) Episode {
	d := &drawer{T: t, o: o, life: life{inside: true}, now: o.Start}
	e := d.begun()
	most := max(1, e.Spec, sum(e.Specs))
	if b := o.whole(); b != (scaling.Bounds{}) {
		most = max(most, min(b.Max, scaling.Plus(b.Min, 30)))
	}
	for _, m := range o.Metrics {
		// Loads that a whole or a fractional number of replicas would carry at High or at Low.
		share := rapid.OneOf(
			rapid.Map(rapid.IntRange(0, int(most)+2), func(n int) float64 { return float64(n) }),
			rapid.Float64Range(0, float64(most)+2),
		).Draw(t, "load of "+m.Name)
		value := rapid.SampledFrom([]float64{m.High, m.Low}).Draw(t, "at")
		e.Loads = append(e.Loads, Load{Metric: m.Name, Sum: share * value, Whole: m.Whole})
	}
	e.Ticks = []Tick{{After: o.Period, Times: ticks}}
	return e
}

func drawLoaded(t *rapid.T, o *Options) Episode {
	return loaded(t, o, max(300, min(o.warm(o.Period), 2000)))
}

// checkNoFlap: a constant load never causes both an Up and a Down.
func checkNoFlap(s *subject, e *Episode) *failed {
	var first *scaling.Decision
	p := s.player(e)
	p.after = func(m *moment) *failed {
		switch {
		case !m.d.Acts() || m.repairs:
		case first == nil:
			d := m.d
			first = &d
		case first.Verdict != m.d.Verdict:
			return p.fail("at %s %s, and before it said %s, under the same load", m.elapsed, action(&m.d), headline(first))
		}
		return nil
	}
	return p.run()
}

func drawInZone(t *rapid.T, o *Options) Episode {
	zone := *o
	zone.Metrics = o.DeadZone
	l := anything()
	l.odd, l.twice, l.within = false, false, true
	return drawEpisode(t, &zone, l)
}

// drawRefused draws constant readings, all high or all low: scaling up and scaling down may have different waits.
func drawRefused(t *rapid.T, o *Options) Episode {
	d := &drawer{T: t, o: o, life: life{inside: true}, now: o.Start, mood: rapid.IntRange(moodHigh, moodLow).Draw(t, "mood")}
	e := d.begun()
	tick := Tick{After: o.Period, Times: min(o.warm(o.Period), 300), Refuse: true}
	tick.Readings = d.moody()
	e.Ticks = []Tick{tick}
	return e
}

// checkRefused: a refused change is asked for again at the next tick if nothing else changes.
func checkRefused(s *subject, e *Episode) *failed {
	p := s.player(e)
	p.after = func(m *moment) *failed {
		if n := len(p.moments); n > 1 {
			if last := &p.moments[n-2].d; last.Acts() && last.Verdict != m.d.Verdict {
				return p.fail("at %s %s, although the write that it asked for before was refused and nothing has changed", m.elapsed, action(&m.d))
			}
		}
		return nil
	}
	return p.run()
}

func drawConverging(t *rapid.T, o *Options) Episode {
	return loaded(t, o, o.Convergence.Within+max(50, o.Convergence.Within/2))
}

// checkConvergence: under a constant load the count reaches its right value in time, and stays.
func checkConvergence(s *subject, e *Episode) *failed {
	c := s.options.Convergence
	p := s.player(e)
	p.after = func(m *moment) *failed {
		if len(p.moments) > c.Within && m.acts() {
			return p.fail("at %s %s, after %d ticks of the same load", m.elapsed, action(&m.d), len(p.moments)-1)
		}
		return nil
	}
	if f := p.run(); f != nil || c.Want == nil {
		return f
	}
	least, most := c.Want(e.Loads)
	if n := sum(p.spec); n < least || n > most {
		return p.fail("in the end there are %d replicas, right are %d to %d", n, least, most)
	}
	return nil
}

// Naive is a second implementation of a policy: the simplest one, written independently. It keeps its memory in itself and
// is never restarted.
type Naive interface {
	// Decide returns the verdict and the count: the present count for Hold and Unknown.
	Decide(now time.Time, obs scaling.Observation) (verdict scaling.Verdict, replicas int32)
	// Applied reports every change that was carried out.
	Applied(now time.Time, from, to int32)
}

// checkTwins: the policy and its twin give the same answers.
func checkTwins(s *subject, e *Episode) *failed {
	twin := s.options.Twin()
	p := s.player(e)
	p.after = func(m *moment) *failed {
		if verdict, replicas := twin.Decide(m.now, scaling.Observation{SpecReplicas: m.spec, ReadyReplicas: m.ready, Readings: m.obs.Readings, Histograms: m.obs.Histograms}); verdict != m.d.Verdict || replicas != m.d.Replicas {
			return p.fail("at %s the twin says %s %d, and the policy\n%s", m.elapsed, verdict, replicas, m.d.Explain())
		}
		return nil
	}
	p.told = func(m *moment) { twin.Applied(m.now, m.d.From, m.d.Replicas) }
	return p.run()
}

// far returns readings of all metrics far above High, or far below Low; nil if nothing is below.
func far(o *Options, up bool, factor float64) (all []scaling.Reading) {
	for _, m := range o.Metrics {
		value := m.High + factor*max(m.High, 1)
		if !up {
			value = m.Low / (1 + factor)
		}
		if !up && m.Low == 0 || math.IsInf(value, 0) {
			return nil
		}
		all = append(all, scaling.Exactly(m.Name, value))
	}
	return all
}
