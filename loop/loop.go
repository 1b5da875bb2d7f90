package loop

import (
	"bytes"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Config says how decisions are carried out. Its zero value writes, and stores before and after.
type Config struct {
	// DryRun decides and stores, and writes nothing. The group is told that the write happened, as otherwise it would
	// ask for the same each time instead of showing the pace that cooldowns set: keep its state under a key of its own.
	DryRun bool
	// Paused decides and stores, and writes nothing. The group is told nothing, so that it goes on at once when the
	// pause ends.
	Paused bool
	// Delegated leaves the write to somebody else who is told what is wanted, as a HorizontalPodAutoscaler is that KEDA
	// feeds. The group is told of a change that went where it had asked to go, when Read shows it. There are no Writes,
	// and nothing to Advance: a round ends with Saved.
	Delegated bool
	// Atomic stores and writes in one update, as where the state is in the object that has the replicas: a write takes
	// Step.Store along. Only for a group of one target.
	Atomic bool
	// Volatile stores nothing: Step.Store is nil, and a conflict is not decided again. For simulators, and for who can
	// afford to forget cooldowns in a restart.
	Volatile bool
	// Conflicts is how often a round decides again because a target had changed when it was to be written.
	Conflicts int
	// Period is the time from one round to the next. With it a state is stored only when that matters: see package loop,
	// What is stored when. Zero means that every state is stored that is another one than the store has.
	Period time.Duration
	// LastChange is when the targets were last changed, as far as that is known from elsewhere: from a status that outlived
	// the state. It counts where what Restore takes over knows of no change, or of one that was more than a second before:
	// the group is then told of a change in each direction at that time, so that no cooldown is lost. The zero time means
	// that nothing is known.
	LastChange time.Time
}

// Validate reports every wrong field at once, each as a scaling.FieldError.
func (c Config) Validate() error {
	var e scaling.FieldErrors
	e.Check(c.Conflicts >= 0, "conflicts", c.Conflicts, "must not be negative")
	e.Check(c.Period >= 0, "period", c.Period, "must not be negative")
	e.Check(!c.Delegated || !c.DryRun, "delegated", c.Delegated, "must not be set with dryRun")
	e.Check(!c.Delegated || !c.Atomic, "delegated", c.Delegated, "must not be set with atomic")
	e.Check(!c.Atomic || !c.Volatile, "atomic", c.Atomic, "must not be set with volatile")
	return e.Err()
}

// A Target is one target as it was read.
type Target struct {
	// Name is what the group calls it.
	Name string
	// Key names the target wherever it is, as "Deployment.apps models/chat". Empty means Name.
	Key string
	// ID tells a target from another one that was made under its name later, as a UID. Empty means not known.
	ID string
	// Version is what a write is conditional on, as a resource version. Empty means that writes are not conditional:
	// then a write of which no answer came counts as one that can yet arrive for as long as the count is the old one.
	Version string
	// Replicas is the count that was asked for.
	Replicas int32
	// Missing says that the target does not exist.
	Missing bool
	// Alone says that the target is not to be written, whatever is decided, as one that somebody has scaled to 0 by hand.
	// The group is told nothing.
	Alone bool
}

// A Result is what became of a write.
type Result uint8

// The results. The zero value is Uncertain, which is always safe to report.
const (
	// Uncertain means that no answer came, or none that says whether it was written. Read finds out.
	Uncertain Result = iota
	// Applied means that it was written.
	Applied
	// Refused means that it was not written and never will be.
	Refused
	// Conflict means that the target was not at the version that the write was conditional on.
	Conflict
)

// A Write asks for the count of one target to be written, on condition of its version.
type Write struct {
	Index   int // of the target, in the order of Read
	Name    string
	From    int32
	To      int32
	Version string
}

// A Loop carries the decisions of one group out, round by round. It is not safe for concurrent use.
type Loop struct {
	group  scaling.Group
	config Config
	fresh  []byte // the group's state before it decided anything

	restored bool
	refused  error
	stored   []byte // what the store has, as far as is known
	memory   memory
	durable  durable
	known    history           // states that this Loop has stored, or taken over
	wrote    map[string]intent // the last write of each target, by key
	ahead    bool              // what is stored is known to be older than what is known here
	changed  time.Time         // the last change that is known of, be it lost to the store
	taken    bool              // the state was just taken over, and not compared with LastChange yet

	// Of the round.
	targets   []Target
	observed  []scaling.TargetObservation
	before    []byte // the group's state before the decision, to take it back
	step      Step
	order     []int            // the targets to write, in that order
	results   []Result         // of each target
	tried     []bool           // of each target
	older     map[int][]intent // what was open of each target that is written, before that
	pending   []byte           // what is being stored
	saved     bool             // whether that is stored, so that writes may be made
	conflicts int
}

// New returns the Loop of a group, which belongs to it from then on, or every rule that the configuration breaks.
func New(group scaling.Group, c Config) (*Loop, error) {
	var e scaling.FieldErrors
	e.Check(group != nil, "group", nil, "must be set")
	e.Add(c.Validate())
	if err := e.Err(); err != nil {
		return nil, err
	}
	fresh, err := group.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return &Loop{group: group, config: c, fresh: fresh, restored: c.Volatile, changed: c.LastChange}, nil
}

// NeedsRestore reports whether what is stored is to be loaded and given to Restore before a round: at the start, after
// a save that failed, and while the stored state is refused.
func (l *Loop) NeedsRestore() bool { return !l.restored || l.refused != nil }

// Restore takes over what is stored; nothing is a fresh start. The bare state of the group, as its MarshalJSON returns
// it, is taken too. An error is a *scaling.StateError; the same bytes are not tried twice.
//
// A Loop that has decided already knows better than a store that has lost its state, or has an old one of its own again,
// as after a kubectl replace: it goes on with what it knows, and stores that. Only a state that somebody else has stored
// takes its place.
func (l *Loop) Restore(stored []byte) error {
	if l.refused != nil && l.restored && bytes.Equal(stored, l.stored) {
		return l.refused
	}
	if l.ahead = l.knowsBetter(stored); !l.ahead {
		if l.refused, l.taken = l.adopt(stored), true; len(stored) > 0 && l.refused == nil {
			l.known.add(stored)
		}
	}
	l.stored, l.restored = bytes.Clone(stored), true
	return l.refused
}

// knowsBetter reports whether what is stored is older than what is known here.
func (l *Loop) knowsBetter(stored []byte) bool {
	switch {
	case l.refused != nil || l.config.Delegated:
		return false // nothing was known, or several processes take turns
	case bytes.Equal(stored, l.stored):
		// Nobody else wrote: it lacks what did not matter so far.
		return l.ahead || l.config.Period > 0 && !l.config.Atomic && len(l.known) > 0
	case len(stored) == 0:
		return true
	}
	return !l.config.Atomic && l.known.has(stored)
}

// Stored returns what the store has, as far as is known: what a compare-and-swap replaces.
func (l *Loop) Stored() []byte { return l.stored }

// Seen is what Read found out.
type Seen struct {
	// Anew says that the state was that of other targets, and that the group begins afresh.
	Anew bool
	// Settled are the targets, by index, of which a write without an answer turned out to have happened.
	Settled []int
	// Contended are the targets, by index, of which somebody else took back one write too many: see ContendedError.
	Contended []int
}

// Read takes the targets as they are now, all of them in an order that stays. Now is the time at which they had been read, or
// later: a write may have arrived while they were. It finds out whose the state is, and
// which of the open writes happened, and tells the group.
func (l *Loop) Read(now time.Time, targets ...Target) (seen Seen) {
	l.targets = append(l.targets[:0], targets...)
	found := false
	for i := range l.targets {
		if t := &l.targets[i]; t.Key == "" {
			t.Key = t.Name
		}
		found = found || !l.targets[i].Missing
	}
	if !l.restored || l.refused != nil || !found {
		return seen
	}
	seen.Anew = l.bind()
	if l.taken && !seen.Anew {
		l.remind(now)
	}
	l.taken = false
	seen.Settled = l.settle(now)
	seen.Contended = l.contend(now)
	return seen
}

// bind begins anew if the state is that of other targets: of none that is there, nor of one that may be there and
// cannot be found. A state that does not say whose it is, is that of these targets.
func (l *Loop) bind() (anew bool) {
	mine := make([]subject, 0, len(l.targets))
	same := len(l.memory.Targets) == 0
	for i := range l.targets {
		t := &l.targets[i]
		n := slices.IndexFunc(l.memory.Targets, func(s subject) bool {
			if t.Missing {
				return s.Key == t.Key
			}
			return s.about(t)
		})
		same = same || n >= 0
		switch {
		case !t.Missing:
			mine = append(mine, subject{t.Key, t.ID})
		case n >= 0:
			mine = append(mine, l.memory.Targets[n])
		}
	}
	if !same {
		l.refused, l.changed, l.wrote = l.adopt(nil), time.Time{}, nil
	}
	l.memory.Targets = mine
	return !same
}

// settle finds out which of the open writes happened, and tells the group. It counts from now: when a write without an
// answer arrived is not known, and a cooldown that is too long does no harm. A write of which it shows that it did not
// happen is forgotten; one that can yet arrive stays open.
func (l *Loop) settle(now time.Time) (settled []int) {
	if len(l.memory.Open) == 0 {
		return nil
	}
	happened := make(map[int]int32, len(l.memory.Open))
	still := l.memory.Open[:0:0]
	for _, w := range l.memory.Open {
		i := l.index(w.Key)
		switch {
		case i < 0:
		case l.targets[i].Missing:
			still = append(still, w)
		case w.happened(&l.targets[i]):
			happened[i] = w.From
			settled = append(settled, i)
		case w.pending(&l.targets[i]):
			still = append(still, w)
		}
	}
	l.memory.Open = still
	l.applied(now, func(i int) (from, to int32, ok bool) {
		from, ok = happened[i]
		return from, l.targets[i].Replicas, ok
	})
	slices.Sort(settled)
	return slices.Compact(settled)
}

// remind tells the group of a change of which only the time is known, if the state does not know of it.
func (l *Loop) remind(now time.Time) {
	at := l.changed
	if at.IsZero() || l.memory.Last != nil && at.Sub(l.memory.Last.At.Time()) <= time.Second {
		return
	}
	if at.After(now) {
		at = now
	}
	from := make([]int32, len(l.targets))
	for i := range l.targets {
		from[i] = l.targets[i].Replicas
	}
	for i := range l.targets {
		if !l.targets[i].Missing {
			for _, by := range []int32{+1, -1} {
				to := slices.Clone(from)
				to[i] = max(scaling.Plus(from[i], by), 0)
				l.group.Applied(at, from, to)
			}
			return
		}
	}
}

func (l *Loop) index(key string) int {
	return slices.IndexFunc(l.targets, func(t Target) bool { return t.Key == key })
}

// applied tells the group what was carried out.
func (l *Loop) applied(now time.Time, what func(i int) (from, to int32, ok bool)) {
	from, to := make([]int32, len(l.targets)), make([]int32, len(l.targets))
	changed, total := false, change{At: scaling.StampOf(now)}
	for i := range l.targets {
		from[i], to[i] = l.targets[i].Replicas, l.targets[i].Replicas
		if a, b, ok := what(i); ok {
			from[i], to[i], changed = a, b, true
		}
		total.From, total.To = scaling.Plus(total.From, from[i]), scaling.Plus(total.To, to[i])
	}
	if changed {
		l.group.Applied(now, from, to)
		l.memory.Last, l.changed = &total, now
	}
}
