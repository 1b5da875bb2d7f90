package sim

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Gateway holds requests while no replica is ready, as llm-d's endpoint picker with flow control or Knative's activator
// does, and sends them to the first ready replica, in order. The zero value holds any number of them without a timeout.
type Gateway struct {
	// Queue is how many requests it holds at most; any further one is rejected at once. 0 is no limit.
	Queue int32 `json:"queue"`
	// Timeout is how long it holds a request; after that its client gets an error. A replica whose start ends at exactly
	// that time still gets the request; one that is requested only then does not. 0 is no limit.
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
	if g.Queue > 0 && e.backlog.Len() >= int(g.Queue) {
		e.rejected++
		e.lose(j)
		return
	}
	e.jobs[j].joined = e.now
	e.backlog.Push(j)
	e.heldUntil()
}

// heldUntil sets the time at which the first held job reaches the timeout.
func (e *engine) heldUntil() {
	switch timeout := e.scenario.Gateway.Timeout; {
	case timeout == 0:
	case e.backlog.Len() == 0:
		e.agenda.set(slotHeld, never)
	default:
		e.agenda.set(slotHeld, e.jobs[e.backlog.front()].joined+ticks(timeout))
	}
}

// expire ends the wait of the first held job.
func (e *engine) expire() {
	j := e.backlog.pop()
	b := &e.jobs[j]
	e.expired++
	until := e.now
	if b.written > 0 { // it was preempted, and has a first token
		until = b.firstOut
	}
	e.ttftTimes.add(seconds(until - b.arrived))
	if !b.queued {
		e.queueTimes.add(seconds(e.now - b.arrived))
	}
	e.lose(j)
	e.heldUntil()
}

// resume sends the held jobs to the replicas that have become ready.
func (e *engine) resume() {
	for e.backlog.Len() > 0 && len(e.takers.ready) > 0 {
		e.route(e.backlog.pop())
	}
	e.heldUntil()
	for e.apart != nil && e.apart.stranded.Len() > 0 && len(e.apart.decoders.ready) > 0 {
		e.hand(e.apart.stranded.pop())
	}
}

// lose ends a job that gets no answer.
func (e *engine) lose(j int32) {
	e.count(-1)
	e.sojourns.add(1, e.now-e.jobs[j].arrived)
	if e.users != nil {
		e.users.waited(e, j, e.users.Duration())
	}
	e.freeJobs = append(e.freeJobs, j)
}
