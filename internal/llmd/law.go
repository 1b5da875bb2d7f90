// Package llmd is the control law of llm-d's guide to SLO-aware autoscaling with KEDA, as a scaling.Policy. It is here
// to check the simulator against the figures that llm-d publishes for it, and to compare policies with it.
//
// # The rule
//
// Every 15 s, with n replicas asked for, r of them ready, and TTFT and TPOT the 90th percentiles of the last minute:
//
//	raw = min(max(TTFT/3s, TPOT/100ms), 2)           0 without traffic
//	s   = mean of raw over 45 s
//	d   = n + ceil(n * (s*c/0.55 - 1))   if s > 0.55    c = r/n while replicas start, else 1
//	d   = n - floor(n * (1 - s/0.40))    if s < 0.40
//	d   = n                              otherwise
//
// then what a HorizontalPodAutoscaler does with it: the lowest d of 30 s upward and the highest of 180 s downward, at
// most max(100 %, 4) more in 60 s and one less in 120 s, within bounds.
//
// Source: llm-d, "SLO-Aware Autoscaling with KEDA and Predicted Latency" and "the control law" (2026), Apache-2.0.
package llmd

import (
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// The metrics that the law reads: 90th percentiles over a minute, in seconds.
const (
	TTFT = "ttft_p90"
	TPOT = "tpot_p90"
)

// Codes of the law's steps.
const (
	// Saturated asks for more: the signal is above the band.
	Saturated scaling.Code = "Saturated signal > high, credit"
	// Spare asks for less: the signal is below the band.
	Spare scaling.Code = "Spare signal < low"
	// InBand holds.
	InBand scaling.Code = "InBand signal <= high, signal >= low"
)

const (
	high, low = 0.55, 0.40
	most      = 2.0
	smoothing = 45 * time.Second
)

type law struct{ ttft, tpot float64 } // SLOs in seconds

type state struct {
	Signal window.Mean `json:"signal"`
}

// New returns the law for the given SLOs and bounds.
func New(bounds scaling.Bounds, ttft, tpot time.Duration) (scaling.Policy, error) {
	if ttft <= 0 || tpot <= 0 {
		return nil, fmt.Errorf("the SLOs must be above 0, not %s and %s", ttft, tpot)
	}
	p := scaling.New(law{ttft: ttft.Seconds(), tpot: tpot.Seconds()})
	p, err := scaling.Stabilized(p, scaling.Stabilization{Up: 30 * time.Second, Down: 180 * time.Second})
	if err != nil {
		return nil, err
	}
	p, err = scaling.RateLimited(p, scaling.RateLimits{
		Up:   scaling.RateLimit{Limits: []scaling.Limit{{Percent: 100, Period: time.Minute}, {Replicas: 4, Period: time.Minute}}},
		Down: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: 2 * time.Minute}}},
	})
	if err != nil {
		return nil, err
	}
	return scaling.Bounded(p, bounds)
}

// Kind names the law and its state's version.
func (l law) Kind() scaling.Kind { return scaling.Kind{Name: "llmd", Version: 1} }

// Decide applies the law.
func (l law) Decide(s state, now time.Time, obs scaling.Observation) (state, scaling.Decision) {
	raw := 0.0
	if r := obs.Reading(TTFT); r.Known() {
		raw = r.Lower / l.ttft
	}
	if r := obs.Reading(TPOT); r.Known() {
		raw = max(raw, r.Lower/l.tpot)
	}
	w := window.Window{Length: smoothing, Resolution: time.Second}
	s.Signal.Record(w, now, min(raw, most))
	signal, _ := s.Signal.Mean(w, now)

	n, r := float64(obs.SpecReplicas), float64(obs.ReadyReplicas)
	d := scaling.HoldAt(obs.SpecReplicas)
	switch {
	case signal > high:
		credit := 1.0
		if r > 0 && r < n {
			credit = r / n
		}
		d.To(scaling.Saturate(n+math.Ceil(n*(signal*credit/high-1))), Saturated, "", signal, high, credit)
	case signal < low:
		d.To(scaling.Saturate(n-math.Floor(n*(1-signal/low))), Spare, "", signal, low)
	default:
		d.To(obs.SpecReplicas, InBand, "", signal, high, signal, low)
	}
	return s, d
}

// Applied has nothing to remember: limits are those of the wrapping policies.
func (l law) Applied(s state, _ time.Time, _, _ int32) state { return s }
