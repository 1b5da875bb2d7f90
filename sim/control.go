package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// A controller decides at each tick and carries out the decisions, with the duties that package loop has.
type controller struct {
	loop    *loop.Loop
	begin   func() (*loop.Loop, error) // makes a new loop
	step    *loop.Step
	ticks   int64
	writing bool
	forgets bool

	actions, ups, downs, reversals, refusals, crashes int64
	reasons                                           []ReasonCount
}

// newController returns the controller of a group. It stores the state only at a crash.
func newController(newGroup func() (scaling.Group, error), forgets bool) (*controller, error) {
	c := &controller{forgets: forgets, begin: func() (*loop.Loop, error) {
		group, err := newGroup()
		if err != nil {
			return nil, err
		}
		return loop.New(group, loop.Config{Volatile: true})
	}}
	var err error
	c.loop, err = c.begin()
	return c, err
}

// tick makes one decision.
func (c *controller) tick(e *engine) error {
	c.ticks++
	e.agenda.set(slotControl, e.now+ticks(e.scenario.Control.Interval))
	if c.writing {
		return nil
	}
	now := e.at(e.now)
	obs, targets := e.observer.look(e)
	c.loop.Read(now, targets...)
	c.step = c.loop.Decide(now, obs)
	if c.step.Err != nil {
		return c.step.Err
	}
	if e.options.Decision != nil {
		e.options.Decision(now, &obs, &c.step.GroupDecision)
	}
	for k := range c.step.Targets {
		d := &c.step.Targets[k]
		d.Replicas = min(max(d.Replicas, 0), MaxReplicas)
		if e.now < e.horizon {
			c.note(d)
		}
	}
	if e.options.Progress != nil {
		e.options.Progress(elapsed(min(e.now, e.horizon)), elapsed(e.horizon))
	}
	if e.scenario.Control.CrashRate > 0 && draw(e.seed, streamControl, 0, uint64(c.ticks)).Uniform() < e.scenario.Control.CrashRate {
		return c.crash()
	}
	if !c.step.Acts() {
		return nil
	}
	if e.scenario.Control.Delay > 0 {
		c.writing = true
		e.agenda.set(slotWrite, e.now+ticks(e.scenario.Control.Delay))
		return nil
	}
	c.write(e)
	return nil
}

// crash discards the controller and starts another one from the state that the first one stored.
func (c *controller) crash() error {
	c.crashes++
	stored, err := c.loop.State()
	if err != nil {
		return fmt.Errorf("store the controller's state: %w", err)
	}
	if c.loop, err = c.begin(); err != nil {
		return fmt.Errorf("start the controller anew: %w", err)
	}
	if c.forgets {
		return nil
	}
	if err := c.loop.Restore(stored); err != nil {
		return fmt.Errorf("restore the controller's state: %w", err)
	}
	return nil
}

// write carries out the decisions.
func (c *controller) write(e *engine) {
	c.writing = false
	e.agenda.set(slotWrite, never)
	p := e.scenario.Control.RejectRate
	rejected := p > 0 && draw(e.seed, streamControl, 1, uint64(c.ticks)).Uniform() < p
	if rejected {
		c.refusals++
	}
	for w := range c.loop.Writes() {
		if rejected {
			c.loop.Wrote(w, loop.Refused)
			continue
		}
		if t := &e.kinds[w.Index]; w.To != t.spec { // whatever the policy says that the count is
			c.acted(e, t, w.To > t.spec)
		}
		e.scale(int32(w.Index), w.To)
		c.loop.Wrote(w, loop.Applied)
	}
	c.loop.Advance(e.at(e.now))
}

// acted counts a change of a type's count.
func (c *controller) acted(e *engine, t *kind, up bool) {
	if e.now >= e.horizon {
		return
	}
	const soon = 600 * second
	c.actions++
	last, other := &t.lastUp, &t.lastDown
	if up {
		c.ups++
	} else {
		c.downs++
		last, other = other, last
	}
	if *other >= 0 && e.now-*other < soon {
		c.reversals++
	}
	*last = e.now
}

// note counts a decision's reason.
func (c *controller) note(d *scaling.Decision) {
	verdict, code := d.Verdict.String(), d.Code().String()
	for i := range c.reasons {
		if r := &c.reasons[i]; r.Code == code && r.Verdict == verdict {
			r.Count++
			return
		}
	}
	c.reasons = append(c.reasons, ReasonCount{Verdict: verdict, Code: code, Count: 1})
}

func (c *controller) sortedReasons() []ReasonCount {
	return slices.SortedFunc(slices.Values(c.reasons), func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Code, b.Code))
	})
}
