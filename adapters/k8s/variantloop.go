package k8s

import (
	"context"
	"errors"
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// A Variant is one target of a VariantLoop.
type Variant struct {
	Name   string // what the group calls it; unique
	Target Target
	// Bounds are those of the group, to show; the zero value shows none.
	Bounds scaling.Bounds
}

// VariantLoopConfig says what a VariantLoop scales and how.
type VariantLoopConfig struct {
	Variants []Variant
	// Group decides: a saturation.Group, a hetero.Group. It belongs to the loop from then on, which restores its state.
	Group scaling.Group

	Settings
}

// A VariantLoop scales several targets that are decided on together, with the duties of a Loop for each.
//
// All targets are read and observed, then decided on, then stored as one state. Writes that add replicas come before
// those that take some away, and if one that adds fails, none is taken away in that round: what serves is never less
// than it was before or is to be after. The group is told what was really written. A conflict before anything was
// written decides again, as in a Loop; after that the next round does.
//
// A target that does not exist is left out, and what that means is the group's to say; one that cannot be read for
// another reason ends the round.
//
// While a write of which no answer came can yet arrive at one target, the others are not written, as both together would
// be more than was decided. That ends when the target changes, or is written itself, or two minutes after the write: the
// API server gives up sooner.
//
// The state is that of all targets together: it stays while one of them is still the one that it was, by UID.
//
// A VariantLoop is not safe for concurrent use.
type VariantLoop struct{ *engine }

// NewVariantLoop returns the VariantLoop of a configuration, or every rule that it breaks.
func NewVariantLoop(c VariantLoopConfig) (*VariantLoop, error) {
	s := c.orDefault()
	var e scaling.FieldErrors
	members := make([]member, len(c.Variants))
	targets := make([]Target, len(c.Variants))
	names, seen := make(map[string]bool), make(map[Target]bool)
	for i, v := range c.Variants {
		field := fmt.Sprintf("variants[%d]", i)
		e.Check(v.Name != "" && !names[v.Name], field+".name", v.Name, "must be unique and not empty")
		e.Add(v.Target.Validate(field + ".target"))
		e.Check(!seen[v.Target], field+".target", v.Target.String(), "must be unique")
		if v.Bounds != (scaling.Bounds{}) {
			e.Add(v.Bounds.Validate(field + ".bounds"))
		}
		names[v.Name], seen[v.Target] = true, true
		members[i] = member{name: v.Name, target: v.Target, bounds: v.Bounds}
		targets[i] = v.Target
	}
	e.Check(len(c.Variants) > 0, "variants", len(c.Variants), "must not be empty")
	e.Check(c.Group != nil, "group", nil, "must be set")
	e.Check(s.Observer != nil, "observer", nil, "must be set")
	s.check(&e, targets)
	if err := e.Err(); err != nil {
		return nil, err
	}
	engine, err := newEngine(s, members, c.Group)
	if err != nil {
		return nil, err
	}
	return &VariantLoop{engine}, nil
}

// Tick does one round at the present time and reports it, an outcome for each variant in their order. The error joins
// theirs.
func (l *VariantLoop) Tick(ctx context.Context) ([]Outcome, error) {
	outcomes := l.tick(ctx)
	errs := make([]error, len(outcomes))
	for i := range outcomes {
		errs[i] = outcomes[i].Err()
	}
	return outcomes, errors.Join(errs...)
}
