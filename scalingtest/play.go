package scalingtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A subject is a policy under test.
type subject struct {
	fresh   func() scaling.Policy
	options Options
}

// A moment is one decision of a run.
type moment struct {
	now       time.Time
	elapsed   time.Duration // since the start
	back      bool          // the clock is behind the last decision
	scaled    bool          // by someone else
	restarted bool
	refused   bool
	applied   bool
	asked     bool                // and has not answered yet
	obs       scaling.Observation // as it was given
	seen      scaling.Observation // as the policy got it, and maybe changed it
	d         scaling.Decision
}

// A player drives a policy through an episode.
type player struct {
	*subject
	episode *Episode
	policy  scaling.Policy
	moments []moment
	now     time.Time
	spec    int32
	started []start // that are not ready yet, in order of time

	// What a property varies.
	noRestarts  bool
	allRestarts bool
	shift       time.Duration
	readings    func(i int, readings []scaling.Reading) []scaling.Reading
	before      func(m *moment) *failed // with the policy as it is before the decision
	after       func(m *moment) *failed // with the decision made and not carried out
	told        func(m *moment)         // once the decision is carried out and reported
}

// A start is of replicas that are not ready yet.
type start struct {
	at time.Time
	n  int32
}

func (s *subject) player(e *Episode) *player {
	return &player{subject: s, episode: e, now: s.options.Start, spec: e.Spec}
}

// play plays an episode as it is.
func (s *subject) play(e *Episode) ([]moment, *failed) {
	p := s.player(e)
	f := p.run()
	return p.moments, f
}

// run plays the whole episode. What the policy fails of itself (a panic, a state that cannot be stored) is returned.
func (p *player) run() (f *failed) {
	if f = p.guard("made", func() *failed { p.policy = p.fresh(); return nil }); f != nil {
		return f
	}
	p.now = p.now.Add(p.shift)
	p.episode.each(func(i int, tick *Tick, first bool) bool {
		f = p.tick(i, tick, first)
		return f == nil
	})
	return f
}

// tick makes one decision.
func (p *player) tick(i int, tick *Tick, first bool) *failed {
	p.now = p.now.Add(tick.After)
	m := moment{now: p.now, elapsed: p.now.Sub(p.options.Start) - p.shift, refused: tick.Refuse}
	if n := len(p.moments); n > 0 {
		m.back = p.now.Before(p.moments[n-1].now)
	}
	if first && tick.Spec.Set {
		m.scaled = true
		p.spec = tick.Spec.N
	}
	readings := p.episode.readings(i, tick, p.spec)
	if p.readings != nil {
		readings = p.readings(i, readings)
	}
	m.obs = scaling.Observation{SpecReplicas: p.spec, ReadyReplicas: p.ready(tick), Readings: readings}
	m.seen = m.obs
	m.seen.Readings = append(make([]scaling.Reading, 0, cap(readings)), readings...)
	if first && tick.Restart && !p.noRestarts || p.allRestarts {
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
	if f := p.guard("asked", func() *failed { kept.d = p.policy.Decide(p.now, m.seen); return nil }); f != nil {
		return f
	}
	kept.asked = false
	if p.after != nil {
		if f := p.after(kept); f != nil {
			return f
		}
	}
	if !kept.d.Acts() || tick.Refuse {
		return nil
	}
	if p.allRestarts { // as the duties of a caller have it: store, carry out, report
		if f := p.restart(); f != nil {
			return f
		}
	}
	kept.applied = true
	f := p.guard("told of the change", func() *failed { p.policy.Applied(p.now, p.spec, kept.d.Replicas); return nil })
	if p.told != nil {
		p.told(kept)
	}
	if more := int64(kept.d.Replicas) - int64(p.spec); more > 0 && p.episode.Startup > 0 {
		p.started = append(p.started, start{p.now, int32(min(more, math.MaxInt32))})
	}
	p.spec = kept.d.Replicas
	return f
}

// ready returns how many replicas are ready.
func (p *player) ready(tick *Tick) int32 {
	ready := int64(p.spec) - int64(tick.NotReady)
	for len(p.started) > 0 && p.now.Sub(p.started[0].at) >= p.episode.Startup {
		p.started = p.started[1:]
	}
	for _, s := range p.started {
		ready -= int64(s.n)
	}
	return int32(min(max(ready, min(0, int64(p.spec))), math.MaxInt32))
}

// stored returns the policy's state.
func (p *player) stored() (data []byte, f *failed) {
	f = p.guard("stored", func() *failed {
		raw, err := json.Marshal(p.policy)
		if err != nil {
			return p.fail("the state cannot be stored: %v", err)
		}
		data = raw
		return nil
	})
	return data, f
}

// restored returns a new policy with a stored state.
func (p *player) restored(data []byte) (q scaling.Policy, f *failed) {
	f = p.guard("restored", func() *failed {
		q = p.fresh()
		if err := q.UnmarshalJSON(bytes.Clone(data)); err != nil {
			return p.fail("the state that was stored is refused: %v\n%s", err, data)
		}
		return nil
	})
	return q, f
}

// restart stores the policy, and goes on with a new one that has its state.
func (p *player) restart() *failed {
	data, f := p.stored()
	if f != nil {
		return f
	}
	q, f := p.restored(data)
	if f != nil {
		return f
	}
	p.policy = q
	again, f := p.stored()
	if f == nil && !bytes.Equal(data, again) {
		f = p.fail("the state is another one once it was restored:\nstored   %s\nrestored %s", data, again)
	}
	return f
}

// guard turns a panic of the policy into a failure.
func (p *player) guard(when string, f func() *failed) (result *failed) {
	defer func() {
		if r := recover(); r != nil {
			// The stack is not in the message, which has to be the same for the same panic.
			result = p.fail("it panics when it is %s: %v", when, r)
			result.tables += panicked(debug.Stack())
		}
	}()
	return f()
}

// panicked returns the lines of a stack from the panic on, as far as the policy.
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
	ticks  int // how many there were until then
}

// fail says what is wrong at the last moment.
func (p *player) fail(format string, args ...any) *failed {
	f := &failed{what: fmt.Sprintf(format, args...), ticks: len(p.moments)}
	f.show("", p.moments)
	return f
}

// failAt says what is wrong at one moment.
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
