package keda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failedAgain is the time after which a failed round is made again, if the interval is longer.
const failedAgain = 15 * time.Second

// An object is a ScaledObject with its triggers and the goroutine that enqueues their rounds when they are due.
type object struct {
	engine  *Engine
	ref     Ref
	changed chan struct{} // signals new work
	entries []*entry      // guarded by the engine's mu
}

func (o *object) run() {
	e := o.engine
	defer e.wg.Done()
	defer o.end()
	for {
		now := e.c.Now()
		wait, more := o.enqueue(now)
		if !more {
			return
		}
		fire, stop := e.at(now.Add(wait))
		select {
		case <-fire:
		case <-o.changed:
		case <-e.ctx.Done():
		}
		stop()
	}
}

// enqueue adds the triggers whose round is due to the queue, except those that wait already or whose last round is still in
// progress. Before that it forgets triggers that are no longer needed. It returns the time until there is more to do. If no
// trigger is left, it removes the object from the engine, and more is false.
func (o *object) enqueue(now time.Time) (wait time.Duration, more bool) {
	e := o.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return 0, false
	}
	newest := newestOf(o.entries, func(t *entry) string { return t.plan.Identity })
	o.entries = slices.DeleteFunc(o.entries, func(t *entry) bool {
		why := t.over(now, e.c.Idle, newest[t.plan.Identity])
		if why != "" {
			o.forget(t, why)
		}
		return why != ""
	})
	wait = e.c.Idle
	for _, t := range o.entries {
		if !t.due.After(now) && !t.inLine {
			t.inLine = true
			e.queue.Add(t)
		}
		if t.due.After(now) {
			wait = min(wait, t.due.Sub(now))
		}
	}
	if len(o.entries) == 0 {
		delete(e.objects, o.ref)
	}
	return wait, len(o.entries) > 0
}

// newestOf returns the time of the last call for each group of triggers. The function of returns the group of a trigger;
// triggers without a group are left out.
func newestOf(entries []*entry, of func(*entry) string) map[string]time.Time {
	newest := make(map[string]time.Time, len(entries))
	for _, t := range entries {
		if asked := t.lastAsked(); of(t) != "" && asked.After(newest[of(t)]) {
			newest[of(t)] = asked
		}
	}
	return newest
}

// forget removes a trigger. A round in progress is cancelled, and closes the trigger when it has ended. The caller holds the
// engine's mu.
func (o *object) forget(t *entry, why string) {
	e := o.engine
	delete(e.triggers, t.key)
	e.places -= t.places
	e.count(t, -1)
	t.why = status.Error(codes.Unavailable, "the trigger of "+t.ref.String()+" ends: "+why)
	close(t.gone)
	e.queue.Forget(t)
	if t.cancel != nil {
		t.cancel()
	} else {
		t.plan.Trigger.Close()
	}
	e.c.Metrics.triggers.Dec()
	e.c.Logger.Info("trigger ends", "scaledObject", t.ref.String(), "metric", t.plan.Spec.Metric, "trigger", t.id, "because", why)
}

// end forgets the remaining triggers when the engine is closed. The engine may have another object of the same name by now.
func (o *object) end() {
	o.engine.mu.Lock()
	defer o.engine.mu.Unlock()
	for _, t := range o.entries {
		o.forget(t, shuttingDown)
	}
	o.entries = nil
	if o.engine.objects[o.ref] == o {
		delete(o.engine.objects, o.ref)
	}
}

// work makes the rounds of waiting triggers, at most EngineConfig.Rounds at once, until the engine is closed.
func (e *Engine) work() {
	defer e.wg.Done()
	places := make(chan struct{}, e.c.Rounds)
	for {
		places <- struct{}{}
		t, closed := e.queue.Get()
		if closed {
			return
		}
		e.wg.Add(1)
		go func() {
			defer e.wg.Done()
			e.round(t)
			<-places
		}()
	}
}

// start starts the round of a trigger, unless the trigger was forgotten while it waited. The time limit of the round counts
// from now.
func (e *Engine) start(t *entry) (ctx context.Context, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.isGone() || e.ctx.Err() != nil {
		return nil, false
	}
	ctx, t.cancel = context.WithTimeout(e.ctx, t.plan.Interval)
	return ctx, true
}

// round makes one round of a trigger.
func (e *Engine) round(t *entry) {
	defer e.queue.Done(t)
	ctx, ok := e.start(t)
	if !ok {
		return
	}
	began := e.c.Now()
	s, err := guarded(ctx, t.plan.Trigger, began)
	due := nextAfter(began, t.plan.Interval, s.Next, err)
	t.publish(s, err)
	e.c.Metrics.round(s, err, e.c.Now().Sub(began))
	switch {
	case err == nil:
		e.c.Logger.Debug("round", "scaledObject", t.ref.String(), "metric", s.Spec.Metric, "value", s.Value, "because", s.Because, "unknown", s.Unknown, "active", s.Active)
	case !t.isGone():
		e.c.Logger.Warn("round failed", "scaledObject", t.ref.String(), "metric", t.plan.Spec.Metric, "error", err)
	}
	e.ended(t, due, t.plan.unknown() == nil)
}

// nextAfter returns when the next round is due: after the interval, or when the last one asked for it.
func nextAfter(began time.Time, interval time.Duration, asked time.Time, err error) time.Time {
	switch due := began.Add(interval); {
	case err != nil:
		return began.Add(min(interval, failedAgain))
	case asked.After(began) && asked.Before(due.Add(interval)):
		return asked
	default:
		return due
	}
}

// ended records that a round has ended, when the next is due, and whether the ScaledObject is known.
func (e *Engine) ended(t *entry, due time.Time, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t.cancel()
	t.cancel, t.inLine, t.due = nil, false, due
	if t.isGone() {
		t.plan.Trigger.Close()
		return
	}
	if t.known != known {
		e.count(t, -1)
		t.known = known
		e.count(t, 1)
	}
	e.objects[t.ref].signal()
}

// signal wakes the object's goroutine.
func (o *object) signal() {
	select {
	case o.changed <- struct{}{}:
	default: // it has been woken already
	}
}

// guarded makes a round and turns a panic into an error: one trigger must not end the process for all others.
func guarded(ctx context.Context, t Trigger, now time.Time) (s Snapshot, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the round panicked: %v", p)
		}
	}()
	s, err = t.Round(ctx, now)
	if err == nil && s.At.IsZero() {
		err = errors.New("the round returned a snapshot without a time")
	}
	return s, err
}
