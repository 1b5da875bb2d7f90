package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// A loop is the controller at work: it decides at each tick and carries out what was decided.
type loop struct {
	controller    Controller
	newController func() (Controller, error)
	ticks         int64
	writing       bool
	forgets       bool
	from, to      []int32 // of the write under way, and of the last one

	actions, ups, downs, reversals, refusals, crashes int64
	reasons                                           []ReasonCount
}

// tick makes one decision.
func (l *loop) tick(e *engine) error {
	l.ticks++
	e.agenda.set(slotControl, e.now+ticks(e.scenario.Control.Interval))
	if l.writing {
		return nil
	}
	now := e.at(e.now)
	view := e.observer.look(e)
	decisions := l.controller.Decide(now, view)
	if len(decisions) != len(e.kinds) {
		return fmt.Errorf("the controller gave %d decisions for %d types", len(decisions), len(e.kinds))
	}
	if e.options.Decision != nil {
		e.options.Decision(now, view, decisions)
	}
	l.to = l.to[:0]
	acts := false
	for k := range decisions {
		d := &decisions[k]
		if e.now < e.horizon {
			l.note(d)
		}
		to := e.kinds[k].spec
		if d.Acts() {
			to = min(max(d.Replicas, 0), MaxReplicas)
		}
		acts = acts || to != e.kinds[k].spec
		l.to = append(l.to, to)
	}
	if e.options.Progress != nil {
		e.options.Progress(elapsed(min(e.now, e.horizon)), elapsed(e.horizon))
	}
	if e.scenario.Control.CrashRate > 0 && draw(e.seed, streamControl, 0, uint64(l.ticks)).uniform() < e.scenario.Control.CrashRate {
		return l.crash()
	}
	if !acts {
		return nil
	}
	if e.scenario.Control.Delay > 0 {
		l.writing = true
		e.agenda.set(slotWrite, e.now+ticks(e.scenario.Control.Delay))
		return nil
	}
	l.write(e)
	return nil
}

// crash loses the controller and starts another, from the state that the first one stored.
func (l *loop) crash() error {
	l.crashes++
	stored, err := json.Marshal(l.controller)
	if err != nil {
		return fmt.Errorf("store the controller's state: %w", err)
	}
	fresh, err := l.newController()
	if err != nil {
		return fmt.Errorf("start the controller anew: %w", err)
	}
	l.controller = fresh
	if l.forgets {
		return nil
	}
	if err := json.Unmarshal(stored, fresh); err != nil {
		return fmt.Errorf("restore the controller's state: %w", err)
	}
	return nil
}

// write carries out what was decided.
func (l *loop) write(e *engine) {
	l.writing = false
	e.agenda.set(slotWrite, never)
	if p := e.scenario.Control.RejectRate; p > 0 && draw(e.seed, streamControl, 1, uint64(l.ticks)).uniform() < p {
		l.refusals++
		return
	}
	l.from = l.from[:0]
	for k := range e.kinds {
		l.from = append(l.from, e.kinds[k].spec)
	}
	for k := range e.kinds {
		if from, to := l.from[k], l.to[k]; from != to {
			l.acted(e, &e.kinds[k], to > from)
			e.scale(int32(k), to)
		}
	}
	l.controller.Applied(e.at(e.now), l.from, l.to)
}

// acted counts a write.
func (l *loop) acted(e *engine, t *kind, up bool) {
	if e.now >= e.horizon {
		return
	}
	const soon = 600 * second
	l.actions++
	last, other := &t.lastUp, &t.lastDown
	if up {
		l.ups++
	} else {
		l.downs++
		last, other = other, last
	}
	if *other >= 0 && e.now-*other < soon {
		l.reversals++
	}
	*last = e.now
}

// note counts a decision's reason.
func (l *loop) note(d *scaling.Decision) {
	verdict, code := d.Verdict.String(), d.Code().String()
	for i := range l.reasons {
		if r := &l.reasons[i]; r.Code == code && r.Verdict == verdict {
			r.Count++
			return
		}
	}
	l.reasons = append(l.reasons, ReasonCount{Verdict: verdict, Code: code, Count: 1})
}

func (l *loop) sortedReasons() []ReasonCount {
	return slices.SortedFunc(slices.Values(l.reasons), func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Code, b.Code))
	})
}
