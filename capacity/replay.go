package capacity

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A bench is the simulated fleet on which trials run.
type bench struct {
	config   *Config
	server   sim.Server
	start    float64
	shown    sim.SLO       // see Past.Shown
	since    time.Duration // of the replay: what it hides before that does not count
	requests []sim.Request
	strained []sim.Request
	span     time.Duration // of the replay
	warm     time.Duration // of it, before anything counts
	initial  int32
	share    float64 // of the traffic and of the fleet that is replayed
	hits     float64 // share of the prompts' tokens that are not computed, and are not work
	looks    int     // how often its simulations looked at their context between decisions: after each 65,536 events
	most     int     // how often they may; 0 is no limit
	replays  int
	spent    float64 // what the replays took so far, in requests: a scrape of a replica takes as long as three
	least    float64 // share of requests that was late in any replay with half of Fleet or more
	allowed  float64 // the share of requests that may be late in a replay
}

// search finds the largest capacity for each choice, beginning with the one in force, and takes the cheapest. If none meets the goal,
// because the past has bursts that no policy could have served without foresight, it takes the cheapest of those that are nearly
// as good as the best, with half of Fleet or more. If these do not hold for more traffic, the one in force stays, and found is false.
func (b *bench) search(t *Tuning) (found bool) {
	if len(t.Found) != choices {
		t.Found = make([]float64, choices)
	}
	b.replays, b.least = 0, 1
	least := proven
	if b.unanswerable() == 0 { // what no headroom could have avoided counts
		least = lowest
	}
	t.Attained = b.cheapest(t, least)
	if !t.Attained && b.least == 1 { // none of half of Fleet or more was tried, or all was late
		t.Attained = b.cheapest(t, lowest)
	}
	found = t.Attained
	if !found {
		b.allowed = min(1, 1.05*b.least+0.001)
		if found = b.cheapest(t, lowest); !found {
			t.Late = b.least
		}
	}
	t.Allowed, t.Replays, t.Spent = b.allowed, b.replays, b.spent
	return found
}

// cheapest takes the cheapest of the choices that meet the goal, if any does, with capacities of least or more of Fleet.
func (b *bench) cheapest(t *Tuning, least float64) bool {
	best, bestCost := t.trial, math.Inf(1)
	which := -1
	for n, k := range nearest(t.Which, choices) {
		if n > 0 && b.spent > mostSpent {
			break // of what was not tried, the last result stays
		}
		from, far := t.Found[k], !t.Attained
		if from == 0 {
			from, far = t.Capacity, false
		}
		u, late, cost, ok := b.largest(t, k, from, bestCost, t.Fleet*least, far)
		t.Found[k] = u
		if ok && cost < bestCost {
			which, best.Capacity, t.Late, bestCost = k, u, late, cost
			if k == t.Which {
				bestCost *= 0.98 // another must be cheaper by so much
			}
		}
	}
	if which >= 0 {
		t.Which, t.trial = which, best
	}
	return which >= 0
}

// nearest returns 0 to n-1 in order of their distance from k.
func nearest(k, n int) []int {
	order := []int{k}
	for d := 1; d < n; d++ {
		for _, i := range [...]int{k - d, k + d} {
			if i >= 0 && i < n {
				order = append(order, i)
			}
		}
	}
	return order
}

// largest returns the largest capacity near u that meets the goal, in steps of 6 %: at most four steps up, since a past without a burst
// says little, and any number down, to floor. It stops where the trial can no longer cost less than most: the replicas grow
// at most in inverse proportion to the capacity.
//
// It tries what is near first, or what is far if that is more likely: floor, and four steps up.
func (b *bench) largest(t *Tuning, k int, u, most, floor float64, far bool) (capacity, late, cost float64, ok bool) {
	top := t.findable()
	u = min(max(u, floor), top)
	keeps := func(u float64) bool {
		late, cost, ok = b.keeps(t, k, u, most*top/u)
		return ok
	}
	if far && u > floor && !keeps(floor) {
		return floor, late, cost, false
	}
	if !keeps(u) {
		for down := step; u > floor && cost < most*top/u; down *= 1.02 {
			if u = max(u/down, floor); keeps(u) {
				break
			}
		}
		return u, late, cost, ok
	}
	up := []float64{u}
	for len(up) <= mostUp && up[len(up)-1]*step <= top {
		up = append(up, up[len(up)-1]*step)
	}
	i := highest(len(up), far, func(i int) bool {
		l, c := late, cost
		if keeps(up[i]) {
			return true
		}
		late, cost = l, c // those of the last that was kept
		return false
	})
	return up[i], late, cost, true
}

// highest returns the highest of n places that are kept, of which the first is known to be, and all up to the highest are. It tries
// the last place first if that is likely to be kept, and otherwise the second.
func highest(n int, last bool, kept func(place int) bool) int {
	low, high, next := 0, n, 1
	if last {
		next = n - 1
	}
	for high-low > 1 {
		if kept(next) {
			low, next = next, high-1
		} else {
			high, next = next, (low+next)/2
		}
	}
	return low
}

// keeps reports whether a capacity meets the goal over the past for less than most replica-hours, and what it costs.
func (b *bench) keeps(t *Tuning, k int, u, most float64) (late, cost float64, ok bool) {
	try := t.trial
	knob := knobs(b.start)[k]
	try.Capacity, try.Hold, try.Span, try.Trend, try.Level = u, knob.hold, knob.span, knob.trend, knob.level
	late, cost = b.replay(b.requests, b.initial, &try, max(b.allowed, b.least))
	if u >= t.Fleet*lowest {
		b.least = min(b.least, late)
	}
	if late > b.allowed || cost >= most {
		return late, cost, false
	}
	mostLate := max(strainLate, 2*b.allowed)
	strainedLate, _ := b.replay(b.strained, scaling.Ceil(strain*float64(b.initial)), &try, mostLate)
	return late, cost, strainedLate <= mostLate
}

// patience is how long a replay waits for answers after its end, so that a long answer to a request that came shortly before is not
// a miss.
const patience = time.Hour

// replay returns the share of requests that miss the SLO under a trial, after a warm-up, and the replica-hours. A share above most is
// a lower bound: the replay ends there.
func (b *bench) replay(requests []sim.Request, initial int32, try *trial, most float64) (late, hours float64) {
	config := *b.config
	config.Server = b.server
	config.Bounds = scaling.Bounds{Min: 1, Max: max(config.Bounds.Max, 64)} // what is needed, whatever may be asked for
	config.ColdStart = time.Duration(b.start * float64(time.Second))
	cached := *try
	cached.Mean *= b.share
	cached.PromptToken *= 1 - b.hits // all tokens of a replay's prompts are counted as computed
	of := b.under(requests, initial, config.ColdStart, b.unanswerable(), most, func() (scaling.Group, error) {
		return scaling.GroupOf(scaling.New(Scaler{config: &config, fixed: &cached, warm: b.warm.Seconds()})), nil
	})
	return of.late, of.hours
}

// bias returns the factor by which more requests really missed the SLO than in a replay with the same replicas, both counted as they
// are measured (see Past.Shown),
//
//	(truth + 1 - goal) / (replay + 1 - goal),
//
// from 1 to 3, and which share of the requests since a time missed the SLO without being measured: that of the replay, times the factor.
// It replays all traffic of the latest requests, at most so many, on all replicas, as rounding up a share of them would add headroom
// that was not there. Only of more than a thousand replicas it replays a share.
func (b *bench) bias(p *Past, most int, since float64) (factor, hidden float64) {
	whole, warm := *b, b.warm.Seconds()
	share := p.affordable()
	requests, from, to := p.traffic(most, share, warm)
	if len(requests) == 0 { // more in one interval than a replay may have
		return max(1, p.Last.Bias), 0
	}
	whole.requests, whole.span = requests, time.Duration((to-from+warm)*float64(time.Second))
	whole.initial = scaling.Ceil(float64(p.readyAt(from)) * share)
	spare := 1 - b.config.Goal
	whole.since = whole.warm + time.Duration(min(max(0, since-from), to-from)*float64(time.Second))
	was := whole.asItWas(p, share)
	b.replays, b.spent, b.looks = whole.replays, whole.spent, whole.looks
	factor = min(max((p.late(from)+spare)/(was.shown+spare), 1), 3)
	return factor, factor * was.hidden
}

// asItWas replays the past with the given share of the replicas that were ready at each time.
func (b *bench) asItWas(p *Past, share float64) tally {
	end := p.Samples[len(p.Samples)-1].At
	var ready []int32
	i := 0
	for at := end - (b.span - b.warm).Seconds(); at <= end; at += b.config.Control.Seconds() {
		for i+1 < len(p.Samples) && p.Samples[i+1].At <= at {
			i++
		}
		ready = append(ready, max(1, scaling.Ceil(float64(p.Samples[i].Ready)*share)))
	}
	warm := make([]int32, int(b.warm/b.config.Control))
	for k := range warm {
		warm[k] = ready[0]
	}
	return b.under(b.requests, b.initial, 0, 0, 1, func() (scaling.Group, error) {
		return sim.Schedule(began(), b.config.Control, append(warm, ready...)), nil
	})
}

// unanswerable is the time from the start of a replay to the first replica that it requests itself: no capacity could have avoided the
// misses until then, and they do not count. It is 0 if the past is shorter than three times that.
func (b *bench) unanswerable() time.Duration {
	lead := time.Duration(b.start*float64(time.Second)) + b.config.Scrape + b.config.Control
	if b.span-b.warm < 3*lead {
		return 0
	}
	return lead
}

// A tally is what came of a simulation: shares of the requests that count, and the replica-hours after the warm-up. Those that miss the
// SLO by TTFT and by TPOT count twice in shown and hidden, as they do in what is measured.
type tally struct {
	late   float64 // missed the SLO
	shown  float64 // missed it as histograms show
	hidden float64 // missed it within a bucket, of those that came since bench.since
	hours  float64
}

// under runs a group. The requests that arrive after warm-up and while count. Once more than the share most have missed the SLO, the run
// ends and returns no hours.
func (b *bench) under(requests []sim.Request, initial int32, start, while time.Duration, most float64, group func() (scaling.Group, error)) tally {
	b.replays++
	all, recent, met, missed, shown, hidden := 0, 0, 0, 0, 0, 0
	for i := range requests {
		if at := requests[i].At; at >= b.warm+while {
			if all++; at >= b.since {
				recent++
			}
		}
	}
	if all == 0 {
		return tally{}
	}
	s := b.scenario(sim.Trace{Requests: requests, Length: b.span}, initial, start)
	s.Metrics, s.Scrape.Interval, s.Control.Interval, s.Grace = Metrics(), b.config.Scrape, b.config.Control, patience
	ctx, stop := context.WithCancel(forever())
	defer stop()
	work := b.working(ctx)
	scrapes := 3 * max(1, float64(s.Control.Interval)/float64(s.Scrape.Interval)) // in requests, of a replica between two decisions
	r, err := sim.Run(work, &s, group, sim.Options{Seed: 1, Decision: func(_ time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
		work.decides()
		for i := range obs.Targets {
			b.spent += scrapes * float64(obs.Targets[i].SpecReplicas)
		}
	}, Request: func(o sim.Outcome) {
		b.spent++
		switch {
		case o.Arrived < b.warm+while:
		case o.Met:
			met++
		default:
			seen := missedBy(&o, b.shown)
			shown += seen
			if o.Arrived >= b.since {
				hidden += max(0, missedBy(&o, s.SLO)-seen)
			}
			if missed++; float64(missed)/float64(all) > most {
				stop()
			}
		}
	}})
	n := float64(all)
	switch {
	case ctx.Err() != nil:
		return tally{late: float64(missed) / n}
	case err != nil:
		return tally{late: 1, hours: math.Inf(1)}
	}
	return tally{
		late: float64(all-met) / n, shown: float64(all-met-missed+shown) / n, hidden: float64(hidden) / float64(max(recent, 1)),
		hours: r.ReplicaHours - float64(initial)*b.warm.Hours(),
	}
}

// missedBy returns by how many of its two times a request missed an SLO.
func missedBy(o *sim.Outcome, slo sim.SLO) (times int) {
	if o.TTFT > slo.TTFT {
		times++
	}
	if float64(o.Total-o.TTFT) > float64(slo.TPOT)*float64(o.Output-1) {
		times++
	}
	return times
}

// A working is the context of a simulation, which ends when its bench is exhausted. The simulator looks at it at each
// decision, which is counted in spent, and in between.
type working struct {
	context.Context //nolint:containedctx // it is one itself

	bench *bench
}

func (b *bench) working(ctx context.Context) working { return working{ctx, b} }

func (w working) Err() error {
	if w.bench.exhausted() {
		return errExhausted
	}
	w.bench.looks++
	return w.Context.Err()
}

// decides takes back what a look at a decision took.
func (w working) decides() { w.bench.looks-- }

// exhausted reports whether the simulations took too long, so that what the bench found says nothing.
func (b *bench) exhausted() bool { return b.most > 0 && b.looks >= b.most }

var errExhausted = errors.New("the simulations take too long")

// began is the time at which every replay begins: that of a scenario without one, which is not the zero time.
func began() time.Time { return (&sim.Scenario{}).Begin() }

// forever is the context of a tuning: Decide has none, and a tuning ends by itself.
func forever() context.Context { return context.Background() } //nolint:forbidigo // nobody waits for a tuning who could lose patience

func (b *bench) scenario(w sim.Workload, initial int32, start time.Duration) sim.Scenario {
	return sim.Scenario{
		Name: "replay", Workload: w, Types: []sim.Type{{Server: b.server, Initial: initial, Startup: sim.ColdStart(start)}},
		Router: b.config.Router, SLO: b.config.SLO,
	}
}

// fleet returns the highest rate of Poisson arrivals with these lengths of which the replicas serve 97 % in time, and the share that
// is hopeless: that misses the SLO at the lowest rate. What is hopeless beyond the goal is not asked for, nor more than the others
// can reach.
func (b *bench) fleet(lengths []sim.Request, replicas int32) (rate, hopeless float64) {
	prompt, answer := means(lengths)
	high := 1 / (b.server.PrefillToken*prompt + (b.server.Base/float64(b.server.MaxSeqs)+b.server.Sequence)*answer)
	low := high / 200
	hopeless = 1 - b.attained(lengths, replicas, low*float64(replicas))
	inTime := min(0.97-max(0, hopeless-(1-b.config.Goal)), 0.985-hopeless) // no rate has more than 1 - hopeless
	for high > low*1.04 {
		if rate = math.Sqrt(low * high); b.attained(lengths, replicas, rate*float64(replicas)) >= inTime {
			low = rate
		} else {
			high = rate
		}
	}
	return low * float64(replicas), hopeless
}

// attained returns the share of 2,000 requests that meet the SLO, after a warm-up.
func (b *bench) attained(lengths []sim.Request, replicas int32, rate float64) float64 {
	const counted = 2000
	warm := max(100*int(replicas), min(int(rate*60), 6000))
	requests := make([]sim.Request, warm+counted)
	random := splitmix.Stream{State: 7}
	stride := 7919
	if len(lengths)%stride == 0 { // or only a few of them would be taken, again and again
		stride = 7907
	}
	t := 0.0
	for i := range requests {
		t += random.Exponential() / rate
		requests[i] = lengths[(i*stride)%len(lengths)]
		requests[i].At = time.Duration(t * float64(time.Second))
	}
	from, met := requests[warm].At, 0
	s := b.scenario(sim.Trace{Requests: requests}, replicas, 0)
	s.Scrape.Interval, s.Control.Interval, s.Grace = 24*time.Hour, time.Minute, patience
	// A queue that grows shows what the replicas cannot take. A TTFT of as many minutes as this lasts would not see it.
	s.SLO.TTFT = min(s.SLO.TTFT, max(time.Minute, time.Duration(t/10*float64(time.Second))))
	work := b.working(forever())
	decides := func(time.Time, *scaling.GroupObservation, *scaling.GroupDecision) { work.decides() }
	_, err := sim.Run(work, &s, func() (scaling.Group, error) { return sim.Static(replicas), nil }, sim.Options{Seed: 1, Decision: decides, Request: func(o sim.Outcome) {
		if o.Arrived >= from && o.Met {
			met++
		}
	}})
	if err != nil {
		return 0
	}
	return float64(met) / counted
}
