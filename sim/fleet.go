package sim

import (
	"strconv"

	"github.com/inferscale/inferscale/scaling"
)

// kind is a Type within a run.
type kind struct {
	*Type

	speed  speed
	link   int64 // transfer time of a token of a KV cache on its link
	spec   int32 // replicas asked for
	ready  int32 // of these, ready
	alive  int32 // replicas that cost: all but those that wait for the quota
	starts int64 // up to the horizon

	finished int64
	area     wide  // replica-time up to the horizon
	longest  int64 // longest complete start so far, from the request to ready
	starting int64 // number of the next start, which selects its random delays

	lastUp, lastDown int64 // times of the last changes of the count, -1 for none
}

// scale starts or stops replicas of a type until its count is to.
func (e *engine) scale(k int32, to int32) {
	t := &e.kinds[k]
	e.account()
	for t.spec < to {
		t.spec++
		e.start(k)
	}
	for t.spec > to {
		t.spec--
		e.stop(k)
	}
	e.grant(k)
}

// start requests a replica.
func (e *engine) start(k int32) *replica {
	t := &e.kinds[k]
	r := &replica{
		number: e.numbers, slot: e.takeSlot(), kind: k, weight: t.Weight, speed: &t.speed, life: pending, role: t.Role, link: t.link,
		asked: e.now, crashAt: never, oldest: -1, newest: -1, scraped: -1,
		ttft: e.observer.counts(TTFT), tpot: e.observer.counts(TPOT), queued: e.observer.counts(QueueTime),
	}
	if n := e.scenario.BlockTokens; n > 0 && t.Role != Decode {
		r.cache = newPrefixCache(int64(n))
	}
	r.seen = make([]int64, len(r.ttft)+len(r.tpot)+len(r.queued))
	if e.scenario.tallied() || e.options.Pages != nil {
		r.meter = &meter{now: e.newTallies(), read: e.newTallies()}
	}
	r.name = t.Name + "-" + strconv.FormatInt(r.number, 10)
	if t.Name == "" {
		r.name = "replica" + r.name
	}
	e.numbers++
	e.agenda.ranks[r.slot] = r.number
	e.bySlot[r.slot-firstReplica] = r
	e.fleet = append(e.fleet, r)
	return r
}

// after returns the time that long from now, or never if that is beyond the end of any run.
func (e *engine) after(wait int64) int64 {
	if wait > ticks(MaxDuration)-e.now {
		return never
	}
	return e.now + wait
}

// grant starts pending replicas, in order of their numbers, as far as the quota allows.
func (e *engine) grant(k int32) {
	t := &e.kinds[k]
	for _, r := range e.fleet {
		if r.kind != k || r.life != pending {
			continue
		}
		if t.Quota > 0 && t.alive >= t.Quota {
			return
		}
		t.alive++
		if e.now < e.horizon {
			t.starts++
			e.starts++
			e.peak = max(e.peak, e.alive())
		}
		r.life = provisioning
		r.delays = draw(e.seed, streamStartup, uint64(k), uint64(t.starting))
		t.starting++
		e.agenda.set(r.slot, e.after(t.Startup.Provision.draw(r.delays)))
	}
}

func (e *engine) alive() (n int32) {
	for i := range e.kinds {
		n += e.kinds[i].alive
	}
	return n
}

// wake processes an event of a replica's slot.
func (e *engine) wake(r *replica) {
	t := &e.kinds[r.kind]
	switch r.life {
	case provisioning:
		if r.delays.Uniform() < t.Startup.FailureRate {
			e.agenda.set(r.slot, e.after(t.Startup.Provision.draw(r.delays)))
			return
		}
		r.life = loading
		e.agenda.set(r.slot, e.after(t.Startup.Load.draw(r.delays)))
	case loading:
		e.open(r)
	case ready, draining:
		if e.now == r.crashAt {
			e.crash(r)
			return
		}
		e.boundary(r)
	case pending, gone:
	}
}

// open makes a replica ready.
func (e *engine) open(r *replica) {
	e.account()
	t := &e.kinds[r.kind]
	if !r.served {
		r.served, t.longest = true, max(t.longest, e.now-r.asked)
	}
	r.life = ready
	t.ready++
	e.ready = insertReplica(e.ready, r)
	e.poolOf(r).add(r)
	if t.CrashesPerHour > 0 {
		wait := r.delays.Exponential() * 3600 * second / t.CrashesPerHour
		r.crashAt = e.after(max(1, int64(min(wait, float64(ticks(MaxDuration))))))
	}
	e.agenda.set(r.slot, r.crashAt)
	if e.backlog.Len() > 0 || e.apart != nil && e.apart.stranded.Len() > 0 {
		e.agenda.set(slotReady, e.now)
	}
}

// stuck reports whether the controller considers that a replica will not start: it was never ready, and waits for the quota
// or is past the deadline of a start.
func (e *engine) stuck(r *replica) bool {
	switch {
	case r.served:
		return false
	case r.life == pending:
		return true
	}
	return elapsed(e.now-r.asked) > scaling.StartDeadline(elapsed(e.kinds[r.kind].longest))
}

// stop removes a replica of a type: the newest that is not ready, else the one with the least load.
func (e *engine) stop(k int32) {
	var out *replica
	for _, r := range e.fleet {
		if r.kind != k || r.life == draining {
			continue
		}
		switch {
		case out == nil, r.life != ready:
			out = r // the later number is the newer one
		case out.life == ready && r.load() <= out.load():
			out = r
		}
	}
	if out.life != ready {
		e.retire(out)
		return
	}
	e.unready(out)
	out.life = draining
	out.crashAt = never
	e.reroute(out)
	switch {
	case out.idle():
		e.retire(out)
	case out.busy:
		e.agenda.set(out.slot, out.end())
	default:
		e.agenda.set(out.slot, never)
	}
}

// unready removes a replica from the router.
func (e *engine) unready(r *replica) {
	e.kinds[r.kind].ready--
	e.ready = removeReplica(e.ready, r)
	e.poolOf(r).remove(r)
}

// reroute sends the requests that wait in a replica to others.
func (e *engine) reroute(r *replica) {
	for r.waiting.Len() > 0 {
		j := r.waiting.pop()
		r.ahead -= e.ahead(j)
		if e.prompts != nil {
			e.prompts[j].preempted = false
		}
		e.waiting--
		e.retried++
		if e.apart != nil && e.jobs[j].written > 0 {
			e.apart.of[j].to = nil
			e.hand(j)
		} else {
			e.route(j)
		}
	}
}

// crash ends a replica's work and makes it load its model again.
func (e *engine) crash(r *replica) {
	e.account()
	e.unready(r)
	r.life, r.busy, r.crashAt = loading, false, never
	for r.newest >= 0 {
		j := r.newest
		if e.places[j] < 0 {
			r.filling.PopBack()
		}
		e.leave(r, j)
		b := &e.jobs[j]
		b.written, b.firstOut = 0, 0 // its client sends the request again, and has no token yet
		if e.apart != nil {
			e.apart.of[j] = handover{}
		}
		r.waiting.PushFront(j)
		e.waiting++
		if e.prompts != nil {
			e.prompts[j].expected = 0
		}
	}
	for i := range r.waiting.Len() { // a preempted request was one of this process, too
		if j := *r.waiting.At(i); e.apart == nil || e.apart.of[j].stage == local {
			e.jobs[j].written, e.jobs[j].firstOut = 0, 0
		}
	}
	var lost spilled
	if e.apart != nil {
		lost = e.spill(r)
	}
	if r.cache != nil {
		r.cache.reset()
	}
	clear(r.ttft)
	clear(r.tpot)
	clear(r.queued)
	r.meter.reset()
	r.decoded, r.decoding, r.firsts, r.found = 0, 0, 0, 0
	r.ahead, r.step, r.fill, r.scraped = r.aheadOfQueue(e), 0, 0, -1
	e.reroute(r)
	e.agenda.set(r.slot, e.after(e.kinds[r.kind].Startup.Load.draw(r.delays)))
	e.recover(lost)
}

// aheadOfQueue counts the prompt tokens of the waiting requests.
func (r *replica) aheadOfQueue(e *engine) (tokens int64) {
	for i := range r.waiting.Len() {
		tokens += e.ahead(*r.waiting.At(i))
	}
	return tokens
}

// retire removes a replica.
func (e *engine) retire(r *replica) {
	e.account()
	k := r.kind
	if r.life != pending {
		e.kinds[k].alive--
	}
	r.life = gone
	e.agenda.set(r.slot, never)
	e.bySlot[r.slot-firstReplica] = nil
	e.freeSlots = append(e.freeSlots, r.slot)
	e.fleet = removeReplica(e.fleet, r)
	e.grant(k)
}

func (e *engine) takeSlot() int32 {
	if n := len(e.freeSlots); n > 0 {
		s := e.freeSlots[n-1]
		e.freeSlots = e.freeSlots[:n-1]
		return s
	}
	e.bySlot = append(e.bySlot, nil)
	s := firstReplica + int32(len(e.bySlot)) - 1
	e.agenda.grow(int(s) + 1)
	return s
}
