package policy

import (
	"fmt"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
)

// A Policy is a spec with a name: what a document has, once or several times. It comes from [Read] or [Named], or is
// put together in Go.
//
// +kubebuilder:object:generate=false
type Policy struct {
	// Name tells it from others. One that is given none is called after its algorithms.
	Name string
	// Namespace is that of an LLMAutoScaler.
	Namespace string
	// Manifest says that it is a whole LLMAutoScaler.
	Manifest bool

	Spec
}

// Build returns the live policy, with a fresh state. Bounds are used where the spec has no maxReplicas.
func (p *Policy) Build(bounds scaling.Bounds) (scaling.Policy, error) {
	return p.buildWith(bounds, nil)
}

func (p *Policy) buildWith(bounds scaling.Bounds, tuner func() capacity.Tuner) (scaling.Policy, error) {
	plan, err := p.PlanWith("", bounds, tuner)
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w", p.Name, err)
	}
	return plan.Policy, nil
}

// Metrics returns the metrics that the policy reads, in the order of its configuration.
func (p *Policy) Metrics() []Metric {
	plan, _ := p.Plan("", unbounded()) // what is wrong is said when it is built
	return plan.Metrics
}
