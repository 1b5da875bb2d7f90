package capacity

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/starts"
	"github.com/inferscale/inferscale/scaling"
)

// The codes. work is the seconds of a replica that arrive a second, capacity how much of it one replica may be given.
const (
	// AboveCapacity asks for more replicas: what arrives needs them.
	AboveCapacity scaling.Code = "AboveCapacity needed > from, work, capacity"
	// BelowCapacity asks for fewer.
	BelowCapacity scaling.Code = "BelowCapacity needed < from, work, capacity"
	// AtCapacity holds: so many are needed.
	AtCapacity scaling.Code = "AtCapacity needed == from, work, capacity"
	// Rising counts the trend of the arrivals, in requests/s, up to when a replica that is asked for now would be ready.
	Rising scaling.Code = "Rising rate < expected, lead:s"
	// Crowded asks for more than the work does: batches or KV caches are full, or tokens come too slowly, or will when a
	// replica that is asked for now would be ready, as what is in flight grows.
	Crowded scaling.Code = "Crowded full > needed"
	// Behind asks for more for as long as requests wait for whom no ready replica has room: what they need, within so many
	// seconds, and no more replicas beside those that are needed than are ready.
	Behind scaling.Code = "Behind waiting > ready, drain:s"
	// Held keeps what was needed a while ago: letting it go and starting it again would cost more.
	Held scaling.Code = "Held needed < held, hold:s"
	// Fresh keeps what runs while too little has been seen.
	Fresh scaling.Code = "Fresh age:s < needed:s"
	// Level says that the room beside work/fleet is a number of replicas, the same whatever the work.
	Level scaling.Code = "Level spare, fleet"
	// Unseen keeps more than the work asks for as it comes: its mean of five minutes, with room for what was never seen.
	Unseen scaling.Code = "Unseen kept > needed, mean, capacity"
	// Guarded takes the capacity for less than it was found to be, as the SLO was missed: by the factor 1+guard.
	Guarded scaling.Code = "Guarded guard"
	// Partly keeps what runs: pods did not answer, or may have more than is known.
	Partly scaling.Code = "Partly needed < from"
	// Replayed says where the capacity is from: the past, in which so many requests were late by the replay.
	Replayed scaling.Code = "Replayed late <= allowed, requests, age:s"
	// Remembered gives a replica less than the last replays found: earlier ones found less, and requests have missed the SLO since.
	Remembered scaling.Code = "Remembered capacity < found"
	// Simulated says where the capacity is from: a few simulated replicas with requests as long as those seen.
	Simulated scaling.Code = "Simulated age:s"
	// TurnedBack holds for a round, as the clock went back.
	TurnedBack scaling.Code = "TurnedBack by:s"
	// Warming holds: nothing is known of the capacity before so many requests have finished, and it was looked for. Only what is
	// in flight asks for more, as Crowded.
	Warming scaling.Code = "Warming finished, needed"
	// NoSample can say nothing: the observation lacks a metric.
	NoSample scaling.Code = "NoSample"
	// Stale can say nothing: what the observation has is that old.
	Stale scaling.Code = "Stale age:s > limit:s"
)

const (
	enough    = 60.0 // requests that must have finished before a capacity is looked for
	firstLook = 30.0 // seconds after which it is
	mostGuard = 1.5
	guardSpan = 120.0      // seconds over which misses are counted
	settle    = 60.0       // of those for which the fleet had what it needs, the first do not count
	guardUp   = 0.15 / 30  // a second
	guardDown = 0.003 / 15 // a second
)

// A Scaler asks for as many replicas as the work that arrives needs. The zero value decides Unknown (NotConfigured).
type Scaler struct {
	config *Config
	tuner  Tuner
	fixed  *trial  // what a replay tries, instead of a tuner's
	warm   float64 // seconds before it counts
}

// New returns the Scaler of a configuration, or every rule that it breaks. The tuner is what finds the capacity: nil is
// the one that does so inside Decide.
func New(c Config, t Tuner) (Scaler, error) {
	if err := c.Validate(); err != nil {
		return Scaler{}, err
	}
	if t == nil {
		t = Inline{}
	}
	return Scaler{config: &c, tuner: t}, nil
}

// Kind names the state of a Scaler.
func (Scaler) Kind() scaling.Kind { return scaling.Kind{Name: "capacity", Version: 1} }

// Applied notes what was asked for, to learn how long a start takes.
func (Scaler) Applied(s State, now time.Time, from, to int32) State {
	starts.Applied(&s.Learned, seconds(now), from, to)
	return s
}

// Decide asks for what the work needs that arrives.
func (c Scaler) Decide(s State, now time.Time, obs scaling.Observation) (State, scaling.Decision) {
	if c.config == nil {
		return s, scaling.UnknownAt(obs.SpecReplicas, scaling.NotConfigured, "")
	}
	if s.Asked == 0 || seconds(now)-s.Asked > c.config.stale() {
		starts.Unseen(&s.Learned, obs.ReadyReplicas)
	}
	back := s.turnBack(seconds(now))
	x, missing := read(now, &obs, c.config.SLO)
	if missing != "" {
		return s, c.unknown(&obs, NoSample, missing)
	}
	fresh := s.see(x, &obs)
	if age, limit := seconds(now)-s.last().At, c.config.stale(); age > limit {
		return s, c.unknown(&obs, Stale, "", age, limit)
	}
	starts.See(&s.Learned, seconds(now), obs.SpecReplicas, obs.ReadyReplicas)
	if fresh && c.fixed == nil && s.due() {
		s = c.tune(s)
	}
	d := scaling.HoldAt(obs.SpecReplicas)
	warming, n := c.fixed == nil && s.Tuning.Capacity <= 0, int32(0)
	if warming {
		c.await(&s, &d)
	} else {
		n = c.follow(&s, &d)
	}
	if back > 0 {
		d.To(obs.SpecReplicas, TurnedBack, "", back)
	}
	if fresh && c.fixed == nil && !warming {
		s.guard(1-c.config.Goal, obs.ReadyReplicas >= max(n, obs.SpecReplicas) && s.last().Ready >= n && s.last().queued() <= float64(s.last().Ready))
	}
	d.Clamp(c.config.Bounds)
	return s, d
}

// unknown says nothing, but that a count outside the bounds goes to the nearest.
func (c Scaler) unknown(obs *scaling.Observation, code scaling.Code, subject string, numbers ...float64) scaling.Decision {
	d := scaling.UnknownAt(obs.SpecReplicas, code, subject, numbers...)
	d.Clamp(c.config.Bounds)
	return d
}

// await sets the decision while nothing is known of the capacity: to as many replicas as what is in flight and what waits need at
// least, if those are more.
func (c Scaler) await(s *State, d *scaling.Decision) {
	d.To(d.From, Warming, "", s.last().Finished, enough)
	if n := scaling.Ceil(c.config.crowd(s.last().admitted(), 0, 1)); n > d.From {
		d.To(n, Crowded, "", float64(n), float64(d.From))
	}
}

// follow sets the decision to what is needed, and returns what the work alone needs.
func (c Scaler) follow(s *State, d *scaling.Decision) int32 {
	t, try, freeze := &s.Tuning, s.Tuning.trial, 0.0
	start := c.config.start(s)
	lead := start + c.config.Scrape.Seconds() + c.config.Control.Seconds() // from a need to a replica that serves it
	x := s.last()
	since, early := x.At-s.Since, 0.0
	if c.fixed != nil {
		try, freeze = *c.fixed, c.warm
	} else {
		freeze, early = lead+300, prior(x.At-s.Began, lead)
		try.Capacity /= (1 + s.Guard) * (1 + early)
	}
	roomy := try
	roomy.Capacity, roomy.Level = try.Fleet*seen/(1+s.Guard)/(1+start/3000+early), true
	spec := d.From
	came := c.came(s, &try, lead, d)
	n := try.staff(came.work)
	if kept := roomy.staff(came.mean); kept > n {
		d.Consider(kept, Unseen, "", float64(kept), float64(n), came.mean, roomy.Capacity)
		n = kept
	}
	then := s.growing(trendSpan(lead), lead, try.Dispersion)
	full := scaling.Ceil(c.config.crowd(&then, came.prompts, c.slowness(t)))
	if full > n {
		d.Consider(full, Crowded, "", float64(full), float64(n))
		n = full
	}
	code := AtCapacity
	switch {
	case n > spec:
		code = AboveCapacity
	case n < spec:
		code = BelowCapacity
	}
	d.To(n, code, "", float64(n), float64(spec), came.work, try.given(came.work))
	if since < freeze {
		full = max(full, spec)
	}
	held := max(try.staff(s.Needs.hold(x.At, came.work, try.Hold)), roomy.staff(s.Means.hold(x.At, came.mean, try.Hold)),
		int32(s.Counts.hold(x.At, float64(full), try.Hold)))
	switch {
	case held > n && held == spec && since < freeze:
		d.To(held, Fresh, "", since, freeze)
	case held > n:
		d.To(held, Held, "", float64(n), float64(held), try.Hold)
	}
	wanted := held
	if behind := x.Waiting - float64(x.Ready) - c.free(s); behind > 0 {
		within := max(drain, came.answer*c.config.SLO.TPOT.Seconds()/4)
		if catch := min(try.staff(came.work+behind*came.each/within), scaling.Ceil(float64(n)+float64(x.Ready))); catch > wanted {
			wanted = catch
			d.To(wanted, Behind, "", x.Waiting, float64(x.Ready), within)
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
	if s.Guard > 0.01 {
		d.Consider(spec, Guarded, "", s.Guard)
	}
	if t.Requests > 0 {
		d.Consider(spec, Replayed, "", t.Late, t.Allowed, float64(t.Requests), x.At-t.At)
		if found := t.found(); t.Capacity < 0.999*found {
			d.Consider(spec, Remembered, "", t.Capacity, found)
		}
	} else {
		d.Consider(spec, Simulated, "", x.At-t.At)
	}
	return n
}

// slowness is by what factor the configuration's server is slower; that of a replay is so already.
func (c Scaler) slowness(t *Tuning) float64 {
	if c.fixed != nil || t.Slowness == 0 {
		return 1
	}
	return t.Slowness
}

// crowd returns how many replicas n the requests in flight need: for their places in batches, their tokens in KV caches,
// and for their tokens to come in time by the step-time law, f times slower, with P prompt tokens/s,
//
//	f (Base + Sequence R/n + KVToken K/n) <= 0.95 TPOT (1 - f PrefillToken P/n).
//
// It is seen at once, where answers that are late are counted only when they are finished.
func (c *Config) crowd(x *Sample, prompts, f float64) float64 {
	v := &c.Server
	full := max(x.Running/(mostRunning*float64(v.MaxSeqs)), x.KV/mostKV)
	most := inTime * c.SLO.TPOT.Seconds()
	if most <= f*v.Base {
		return full // no count of replicas makes it
	}
	tokens := v.Sequence*x.Running + v.KVToken*x.KV*float64(v.KVTokens) + v.PrefillToken*prompts*most
	return max(full, f*tokens/(most-f*v.Base))
}

// free returns how many requests more the ready replicas could serve in time, beside what is in flight: as many as it is for those
// whose requests are known, and of the others as many as an empty one could. Where some wait nevertheless, they wait for
// replicas that are full, in queues of those: another replica would not get them.
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
		requests = (float64(x.Ready) - known) / c.config.crowd(&Sample{Running: 1}, 0, slower)
	}
	if x.Running > 0 {
		used := c.config.crowd(x, (x.Prefilled-from.Prefilled)/(x.At-from.At), slower)
		requests += max(0, known-used) * x.Running / used
	}
	return requests
}

// prior is the excess that is kept for what was never seen: what can happen within a cold start, less and less of it the
// more has been seen.
func prior(age, lead float64) float64 {
	return (0.1 + min(0.5, lead/1000)) * math.Exp2(-age/max(900, 2*lead))
}

// trendSpan is how far back a trend is looked for.
func trendSpan(lead float64) float64 { return min(max(1.5*lead, 180), 900) }

// guard raises the guard while more requests miss the SLO than may, by more than chance, although the fleet has had what
// it is thought to need for a while: its replicas take less than was found. It falls slowly while the goal is kept, and
// stays where nothing is known.
func (s *State) guard(allowed float64, settled bool) {
	if len(s.Samples) < 2 {
		return
	}
	x := s.last()
	switch {
	case !settled:
		s.Settled = 0
	case s.Settled == 0:
		s.Settled = x.At
	}
	span := guardSpan
	if s.Settled != 0 {
		span = min(span, x.At-s.Settled-settle)
	}
	from := s.back(max(span, 1))
	n := max(x.Firsts-from.Firsts, x.Timed-from.Timed)
	if n <= 0 {
		return
	}
	missed := x.missed(from)
	dt := min(s.Every, 60)
	switch {
	case missed <= allowed*n:
		s.Guard = max(0, s.Guard-guardDown*dt)
	case s.Settled != 0 && span > 0 && beyondChance(missed, allowed*n):
		s.Guard = min(mostGuard, s.Guard+guardUp*dt)
	}
}

// beyondChance reports whether a count is more than two deviations above what is expected.
func beyondChance(n, expected float64) bool { return n > expected+2*math.Sqrt(expected)+1 }

// stale is the age in seconds from which on a sample says nothing: four scrapes and decisions.
func (c *Config) stale() float64 { return 4 * (c.Scrape + c.Control).Seconds() }

// start is how long a start takes, in seconds: the P90 of those that were seen.
func (c *Config) start(s *State) float64 { return starts.P90(s.Starts, c.ColdStart.Seconds()) }
