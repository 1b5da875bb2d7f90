package k8s

import (
	"errors"
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// HeteroVariants is the VariantPolicy of a hetero.Group. The variants of the loop are the types of its fleet, by name.
type HeteroVariants struct{ *hetero.Group }

// NewHeteroVariants returns the VariantPolicy of a hetero.Group.
func NewHeteroVariants(g *hetero.Group) (*HeteroVariants, error) {
	if g == nil {
		return nil, errors.New("group: must be set")
	}
	return &HeteroVariants{g}, nil
}

// Decide asks the group.
func (p *HeteroVariants) Decide(now time.Time, views []VariantView, readings []scaling.Reading) VariantDecision {
	obs := scaling.GroupObservation{Readings: readings, Targets: make([]scaling.TargetObservation, len(views))}
	for i := range views {
		v := &views[i]
		obs.Targets[i] = scaling.TargetObservation{
			Name: v.Name, Missing: !v.Found, SpecReplicas: v.Scale.Replicas, ReadyReplicas: v.Fleet.Ready,
		}
	}
	d := p.Group.Decide(now, obs)
	return VariantDecision{Total: d.Total, Targets: d.Targets}
}
