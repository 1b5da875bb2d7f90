package policy

import (
	"fmt"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
)

// A Policy is a spec with a name. A document has one or several. It comes from [Read] or [Named], or is made in Go.
//
// +kubebuilder:object:generate=false
type Policy struct {
	// Name is unique in a document. A policy that is given none is named after its algorithms.
	Name string
	// Namespace is the namespace of an LLMAutoScaler, else empty.
	Namespace string
	// Manifest says that the policy was read from a whole LLMAutoScaler.
	Manifest bool

	Spec
}

// Build returns the live policy, with a fresh state. The bounds are used if the spec has neither minReplicas nor maxReplicas. A capacity
// scaler tunes inside its decisions, which then take up to ten seconds: that is for simulators, and others use BuildWith.
func (p *Policy) Build(bounds scaling.Bounds) (scaling.Policy, error) {
	return p.BuildWith(bounds, nil)
}

// BuildWith is Build with tuners for capacity scalers, for example one of capacity.Background each.
func (p *Policy) BuildWith(bounds scaling.Bounds, tuner func() capacity.Tuner) (scaling.Policy, error) {
	plan, err := p.PlanWith("", bounds, tuner)
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w", p.Name, err)
	}
	return plan.Policy, nil
}

// Metrics returns the metrics that the policy reads, in the order of its configuration.
func (p *Policy) Metrics() []Metric {
	plan, _ := p.Plan("", unbounded()) // Build reports the errors
	return plan.Metrics
}
