package realtime

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/enum"
	"github.com/inferscale/inferscale/scaling"
)

// MaxMetrics is the maximum number of metrics of a Scaler. It bounds the size of the state.
const MaxMetrics = 8

// DefaultMetric is the metric of the LLMAutoScaler proposal: the requests waiting in a vLLM server.
const DefaultMetric = "vllm:num_requests_waiting"

// Config says how to scale. Its zero value is not valid; start from Kaito or Responsive and change what should differ. Zero
// values have no hidden defaults: a Cooldown or Window of zero means none.
type Config struct {
	Bounds  scaling.Bounds `json:"bounds"`
	Metrics []Metric       `json:"metrics"` // 1 to MaxMetrics, in any order
	Up      Rule           `json:"up"`
	Down    Rule           `json:"down"`
	// Period is the interval between samples. A sample stands for the Period before it. Decide at least every two periods: a
	// longer gap restarts every window (warning scaling.DecidedTooRarely).
	Period time.Duration `json:"period"`
	// CooldownScope says which changes start a cooldown.
	CooldownScope CooldownScope `json:"cooldownScope"`
	// HoldWhilePending blocks scale-up while requested replicas are not ready.
	HoldWhilePending bool `json:"holdWhilePending"`
}

// A Metric is a reading to scale on and its thresholds.
type Metric struct {
	Name string  `json:"name"` // of the scaling.Reading
	High float64 `json:"high"` // scale up above it; above Low
	Low  float64 `json:"low"`  // scale down below it; not negative. No reading is below 0: a Low of 0 blocks every scale-down.
	Role Role    `json:"role"`
}

// A Rule says how one direction acts.
//
// A window is a length of time, not a number of samples. A sample stands for the Period that ends at its time, so with a Period
// of 15 s a window of 30 s takes two breaching samples in a row and one of 300 s takes twenty. A single sample that does not
// breach the threshold restarts the window, as do more than two periods without a decision and four or more without a sample.
// A shorter gap, of one or two readings without a sample, counts like the samples on both sides of it. A window that is not yet
// covered never passes. The memory of a metric is one streak: on which side, since when, until when.
//
// A cooldown runs from the last change that was carried out, as reported by Applied. A refused write starts none, nor does a
// change of a count that was outside the bounds. The cooldown has passed when elapsed >= cooldown. Whatever the cooldown, a
// change needs a sample that is newer than the last change (code BeforeChange).
type Rule struct {
	Step     int32         `json:"step"`     // replicas per change; at least 1
	Cooldown time.Duration `json:"cooldown"` // time to wait after a change
	Window   time.Duration `json:"window"`   // how long the threshold must have been breached
}

// A Role says in which directions a metric can act.
type Role int8

// The roles of a metric.
const (
	// Both lets a metric ask for scale-up and for scale-down. It is the default.
	Both Role = iota
	// UpOnly lets a metric ask for scale-up; it neither asks for scale-down nor blocks it. This suits latencies, since an
	// idle fleet has none.
	UpOnly
	// DownVeto lets a metric only block scale-down, which needs it below Low; scale-up ignores it. This suits preemptions.
	DownVeto
)

// String returns the role's name.
func (r Role) String() string { return enum.Name(int8(r), "Role", "Both", "UpOnly", "DownVeto") }

// A CooldownScope says which changes a cooldown counts from.
type CooldownScope int8

// The scopes of a cooldown.
const (
	// Any counts both cooldowns from the last change in either direction, as the proposal does. It is the default.
	Any CooldownScope = iota
	// PerDirection counts each cooldown from the last change in its own direction, which suits fleets that start slowly.
	PerDirection
)

// String returns the scope's name.
func (s CooldownScope) String() string {
	return enum.Name(int8(s), "CooldownScope", "Any", "PerDirection")
}

// Kaito returns the configuration with the numbers of the LLMAutoScaler proposal, up and down: step 1 and 1, cooldown
// 600 s and 1800 s, window 30 s and 300 s, period 15 s, cooldown scope Any.
//
// The rule is not exactly that of the proposal. The proposal's loop over several metrics starts from the current count and keeps
// the maximum, so it can never scale down, not even with one metric; this package follows its text, by which the highest count
// wins. In the proposal windows pass when they are empty, the history mixes time and slice order, and values are truncated to
// int32; this package does none of that.
func Kaito(bounds scaling.Bounds, metrics ...Metric) Config {
	return Config{
		Bounds:  bounds,
		Metrics: metrics,
		Up:      Rule{Step: 1, Cooldown: 600 * time.Second, Window: 30 * time.Second},
		Down:    Rule{Step: 1, Cooldown: 1800 * time.Second, Window: 300 * time.Second},
		Period:  15 * time.Second,
	}
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
		e.Check(m.Low >= 0 && !math.IsInf(m.Low, 0), field+"low", m.Low, "must be a number that is not negative")
		e.Check(m.High > m.Low && !math.IsInf(m.High, 0), field+"high", m.High, fmt.Sprintf("must be a number above low %v", m.Low))
		e.Check(Both <= m.Role && m.Role <= DownVeto, field+"role", m.Role, "must be Both, UpOnly or DownVeto")
	}
	e.Add(c.Up.validate("up"))
	e.Add(c.Down.validate("down"))
	e.Check(c.Period >= time.Millisecond, "period", c.Period, "must be at least one millisecond")
	e.Check(c.CooldownScope == Any || c.CooldownScope == PerDirection, "cooldownScope", c.CooldownScope, "must be Any or PerDirection")
	return e.Err()
}

func (r Rule) validate(field string) error {
	var e scaling.FieldErrors
	e.Check(r.Step >= 1, field+".step", r.Step, "must be at least 1")
	e.Check(r.Cooldown >= 0, field+".cooldown", r.Cooldown, "must not be negative")
	e.Check(r.Window >= 0, field+".window", r.Window, "must not be negative")
	return e.Err()
}

// metric is a Metric with its fingerprint, which identifies its streak in the state.
type metric struct {
	Metric
	id uint64
}

// prepare sorts the metrics by name, so that their order in the configuration does not matter, and gives each a fingerprint of
// everything that a streak depends on: a changed threshold or window restarts it.
func (c Config) prepare() []metric {
	metrics := make([]metric, 0, len(c.Metrics))
	for _, m := range c.Metrics {
		h := fnv.New64a()
		for _, v := range []uint64{
			math.Float64bits(m.High), math.Float64bits(m.Low + 0), uint64(m.Role),
			uint64(c.Up.Window), uint64(c.Down.Window), uint64(c.Period),
		} {
			_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, v)) // a hash never fails
		}
		_, _ = h.Write([]byte(m.Name))
		metrics = append(metrics, metric{m, h.Sum64()})
	}
	slices.SortFunc(metrics, func(a, b metric) int { return strings.Compare(a.Name, b.Name) })
	return metrics
}
