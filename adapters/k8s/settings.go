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
	// leastWait is the shortest wait between rounds, so that the loop does not spin if the Next of its decisions is always
	// near.
	leastWait = time.Second
)

// Settings are the common settings of a Loop and a VariantLoop. Scales and Store must be set; every other zero field means
// its default.
type Settings struct {
	// Scales reads and writes the targets.
	Scales ScaleClient
	// Observer makes the observations. Without one a decision has only the spec replicas and no readings, which is all that a
	// timetable needs.
	Observer Observer
	// Store keeps the state. It must not be in the target itself, see AnnotationStore.
	Store Store
	// StateKey is the key of the state in the Store, "state" by default. Loops that share a store need different keys. In a
	// dry run ".dry-run" is appended.
	StateKey string

	// LastScaled is when the target was last scaled, if that is known from another source: for example from a status, which
	// survives when a kubectl replace erases the state. Cooldowns use it if the stored state knows of no change, or only of an
	// older one. The zero time means unknown.
	LastScaled time.Time
	// EveryState stores the state whenever it has changed, which is in nearly every round, and not only when a restart would
	// decide differently without it: see Loop. It is meant for a store without cost per write, which the API server is not.
	EveryState bool
	// Interval is the time from the start of one round to the start of the next, 15 s by default.
	Interval time.Duration
	// Timeout is the longest duration of a round, 10 s by default, whatever the interval. Steps that are not done by then
	// fail; the next round finds out whether a write without an answer happened.
	Timeout time.Duration
	// Jitter is the fraction of the interval, from 0 (the default) to 1, by which a round may start early, at random. A round
	// never starts late, because policies rely on the interval.
	Jitter float64
	// Conflicts is how often a round may decide again because the target has changed, 3 by default. With NoRetry the next
	// round decides again.
	Conflicts int
	NoRetry   bool
	// BeforeDecide is called in each round before the decision, if it is not nil. It can put a changed configuration into
	// force. It returns an error if it refuses a new configuration and keeps the last good one; the error becomes
	// Outcome.ConfigErr, and the round decides nevertheless.
	BeforeDecide func() error
	// DryRun does everything except writing replicas, and reports what would be written, at the pace of the policy's
	// cooldowns. See Loop.
	DryRun bool
	// LeaveAtZero leaves a target with 0 replicas alone, as a HorizontalPodAutoscaler does, because somebody has scaled it
	// down by hand. It is for configurations that do not scale to 0 themselves.
	LeaveAtZero bool
	// Paused decides and stores, but writes no replicas. The policy is not told of any write, so that it acts at once when the
	// pause ends.
	Paused bool

	// LastWriter finds out who reverts the loop's writes, if somebody does (ConditionContended); nil means that this is not
	// looked up.
	LastWriter LastWriter
	// Recorder receives the events; nil means none. The events are about Object, or about the target if Object is nil.
	Recorder Recorder
	Object   runtime.Object
	// EventPeriod is the time in which the same event is not repeated, 10 min by default.
	EventPeriod time.Duration
	// Metrics exports the outcomes; nil means none. Several loops can share one.
	Metrics *Metrics
	// Logger receives the decisions with the duration of the round (Info if they act, unless the round certainly changes nothing, else
	// Debug), and errors (Warn); nil means none.
	Logger *slog.Logger

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// After returns a channel that delivers once d has passed, and a function that stops the timer; nil means a time.Timer.
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

// autoscaler returns the name of Settings.Object, if there is one.
func (s Settings) autoscaler() string {
	if o, err := meta.Accessor(s.Object); err == nil {
		return o.GetName()
	}
	return ""
}

func (s Settings) check(e *scaling.FieldErrors, targets []Variant) {
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
			e.Check(!a.on(t.Target), "store", t.Target.String(), "must not be the target itself: every save would change the resource version that the write depends on")
		}
	}
}
