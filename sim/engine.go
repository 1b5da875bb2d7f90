package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Slots of the agenda that are not replicas. At one time replicas come first, then these in order: what waited for a ready replica
// is spread over all that become ready at once, a write is carried out before a request arrives, a scrape sees the arrivals, and a decision sees the scrape.
const (
	slotReady int32 = iota
	slotWrite
	slotArrival
	slotUser
	slotHeld
	slotTransfer
	slotScrape
	slotControl
	slotMoment
	slotEnd
	firstReplica
)

// looks is after how many events, and requests that are only counted, the context is looked at, besides before each decision: not all
// workloads let the time go on.
const looks = 1 << 16

const rankAfterReplicas = int64(1) << 40

// ErrBookkeeping is the error of a run in which two independent accounts of the same quantity differ: a bug of the
// simulator.
var ErrBookkeeping = errors.New("the simulator's books do not balance")

// An engine is the state of a run.
type engine struct {
	scenario *Scenario
	options  Options
	seed     uint64
	now      int64
	horizon  int64
	agenda   agenda
	events   int64

	jobs     []job
	places   []int32 // of jobs, in the heaps of decoding jobs
	freeJobs []int32
	prompts  []prompt // of jobs, in prefix caches; nil without prefix caching
	arrivals Arrivals
	line     queueing // the arrivals so far
	arrival  Request  // the next request
	coming   bool     // whether there is a next request
	backlog  queue    // jobs without a replica
	users    *users   // nil if the workload is not Sessions
	apart    *apart   // nil if replicas have no roles

	kinds     []kind
	fleet     []*replica // all replicas that are not gone, in order of their numbers
	ready     []*replica // those of the fleet that are ready
	takers    pool       // the ready replicas that take new requests: all but those with the role Decode
	bySlot    []*replica
	freeSlots []int32
	numbers   int64

	waiting, running int64 // jobs in replicas

	came                       int64 // jobs so far
	arrived, refused, finished int64
	rejected, expired          int64 // by the gateway
	preempted, retried, starts int64
	prefixQueries, prefixHits  int64
	peak                       int32
	met, metTTFT, metTPOT      int64
	ttftTimes, queueTimes      sketch
	tpotTimes                  sketch

	// Two accounts of the time that requests spend in the system: the number of requests over time, and the time of each
	// request.
	present        int64
	presentSince   int64
	area, sojourns wide

	booked      int64 // time up to which replica-time is booked
	specArea    wide
	under, over wide

	bounds                              struct{ none, ttft, tpot, queue, tokens, routerTTFT, routerTPOT, sketch buckets }
	routerTTFT, routerTPOT, predictions []int64
	residence                           float64 // moving average of the seconds that a job is in a batch
	observer                            observer
	controller                          *controller
	timeline                            []Moment
	lastMoment                          int64 // arrivals at the last moment of the timeline
}

// wide is a 128-bit sum.
type wide struct{ hi, lo uint64 }

func (w *wide) add(n, t int64) {
	hi, lo := bits.Mul64(uint64(n), uint64(t))
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

func (w *wide) seconds() float64 { return (float64(w.hi)*(1<<64) + float64(w.lo)) / second }

func newEngine(s *Scenario, o Options) *engine {
	e := &engine{scenario: s, options: o, seed: o.Seed, line: queueing{length: s.Workload.Duration()}}
	e.bounds.ttft, e.bounds.tpot, e.bounds.queue = ttftBuckets(), tpotBuckets(), queueBuckets()
	e.bounds.routerTTFT, e.bounds.routerTPOT = routerTTFTBuckets(), routerTPOTBuckets()
	e.bounds.tokens, e.bounds.sketch = tokenBuckets(), sketchBounds()
	e.ttftTimes, e.tpotTimes, e.queueTimes = newSketch(&e.bounds.sketch), newSketch(&e.bounds.sketch), newSketch(&e.bounds.sketch)
	e.agenda.grow(int(firstReplica))
	for i := range e.agenda.ranks {
		e.agenda.ranks[i] = rankAfterReplicas + int64(i)
	}
	e.horizon = ticks(cmp.Or(s.Horizon, s.Workload.Duration()))
	for i := range s.Types {
		t := s.Types[i] // a copy, in which defaults are filled in
		t.Weight, t.Cost = cmp.Or(t.Weight, 1), cmp.Or(t.Cost, 1)
		e.kinds = append(e.kinds, kind{Type: &t, speed: t.Server.speed(), link: s.link(&t), lastUp: -1, lastDown: -1})
	}
	e.apart = newApart(s, &e.bounds.sketch)
	if sessions, ok := closed(s.Workload); ok {
		e.users = &users{Sessions: &sessions}
	}
	e.observer = newObserver(e)
	e.routerTTFT, e.routerTPOT, e.predictions = e.observer.counts(RouterTTFT), e.observer.counts(RouterTPOT), e.observer.counts(PredictedTTFT)
	return e
}

// initial sets up the replicas that are ready when the run begins.
func (e *engine) initial() {
	for k := range e.kinds {
		t := &e.kinds[k]
		for range t.Initial {
			r := e.start(int32(k))
			t.spec++
			t.alive++
			r.life = loading
			r.delays = draw(e.seed, streamCrash, uint64(r.number))
			e.open(r)
		}
	}
	e.peak = e.alive()
}

// run processes events until the end.
func (e *engine) run(check func() error) error {
	e.initial()
	e.arrivals = e.scenario.Workload.Arrivals(e.seed)
	if e.users != nil {
		e.arrivals, e.users.check = e.users.First.Arrivals(e.seed), check
	}
	if err := e.comingNext(); err != nil {
		return err
	}
	e.agenda.set(slotScrape, ticks(e.scenario.Scrape.Interval))
	e.agenda.set(slotControl, ticks(e.scenario.Control.Interval))
	e.agenda.set(slotEnd, max(e.horizon, ticks(e.scenario.Workload.Duration()))+ticks(e.scenario.Grace))
	if e.options.Timeline > 0 {
		e.agenda.set(slotMoment, 0)
	}
	for {
		s, at := e.agenda.next()
		e.now = at
		if e.events++; e.events%looks == 0 {
			if err := check(); err != nil {
				return err
			}
		}
		if e.users != nil && e.users.stopped != nil {
			return e.users.stopped
		}
		switch s {
		case slotArrival:
			if err := e.arrive(); err != nil {
				return err
			}
		case slotUser:
			e.users.asks(e)
		case slotReady:
			e.agenda.set(slotReady, never)
			e.resume()
		case slotHeld:
			e.expire()
		case slotTransfer:
			e.transfer()
		case slotScrape:
			e.observer.scrape(e)
			e.agenda.set(slotScrape, e.now+ticks(e.scenario.Scrape.Interval))
		case slotControl:
			if err := check(); err != nil {
				return err
			}
			if err := e.controller.tick(e); err != nil {
				return err
			}
			if e.done() {
				return e.close()
			}
		case slotWrite:
			e.controller.write(e)
		case slotMoment:
			e.moment()
		case slotEnd:
			return e.close()
		default:
			e.wake(e.bySlot[s-firstReplica])
		}
	}
}

// done reports whether no further event can change the result.
func (e *engine) done() bool {
	return e.now >= e.horizon && !e.coming && e.present == 0 && (e.users == nil || len(e.users.thinking.heap) == 0)
}

// comingNext reads the next arrival.
func (e *engine) comingNext() error {
	e.arrival, e.coming = e.arrivals()
	if !e.coming {
		e.agenda.set(slotArrival, never)
		return nil
	}
	e.agenda.set(slotArrival, max(ticks(e.arrival.At), e.now))
	return e.line.next(&e.arrival, "workload")
}

// arrive processes the arrival of a request.
func (e *engine) arrive() error {
	j := e.newJob(e.arrival)
	if e.users != nil {
		e.users.begins(e, j)
	}
	e.enter(j)
	return e.comingNext()
}

// newJob makes a job of a request.
func (e *engine) newJob(r Request) (j int32) {
	if n := len(e.freeJobs); n > 0 {
		j = e.freeJobs[n-1]
		e.freeJobs = e.freeJobs[:n-1]
	} else {
		e.jobs, e.places = append(e.jobs, job{}), append(e.places, -1)
		j = int32(len(e.jobs) - 1)
	}
	if e.scenario.BlockTokens > 0 {
		for len(e.prompts) < len(e.jobs) {
			e.prompts = append(e.prompts, prompt{})
		}
		e.prompts[j] = prompt{blocks: r.Blocks}
	}
	if a := e.apart; a != nil {
		for len(a.of) < len(e.jobs) {
			a.of = append(a.of, handover{})
		}
		a.of[j] = handover{}
	}
	e.jobs[j] = job{came: e.came, arrived: e.now, input: r.Input, output: r.Output, prev: -1, next: -1}
	e.came++
	return j
}

// enter counts a job as being in the system.
func (e *engine) enter(j int32) {
	e.arrived++
	e.count(1)
	e.route(j)
}

// count changes the number of requests in the system.
func (e *engine) count(change int64) {
	e.area.add(e.present, e.now-e.presentSince)
	e.present += change
	e.presentSince = e.now
}

// finish ends a job that has all its tokens.
func (e *engine) finish(r *replica, j int32) {
	b := &e.jobs[j]
	slo := e.scenario.SLO
	e.count(-1)
	e.sojourns.add(1, e.now-b.arrived)
	e.finished++
	e.kinds[r.kind].finished++
	first := b.firstOut - b.arrived
	e.ttftTimes.add(seconds(first))
	if e.apart == nil {
		e.residence += (seconds(e.now-b.joined) - e.residence) / 64
	} else {
		e.handed(j)
	}
	onTime, steady := first <= ticks(slo.TTFT), true
	if b.output > 1 {
		each := seconds(e.now-b.firstOut) / float64(b.output-1)
		e.tpotTimes.add(each)
		e.bounds.tpot.count(r.tpot, each)
		r.meter.add(TPOTs, each)
		e.bounds.routerTPOT.count(e.routerTPOT, each)
		steady = within(e.now-b.firstOut, ticks(slo.TPOT), int64(b.output-1))
	}
	r.meter.add(PromptTokens, float64(b.input))
	r.meter.add(GenerationTokens, float64(b.output))
	if onTime {
		e.metTTFT++
	}
	if steady {
		e.metTPOT++
	}
	if onTime && steady {
		e.met++
	}
	if e.users != nil {
		e.users.reads(e, j)
	}
	e.freeJobs = append(e.freeJobs, j)
	if e.options.Request != nil {
		e.options.Request(Outcome{
			Arrived: elapsed(b.arrived), Input: b.input, Output: b.output, Replica: r.name,
			TTFT: elapsed(first), Total: elapsed(e.now - b.arrived), Met: onTime && steady,
		})
	}
}

// within reports whether a time is at most n times a limit.
func within(t, limit, n int64) bool {
	high, low := bits.Mul64(uint64(limit), uint64(n))
	return high > 0 || uint64(t) <= low
}

// predict records the time to first token that a predictor would expect for a job on a replica.
func (e *engine) predict(r *replica, j int32) {
	if e.predictions == nil {
		return
	}
	cached, _ := e.matched(r, j)
	t := seconds(r.speed.prefill*(r.ahead+e.need(j)-cached) + r.speed.base)
	if r.running >= r.speed.maxSeqs || !e.fits(r, j) || r.waiting.Len() > 0 {
		if r.running > 0 {
			t += e.residence * float64(r.waiting.Len()+1) / float64(r.running)
		}
	}
	e.bounds.routerTTFT.count(e.predictions, t)
}

// account books the replica-time up to now, before a count changes.
func (e *engine) account() {
	to := min(e.now, e.horizon)
	for e.booked < to {
		end := to
		demand, has := int32(0), len(e.scenario.Demand) > 0
		if has {
			step := ticks(e.scenario.DemandStep)
			if i := e.booked / step; i < int64(len(e.scenario.Demand)) {
				demand = e.scenario.Demand[i]
				end = e.booked + min(to-e.booked, step-e.booked%step)
			}
		}
		span := end - e.booked
		readyNow := int32(0)
		for k := range e.kinds {
			t := &e.kinds[k]
			t.area.add(int64(t.alive), span)
			e.specArea.add(int64(t.spec), span)
			readyNow += t.ready
		}
		if has {
			e.under.add(int64(max(0, demand-readyNow)), span)
			e.over.add(int64(max(0, readyNow-demand)), span)
		}
		e.booked = end
	}
}

// demand returns the scenario's demand at a time; it is 0 after its end.
func (e *engine) demand(t int64) int32 {
	if n := len(e.scenario.Demand); n > 0 {
		if i := t / ticks(e.scenario.DemandStep); i < int64(n) {
			return e.scenario.Demand[i]
		}
	}
	return 0
}

// unfinished counts the times of a job that has not finished when the run ends. The time that it still waits for is longer
// than it has waited.
func (e *engine) unfinished(b *job) {
	age := e.now - b.arrived
	e.sojourns.add(1, age)
	if b.written > 0 {
		e.ttftTimes.add(seconds(b.firstOut - b.arrived))
	} else {
		e.ttftTimes.add(seconds(age))
	}
	if !b.queued {
		e.queueTimes.add(seconds(age))
	}
}

// close ends the run: the remaining jobs are unfinished.
func (e *engine) close() error {
	e.account()
	e.count(0)
	free := make([]bool, len(e.jobs))
	for _, j := range e.freeJobs {
		free[j] = true
	}
	unfinished := int64(0)
	for j := range e.jobs {
		if !free[j] {
			unfinished++
			if e.users != nil {
				e.users.waited(e, int32(j), e.users.Duration())
			}
			e.unfinished(&e.jobs[j])
		}
	}
	switch {
	case e.users != nil && e.users.stopped != nil:
		return e.users.stopped
	case e.arrived != e.finished+e.refused+e.rejected+e.expired+unfinished:
		return fmt.Errorf("%w: %d requests arrived, %d finished, %d were refused, %d rejected, %d held for too long and %d are left",
			ErrBookkeeping, e.arrived, e.finished, e.refused, e.rejected, e.expired, unfinished)
	case e.present != unfinished || e.present != e.waiting+e.running+int64(e.without()):
		return fmt.Errorf("%w: %d requests are left, %d wait, %d run and %d have no replica",
			ErrBookkeeping, unfinished, e.waiting, e.running, e.without())
	case e.area != e.sojourns:
		return fmt.Errorf("%w: Little's law: %g request-seconds by count, %g by request",
			ErrBookkeeping, e.area.seconds(), e.sojourns.seconds())
	}
	for _, r := range e.fleet {
		if held := e.heldBy(r); r.held != held || held-r.shared > r.speed.room || !e.cacheBalances(r) {
			return fmt.Errorf("%w: %s holds %d tokens of KV cache, its requests %d, with room for %d",
				ErrBookkeeping, r.name, r.held, held, r.speed.room)
		}
	}
	return nil
}

// without counts the jobs without a replica.
func (e *engine) without() int {
	if e.apart == nil {
		return e.backlog.Len()
	}
	return e.backlog.Len() + e.apart.stranded.Len()
}

// heldBy adds up the KV cache of a replica's jobs at the beginning of its stretch.
func (e *engine) heldBy(r *replica) (tokens int64) {
	tokens, _ = e.asideIn(r)
	for j := r.oldest; j >= 0; j = e.jobs[j].next {
		b := &e.jobs[j]
		if e.places[j] >= 0 {
			tokens += int64(b.input) + int64(b.output) - (b.until - r.step) - 1
		} else {
			tokens += b.held
		}
	}
	return tokens
}

// moment records the fleet for the timeline.
func (e *engine) moment() {
	m := Moment{At: elapsed(e.now), Demand: e.demand(e.now), Waiting: int32(e.waiting) + int32(e.without()), Running: int32(e.running)}
	held, room := int64(0), int64(0)
	for _, r := range e.ready {
		held += r.kvAt(e.now) - r.shared
		room += r.speed.room
	}
	if room > 0 {
		m.KV = float64(held) / float64(room)
	}
	for k := range e.kinds {
		t := &e.kinds[k]
		m.Spec += t.spec
		m.Ready += t.ready
		m.Replicas += t.alive
	}
	if e.now > 0 {
		m.Rate = float64(e.arrived-e.lastMoment) / e.options.Timeline.Seconds()
		e.lastMoment = e.arrived // not at 0: what arrived then counts with the first moment after it
	}
	e.timeline = append(e.timeline, m)
	if next := e.after(ticks(e.options.Timeline)); next <= e.horizon {
		e.agenda.set(slotMoment, next)
	} else {
		e.agenda.set(slotMoment, never)
	}
}

// at returns the time of the scenario's calendar.
func (e *engine) at(t int64) time.Time { return e.scenario.Begin().Add(elapsed(t)) }
