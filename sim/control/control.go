// Package control makes groups for the simulator of package hetero, which spreads a total over several kinds of
// replicas. A saturation.Group is one as it is.
package control

import (
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// Hetero returns the group of a fleet's policy. The fleet's types must be those of the scenario, in its order.
func Hetero(policy *hetero.Policy) scaling.Group { return &fleet{Policy: policy} }

type fleet struct {
	*hetero.Policy

	spec, ready []int32
}

func (f *fleet) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	f.spec, f.ready = f.spec[:0], f.ready[:0]
	for _, t := range obs.Targets {
		f.spec, f.ready = append(f.spec, t.SpecReplicas), append(f.ready, t.ReadyReplicas)
	}
	d := f.Policy.Decide(now, hetero.Observation{Spec: f.spec, Ready: f.ready, Readings: obs.Readings})
	return scaling.GroupDecision{Total: d.Total, Targets: d.Types}
}
