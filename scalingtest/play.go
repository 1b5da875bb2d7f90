package scalingtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A subject is a group under test, or a policy as a group of one.
type subject struct {
	fresh   func() scaling.Group
	options Options
}

// A moment is one decision of a run.
type moment struct {
	now       time.Time
	elapsed   time.Duration // since the start
	back      bool          // the clock is behind the last decision, and behind the last one on all targets
	scaled    bool          // by someone else
	restarted bool
	refused   bool
	applied   bool
	asked     bool                     // the policy is deciding and has not answered yet
	spec      int32                    // sum over all targets
	ready     int32                    // sum over all targets
	written   int32                    // spec after the write
	repairs   bool                     // a count is out of its bounds
	negative  bool                     // so is the count of a target: the total of a group is then not meaningful
	obs       scaling.GroupObservation // as it was given
	seen      scaling.GroupObservation // as the group got it, possibly changed by it
	// d is the total, computed from the targets, with the total's own chain. A group has one answer for each target, in the
	// order of the options, and the total; a policy has only d.
	d       scaling.Decision
	answers []scaling.Decision
}

// all returns all answers, only d for a policy.
func (m *moment) all() []scaling.Decision {
	if m.answers == nil {
		return []scaling.Decision{m.d}
	}
	return m.answers
}

// targets returns the answers for the targets.
func (m *moment) targets() []scaling.Decision {
	if m.answers == nil {
		return []scaling.Decision{m.d}
	}
	return m.answers[:len(m.answers)-1]
}

// incomplete reports whether a target is missing. A group may then not have asked its policies, nor told them the time.
func (m *moment) incomplete() bool {
	return slices.ContainsFunc(m.obs.Targets, func(t scaling.TargetObservation) bool { return t.Missing })
}

// acts reports whether any target asks for a write.
func (m *moment) acts() bool {
	return m.d.Acts() || slices.ContainsFunc(m.answers, func(d scaling.Decision) bool { return d.Acts() })
}

// A player plays an episode with a policy.
type player struct {
	*subject
	episode *Episode
	group   scaling.Group
	earlier []byte // the state at the previous restart
	lent    []byte // the last stored state, as the group returned it,
	was     []byte // and a copy of it from then
	moments []moment
	now     time.Time
	spec    []int32 // of each target
	started []start // replicas that are not ready yet, in order of time

	counts     map[string]*count   // of each histogram
	histograms []scaling.Histogram // as they are at the tick

	// The variations that properties make.
	noRestarts  bool
	allRestarts bool
	undoes      bool // decisions, in place of restarts
	shift       time.Duration
	zone        *time.Location // of the clock
	reuses      bool           // overwrite the slices that the policy was given
	readings    func(i int, readings []scaling.Reading) []scaling.Reading
	order       func(n, place int) int  // of readings, targets and pods: which of n comes to a place
	before      func(m *moment) *failed // with the policy before the decision
	after       func(m *moment) *failed // after the decision, before it is carried out
	told        func(m *moment)         // after the decision is carried out and reported
}

// A start is a set of replicas that are not ready yet.
type start struct {
	at     time.Time
	target int
	n      int32
}

func (s *subject) player(e *Episode) *player {
	p := &player{subject: s, episode: e, now: s.options.Start, spec: make([]int32, max(1, len(s.options.Targets)))}
	for k := range p.spec {
		if p.spec[k] = e.Spec; k < len(e.Specs) {
			p.spec[k] = e.Specs[k]
		}
	}
	return p
}

// play plays an episode as it is, but for variations.
func (s *subject) play(e *Episode, variations ...func(p *player)) ([]moment, *failed) {
	p := s.player(e)
	for _, vary := range variations {
		vary(p)
	}
	f := p.run()
	return p.moments, f
}

// run plays the whole episode. It returns failures of the policy itself (a panic, a state that cannot be stored).
func (p *player) run() (f *failed) {
	if f = p.guard("made", func() *failed { p.group = p.fresh(); return nil }); f != nil {
		return f
	}
	if p.now = p.now.Add(p.shift); p.zone != nil {
		p.now = p.now.In(p.zone)
	}
	p.episode.each(func(i int, tick *Tick, first bool) bool {
		f = p.tick(i, tick, first)
		return f == nil
	})
	return f
}

// tick makes one decision.
func (p *player) tick(i int, tick *Tick, first bool) *failed {
	p.now = p.now.Add(tick.After)
	m := moment{now: p.now, elapsed: p.now.Sub(p.options.Start) - p.shift}
	for k := len(p.moments) - 1; k >= 0; k-- {
		last := &p.moments[k]
		if m.back = p.now.Before(last.now); !m.back || !last.incomplete() {
			break
		}
	}
	for k := range p.spec {
		t := p.options.target(tick, k)
		if first && t.Spec.Set {
			m.scaled, p.spec[k] = true, t.Spec.N
		}
		m.repairs = m.repairs || !t.Missing && len(p.options.Targets) > 0 && outside(p.options.Targets[k].Bounds, p.spec[k])
	}
	p.counting(tick, i)
	m.obs, m.seen = p.observe(i, tick), p.observe(i, tick)
	from := make([]int32, len(m.obs.Targets))
	ready := make([]int32, len(from))
	for place, t := range slices.Clone(m.obs.Targets) {
		m.obs.Targets[p.at(place)] = t // in the order of the answers
		from[place], ready[place] = t.SpecReplicas, t.ReadyReplicas
		m.negative = m.negative || len(p.options.Targets) > 0 && t.SpecReplicas < 0
	}
	m.spec, m.ready = sum(from), sum(ready)
	m.repairs = m.repairs || outside(p.options.Bounds, m.spec)
	switch {
	case first && tick.Restart && p.undoes:
		if f := p.undo(i, tick); f != nil {
			return f
		}
	case first && tick.Restart && !p.noRestarts || p.allRestarts:
		m.restarted = true
		if f := p.restart(); f != nil {
			return f
		}
	}
	if p.before != nil {
		if f := p.before(&m); f != nil {
			return f
		}
	}
	p.moments = append(p.moments, m)
	kept := &p.moments[len(p.moments)-1]
	kept.asked = true
	if f := p.guard("asked", func() *failed { return p.decided(kept) }); f != nil {
		return f
	}
	kept.asked = false
	kept.refused = kept.acts() && tick.Refuse
	if p.after != nil {
		if f := p.after(kept); f != nil {
			return f
		}
	}
	f := p.carryOut(kept, tick, from)
	if p.reuses {
		reuse(&kept.seen)
	}
	return f
}

// reuse overwrites the observation, as callers do that use the same slices at each tick: a policy must not keep them.
func reuse(obs *scaling.GroupObservation) {
	clear(obs.Readings)
	for _, h := range obs.Histograms {
		clear(h.Bounds)
		clear(h.Counts)
	}
	clear(obs.Histograms)
	for _, t := range obs.Targets {
		for _, pod := range t.Pods {
			clear(pod.Values)
		}
		clear(t.Pods)
	}
	clear(obs.Targets)
}

// decided asks the group and records its answers.
func (p *player) decided(m *moment) *failed {
	got := p.group.Decide(p.now, m.seen)
	n := len(p.spec)
	if len(got.Targets) != n {
		return p.fail("at %s it has %d decisions for %d targets", m.elapsed, len(got.Targets), n)
	}
	m.d = got.Total
	if len(p.options.Targets) == 0 {
		return nil
	}
	m.answers = make([]scaling.Decision, n+1)
	m.answers[n] = got.Total
	counts := make([]int32, n)
	for k := range got.Targets {
		m.answers[p.at(k)] = got.Targets[k]
		if counts[k] = m.seen.Targets[k].SpecReplicas; got.Targets[k].Acts() {
			counts[k] = got.Targets[k].Replicas
		}
	}
	m.d.From, m.d.Replicas = m.spec, sum(counts)
	switch {
	case m.d.Replicas > m.d.From:
		m.d.Verdict = scaling.Up
	case m.d.Replicas < m.d.From:
		m.d.Verdict = scaling.Down
	case m.d.Acts():
		m.d.Verdict = scaling.Hold
	}
	return nil
}

// at returns which of the options' targets is observed at a place.
func (p *player) at(place int) int {
	if p.order == nil {
		return place
	}
	return p.order(len(p.spec), place)
}

// carryOut writes the requested counts, except for refused ones, and reports them.
func (p *player) carryOut(m *moment, tick *Tick, from []int32) *failed {
	to := slices.Clone(from)
	written := 0
	for place := range to {
		k := p.at(place)
		d := &m.d
		if m.answers != nil {
			d = &m.answers[k]
		}
		if !d.Acts() {
			continue
		}
		if p.options.target(tick, k).Refuse {
			m.refused = true
			continue
		}
		written++
		to[place] = d.Replicas
		if more := int64(d.Replicas) - int64(p.spec[k]); more > 0 && p.episode.Startup > 0 {
			p.started = append(p.started, start{p.now, k, int32(min(more, math.MaxInt32))})
		}
		p.spec[k] = d.Replicas
	}
	m.written = sum(to)
	if written == 0 {
		return nil
	}
	if p.allRestarts { // the duties of a caller: store, carry out, report
		if f := p.restart(); f != nil {
			return f
		}
	}
	m.applied = true
	f := p.guard("told of the change", func() *failed { p.group.Applied(p.now, from, to); return nil })
	clear(from)
	clear(to)
	if p.told != nil {
		p.told(m)
	}
	return f
}

// ready returns how many replicas of a target are ready.
func (p *player) ready(target int, notReady int32) int32 {
	spec := int64(p.spec[target])
	ready := spec - int64(notReady)
	for len(p.started) > 0 && p.now.Sub(p.started[0].at) >= p.episode.Startup {
		p.started = p.started[1:]
	}
	for _, s := range p.started {
		if s.target == target {
			ready -= int64(s.n)
		}
	}
	return int32(min(max(ready, min(0, spec)), math.MaxInt32))
}

// stored returns the policy's state.
func (p *player) stored() (data []byte, f *failed) {
	f = p.guard("stored", func() *failed {
		raw, err := p.group.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, new(json.RawMessage))
		}
		if err != nil {
			return p.fail("the state cannot be stored: %v", err)
		}
		if !bytes.Equal(p.lent, p.was) {
			return p.fail("what MarshalJSON returned before is overwritten:\nstored %s\nis now %s", p.was, p.lent)
		}
		p.lent, p.was, data = raw, bytes.Clone(raw), bytes.Clone(raw)
		return nil
	})
	return data, f
}

// restored returns a new policy with a stored state.
func (p *player) restored(data []byte) (q scaling.Group, f *failed) {
	f = p.guard("restored", func() *failed {
		q = p.fresh()
		return p.takes(q, data)
	})
	return q, f
}

// takes gives a stored state to a policy, in bytes that are overwritten afterwards.
func (p *player) takes(q scaling.Group, data []byte) *failed {
	lent := bytes.Clone(data)
	if err := q.UnmarshalJSON(lent); err != nil {
		return p.fail("the state that was stored is refused: %v\n%s", err, data)
	}
	clear(lent)
	return nil
}

// restart stores the policy, and continues with a new one that has its state. The old one gets the state of the previous
// restart, as happens when a caller's write conflicts with another one.
func (p *player) restart() *failed {
	data, f := p.stored()
	if f != nil {
		return f
	}
	if p.earlier != nil {
		if f := p.guard("restored", func() *failed { return p.takes(p.group, p.earlier) }); f != nil {
			return f
		}
		if f := p.same(p.earlier, "the state is another one once it was restored to a policy that had gone on"); f != nil {
			return f
		}
	}
	q, f := p.restored(data)
	if f != nil {
		return f
	}
	p.group, p.earlier = q, data
	return p.same(data, "the state is another one once it was restored")
}

// same compares a state with the policy's state.
func (p *player) same(data []byte, otherwise string) *failed {
	again, f := p.stored()
	if f == nil && !bytes.Equal(data, again) {
		f = p.fail("%s:\nstored   %s\nrestored %s", otherwise, data, again)
	}
	return f
}

// guard turns a panic of the policy into a failure.
func (p *player) guard(when string, f func() *failed) (result *failed) {
	defer func() {
		if r := recover(); r != nil {
			// The stack is not in the message, since the message must be the same for the same panic.
			result = p.fail("it panics when it is %s: %v", when, r)
			result.tables += panicked(debug.Stack())
		}
	}()
	return f()
}

// panicked returns the lines of a stack from the panic down to the policy.
func panicked(stack []byte) string {
	text := string(stack)
	if i := strings.LastIndex(text, "\npanic("); i >= 0 {
		text = text[i+1:]
	}
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(6, len(lines))], "\n") + "\n"
}

// A failed is a property that does not hold, with the runs that show it.
type failed struct {
	what   string
	tables string
	ticks  int // number of ticks until the failure
}

// fail reports a failure at the last moment.
func (p *player) fail(format string, args ...any) *failed {
	f := &failed{what: fmt.Sprintf(format, args...), ticks: len(p.moments)}
	f.show("", p.moments)
	return f
}

// failAt reports a failure at one moment.
func failAt(moments []moment, i int, format string, args ...any) *failed {
	f := &failed{what: "at " + moments[i].elapsed.String() + " " + fmt.Sprintf(format, args...), ticks: i + 1}
	f.show("", moments[:i+1])
	return f
}

// show adds the table of a run.
func (f *failed) show(title string, moments []moment) *failed {
	if title != "" {
		f.tables += title + ":\n"
	}
	f.tables += table(moments)
	return f
}
