package shadow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Most is how many shadows there may be.
const Most = 8

// DefaultColdStart is how long a start is taken to last until one has been seen.
const DefaultColdStart = 5 * time.Minute

// A Policy is a shadow: a policy with a name.
type Policy struct {
	Name string
	// Policy decides. It belongs to the Shadows from then on, and must share nothing with any other.
	Policy scaling.Policy
	// Metrics are those of its readings that are not PerPod, or have a fill.
	Metrics []Metric
}

// A Kind says what a reading is of.
type Kind uint8

// The kinds. The zero value is PerPod, which readings of pods are.
const (
	PerPod  Kind = iota // a mean over the pods that it counts, of what they share
	Average             // a mean over the ready replicas, of what they share, as a query returns it
	Fleet               // of the fleet as a whole, or of each replica alike: a total, a time, a hit rate
)

// A Metric is what is to be known of a reading. One that is not listed is PerPod.
type Metric struct {
	Name string
	Kind Kind
	// Fill is what a missing pod counts in the reading's upper end, as scaling.FromPods takes it: 0 means no limit.
	Fill float64
}

// A Config says who watches.
type Config struct {
	// Policies are the shadows: one at least and Most at most, with names that differ.
	Policies []Policy
	// ColdStart is how long a start is taken to last until one has been seen of the real fleet; 0 means DefaultColdStart.
	ColdStart time.Duration
	// Go runs a function beside its caller; nil means a goroutine. One that runs it at once is for simulators.
	Go func(func())
}

// Validate reports every wrong field at once, each as a scaling.FieldError.
func (c *Config) Validate() error {
	var e scaling.FieldErrors
	e.Check(len(c.Policies) >= 1 && len(c.Policies) <= Most, "policies", len(c.Policies), fmt.Sprintf("must be one at least and %d at most", Most))
	for i, p := range c.Policies {
		field := fmt.Sprintf("policies[%d]", i)
		e.Check(p.Name != "", field+".name", p.Name, "must not be empty")
		e.Check(!slices.ContainsFunc(c.Policies[:i], func(q Policy) bool { return q.Name == p.Name }), field+".name", p.Name, "must be unique")
		e.Check(p.Policy != nil, field+".policy", nil, "must be set")
		for k, m := range p.Metrics {
			field := fmt.Sprintf("%s.metrics[%d]", field, k)
			e.Check(m.Name != "", field+".name", m.Name, "must not be empty")
			e.Check(!slices.ContainsFunc(p.Metrics[:k], func(q Metric) bool { return q.Name == m.Name }), field+".name", m.Name, "must be unique")
			e.Check(m.Kind <= Fleet, field+".kind", int(m.Kind), "must be PerPod, Average or Fleet")
			e.Check(m.Fill >= 0, field+".fill", m.Fill, "must not be negative")
		}
	}
	e.Check(c.ColdStart >= 0 && c.ColdStart <= 24*time.Hour, "coldStart", c.ColdStart, "must be within 0 and 24h")
	return e.Err()
}

// Shadows are the policies that watch one target. They are not safe for concurrent use.
type Shadows struct {
	config Config
	starts starts
	all    []*shadow
	seen   bool // whether anything was looked at
	at     time.Time
	trail  trail // of the real fleet
}

// A shadow is one of them.
type shadow struct {
	name    string
	policy  scaling.Policy
	metrics map[string]Metric
	fleet   fleet
	wish    Wish
	begun   bool
	busy    bool
	asked   time.Time // when what it is busy with was seen
	trail   trail
	done    chan answer
}

// An answer is what a shadow's goroutine came to.
type answer struct {
	verdict  scaling.Verdict
	from, to int32
	reason   string
	failed   string
}

// New returns the Shadows of a configuration, or every rule that it breaks.
func New(c Config) (*Shadows, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.ColdStart = cmp.Or(c.ColdStart, DefaultColdStart)
	if c.Go == nil {
		c.Go = func(f func()) { go f() }
	}
	s := &Shadows{config: c}
	for _, p := range c.Policies {
		one := &shadow{name: p.Name, policy: p.Policy, metrics: make(map[string]Metric, len(p.Metrics)), wish: Wish{Name: p.Name}, done: make(chan answer, 1)}
		for _, m := range p.Metrics {
			one.metrics[m.Name] = m
		}
		s.all = append(s.all, one)
	}
	return s, nil
}

// Resume gives shadows the counts back that they had before a restart, by their names: what Wishes returned. What a policy remembered
// is gone, so that it begins anew (Wish.Remembers); it is told when its count was last changed, so that its cooldowns go on. It is to be called before the first Look;
// a wish that cannot have been one is passed over.
func (s *Shadows) Resume(wishes []Wish) {
	for _, w := range wishes {
		for _, one := range s.all {
			if one.name == w.Name && !s.seen && !one.begun && w.valid() {
				one.resume(w)
			}
		}
	}
}

func (one *shadow) resume(w Wish) {
	one.begun = true
	one.wish = Wish{
		Name: w.Name, Replicas: w.Replicas, At: w.At, Since: w.Since, Changed: w.Changed, Apart: w.Apart,
		ReplicaSeconds: w.ReplicaSeconds, RealReplicaSeconds: w.RealReplicaSeconds,
	}
	one.fleet = fleet{count: w.Replicas}
	one.fleet.wait(w.At, w.Replicas-min(w.Ready, w.Replicas))
	if w.Changed.IsZero() {
		return
	}
	one.wish.Out, one.wish.Why = contained(func() {
		for _, by := range []int32{+1, -1} {
			one.policy.Applied(w.Changed, w.Replicas, max(scaling.Plus(w.Replicas, by), 0))
		}
	})
}

// Look shows the shadows what was seen of the target, at the time and on the observation that the real policy decided on.
// It returns at once: each shadow decides beside the caller, and has until the next look. Shadows begin with the real count.
func (s *Shadows) Look(now time.Time, obs scaling.Observation) {
	s.collect()
	s.pass(now, obs.SpecReplicas)
	s.starts.look(now, obs.SpecReplicas, obs.ReadyReplicas)
	s.trail.note(now, obs.SpecReplicas)
	start := s.starts.typical(s.config.ColdStart)
	for _, one := range s.all {
		one.look(now, &obs, start)
		if one.wish.Out == Failed {
			continue
		}
		if one.busy {
			one.wish.Out, one.wish.Why = Overdue, "the decision on what was seen at "+one.asked.UTC().Format(time.RFC3339)+" is not made yet"
			continue
		}
		if one.wish.Remembers.IsZero() {
			one.wish.Remembers = now
		}
		own := one.show(&obs)
		one.busy, one.asked = true, now
		s.config.Go(func() { one.decide(now, own) })
	}
}

// pass counts the time since the last look, in which the counts were those that they are now, and takes what is remembered back with a clock that went back.
func (s *Shadows) pass(now time.Time, spec int32) {
	back := time.Duration(0)
	if s.seen {
		back = max(0, s.at.Sub(now))
	}
	s.starts.back(back)
	s.trail.back(back)
	for _, one := range s.all {
		one.fleet.back(back)
		one.trail.back(back)
		if from := one.wish.At; !from.IsZero() && now.After(from) { // also after a restart
			passed := now.Sub(from).Seconds()
			one.wish.ReplicaSeconds += float64(one.fleet.count) * passed
			one.wish.RealReplicaSeconds += float64(max(spec, 0)) * passed
		}
		one.wish.At = now
	}
	s.seen, s.at = true, now
}

// look brings what a shadow believes up to a time.
func (one *shadow) look(now time.Time, obs *scaling.Observation, start time.Duration) {
	w := &one.wish
	if !one.begun {
		one.begun, w.Since = true, now
		one.fleet = fleet{count: max(obs.SpecReplicas, 0), inStep: true}
	}
	one.fleet.look(now, obs.SpecReplicas, obs.ReadyReplicas, start)
	w.Replicas, w.Ready = one.fleet.count, one.fleet.ready()
	one.trail.note(now, w.Replicas)
	switch {
	case w.Replicas == obs.SpecReplicas:
		w.Apart = time.Time{}
	case w.Apart.IsZero():
		w.Apart = now
	}
}

// decide asks the policy, and tells it that what it asked for was carried out.
func (one *shadow) decide(now time.Time, obs scaling.Observation) {
	a := answer{failed: "it did not return"}
	defer func() { one.done <- a }() // also where the goroutine is ended from within
	_, why := contained(func() {
		d := one.policy.Decide(now, obs)
		a.verdict, a.from, a.to = d.Verdict, obs.SpecReplicas, obs.SpecReplicas
		if d.Acts() {
			a.to = max(d.Replicas, 0)
			one.policy.Applied(now, a.from, a.to)
		}
		a.reason = short(d.Reason())
	})
	a.failed = why
}

// contained runs a policy's code. It returns what is wrong with the policy if that panics.
func contained(f func()) (out Out, why string) {
	defer func() {
		if p := recover(); p != nil {
			out, why = Failed, short(describe(p))
		}
	}()
	f()
	return None, ""
}

// describe writes what a policy panicked with, which has methods of its own.
func describe(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = "panic"
		}
	}()
	return fmt.Sprintf("panic: %v", p)
}

// collect takes the answers that there are.
func (s *Shadows) collect() {
	for _, one := range s.all {
		select {
		case a := <-one.done:
			one.take(a)
		default:
		}
	}
}

// take takes an answer in.
func (one *shadow) take(a answer) {
	one.busy = false
	w := &one.wish
	if w.Out, w.Why = None, ""; a.failed != "" {
		w.Out, w.Why = Failed, a.failed
		return
	}
	w.Verdict, w.Reason = a.verdict, a.reason
	if a.to != a.from {
		w.Changed = one.asked
		one.fleet.set(one.asked, a.to)
		one.trail.note(one.asked, a.to)
	}
	w.Replicas, w.Ready = one.fleet.count, one.fleet.ready()
}

// Wait waits until every shadow has decided, or over is closed, whichever is first: for callers that have nothing else to
// do. One that is left out for good is not waited for.
func (s *Shadows) Wait(over <-chan struct{}) {
	for _, one := range s.all {
		if !one.busy {
			continue
		}
		select {
		case a := <-one.done:
			one.take(a)
		case <-over:
			s.collect()
			return
		}
	}
}

// Wishes returns what each shadow asked for last, in their order.
func (s *Shadows) Wishes() []Wish {
	s.collect()
	all := make([]Wish, len(s.all))
	for i, one := range s.all {
		all[i] = one.wish
	}
	return all
}

// show returns what a shadow is to see, as a copy of its own.
func (one *shadow) show(obs *scaling.Observation) scaling.Observation {
	f := &one.fleet
	own := scaling.Observation{
		SpecReplicas: f.count, ReadyReplicas: f.ready(), Served: max(obs.ReadyReplicas, 0),
		Readings: slices.Clone(obs.Readings), Histograms: slices.Clone(obs.Histograms),
	}
	for i := range own.Histograms {
		h := &own.Histograms[i]
		h.Bounds, h.Counts = slices.Clone(h.Bounds), slices.Clone(h.Counts)
	}
	if f.inStep {
		own.ReadyReplicas, own.Served = obs.ReadyReplicas, obs.Served
		return own
	}
	for i := range own.Readings {
		r := &own.Readings[i]
		*r = f.reading(*r, one.metrics[r.Metric], obs.ReadyReplicas)
	}
	return own
}

// finite returns a number that a reading can have below; what is larger saturates.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
