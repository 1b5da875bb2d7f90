package scalingtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Options say what is known of a policy from outside, and which of the properties that not every policy has it is to
// have. The zero value checks what every policy has, but for the metrics: at least one must be named, unless ActsWithoutData is
// set.
type Options struct {
	// Metrics are the readings that the policy looks at.
	Metrics []Metric
	// Histograms are those that the policy looks at; most look at none. MissingNeverActs leaves them out at times; Monotone and
	// the properties of constant loads do not know of them.
	Histograms []Histogram
	// Bounds are the policy's own. They allow a count outside of them to be repaired whatever the clock and the
	// readings say. The zero value is unset: counts must not be negative, and no repair is excused.
	Bounds scaling.Bounds
	// Targets are those that a group decides for; Bounds are then those of their sum, if it has any of its own. A policy
	// has none.
	Targets []Target
	// Replicas is the count at the start of an episode, of each target. Zero: any within the bounds.
	Replicas int32
	// Period is how often the policy is asked. Zero means 15 s.
	Period time.Duration
	// Start is when episodes start. Zero means what the function Start returns.
	Start time.Time
	// Ticks is about how many decisions a random episode has at most. Zero means 60.
	Ticks int
	// Memory is no less than how long the policy looks back, cooldowns included. After it the state must not grow
	// any more, and a load that was the same all the time must have had its effect. Zero means 1 h.
	Memory time.Duration
	// Shift is the unit of the shifts of TimeShift, for policies to which days or minutes are not alike. Zero means 1 s.
	Shift time.Duration
	// MaxState is the most bytes that the stored state may have. Zero: it must only not grow.
	MaxState int
	// ActsWithoutData is set for policies that time alone can move, such as timetables. ClockBack and NoData then allow what
	// the same policy asks for without any reading.
	ActsWithoutData bool
	// Windows is set for policies that look back on what they saw or said at those ticks at which there was anything, as
	// averages over time and stabilization windows do. MissingNeverActs then asks for less, see there.
	Windows bool
	// Learns is set for policies that put what they believe to the proof by what they see, as a forecast its methods: what was
	// not seen may then be the proof. MissingNeverActs widens the latest readings alone.
	Learns bool
	// Skip names properties that are not checked, as TimeShift for a timetable in a zone with daylight saving time.
	Skip []string
	// NewPolicy is the Go expression of the function that makes the policy, for the tests that are printed. Empty
	// means newPolicy, of a group newGroup.
	NewPolicy string

	// Monotone: raising readings, now or before, never lowers what is asked for.
	Monotone bool
	// NoFlap: under constant loads there is never both an Up and a Down.
	NoFlap bool
	// DeadZone are the values at which nothing may happen, the ends included.
	DeadZone []Metric
	// Cooldown are the waits after a change.
	Cooldown *Cooldown
	// Refused: a write that was refused is asked for again at the next tick.
	Refused bool
	// Lapses: one tick or two without a reading, at a restart that loses what rates are counted from, put off what is
	// asked for by two ticks at most. A memory that survives a tick without a reading acts as if there had been one
	// like its neighbours: in MissingNeverActs a metric that is gone is then gone all the time.
	Lapses bool
	// Convergence says where constant loads lead.
	Convergence *Convergence
	// Twin makes a second implementation that must always answer the same.
	Twin func() Naive
}

// A Metric is a reading that a policy looks at and the range in which it matters: scaling down is thought of at or
// below Low, scaling up at or above High. Values are drawn in, at, near and far from it.
type Metric struct {
	Name string
	Low  float64
	High float64
	// Whole says that readings are of the whole fleet, and not an average of its replicas.
	Whole bool
	// UpOnly says that the metric has no say in a Down: what is missing of it does not stand in its way.
	UpOnly bool
}

// Cooldown are the waits after a change that was applied. At their end, exactly, the policy may act, and must if
// every reading has been far above High (below Low) all the time. A repair of the bounds neither waits nor starts one.
type Cooldown struct {
	Up   time.Duration
	Down time.Duration
	// PerDirection counts each wait from the last change in its own direction, not from the last of any.
	PerDirection bool
}

// Convergence says where constant loads lead: after Within ticks the count stays.
type Convergence struct {
	Within int
	// Want returns the least and the most replicas that are right in the end. Nil: any count is.
	Want func(loads []Load) (least, most int32)
}

// withDefaults returns the options with zero fields filled in, or what is wrong with them.
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

// drawable returns what keeps episodes from being drawn, beside what withDefaults finds.
func (o *Options) drawable() error {
	var e scaling.FieldErrors
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

// outside reports whether a decision on this count may act to repair bounds that are given.
func outside(b scaling.Bounds, spec int32) bool { return b != (scaling.Bounds{}) && !b.Contains(spec) }

// warm returns how many ticks of a length it takes to fill what the policy remembers.
func (o *Options) warm(tick time.Duration) int { return int(min(o.Memory/max(1, tick), 20000)) + 2 }
