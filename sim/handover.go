package sim

import (
	"cmp"
	"slices"
)

// stage says where the KV cache of a job is, in a fleet with roles.
type stage int8

const (
	local stage = iota // in the replica that has the job, if it exists
	kept               // in the prefill replica; the job waits in a decode replica, or for one
	asked              // in the prefill replica; the decode replica has reserved room for it, and the link is busy
	sent               // in transfer
	came               // in the decode replica, which adds the job to its batch at the end of its step
)

// A handover is the transfer of a job's KV cache from the prefill replica that computed it to the decode replica.
type handover struct {
	stage     stage
	from, to  *replica // from: nil once the cache has arrived; to: nil until it is chosen; both nil once the job is in the batch
	sends     int64    // when the link of from begins with it, once it is asked for
	receives  int64    // when that of to does, once it is sent
	cameAt    int64
	secondOut int64 // time of the second token; 0 for none yet
}

// apart is the state of a run in a fleet with roles. Computed prompts are handed to decode replicas after all steps that end
// at that time, and so are the caches that arrive at that time.
type apart struct {
	of       []handover // of jobs
	agenda   heap       // of jobs, by time and in the order in which they were added
	places   []int32
	numbers  int64
	decoders pool
	stranded queue // jobs with a first token, while no decode replica is ready
	room     int64 // the smallest KV cache of the types that decode

	count       int64
	waits, gaps sketch
	lost        [came + 1]int64 // KV caches lost in crashes, by their stage
}

// A pool is a set of ready replicas among which a router chooses.
type pool struct {
	ready []*replica // in order of their numbers
	turn  int
}

func (p *pool) add(r *replica) { p.ready = insertReplica(p.ready, r) }

func (p *pool) remove(r *replica) {
	place := slices.Index(p.ready, r)
	p.ready = slices.Delete(p.ready, place, place+1)
	if p.turn > place {
		p.turn--
	}
}

func removeReplica(from []*replica, r *replica) []*replica {
	place := slices.Index(from, r)
	return slices.Delete(from, place, place+1)
}

func insertReplica(in []*replica, r *replica) []*replica {
	place, _ := slices.BinarySearchFunc(in, r.number, func(o *replica, n int64) int { return cmp.Compare(o.number, n) })
	return slices.Insert(in, place, r)
}

func newApart(s *Scenario, sketches *buckets) *apart {
	if !s.apart() {
		return nil
	}
	a := &apart{room: never, waits: newSketch(sketches), gaps: newSketch(sketches)}
	for i := range s.Types {
		if t := &s.Types[i]; t.Role == Decode {
			a.room = min(a.room, t.Server.KVTokens)
		}
	}
	return a
}

// poolOf returns the pool of a replica.
func (e *engine) poolOf(r *replica) *pool {
	if r.role == Decode {
		return &e.apart.decoders
	}
	return &e.takers
}

// due schedules the next change of a job's handover.
func (e *engine) due(j int32, at int64) {
	a := e.apart
	for len(a.places) < len(e.jobs) {
		a.places = append(a.places, -1)
	}
	a.numbers++
	a.agenda.push(a.places, entry{at, a.numbers, j})
	e.agenda.set(slotTransfer, a.agenda.due())
}

// undue removes a job from the agenda, if it is on it.
func (e *engine) undue(j int32) {
	a := e.apart
	if int(j) >= len(a.places) || a.places[j] < 0 {
		return
	}
	a.agenda.remove(a.places, a.places[j])
	e.agenda.set(slotTransfer, a.agenda.due())
}

// transfer makes the next change of a job's handover.
func (e *engine) transfer() {
	j := e.apart.agenda[0].number
	e.undue(j)
	h := &e.apart.of[j]
	switch h.stage {
	case kept:
		e.hand(j)
	case asked:
		e.send(j) // the job waited for the link, which an earlier transfer used
	case sent:
		e.arrives(j)
		e.disturb(h.to)
	case local, came:
	}
}

// keep takes a job out of the batch of the prefill replica and leaves its KV cache there.
func (e *engine) keep(r *replica, j int32) {
	b := &e.jobs[j]
	e.delist(r, j)
	r.kept++
	r.unread += b.held
	e.residence += (seconds(e.now-b.joined) - e.residence) / 64
	if e.prompts != nil {
		e.prompts[j].expected = 0
	}
	e.apart.of[j] = handover{stage: kept, from: r}
	e.due(j, e.now)
}

// hand gives a job with a first token to a decode replica, or keeps it until one is ready.
func (e *engine) hand(j int32) {
	a := e.apart
	if len(a.decoders.ready) == 0 {
		a.stranded.Push(j)
		return
	}
	router := e.scenario.Router
	if router == PrefixCache {
		router = LeastLoaded
	}
	to := e.pick(&a.decoders, router, j)
	if a.of[j].stage == local {
		e.join(to, j)
		return
	}
	e.jobs[j].joined = e.now
	a.of[j].to = to
	e.waiting++
	to.waiting.Push(j)
	e.disturb(to)
}

// disturb makes a replica end its stretch with the present step, so that it sees what has changed.
func (e *engine) disturb(r *replica) {
	switch {
	case !r.busy:
		e.begin(r)
	case r.length > 1:
		r.length = steps(e.now-r.from+1, r.first, r.growth, r.length)
		e.agenda.set(r.slot, min(r.end(), r.crashAt))
	}
}

// ask reserves room for a job's KV cache and requests its transfer.
func (e *engine) ask(r *replica, j int32) {
	b, h := &e.jobs[j], &e.apart.of[j]
	b.held = e.need(j) - 1 // the last token is not computed yet
	r.held += b.held
	r.unread += b.held
	r.running++
	e.waiting--
	e.running++
	h.stage = asked
	e.inLine(j)
}

// inLine puts a transfer that is asked for behind the others of its sender.
func (e *engine) inLine(j int32) {
	b, h := &e.jobs[j], &e.apart.of[j]
	h.sends = max(e.now, h.from.linkFree)
	h.from.linkFree = later(h.sends, b.held, h.from.link)
	if h.sends > e.now {
		e.due(j, h.sends)
		return
	}
	e.send(j)
}

// send starts the transfer of a job's KV cache.
func (e *engine) send(j int32) {
	h := &e.apart.of[j]
	h.stage = sent
	if at := e.receive(j); at > e.now {
		e.due(j, at)
		return
	}
	e.arrives(j)
}

// receive puts a transfer behind the others of its receiver and returns when it ends.
func (e *engine) receive(j int32) int64 {
	b, h := &e.jobs[j], &e.apart.of[j]
	h.receives = max(e.now, h.to.linkFree)
	h.to.linkFree = later(h.receives, b.held, h.to.link)
	return later(max(h.to.linkFree, later(h.sends, b.held, h.from.link)), 1, ticks(e.scenario.Transfer.Latency))
}

// relink moves up the transfers that an end has not begun with: those before them may have ended with a crash.
func (e *engine) relink() {
	a := e.apart
	for _, r := range e.fleet {
		r.linkFree = 0
	}
	var toSend, toReceive []int32
	for j := range a.of {
		b, h, j := &e.jobs[j], &a.of[j], int32(j)
		switch {
		case h.stage == asked:
			toSend = append(toSend, j)
		case h.stage != sent:
		case h.receives < e.now:
			h.to.linkFree = max(h.to.linkFree, later(h.receives, b.held, h.to.link))
		default:
			toReceive = append(toReceive, j)
		}
		if h.stage == sent {
			h.from.linkFree = max(h.from.linkFree, later(h.sends, b.held, h.from.link))
		}
	}
	slices.SortFunc(toReceive, func(i, j int32) int { return cmp.Compare(a.of[i].receives, a.of[j].receives) })
	for _, j := range toReceive {
		e.undue(j)
		e.due(j, e.receive(j))
	}
	slices.SortFunc(toSend, func(i, j int32) int { return cmp.Compare(a.of[i].sends, a.of[j].sends) })
	for _, j := range toSend {
		e.undue(j)
		e.inLine(j)
	}
}

// arrives ends a transfer and frees the memory of the prefill replica.
func (e *engine) arrives(j int32) {
	b, h := &e.jobs[j], &e.apart.of[j]
	from := h.from
	e.unlink(from, j)
	from.held -= b.held
	from.unread -= b.held
	from.kept--
	h.stage, h.from, h.cameAt = came, nil, e.now
	h.to.arrived.Push(j)
	switch {
	case from.busy:
	case from.life == draining && from.idle():
		e.retire(from)
	case from.waiting.Len() > 0:
		e.begin(from)
	}
}

// take adds the jobs whose caches have arrived to the batch.
func (e *engine) take(r *replica) {
	for r.arrived.Len() > 0 {
		j := r.arrived.pop()
		b, h := &e.jobs[j], &e.apart.of[j]
		h.stage, h.to = local, nil
		r.unread -= b.held
		e.enlist(r, j)
		b.until = r.step + int64(b.output-b.written)
		r.decodes.push(e.places, entry{b.until, b.came, j})
		r.begun = append(r.begun, j)
	}
}

// started records when the jobs that were added write their second token: at the end of the step that begins.
func (e *engine) started(r *replica) {
	for _, j := range r.begun {
		if h := &e.apart.of[j]; e.places[j] >= 0 && h.secondOut == 0 {
			h.secondOut = e.now + r.first
		}
	}
}

// handed counts the handover times of a job that finished.
func (e *engine) handed(j int32) {
	b, h := &e.jobs[j], &e.apart.of[j]
	if h.secondOut == 0 {
		return
	}
	e.apart.count++
	e.apart.waits.add(seconds(h.cameAt - b.firstOut))
	e.apart.gaps.add(seconds(h.secondOut - b.firstOut))
	if e.options.Handover != nil {
		e.options.Handover(Handover{
			Arrived: elapsed(b.arrived), Input: b.input, Output: b.output,
			First: elapsed(b.firstOut), Came: elapsed(h.cameAt), Second: elapsed(h.secondOut),
		})
	}
}

// spilled is the work that a crash leaves behind, and the other replicas that it affects.
type spilled struct {
	anew    []int32 // jobs that start again
	again   []int32 // jobs whose KV cache is still in the prefill replica
	changed []*replica
}

// spill handles the KV caches in a replica that crashed, and those in transfer from and to it.
func (e *engine) spill(r *replica) (s spilled) {
	a := e.apart
	for j := range a.of {
		h, b, j := &a.of[j], &e.jobs[j], int32(j)
		was := h.stage
		switch {
		case h.from == r:
			e.undue(j)
			e.unlink(r, j)
			if to := h.to; h.stage != kept {
				e.release(to, b)
				s.changed = append(s.changed, to)
			} else if to != nil {
				to.waiting.drop(j)
				e.waiting--
				s.changed = append(s.changed, to)
			} else {
				a.stranded.drop(j)
			}
			r.held -= b.held
		case h.to == r && h.stage == came:
			e.release(r, b)
		case h.to == r && h.stage != kept:
			e.undue(j)
			e.release(r, b)
			h.stage, h.to = kept, nil
			s.again = append(s.again, j)
			a.lost[was]++
			continue
		default:
			continue
		}
		a.lost[was]++
		*h = handover{}
		b.written, b.firstOut = 0, 0
		s.anew = append(s.anew, j)
	}
	r.unread, r.kept, r.arrived = 0, 0, queue{}
	order := func(i, j int32) int {
		return cmp.Or(cmp.Compare(e.jobs[i].arrived, e.jobs[j].arrived), cmp.Compare(i, j))
	}
	slices.SortFunc(s.anew, order)
	slices.SortFunc(s.again, order)
	e.relink()
	return s
}

// release frees the room that a replica had reserved for a job.
func (e *engine) release(r *replica, b *job) {
	r.held -= b.held
	r.unread -= b.held
	r.running--
	e.running--
}

// asideIn adds up the KV caches in a replica that belong to no job in its batch.
func (e *engine) asideIn(r *replica) (tokens int64, blocks int64) {
	if e.apart == nil {
		return 0, 0
	}
	for j := range e.apart.of {
		switch h := &e.apart.of[j]; {
		case h.from == r:
			tokens += e.jobs[j].held
			if r.cache != nil {
				blocks += int64(e.prompts[j].linked)
			}
		case h.to == r && h.stage > kept:
			tokens += e.jobs[j].held
		}
	}
	return tokens, blocks
}

// recover restarts the work that a crash has left behind, in order of arrival.
func (e *engine) recover(s spilled) {
	for _, r := range s.changed {
		if r.life == ready || r.life == draining {
			e.disturb(r)
		}
	}
	for _, j := range s.anew {
		e.retried++
		e.route(j)
	}
	for _, j := range s.again {
		e.retried++
		e.hand(j)
	}
}
