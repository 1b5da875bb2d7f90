package scalingtest

import (
	"encoding/json"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// anything is a life in which all happens that happens to a policy in service.
func anything() life {
	return life{back: true, gaps: true, others: true, refusals: true, restarts: true, odd: true, twice: true}
}

func wild() life {
	l := anything()
	l.wild = true
	return l
}

// precisely is a life in which it shows that a time is remembered less exactly than it was taken.
func precisely() life {
	l := anything()
	l.fine = true
	return l
}

// sometimesWild draws any life, and a wild one now and then.
func sometimesWild(t *rapid.T, o *Options) Episode {
	l := anything()
	l.wild = rapid.IntRange(0, 2).Draw(t, "wild") == 2
	return drawEpisode(t, o, l)
}

// common returns the properties that every policy has.
func common() []property {
	return []property{
		{name: "MissingNeverActs", draw: drawWidened, check: checkMissing},
		{name: "WithinBounds", draw: sometimesWild, check: ran(inBounds)},
		{name: "NeverPanics", draw: living(wild()), check: checkTotal},
		{name: "TimeShift", draw: drawShifted, check: checkShifted},
		{name: "Order", draw: living(anything()), check: checkPermuted},
		{name: "Restart", draw: living(precisely()), check: checkRestored},
		{name: "Repeatable", draw: living(anything()), check: checkRepeated},
		{name: "BoundedState", draw: drawPattern, check: checkSize},
		{name: "ClockBack", draw: living(anything()), check: checkClockBack},
		{name: "NoData", draw: drawNoData, check: checkNoData},
		{name: "Explained", draw: sometimesWild, check: ran(isExplained)},
	}
}

// inBounds: what acts is within the bounds.
func inBounds(s *subject, m *moment) string {
	switch o := &s.options; {
	case m.d.Acts() && m.d.Replicas < 0:
		return action(&m.d) + ", which is negative"
	case m.d.Acts() && o.bounded() && !o.Bounds.Contains(m.d.Replicas):
		return fmt.Sprintf("%s, out of the bounds %d to %d", action(&m.d), o.Bounds.Min, o.Bounds.Max)
	}
	return ""
}

// checkTotal: whatever is observed, it answers, what it answers can be printed, and what it remembers stored.
func checkTotal(s *subject, e *Episode) *failed {
	p := s.player(e)
	p.after = func(m *moment) *failed {
		f := p.guard("printed", func() *failed {
			_ = m.d.Explain() + m.d.Reason()
			if _, err := json.Marshal(m.d); err != nil {
				return p.fail("at %s the decision cannot be written as JSON: %v", m.elapsed, err)
			}
			return nil
		})
		switch {
		case f != nil:
			return f
		case m.d.From != m.obs.SpecReplicas:
			return p.fail("at %s it decides on %d replicas where there are %d", m.elapsed, m.d.From, m.obs.SpecReplicas)
		case !m.d.Acts() && m.d.Replicas != m.d.From:
			return p.fail("at %s %s, and yet a count of %d", m.elapsed, action(&m.d), m.d.Replicas)
		}
		return nil
	}
	if f := p.run(); f != nil {
		return f
	}
	_, f := p.stored()
	return f
}

// checkPermuted: the order of the readings changes nothing.
func checkPermuted(s *subject, e *Episode) *failed {
	plain, f := s.play(e)
	if f != nil {
		return f
	}
	for _, order := range []func(r []scaling.Reading) []scaling.Reading{
		func(r []scaling.Reading) []scaling.Reading { slices.Reverse(r); return r },
		func(r []scaling.Reading) []scaling.Reading { return append(r[1:], r[0]) },
	} {
		p := s.player(e)
		p.readings = func(_ int, r []scaling.Reading) []scaling.Reading {
			if len(r) < 2 {
				return r
			}
			return order(r)
		}
		if f := p.run(); f != nil {
			return f
		}
		if f := firstDifference(plain, p.moments, "with the readings in another order", different); f != nil {
			return f
		}
	}
	return nil
}

// checkRepeated: equal policies that see the same say the same, each time, and leave alone what they are given.
// What hangs on the order of a map or on chance differs only now and then, so short episodes are repeated more often.
func checkRepeated(s *subject, e *Episode) *failed {
	first, state, f := s.watched(e)
	if f != nil {
		return f
	}
	for range max(1, 96/e.count()) {
		again, other, f := s.watched(e)
		if f != nil {
			return f
		}
		if f := firstDifference(first, again, "another policy of the same kind, given the same", different); f != nil {
			return f
		}
		if state != other {
			return failAt(first, len(first)-1, "the states of two policies that were given the same differ:\n%s\n%s", state, other)
		}
	}
	return nil
}

// watched plays an episode and sees to it that the readings are left as they were. It returns the last state also.
func (s *subject) watched(e *Episode) ([]moment, string, *failed) {
	p := s.player(e)
	p.after = func(m *moment) *failed {
		got := m.seen.Readings[:cap(m.seen.Readings)]
		for i, r := range got {
			want := scaling.Reading{}
			if i < len(m.obs.Readings) {
				want = m.obs.Readings[i]
			}
			if !sameReading(want, r) {
				return p.fail("at %s the readings that it was given were changed: place %d is now %s", m.elapsed, i, readingSource(r))
			}
		}
		return nil
	}
	if f := p.run(); f != nil {
		return nil, "", f
	}
	state, f := p.stored()
	return p.moments, string(state), f
}

func sameReading(a, b scaling.Reading) bool {
	bits := sameBits(a.Lower, b.Lower) && sameBits(a.Upper, b.Upper)
	a.Lower, a.Upper, b.Lower, b.Upper = 0, 0, 0, 0
	return bits && a == b
}

// isExplained: the chain explains the decision.
func isExplained(_ *subject, m *moment) string {
	if err := Explained(&m.d); err != nil {
		return "the chain does not explain the decision: " + err.Error() + "\n" + m.d.Explain()
	}
	return ""
}

// firstDifference compares two runs, of which the second one is called by a name.
func firstDifference(a, b []moment, name string, compare func(a, b *moment) string) *failed {
	for i := range a {
		if what := compare(&a[i], &b[i]); what != "" {
			f := failAt(a, i, "%s: %s", name, what)
			return f.show(name, b[:i+1])
		}
	}
	return nil
}
