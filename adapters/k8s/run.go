package k8s

import (
	"context"
	"time"
)

// run ticks until ctx ends.
func (e *engine) run(ctx context.Context) error {
	for ctx.Err() == nil {
		outcomes := e.tick(ctx)
		fire, stop := e.After(e.wait(outcomes, e.Now()))
		select {
		case <-fire:
		case <-ctx.Done():
		}
		stop()
	}
	return nil
}

// wait returns the time until the next round: the interval from the beginning of the last one, less the jitter, or
// until a decision's Next if that is earlier. It is at least leastWait, or the interval where that is shorter.
func (e *engine) wait(outcomes []Outcome, now time.Time) time.Duration {
	began := outcomes[0].At
	interval := e.Interval - time.Duration(e.Jitter*e.Random()*float64(e.Interval))
	next := began.Add(interval)
	for i := range outcomes {
		if n := outcomes[i].Next; !n.IsZero() && n.After(began) && n.Before(next) {
			next = n
		}
	}
	return min(max(next.Sub(now), min(leastWait, e.Interval)), e.Interval)
}

func (e *engine) close() {
	if e.Metrics == nil || e.closed {
		return
	}
	e.closed = true
	for _, m := range e.members {
		e.Metrics.release(m.target)
	}
}
