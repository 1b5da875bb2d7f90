package k8s

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/inferscale/inferscale/scaling"
)

const (
	defaultInterval    = 15 * time.Second
	defaultTimeout     = 10 * time.Second
	defaultConflicts   = 3
	defaultEventPeriod = 10 * time.Minute
	defaultStateKey    = "state"
	dryRunSuffix       = ".dry-run"
	// leastWait keeps a decision whose Next is always near from making the loop spin.
	leastWait = time.Second
)

// Settings are what a Loop and a VariantLoop have in common. Scales and Store must be set; every other zero field means
// its default.
type Settings struct {
	// Scales reads and writes the targets.
	Scales ScaleClient
	// Observer finds out what there is to decide on. Without one a decision has the count asked for and no readings,
	// which is all that a timetable needs.
	Observer Observer
	// Store keeps the state. It must not be the target itself (see AnnotationStore).
	Store Store
	// StateKey is the key that the state has in the Store, "state" by default. Loops that share a store need different
	// ones. In a dry run ".dry-run" is appended.
	StateKey string

	// LastScaled is when the target was last scaled, as far as that is known from elsewhere: from a status, which outlives
	// the state that a kubectl replace erases. It is a second source for cooldowns where the stored state knows of no change
	// or of an older one. The zero time means that nothing is known.
	LastScaled time.Time
	// EveryState stores every state that is another one than before, in nearly every round, instead of those without which a
	// restart would decide otherwise: see Loop. It is for a store that costs nothing; the API server is none.
	EveryState bool
	// Interval is the time from the beginning of one round to that of the next, 15 s by default.
	Interval time.Duration
	// Timeout is how long a round may take, 10 s by default, whatever the interval. What is not done then failed; a write of
	// which no answer came is looked for in the next round.
	Timeout time.Duration
	// Jitter is the part of the interval, from 0 (the default) to 1, by which a round may come early, at random. It is
	// never late, as policies count on the interval.
	Jitter float64
	// Conflicts is how often a round decides again because the target has changed, 3 by default. NoRetry leaves that to
	// the next round.
	Conflicts int
	NoRetry   bool
	// BeforeDecide is called in each round before the decision; nil means nothing is. It is where a configuration that
	// may change takes effect. An error, of a new configuration that is refused so that the last good one stays in force,
	// is Outcome.ConfigErr; it is decided all the same.
	BeforeDecide func() error
	// DryRun does everything but write replicas, and shows what would be written, at the pace of the policy's cooldowns.
	// See Loop.
	DryRun bool
	// LeaveAtZero leaves a target alone that has 0 replicas, as a HorizontalPodAutoscaler does: somebody has scaled it down
	// by hand. It is for configurations that do not scale to 0 themselves.
	LeaveAtZero bool
	// Paused decides and stores, and writes no replicas. The policy is told nothing, so that it acts at once when the
	// pause ends.
	Paused bool

	// LastWriter says who takes writes back, where somebody does (ConditionContended); nil means that it is not asked.
	LastWriter LastWriter
	// Recorder gets the events; nil means none. They are about Object, or about the target if that is nil.
	Recorder Recorder
	Object   runtime.Object
	// EventPeriod is the time in which an event that says the same is not repeated, 10 min by default.
	EventPeriod time.Duration
	// Metrics gets the numbers; nil means none. Several loops share one.
	Metrics *Metrics
	// Logger gets the decisions, with how long the round took (Info if they act, else Debug), and errors (Warn); nil means none.
	Logger *slog.Logger

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// After returns a channel that delivers once d has passed, and a function that gives up on it; nil means a timer.
	// Only Run uses it.
	After func(d time.Duration) (<-chan time.Time, func())
	// Random returns numbers in [0, 1) for the jitter; nil means math/rand/v2.
	Random func() float64
}

func (s Settings) orDefault() Settings {
	s.StateKey = cmp.Or(s.StateKey, defaultStateKey)
	if s.DryRun {
		s.StateKey += dryRunSuffix
	}
	s.Interval, s.Timeout = cmp.Or(s.Interval, defaultInterval), cmp.Or(s.Timeout, defaultTimeout)
	s.EventPeriod = cmp.Or(s.EventPeriod, defaultEventPeriod)
	if !s.NoRetry {
		s.Conflicts = cmp.Or(s.Conflicts, defaultConflicts)
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now //nolint:forbidigo // the one clock of this package: the documented default of Settings.Now
	}
	if s.After == nil {
		s.After = func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTimer(d) //nolint:forbidigo // the documented default of Settings.After
			return t.C, func() { t.Stop() }
		}
	}
	if s.Random == nil {
		s.Random = rand.Float64
	}
	return s
}

// autoscaler returns the name of what scales the targets, if it has one.
func (s Settings) autoscaler() string {
	if o, err := meta.Accessor(s.Object); err == nil {
		return o.GetName()
	}
	return ""
}

func (s Settings) check(e *scaling.FieldErrors, targets []Target) {
	e.Check(s.Scales != nil, "scales", nil, "must be set")
	e.Check(s.Store != nil, "store", nil, "must be set")
	e.Check(s.Interval > 0, "interval", s.Interval, "must be positive")
	e.Check(s.Timeout > 0, "timeout", s.Timeout, "must be positive")
	e.Check(s.Jitter >= 0 && s.Jitter <= 1, "jitter", s.Jitter, "must be between 0 and 1")
	e.Check(s.Conflicts >= 0, "conflicts", s.Conflicts, "must not be negative: noRetry means never")
	e.Check(!s.NoRetry || s.Conflicts <= 0, "conflicts", s.Conflicts, "must not be set with noRetry")
	e.Check(s.EventPeriod > 0, "eventPeriod", s.EventPeriod, "must be positive")
	if a, ok := s.Store.(*AnnotationStore); ok {
		for _, t := range targets {
			e.Check(!a.on(t), "store", t.String(), "must not be the target itself: every save would change the resource version that the write depends on")
		}
	}
}
