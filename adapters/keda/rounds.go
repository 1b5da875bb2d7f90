package keda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// An object is a ScaledObject with its triggers and the goroutine that makes their rounds.
type object struct {
	engine  *Engine
	ref     Ref
	wake    chan struct{}
	entries []*entry // guarded by the engine's mu
}

func (o *object) run() {
	e := o.engine
	defer e.wg.Done()
	defer o.end()
	for {
		due, next, more := o.due(e.c.Now())
		if !more {
			return
		}
		var rounds sync.WaitGroup
		for _, t := range due {
			rounds.Add(1)
			go func() {
				defer rounds.Done()
				o.round(t)
			}()
		}
		rounds.Wait()
		if len(due) > 0 {
			continue // their next rounds are to be reckoned with
		}
		fire, stop := e.c.After(max(next.Sub(e.c.Now()), 0))
		select {
		case <-fire:
		case <-o.wake:
		case <-e.ctx.Done():
		}
		stop()
	}
}

// due returns the triggers whose rounds are due, or when the next is, after those that are not needed any more have
// gone. Without any left, more is false, and the object is gone from the engine.
func (o *object) due(now time.Time) (due []*entry, next time.Time, more bool) {
	e := o.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, time.Time{}, false
	}
	newest := o.newest()
	o.entries = slices.DeleteFunc(o.entries, func(t *entry) bool {
		why := t.over(now, e.c.Idle, newest[t.plan.Identity])
		if why != "" {
			o.forget(t, why)
		}
		return why != ""
	})
	for _, t := range o.entries {
		switch {
		case !t.due.After(now):
			due = append(due, t)
		case next.IsZero() || t.due.Before(next):
			next = t.due
		}
	}
	if len(o.entries) == 0 {
		delete(e.objects, o.ref)
	}
	return due, next, len(o.entries) > 0
}

// newest returns when each identity was last asked for.
func (o *object) newest() map[string]time.Time {
	newest := make(map[string]time.Time, len(o.entries))
	for _, t := range o.entries {
		if asked := t.lastAsked(); t.plan.Identity != "" && asked.After(newest[t.plan.Identity]) {
			newest[t.plan.Identity] = asked
		}
	}
	return newest
}

// forget drops a trigger. The engine's mu is held.
func (o *object) forget(t *entry, why string) {
	e := o.engine
	delete(e.triggers, t.key)
	close(t.gone)
	t.plan.Trigger.Close()
	e.c.Metrics.ended(t.ref, t.plan.Spec.Metric)
	e.c.Logger.Info("trigger ends", "scaledObject", t.ref.String(), "metric", t.plan.Spec.Metric, "because", why)
}

// end drops what is left when the engine is closed.
func (o *object) end() {
	o.engine.mu.Lock()
	defer o.engine.mu.Unlock()
	for _, t := range o.entries {
		o.forget(t, "the scaler is shutting down")
	}
	o.entries = nil
	delete(o.engine.objects, o.ref)
}

// round makes one round of a trigger.
func (o *object) round(t *entry) {
	e := o.engine
	ctx, cancel := context.WithTimeout(e.ctx, t.plan.Interval)
	defer cancel()
	began := e.c.Now()
	s, err := guarded(ctx, t.plan.Trigger, began)
	t.due = began.Add(t.plan.Interval)
	if err == nil && s.Next.After(began) && s.Next.Before(t.due.Add(t.plan.Interval)) {
		t.due = s.Next
	}
	t.publish(s, err)
	e.c.Metrics.round(t, s, err, e.c.Now().Sub(began))
	switch {
	case err == nil:
		e.c.Logger.Debug("round", "scaledObject", t.ref.String(), "metric", s.Spec.Metric, "value", s.Value, "because", s.Because, "unknown", s.Unknown, "active", s.Active)
	case e.ctx.Err() == nil:
		e.c.Logger.Warn("round failed", "scaledObject", t.ref.String(), "metric", t.plan.Spec.Metric, "error", err)
	}
}

// guarded makes a round whose panic is an error: one trigger must not end the answers to all others.
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
