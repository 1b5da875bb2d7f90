package sim

import (
	"cmp"
	"slices"
)

// Where the KV cache of a job is, in a fleet with roles.
type stage int8

const (
	local stage = iota // in the replica that has the job, if anywhere
	kept               // in the replica that computed it; the job waits in one that decodes, or for one
	asked              // there too; the one that decodes has room set aside, and the link is not free
	sent               // on the way
	came               // in the replica that decodes, which takes the job into its batch at the end of its step
)

// A handover is the way of a job's KV cache from the replica that computed it to the one that decodes.
type handover struct {
	stage     stage
	from, to  *replica // from is nil when it has come, to before it is clear, and both when the job is in the batch
	cameAt    int64
	secondOut int64 // second token; 0 for none yet
}

// apart is a run in a fleet with roles. Computed prompts are given to replicas that decode after all steps that end at that
// time, as is what comes over a link then.
type apart struct {
	of       []handover // of jobs
	agenda   heap       // of jobs, by time and in the order in which they came on it
	places   []int32
	numbers  int64
	decoders pool
	stranded queue // jobs with a first token, while no replica that decodes is ready
	room     int64 // the smallest KV cache of types that decode

	count       int64
	waits, gaps sketch
	lost        [came + 1]int64 // KV caches, by where they were
}

// A pool are replicas that are ready and among which a router chooses.
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

// poolOf returns the replicas that a replica is one of.
func (e *engine) poolOf(r *replica) *pool {
	if r.role == Decode {
		return &e.apart.decoders
	}
	return &e.takers
}

// due makes a job's next change come at a time.
func (e *engine) due(j int32, at int64) {
	a := e.apart
	for len(a.places) < len(e.jobs) {
		a.places = append(a.places, -1)
	}
	a.numbers++
	a.agenda.push(a.places, entry{at, a.numbers, j})
	e.agenda.set(slotTransfer, a.agenda[0].at)
}

// undue takes a job off the agenda, if it is on it.
func (e *engine) undue(j int32) {
	a := e.apart
	if int(j) >= len(a.places) || a.places[j] < 0 {
		return
	}
	a.agenda.remove(a.places, a.places[j])
	e.nextTransfer()
}

func (e *engine) nextTransfer() {
	at := never
	if a := e.apart; len(a.agenda) > 0 {
		at = a.agenda[0].at
	}
	e.agenda.set(slotTransfer, at)
}

// transfer makes the next change of a job.
func (e *engine) transfer() {
	j := e.apart.agenda[0].number
	e.undue(j)
	h := &e.apart.of[j]
	switch h.stage {
	case kept:
		e.hand(j)
	case asked:
		e.send(j) // which takes time, since what was before it on the link did
	case sent:
		e.arrives(j)
		e.disturb(h.to)
	case local, came:
	}
}

// keep takes a job out of the batch of the replica that computed its prompt, and leaves its KV cache there.
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

// hand gives a job with a first token to a replica that decodes, or keeps it until one is ready.
func (e *engine) hand(j int32) {
	a := e.apart
	if len(a.decoders.ready) == 0 {
		a.stranded.push(j)
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
	to.waiting.push(j)
	e.disturb(to)
}

// disturb lets a replica look at what has changed, at the end of its step.
func (e *engine) disturb(r *replica) {
	switch {
	case !r.busy:
		e.begin(r)
	case r.length > 1:
		r.length = steps(e.now-r.from+1, r.first, r.growth, r.length)
		e.agenda.set(r.slot, min(r.from+sum(r.length, r.first, r.growth), r.crashAt))
	}
}

// ask sets room aside for a job's KV cache and asks for it.
func (e *engine) ask(r *replica, j int32) {
	b, h := &e.jobs[j], &e.apart.of[j]
	b.held = e.need(j) - 1 // the last token is not computed yet
	r.held += b.held
	r.unread += b.held
	r.running++
	e.waiting--
	e.running++
	h.stage = asked
	start := max(e.now, h.from.linkFree)
	h.from.linkFree = later(start, b.held, h.from.link)
	if start > e.now {
		e.due(j, start)
		return
	}
	e.send(j)
}

// send lets a job's KV cache go.
func (e *engine) send(j int32) {
	b, h := &e.jobs[j], &e.apart.of[j]
	h.stage = sent
	h.to.linkFree = later(max(e.now, h.to.linkFree), b.held, h.to.link)
	at := later(max(h.to.linkFree, later(e.now, b.held, h.from.link)), 1, ticks(e.scenario.Transfer.Latency))
	if at > e.now {
		e.due(j, at)
		return
	}
	e.arrives(j)
}

// arrives ends a transfer: the replica that computed the prompt has its memory back.
func (e *engine) arrives(j int32) {
	b, h := &e.jobs[j], &e.apart.of[j]
	from := h.from
	e.unlink(from, j)
	from.held -= b.held
	from.unread -= b.held
	from.kept--
	h.stage, h.from, h.cameAt = came, nil, e.now
	h.to.arrived.push(j)
	switch {
	case from.busy:
	case from.life == draining && from.idle():
		e.retire(from)
	case from.waiting.len() > 0:
		e.begin(from)
	}
}

// take puts what has come into the batch.
func (e *engine) take(r *replica) {
	for r.arrived.len() > 0 {
		j := r.arrived.pop()
		b, h := &e.jobs[j], &e.apart.of[j]
		h.stage, h.to = local, nil
		r.unread -= b.held
		e.enlist(r, j)
		b.until = r.step + int64(b.output-b.written)
		r.decodes.push(e.places, entry{b.until, b.arrived, j})
		r.begun = append(r.begun, j)
	}
}

// started notes when the jobs that were taken in write their second token: at the end of the step that begins.
func (e *engine) started(r *replica) {
	for _, j := range r.begun {
		if h := &e.apart.of[j]; e.places[j] >= 0 && h.secondOut == 0 {
			h.secondOut = e.now + r.first
		}
	}
}

// handed counts the times of a job that finished.
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

// spilled is what a crash leaves behind in other replicas.
type spilled struct {
	anew    []int32 // jobs that begin anew
	again   []int32 // jobs whose KV cache is still where it was computed
	changed []*replica
}

// spill deals with the KV caches in a replica that crashed, and on the way to and from it.
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
	r.unread, r.kept, r.linkFree, r.arrived = 0, 0, 0, queue{}
	order := func(i, j int32) int {
		return cmp.Or(cmp.Compare(e.jobs[i].arrived, e.jobs[j].arrived), cmp.Compare(i, j))
	}
	slices.SortFunc(s.anew, order)
	slices.SortFunc(s.again, order)
	return s
}

// release gives back the room that a replica had set aside for a job.
func (e *engine) release(r *replica, b *job) {
	r.held -= b.held
	r.unread -= b.held
	r.running--
	e.running--
}

// asideIn adds up the KV caches in a replica that are of no job in its batch.
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

// recover goes on with what a crash has left behind, in order of arrival.
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
