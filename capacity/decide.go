package capacity

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/starts"
	"github.com/inferscale/inferscale/scaling"
)

// The codes of a decision. work is the arriving load in replica-seconds per second; capacity is the work that one replica may be given.
const (
	// AboveCapacity scales up: the arriving work needs more replicas.
	AboveCapacity scaling.Code = "AboveCapacity needed > from, work, capacity"
	// BelowCapacity scales down: the arriving work needs fewer replicas.
	BelowCapacity scaling.Code = "BelowCapacity needed < from, work, capacity"
	// AtCapacity holds: the arriving work needs exactly this many replicas.
	AtCapacity scaling.Code = "AtCapacity needed == from, work, capacity"
	// Rising adds the trend: the arrival rate, in requests/s, is expected to reach this value by the time a replica requested now is ready.
	Rising scaling.Code = "Rising rate < expected, lead:s"
	// Crowded asks for more replicas than the work needs: batches or KV caches are full or tokens come too slowly, now or, as the
	// requests in flight grow, by the time a replica requested now is ready.
	Crowded scaling.Code = "Crowded full > needed"
	// Behind adds replicas while requests wait that no ready replica has room for: enough to serve them within drain seconds, but
	// at most one additional replica for each that was ready while the queue grew: no other is relieved.
	Behind scaling.Code = "Behind waiting > ready, queues, drain:s"
	// Held keeps replicas that were, or may have been, needed within the hold: stopping and restarting them would cost more. It starts
	// none.
	Held scaling.Code = "Held needed < held, hold:s"
	// Fresh does not scale down yet: too little traffic has been observed.
	Fresh scaling.Code = "Fresh age:s < needed:s"
	// Level says that the headroom over work/fleet is a constant number of replicas, not a share of the work.
	Level scaling.Code = "Level spare, fleet"
	// Unseen is a floor: the mean work of five minutes, with headroom for events that the past does not contain.
	Unseen scaling.Code = "Unseen kept > needed, mean, capacity"
	// Trusted leaves less headroom for what the past did not show: it is trusted so far, from 0 to 1, to show what comes.
	Trusted scaling.Code = "Trusted trust"
	// Guarded divides the capacity by 1+guard because requests have missed the SLO.
	Guarded scaling.Code = "Guarded guard"
	// Partly does not scale down: some pods did not answer, so the load may be higher than the readings say.
	Partly scaling.Code = "Partly needed < from"
	// Unsure scales down less far: requests missed the SLO while it was not known how many waited, so the guard may have to be higher.
	Unsure scaling.Code = "Unsure needed < kept, guard, most"
	// Replayed says that the capacity was found by replaying the past, in which this share of the requests missed the SLO.
	Replayed scaling.Code = "Replayed late <= allowed, requests, age:s"
	// Remembered lowers the capacity that the last replays found: lately so many first tokens and answers missed the SLO, of so many
	// requests, each of which can miss both; and earlier replays found less, or more was missed than may be.
	Remembered scaling.Code = "Remembered capacity < found, missed, served"
	// Simulated says that the capacity is that of a few simulated replicas, for requests of the observed lengths.
	Simulated scaling.Code = "Simulated age:s"
	// Unattainable says that this share of the requests misses the SLO even on an idle replica as simulated, more than the goal allows,
	// and that some were measured to miss it: no count of replicas attains it. Then the others are to attain the goal.
	Unattainable scaling.Code = "Unattainable alone > allowed"
	// TurnedBack holds for one round because the clock went back.
	TurnedBack scaling.Code = "TurnedBack by:s"
	// Warming holds: the capacity is unknown, and too few requests have finished for a tuning. Until then only Crowded can scale up.
	Warming scaling.Code = "Warming finished < needed"
	// Untuned holds as Warming does: enough requests have finished, but the first tuning, 30 s after the first sample, is not done.
	Untuned scaling.Code = "Untuned since:s"
	// Resumed holds as Warming does: the capacity is known, but there is one sample so far, as after a restart, and a rate takes two.
	Resumed scaling.Code = "Resumed"
	// Unused scales down to the minimum, but not below one replica, without which nothing is read: no request came for so long, so
	// that nothing is known of their lengths.
	Unused scaling.Code = "Unused quiet:s >= needed:s, capacity"
	// NoSample decides Unknown: the observation lacks a metric.
	NoSample scaling.Code = "NoSample"
	// Stale decides Unknown: the newest sample is too old.
	Stale scaling.Code = "Stale age:s > limit:s"
)

const (
	enough    = 60.0 // finished requests before the first tuning
	firstLook = 30.0 // seconds before the first tuning
	mostGuard = 1.5
	guardSpan = 120.0      // seconds over which misses are counted
	settle    = 60.0       // seconds that a fleet of sufficient size gets before misses count
	guardUp   = 0.15 / 30  // a second
	guardDown = 0.003 / 15 // a second
)

// A Scaler asks for the replicas that the arriving work needs. The zero value decides Unknown (NotConfigured).
type Scaler struct {
	config *Config
	tuner  Tuner
	fixed  *trial  // in a replay: the trial, in place of the tuning
	warm   float64 // in a replay: seconds of warm-up, which do not count
}

// New returns the Scaler of a configuration, or an error with every rule that it breaks. The tuner finds the capacity; nil means
// Inline, which tunes inside Decide.
func New(c Config, t Tuner) (Scaler, error) {
	if err := c.Validate(); err != nil {
		return Scaler{}, err
	}
	switch b, ok := t.(*Background); {
	case ok && b == nil:
		return Scaler{}, &scaling.FieldError{Field: "tuner", Value: "(*Background)(nil)", Rule: "must not point to nothing"}
	case t == nil:
		t = Inline{}
	}
	return Scaler{config: &c, tuner: t}, nil
}

// Kind names the state of a Scaler.
func (Scaler) Kind() scaling.Kind { return scaling.Kind{Name: "capacity", Version: 1} }

// Applied records a change of the replica count, to learn how long a start takes.
func (Scaler) Applied(s State, now time.Time, from, to int32) State {
	starts.Applied(&s.Learned, seconds(now), from, to)
	return s
}

// Decide asks for the replicas that the arriving work needs.
func (c Scaler) Decide(s State, now time.Time, obs scaling.Observation) (_ State, d scaling.Decision) {
	if c.config == nil {
		return s, scaling.UnknownAt(obs.SpecReplicas, scaling.NotConfigured, "")
	}
	at, limit := seconds(now), c.config.stale()
	if s.Asked == 0 || at-s.Asked > limit {
		starts.Unseen(&s.Learned, obs.ReadyReplicas)
	}
	back := s.turnBack(at, c.config.Scrape.Seconds())
	starts.See(&s.Learned, at, obs.SpecReplicas, obs.ReadyReplicas)
	var g gauges
	x, missing := g.read(now, &obs, c.config.SLO)
	if missing != "" {
		return s, c.unknown(&obs, NoSample, missing)
	}
	s.judge(&x, c.config.SLO)
	every := s.Every
	fresh := s.see(x, &obs)
	if fresh && every > 0 && s.Every > max(limit, 4*every) {
		s.Since = s.last().At // after such a gap, or a clock that was put forward, the load is as unknown as after a restart
	}
	if age := at - s.last().At; age > limit {
		return s, c.unknown(&obs, Stale, "", age, limit)
	}
	if fresh && c.fixed == nil {
		s.excuse(max(s.Wanted, obs.SpecReplicas), obs.ReadyReplicas, 2*c.lead(&s))
	}
	if fresh && c.fixed == nil && (s.due() || s.Tuning.outdated(&c.config.Server)) {
		s = c.tune(s, shown(&obs, c.config.SLO))
	}
	d.Start(obs.SpecReplicas)
	warming, n := c.fixed == nil && (s.Tuning.Capacity <= 0 || len(s.Samples) < 2), int32(0)
	switch {
	case c.fixed == nil && s.quiet() >= history:
		n = max(1, c.config.Bounds.Min)
		d.To(min(d.From, n), Unused, "", s.quiet(), history, s.Tuning.Capacity/s.margin(c.early(&s, c.lead(&s))))
	case warming:
		c.await(&s, &d)
	default:
		n = c.follow(&s, &d)
	}
	if back > 0 {
		d.To(obs.SpecReplicas, TurnedBack, "", back)
	}
	if fresh && c.fixed == nil && !warming {
		x := s.last()
		sized := obs.ReadyReplicas >= max(n, obs.SpecReplicas) && x.Ready >= n
		s.guard(mayMiss(s.Tuning.measured(), c.config.Goal), sized && g.mayWait() <= float64(x.Ready), sized && x.Waiting <= float64(x.Ready))
	}
	if s.Wanted = 0; d.Replicas > c.config.Bounds.Max {
		s.Wanted = d.Replicas
	}
	d.Clamp(c.config.Bounds)
	return s, d
}

// unknown decides Unknown; a count outside the bounds still moves to the nearest bound.
func (c Scaler) unknown(obs *scaling.Observation, code scaling.Code, subject string, numbers ...float64) scaling.Decision {
	d := scaling.UnknownAt(obs.SpecReplicas, code, subject, numbers...)
	d.Clamp(c.config.Bounds)
	return d
}

// await decides while the capacity or the work is unknown: it scales up to the replicas that the running and waiting requests need at least.
func (c Scaler) await(s *State, d *scaling.Decision) {
	switch x := s.last(); {
	case s.Tuning.Capacity > 0:
		d.To(d.From, Resumed, "")
	case x.Finished < enough:
		d.To(d.From, Warming, "", x.Finished, enough)
	default:
		d.To(d.From, Untuned, "", x.At-s.Began)
	}
	if n := scaling.Ceil(c.config.crowd(s.last().admitted(), 0, c.slowness(&s.Tuning))); n > d.From {
		d.To(n, Crowded, "", float64(n), float64(d.From))
	}
}

// follow decides from the demand, and returns the replicas that are needed without hold and backlog.
func (c Scaler) follow(s *State, d *scaling.Decision) int32 {
	t, try, freeze := &s.Tuning, s.Tuning.trial, 0.0
	start := c.config.start(s)
	lead := start + c.config.wait()
	x := s.last()
	since, early := x.At-s.Since, 0.0
	if c.fixed != nil {
		try, freeze = *c.fixed, c.warm
	} else {
		freeze, early = lead+300, c.early(s, lead)
		try.Capacity /= s.margin(early)
	}
	roomy := try
	roomy.Capacity, roomy.Level = try.seen()/(1+s.Guard)/(1+start/3000+early), true
	spec := d.From
	came := c.came(s, &try, lead, d)
	n := try.staff(came.work)
	if kept := roomy.staff(came.mean); kept > n {
		d.Consider(kept, Unseen, "", float64(kept), float64(n), came.mean, roomy.given(came.mean))
		n = kept
	}
	then := s.growing(trendSpan(lead), lead, try.Dispersion)
	full := scaling.Ceil(c.config.crowd(then, came.prompts, c.slowness(t)))
	fullest := full
	if came.prefill != came.prompts {
		fullest = scaling.Ceil(c.config.crowd(then, came.prefill, c.slowness(t)))
	}
	if full > n {
		d.Consider(full, Crowded, "", float64(full), float64(n))
		n = full
	}
	if n == 0 {
		n = min(1, spec) // of none no pod could tell that one is needed
	}
	code := AtCapacity
	switch {
	case n > spec:
		code = AboveCapacity
	case n < spec:
		code = BelowCapacity
	}
	d.To(n, code, "", float64(n), float64(spec), came.work, try.given(came.work))
	young := scaling.Exceeds(freeze, since)
	if young {
		fullest = max(fullest, spec)
	}
	held := max(try.staff(s.Needs.hold(x.At, came.most, try.Hold)), roomy.staff(s.Means.hold(x.At, came.means, try.Hold)),
		int32(s.Counts.hold(x.At, float64(fullest), try.Hold)))
	held = min(held, max(n, spec)) // what has passed starts no replica
	switch {
	case held > n && held == spec && young:
		d.To(held, Fresh, "", since, freeze)
	case held > n:
		d.To(held, Held, "", float64(n), float64(held), try.Hold)
	}
	wanted := held
	if behind := c.behind(s); behind > 0 {
		within := max(drain, came.answer*c.config.SLO.TPOT.Seconds()/4)
		queues := float64(s.queues())
		if catch := min(try.staff(came.work+behind*came.each/within), scaling.Ceil(float64(n)+queues)); catch > wanted {
			wanted = catch
			d.To(wanted, Behind, "", x.Waiting, float64(x.Ready), queues, within)
		}
	}
	if most := s.Unsure.Guard; wanted < spec && most > s.Guard && c.fixed == nil {
		if kept := min(spec, scaling.Ceil(float64(wanted)*(1+most)/(1+s.Guard))); kept > wanted {
			d.To(kept, Unsure, "", float64(wanted), float64(kept), s.Guard, most)
			wanted = kept
		}
	}
	if wanted < spec && (x.Partly || x.Vague) {
		d.To(spec, Partly, "", float64(wanted), float64(spec))
	}
	if c.fixed != nil {
		return n
	}
	if try.Level {
		d.Consider(spec, Level, "", try.spare(), try.Fleet)
	}
	if t.Trust > 0.01 {
		d.Consider(spec, Trusted, "", t.Trust)
	}
	if s.Guard > 0.01 {
		d.Consider(spec, Guarded, "", s.Guard)
	}
	if t.Requests > 0 {
		d.Consider(spec, Replayed, "", t.Late, t.Allowed, float64(t.Requests), x.At-t.At)
		if found := t.found(); t.Capacity < 0.999*found {
			d.Consider(spec, Remembered, "", t.Capacity, found, t.Missed, t.Served)
		}
	} else {
		d.Consider(spec, Simulated, "", x.At-t.At)
	}
	if allowed := 1 - c.config.Goal; scaling.Exceeds(t.Hopeless, allowed) && t.Missed > 0 { // or the server is faster than it was said to be
		d.Consider(spec, Unattainable, "", t.Hopeless, allowed)
	}
	return n
}

// lead is the time from a need to a replica that serves it, in seconds.
func (c Scaler) lead(s *State) float64 {
	return c.config.start(s) + c.config.wait()
}

// slowness is the factor by which the server is slower than configured. The server of a replay is calibrated already.
func (c Scaler) slowness(t *Tuning) float64 {
	if c.fixed != nil {
		return 1
	}
	return t.slower(&c.config.Server)
}

// crowd returns how many replicas n the requests in flight need for their batch slots, for their KV caches, and to generate tokens
// in time by the step-time law, f times slower, with P prompt tokens/s:
//
//	f (Base + Sequence R/n + KVToken K/n) <= 0.95 TPOT (1 - f PrefillToken P/n),
//
// and R + 2 sqrt(R) at most: then each has a replica to itself, up to chance, and more replicas make none faster.
//
// This reacts at once; the histogram of TPOT counts a slow answer only when it has finished.
func (c *Config) crowd(x load, prompts, f float64) float64 {
	v := &c.Server
	full := max(x.running/(mostRunning*float64(v.MaxSeqs)), x.kv/mostKV)
	most := inTime * c.SLO.TPOT.Seconds()
	if most <= f*v.Base {
		return full // no count of replicas makes it
	}
	tokens := v.Sequence*x.running + v.KVToken*x.kv*float64(v.KVTokens) + v.PrefillToken*prompts*most
	alone := x.running + 2*math.Sqrt(x.running)
	return max(full, min(f*tokens/(most-f*v.Base), alone))
}

// behind returns how many requests wait that no ready replica has room for.
func (c Scaler) behind(s *State) float64 {
	x := s.last()
	waiting := x.Waiting - float64(x.Ready)
	if waiting <= 0 {
		return 0
	}
	return max(0, waiting-c.free(s))
}

// free returns how many more requests the ready replicas could serve in time, beside those in flight. A replica whose requests are
// unknown counts as if it were empty. Requests that wait although replicas have room wait in the queues of full replicas: a new
// replica would not get them.
func (c Scaler) free(s *State) (requests float64) {
	x, from := s.last(), s.back(rateSpan)
	if x.At <= from.At {
		return 0
	}
	known, slower := float64(x.Ready), c.slowness(&s.Tuning)
	if x.Vague {
		known = 0
		if x.Silent > 0 {
			known = float64(x.Ready - x.Silent)
		}
		requests = (float64(x.Ready) - known) / c.config.crowd(load{running: 1}, 0, slower)
	}
	if x.Running > 0 {
		used := c.config.crowd(x.load(), (x.Prefilled-from.Prefilled)/(x.At-from.At), slower)
		requests += max(0, known-used) * x.Running / used
	}
	return requests
}

// queues returns how many replicas were ready while the present queue grew to its highest: what waits is in their queues. Replicas that
// became ready since then have got none of it.
func (s *State) queues() int32 {
	last := len(s.Samples) - 1
	ready, most := s.Samples[last].Ready, s.Samples[last].Waiting
	for i := last; i > 0; i-- {
		x := &s.Samples[i]
		switch {
		case x.Partly || x.Vague: // more may have waited
		case x.Waiting <= float64(x.Ready):
			return ready
		case x.Waiting >= most:
			most, ready = x.Waiting, min(ready, x.Ready, s.Samples[i-1].Ready)
		}
	}
	return ready
}

// margin is what the capacity that was found is divided by before a replica is given it.
func (s *State) margin(early float64) float64 { return (1 + s.Guard) * (1 + early) }

// early is the extra headroom of a young state and of a large fleet.
func (c Scaler) early(s *State, lead float64) float64 {
	return prior(s.last().At-s.Began, lead) + s.Tuning.ample(lead)
}

// prior is the extra headroom of a young state, for what can happen within a cold start. It decays as more of the traffic is seen.
func prior(age, lead float64) float64 {
	return (0.1 + min(0.5, lead/1000)) * math.Exp2(-age/max(900, 2*lead))
}

// ample is the extra headroom of a large fleet, as the term for noise and rounding leave it little of what they leave a small one: room
// for changes of the load that the past did not show.
func (t *Tuning) ample(lead float64) float64 {
	if r := t.Mean / t.Fleet; r > large {
		return ample * (1 - large/r) * min(1, lead/150)
	}
	return 0
}

// trendSpan is the length of the window, in seconds, that a trend is measured over.
func trendSpan(lead float64) float64 { return min(max(1.5*lead, 180), 900) }

// guard raises the guard while significantly more requests miss the SLO than the goal allows although the fleet has had the replicas
// it needs for a while: a replica then takes less work than was found. The guard falls slowly while the goal is met, and stays as
// it is while nothing is known. The fleet is settled if it has what it needs and no queue; it may be if that is not known of the queue.
func (s *State) guard(allowed float64, settled, mayBe bool) {
	if len(s.Samples) < 2 {
		return
	}
	was := Watch{s.Guard, s.Settled}
	sure := s.watch(was, allowed, settled)
	s.Guard, s.Settled = sure.Guard, sure.Settled
	if s.Unsure == was && settled == mayBe {
		s.Unsure = sure
		return
	}
	s.Unsure = s.watch(s.Unsure, allowed, mayBe)
	s.Unsure.Guard = max(s.Unsure.Guard, s.Guard)
}

// watch moves one of the two guards by the last sample.
func (s *State) watch(w Watch, allowed float64, settled bool) Watch {
	x := s.last()
	switch {
	case !settled:
		w.Settled = 0
	case w.Settled == 0:
		w.Settled = x.At
	}
	span := guardSpan
	if w.Settled != 0 {
		span = min(span, x.At-w.Settled-settle)
	}
	from := s.back(max(span, 1))
	n := x.served(from)
	if n <= 0 {
		return w
	}
	missed := x.missed(from)
	dt := min(s.Every, 60)
	switch {
	case missed <= allowed*n:
		w.Guard = max(0, w.Guard-guardDown*dt)
	case w.Settled != 0 && span > 0 && beyondChance(missed, allowed*n):
		w.Guard = min(mostGuard, w.Guard+guardUp*dt)
	}
	return w
}

// beyondChance reports whether a count is more than two standard deviations above its expectation.
func beyondChance(n, expected float64) bool { return n > expected+2*math.Sqrt(expected)+1 }

// stale is the age in seconds beyond which a sample is not used: four scrape and control intervals.
func (c *Config) stale() float64 { return 4 * c.wait() }

// wait is the longest time in seconds from a change of the load to the decision that sees it: an interval of each kind.
func (c *Config) wait() float64 { return (c.Scrape + c.Control).Seconds() }

// start is how long a start takes, in seconds: the P90 of the observed starts.
func (c *Config) start(s *State) float64 { return starts.P90(s.Starts, c.ColdStart.Seconds()) }
