package scalingtest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// A waiting remembers changes and the waits after them.
type waiting struct {
	*Cooldown
	up, down *time.Time // the last change in each direction
}

// since returns the time of the last change that a verdict has to wait for, and the length of the wait; nil if there was
// none.
func (w *waiting) since(v scaling.Verdict) (*time.Time, time.Duration) {
	own, other, wait := w.up, w.down, w.Up
	if v == scaling.Down {
		own, other, wait = w.down, w.up, w.Down
	}
	if !w.PerDirection && (own == nil || other != nil && other.After(*own)) {
		own = other
	}
	return own, wait
}

// note records a change that was carried out.
func (w *waiting) note(m *moment) {
	switch now := m.now; {
	case m.written > m.spec:
		w.up = &now
	case m.written < m.spec:
		w.down = &now
	}
}

// checkCooldown: after an applied change there is no action before the end of the wait.
func checkCooldown(s *subject, e *Episode) *failed {
	w := &waiting{Cooldown: s.options.Cooldown}
	p := s.player(e)
	p.after = func(m *moment) *failed {
		if !m.d.Acts() || m.repairs {
			return nil
		}
		if last, wait := w.since(m.d.Verdict); last != nil && m.now.Sub(*last) < wait {
			return p.fail("at %s %s, %s after the last change; it is to wait for %s", m.elapsed, action(&m.d), m.now.Sub(*last), wait)
		}
		return nil
	}
	p.told = func(m *moment) {
		if !m.repairs {
			w.note(m)
		}
	}
	return p.run()
}

// drawPressed draws readings that ask for the same all the time, with a tick exactly at the end of each cooldown.
func drawPressed(t *rapid.T, o *Options) Episode {
	up := rapid.Bool().Draw(t, "up")
	readings := far(o, up, float64(rapid.IntRange(1, 8).Draw(t, "far")))
	if readings == nil {
		up, readings = true, far(o, true, 1)
	}
	wait := o.Cooldown.Up
	if !up {
		wait = o.Cooldown.Down
	}
	tick, perWait := o.Period, 1
	if wait > 0 {
		perWait = int((wait + o.Period - 1) / o.Period)
		for wait%time.Duration(perWait) != 0 {
			perWait++
		}
		tick = wait / time.Duration(perWait)
	}
	least, most := int32(1), int32(40)
	if o.bounded() {
		least, most = o.Bounds.Min, min(o.Bounds.Max, scaling.Plus(o.Bounds.Min, 40))
	}
	// There is room for two changes, if that is possible.
	if up {
		most = max(least, most-2)
	} else {
		least = min(most, least+2)
	}
	e := Episode{Ticks: []Tick{{After: tick, Times: o.warm(tick) + 2*perWait + 2, Readings: readings}}}
	if len(o.Targets) > 0 {
		e.Specs = (&drawer{T: t, o: o, life: life{inside: true}}).begun().Specs
	} else {
		e.Spec = rapid.Int32Range(least, most).Draw(t, "spec")
	}
	return e
}

// checkCooldownEnds: with readings that ask for the same all the time, the next change comes exactly at the end of the wait
// after the last one, neither a tick before nor one after it, until a bound is reached.
func checkCooldownEnds(s *subject, e *Episode) *failed {
	o := &s.options
	var verdict scaling.Verdict // the verdict that the readings ask for
	w := &waiting{Cooldown: o.Cooldown}
	p := s.player(e)
	acted := false
	p.after = func(m *moment) *failed {
		if m.d.Acts() && !acted {
			acted, verdict = true, m.d.Verdict
		}
		if m.d.Acts() && m.d.Verdict != verdict {
			return p.fail("at %s %s, although nothing but the count has changed since it said %s", m.elapsed, action(&m.d), verdict)
		}
		last, wait := w.since(verdict)
		if last == nil {
			return nil
		}
		elapsed := m.now.Sub(*last)
		switch room := o.room(m.spec, verdict); {
		case m.d.Acts() && elapsed < wait:
			return p.fail("at %s %s, %s after the last change; it is to wait for %s", m.elapsed, action(&m.d), elapsed, wait)
		case !m.d.Acts() && elapsed >= wait && elapsed > 0 && room:
			return p.fail("at %s %s, %s after the last change; the wait of %s is over", m.elapsed, action(&m.d), elapsed, wait)
		}
		return nil
	}
	p.told = w.note
	f := p.run()
	if f == nil && !acted && len(p.moments) > 0 {
		first := &p.moments[0]
		if o.room(first.spec, scaling.Up) && o.room(first.spec, scaling.Down) {
			f = p.fail("readings that are far from where they should be never caused any action")
		}
	}
	return f
}

// drawSteppedBack draws readings that ask for the same all the time, and a clock that goes back right after a change.
func drawSteppedBack(t *rapid.T, o *Options) Episode {
	e := drawPressed(t, o)
	warm, once, after := e.Ticks[0], e.Ticks[0], e.Ticks[0]
	warm.Times, warm.Refuse = o.warm(warm.After), true
	once.Times = 1
	back := once
	back.After = -rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 24 * time.Hour, 10 * 365 * 24 * time.Hour}).Draw(t, "back")
	e.Ticks = []Tick{warm, once, back, after}
	return e
}

// checkClockBackEnds: a clock that went back does not stop changes for longer than a wait, and what the policy looks back on.
func checkClockBackEnds(s *subject, e *Episode) *failed {
	p := s.player(e)
	verdict, since, by := scaling.Hold, time.Time{}, time.Duration(0)
	var now time.Time
	acted := false
	p.after = func(m *moment) *failed {
		switch {
		case m.back:
			since, by = m.now, now.Sub(m.now)
		case !m.d.Acts() || m.repairs:
		case since.IsZero():
			verdict = m.d.Verdict
		default:
			acted = true
		}
		now = m.now
		return nil
	}
	f := p.run()
	if f != nil || acted || verdict == scaling.Hold || since.IsZero() {
		return f
	}
	if last := &p.moments[len(p.moments)-1]; s.options.room(last.spec, verdict) {
		return p.fail("at %s %s; nothing was asked for in the %s since the clock went back by %s", last.elapsed, headline(&last.d), now.Sub(since), by)
	}
	return nil
}

// room reports whether a count can still move in a direction.
func (o *Options) room(spec int32, v scaling.Verdict) bool {
	b := o.whole()
	bounded := b != (scaling.Bounds{})
	switch {
	case v == scaling.Down && bounded:
		return spec > b.Min
	case v == scaling.Down:
		return spec > int32(max(1, len(o.Targets)))
	case bounded:
		return spec < b.Max
	}
	return true
}
