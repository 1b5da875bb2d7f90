package sim

import (
	"cmp"
	"math"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// An observer is the controller's view of the run: it scrapes replicas and the router, and makes readings of the results.
type observer struct {
	metrics []Metric
	round   int64     // number of the scrape
	last    int64     // time of the last scrape
	pods    []pod     // the listed replicas: all but those that drain
	values  []float64 // of all pods, one after the other
	view    scaling.GroupObservation
	targets []loop.Target

	tallies    [tallies]tally
	histograms []histogram // for the signals that are quantiles, nil where no metric needs them
	arrivals   []int64     // at the end of each round, for rates; it spans the longest window
	longest    int
	tokens     int64 // prompt tokens that were not computed at the last scrape
	held       int   // requests held by the gateway at the last scrape
	shown      []Page
	readings   int // number of metrics that are readings, not histograms; they come first
}

// A pod is a replica as it is observed.
type pod struct {
	name    string
	kind    int32
	ready   bool
	pending bool // waits for the quota: no machine has room for it
	stuck   bool
	scraped int64
	values  []float64 // one for each metric, NaN if it has none: while the pod starts, or if it did not answer
}

// A histogram has the counts of each of the last rounds.
type histogram struct {
	bounds *buckets
	rounds [][]int64 // a ring
	before []int64   // the router's counts at the last round
	total  []int64   // scratch
}

func newObserver(e *engine) observer {
	o := observer{metrics: e.scenario.Metrics, histograms: make([]histogram, RequestRate+1), longest: 1}
	for i := range o.metrics {
		m := &o.metrics[i]
		if m.Signal < firstTallied {
			o.readings++
		}
		rounds := o.rounds(e, m)
		o.longest = max(o.longest, rounds)
		var bounds *buckets
		switch m.Signal {
		case TTFT:
			bounds = &e.bounds.ttft
		case TPOT:
			bounds = &e.bounds.tpot
		case QueueTime:
			bounds = &e.bounds.queue
		case RouterTTFT, PredictedTTFT:
			bounds = &e.bounds.routerTTFT
		case RouterTPOT:
			bounds = &e.bounds.routerTPOT
		case Waiting, Running, InFlight, KVCacheUsage, RequestRate, InFlightTokens, Held, PromptTokens, GenerationTokens, Prefilled, TTFTs, TPOTs:
			continue
		}
		h := &o.histograms[m.Signal]
		h.bounds = bounds
		h.before, h.total = o.counts(m.Signal), o.counts(m.Signal)
		for len(h.rounds) < rounds {
			h.rounds = append(h.rounds, o.counts(m.Signal))
		}
	}
	o.arrivals = make([]int64, o.longest+1)
	if e.scenario.tallied() {
		o.tallies = e.newTallies()
	}
	o.view.Readings = make([]scaling.Reading, 0, len(o.metrics))
	o.view.Targets = make([]scaling.TargetObservation, len(e.kinds))
	o.targets = make([]loop.Target, len(e.kinds))
	return o
}

// counts returns the counters of a signal, nil if no metric uses it.
func (o *observer) counts(s Signal) []int64 {
	if b := o.histograms[s].bounds; b != nil {
		return make([]int64, len(b.ends)+1)
	}
	return nil
}

// rounds returns how many scrapes the window of a metric spans.
func (o *observer) rounds(e *engine, m *Metric) int {
	return max(1, int(m.window()/e.scenario.Scrape.Interval))
}

// scrape reads every ready replica and the router.
func (o *observer) scrape(e *engine) {
	o.round++
	o.last = e.now
	for s := range o.histograms {
		if h := &o.histograms[s]; h.rounds != nil {
			clear(h.rounds[o.round%int64(len(h.rounds))])
		}
	}
	for _, r := range e.ready {
		p := e.scenario.Scrape.FailureRate
		if r.waiting.Len() > 0 {
			p += e.scenario.Scrape.BusyFailureRate
		}
		if p > 0 && draw(e.seed, streamScrape, uint64(r.number), uint64(o.round)).Uniform() < p {
			continue
		}
		waiting := float64(r.waiting.Len())
		r.values = [4]float64{
			Waiting: waiting, Running: float64(r.running), InFlight: waiting + float64(r.running),
			KVCacheUsage: r.inUse(e.now),
		}
		r.scraped = e.now
		seen := o.increase(TTFT, r.seen, r.ttft)
		seen = o.increase(TPOT, seen, r.tpot)
		o.increase(QueueTime, seen, r.queued)
		o.tally(r.meter)
	}
	o.increase(RouterTTFT, o.histograms[RouterTTFT].before, e.routerTTFT)
	o.increase(RouterTPOT, o.histograms[RouterTPOT].before, e.routerTPOT)
	o.increase(PredictedTTFT, o.histograms[PredictedTTFT].before, e.predictions)
	o.arrivals[o.round%int64(len(o.arrivals))] = e.arrived
	o.tokens, o.held = 0, e.backlog.Len()
	for _, r := range e.fleet {
		switch r.role {
		case Both:
			o.tokens += r.ahead
		case Prefill:
			o.tokens += r.ahead + r.unread // the router learns that a prompt is done from the token that the decode replica sends
		case Decode: // what it computes again, it has fetched
		}
	}
	if e.options.Pages != nil {
		o.page(e)
	}
}

// increase adds to a signal's round what a replica, or the router, counted since it was last seen. If a counter fell, it was
// reset, and its whole value is new. It returns the seen counts of the signals after this one.
func (o *observer) increase(s Signal, seen, counts []int64) []int64 {
	if h := &o.histograms[s]; h.rounds != nil {
		round := h.rounds[o.round%int64(len(h.rounds))]
		reset := false
		for i, n := range counts {
			reset = reset || n < seen[i]
		}
		for i, n := range counts {
			if reset {
				round[i] += n
			} else {
				round[i] += n - seen[i]
			}
			seen[i] = n
		}
	}
	return seen[len(counts):]
}

// quantile returns the quantile of a signal over its last rounds.
func (o *observer) quantile(m *Metric, rounds int) (float64, bool) {
	h := &o.histograms[m.Signal]
	clear(h.total)
	for i := range int64(min(rounds, len(h.rounds))) {
		if i >= o.round {
			break
		}
		for j, n := range h.rounds[(o.round-i)%int64(len(h.rounds))] {
			h.total[j] += n
		}
	}
	return h.bounds.quantile(cmp.Or(m.Quantile, 0.9), h.total)
}

// look makes the observation for a decision: the types as targets, each with the replicas that can be scraped.
func (o *observer) look(e *engine) (scaling.GroupObservation, []loop.Target) {
	v := &o.view
	for k := range e.kinds {
		t := &e.kinds[k]
		o.targets[k] = loop.Target{Name: t.Name, Replicas: t.spec}
		v.Targets[k] = scaling.TargetObservation{
			Name: t.Name, SpecReplicas: t.spec, ReadyReplicas: t.ready, PendingReplicas: t.spec - t.ready, Pods: v.Targets[k].Pods[:0],
		}
	}
	o.pods = o.pods[:0]
	readings := o.readings
	need := len(e.fleet) * readings
	if cap(o.values) < need {
		o.values = make([]float64, 2*need)
	}
	o.values = o.values[:cap(o.values)]
	n := 0
	for _, r := range e.fleet {
		if r.life == draining {
			continue
		}
		values := o.values[n : n+readings]
		n += readings
		known := r.life == ready && r.scraped >= 0 && (r.scraped == o.last || e.now-r.scraped <= ticks(e.scenario.Scrape.Stale))
		for i := range values {
			values[i] = math.NaN()
			if s := o.metrics[i].Signal; known && s <= KVCacheUsage {
				values[i] = r.values[s]
			}
		}
		o.pods = append(o.pods, pod{
			name: r.name, kind: r.kind, ready: r.life == ready, pending: r.life == pending, stuck: e.stuck(r), scraped: r.scraped, values: values,
		})
		if t := &v.Targets[r.kind]; r.life == ready {
			t.Pods = append(t.Pods, scaling.PodObservation{Name: r.name, Values: values})
		}
	}
	v.Readings = v.Readings[:0]
	for i := range o.readings {
		v.Readings = append(v.Readings, o.reading(e, i))
	}
	o.tabulate(e)
	return *v, o.targets
}

// ofFleet returns the value of a signal of the whole fleet, or false if there is none.
func (o *observer) ofFleet(e *engine, m *Metric) (float64, bool) {
	rounds := o.rounds(e, m)
	if m.Signal == InFlightTokens {
		return float64(o.tokens), true
	}
	if m.Signal == Held {
		return float64(o.held), true
	}
	if m.Signal != RequestRate {
		return o.quantile(m, rounds)
	}
	back := min(int64(rounds), o.round)
	now, then := o.arrivals[o.round%int64(len(o.arrivals))], o.arrivals[(o.round-back)%int64(len(o.arrivals))]
	return float64(now-then) / (float64(back) * e.scenario.Scrape.Interval.Seconds()), true
}

// reading makes the reading of a metric.
func (o *observer) reading(e *engine, i int) scaling.Reading {
	m := &o.metrics[i]
	if o.round == 0 {
		return scaling.Reading{Metric: m.Name}
	}
	at := e.at(o.last)
	if m.Signal > KVCacheUsage {
		value, ok := o.ofFleet(e, m)
		if !ok {
			return scaling.Reading{Metric: m.Name, At: at}
		}
		r := scaling.Exactly(m.Name, value)
		r.At = at
		return r
	}
	r := scaling.Reading{Metric: m.Name, At: at}
	total, pods := 0.0, 0.0
	for k := range o.pods {
		p := &o.pods[k]
		if m.Type != "" && e.kinds[p.kind].Name != m.Type {
			continue
		}
		pods++
		switch {
		case !p.ready:
			r.NotReady++
			if p.pending {
				r.Unschedulable++
			}
			if p.stuck {
				r.Stuck++
			}
		case math.IsNaN(p.values[i]):
			r.Failed++
		default:
			r.Values++
			total += p.values[i]
			if p.scraped != o.last {
				r.Reused++
			}
		}
	}
	missing := float64(r.NotReady + r.Failed - r.Stuck)
	if r.Values == 0 {
		return r
	}
	r.Lower, r.Upper = total/pods, total/pods
	switch {
	case missing > 0 && m.Fill == 0:
		r.Upper = math.Inf(1)
	case missing > 0:
		r.Upper = (total + m.Fill*missing) / pods
	}
	return r
}
