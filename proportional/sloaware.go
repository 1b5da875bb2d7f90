package proportional

import (
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// The metrics that SLOAware reads: 90th percentiles over a minute, in seconds.
const (
	TTFTP90 = "ttft_p90"
	TPOTP90 = "tpot_p90"
)

// Codes of SLOAware.
const (
	// Saturated asks for scale-up: the signal is above the band.
	Saturated scaling.Code = "Saturated signal > high, credit"
	// Spare asks for scale-down: the signal is below the band.
	Spare scaling.Code = "Spare signal < low"
	// InBand holds: the signal is within the band.
	InBand scaling.Code = "InBand signal <= high, signal >= low"
)

const (
	bandHigh, bandLow = 0.55, 0.40
	mostSignal        = 2.0
	signalSpan        = 45 * time.Second
)

// sloAware is the law, with the SLOs in seconds.
type sloAware struct{ ttft, tpot float64 }

type sloAwareState struct {
	Signal window.Mean `json:"signal"`
}

// SLOAware returns the policy of llm-d's guide to SLO-aware autoscaling with KEDA, as it is published. Every 15 s, with n
// replicas asked for, r of them ready, and TTFTP90 and TPOTP90 the 90th percentiles of the last minute (of llm-d's router):
//
//	raw = min(max(TTFT / ttft, TPOT / tpot), 2)   0 without traffic
//	s   = mean of raw over 45 s
//	d   = n + ceil(n * (s*c/0.55 - 1))   if s > 0.55    c = r/n while replicas start, else 1
//	d   = n - floor(n * (1 - s/0.40))    if s < 0.40
//	d   = n                              otherwise
//
// then the behavior of a HorizontalPodAutoscaler: the lowest d of 30 s for scale-up and the highest of 180 s for scale-down, at
// most max(100 %, 4) more in 60 s and one less in 120 s, within bounds. As in the guide, a metric that is not known counts as no
// traffic: do not use this policy where missing data must not mean idle. The tolerance of a HorizontalPodAutoscaler, 10 % by default,
// would hold a change of one from eleven replicas up; it is not part of the published law, and is left out.
//
// An error has every wrong field at once, each as a *scaling.FieldError.
//
// Source: llm-d, "SLO-Aware Autoscaling with KEDA and Predicted Latency" and "the control law" (2026), Apache-2.0.
func SLOAware(bounds scaling.Bounds, ttft, tpot time.Duration) (scaling.Policy, error) {
	var e scaling.FieldErrors
	e.Add(bounds.Validate("bounds"))
	e.Check(ttft > 0, "ttft", ttft, "must be above 0")
	e.Check(tpot > 0, "tpot", tpot, "must be above 0")
	if err := e.Err(); err != nil {
		return scaling.New(sloAware{}), err
	}
	p, err := scaling.Stabilized(scaling.New(sloAware{ttft: ttft.Seconds(), tpot: tpot.Seconds()}),
		scaling.Stabilization{Up: 30 * time.Second, Down: 180 * time.Second})
	if err != nil {
		return scaling.New(sloAware{}), err
	}
	p, err = scaling.RateLimited(p, scaling.RateLimits{
		Up:   scaling.RateLimit{Limits: []scaling.Limit{{Percent: 100, Period: time.Minute}, {Replicas: 4, Period: time.Minute}}},
		Down: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: 2 * time.Minute}}},
	})
	if err != nil {
		return scaling.New(sloAware{}), err
	}
	return scaling.Bounded(p, bounds)
}

// Kind names the law and its state's version.
func (sloAware) Kind() scaling.Kind { return scaling.Kind{Name: "llmd", Version: 1} }

// Decide applies the law.
func (l sloAware) Decide(s sloAwareState, now time.Time, obs scaling.Observation) (sloAwareState, scaling.Decision) {
	if l.ttft == 0 {
		return s, scaling.UnknownAt(obs.SpecReplicas, scaling.NotConfigured, "")
	}
	raw := 0.0
	if r := obs.Reading(TTFTP90); r.Known() {
		raw = r.Lower / l.ttft
	}
	if r := obs.Reading(TPOTP90); r.Known() {
		raw = max(raw, r.Lower/l.tpot)
	}
	w := window.Window{Length: signalSpan, Resolution: time.Second}
	s.Signal.Record(w, now, min(raw, mostSignal))
	signal, _ := s.Signal.Mean(w, now)

	n, r := float64(obs.SpecReplicas), float64(obs.ReadyReplicas)
	d := scaling.HoldAt(obs.SpecReplicas)
	switch {
	case scaling.Exceeds(signal, bandHigh):
		credit := 1.0
		if r > 0 {
			credit = min(r/n, 1)
		}
		d.To(scaling.Plus(obs.SpecReplicas, scaling.Ceil(n*(signal*credit/bandHigh-1))), Saturated, "", signal, bandHigh, credit)
	case scaling.Exceeds(bandLow, signal):
		d.To(scaling.Plus(obs.SpecReplicas, scaling.Ceil(n*(signal/bandLow-1))), Spare, "", signal, bandLow)
	default:
		d.To(obs.SpecReplicas, InBand, "", signal, bandHigh, signal, bandLow)
	}
	return s, d
}

// Applied has nothing to remember: limits are those of the wrapping policies.
func (sloAware) Applied(s sloAwareState, _ time.Time, _, _ int32) sloAwareState { return s }
