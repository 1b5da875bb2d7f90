package shadow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Most is the maximum number of shadows.
const Most = 8

// DefaultColdStart is the assumed duration of a start until one has been observed.
const DefaultColdStart = 5 * time.Minute

// A Policy is a shadow: a policy with a name.
type Policy struct {
	Name string
	// Policy decides. It belongs to the Shadows from then on and must share nothing with any other policy.
	Policy scaling.Policy
	// Metrics describes those of its readings that are not PerPod or have a fill.
	Metrics []Metric
}

// A Kind says how a reading depends on the number of replicas.
type Kind uint8

// The kinds. The zero value is PerPod, the kind of readings that are made of the values of pods.
const (
	PerPod  Kind = iota // a load that the replicas share: its mean over the pods that the reading counts
	Average             // a load that the replicas share: its mean over the ready replicas, as a query returns it
	Fleet               // independent of the number of replicas: a total of the fleet, a time, a hit rate
)

// A Metric describes a reading. A reading that is not listed is PerPod.
type Metric struct {
	Name string
	Kind Kind
	// Fill is what a missing pod counts in the reading's upper end, as in scaling.FromPods: 0 means no limit.
	Fill float64
}

// A Config is the configuration of the shadows of one target.
type Config struct {
	// Policies are the shadows: at least one and at most Most, with unique names.
	Policies []Policy
	// ColdStart is the assumed duration of a start until one of the real fleet has been observed; 0 means DefaultColdStart.
	ColdStart time.Duration
	// Go runs a function concurrently; nil means in a goroutine. Simulators can set one that runs the function at once.
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
	seen   bool // whether Look was called
	at     time.Time
	trail  trail // of the real fleet
}

// A shadow is one of the Shadows.
type shadow struct {
	name    string
	policy  scaling.Policy
	metrics map[string]Metric
	fleet   fleet
	wish    Wish
	begun   bool
	busy    bool
	asked   time.Time // time of the observation that it was last given
	trail   trail
	done    chan answer
}

// An answer is the result of a shadow's goroutine.
type answer struct {
	verdict  scaling.Verdict
	from, to int32
	reason   string
	failed   string
}

// New returns the Shadows of a configuration, or an error with every rule that it breaks.
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

// Resume gives shadows back, by name, the counts that they had before a restart, as Wishes returned them. The memory of a policy
// is lost and starts fresh (Wish.Remembers); the policy is told when its count was last changed, so that its cooldowns go on.
// Call Resume before the first Look. It ignores wishes that Wishes cannot have returned.
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

// Look shows the shadows the time and the observation that the real policy decided on. It returns at once: each shadow decides
// concurrently and has time until the next Look. Shadows start with the real count.
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

// pass adds the time since the last look to the replica-seconds, as if the present counts had held all that time. If the clock
// went back, it moves all remembered times back with it.
func (s *Shadows) pass(now time.Time, spec int32) {
	if s.seen {
		back := max(0, s.at.Sub(now))
		s.starts.back(back)
		s.trail.back(back)
	}
	for _, one := range s.all {
		if !one.wish.At.IsZero() { // also after a restart
			one.back(max(0, one.wish.At.Sub(now)))
		}
		if from := one.wish.At; !from.IsZero() && now.After(from) {
			passed := now.Sub(from).Seconds()
			one.wish.ReplicaSeconds += float64(one.fleet.count) * passed
			one.wish.RealReplicaSeconds += float64(max(spec, 0)) * passed
		}
		one.wish.At = now
	}
	s.seen, s.at = true, now
}

// back moves all times of a shadow back, so that Resume takes its wish.
func (one *shadow) back(by time.Duration) {
	one.fleet.back(by)
	one.trail.back(by)
	for _, t := range []*time.Time{&one.asked, &one.wish.Since, &one.wish.Changed, &one.wish.Apart, &one.wish.Remembers} {
		if !t.IsZero() {
			*t = t.Add(-by)
		}
	}
}

// look brings the imagined fleet of a shadow up to a time.
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

// decide asks the policy, and tells it that its decision was carried out.
func (one *shadow) decide(now time.Time, obs scaling.Observation) {
	a := answer{failed: "it did not return"}
	defer func() { one.done <- a }() // also if the policy ends the goroutine
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

// contained runs a policy's code. If that panics, it returns Failed and the panic as text.
func contained(f func()) (out Out, why string) {
	defer func() {
		if p := recover(); p != nil {
			out, why = Failed, short(describe(p))
		}
	}()
	f()
	return None, ""
}

// describe returns the value of a policy's panic as text. Methods of that value may panic, too.
func describe(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = "panic"
		}
	}()
	return fmt.Sprintf("panic: %v", p)
}

// collect takes the answers that have arrived.
func (s *Shadows) collect() {
	for _, one := range s.all {
		select {
		case a := <-one.done:
			one.take(a)
		default:
		}
	}
}

// take applies an answer to the shadow's wish and fleet.
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
		one.fleet.set(w.At, a.to) // not when it was asked for, if it is late: the sums count it from w.At on
		one.trail.note(w.At, a.to)
	}
	w.Replicas, w.Ready = one.fleet.count, one.fleet.ready()
}

// Wait waits until every shadow has decided or over is closed, whichever comes first. It is for callers that have nothing else
// to do. It does not wait for shadows that are left out for good.
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

// Wishes returns what each shadow asked for last, in the order of Config.Policies.
func (s *Shadows) Wishes() []Wish {
	s.collect()
	all := make([]Wish, len(s.all))
	for i, one := range s.all {
		all[i] = one.wish
	}
	return all
}

// show returns the observation for a shadow, as a separate copy.
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

// finite caps a number at the largest finite one, which Lower of a reading can have.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
