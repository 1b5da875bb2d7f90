package sim

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Gateway holds requests while no replica is ready, as llm-d's endpoint picker with flow control or Knative's activator,
// and gives them to the first that is, in order. The zero value holds them all, for ever.
type Gateway struct {
	// Queue is how many it holds at most; more are rejected at once. 0 is no limit.
	Queue int32 `json:"queue"`
	// Timeout is how long it holds a request; then its client has an error. A replica whose start ends at that very time
	// still gets it; one that is asked for only then does not. 0 is no limit.
	Timeout time.Duration `json:"timeout"`
}

// Validate reports every wrong field at once, under field.
func (g Gateway) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(g.Queue >= 0, field+".queue", g.Queue, "must not be negative")
	e.Check(g.Timeout >= 0 && g.Timeout <= 24*time.Hour, field+".timeout", g.Timeout, "must be within 0 and 24h")
	return e.Err()
}

// hold keeps a job until a replica is ready.
func (e *engine) hold(j int32) {
	g := e.scenario.Gateway
	if g.Queue > 0 && e.backlog.len() >= int(g.Queue) {
		e.rejected++
		e.lose(j)
		return
	}
	e.jobs[j].joined = e.now
	e.backlog.push(j)
	e.heldUntil()
}

// heldUntil sets when the first job that is held has been so for too long.
func (e *engine) heldUntil() {
	switch timeout := e.scenario.Gateway.Timeout; {
	case timeout == 0:
	case e.backlog.len() == 0:
		e.agenda.set(slotHeld, never)
	default:
		e.agenda.set(slotHeld, e.jobs[e.backlog.front()].joined+ticks(timeout))
	}
}

// expire ends the wait of the first job that is held.
func (e *engine) expire() {
	j := e.backlog.pop()
	b := &e.jobs[j]
	e.expired++
	e.ttftTimes.add(seconds(e.now - b.arrived))
	if !b.queued {
		e.queueTimes.add(seconds(e.now - b.arrived))
	}
	e.lose(j)
	e.heldUntil()
}

// resume gives what is held to replicas.
func (e *engine) resume() {
	for e.backlog.len() > 0 { // the router spreads it once more of them are ready
		e.route(e.backlog.pop())
	}
	e.heldUntil()
}

// lose lets a job go that will have no answer.
func (e *engine) lose(j int32) {
	e.count(-1)
	e.sojourns.add(1, e.now-e.jobs[j].arrived)
	e.freeJobs = append(e.freeJobs, j)
}
