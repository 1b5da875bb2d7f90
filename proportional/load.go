package proportional

import (
	"github.com/inferscale/inferscale/scaling"
)

// find returns a metric's reading as scaling.Observation.Reading does, but without a copy if there is only one, and nil if there
// is none. Several readings are merged in spare.
func find(obs *scaling.Observation, name string, spare *scaling.Reading) (found *scaling.Reading) {
	for i := range obs.Readings {
		switch r := &obs.Readings[i]; {
		case r.Metric != name:
		case found == nil:
			found = r
		default:
			*spare = obs.Reading(name)
			return spare
		}
	}
	return found
}

// fleet returns the fleet's load according to what find returned. Of several readings it is the interval that contains the load of
// each: their merged numbers of pods may be those of none of them.
func (m *Metric) fleet(obs *scaling.Observation, r, spare *scaling.Reading, ready int32) (span, bool) {
	load, ok := m.load(r, ready)
	if !ok || r != spare {
		return load, ok
	}
	lower, upper := maxLoad, 0.0
	for i := range obs.Readings {
		if one := &obs.Readings[i]; one.Metric == m.Name {
			load, _ = m.load(one, ready)
			lower, upper = min(lower, load.lower), max(upper, load.lower+load.gap)
		}
	}
	return span{lower: lower, gap: upper - lower}, true
}

// load returns the fleet's load according to a reading, or false if it is not known. A load saturates at maxLoad: an upper end
// without a limit blocks every scale-down.
func (m *Metric) load(r *scaling.Reading, ready int32) (span, bool) {
	if r == nil || !r.Known() {
		return span{}, false
	}
	lower, upper := r.Lower, r.Upper
	switch m.Measure {
	case PerPod:
		pods := int64(r.Values) + max(0, int64(r.NotReady)) + max(0, int64(r.Failed))
		lower *= float64(pods)
		upper *= float64(max(pods, int64(ready)))
	case Average:
		if ready <= 0 {
			return span{}, false
		}
		lower *= float64(ready)
		upper *= float64(ready)
	case Total:
	}
	lower, upper = min(lower, maxLoad), min(upper, maxLoad)
	return span{lower: lower, gap: upper - lower}, true
}
