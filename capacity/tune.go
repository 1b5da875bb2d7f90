package capacity

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Past is what is known of recent traffic and of how it was served, the input of a tuning. It is plain data.
type Past struct {
	Samples []Sample `json:"samples"` // oldest first
	Lengths []Sizes  `json:"lengths"`
	Start   float64  `json:"start"` // duration of a start in seconds
	Last    Tuning   `json:"last"`
	// Began is when the policy began, in Unix seconds: 0 if that is not known.
	Began float64 `json:"began,omitempty"`
	// Shown are the first bounds of the histograms' buckets from the SLO on. Only what took longer certainly missed the SLO, and counts
	// as late or slow in the samples. Zero is the SLO itself.
	Shown sim.SLO `json:"shown,omitzero"`
}

// A Tuning is what was found from the past.
type Tuning struct {
	trial

	At    float64 `json:"at,omitempty"` // Unix seconds of the last sample of the past
	Which int     `json:"which,omitempty"`
	// Found is the capacity that was found last for each choice of hold, span, trend and level; 0 for none.
	Found []float64 `json:"found,omitempty"`
	// Least and Spare remember earlier tunings and decay within hours: the smallest share of Fleet that Capacity was, and the most
	// replicas that it left beside those that the Mean work fills. In that time so many requests were Served, and so many of them
	// Missed the SLO: those that were measured, and, unless some are excused, as many as a replay says to be in the buckets of the SLO.
	Least  float64 `json:"least,omitempty"`
	Spare  float64 `json:"spare,omitempty"`
	Missed float64 `json:"missed,omitempty"`
	Served float64 `json:"served,omitempty"`
	// Hidden is how many of Missed were not measured.
	Hidden float64 `json:"hidden,omitempty"`
	// SLO is the one by which they were missed.
	SLO sim.SLO `json:"slo,omitzero"`
	// Slowness is the factor by which the server's times are longer than the configuration says, whose times were Law: base, prompt
	// token, sequence and cached token.
	Slowness float64    `json:"slowness,omitempty"`
	Law      [4]float64 `json:"law,omitzero"`
	// Bias is the factor by which more requests really missed the SLO than in a replay with the same replicas, at least 1.
	Bias     float64 `json:"bias,omitempty"`
	Requests int     `json:"requests,omitempty"` // that were replayed; 0 while there are too few
	Late     float64 `json:"late,omitempty"`     // share of them that missed the SLO in the replay
	Allowed  float64 `json:"allowed,omitempty"`  // share of them that may miss it in a replay
	Attained bool    `json:"attained,omitempty"` // whether any choice met the goal
	Replays  int     `json:"replays,omitempty"`  // made by the last tuning
	Spent    float64 `json:"spent,omitempty"`    // work of these replays: requests, and three for each scrape of a replica
	// Hopeless is the share of the requests that miss the SLO even on an idle replica, as simulated.
	Hopeless float64 `json:"hopeless,omitempty"`
}

// hopeless is Hopeless, but no more than the share that missed the SLO.
func (t *Tuning) hopeless() float64 { return min(t.Hopeless, t.Missed/max(t.Served, 1)) }

// measured is hopeless, but no more than the share that was measured: what is measured is compared with this.
func (t *Tuning) measured() float64 {
	return min(t.Hopeless, max(0, t.Missed-t.Hidden)/max(t.Served, 1))
}

// mayMiss returns the share of the requests that may miss the SLO: 1 - goal. If more than that are hopeless, no count of replicas meets
// the goal. Then 1 - goal of the others may miss it, too: to ask for less would ask for every replica there is. In between, up to
// twice 1 - goal, it grows without a jump:
//
//	may = 1 - goal + beyond + min(beyond, 1 - goal),   beyond = max(0, hopeless - (1 - goal))
func mayMiss(hopeless, goal float64) float64 {
	may := 1 - goal
	beyond := max(0, hopeless-may)
	return may + beyond + min(beyond, may)
}

// A trial is a setting that a replay can try.
type trial struct {
	Capacity    float64 `json:"capacity,omitempty"`    // work that a replica may be given, in replica-seconds per second
	PromptToken float64 `json:"promptToken,omitempty"` // replica-seconds of a prompt token
	AnswerToken float64 `json:"answerToken,omitempty"` // replica-seconds of an answer token
	Hold        float64 `json:"hold,omitempty"`        // seconds for which a need is held
	Span        float64 `json:"span,omitempty"`        // window of the arrival rate in seconds
	Trend       bool    `json:"trend,omitempty"`
	Dispersion  float64 `json:"dispersion,omitempty"` // of the arrivals: 1 for Poisson arrivals
	Deviation   float64 `json:"deviation,omitempty"`  // standard deviation of a prompt over its mean, 0 if unknown
	// Fleet is the capacity of a few simulated replicas for requests of the observed lengths: no replay tries more than 0.85 of it, or
	// 0.95 with full Trust.
	Fleet float64 `json:"fleet,omitempty"`
	// Trust says how far the past is trusted to show what comes, from 0 to 1: see Past.trust.
	Trust float64 `json:"trust,omitempty"`
	// Level says that the headroom is a constant number of replicas: as many as Capacity leaves at the Mean work.
	Level bool    `json:"level,omitempty"`
	Mean  float64 `json:"mean,omitempty"` // mean work of the replayed past, in replica-seconds per second
}

func (t *Tuning) validate() error {
	for _, x := range [...]float64{t.Capacity, t.PromptToken, t.AnswerToken, t.Hold, t.Fleet, t.Slowness, t.Late, t.Allowed, t.Hopeless, t.Dispersion, t.Deviation, t.Bias, t.Mean, t.Least, t.Spare, t.Spent} {
		if !(x >= 0 && x <= mostCount) {
			return errors.New("tuning: must be numbers that are not negative, at most 2^53")
		}
	}
	if !counts(t.Missed) || !counts(t.Served) || !counts(t.Hidden) { // of several hours, or before larger counts were left out
		return errors.New("tuning: must be numbers that are not negative")
	}
	for _, x := range t.Law {
		if !counts(x) {
			return errors.New("tuning.law: must be times that are not negative")
		}
	}
	if t.Which < 0 || t.Which >= choices || len(t.Found) > choices {
		return errors.New("tuning.which: must be one of the choices")
	}
	if t.Hopeless > 1 {
		return errors.New("tuning.hopeless: must be a share of the requests")
	}
	if t.Late > t.Allowed {
		return errors.New("tuning.late: must not be above allowed")
	}
	if !(t.Trust >= 0 && t.Trust <= 1) {
		return errors.New("tuning.trust: must be within 0 and 1")
	}
	if t.Capacity > 0 && t.PromptToken+t.AnswerToken <= 0 {
		return errors.New("tuning.promptToken: must be above 0 where there is a capacity")
	}
	if t.Capacity > 0 && t.Fleet <= 0 {
		return errors.New("tuning.fleet: must be above 0 where there is a capacity")
	}
	return nil
}

// A Tuner carries out tunings. Decide calls Tune at every decision at which a tuning is due, until it returns true; the Tuning it
// returns should be past.Tune(config).
type Tuner interface {
	Tune(config *Config, past func() Past) (Tuning, bool)
}

// Inline tunes inside Decide, which then takes up to ten seconds: for simulators and other callers that can wait.
type Inline struct{}

// Tune tunes at once.
func (Inline) Tune(c *Config, past func() Past) (Tuning, bool) {
	p := past()
	return p.Tune(c), true
}

// Background tunes in a goroutine; decisions use the last tuning meanwhile. A restart loses a tuning that is running, which is then
// begun again. A Background serves one policy.
type Background struct{ done chan Tuning }

// Tune starts a tuning, or returns one that is done.
func (b *Background) Tune(c *Config, past func() Past) (Tuning, bool) {
	if b.done == nil {
		b.done = make(chan Tuning, 1)
		p, config, done := past(), *c, b.done
		go func() { done <- p.Tune(&config) }()
		return Tuning{}, false
	}
	select {
	case t := <-b.done:
		b.done = nil
		return t, true
	default:
		return Tuning{}, false
	}
}

// due reports whether a tuning is due.
func (s *State) due() bool {
	x := s.last()
	return s.Tuning.Capacity == 0 && x.At-s.Began >= firstLook && x.Finished >= enough || x.At-s.Tuned >= tuneEvery
}

// tune asks for a tuning that is due.
func (c Scaler) tune(s State, shown sim.SLO) State {
	t, ok := c.tuner.Tune(c.config, func() Past {
		p := s.past(c.config.start(&s))
		p.Shown = shown
		return p
	})
	if !ok {
		return s
	}
	t.At = min(t.At, s.last().At) // of before the clock went back
	prompt, answer := s.sizes(lengthSpan)
	if was := s.Tuning.work(prompt, answer); was > 0 { // needs that are held were measured in another unit
		unit := t.work(prompt, answer) / was
		rate, _ := s.rate(rateSpan)
		now := rate * t.work(prompt, answer)
		given, before := t.given(now), s.Tuning.given(now/unit)*unit
		if bolder := given > before || t.Hold < s.Tuning.Hold; bolder && !s.calm(mayMiss(t.measured(), c.config.Goal)) {
			s.Tuned = s.last().At - tuneEvery + retry
			if s.Tuning.outdated(&c.config.Server) {
				s.Tuning.Slowness, s.Tuning.Law = t.Slowness, t.Law // or a tuning would be due at each decision
			}
			return s
		}
		s.Needs.times(unit)
		s.Means.times(unit)
		if given < before { // what the guard kept room for is known now, as far as a replica is given less
			for _, guard := range [...]*float64{&s.Guard, &s.Unsure.Guard} {
				*guard = max(0, (1+*guard)*given/before-1)
			}
		}
	}
	s.Tuning = t
	if x := s.last(); x.At-s.Tuned >= tuneEvery {
		s.Tuned = x.At
	}
	return s
}

// calm reports whether the misses of the last two minutes are within the goal, up to chance, and no queue has built up.
func (s *State) calm(allowed float64) bool {
	x, from := s.last(), s.back(guardSpan)
	n := x.served(from)
	return x.queued() <= float64(x.Ready) && !beyondChance(x.missed(from), allowed*n)
}

// past returns what a tuning may look at, as a copy.
func (s *State) past(start float64) Past {
	p := Past{Samples: slices.Clone(s.Samples), Start: start, Last: s.Tuning, Began: s.Began}
	p.Last.Found = slices.Clone(p.Last.Found)
	p.spread()
	p = *p.recent()
	for i := range s.Lengths {
		p.Lengths = append(p.Lengths, s.Lengths[i].clone())
	}
	return p
}

// recent returns the past without the samples that are more than an hour older than the last one.
func (p *Past) recent() *Past {
	own := *p
	for len(own.Samples) > 1 && own.Samples[0].At < own.Samples[len(own.Samples)-1].At-history {
		own.Samples = own.Samples[1:]
	}
	return &own
}

// Tune finds the capacity, and the choice of hold, span, trend and level. It is a pure function of the last hour, and
// usually takes up to ten seconds.
//
// With fewer than a hundred requests to replay, the capacity is that of a few simulated replicas (Tuning.Fleet) over 1.2. That takes
// 60 requests; where half an hour has fewer, as many are drawn from the lengths of those that came. With more,
// this algorithm itself runs over the past in the simulator, and the capacity is the largest that passes two replays:
//
//   - of the past as it was, with at most 0.85 (1 - goal) / Bias of the requests missing the SLO;
//   - of 1.1 times that traffic, with at most 1.5 %, or twice the first limit if that is more.
//
// Where more than 1 - goal miss the SLO even on an idle replica, as many of the others may miss it: see mayMiss.
//
// If no capacity passes, because the past has bursts that nobody can serve without foresight, it is one that is nearly as good as
// the best, of those from half of Fleet on; one that passes may be down to a quarter of it. Of the choices of hold, span, trend and
// level the cheapest is taken; one that is not in force must be 2 % cheaper. The more requests have missed the SLO lately, the closer
// the capacity stays to what earlier tunings found: see remember. What was missed before the first replicas that the policy asked for
// could serve does not count after an hour.
//
// A tuning that has more than 800 million events, as with servers that take microseconds for a step, finds nothing: what was in force
// stays.
func (p *Past) Tune(c *Config) Tuning { return p.tuned(c, mostLooks) }

// tuned is Tune with so many looks.
func (p *Past) tuned(c *Config, looks int) Tuning {
	p = p.recent()
	t := p.Last
	t.Found = slices.Clone(t.Found) // p is not changed
	t.Replays, t.Spent = 0, 0
	t.Slowness, t.Law = t.slower(&c.Server), times(&c.Server)
	if len(p.Samples) == 0 {
		return t
	}
	inForce := t
	inForce.Found = slices.Clone(t.Found)
	warm := min(max(60, 3*p.residence()), 600)
	lead := p.Start + c.Scrape.Seconds() + c.Control.Seconds()
	most := p.replayed(lead)
	share := p.share(most)
	requests, from, to := p.traffic(most, share, warm)
	few := len(requests) < int(enough)
	if few {
		if p.Samples[len(p.Samples)-1].At-p.Samples[0].At < history/2 {
			return t
		}
		if len(requests) == 0 || t.Requests > 0 { // the capacity in force is of the last replays, their mean is over
			t.Mean, t.Level = 0, false
			if len(requests) > 0 {
				prompt, answer := means(requests)
				t.Mean = t.work(prompt*(1-p.hits(requests)), answer) * float64(len(requests)) / (to - from + warm) / share
			}
			return t
		}
		share *= 1.2 * enough / float64(len(requests))
		requests, from, to = p.traffic(most, share, warm)
	}
	replayed := !few && len(requests) >= 100 && to-from >= 120
	if replayed || t.Requests == 0 {
		t.At = p.Samples[len(p.Samples)-1].At
	}
	t.Dispersion, t.Deviation = p.dispersion(), p.deviation()
	t.Slowness = p.slowness(&c.Server)
	server := slower(c.Server, t.Slowness)
	prompt, answer := means(requests)
	hits := p.hits(requests)
	t.reprice(&server, c.SLO, prompt, answer, hits)
	work := t.work(prompt*(1-hits), answer)
	replicas := min(max(p.Samples[len(p.Samples)-1].Ready, 2), 8)
	server.PrefillToken *= 1 - hits
	b := bench{config: c, server: server, start: p.Start, hits: hits, most: looks}
	t.Mean = work * float64(len(requests)) / (to - from + warm) / share
	rate, hopeless := b.fleet(requests, replicas)
	t.Fleet, t.Hopeless = rate*work/staffed(float64(replicas)), hopeless
	if t.Capacity == 0 || few {
		t.Capacity = t.Fleet / careful
		if t.Which = 1; p.Start > 120 {
			t.Which = 3
		}
	}
	other := t.SLO != (sim.SLO{}) && t.SLO != c.SLO
	if other { // what was missed by another SLO need not be missed by this one, but for what is hopeless
		t.Missed, t.Hidden = min(max(0, t.Missed-t.Hidden), hopeless*t.Served), 0
	}
	if replayed || t.Requests == 0 { // otherwise the next tuning looks at what was missed since t.At, by the other SLO too
		t.SLO = c.SLO
	}
	unsearched := t
	unsearched.Found = slices.Clone(t.Found)
	if replayed && !b.exhausted() {
		b.requests, b.span, b.warm = requests, time.Duration((to-from+warm)*float64(time.Second)), time.Duration(warm*float64(time.Second))
		b.strained, _, _ = p.trafficFrom(from, most*2, strain*share, warm)
		b.strained = slices.DeleteFunc(b.strained, func(r sim.Request) bool { return r.At >= b.span })
		b.initial, b.share = scaling.Ceil(float64(p.readyAt(from))*share), share
		since, hidden := p.Last.At, 0.0
		switch {
		case other:
			since = t.At
		case p.forgets(t.At):
			since = p.underWay(lead)
		}
		b.shown = cmp.Or(p.Shown, c.SLO)
		t.Bias, hidden = b.bias(p, most, since)
		b.allowed = min(1, within*mayMiss(hopeless, c.Goal)/t.Bias)
		t.Allowed = b.allowed
		t.Requests = len(requests)
		t.Trust = p.trust(&t, mayMiss(t.hopeless(), c.Goal))
		found := b.search(&t)
		if p.forgets(t.At) {
			t.Missed, t.Hidden, t.Served = 0, 0, 0
		}
		missed, served := p.blamed(since)
		if _, of := p.missed(since); of != served { // the replay's are those of a fleet that lacked replicas
			hidden = 0
		}
		hidden *= served
		passed := t.At - p.Last.At
		t.Hidden = t.Hidden*kept(passed) + hidden
		if found {
			t.remember(passed, missed+hidden, served, mayMiss(t.hopeless(), c.Goal))
		} else { // the capacity in force is what memory made of an earlier one
			t.count(passed, missed+hidden, served)
		}
	}
	if b.exhausted() {
		inForce.At, inForce.Spent, unsearched.Spent = t.At, mostSpent, mostSpent
		if inForce.Capacity > 0 {
			return inForce
		}
		t = unsearched
	}
	k := knobs(p.Start)[t.Which]
	t.Hold, t.Span, t.Trend, t.Level = k.hold, k.span, k.trend, k.level && replayed // the capacity is not of this mean otherwise
	return t
}

// remember lowers the capacity towards what earlier tunings found, since what one hour has shown comes again, but not in every hour. It
// remembers the smallest share of Fleet and the most spare replicas, and uses whichever of the two needs fewer replicas now: on a
// rising load the share from the bottom would be too small, and on a falling one the spare replicas from the top too many. The
// memory counts by how much of the allowed misses has been used up lately,
//
//	capacity = found (remembered/found)^min(1, missed/allowed)
//
// so that a fleet that misses nothing pays nothing for it. It decays to 1/e in six hours. Replays do not show why more requests missed
// the SLO than may, so the capacity is then lower than anything they found,
//
//	capacity / (1 + 0.15 min(2, ln(missed/allowed)))
//
// but for this it does not fall below half of Fleet. since is the seconds since the last tuning, served the requests since then,
// missed those of them that missed the SLO, and allowed the share that may.
func (t *Tuning) remember(since, missed, served, allowed float64) {
	kept := kept(since)
	found, filled := t.Capacity/t.Fleet, t.Mean/t.Fleet
	spare := filled/found - filled
	if t.Least == 0 {
		t.Least, t.Spare = found, spare
	}
	t.Least = min(found, found+(t.Least-found)*kept)
	t.Spare = max(spare, spare+(t.Spare-spare)*kept)
	t.count(since, missed, served)
	if most := allowed * t.Served; t.Missed > 0 && most > 0 {
		remembered := max(t.Least, filled/(filled+t.Spare))
		t.Capacity *= math.Pow(min(1, remembered/found), min(1, t.Missed/most))
		excess := min(math.Log(max(1, t.Missed/most)), mostExcess)
		t.Capacity = min(t.Capacity, max(t.Capacity/(1+unexplained*excess), t.Fleet*lowest))
	}
}

// count adds the requests of the seconds since the last tuning, and those of them that missed the SLO.
func (t *Tuning) count(since, missed, served float64) {
	kept := kept(since)
	t.Missed, t.Served = t.Missed*kept+missed, t.Served*kept+served
}

// kept is the share of a memory that is left after so many seconds.
func kept(since float64) float64 { return math.Exp(-max(since, 0) / memory) }

// found is the capacity that the last replays found, 0 where there were none.
func (t *Tuning) found() float64 {
	if t.Which >= len(t.Found) {
		return 0
	}
	return t.Found[t.Which]
}

// missed returns how many requests missed the SLO since a time, and how many there were.
func (p *Past) missed(from float64) (missed, of float64) {
	a, b := p.since(from)
	return max(0, b.missed(a)), max(0, b.served(a))
}

// since returns the first sample from a time on, and the last.
func (p *Past) since(from float64) (first, last *Sample) {
	i := 0
	for i < len(p.Samples)-1 && p.Samples[i].At < from {
		i++
	}
	return &p.Samples[i], &p.Samples[len(p.Samples)-1]
}

// blamed is missed without what is excused.
func (p *Past) blamed(from float64) (missed, of float64) {
	a, b := p.since(from)
	return max(0, b.missed(a)-(b.Excused-a.Excused)), max(0, b.served(a)-(b.ExcusedOf-a.ExcusedOf))
}

// forgets reports whether a tuning at a time is the first after the first hour of the policy. What was missed before it was under way is
// no longer in the past that is replayed then, and forgotten.
func (p *Past) forgets(at float64) bool {
	hour := p.Began + history
	return p.Began != 0 && p.Last.At <= hour && at > hour
}

// underWay returns the time from which the first replicas that the policy asked for may serve, and no queue is left of before.
func (p *Past) underWay(lead float64) float64 {
	for i := range p.Samples {
		if x := &p.Samples[i]; x.At > p.Began+lead && x.queued() <= float64(x.Ready) {
			return x.At
		}
	}
	return p.Samples[len(p.Samples)-1].At
}

// late returns the share of requests that missed the SLO since a time, 0 if there were none.
func (p *Past) late(from float64) float64 {
	missed, of := p.missed(from)
	return missed / max(of, 1)
}

// replayed returns how many requests a replay may have: mostReplay, or as many as came in six leads if these are more, but at most
// four times mostReplay. A past of a lead or two says little of what happens within one.
func (p *Past) replayed(lead float64) int {
	span := p.Samples[len(p.Samples)-1].At - p.Samples[0].At
	return int(min(max(mostReplay, p.all()*leads*lead/max(span, 1)), longest*mostReplay))
}

// all is how many requests came.
func (p *Past) all() (came float64) {
	for i := 1; i < len(p.Samples); i++ {
		came += p.came(i)
	}
	return came
}

// share returns the share of the traffic that is replayed, on the same share of the fleet. It is 1, or less where more requests came
// than a replay may have, but at least six replicas: fewer have a lower capacity each.
func (p *Past) share(most int) float64 {
	ready := 0.0
	for i := range p.Samples {
		ready += float64(p.Samples[i].Ready)
	}
	return min(p.affordable(), max(float64(most)/max(p.all(), 1), smallest*float64(len(p.Samples))/max(ready, 1)))
}

// affordable returns the share of the fleet that a replay may have at most: all of it, or mostFleet replicas.
func (p *Past) affordable() float64 { return min(1, mostFleet/p.most()) }

// most is the largest number of ready replicas, at least 1.
func (p *Past) most() float64 {
	most := int32(1)
	for i := range p.Samples {
		most = max(most, p.Samples[i].Ready)
	}
	return float64(most)
}

// readyAt returns how many replicas were ready at a time or became ready within one start after it: those were starting then.
func (p *Past) readyAt(t float64) int32 {
	n := int32(1)
	for i := range p.Samples {
		if x := &p.Samples[i]; x.At >= t && x.At <= t+p.Start {
			n = max(n, x.Ready)
		}
	}
	return n
}

// hits returns the share of prompt tokens that were found in prefix caches: by how much the mean of computed prompt tokens is below the
// mean of prompt lengths, minus two standard deviations of the difference, and 0 if less than a tenth.
func (p *Past) hits(requests []sim.Request) float64 {
	a, b := &p.Samples[0], &p.Samples[len(p.Samples)-1]
	firsts := b.Firsts - a.Firsts
	prompt, _ := means(requests)
	if firsts <= 0 || prompt <= 0 {
		return 0
	}
	squares := 0.0
	for _, r := range requests {
		d := float64(r.Input) - prompt
		squares += d * d
	}
	chance := math.Sqrt(squares / float64(len(requests)) * (1/firsts + 1/float64(len(requests))))
	share := 1 - ((b.Prefilled-a.Prefilled)/firsts+2*chance)/prompt
	if share < 0.1 {
		return 0
	}
	return min(share, 0.99)
}

func means(requests []sim.Request) (prompt, answer float64) {
	for _, r := range requests {
		prompt += float64(r.Input)
		answer += float64(r.Output)
	}
	n := float64(len(requests))
	return prompt / n, answer / n
}

// work returns the replica-seconds of a request with so many prompt and answer tokens.
func (t *trial) work(prompt, answer float64) float64 {
	return t.PromptToken*prompt + t.AnswerToken*answer
}

// spare is the headroom that the capacity leaves at the mean work, in replicas.
func (t *trial) spare() float64 { return t.Mean * max(0, 1/t.Capacity-1/t.Fleet) }

// staff returns how many replicas the work needs: r + 0.3 sqrt(r), where r is work/capacity or, if the headroom is level, work/Fleet
// plus the spare replicas.
func (t *trial) staff(work float64) int32 {
	r := t.replicas(work)
	return scaling.Ceil(r + spread*math.Sqrt(r))
}

// replicas is what staff returns before noise and rounding.
func (t *trial) replicas(work float64) float64 {
	if t.Level {
		return work/t.Fleet + t.spare()
	}
	return work / t.Capacity
}

// given is the work that each replica is given: the capacity, unless the headroom is level.
func (t *trial) given(work float64) float64 {
	if t.Level && work > 0 {
		return work / t.replicas(work)
	}
	return t.Capacity
}

// staffed is the inverse of staff: the r for which r + spread sqrt(r) = n.
func staffed(n float64) float64 {
	x := (-spread + math.Sqrt(spread*spread+4*n)) / 2
	return x * x
}
