package scalingtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// Options describe a policy from the outside, and turn on the properties that not every policy has. The zero value checks
// the properties that every policy has, but at least one metric must be named, unless ActsWithoutData is set.
type Options struct {
	// Metrics are the readings that the policy reads.
	Metrics []Metric
	// Histograms are the histograms that the policy reads; most policies read none. MissingNeverActs sometimes leaves them
	// out; Monotone and the properties of constant loads ignore them.
	Histograms []Histogram
	// Bounds are the policy's bounds. A count outside of them may be repaired whatever the clock and the readings are. The
	// zero value is unset: counts must not be negative, and no repair is allowed.
	Bounds scaling.Bounds
	// Targets are the targets of a group; Bounds are then the bounds of their sum, if it has any of its own. A policy has no
	// targets.
	Targets []Target
	// Replicas is the count of each target at the start of an episode. Zero means any count within the bounds.
	Replicas int32
	// Period is the time between decisions. Zero means 15 s.
	Period time.Duration
	// Start is the time at which episodes start. Zero means the result of the function Start.
	Start time.Time
	// Ticks is the approximate highest number of decisions of a random episode. Zero means 60.
	Ticks int
	// Memory is at least the time that the policy looks back, cooldowns included. After it the state must not grow any more,
	// and a constant load must have had its effect. Zero means 1 h.
	Memory time.Duration
	// Shift is the unit of the shifts of TimeShift, for policies that distinguish days or minutes. Zero means 1 s.
	Shift time.Duration
	// MaxState is the highest size of the stored state in bytes. Zero means that it only must not grow.
	MaxState int
	// ActsWithoutData is set for policies that time alone can move, such as timetables. ClockBack and NoData then allow the
	// decision of the same policy without any reading.
	ActsWithoutData bool
	// Windows is set for policies that look back on the readings or decisions of earlier ticks with data, as averages over
	// time and stabilization windows do. MissingNeverActs then checks less, see there.
	Windows bool
	// Learns is set for policies that test what they believe against what they observe, as a forecast tests its methods: a
	// missing observation may then be the test. MissingNeverActs then widens the latest readings only.
	Learns bool
	// Skip names properties that are not checked, such as TimeShift for a timetable in a zone with daylight saving time.
	Skip []string
	// NewPolicy is the Go expression of the function that makes the policy, for the printed tests. Empty means newPolicy, or
	// newGroup for a group.
	NewPolicy string

	// Monotone: raising readings, present or past, never lowers the requested count.
	Monotone bool
	// NoFlap: constant loads never cause both an Up and a Down.
	NoFlap bool
	// DeadZone are the ranges, ends included, in which readings cause no action.
	DeadZone []Metric
	// Cooldown has the waits after a change.
	Cooldown *Cooldown
	// Refused: a refused write is asked for again at the next tick.
	Refused bool
	// Lapses: one or two ticks without a reading, at a restart that loses the base of rates, delay a change by at most two
	// ticks. A memory that survives a tick without a reading acts as if there had been one like its neighbours: in
	// MissingNeverActs a metric that is gone is then gone in the whole episode.
	Lapses bool
	// Convergence says where constant loads lead.
	Convergence *Convergence
	// Twin makes a second implementation that must always give the same answers.
	Twin func() Naive
}

// A Metric is a reading that a policy uses, and its range: the policy considers scaling down at or below Low, scaling up at
// or above High. Values are drawn in, at, near and far from the range.
type Metric struct {
	Name string
	Low  float64
	High float64
	// Whole says that readings are of the whole fleet, not an average over its replicas.
	Whole bool
	// UpOnly says that the metric has no influence on a Down: if it is missing, a Down is still allowed.
	UpOnly bool
}

// Cooldown has the waits after an applied change. Exactly at their end the policy may act, and must act if every reading has
// been far above High (or below Low) all the time. A repair of the bounds neither waits nor starts a wait.
type Cooldown struct {
	Up   time.Duration
	Down time.Duration
	// PerDirection counts each wait from the last change in its own direction, not from the last change in any direction.
	PerDirection bool
}

// Convergence says where constant loads lead: after Within ticks the count stays.
type Convergence struct {
	Within int
	// Want returns the lowest and the highest count that is right in the end. Nil means any count.
	Want func(loads []Load) (least, most int32)
}

// withDefaults returns the options with defaults for zero fields, or an error.
func (o *Options) withDefaults() (Options, error) {
	full := *o
	o = &full
	var e scaling.FieldErrors
	if o.Bounds != (scaling.Bounds{}) {
		e.Add(o.Bounds.Validate("bounds"))
	}
	for _, list := range []struct {
		name    string
		metrics []Metric
	}{{"metrics", o.Metrics}, {"deadZone", o.DeadZone}} {
		for i, m := range list.metrics {
			field := fmt.Sprintf("%s[%d].", list.name, i)
			e.Check(m.Name != "", field+"name", m.Name, "must not be empty")
			e.Check(m.Low >= 0 && m.Low <= m.High && !math.IsInf(m.High, 0), field+"low", m.Low, fmt.Sprintf("must be in [0, high %v]", m.High))
		}
	}
	for i := range o.Histograms {
		e.Add(o.Histograms[i].validate(fmt.Sprintf("histograms[%d].", i)))
	}
	for i, t := range o.Targets {
		if t.Bounds != (scaling.Bounds{}) {
			e.Add(t.Bounds.Validate(fmt.Sprintf("targets[%d].bounds", i)))
		}
		twice := slices.ContainsFunc(o.Targets[:i], func(other Target) bool { return other.Name == t.Name })
		e.Check(!twice, fmt.Sprintf("targets[%d].name", i), t.Name, "must be unique")
	}
	e.Check(o.Twin == nil || len(o.Targets) < 2, "twin", len(o.Targets), "must be of one target")
	e.Check(o.Replicas >= 0, "replicas", o.Replicas, "must not be negative")
	e.Check(o.Ticks >= 0, "ticks", o.Ticks, "must not be negative")
	e.Check(o.MaxState >= 0, "maxState", o.MaxState, "must not be negative")
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"period", o.Period}, {"memory", o.Memory}, {"shift", o.Shift}} {
		e.Check(d.value >= 0, d.name, d.value, "must not be negative")
	}
	if c := o.Cooldown; c != nil {
		e.Check(c.Up >= 0, "cooldown.up", c.Up, "must not be negative")
		e.Check(c.Down >= 0, "cooldown.down", c.Down, "must not be negative")
	}
	if c := o.Convergence; c != nil {
		e.Check(c.Within > 0, "convergence.within", c.Within, "must be above 0")
	}
	for i, name := range o.Skip {
		e.Check(named(name) != nil, fmt.Sprintf("skip[%d]", i), name, "must name a property")
	}
	fill(&o.Period, 15*time.Second)
	fill(&o.Memory, time.Hour)
	fill(&o.Shift, time.Second)
	fill(&o.Ticks, 60)
	if len(o.Targets) > 0 {
		fill(&o.NewPolicy, "newGroup")
	}
	fill(&o.NewPolicy, "newPolicy")
	if o.Start.IsZero() {
		o.Start = Start()
	}
	return full, e.Err()
}

// require returns the options with defaults for zero fields, and fails the test if episodes cannot be drawn with them.
func (o *Options) require(t require.TestingT) Options {
	full, err := o.withDefaults()
	if err == nil {
		err = full.drawable()
	}
	require.NoError(t, err, "scalingtest.Options")
	return full
}

// drawable returns an error for what prevents drawing episodes and withDefaults does not find.
func (o *Options) drawable() error {
	var e scaling.FieldErrors
	names := make(map[string]bool)
	for i, m := range o.Metrics {
		e.Check(!names[m.Name], fmt.Sprintf("metrics[%d].name", i), m.Name, "must be unique")
		names[m.Name] = true
	}
	for i, m := range o.DeadZone {
		e.Check(names[m.Name], fmt.Sprintf("deadZone[%d].name", i), m.Name, "must be one of the metrics")
	}
	if c := o.Cooldown; c != nil {
		e.Check(max(c.Up, c.Down) <= o.Memory, "memory", o.Memory, fmt.Sprintf("must not be below the longest cooldown, %s", max(c.Up, c.Down)))
	}
	e.Check(len(o.Metrics) > 0 || o.ActsWithoutData, "metrics", len(o.Metrics),
		"must name at least one that the policy reads, as none can be guessed, or ActsWithoutData be set")
	return e.Err()
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// bounded reports whether bounds are given.
func (o *Options) bounded() bool { return o.Bounds != (scaling.Bounds{}) }

// outside reports whether a decision on this count may act to repair the bounds, if bounds are given.
func outside(b scaling.Bounds, spec int32) bool { return b != (scaling.Bounds{}) && !b.Contains(spec) }

// warm returns how many ticks of this length fill the policy's memory.
func (o *Options) warm(tick time.Duration) int { return int(min(o.Memory/max(1, tick), 20000)) + 2 }
