package keda

import (
	"context"
	"fmt"
	"time"
)

// A Ref names a ScaledObject.
type Ref struct {
	Namespace string
	Name      string
}

// String returns "namespace/name".
func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// A Spec is the metric name and target that a HorizontalPodAutoscaler gets before it asks for values.
type Spec struct {
	Metric string  // without the prefix sN- that KEDA adds
	Target float64 // at least 0.001: KEDA rounds to thousandths
}

// A Snapshot is the result of a trigger's round. Calls are answered from it and do not change it.
type Snapshot struct {
	// At is the time of the round.
	At time.Time
	// Spec is the trigger's Spec at that time.
	Spec Spec
	// Value is the value for the HorizontalPodAutoscaler. It is valid if Unknown is nil.
	Value float64
	// Unknown says why there is no value.
	Unknown error
	// Active says whether the target should have any replicas. It is valid if ActiveUnknown is nil.
	Active bool
	// ActiveUnknown says why Active is unknown.
	ActiveUnknown error
	// Because is the reason for the value in one line.
	Because string
	// Next is when the next round is due; the zero time means one interval after the start of this one.
	Next time.Time
}

// A Trigger makes the snapshots of one trigger of a ScaledObject. Its methods are never called concurrently.
type Trigger interface {
	// Round observes, decides and returns the snapshot for the next answers. An error means that the round failed: the last
	// snapshot stays in use until it is stale. Round must return when ctx ends.
	Round(ctx context.Context, now time.Time) (Snapshot, error)
	// Close is called after the last round.
	Close()
}

// A Plan tells the Engine how to run a Trigger.
type Plan struct {
	Trigger Trigger
	// Spec is the answer before the first round has ended.
	Spec Spec
	// Interval is the time from the start of one round to the start of the next, above 0.
	Interval time.Duration
	// Identity is equal for two sets of metadata of one ScaledObject if the later replaces the earlier: once there are calls
	// only for the later, the earlier makes no more rounds. Empty means that nothing replaces the trigger.
	Identity string
	// Object returns why the trigger's ScaledObject is not known, or nil if it is known. It is called at the beginning and
	// after each round, and must be fast. A nil Object means that the ScaledObject is known.
	Object func() error
}

// unknown returns why the ScaledObject is not known, or nil if it is known.
func (p *Plan) unknown() (why error) {
	if p.Object == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Errorf("the ScaledObject was asked for, which panicked: %v", p)
		}
	}()
	return p.Object()
}
