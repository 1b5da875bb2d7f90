package k8s

import (
	"errors"
	"slices"
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// HeteroVariants is the VariantPolicy of a hetero.Policy. The variants of the loop are the types of its fleet, by name.
type HeteroVariants struct {
	policy *hetero.Policy
	types  []hetero.Type

	at          []int // the type of each variant of the last decision
	spec, ready []int32
}

// NewHeteroVariants returns the VariantPolicy of a hetero.Policy.
func NewHeteroVariants(p *hetero.Policy) (*HeteroVariants, error) {
	if p == nil {
		return nil, errors.New("policy: must be set")
	}
	types := p.Fleet().Types()
	return &HeteroVariants{policy: p, types: types}, nil
}

// Decide places the total on the types. It says nothing (Unknown) unless every type is there as exactly one variant:
// the total of a fleet of which a part cannot be seen is not known.
func (p *HeteroVariants) Decide(now time.Time, views []VariantView, readings []scaling.Reading) VariantDecision {
	n := len(p.types)
	p.at = p.at[:0]
	p.spec, p.ready = make([]int32, n), make([]int32, n)
	seen := 0
	for i := range views {
		t := slices.IndexFunc(p.types, func(t hetero.Type) bool { return t.Name == views[i].Name })
		p.at = append(p.at, t)
		if t >= 0 && views[i].Found {
			p.spec[t], p.ready[t] = views[i].Scale.Replicas, views[i].Fleet.Ready
			seen++
		}
	}
	spec := p.spec
	if seen != n || len(views) != n {
		spec = nil // the policy's own answer to counts that are not one for each type
	}
	d := p.policy.Decide(now, hetero.Observation{Spec: spec, Ready: p.ready, Readings: readings})
	out := VariantDecision{Total: d.Total, Targets: make([]scaling.Decision, len(views))}
	for i, t := range p.at {
		if spec == nil {
			out.Targets[i] = scaling.UnknownAt(views[i].Scale.Replicas, hetero.Mismatched, views[i].Name, float64(seen), float64(n))
		} else {
			out.Targets[i] = d.Types[t]
		}
	}
	return out
}

// Applied tells the policy the counts of all types before and after.
func (p *HeteroVariants) Applied(now time.Time, from, to []int32) { p.policy.Applied(now, from, to) }

// MarshalJSON returns the state of the total's policy.
func (p *HeteroVariants) MarshalJSON() ([]byte, error) { return p.policy.MarshalJSON() }

// UnmarshalJSON takes back what MarshalJSON returned.
func (p *HeteroVariants) UnmarshalJSON(data []byte) error { return p.policy.UnmarshalJSON(data) }
