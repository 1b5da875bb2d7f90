package scalingtest

import (
	"bytes"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// drawShifted draws an episode and the amount by which its times are moved: to any year from 1960 to 2090, and to 1970
// exactly, since times around 0 must not be special.
func drawShifted(t *rapid.T, o *Options) Episode {
	e := drawEpisode(t, o, anything())
	if epoch := time.Unix(0, 0).Sub(o.Start); epoch != 0 && epoch%o.Shift == 0 && rapid.IntRange(0, 4).Draw(t, "epoch") == 4 {
		e.Shift = epoch
		return e
	}
	const year = 365 * 24 * time.Hour
	perYear := int64(year / o.Shift)
	units := perYear*rapid.Int64Range(-63, 63).Draw(t, "years") + rapid.Int64Range(1, max(1, min(perYear, 100000))).Draw(t, "units")
	e.Shift = time.Duration(units * int64(o.Shift))
	return e
}

// checkShifted: if all times are moved by the same amount, nothing else changes.
func checkShifted(s *subject, e *Episode) *failed {
	plain, f := s.play(e)
	if f != nil {
		return f
	}
	p := s.player(e)
	p.shift = e.Shift
	p.readings = func(_ int, readings []scaling.Reading) []scaling.Reading {
		for i := range readings {
			if r := &readings[i]; !r.At.IsZero() {
				r.At = r.At.Add(e.Shift)
			}
		}
		return readings
	}
	if f := p.run(); f != nil {
		return f
	}
	return firstDifference(plain, p.moments, "with all times later by "+e.Shift.String(), each(func(a, b *scaling.Decision) string {
		return differ(a, b, func(d *scaling.Decision) bool {
			if a.Next.IsZero() || d.Next.IsZero() {
				return a.Next.IsZero() == d.Next.IsZero()
			}
			return a.Next.Add(e.Shift).Equal(d.Next)
		})
	}))
}

// checkRestored: a restart changes no decision, at whatever tick it happens, even between a decision and the report that it
// was carried out.
func checkRestored(s *subject, e *Episode) *failed {
	plain, f := s.play(e, func(p *player) { p.noRestarts = true })
	if f != nil {
		return f
	}
	if f := s.differs(plain, e, "with restarts", each(different)); f != nil {
		return f
	}
	return s.differs(plain, e, "with a restart before and after every decision", each(different), func(p *player) { p.allRestarts = true })
}

// checkUndone: decisions that are taken back change no later one. They are taken back where a process would restart.
func checkUndone(s *subject, e *Episode) *failed {
	plain, f := s.play(e, func(p *player) { p.noRestarts = true })
	if f != nil {
		return f
	}
	return s.differs(plain, e, "with decisions that were taken back", each(different), func(p *player) { p.undoes = true })
}

// undo asks the policy twice, tells it that its answer was carried out, and takes that back. What is stored of the policy before must
// be enough to store the same again.
func (p *player) undo(i int, tick *Tick) *failed {
	was, f := p.stored()
	if f != nil {
		return f
	}
	return p.guard("taken back", func() (f *failed) {
		restore, err := scaling.Snapshot(p.group)
		for n := 0; n < 2 && err == nil; n++ {
			d := p.group.Decide(p.now, p.observe(i, tick))
			from, to := make([]int32, len(d.Targets)), make([]int32, len(d.Targets))
			for k := range d.Targets {
				from[k], to[k] = d.Targets[k].From, d.Targets[k].Replicas
			}
			p.group.Applied(p.now, from, to)
			if err = restore(); err == nil {
				f = p.same(was, "the state is another one once a decision was taken back")
			}
			if f != nil {
				return f
			}
		}
		if err != nil {
			return p.fail("the decision cannot be taken back: %v", err)
		}
		kept, err := scaling.Durable(p.group)
		if err != nil {
			return p.fail("the state cannot be stored: %v", err)
		}
		q := p.fresh()
		if f = p.takes(q, kept); f != nil {
			return f
		}
		if again, err := scaling.Durable(q); err != nil || !bytes.Equal(kept, again) {
			return p.fail("of a state that was stored and restored another one is stored (%v):\nbefore %s\nafter  %s", err, kept, again)
		}
		return nil
	})
}

// drawPattern draws a few ticks to repeat.
func drawPattern(t *rapid.T, o *Options) Episode {
	few := *o
	few.Ticks = min(o.Ticks, 16)
	l := anything()
	l.restarts = false
	l.back = o.MaxState > 0 && rapid.Bool().Draw(t, "back")
	return drawEpisode(t, &few, l)
}

// longest is how many bytes a number has at most: -2.2250738585072014e-308.
const longest = 24

// shape returns the size of a state in bytes, with each number counted as one byte: the digits of an average vary, and that
// is not growth. What is longer than a number is not one.
func shape(data []byte) (n int) {
	within := 0
	for _, c := range data {
		digit := c >= '0' && c <= '9' || within > 0 && (c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-')
		if !digit || within == 0 || within >= longest {
			n++
		}
		if within++; !digit {
			within = 0
		}
	}
	return n
}

// checkSize: the state stays within MaxState, and once the policy has seen everything that it looks back on, the state does
// not grow, however often the same events are repeated.
func checkSize(s *subject, e *Episode) *failed {
	o := &s.options
	most := 0
	size := func(p *player) func(m *moment) *failed {
		return func(m *moment) *failed {
			data, f := p.stored()
			if most = max(most, shape(data)); f == nil && o.MaxState > 0 && len(data) > o.MaxState {
				f = p.fail("at %s the state has %d bytes, more than %d: %s", m.elapsed, len(data), o.MaxState, data)
			}
			return f
		}
	}
	p := s.player(e)
	p.before = size(p)
	if f := p.run(); f != nil {
		return f
	}
	length, back := e.length()
	if back {
		return nil
	}
	rounds := 100 // for a pattern that takes no time
	once := slices.Clone(e.Ticks)
	if length > 0 {
		const most = 2000
		rounds = int(min(2*o.Memory/length, most)) + 2
		// However short the pattern is, after that the policy has seen everything that it looks back on.
		once[0].After += max(0, 2*o.Memory/most-length)
	}
	// At the beginning of the first round no time has passed: repeat the pattern with the time that passes between rounds.
	pattern := Episode{Spec: e.Spec, Specs: e.Specs, Startup: e.Startup, Loads: e.Loads}
	for range rounds {
		pattern.Ticks = append(pattern.Ticks, once...)
	}
	long := pattern
	for range 3 {
		long.Ticks = append(long.Ticks, pattern.Ticks...)
	}
	p = s.player(&long)
	n, per := 0, e.count()
	early := 0
	measure := size(p)
	p.before = func(m *moment) *failed {
		n++
		p.moments = p.moments[max(0, len(p.moments)-per):] // only the last round is shown
		switch {
		case n > (rounds-2)*per && n <= rounds*per:
			f := measure(m)
			early = most
			return f
		case n > (4*rounds-1)*per:
			most = 0
			if f := measure(m); f != nil {
				return f
			}
			if most > early+max(64, early/8) {
				return p.fail("after %d rounds of the same %d ticks the state had at most %d bytes, each number as one, after %d rounds %d", rounds, per, early, 4*rounds, most)
			}
		}
		return nil
	}
	return p.run()
}

// unread returns the decisions of the policy in its present state without any reading. The policy itself is not changed.
func (p *player) unread(m *moment) (d scaling.GroupDecision, f *failed) {
	obs := scaling.GroupObservation{Targets: slices.Clone(m.obs.Targets)}
	for i := range obs.Targets {
		obs.Targets[i].Pods = nil
	}
	data, f := p.stored()
	if f != nil {
		return d, f
	}
	q, f := p.restored(data)
	if f != nil {
		return d, f
	}
	f = p.guard("asked", func() *failed {
		d = q.Decide(m.now, obs)
		return nil
	})
	return d, f
}

// idle returns the check that there is no action in the moments for which asked returns true, except for repairs and for
// changes that time alone causes.
func idle(asked func(m *moment) bool, why string) func(s *subject, e *Episode) *failed {
	return func(s *subject, e *Episode) *failed {
		p := s.player(e)
		var unread scaling.GroupDecision
		if s.options.ActsWithoutData {
			p.before = func(m *moment) (f *failed) {
				if asked(m) {
					unread, f = p.unread(m)
				}
				return f
			}
		}
		p.after = func(m *moment) *failed {
			switch {
			case !asked(m) || !m.acts() || m.repairs:
			case s.options.ActsWithoutData && slices.EqualFunc(m.targets(), unread.Targets, func(a, b scaling.Decision) bool {
				return a.Verdict == b.Verdict && a.Replicas == b.Replicas
			}):
			case s.options.ActsWithoutData:
				return p.fail("at %s %s although %s; without any reading it says %s", m.elapsed, headline(&m.d), why, headline(&unread.Total))
			default:
				return p.fail("at %s %s although %s", m.elapsed, action(&m.d), why)
			}
			return nil
		}
		return p.run()
	}
}

func anytime(*moment) bool { return true }

// drawNoData draws an episode in which no reading has a usable value: each in a different way, all in the same way, or no
// readings at all.
func drawNoData(t *rapid.T, o *Options) Episode {
	l := anything()
	l.noData = true
	e := drawEpisode(t, o, l)
	way := rapid.IntRange(0, 3).Draw(t, "way")
	var odd scaling.Reading
	if way == 1 || way == 2 {
		(&drawer{T: t, o: o, life: l}).odd(&odd)
	}
	for i := range e.Ticks {
		switch tick := &e.Ticks[i]; way {
		case 0:
			tick.Readings = nil
		case 1, 2:
			tick.Readings = nil
			for _, m := range o.Metrics {
				odd.Metric = m.Name
				tick.Readings = append(tick.Readings, odd)
			}
		}
	}
	return e
}
