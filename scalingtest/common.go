package scalingtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// anything is a life in which everything happens that can happen to a policy in production.
func anything() life {
	return life{back: true, gaps: true, others: true, refusals: true, restarts: true, odd: true, twice: true}
}

func wild() life {
	l := anything()
	l.wild = true
	return l
}

// precisely is a life that shows whether a time is stored with less precision than it was observed with.
func precisely() life {
	l := anything()
	l.fine = true
	return l
}

// sometimesWild draws any life, sometimes a wild one.
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
		{name: "Undo", draw: living(precisely()), check: checkUndone},
		{name: "Repeatable", draw: living(anything()), check: checkRepeated},
		{name: "BoundedState", draw: drawPattern, check: checkSize},
		{name: "ClockBack", draw: living(anything()), check: idle(func(m *moment) bool { return m.back }, "the clock went back")},
		{name: "NoData", draw: drawNoData, check: idle(anytime, "there has never been any data")},
		{name: "Explained", draw: sometimesWild, check: ran(isExplained)},
	}
}

// inBounds: a decision that acts stays within the bounds.
func inBounds(s *subject, m *moment) string {
	all := m.all()
	for i := range all {
		bounds := s.options.Bounds
		if i < len(all)-1 {
			bounds = s.options.Targets[i].Bounds
		}
		switch d := &all[i]; {
		case d.Acts() && i < len(all)-1 && m.obs.Targets[i].Missing:
			return action(d) + ", of a target that does not exist"
		case m.negative && i == len(all)-1: // nobody writes the sum of such counts
		case d.Acts() && d.Replicas < 0:
			return action(d) + ", which is negative"
		case d.Acts() && outside(bounds, d.Replicas):
			return fmt.Sprintf("%s, out of the bounds %d to %d", action(d), bounds.Min, bounds.Max)
		}
	}
	// What is written of a group is the sum of its targets, whatever its total says.
	if d, b := &m.d, s.options.Bounds; m.answers != nil && !m.negative && d.Acts() && outside(b, d.Replicas) {
		return fmt.Sprintf("the targets together go from %d to %d, out of the bounds %d to %d", d.From, d.Replicas, b.Min, b.Max)
	}
	return ""
}

// checkTotal: whatever the policy observes, it decides, its decision can be printed, and its state can be stored.
func checkTotal(s *subject, e *Episode) *failed {
	p := s.player(e)
	p.after = func(m *moment) *failed {
		all := m.all()
		for i := range all {
			d, spec := &all[i], m.spec
			if i < len(all)-1 {
				spec = m.obs.Targets[i].SpecReplicas
			}
			f := p.guard("printed", func() *failed {
				_ = d.Explain() + d.Reason()
				if _, err := json.Marshal(d); err != nil {
					return p.fail("at %s the decision cannot be written as JSON: %v", m.elapsed, err)
				}
				return nil
			})
			switch {
			case f != nil:
				return f
			case d.From != spec && (!m.negative || i < len(all)-1):
				return p.fail("at %s it decides on %d replicas where there are %d", m.elapsed, d.From, spec)
			case !d.Acts() && d.Replicas != d.From:
				return p.fail("at %s %s, and yet a count of %d", m.elapsed, action(d), d.Replicas)
			}
		}
		return nil
	}
	if f := p.run(); f != nil {
		return f
	}
	_, f := p.stored()
	return f
}

// checkPermuted: the order of the readings, and of a group's targets and pods, changes nothing.
func checkPermuted(s *subject, e *Episode) *failed {
	plain, f := s.play(e)
	if f != nil {
		return f
	}
	for _, order := range []func(n, place int) int{
		func(n, place int) int { return n - 1 - place },
		func(n, place int) int { return (place + 1) % n },
	} {
		if f := s.differs(plain, e, "with the readings in another order", each(different), func(p *player) { p.order = order }); f != nil {
			return f
		}
	}
	return nil
}

// checkRepeated: equal policies with equal input give equal output every time, whatever the time zone of the clock, and even
// if the caller reuses the slices afterwards; and they do not change their input. Output that depends on the order of a map
// or on chance differs only sometimes, so short episodes are repeated more often.
func checkRepeated(s *subject, e *Episode) *failed {
	first, state, f := s.watched(s.player(e))
	if f != nil {
		return f
	}
	for i := range max(3, 96/max(1, e.count())) {
		p, name := s.player(e), "another policy of the same kind, given the same"
		switch i {
		case 0:
			p.reuses, name = true, name+" in slices that are overwritten afterwards"
		case 1:
			p.zone, name = time.FixedZone("", 5*3600+1800), name+" with the clock of another zone"
		}
		again, other, f := s.watched(p)
		if f != nil {
			return f
		}
		if f := firstDifference(first, again, name, each(different)); f != nil {
			return f
		}
		if state != other && p.zone == nil { // a state may contain a time as it was given, with its zone
			return failAt(first, len(first)-1, "the states of two policies that were given the same differ:\n%s\n%s", state, other)
		}
	}
	return nil
}

// watched plays an episode and checks that what the policy was given is not changed: neither by the decision nor later, by a policy
// that has kept it. It also returns the last state.
func (s *subject) watched(p *player) ([]moment, string, *failed) {
	if f := p.run(); f != nil {
		return nil, "", f
	}
	state, f := p.stored()
	for i := 0; i < len(p.moments) && f == nil && !p.reuses; i++ {
		f = p.unchanged(&p.moments[i])
	}
	return p.moments, string(state), f
}

// unchanged compares what the policy was given at a moment with what that is now.
func (p *player) unchanged(m *moment) *failed {
	got := m.seen.Readings[:cap(m.seen.Readings)]
	for i, r := range got {
		want := scaling.Reading{}
		if i < len(m.obs.Readings) {
			want = m.obs.Readings[i]
		}
		if !sameReading(want, r) {
			return p.fail("at %s the readings that it was given were changed: place %d is now %s", m.elapsed, i, element(reflect.ValueOf(r)))
		}
	}
	if !slices.EqualFunc(m.obs.Histograms, m.seen.Histograms, sameHistogram) {
		return p.fail("at %s the histograms that it was given were changed: %+v", m.elapsed, m.seen.Histograms)
	}
	if !slices.EqualFunc(m.obs.Targets, m.seen.Targets, sameTarget) {
		return p.fail("at %s the targets that it was given were changed: %+v", m.elapsed, m.seen.Targets)
	}
	return nil
}

func sameReading(a, b scaling.Reading) bool {
	bits := sameBits(a.Lower, b.Lower) && sameBits(a.Upper, b.Upper)
	a.Lower, a.Upper, b.Lower, b.Upper = 0, 0, 0, 0
	return bits && a == b
}

// isExplained: the chain of steps explains the decision.
func isExplained(_ *subject, m *moment) string {
	for _, d := range m.all() {
		if err := Explained(&d); err != nil {
			return "the chain does not explain the decision: " + err.Error() + "\n" + d.Explain()
		}
	}
	return ""
}

// differs plays an episode in another way, which name describes, and compares it with a run.
func (s *subject) differs(a []moment, e *Episode, name string, compare func(a, b *moment) string, ways ...func(*player)) *failed {
	b, f := s.play(e, ways...)
	if f != nil {
		return f
	}
	return firstDifference(a, b, name, compare)
}

// firstDifference compares two runs; name describes the second one.
func firstDifference(a, b []moment, name string, compare func(a, b *moment) string) *failed {
	for i := range a {
		if what := compare(&a[i], &b[i]); what != "" {
			f := failAt(a, i, "%s: %s", name, what)
			return f.show(name, b[:i+1])
		}
	}
	return nil
}
