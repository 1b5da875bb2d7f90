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

// A Spec is what a HorizontalPodAutoscaler is told of a metric before it asks for values.
type Spec struct {
	Metric string  // without the sN- that KEDA puts in front of it
	Target float64 // at least 0.001: KEDA rounds to thousandths
}

// A Snapshot is what a round of a trigger came to. Calls are answered from it, and change nothing.
type Snapshot struct {
	// At is the time of the round.
	At time.Time
	// Spec is what was true then.
	Spec Spec
	// Value is what the HorizontalPodAutoscaler gets, if Unknown is nil.
	Value float64
	// Unknown is why there is no value.
	Unknown error
	// Active is whether the target should have any replicas, if ActiveUnknown is nil.
	Active bool
	// ActiveUnknown is why that is not known.
	ActiveUnknown error
	// Because is the reason of the value in one line.
	Because string
	// Next is when the next round is due; the zero time is an interval after this one began.
	Next time.Time
}

// A Trigger makes snapshots for one trigger of a ScaledObject. Its methods are called one after the other.
type Trigger interface {
	// Round looks, decides and returns what to answer from now on. An error says that the round came to nothing: the
	// last snapshot goes on answering until it is stale. It must end when ctx does.
	Round(ctx context.Context, now time.Time) (Snapshot, error)
	// Close is called after the last round.
	Close()
}

// A Plan is how the Engine runs a Trigger.
type Plan struct {
	Trigger Trigger
	// Spec is what is answered before the first round.
	Spec Spec
	// Interval is the time from the beginning of one round to that of the next, above 0.
	Interval time.Duration
	// Identity is equal for two sets of metadata of one ScaledObject of which the later replaces the earlier: once only
	// the later is asked for, the earlier makes no more rounds. Empty means that nothing replaces it.
	Identity string
	// Object returns why the trigger's ScaledObject is not known, and nil where it is. It is asked at the beginning and after
	// each round, and must not take long. A nil Object is of a ScaledObject that is known.
	Object func() error
}

// unknown returns why the ScaledObject is not known, and nil where it is.
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
