package proportional

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// Codes of APA. value is the mean over the replicas.
const (
	// AboveLevel asks for ceil(from * value/target), at most twice the present count.
	AboveLevel scaling.Code = "AboveLevel value > limit, target"
	// BelowLevel asks for ceil(from * value/target), at least half of the present count.
	BelowLevel scaling.Code = "BelowLevel value < limit, target"
	// AtLevel holds: the value is within the tolerance of the target.
	AtLevel scaling.Code = "AtLevel value <= high, value >= low"
	// Lowest scales down to the lowest count that was asked for within the cooldown, as AIBrix does.
	Lowest scaling.Code = "Lowest from > asked"
)

const (
	apaSpan      = 180 * time.Second
	apaCooldown  = 300 * time.Second
	apaRate      = 2.0
	apaTolerance = 0.1
)

type apa struct {
	metric string
	target float64
}

type apaState struct {
	Value  window.Mean `json:"value"`
	Wishes window.Min  `json:"wishes"`
}

// APA returns the policy of AIBrix' PodAutoscaler with the strategy APA and its defaults: with cur replicas asked for and v
// the mean over 180 s of the metric's mean over the replicas that answered,
//
//	min(ceil(cur v/target), 2 cur)      if v/target > 1.1
//	max(ceil(cur v/target), cur/2)      if v/target < 0.9
//	cur                                 otherwise
//
// within bounds. It scales down to the lowest recommendation of the last 300 s, where a HorizontalPodAutoscaler takes the highest.
// From 0 it stays at 0. cur includes replicas that are starting, so that the policy scales up as long as v is high, however many
// replicas are already starting. AIBrix decides every 10 s. If the metric is not known the verdict is Unknown, whatever was recorded.
// A clock that goes back does not keep it from acting. Samples of one second are averaged; AIBrix keeps the last.
//
// An error has every wrong field at once, each as a *scaling.FieldError.
//
// Source: vllm-project/aibrix, the algorithm apa (2026), Apache-2.0.
func APA(bounds scaling.Bounds, metric string, target float64) (scaling.Policy, error) {
	var e scaling.FieldErrors
	e.Add(bounds.Validate("bounds"))
	e.Check(metric != "", "metric", metric, "must not be empty")
	e.Check(target > 0 && !math.IsInf(target, 0), "target", target, "must be a number above 0")
	if err := e.Err(); err != nil {
		return scaling.New(apa{}), err
	}
	return scaling.Bounded(scaling.New(apa{metric, target}), bounds)
}

// Kind names the law and its state's version.
func (apa) Kind() scaling.Kind { return scaling.Kind{Name: "apa", Version: 1} }

// Decide applies the law.
func (a apa) Decide(s apaState, now time.Time, obs scaling.Observation) (apaState, scaling.Decision) {
	if a.target == 0 {
		return s, scaling.UnknownAt(obs.SpecReplicas, scaling.NotConfigured, "")
	}
	r := obs.Reading(a.metric)
	if !r.Known() { // AIBrix changes nothing if no pod answers
		return s, scaling.UnknownAt(obs.SpecReplicas, NoSample, a.metric)
	}
	w := window.Window{Length: apaSpan + time.Second, Resolution: time.Second} // AIBrix has the slots of both ends
	pods := int64(r.Values) + max(0, int64(r.NotReady)) + max(0, int64(r.Failed))
	s.Value.Record(w, now, r.Lower*(float64(pods)/float64(r.Values)))
	v, known := s.Value.Mean(w, now)
	if !known {
		return s, scaling.UnknownAt(obs.SpecReplicas, NoSample, a.metric)
	}
	d := scaling.HoldAt(obs.SpecReplicas)
	cur, q := float64(obs.SpecReplicas), v/a.target
	high, low := a.target*(1+apaTolerance), a.target*(1-apaTolerance)
	switch {
	case scaling.Exceeds(v, high):
		d.To(min(scaling.Ceil(cur*q), scaling.Ceil(apaRate*cur)), AboveLevel, a.metric, v, high, a.target)
	case scaling.Exceeds(low, v):
		d.To(max(scaling.Ceil(cur*q), scaling.Saturate(math.Floor(cur/apaRate))), BelowLevel, a.metric, v, low, a.target)
	default:
		d.To(obs.SpecReplicas, AtLevel, a.metric, v, high, v, low)
	}
	cooldown := window.Window{Length: apaCooldown}
	s.Wishes.Record(cooldown, now, float64(d.Replicas))
	if least, _ := s.Wishes.Min(cooldown, now); d.Replicas < obs.SpecReplicas && least < float64(d.Replicas) {
		d.To(int32(least), Lowest, "", float64(d.Replicas), least)
	}
	return s, d
}

// Applied has nothing to remember.
func (apa) Applied(s apaState, _ time.Time, _, _ int32) apaState { return s }
