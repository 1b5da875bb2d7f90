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

// MaxMetrics is the maximum number of metrics of a Scaler, and MaxBuckets the maximum number of buckets of a stable window.
// Together they bound the size of the state.
const (
	MaxMetrics = 8
	MaxBuckets = 3600
)

// Config says how to scale. Its zero value is not valid; start from KPA, HPA or LLM and change what should differ. Zero values
// have no hidden defaults: a window, rate, step or tolerance of zero means none.
//
// The count that the loads ask for is corrected in this order: Up.MaxRate limits it to a multiple of the ready replicas,
// ActivationScale raises it if there is any load, and a panic keeps it from falling. The result is the recommendation, which the
// stabilization remembers. Then follow
//
//	stabilization   min(max(spec, lowest in its up window), highest in its down window)
//	rate limits     so many replicas or percent in a period; a percentage always moves by one at least
//	steps           Down.MaxRate: at least ready over it; MaxStep: at most so many replicas
//	bounds
//
// No correction reverses a change: a limit does not take back replicas that were already requested. Stabilization.Down is the
// scale-down delay, the sliding maximum of recommendations. Unlike Knative's, it only delays scale-down and never raises the
// count to what a past burst asked for. A count outside the bounds is moved into them before anything else.
type Config struct {
	Bounds  scaling.Bounds `json:"bounds"`
	Metrics []Metric       `json:"metrics"` // 1 to MaxMetrics, in any order
	Up      Rule           `json:"up"`
	Down    Rule           `json:"down"`
	// StableWindow is the window over which loads are averaged. Zero means none: each reading alone decides, as in HPA, no
	// window has to be covered and nothing is recorded. Call Decide or Record at least every two windows: a longer gap
	// restarts a metric, and with such gaps there is never a scale-down (warning scaling.DecidedTooRarely).
	StableWindow time.Duration `json:"stableWindow"`
	Panic        Panic         `json:"panic"`
	// Resolution is the length of a window's buckets; at least a millisecond if there is a window.
	Resolution time.Duration `json:"resolution"`
	// Stabilization keeps the count from following short-lived recommendations. Its Down is the scale-down delay: the count
	// does not fall below the highest recommendation within it.
	Stabilization scaling.Stabilization `json:"stabilization"`
	// RateLimits bounds changes within periods of time.
	RateLimits scaling.RateLimits `json:"rateLimits"`
	// ActivationScale is the lowest count while there is any load; values below 2 have no effect.
	ActivationScale int32 `json:"activationScale"`
	// StartupCredit counts requested replicas that are not ready as ready, for panic and for Down.MaxRate. Otherwise each
	// decision would find the same burst again while a fleet starts, since the ready replicas lag behind. Up.MaxRate always
	// uses the ready replicas, so that a slow start cannot compound it.
	StartupCredit bool `json:"startupCredit"`
}

// A Metric is a load to scale on and how much of it one replica should carry.
type Metric struct { //nolint:recvcheck // Demand is a value to hand on, load runs in every decision
	Name    string  `json:"name"`    // of the scaling.Reading
	Target  float64 `json:"target"`  // load per replica, in the metric's unit; above 0
	Measure Measure `json:"measure"` // how a reading gives the fleet's load
}

// A Measure says how a reading becomes the load of the whole fleet. Mistaking an average for a total shrinks a fleet under
// overload: ten replicas at 95 % with a target of 60 would become two.
type Measure int8

// The measures, where [Lower, Upper] is the reading and pods are those it is made of (Values + NotReady + Failed).
const (
	// PerPod is for readings made of pods, as from package scrape: the load is Lower * pods to Upper * max(pods, ready). It
	// is the default. Ready pods that the reading does not include raise only the upper end: an average over an unknown
	// number of pods can never shrink a fleet.
	PerPod Measure = iota
	// Total is for readings that are the fleet's load already, such as a gateway's queue or the requests in flight
	// of a router: the load is Lower to Upper.
	Total
	// Average is for averages that do not count their pods, as from a query: the load is Lower * ready to
	// Upper * ready. The load is not known while no replica is ready.
	Average
)

// String returns the measure's name.
func (m Measure) String() string { return enum.Name(int8(m), "Measure", "PerPod", "Total", "Average") }

// A Rule says when and how far one decision goes in one direction.
type Rule struct {
	// Tolerance is the share of the target, 0.1 for a tenth, by which the load per requested replica may differ from it
	// without a change; exactly at the tolerance there is no change. As in an HPA, Down's may be above 1, and then there is
	// never a scale-down.
	Tolerance float64 `json:"tolerance"`
	// MaxRate bounds one decision relative to the ready replicas: up to ceil(MaxRate * ready), down to
	// floor(ready / MaxRate), where ready counts as at least one. Zero means no bound; otherwise it must be above 1.
	MaxRate float64 `json:"maxRate"`
	// MaxStep is the maximum change of one decision, in replicas. Zero means no bound.
	MaxStep int32 `json:"maxStep"`
}

// Panic says when the Scaler reacts to a burst at once and does not scale down. A burst is the lower end of the load, averaged
// over the panic window. With ready counted as at least 1,
//
//	panic begins, or begins anew   when  ceil(burst / Target) >= Panic.Threshold * ready
//	it ends                        more than a stable window after it last began
//
// In panic the bursts can raise the count too, and it never falls below a count that was already asked for. Nor does the count
// fall while the upper end of the load, averaged over the panic window, meets the threshold: there may be a panic (code MayPanic).
type Panic struct {
	// Window is the short window that sees a burst; above 0 and at most StableWindow if there is a Threshold.
	Window time.Duration `json:"window"`
	// Threshold is how many times the ready replicas the burst must need, for example 2 for twice as many. Zero means no
	// panic; otherwise it must be above 1.
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
		e.Check(c.Resolution >= time.Millisecond && c.Resolution%time.Millisecond == 0, "resolution", c.Resolution, "must be of whole milliseconds, at least one")
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

// prepare returns the metrics sorted by name, so that their order in the configuration does not matter.
func (c Config) prepare() []Metric {
	return slices.SortedFunc(slices.Values(c.Metrics), func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
}

// clone returns a copy that does not share the rate limits with the caller. Its metrics are not used: prepare copies them.
func (c Config) clone() Config {
	c.RateLimits.Up.Limits = slices.Clone(c.RateLimits.Up.Limits)
	c.RateLimits.Down.Limits = slices.Clone(c.RateLimits.Down.Limits)
	return c
}
