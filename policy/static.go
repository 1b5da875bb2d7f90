package policy

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Fixed sets the count to that of a static policy.
const Fixed scaling.Code = "Fixed replicas"

// static always asks for the same count, within bounds.
type static struct {
	replicas int32
	bounds   scaling.Bounds
}

// Kind names the algorithm and the version of its state, which is none.
func (static) Kind() scaling.Kind { return scaling.Kind{Name: "static", Version: 1} }

// Decide asks for the count.
func (s static) Decide(_ struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(s.replicas, Fixed, "", float64(s.replicas))
	d.Clamp(s.bounds)
	return struct{}{}, d
}

// Applied has nothing to record.
func (static) Applied(struct{}, time.Time, int32, int32) struct{} { return struct{}{} }
