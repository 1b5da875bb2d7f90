package proportional

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/enum"
	"github.com/inferscale/inferscale/scaling"
)

// MaxMetrics is the most metrics that one Scaler takes, and MaxBuckets the most buckets that a stable window may have:
// together they bound the size of the state.
const (
	MaxMetrics = 8
	MaxBuckets = 3600
)

// Config says how to scale. Its zero value is not valid; start from KPA, HPA or LLM and change what is to differ.
// Every field means what it says: a window, rate, step or tolerance of zero is none.
//
// What the loads ask for is corrected in this order. Up.MaxRate: at most so many times the ready replicas.
// ActivationScale: at least so many for any load. The panic's hold. This is the recommendation, and what the history of
// the stabilization remembers. Then
//
//	stabilization   min(max(spec, lowest in its up window), highest in its down window)
//	rate limits     so many replicas or percent in a period; a percentage always moves by one at least
//	steps           Down.MaxRate: at least ready over it; MaxStep: at most so many replicas
//	bounds
//
// No correction turns a change round: what has been asked for is not taken back by a limit. Stabilization.Down is the
// scale-down delay, the sliding maximum of recommendations; unlike Knative's it delays scale-down and never climbs to
// what a burst asked for that is gone. A count outside the bounds is repaired before anything else.
type Config struct {
	Bounds  scaling.Bounds `json:"bounds"`
	Metrics []Metric       `json:"metrics"` // 1 to MaxMetrics, in any order
	Up      Rule           `json:"up"`
	Down    Rule           `json:"down"`
	// StableWindow is what loads are averaged over. Zero is none: each reading alone decides, as in HPA, and nothing is
	// covered or recorded. Decide, or Record, at least every two windows: a longer gap begins a metric anew, and then
	// nothing is ever taken away (warning scaling.DecidedTooRarely).
	StableWindow time.Duration `json:"stableWindow"`
	Panic        Panic         `json:"panic"`
	// Resolution is the length of a window's buckets; at least a millisecond if there is a window.
	Resolution time.Duration `json:"resolution"`
	// Stabilization holds against recommendations that come and go. Its Down is the scale-down delay: no fewer
	// replicas than the most that was recommended within it.
	Stabilization scaling.Stabilization `json:"stabilization"`
	// RateLimits bounds changes within periods of time.
	RateLimits scaling.RateLimits `json:"rateLimits"`
	// ActivationScale is the least count for any load at all; below 2 it does nothing.
	ActivationScale int32 `json:"activationScale"`
	// StartupCredit counts replicas that were asked for and are not ready as if they were, where the ready ones are
	// the measure: for panic and for Down.MaxRate. While a fleet starts, the ready ones lag behind, and each decision
	// would find the same burst again. Up.MaxRate always measures by the ready ones, so that a slow start cannot
	// compound it.
	StartupCredit bool `json:"startupCredit"`
}

// A Metric is a load to scale on and how much of it one replica should carry.
type Metric struct { //nolint:recvcheck // Demand is a value to hand on, load runs in every decision
	Name    string  `json:"name"`    // of the scaling.Reading
	Target  float64 `json:"target"`  // load per replica, in the metric's unit; above 0
	Measure Measure `json:"measure"` // how a reading gives the fleet's load
}

// A Measure says how a reading becomes the load of the whole fleet. Taking an average for a total shrinks a fleet under
// overload: ten replicas at 95 % with a target of 60 would become two.
type Measure int8

// The measures, where [Lower, Upper] is the reading and pods are those it is made of (Values + NotReady + Failed).
const (
	// PerPod is for readings made of pods, as package scrape gives them: the load is Lower * pods to
	// Upper * max(pods, ready). It is the default. Ready pods that the reading does not know of count only upward:
	// an average that does not say of how many pods can never shrink a fleet.
	PerPod Measure = iota
	// Total is for readings that are the fleet's load already, such as a gateway's queue or the requests in flight
	// of a router: the load is Lower to Upper.
	Total
	// Average is for averages that do not count their pods, as of a query: the load is Lower * ready to
	// Upper * ready. While no replica is ready it is not known.
	Average
)

// String returns the measure's name.
func (m Measure) String() string { return enum.Name(int8(m), "Measure", "PerPod", "Total", "Average") }

// A Rule says how far one direction goes at one decision.
type Rule struct {
	// Tolerance is the share of the target, 0.1 for a tenth, by which the load per requested replica may be off
	// without a change; exactly at it there is none. As in an HPA, Down's may be above 1, and then nothing is ever taken
	// away.
	Tolerance float64 `json:"tolerance"`
	// MaxRate bounds one decision in relation to what is ready: up to ceil(MaxRate * ready), down to
	// floor(ready / MaxRate), at least one replica counted as ready. Zero is no bound, else it is above 1.
	MaxRate float64 `json:"maxRate"`
	// MaxStep bounds one decision to so many replicas. Zero is no bound.
	MaxStep int32 `json:"maxStep"`
}

// Panic says when a burst is answered at once, and nothing is taken away. A burst is lower averaged over the panic
// window. With ready at least 1,
//
//	panic begins, or begins anew   when  ceil(burst / Target) >= Panic.Threshold * ready
//	it ends                        more than a stable window after it last began
//
// In panic the bursts have a say as well, and there are no fewer replicas than were asked for: the count never falls. Nor
// does it while upper, averaged over the panic window, meets the threshold: there may be a panic (code MayPanic).
type Panic struct {
	// Window is the short window that sees a burst; above 0 and at most StableWindow if there is a Threshold.
	Window time.Duration `json:"window"`
	// Threshold is how many times the ready replicas the burst must need, as 2 for twice as many. Zero is no panic,
	// else it is above 1.
	Threshold float64 `json:"threshold"`
}

// Validate reports every wrong field at once, each as a scaling.FieldError.
func (c Config) Validate() error {
	var e scaling.FieldErrors
	e.Add(c.Bounds.Validate("bounds"))
	e.Check(len(c.Metrics) > 0, "metrics", len(c.Metrics), "must be at least one")
	e.Check(len(c.Metrics) <= MaxMetrics, "metrics", len(c.Metrics), fmt.Sprintf("must be at most %d", MaxMetrics))
	for i, m := range c.Metrics {
		field := fmt.Sprintf("metrics[%d].", i)
		e.Check(m.Name != "", field+"name", m.Name, "must not be empty")
		same := func(o Metric) bool { return o.Name == m.Name }
		e.Check(slices.IndexFunc(c.Metrics, same) == i, field+"name", m.Name, "must be unique")
		e.Check(m.Target > 0 && !math.IsInf(m.Target, 0), field+"target", m.Target, "must be a number above 0")
		e.Check(PerPod <= m.Measure && m.Measure <= Average, field+"measure", m.Measure, "must be PerPod, Total or Average")
	}
	e.Add(c.Up.validate("up"))
	e.Add(c.Down.validate("down"))
	e.Check(c.StableWindow >= 0, "stableWindow", c.StableWindow, "must not be negative")
	if c.StableWindow > 0 {
		e.Check(c.Resolution >= time.Millisecond, "resolution", c.Resolution, "must be at least one millisecond")
		fits := c.Resolution <= 0 || c.StableWindow/c.Resolution <= MaxBuckets
		e.Check(fits, "stableWindow", c.StableWindow, fmt.Sprintf("must be at most %d times resolution", MaxBuckets))
	}
	c.Panic.validate(&e, c.StableWindow)
	e.Add(c.Stabilization.Validate("stabilization"))
	e.Add(c.RateLimits.Validate("rateLimits"))
	e.Check(c.ActivationScale >= 0, "activationScale", c.ActivationScale, "must not be negative")
	return e.Err()
}

func (r Rule) validate(field string) error {
	var e scaling.FieldErrors
	e.Check(r.Tolerance >= 0 && !math.IsInf(r.Tolerance, 0), field+".tolerance", r.Tolerance, "must be a number that is not negative")
	e.Check(r.MaxRate == 0 || r.MaxRate > 1 && !math.IsInf(r.MaxRate, 0), field+".maxRate", r.MaxRate, "must be a number above 1, or 0 for none")
	e.Check(r.MaxStep >= 0, field+".maxStep", r.MaxStep, "must not be negative")
	return e.Err()
}

func (p Panic) validate(e *scaling.FieldErrors, stable time.Duration) {
	if p.Threshold == 0 {
		e.Check(p.Window == 0, "panic.window", p.Window, "must be 0 without a threshold")
		return
	}
	e.Check(p.Threshold > 1 && !math.IsInf(p.Threshold, 0), "panic.threshold", p.Threshold, "must be a number above 1, or 0 for none")
	e.Check(p.Window > 0, "panic.window", p.Window, "must be above 0")
	e.Check(p.Window <= stable, "panic.window", p.Window, fmt.Sprintf("must be at most stableWindow %s", stable))
}

// prepare sorts the metrics by name, so that their order in the configuration cannot matter.
func (c Config) prepare() []Metric {
	return slices.SortedFunc(slices.Values(c.Metrics), func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
}

// clone returns a copy whose limits are not shared with the caller; its metrics are not looked at, prepare makes others.
func (c Config) clone() Config {
	c.RateLimits.Up.Limits = slices.Clone(c.RateLimits.Up.Limits)
	c.RateLimits.Down.Limits = slices.Clone(c.RateLimits.Down.Limits)
	return c
}
