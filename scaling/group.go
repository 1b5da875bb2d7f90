package scaling

import (
	"encoding/json"
	"strings"
	"time"
)

// A Group is a live algorithm that decides on several targets together, such as the variants of a model or the types of a
// fleet. It corresponds to a [Policy], which decides on one target, and its caller has the same duties; package loop carries
// them out. [GroupOf] makes a Group from a Policy. A Group is not safe for concurrent use.
type Group interface {
	// Decide returns a decision for every target, in the order of the targets, whatever the observation.
	Decide(now time.Time, obs GroupObservation) GroupDecision
	// Applied records what was carried out: the counts of all targets before and after, in the order of the last
	// decision. A target that was not written has the same count in both.
	Applied(now time.Time, from, to []int32)
	json.Marshaler
	json.Unmarshaler
}

// A GroupObservation is what a Group decides on.
type GroupObservation struct {
	Targets []TargetObservation
	// Readings are of all targets together, one per metric. Values of a PodObservation are in the same order.
	Readings []Reading
	// Histograms are of all targets together, one per metric; most groups use none.
	Histograms []Histogram
}

// OneTarget returns the observation of a single target with the given number of ready replicas. Package loop adds the
// target's count when it decides.
func OneTarget(ready int32, readings ...Reading) GroupObservation {
	return GroupObservation{Targets: []TargetObservation{{ReadyReplicas: ready}}, Readings: readings}
}

// A TargetObservation is one target as it stands.
type TargetObservation struct {
	Name string // what the group's configuration calls it
	// Missing says that the target does not exist. The other fields then mean nothing.
	Missing bool
	// SpecReplicas is the count that was asked for, ReadyReplicas how many of them are ready to serve.
	SpecReplicas  int32
	ReadyReplicas int32
	// PendingReplicas is how many of them exist but are not ready.
	PendingReplicas int32
	// Pods are the replicas that can be scraped, each with its values.
	Pods []PodObservation
}

// A PodObservation has the values of one replica.
type PodObservation struct {
	Name string
	// Values has one value for each reading of the GroupObservation, NaN if the pod gave none.
	Values []float64
}

// A GroupDecision is what a Group asks for. Its slice belongs to the Group and is valid until the Group's next decision.
type GroupDecision struct {
	// Total is the decision on all targets together, if the group makes one, and else the sum of the decisions.
	Total Decision
	// Targets has a decision for each target, in the order of the observation.
	Targets []Decision
}

// Acts reports whether the decision asks for a write of any target.
func (d *GroupDecision) Acts() bool {
	for i := range d.Targets {
		if d.Targets[i].Acts() {
			return true
		}
	}
	return false
}

// Next returns the earliest Next of the decisions: when to decide again even without new data. The zero time means never.
func (d *GroupDecision) Next() time.Time {
	next := d.Total
	for i := range d.Targets {
		next.NextBy(d.Targets[i].Next)
	}
	return next.Next
}

// Explain returns the chain of the total followed by that of every target; if there is one target, only the target's chain.
func (d *GroupDecision) Explain() string {
	var b strings.Builder
	if len(d.Targets) != 1 {
		b.WriteString(d.Total.Explain())
	}
	for i := range d.Targets {
		b.WriteString(d.Targets[i].Explain())
	}
	return b.String()
}

// NotOne decides Unknown: a Group of one target was given another number of targets, or its target is missing.
const NotOne Code = "NotOne targets"

// GroupOf returns a Group that decides on one target with a policy. Its state is that of the policy. With a nil policy it
// decides Unknown (NotConfigured).
func GroupOf(policy Policy) Group {
	if policy == nil {
		policy = &unconfigured{}
	}
	return &single{Policy: policy}
}

type single struct {
	Policy
	answer [1]Decision
}

// Decide asks the policy. It returns Unknown if the target is missing, or if there is not exactly one target.
func (s *single) Decide(now time.Time, obs GroupObservation) GroupDecision {
	if len(obs.Targets) == 1 && !obs.Targets[0].Missing {
		t := &obs.Targets[0]
		s.answer[0] = s.Policy.Decide(now, Observation{
			SpecReplicas: t.SpecReplicas, ReadyReplicas: t.ReadyReplicas, Readings: obs.Readings, Histograms: obs.Histograms,
		})
		return GroupDecision{Total: s.answer[0], Targets: s.answer[:]}
	}
	return UnknownGroup(obs, NotOne, float64(len(obs.Targets)))
}

// Applied tells the policy.
func (s *single) Applied(now time.Time, from, to []int32) {
	if len(from) == 1 && len(to) == 1 {
		s.Policy.Applied(now, from[0], to[0])
	}
}

// MarshalDurable is that of the policy.
func (s *single) MarshalDurable() ([]byte, error) { return Durable(s.Policy) }

// Snapshot is that of the policy.
func (s *single) Snapshot() (restore func() error, err error) { return Snapshot(s.Policy) }

// UnknownGroup returns a decision that is Unknown for every target, with the given reason. It allocates.
func UnknownGroup(obs GroupObservation, code Code, numbers ...float64) GroupDecision {
	d := GroupDecision{Targets: make([]Decision, len(obs.Targets))}
	total := int32(0)
	for i := range obs.Targets {
		t := &obs.Targets[i]
		d.Targets[i] = UnknownAt(t.SpecReplicas, code, t.Name, numbers...)
		total = Plus(total, t.SpecReplicas)
	}
	d.Total = UnknownAt(total, code, "", numbers...)
	return d
}
