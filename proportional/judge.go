package proportional

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// Codes of the steps. Each states the inequality that raises it; loads are those of the whole fleet, durations are in
// seconds.
const (
	// AboveTarget asks for ceil(load/target): the lower end of the load is above what the present count should
	// carry, target * spec * (1 + tolerance).
	AboveTarget scaling.Code = "AboveTarget load > limit, target"
	// BelowTarget asks for ceil(load/target): the upper end of the load is below what the present count should
	// carry, target * spec * (1 - tolerance).
	BelowTarget scaling.Code = "BelowTarget load < limit, target"
	// Within holds: the load is within the tolerance of the present count, or the missing pods could put it there.
	Within scaling.Code = "Within lower <= high, upper >= low"
	// Needed holds: the load is below what the present count should carry, but not by a whole replica.
	Needed scaling.Code = "Needed load < limit, target"
	// Uncovered holds: the load asks for scale-down, but the metric has not been known for a whole stable window.
	Uncovered scaling.Code = "Uncovered load < limit, target, covered:s"
	// NoSample holds: the metric has no sample in the stable window.
	NoSample scaling.Code = "NoSample"
	// Burst asks, in panic, for ceil(load/target), where load is that of the panic window.
	Burst scaling.Code = "Burst load > limit, target"
	// Panicked begins a panic or extends it: the load in the panic window needs threshold times the ready replicas.
	// It changes no count by itself.
	Panicked scaling.Code = "Panicked wanted >= limit, ready"
	// MayPanic cancels a scale-down: with the load of missing pods, the load in the panic window may need threshold times the
	// ready replicas.
	MayPanic scaling.Code = "MayPanic wanted >= limit, ready"
	// NoFewer raises the count, in panic, to the highest one that was already asked for.
	NoFewer scaling.Code = "NoFewer from < asked, since:s <= window:s"
)

// A look is the evaluation of one metric at one decision.
type look struct {
	load   span    // over the stable window, or of the reading
	burst  float64 // lower load over the panic window
	limit  float64 // the load must exceed it for a scale-up
	low    float64 // the load must be below it for a scale-down
	want   int32
	rush   int32 // the count that the burst asks for; 0 if it does not ask for scale-up
	wanted int32 // the count that the burst needs
	since  int64 // how long the metric has been known, milliseconds
	code   scaling.Code
	known  bool
	breach bool // whether the burst meets the threshold
}

// A tally is the evaluation of all metrics at one decision.
type tally struct {
	looks   []look
	at      int64 // now, Unix milliseconds
	slot    int64 // start of the present bucket
	known   bool  // whether any metric has a load
	loaded  bool  // whether any metric certainly has a load above 0
	breach  int   // the metric that met the panic threshold by most, or -1
	panics  bool
	decided int  // the metric that asks for most
	byBurst bool // whether its burst does
	ready   float64
}

// survey evaluates every metric.
func (p *plan) survey(t *tally, state *State, obs *scaling.Observation) {
	spec := obs.SpecReplicas
	t.breach = -1
	ready := max(1, obs.ReadyReplicas)
	if p.config.StartupCredit {
		ready = max(ready, spec)
	}
	t.ready = float64(ready)
	for i := range t.looks {
		l, m := &t.looks[i], &p.metrics[i]
		l.want = spec
		l.code = NoSample
		if p.stable == 0 {
			var spare scaling.Reading
			l.load, l.known = m.fleet(obs, find(obs, m.Name, &spare), &spare, obs.ReadyReplicas)
		} else {
			l.load, l.known = state.Loads[i].Window.mean()
			l.since = t.at - state.Loads[i].Since.Milli
		}
		if !l.known {
			continue
		}
		t.known = true
		t.loaded = t.loaded || l.load.lower > 0
		p.judge(l, m, spec)
		if p.config.Panic.Threshold > 0 {
			p.rush(l, m, &state.Loads[i].Window, t, spec)
		}
		if l.breach && (t.breach < 0 || l.wanted > t.looks[t.breach].wanted) {
			t.breach = i
		}
	}
}

// judge determines the count that a metric's load asks for. It is monotone in both ends of the load: below the tolerance the want
// is at most spec, within it spec, above it at least spec.
func (p *plan) judge(l *look, m *Metric, spec int32) {
	fair := min(m.Target*float64(spec), math.MaxFloat64)
	l.limit, l.low = fair*(1+p.config.Up.Tolerance), fair*(1-p.config.Down.Tolerance)
	upper := l.load.lower + l.load.gap
	switch {
	case scaling.Exceeds(l.load.lower, l.limit):
		l.code = AboveTarget
		l.want = max(spec, scaling.Ceil(l.load.lower/m.Target))
	case !scaling.Exceeds(l.low, upper):
		l.code = Within
	default:
		l.code = BelowTarget
		if l.want = min(spec, scaling.Ceil(upper/m.Target)); l.want == spec {
			l.code = Needed
		} else if l.since < p.stable {
			l.code = Uncovered
			l.want = spec
		}
	}
}

// rush determines the count that a metric's burst asks for, and whether the burst meets the panic threshold.
func (p *plan) rush(l *look, m *Metric, w *Window, t *tally, spec int32) {
	burst := w.burst(t.slot - p.burst)
	l.burst = burst
	needs, limit := burst/m.Target, p.config.Panic.Threshold*t.ready
	if needs < limit/2 && burst <= l.limit {
		return // far below both, as most of the time
	}
	l.wanted = scaling.Ceil(needs)
	l.breach = !scaling.Exceeds(limit, float64(l.wanted))
	if scaling.Exceeds(burst, l.limit) {
		l.rush = max(spec, l.wanted)
	}
}

// weigh combines the metrics: the highest want decides, in panic including those of the bursts.
func (p *plan) weigh(d *scaling.Decision, t *tally, state *State, obs *scaling.Observation) {
	switch {
	case !t.known:
	case t.breach >= 0:
		state.Panic = stampMilli(t.at)
	case state.Panic.Set && t.at-state.Panic.Milli > p.stable:
		state.Panic, state.Peak = scaling.Stamp{}, 0
	}
	t.panics = state.Panic.Set
	best := int32(-1)
	for i := range t.looks {
		l := &t.looks[i]
		// Among equal wants, the first metric that is known explains the decision best.
		if l.want > best || l.want == best && l.known && !t.looks[t.decided].known {
			best, t.decided, t.byBurst = l.want, i, false
		}
		if t.panics && l.rush > best {
			best, t.decided, t.byBurst = l.rush, i, true
		}
	}
	if t.breach >= 0 {
		limit := p.config.Panic.Threshold * t.ready
		d.To(d.Replicas, Panicked, p.metrics[t.breach].Name, float64(t.looks[t.breach].wanted), limit, t.ready)
	}
	noteStuck(d, p.metrics[t.decided].Name, obs)
	p.note(d, t, t.decided, t.byBurst, true)
	for i := range t.looks {
		if i != t.decided {
			p.note(d, t, i, t.panics && t.looks[i].rush > t.looks[i].want, false)
		}
	}
}

// noteStuck adds a step for the stuck pods of a metric's reading. Most readings have none.
func noteStuck(d *scaling.Decision, name string, obs *scaling.Observation) {
	for i := range obs.Readings {
		if r := &obs.Readings[i]; r.Stuck > 0 && r.Metric == name {
			all := obs.Reading(name)
			d.NoteStuck(&all)
			return
		}
	}
}

// note adds a metric's step to the chain, on the deciding line or as a considered one.
func (p *plan) note(d *scaling.Decision, t *tally, place int, byBurst, deciding bool) {
	l, m := &t.looks[place], &p.metrics[place]
	upper := l.load.lower + l.load.gap
	to, code := l.want, l.code
	var numbers [4]float64
	switch {
	case byBurst:
		to, code = l.rush, Burst
		numbers = [4]float64{l.burst, l.limit, m.Target}
	case code == AboveTarget:
		numbers = [4]float64{l.load.lower, l.limit, m.Target}
	case code == BelowTarget, code == Needed:
		numbers = [4]float64{upper, l.low, m.Target}
	case code == Uncovered:
		numbers = [4]float64{upper, l.low, m.Target, seconds(l.since)}
		d.NextBy(timeOf(t.at + p.stable - l.since))
	case code == Within:
		numbers = [4]float64{l.load.lower, l.limit, upper, l.low}
	}
	if deciding {
		d.To(to, code, m.Name, numbers[:]...)
	} else {
		d.Consider(to, code, m.Name, numbers[:]...)
	}
}
