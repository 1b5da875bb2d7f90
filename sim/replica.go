package sim

// A job is a request on its way through the system. Jobs live in a pool and are identified by their index in it.
type job struct {
	came     int64 // number of its arrival
	arrived  int64 // time at the router
	joined   int64 // time at the replica
	firstOut int64 // time of the first token, if one was written
	input    int32
	output   int32
	written  int32 // tokens generated so far
	prefill  int32 // tokens that must still be computed before the next one can be generated
	held     int64 // tokens in the KV cache of its replica
	until    int64 // step of its replica after which it is done
	prev     int32 // neighbours in the batch, in order of admission; -1 for none
	next     int32
	queued   bool // its time in the queue has been counted
}

// A life is a state of a replica's life.
type life int8

const (
	pending      life = iota // waits for the quota
	provisioning             // waits for its machine
	loading                  // loads the model
	ready
	draining // finishes its batch
	gone
)

// A replica is one server: a queue, and a batch that is computed in steps.
//
// Changes that can only happen at the end of a step are only looked for there. A stretch is a sequence of steps in which
// nothing changes but the lengths of the sequences: it is one event.
type replica struct {
	name    string
	number  int64 // number of its start; never used twice
	slot    int32 // in the agenda
	kind    int32 // type
	weight  float64
	speed   *speed
	life    life
	role    Role
	asked   int64 // when it was requested
	served  bool  // whether it was ever ready
	crashAt int64 // when it will crash, if it is still there

	waiting queue
	oldest  int32 // ends of the batch's list; -1 for none
	newest  int32
	running int32 // jobs in the batch
	filling queue // jobs of the batch whose prompt is still computed; always the newest ones
	decodes heap  // jobs of the batch that decode, by the step after which they are done and their arrival
	held    int64 // tokens in the KV cache; a shared block counts once for each sequence that uses it
	shared  int64 // what held counts too much: shared tokens beyond the first use
	ahead   int64 // prompt tokens that wait or are not yet computed
	step    int64 // steps since it started
	delays  *stream
	cache   *prefixCache // nil without prefix caching

	// In a fleet with roles: KV caches that wait to be fetched or are in transfer to this replica, which no step reads, and
	// those that have arrived.
	unread   int64 // tokens, of held
	kept     int32 // jobs whose cache waits to be fetched
	arrived  queue
	begun    []int32 // jobs that were added to the batch since the step began
	link     int64   // time of a token on the link
	linkFree int64   // time at which it is free

	busy   bool
	from   int64 // when the stretch began
	length int64 // number of its steps
	first  int64 // time of its first step
	growth int64 // by how much each step is longer than the one before
	fill   int32 // prompt tokens in it; only a stretch of one step has any

	// Counters since its process started: tokens after the first of an answer, the seconds that they took, and first tokens.
	decoded, decoding float64
	firsts            int64
	found             float64 // prompt tokens of requests with a first token that were in the prefix cache

	meter              *meter  // nil if no metric uses it
	ttft, tpot, queued []int64 // histograms, cumulative over time
	seen               []int64 // their state at the last scrape
	values             [4]float64
	scraped            int64 // time of the last values; -1 for never
}

// inUse returns the share of the KV cache that sequences hold at a time within the stretch.
func (r *replica) inUse(t int64) float64 {
	return float64(r.kvAt(t)-r.shared) / float64(r.speed.room)
}

// load counts the jobs of a replica: waiting, in the batch, and with a computed KV cache that waits to be fetched.
func (r *replica) load() int32 { return int32(r.waiting.Len()) + r.running + r.kept }

// idle reports whether a replica has no job in the batch and no KV cache that waits to be fetched.
func (r *replica) idle() bool { return r.running == 0 && r.kept == 0 }

// kvAt returns the tokens in the KV cache at a time within the stretch.
func (r *replica) kvAt(t int64) int64 {
	if !r.busy || len(r.decodes) == 0 {
		return r.held
	}
	done := steps(t-r.from+1, r.first, r.growth, r.length) - 1 // steps that have ended by t
	return r.held + int64(len(r.decodes))*done
}

// join gives a job to a ready replica.
func (e *engine) join(r *replica, j int32) {
	e.jobs[j].joined = e.now
	e.waiting++
	e.trimmed(r)
	e.expect(r, j)
	r.ahead += e.ahead(j)
	r.waiting.Push(j)
	switch {
	case !r.busy:
		e.begin(r)
	case r.length > 1 && r.waiting.Len() == 1 && r.running < r.speed.maxSeqs:
		// The stretch ends with the present step (a step that ends now has ended), so that the job can be admitted if there
		// will be room.
		n := steps(e.now-r.from+1, r.first, r.growth, r.length)
		if r.held+int64(len(r.decodes))*(n+1)+e.ahead(j) > r.speed.room+r.shared {
			return // the tokens that are expected in the cache take no memory at best
		}
		r.length = n
		e.agenda.set(r.slot, min(r.end(), r.crashAt))
	}
}

// need returns the tokens of KV cache that a job takes when it is admitted: its prompt and the tokens generated so far.
func (e *engine) need(j int32) int64 { return int64(e.jobs[j].input) + int64(e.jobs[j].written) }

// boundary ends a stretch: finished jobs leave, and the next stretch begins.
func (e *engine) boundary(r *replica) {
	r.busy = false
	r.step += r.length
	n := float64(len(r.decodes))
	r.decoded += n * float64(r.length)
	r.decoding += n * seconds(e.now-r.from)
	r.held += int64(len(r.decodes)) * r.length
	r.trim(r.held)
	e.filled(r)
	for len(r.decodes) > 0 && r.decodes[0].at <= r.step {
		j := r.decodes[0].number
		e.leave(r, j)
		e.finish(r, j)
	}
	e.begin(r)
}

// filled assigns the step's prompt tokens to the jobs in order. Jobs whose prompt is complete get their first token, or
// their next one after a preemption.
func (e *engine) filled(r *replica) {
	for left := r.fill; left > 0; {
		j := r.filling.front()
		b := &e.jobs[j]
		n := min(left, b.prefill)
		b.prefill -= n
		r.ahead -= int64(n)
		left -= n
		e.link(r, j, b.held-int64(b.prefill))
		if b.prefill > 0 {
			break
		}
		r.filling.pop()
		b.written++
		r.firsts++
		if b.written == 1 {
			b.firstOut = e.now
			e.bounds.ttft.count(r.ttft, seconds(e.now-b.joined))
			r.meter.add(TTFTs, seconds(e.now-b.joined))
			found := e.found(r, j)
			r.found += found
			r.meter.add(Prefilled, float64(b.input)-found)
			e.bounds.routerTTFT.count(e.routerTTFT, seconds(e.now-b.arrived))
		}
		if e.apart != nil && b.written == 2 && e.apart.of[j].secondOut == 0 {
			e.apart.of[j].secondOut = e.now
		}
		if b.written >= b.output {
			e.leave(r, j)
			e.finish(r, j)
			continue
		}
		if r.role == Prefill {
			e.keep(r, j)
			continue
		}
		b.until = r.step + int64(b.output-b.written)
		r.decodes.push(e.places, entry{b.until, b.came, j})
	}
	r.fill = 0
}

// begin admits the jobs that fit and starts the next stretch. A replica without work is idle.
func (e *engine) begin(r *replica) {
	if r.role == Decode {
		r.begun = r.begun[:0]
		e.take(r)
	}
	preempted := false
	for r.held+int64(len(r.decodes)) > r.speed.room+r.shared {
		e.preempt(r)
		preempted = true
	}
	r.trim(r.held + int64(len(r.decodes))) // the decoding jobs get the memory of this step first
	if preempted && r.life == draining {
		e.reroute(r)
	}
	for !preempted && r.life == ready && r.waiting.Len() > 0 && r.running < r.speed.maxSeqs {
		j := r.waiting.front()
		if !e.fits(r, j) {
			break
		}
		r.waiting.pop()
		if r.role == Decode && e.apart.of[j].stage == kept {
			e.ask(r, j)
			e.take(r)
		} else {
			e.admit(r, j)
		}
		r.trim(r.held + int64(len(r.decodes)))
	}
	n := int64(len(r.decodes))
	r.fill = 0
	for i := 0; i < r.filling.Len() && r.fill < r.speed.budget; i++ {
		r.fill += min(e.jobs[*r.filling.At(i)].prefill, r.speed.budget-r.fill)
	}
	if n == 0 && r.fill == 0 {
		if r.life == draining && r.idle() {
			e.retire(r)
			return
		}
		e.agenda.set(r.slot, r.crashAt)
		return
	}
	r.busy, r.from, r.length = true, e.now, 1
	r.first, r.growth = r.speed.first(int32(n), r.fill, r.held-r.unread), r.speed.kv*n
	if r.role == Decode {
		e.started(r)
	}
	if r.fill == 0 {
		r.length = min(r.decodes[0].at-r.step, (r.speed.room+r.shared-r.held)/n)
	}
	if preempted && r.cache != nil {
		r.length = 1 // a preempted job may share more than it did, and return after one step
	}
	e.agenda.set(r.slot, min(r.end(), r.crashAt))
}

// end returns when the stretch ends, or never if that is after the end of any run.
func (r *replica) end() int64 {
	n, left := float64(r.length), float64(ticks(MaxDuration)-r.from)
	if n*float64(r.first)+n*(n-1)/2*float64(r.growth) > left {
		return never
	}
	return r.from + sum(r.length, r.first, r.growth)
}

// fits reports whether a replica has room for a job. Idle blocks of its prefix cache can be evicted; blocks of the job that
// others use take no further memory.
func (e *engine) fits(r *replica, j int32) bool {
	_, shared := e.matched(r, j)
	return r.held+int64(len(r.decodes))+e.need(j) <= r.speed.room+r.shared+shared
}

// admit puts a job into the batch and reserves the KV cache of its tokens.
func (e *engine) admit(r *replica, j int32) {
	b := &e.jobs[j]
	b.held = e.need(j)
	b.prefill = int32(b.held - e.hit(r, j))
	r.held += b.held
	e.enlist(r, j)
	r.running++
	r.filling.Push(j)
	e.waiting--
	e.running++
	if !b.queued {
		b.queued = true
		e.bounds.queue.count(r.queued, seconds(e.now-b.joined))
		e.queueTimes.add(seconds(e.now - b.arrived))
	}
}

// preempt takes the newest job out of the batch and puts it first in the queue, to be computed again.
func (e *engine) preempt(r *replica) {
	j := r.newest
	e.preempted++
	if e.places[j] < 0 { // the newest job whose prompt is computed
		r.filling.PopBack()
		r.ahead -= int64(e.jobs[j].prefill)
	}
	e.leave(r, j)
	if r.cache != nil {
		e.prompts[j].preempted = true
		e.expect(r, j)
	}
	r.ahead += e.ahead(j)
	r.waiting.PushFront(j)
	e.waiting++
}

// leave takes a job out of the batch.
func (e *engine) leave(r *replica, j int32) {
	b := &e.jobs[j]
	if place := e.places[j]; place >= 0 {
		// Each step since it began to decode generated a token and put one into the cache.
		b.written = b.output - int32(b.until-r.step)
		r.decodes.remove(e.places, place)
		held := int64(b.input) + int64(b.written) - 1
		e.link(r, j, held)
		r.held -= held
	} else {
		r.held -= b.held
	}
	e.unlink(r, j)
	e.delist(r, j)
}

// enlist puts a job at the end of the batch's list.
func (e *engine) enlist(r *replica, j int32) {
	b := &e.jobs[j]
	b.prev, b.next = r.newest, -1
	if r.newest >= 0 {
		e.jobs[r.newest].next = j
	} else {
		r.oldest = j
	}
	r.newest = j
}

// delist takes a job out of the batch and its list.
func (e *engine) delist(r *replica, j int32) {
	b := &e.jobs[j]
	if b.prev >= 0 {
		e.jobs[b.prev].next = b.next
	} else {
		r.oldest = b.next
	}
	if b.next >= 0 {
		e.jobs[b.next].prev = b.prev
	} else {
		r.newest = b.prev
	}
	r.running--
	e.running--
}
