package controller

import (
	"fmt"
	"time"
)

// patience is by how much a round may be late, beside five intervals, before it counts as not made.
const patience = time.Minute

// finished notes that a round was made, and until when the next of its object has time.
func (c *Controller) finished(r *runner, every time.Duration) {
	now := c.config.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, r.until = now, r.due.Add(5*every+patience)
}

// Stalled is an error while rounds are overdue and none is made: the process is there, and does nothing. Rounds that end
// in errors are made. A controller without objects, as that of a process that waits to be the leader, has nothing to do.
func (c *Controller) Stalled() error {
	now := c.config.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.last) < patience {
		return nil
	}
	overdue := 0
	for _, r := range c.runners {
		if !r.until.IsZero() && now.After(r.until) {
			overdue++
		}
	}
	if overdue == 0 {
		return nil
	}
	return fmt.Errorf("no round was made for %s, and those of %d objects are overdue", now.Sub(c.last).Round(time.Second), overdue)
}
