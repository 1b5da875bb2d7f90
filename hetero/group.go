package hetero

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Codes of the steps of a type's decision. Each states the inequality that causes it. Costs are those of a batch; margin is
// the cost of the last batch that the total reaches.
const (
	// Within adds replicas of a type: the batch of its last replica is within the total.
	Within scaling.Code = "Within batch <= margin, total"
	// Beyond removes replicas of a type: the batch of the first removed replica is beyond the total.
	Beyond scaling.Code = "Beyond batch >= margin, total"
	// Placed holds a type: the sequence gives it its present count.
	Placed scaling.Code = "Placed total"
	// Sticky moves a type back towards its present count, because replicas would be exchanged between types.
	Sticky scaling.Code = "Sticky exchanges > limit"
	// Mismatched decides Unknown: the targets are not the types of the fleet, each once and present.
	Mismatched scaling.Code = "Mismatched counts, types"
)

// Options control how a Group moves replicas between types.
type Options struct {
	// Exchanges is how many replicas one decision may stop in a type while it starts as many in another. With 0, a replica
	// is only stopped because the total falls. Unlimited moves to the sequence's counts at once, as Kthena does. Exchanges
	// are made whether the total rises, falls or holds, also in its cooldowns, but not if the total is Unknown or the clock
	// went back. See Fleet.AllocateSticky.
	Exchanges int32 `json:"exchanges"`
	// WhenReady allows exchanges only while every requested replica is ready, so that one exchange is complete before the
	// next.
	WhenReady bool `json:"whenReady"`
}

// A Group distributes the total that a policy decides on over the types of a fleet: with package proportional it is Kthena's
// heterogeneous autoscaler. NewGroup makes it; the zero Group decides Unknown with the code scaling.NotConfigured. It is a
// [scaling.Group], with its duties for the caller, and not safe for concurrent use.
//
// The targets are the types, by name, in any order. If a part of the fleet is not observed, the total is unknown: unless
// every type is there exactly once, and nothing else, all decisions are Unknown with the code Mismatched.
//
// It stores nothing of its own, since each observation says where the replicas run. Its stored state is that of the total's
// policy within the fleet's bounds, as scaling.Bounded stores it, with kind and version. It refuses and keeps a state that
// cannot be used in the same way, and decides Unknown until it gets a good one.
type Group struct {
	fleet   *Fleet
	total   scaling.Policy
	options Options

	// Buffers for one decision, so that a steady state allocates nothing. Counts are in the order of the fleet's types.
	spec, full, want []int32
	types            []int32 // the kind of each target
	targets          []scaling.Decision
	stood            []scaling.TargetObservation // the counts of each kind in the last round in which all were there
}

// NewGroup returns the Group that places the totals of a policy on a fleet, or the zero Group and an error with every rule
// that its arguments break. The total is kept within the fleet's bounds, whose sum must fit an int32; the policy's own
// bounds should be Fleet.Bounds. The count of a type outside its bounds moves to the nearest one at once.
func NewGroup(total scaling.Policy, fleet *Fleet, options Options) (*Group, error) {
	var e scaling.FieldErrors
	e.Check(total != nil, "total", total, "must be set")
	e.Check(fleet != nil && len(fleet.kinds) > 0, "fleet", nil, "must be set")
	e.Check(options.Exchanges >= 0, "options.exchanges", options.Exchanges, "must not be negative")
	if fleet != nil {
		e.Check(fleet.maxTotal <= math.MaxInt32, "fleet", fleet.maxTotal, fmt.Sprintf("must not have more than %d replicas for a policy", math.MaxInt32))
	}
	if err := e.Err(); err != nil {
		return new(Group), err
	}
	bounded, err := scaling.Bounded(total, fleet.Bounds())
	if err != nil {
		return new(Group), err
	}
	n := len(fleet.kinds)
	return &Group{
		fleet: fleet, total: bounded, options: options,
		spec: make([]int32, n), full: make([]int32, 0, n), want: make([]int32, 0, n),
		types: make([]int32, n), targets: make([]scaling.Decision, n), stood: make([]scaling.TargetObservation, n),
	}, nil
}

// Decide asks the policy of the total, with the sums of the counts and the readings over all targets together, and places
// its answer:
//
//	K      = what the total's policy asks for, or the present total if it asks for nothing
//	target = AllocateSticky(spec, K, Exchanges)
//
// Every target gets a decision of its own, from its present count to its share. If the total is Unknown, so are the targets
// that do not change: only counts outside the bounds are corrected, and others take what that leaves of the total.
func (g *Group) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	if g.fleet == nil {
		return scaling.UnknownGroup(obs, scaling.NotConfigured)
	}
	if seen, n := g.match(obs.Targets), len(g.types); seen != n || len(obs.Targets) != n {
		spec, ready := int32(0), int32(0)
		for i := range obs.Targets {
			t := obs.Targets[i]
			if n, ok := g.fleet.find(t.Name); t.Missing && ok {
				t = g.stood[n] // fewer replicas than the remembered load is for would be a burst
			}
			spec, ready = scaling.Plus(spec, t.SpecReplicas), scaling.Plus(ready, t.ReadyReplicas)
		}
		// The policy gets the time, but no data.
		g.total.Decide(now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: ready})
		return scaling.UnknownGroup(obs, Mismatched, float64(seen), float64(n))
	}
	spec, ready, starting := int64(0), int64(0), false
	for i := range obs.Targets {
		t := &obs.Targets[i]
		g.spec[g.fleet.kinds[g.types[i]].at] = t.SpecReplicas
		g.stood[g.types[i]] = scaling.TargetObservation{SpecReplicas: t.SpecReplicas, ReadyReplicas: t.ReadyReplicas}
		spec += int64(t.SpecReplicas)
		ready += int64(t.ReadyReplicas)
		// Not the sums: a type that stops has more ready replicas than were requested while another one starts.
		starting = starting || t.ReadyReplicas < t.SpecReplicas
	}
	total := g.total.Decide(now, scaling.Observation{
		SpecReplicas: saturate(spec), ReadyReplicas: saturate(ready), Readings: obs.Readings, Histograms: obs.Histograms,
	})
	limit := g.options.Exchanges
	_, back := total.Find(scaling.ClockBack) // may not be the last step, as in a Highest
	if total.Verdict == scaling.Unknown || back || g.options.WhenReady && starting {
		limit = 0
	}
	var margin float64
	g.full, margin = g.fleet.place(g.full, g.fleet.places(int64(total.Replicas)))
	g.want = append(g.want[:0], g.full...)
	exchanges := g.fleet.stick(g.want, g.spec, limit)
	for i, n := range g.types {
		g.explain(&g.targets[i], &g.fleet.kinds[n], &total, margin, exchanges, limit)
	}
	return scaling.GroupDecision{Total: total, Targets: g.targets}
}

// match finds the type of each target, and returns how many of the fleet's types are present.
func (g *Group) match(targets []scaling.TargetObservation) (seen int) {
	clear(g.spec) // not in use yet: 1 marks a type that was found
	for i := range min(len(targets), len(g.types)) {
		t := &targets[i]
		// Usually the types are in the same order as last time.
		if t.Name != g.fleet.nameOf(g.types[i]) {
			if n, ok := g.fleet.find(t.Name); ok {
				g.types[i] = int32(n)
			} else {
				continue
			}
		}
		if mark := &g.spec[g.fleet.kinds[g.types[i]].at]; !t.Missing && *mark == 0 {
			*mark = 1
			seen++
		}
	}
	return seen
}

// find returns the kind of a name.
func (f *Fleet) find(name string) (at int, ok bool) {
	return slices.BinarySearchFunc(f.kinds, name, func(k kind, name string) int {
		return cmp.Compare(f.config.Types[k.at].Name, name)
	})
}

// nameOf returns the name of a kind.
func (f *Fleet) nameOf(kind int32) string { return f.config.Types[f.kinds[kind].at].Name }

// explain adds the steps that lead to a type's count.
func (g *Group) explain(d *scaling.Decision, kind *kind, total *scaling.Decision, margin float64, exchanges int64, limit int32) {
	f, name, k := g.fleet, g.fleet.config.Types[kind.at].Name, float64(total.Replicas)
	*d = scaling.HoldAt(g.spec[kind.at])
	d.Clamp(scaling.Bounds{Min: kind.min, Max: kind.max})
	switch full := g.full[kind.at]; {
	case full > d.Replicas:
		d.To(full, Within, name, kind.batchCost(f.sizes.batch(kind, full-kind.min)), margin, k)
	case full < d.Replicas:
		d.To(full, Beyond, name, kind.batchCost(f.sizes.batch(kind, full+1-kind.min)), margin, k)
	default:
		d.To(full, Placed, name, k)
	}
	if want := g.want[kind.at]; want != d.Replicas {
		d.To(want, Sticky, name, float64(exchanges), float64(limit))
	}
	if total.Verdict == scaling.Unknown && !d.Acts() {
		d.Verdict = scaling.Unknown
	}
	d.Next = total.Next
}

// Applied records that the targets went from one set of counts to another at now: those that were really written, if some
// writes were refused. Cooldowns of the total start here. Exchanges do not change the total and start no cooldown.
func (g *Group) Applied(now time.Time, from, to []int32) {
	if a, b := saturate(sum(from)), saturate(sum(to)); a != b {
		g.policy().Applied(now, a, b)
	}
}

// MarshalJSON returns the state of the total's policy; see Group.
func (g *Group) MarshalJSON() ([]byte, error) { return g.policy().MarshalJSON() }

// MarshalDurable returns the state as it is stored, see scaling.Durable. A type that embeds a Group, and has a state of its own, must
// have this method and Snapshot, too.
func (g *Group) MarshalDurable() ([]byte, error) { return scaling.Durable(g.policy()) }

// Snapshot returns a function that takes the group back to the state that it has now, see scaling.Snapshot.
func (g *Group) Snapshot() (restore func() error, err error) {
	stood := slices.Clone(g.stood)
	back, err := scaling.Snapshot(g.policy())
	return func() error {
		copy(g.stood, stood)
		return back()
	}, err
}

// UnmarshalJSON restores what MarshalJSON returned.
func (g *Group) UnmarshalJSON(data []byte) error { return g.policy().UnmarshalJSON(data) }

// policy returns the policy of the total; that of the zero Group refuses and keeps every state.
func (g *Group) policy() scaling.Policy {
	if g.total == nil {
		g.total = scaling.New[struct{}](nil)
	}
	return g.total
}
