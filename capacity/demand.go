package capacity

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// Demand returns the work on which a Scaler has decided, in seconds of a replica a second, and how much of it one replica
// is given: what package forecast looks at. Its upper end is not known while a pod is silent, and nothing is known where
// the Scaler did not come to count.
func Demand(obs *scaling.Observation, d *scaling.Decision) (work scaling.Reading, each float64) {
	s, ok := d.Find(AboveCapacity, BelowCapacity, AtCapacity)
	if !ok {
		return work, 0
	}
	work = scaling.Exactly("work", s.Numbers[2])
	for i := range obs.Readings {
		work.Failed = max(work.Failed, obs.Readings[i].Failed)
	}
	for i := range obs.Histograms {
		work.Failed = max(work.Failed, obs.Histograms[i].Failed)
	}
	if work.Failed > 0 {
		work.Upper = math.Inf(1)
	}
	return work, s.Numbers[3]
}
