package saturation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Group is a live Scaler of the variants of one model, as a scaling.Group: each target is the variant of its name.
//
// Every pod of the observation is a replica that can be scraped, with NaN for a value that it did not give. A target counts
// as its SpecReplicas, of which PendingReplicas are not ready. A target that is missing is left out of the decision. A
// target without a configured variant, or whose name occurs twice, is Unknown, but its pods still count as the model's.
// Replicas that were asked for but not written do not count as starting: Variant.Desired is not used.
//
// The zero value decides Unknown.
type Group struct {
	live

	config    GroupConfig
	places    map[string]int // indexes in config.Variants
	seen      []int          // how many targets that are not missing each of them has
	replicas  []Replica
	variants  []Variant
	decisions []scaling.Decision
}

// GroupConfig says what a Group decides on.
type GroupConfig struct {
	Config

	// Variants need name, cost, capacity and bounds, in any order; the other fields come from the targets.
	Variants []Variant `json:"variants"`
	// KV and Queue name the readings of the KV cache usage, a fraction, and of the waiting requests. Empty means DefaultKV
	// and DefaultQueue.
	KV    string `json:"kv"`
	Queue string `json:"queue"`
}

// NewGroup returns the Group of a configuration, with a fresh state, or an error with every rule that the configuration
// breaks, each as a scaling.FieldError.
func NewGroup(c GroupConfig) (*Group, error) {
	c.KV, c.Queue = cmp.Or(c.KV, DefaultKV), cmp.Or(c.Queue, DefaultQueue)
	c.Variants = slices.Clone(c.Variants)
	g := &Group{config: c, places: make(map[string]int, len(c.Variants)), seen: make([]int, len(c.Variants))}
	var e scaling.FieldErrors
	var err error
	g.scaler, err = New(c.Config)
	e.Add(err)
	e.Check(len(c.Variants) > 0, "variants", len(c.Variants), "must not be empty")
	for i, v := range c.Variants {
		e.Check(v.Name != "", fmt.Sprintf("variants[%d].name", i), v.Name, "must not be empty")
		_, twice := g.places[v.Name]
		e.Check(!twice, fmt.Sprintf("variants[%d].name", i), v.Name, "must be unique")
		g.places[v.Name] = i
		v.check(&e, fmt.Sprintf("variants[%d].", i))
	}
	e.Check(c.Queue != c.KV, "queue", c.Queue, "must not be kv")
	if err := e.Err(); err != nil {
		return &Group{}, err
	}
	return g, nil
}

var _ scaling.Group = (*Group)(nil)

// Retune replaces the thresholds and keeps the state, but a scale-down must have been safe by the new thresholds for the
// whole stabilization. Thresholds that break a rule are refused, and the old ones stay in force.
func (g *Group) Retune(t Thresholds) error {
	c := g.scaler.config
	if t == c.Thresholds {
		return nil
	}
	c.Thresholds = t
	scaler, err := New(c)
	if err != nil {
		return err
	}
	g.scaler = scaler
	return nil
}

// Decide decides on all targets together by the rules of Scaler.Decide. Total is the decision for the model. Decisions that are Unknown
// because no replica has a value warn of the readings that have other names (scaling.Unmatched).
func (g *Group) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	if g.places == nil {
		return scaling.UnknownGroup(obs, scaling.NotConfigured)
	}
	g.observe(&obs)
	g.scaler.Analyze(&g.analysis, g.replicas)
	g.decide(now, g.variants)
	g.decisions = g.decisions[:0]
	for i := range obs.Targets {
		t := &obs.Targets[i]
		place, ok := g.places[t.Name]
		switch target := g.plan.Target(t.Name); {
		case t.Missing:
			g.decisions = append(g.decisions, scaling.UnknownAt(t.SpecReplicas, NoTarget, t.Name))
		case !ok:
			g.decisions = append(g.decisions, scaling.UnknownAt(t.SpecReplicas, NoVariant, t.Name))
		case target == nil || g.seen[place] > 1:
			g.decisions = append(g.decisions, scaling.UnknownAt(t.SpecReplicas, Contradicted, t.Name))
		default:
			g.decisions = append(g.decisions, target.Decision)
		}
	}
	d := scaling.GroupDecision{Total: g.plan.Model(), Targets: g.decisions}
	warnUnmatched(&d.Total, obs.Readings, g.config.KV, g.config.Queue)
	for i := range d.Targets {
		warnUnmatched(&d.Targets[i], obs.Readings, g.config.KV, g.config.Queue)
	}
	return d
}

// observe makes a row of each pod and a variant of each target.
func (g *Group) observe(obs *scaling.GroupObservation) {
	g.replicas, g.variants = g.replicas[:0], g.variants[:0]
	// Two readings of one name contradict each other: neither is used, whatever their order.
	at := func(name string) int {
		is := func(r scaling.Reading) bool { return r.Metric == name }
		i := slices.IndexFunc(obs.Readings, is)
		if i >= 0 && slices.ContainsFunc(obs.Readings[i+1:], is) {
			return -1
		}
		return i
	}
	kv, queue := at(g.config.KV), at(g.config.Queue)
	clear(g.seen)
	for i := range obs.Targets {
		if place, ok := g.places[obs.Targets[i].Name]; ok && !obs.Targets[i].Missing {
			g.seen[place]++
		}
	}
	for i := range obs.Targets {
		t := &obs.Targets[i]
		if t.Missing {
			continue
		}
		for k := range t.Pods {
			p := &t.Pods[k]
			g.replicas = append(g.replicas, Replica{Pod: p.Name, Variant: t.Name, KV: value(p, kv), Queue: value(p, queue)})
		}
		if place, ok := g.places[t.Name]; ok && g.seen[place] == 1 { // what is there twice must not be chosen
			v := g.config.Variants[place]
			v.Current, v.Desired, v.Pending = t.SpecReplicas, Count{}, min(t.PendingReplicas, t.SpecReplicas)
			g.variants = append(g.variants, v)
		}
	}
}

// value returns a pod's value of a reading, NaN if it has none.
func value(p *scaling.PodObservation, reading int) float64 {
	if reading < 0 || reading >= len(p.Values) {
		return math.NaN()
	}
	return p.Values[reading]
}

// Applied records the changes that were carried out, in the order of the last decision's targets.
func (g *Group) Applied(now time.Time, from, to []int32) {
	for i := range min(len(from), len(to)) {
		g.live.Applied(now, from[i], to[i])
	}
}
