package hetero

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Codes of the steps of a type's decision. Each states the inequality that raises it. Costs are those of a batch;
// margin is that of the last place that the total reaches (see Fleet.Margin).
const (
	// Within gives a type more: the batch of its last replica is within the total.
	Within scaling.Code = "Within batch <= margin, total"
	// Beyond gives a type less: the batch of the first replica that it loses is beyond the total.
	Beyond scaling.Code = "Beyond batch >= margin, total"
	// Placed leaves a type as it is: the sequence gives it what it has.
	Placed scaling.Code = "Placed total"
	// Sticky takes a type back towards its present count: replicas would be exchanged between types.
	Sticky scaling.Code = "Sticky exchanges > limit"
	// Mismatched can say nothing: there is not one count for each type.
	Mismatched scaling.Code = "Mismatched counts, types"
)

// Options say how a Policy moves replicas between types.
type Options struct {
	// Exchanges is how many replicas one decision may stop in a type while it starts as many in another. 0 is none:
	// a replica is only ever stopped because the total falls. Unlimited gives exactly the sequence's counts at once,
	// as the seed does. They are made whether the total rises, falls or holds, in its cooldowns too; but none where it
	// is Unknown or the clock went back. See Fleet.AllocateSticky.
	Exchanges int32 `json:"exchanges"`
	// WhenReady allows exchanges only while every replica that was asked for is ready, so that the exchange of the
	// last decision has come about before the next.
	WhenReady bool `json:"whenReady"`
}

// Observation is what a Policy decides on. Counts are in the order of the Fleet's types.
type Observation struct {
	Spec []int32 // the replicas of each type that were asked for
	// Ready are those that are ready to serve; nil means all of them.
	Ready    []int32
	Readings []scaling.Reading // of the whole fleet
}

// Decision is what a Policy asks for. Its slices belong to the Policy and hold until its next decision.
type Decision struct {
	Total scaling.Decision   // what the policy of the total says
	Types []scaling.Decision // what is asked of each type, in the order of the Fleet's types
	// Target are the replicas that every type is to have: what Types ask for, and the present count where they do not.
	Target []int32
}

// Acts reports whether any type's count is to be written.
func (d *Decision) Acts() bool {
	for i := range d.Types {
		if d.Types[i].Acts() {
			return true
		}
	}
	return false
}

// Explain returns the chain of the total, and below it that of every type.
func (d *Decision) Explain() string {
	var b strings.Builder
	b.WriteString(d.Total.Explain())
	for i := range d.Types {
		b.WriteString(d.Types[i].Explain())
	}
	return b.String()
}

// A Policy turns the total that another policy decides on into a count for every type: with package proportional it is
// Kthena's heterogeneous autoscaler. It is not safe for concurrent use.
//
// The caller's duties are those of a scaling.Policy: Decide, store the state, write the counts of the types that act,
// report what was carried out with Applied, store the state again.
//
// It remembers nothing of its own: where the replicas run is in each observation. Its stored state is that of the
// total's policy within the fleet's bounds, as scaling.Bounded stores it, with kind and version; a state that cannot
// be used is refused and kept in the same way, and the answer is Unknown until a good one is given.
type Policy struct {
	fleet   *Fleet
	total   scaling.Policy
	options Options

	// Room for one decision, so that a steady state allocates nothing.
	full, target []int32
	types        []scaling.Decision
}

// NewPolicy returns the Policy that places the totals of another policy on a fleet, or every rule that its arguments
// break. The total is kept within the fleet's bounds, whose sum must fit an int32; the total's own bounds should be
// Fleet.Bounds. Counts of a type outside its bounds go to the nearest one at once.
func NewPolicy(total scaling.Policy, fleet *Fleet, options Options) (*Policy, error) {
	var e scaling.FieldErrors
	e.Check(total != nil, "total", total, "must be set")
	e.Check(fleet != nil, "fleet", nil, "must be set")
	e.Check(options.Exchanges >= 0, "options.exchanges", options.Exchanges, "must not be negative")
	if fleet != nil {
		e.Check(fleet.maxTotal <= math.MaxInt32, "fleet", fleet.maxTotal, fmt.Sprintf("must not have more than %d replicas for a policy", math.MaxInt32))
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	bounded, err := scaling.Bounded(total, fleet.Bounds())
	if err != nil {
		return nil, err
	}
	n := fleet.Len()
	return &Policy{
		fleet: fleet, total: bounded, options: options,
		full: make([]int32, 0, n), target: make([]int32, 0, n), types: make([]scaling.Decision, n),
	}, nil
}

// Fleet returns the fleet that the policy places on.
func (p *Policy) Fleet() *Fleet { return p.fleet }

// Decide asks the policy of the total, with the sums of the counts, and places its answer:
//
//	K      = what the total's policy asks for, or the present total if it asks for nothing
//	target = AllocateSticky(Spec, K, Exchanges)
//
// Every type gets a decision of its own, from its present count to its target. Where the total is Unknown, so are the
// types that stay as they are; only counts outside the bounds are put right. Decide is total: counts that are not one
// for each type give Unknown.
func (p *Policy) Decide(now time.Time, obs Observation) Decision {
	if len(obs.Spec) != p.fleet.Len() || obs.Ready != nil && len(obs.Ready) != p.fleet.Len() {
		return p.mismatched(&obs)
	}
	spec := Sum(obs.Spec)
	ready := spec
	if obs.Ready != nil {
		ready = Sum(obs.Ready)
	}
	total := p.total.Decide(now, scaling.Observation{
		SpecReplicas: saturate(spec), ReadyReplicas: saturate(ready), Readings: obs.Readings,
	})
	k := int64(total.Replicas)
	limit := p.options.Exchanges
	if total.Verdict == scaling.Unknown || total.Code() == scaling.ClockBack || p.options.WhenReady && ready < spec {
		limit = 0
	}
	p.full = p.fleet.Allocate(p.full, k)
	p.target = p.fleet.AllocateSticky(p.target, obs.Spec, k, limit)
	p.explain(&total, obs.Spec, limit)
	return Decision{Total: total, Types: p.types, Target: p.target}
}

// explain says for every type how its count comes about.
func (p *Policy) explain(total *scaling.Decision, spec []int32, limit int32) {
	k := float64(total.Replicas)
	margin := p.fleet.Margin(int64(total.Replicas))
	var starts, stops int64
	for i, want := range p.full {
		t := &p.fleet.config.Types[i]
		if d := int64(want) - int64(max(t.Min, min(spec[i], t.Max))); d > 0 {
			starts += d
		} else {
			stops -= d
		}
	}
	for n := range p.fleet.kinds {
		kind := &p.fleet.kinds[n]
		i := kind.at
		name := p.fleet.config.Types[i].Name
		d := scaling.HoldAt(spec[i])
		d.Clamp(scaling.Bounds{Min: kind.min, Max: kind.max})
		switch want := p.full[i]; {
		case want > d.Replicas:
			d.To(want, Within, name, p.fleet.costOf(kind, want), margin, k)
		case want < d.Replicas:
			d.To(want, Beyond, name, p.fleet.costOf(kind, want+1), margin, k)
		default:
			d.To(want, Placed, name, k)
		}
		if p.target[i] != d.Replicas {
			d.To(p.target[i], Sticky, name, float64(min(starts, stops)), float64(limit))
		}
		if total.Verdict == scaling.Unknown && !d.Acts() {
			d.Verdict = scaling.Unknown
		}
		d.Next = total.Next
		p.types[i] = d
	}
}

// costOf returns the cost of the batch that a type's n-th replica is in; n is above its minimum.
func (f *Fleet) costOf(k *kind, n int32) float64 {
	return k.batchCost(f.sizes.batch(k, n-k.min))
}

// mismatched is the decision on counts that cannot be told apart.
func (p *Policy) mismatched(obs *Observation) Decision {
	counts, types := len(obs.Spec), p.fleet.Len()
	if counts == types {
		counts = len(obs.Ready)
	}
	p.target = p.target[:0]
	for i := range p.types {
		n := at(obs.Spec, int32(i))
		p.types[i] = scaling.UnknownAt(n, Mismatched, p.fleet.config.Types[i].Name, float64(counts), float64(types))
		p.target = append(p.target, n)
	}
	return Decision{
		Total:  scaling.UnknownAt(saturate(Sum(obs.Spec)), Mismatched, "", float64(counts), float64(types)),
		Types:  p.types,
		Target: p.target,
	}
}

// Applied records that the types went from one set of counts to another at now: what was really written, where some
// writes were refused. Cooldowns of the total start here. Exchanges, which leave the total as it is, start none.
func (p *Policy) Applied(now time.Time, from, to []int32) {
	if a, b := saturate(Sum(from)), saturate(Sum(to)); a != b {
		p.total.Applied(now, a, b)
	}
}

// MarshalJSON returns the state of the total's policy; see Policy.
func (p *Policy) MarshalJSON() ([]byte, error) { return p.total.MarshalJSON() }

// UnmarshalJSON takes back what MarshalJSON returned.
func (p *Policy) UnmarshalJSON(data []byte) error { return p.total.UnmarshalJSON(data) }
