package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// A Variant is one target of a VariantLoop.
type Variant struct {
	Name   string // its name in the group; unique
	Target Target
	// Bounds are the group's bounds of this target, for display; the zero value displays none.
	Bounds scaling.Bounds
}

// VariantLoopConfig is the configuration of a VariantLoop.
type VariantLoopConfig struct {
	Variants []Variant
	// Group makes the decisions, for example a saturation.Group or a hetero.Group. After NewVariantLoop it belongs to the
	// loop, which restores its state.
	Group scaling.Group

	Settings
}

// A VariantLoop scales several targets with common decisions. It has the duties of a Loop for each of them.
//
// It reads and observes all targets, then decides on all, then stores one state for all. Writes that add replicas come before
// writes that remove replicas, and if one that adds fails, no replicas are removed in that round: the number of serving
// replicas never falls below the smaller of the counts before and after the change. The group is told what was really
// written. After a conflict before the first write the round decides again, as in a Loop; after a later conflict the next
// round does.
//
// A target that does not exist is left out, and the group decides what that means. If a target cannot be read for another
// reason, the round ends.
//
// While a write without an answer can still arrive at one target, the other targets are not written, because both writes
// together would be more than was decided. This ends when the target changes, when it is written again, or two minutes after
// the write: the API server gives up sooner.
//
// The state is that of all targets together: it is kept as long as one of them is still the same object, by UID.
//
// A VariantLoop is not safe for concurrent use.
type VariantLoop struct{ *engine }

// NewVariantLoop returns the VariantLoop of a configuration, or an error with every rule that it breaks.
func NewVariantLoop(c VariantLoopConfig) (*VariantLoop, error) {
	s := c.orDefault()
	var e scaling.FieldErrors
	names := make(map[string]bool)
	for i, v := range c.Variants {
		field := fmt.Sprintf("variants[%d]", i)
		e.Check(v.Name != "" && !names[v.Name], field+".name", v.Name, "must be unique and not empty")
		e.Add(v.Target.Validate(field + ".target"))
		e.Check(!slices.ContainsFunc(c.Variants[:i], func(other Variant) bool { return v.Target.same(other.Target) }), field+".target", v.Target.String(), "must be unique, in any version of its API")
		if v.Bounds != (scaling.Bounds{}) {
			e.Add(v.Bounds.Validate(field + ".bounds"))
		}
		names[v.Name] = true
	}
	e.Check(len(c.Variants) > 0, "variants", len(c.Variants), "must not be empty")
	e.Check(c.Group != nil, "group", nil, "must be set")
	e.Check(s.Observer != nil, "observer", nil, "must be set")
	s.check(&e, c.Variants)
	if err := e.Err(); err != nil {
		return nil, err
	}
	engine, err := newEngine(s, slices.Clone(c.Variants), c.Group)
	if err != nil {
		return nil, err
	}
	return &VariantLoop{engine}, nil
}

// Tick makes one round at the present time and returns an outcome for each variant, in their order. The error joins those of
// the outcomes.
func (l *VariantLoop) Tick(ctx context.Context) ([]Outcome, error) {
	outcomes := l.tick(ctx)
	errs := make([]error, len(outcomes))
	for i := range outcomes {
		errs[i] = outcomes[i].Err()
	}
	return outcomes, errors.Join(errs...)
}
