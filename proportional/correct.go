package proportional

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Codes of the corrections.
const (
	// UpRate lowers a scale-up to Up.MaxRate times the ready replicas, or to the present count if that is more.
	UpRate scaling.Code = "UpRate from > limit, rate, ready"
	// Activated raises the count to the activation scale: there is a load.
	Activated scaling.Code = "Activated from < scale"
	// DownRate raises a scale-down to the ready replicas divided by Down.MaxRate.
	DownRate scaling.Code = "DownRate from < limit, rate, ready"
	// UpStep lowers a scale-up to the present count plus Up.MaxStep.
	UpStep scaling.Code = "UpStep from > limit, step"
	// DownStep raises a scale-down to the present count minus Down.MaxStep.
	DownStep scaling.Code = "DownStep from < limit, step"
)

// recommend turns the count that the loads ask for into the recommendation: at most Up.MaxRate times the ready replicas, at least
// the activation scale, and in panic no less than before.
func (p *plan) recommend(d *scaling.Decision, t *tally, state *State, obs *scaling.Observation) {
	spec := obs.SpecReplicas
	if rate := p.config.Up.MaxRate; rate > 0 && d.Replicas > spec {
		ready := float64(max(1, obs.ReadyReplicas))
		if limit := max(spec, scaling.Ceil(rate*ready)); d.Replicas > limit {
			d.To(limit, UpRate, "", float64(d.Replicas), float64(limit), rate, ready)
		}
	}
	if scale := p.config.ActivationScale; scale > 1 && d.Replicas > 0 {
		if !t.loaded { // a load that may be zero raises nothing
			scale = min(scale, spec)
		}
		if d.Replicas < scale {
			d.To(scale, Activated, "", float64(d.Replicas), float64(scale))
		}
	}
	if !t.panics {
		if p.config.Panic.Threshold > 0 && d.Replicas < spec {
			p.suspect(d, t, state)
		}
		return
	}
	if asked := max(spec, state.Peak); d.Replicas < asked {
		d.To(asked, NoFewer, "", float64(d.Replicas), float64(asked), seconds(t.at-state.Panic.Milli), seconds(p.stable))
	}
	d.NextBy(timeOf(state.Panic.Milli + p.stable + 1))
}

// suspect cancels a scale-down if the upper end of any metric's load meets the panic threshold.
func (p *plan) suspect(d *scaling.Decision, t *tally, state *State) {
	limit := p.config.Panic.Threshold * t.ready
	for i := range t.looks {
		m := &p.metrics[i]
		wanted := float64(scaling.Ceil(state.Loads[i].Window.ceiling(t.slot-p.burst) / m.Target))
		if !scaling.Exceeds(limit, wanted) {
			d.To(d.From, MayPanic, m.Name, wanted, limit, t.ready)
			return
		}
	}
}

// correct changes a recommendation to what stabilization, limits, steps and bounds allow.
func (p *plan) correct(d *scaling.Decision, now time.Time, state *State, obs *scaling.Observation) {
	c := &p.config
	if p.stabilized {
		c.Stabilization.Apply(&state.Recommendations, now, d)
	}
	if p.limited {
		c.RateLimits.Apply(&state.Changes, now, d)
	}
	spec := obs.SpecReplicas
	if rate := c.Down.MaxRate; rate > 0 && d.Replicas < spec {
		ready := max(1, obs.ReadyReplicas)
		if c.StartupCredit {
			ready = max(ready, spec)
		}
		if limit := min(spec, floor(float64(ready)/rate)); d.Replicas < limit {
			d.To(limit, DownRate, "", float64(d.Replicas), float64(limit), rate, float64(ready))
		}
	}
	if step := c.Up.MaxStep; step > 0 {
		if limit := scaling.Plus(spec, step); d.Replicas > limit {
			d.To(limit, UpStep, "", float64(d.Replicas), float64(limit), float64(step))
		}
	}
	if step := c.Down.MaxStep; step > 0 {
		if limit := scaling.Plus(spec, -step); d.Replicas < limit {
			d.To(limit, DownStep, "", float64(d.Replicas), float64(limit), float64(step))
		}
	}
	d.Clamp(c.Bounds)
	if state.Panic.Set {
		state.Peak = max(state.Peak, d.Replicas)
	}
}

// floor returns the greatest count that does not exceed x by more than noise: 3/0.1 gives 30. x is a count divided by a rate.
func floor(x float64) int32 {
	n := math.Ceil(x)
	if scaling.Exceeds(n, x) {
		n--
	}
	return scaling.Saturate(n)
}
