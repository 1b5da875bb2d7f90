package proportional

import "github.com/inferscale/inferscale/scaling"

// Demand returns the load of the whole fleet on the metric, according to its Measure, and the target of one replica. Package
// forecast uses it. The load is not known if the reading is not, or if it is an Average while no replica is ready.
func (m Metric) Demand(obs *scaling.Observation, _ *scaling.Decision) (load scaling.Reading, each float64) {
	var spare scaling.Reading
	r := find(obs, m.Name, &spare)
	l, ok := m.fleet(obs, r, &spare, obs.ReadyReplicas)
	if !ok {
		return scaling.Reading{Metric: m.Name}, m.Target
	}
	load = *r
	load.Lower, load.Upper = l.lower, l.lower+l.gap
	return load, m.Target
}
