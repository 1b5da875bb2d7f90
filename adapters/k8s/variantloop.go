package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A VariantPolicy decides on several targets that serve one model. SaturationVariants and HeteroVariants are two. The
// duties of a caller are those of a scaling.Policy.
type VariantPolicy interface {
	// Decide returns a decision for each variant, in their order.
	Decide(now time.Time, variants []VariantView, readings []scaling.Reading) VariantDecision
	// Applied records what was carried out: the counts of all variants before and after, in their order.
	Applied(now time.Time, from, to []int32)
	json.Marshaler
	json.Unmarshaler
}

// A VariantView is one variant as a VariantPolicy sees it.
type VariantView struct {
	Name string
	// Found reports whether the target exists. Without it the rest says nothing.
	Found bool
	Scale Scale
	Fleet FleetView
}

// A VariantDecision is what a VariantPolicy asks for.
type VariantDecision struct {
	Total   scaling.Decision   // what the variants come to together
	Targets []scaling.Decision // one a variant
	// ConfigErr is why a configuration was refused; the last good one is in force. Nil if all is well.
	ConfigErr error
}

// A Variant is one target of a VariantLoop.
type Variant struct {
	Name   string // what the policy calls it; unique
	Target Target
	// Bounds are those of the policy, to show; the zero value shows none.
	Bounds scaling.Bounds
}

// VariantLoopConfig says what a VariantLoop scales and how.
type VariantLoopConfig struct {
	Variants []Variant
	// Policy decides. It belongs to the loop from then on, which restores its state.
	Policy VariantPolicy

	Settings
}

// A VariantLoop scales several targets that are decided on together, with the duties of a Loop for each.
//
// All targets are read and observed, then decided on, then stored as one state. Writes that add replicas come before
// those that take some away, and if one that adds fails, none is taken away in that round: what serves is never less
// than it was before or is to be after. The policy is told what was really written. A conflict before anything was
// written decides again, as in a Loop; after that the next round does.
//
// A target that does not exist is left out, and what that means is the policy's to say; one that cannot be read for
// another reason ends the round.
//
// While a write of which no answer came can yet arrive at one target, the others are not written, as both together would
// be more than was decided. That ends when the target changes, or is written itself, or two minutes after the write: the
// API server gives up sooner.
//
// The state is that of all targets together: it stays while one of them is still the one that it was, by UID.
//
// A VariantLoop is not safe for concurrent use.
type VariantLoop struct {
	engine *engine
}

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
	e.Check(c.Policy != nil, "policy", nil, "must be set")
	e.Check(s.Observer != nil, "observer", nil, "must be set")
	s.check(&e, targets)
	if err := e.Err(); err != nil {
		return nil, err
	}
	engine, err := newEngine(s, members, c.Policy)
	if err != nil {
		return nil, err
	}
	return &VariantLoop{engine}, nil
}

// Tick does one round at the present time and reports it, an outcome for each variant in their order. The error joins
// theirs.
func (l *VariantLoop) Tick(ctx context.Context) ([]Outcome, error) {
	outcomes := l.engine.tick(ctx)
	errs := make([]error, len(outcomes))
	for i := range outcomes {
		errs[i] = outcomes[i].Err()
	}
	return outcomes, errors.Join(errs...)
}

// Run ticks at the interval, and at the earliest Outcome.Next where that is earlier, until ctx ends; see Loop.Run.
func (l *VariantLoop) Run(ctx context.Context) error { return l.engine.run(ctx) }

// Close drops what the loop shows of its targets: their series in Metrics; see Loop.Close.
func (l *VariantLoop) Close() { l.engine.close() }
