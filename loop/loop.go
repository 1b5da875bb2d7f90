package loop

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Config says how decisions are carried out. With its zero value the Loop writes, and stores its state before and after.
type Config struct {
	// DryRun decides and stores but writes nothing. The group is told that the write happened: otherwise it would ask for the
	// same change every time instead of showing the pace that cooldowns set. Store this state under a key of its own.
	DryRun bool
	// Paused decides and stores but writes nothing. The group is told nothing, so that it acts at once when the pause ends. It
	// prevails over DryRun.
	Paused bool
	// Delegated leaves the write to another component that is told the wanted count, such as a HorizontalPodAutoscaler that
	// KEDA feeds. The group is told of a change in the direction that it asked for when Read shows one. There are no Writes
	// and nothing to Advance: a round ends with Saved.
	Delegated bool
	// Atomic stores and writes in one update, for a state that is kept in the object with the replicas: the write includes
	// Step.Store. Only for a group of one target: with more, Step.Err says so and nothing is written.
	Atomic bool
	// Volatile stores nothing: Step.Store is nil, and a conflict is not decided again. For simulators, and for callers that
	// can afford to lose cooldowns in a restart.
	Volatile bool
	// Conflicts is how often a round may decide again because a target changed before it was written.
	Conflicts int
	// Period is the time from one round to the next. If it is set, a state is stored only when that matters: see package
	// loop, What is stored when. Zero means that every state is stored that differs from the stored one.
	Period time.Duration
	// LastChange is the time of the last change of the targets, if it is known from elsewhere, such as a status that outlived
	// the state. It is used if the restored state has no change, or one that is more than a second older: the group is then
	// told of a change in each direction at that time, so that no cooldown is lost. The zero time means not known.
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
	// Key names the target uniquely, for example "Deployment.apps models/chat". Empty means Name. To a key that an earlier target
	// has, the place among the targets is added: "#1".
	Key string
	// ID tells a target from a later one with the same name, as a UID does. Empty means not known.
	ID string
	// Version is what a write is conditional on, such as a resource version. Empty means that writes are not conditional: a
	// write without an answer may then still arrive for as long as the count is the old one.
	Version string
	// Replicas is the count that was asked for.
	Replicas int32
	// Missing says that the target does not exist.
	Missing bool
	// Alone says that the target is not to be written, whatever is decided, for example because somebody has scaled it to 0 by
	// hand. The group is told nothing.
	Alone bool
}

// A Result is the outcome of a write.
type Result uint8

// The results. The zero value is Uncertain, which is always safe to report.
const (
	// Uncertain means that no answer came, or one that does not say whether the count was written. Read finds out.
	Uncertain Result = iota
	// Applied means that the count was written.
	Applied
	// Refused means that the count was not written and never will be.
	Refused
	// Conflict means that the target was not at the version that the write was conditional on.
	Conflict
)

// A Write asks the caller to write the count of one target, on condition of its version.
type Write struct {
	Index   int // of the target, in the order of Read
	Name    string
	From    int32
	To      int32
	Version string
}

// A Loop carries out the decisions of one group, round by round. It is not safe for concurrent use.
type Loop struct {
	group  scaling.Group
	config Config
	fresh  []byte // the group's state before it decided anything

	restored bool
	refused  error
	stored   []byte // what the store has, as far as is known
	memory   memory
	durable  durable
	known    history           // states that this Loop has stored or restored
	wrote    map[string]intent // the last write of each target, by key
	ahead    bool              // the stored state is known to be older than that of this Loop
	changed  time.Time         // the last known change, even if the store has lost it
	taken    bool              // the state was just restored, and not compared with LastChange yet

	// Of the round.
	targets   []Target
	places    map[string]int // of the targets, by key
	observed  []scaling.TargetObservation
	before    state // the group's state before the decision, to undo it
	step      Step
	order     []int            // the targets to write, in that order
	results   []Result         // of each target
	tried     []bool           // of each target
	older     map[int][]intent // the open writes of each target before the one of this round
	pending   []byte           // what is being stored
	saved     bool             // whether that is stored, so that writes may be made
	conflicts int
	late      *Target // as it was read for an Atomic update without an answer, which may arrive while it has that version and count
}

// New returns the Loop of a group, or an error with every rule that the configuration breaks. The group belongs to the Loop from
// then on.
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

// NeedsRestore reports whether the stored state must be loaded and given to Restore before a round: at the start, after a
// failed save or Atomic update, while an Atomic update without an answer may still arrive, and while the stored state is refused.
func (l *Loop) NeedsRestore() bool {
	failed := l.unended() && l.tried[l.order[0]] && l.results[l.order[0]] != Applied
	return !l.restored || l.refused != nil || failed || l.late != nil
}

// Restore takes over the stored state; no bytes mean a fresh start. The bare state of the group, as its MarshalJSON returns
// it, is accepted too, if it has a kind or is a list, as those of package scaling are. An error is a *scaling.StateError, or else what
// the group's UnmarshalJSON returned; refused bytes are not tried a second time. While an Atomic update without an answer may still
// arrive, bytes that the Loop has stored or restored last change nothing.
//
// If a Loop that has already decided finds that the store has lost its state, or has an older one of its states again, as after
// a kubectl replace, it keeps the state that it has and stores that again. Only a state that somebody else has stored replaces it.
func (l *Loop) Restore(stored []byte) error {
	l.end()
	if (l.refused != nil || l.late != nil) && l.restored && bytes.Equal(stored, l.stored) {
		return l.refused
	}
	if l.ahead = l.knowsBetter(stored); !l.ahead {
		if len(stored) > 0 && !l.known.has(stored) {
			l.wrote = nil // who has stored that may have written too, and is no rival
		}
		if l.refused, l.taken = l.adopt(stored), true; len(stored) > 0 && l.refused == nil {
			l.known.add(stored)
		}
	}
	l.stored, l.restored = bytes.Clone(stored), true
	return l.refused
}

// knowsBetter reports whether the stored state is older than that of this Loop.
func (l *Loop) knowsBetter(stored []byte) bool {
	switch {
	case l.refused != nil || l.config.Delegated:
		return false // nothing was known, or several processes take turns
	case bytes.Equal(stored, l.stored):
		// Nobody else wrote: the stored state lacks only what did not matter so far.
		return l.ahead || l.config.Period > 0 && !l.config.Atomic && len(l.known) > 0
	case len(stored) == 0:
		return true
	}
	return !l.config.Atomic && l.known.has(stored)
}

// Stored returns the bytes that the store has, as far as is known. A compare-and-swap replaces these.
func (l *Loop) Stored() []byte { return l.stored }

// Seen is what Read found out.
type Seen struct {
	// Anew says that the state belonged to other targets, and that the group starts fresh.
	Anew bool
	// Settled are the targets, by index, for which a write without an answer turned out to have happened.
	Settled []int
	// Contended are the targets, by index, that are left alone from now on: see ContendedError.
	Contended []int
}

// Read takes all targets as they are now, in the same order every time. now must not be earlier than the time at which all of
// them had been read, since a write may have arrived meanwhile. Read finds out whether the state belongs to these targets and
// which of the open writes happened, and tells the group. A round that was not ended by Advance ends here: none of its writes is to be
// made any more.
func (l *Loop) Read(now time.Time, targets ...Target) (seen Seen) {
	l.end()
	l.targets = append(l.targets[:0], targets...)
	if clear(l.places); l.places == nil {
		l.places = make(map[string]int, len(targets))
	}
	found := false
	for i := range l.targets {
		t := &l.targets[i]
		t.Key = cmp.Or(t.Key, t.Name)
		for l.index(t.Key) >= 0 {
			t.Key += "#" + strconv.Itoa(i)
		}
		l.places[t.Key] = i
		found = found || !l.targets[i].Missing
	}
	if l.late != nil && found && (l.targets[0].Version != l.late.Version || l.targets[0].Replicas != l.late.Replicas) {
		l.late = nil
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

// bind starts fresh if the state belongs to other targets: if it names none of the targets that exist, and none of the missing
// ones by key. A state that names no targets belongs to these. What became of the writes of a target that was made anew beside
// others is forgotten: nobody took them back.
func (l *Loop) bind() (anew bool) {
	if slices.EqualFunc(l.memory.Targets, l.targets, func(s subject, t Target) bool { return s.Key == t.Key && (t.Missing || s.ID == t.ID) }) {
		return false // nearly always they are the same, in the same order
	}
	mine := make([]subject, 0, len(l.targets))
	nameless := len(l.memory.Targets) == 0
	same, next := nameless, 0
	others := make(map[string]bool)
	index := indexed(l.memory.Targets)
	for i := range l.targets {
		t := &l.targets[i]
		n := next
		if n >= len(l.memory.Targets) || !l.memory.Targets[n].about(t) {
			n = index.of(t)
		}
		if n >= 0 {
			same, next = true, n+1
		}
		switch {
		case !t.Missing:
			mine = append(mine, subject{t.Key, t.ID})
			others[t.Key] = n < 0 && !nameless
		case n >= 0:
			mine = append(mine, l.memory.Targets[n])
		}
	}
	if !same {
		l.refused, l.changed, l.wrote = l.adopt(nil), time.Time{}, nil
	}
	l.memory.Targets = mine
	maps.DeleteFunc(l.wrote, func(key string, _ intent) bool { return others[key] })
	l.memory.Contests = slices.DeleteFunc(l.memory.Contests, func(c contest) bool { return others[c.Key] })
	return !same
}

// settle finds out which of the open writes happened, and tells the group that they happened now: it is not known when a write
// without an answer arrived, and a cooldown that is too long does no harm. A write that turns out not to have happened is
// dropped; one that may still arrive stays open.
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
			if l.targets[i].Replicas == w.To {
				delete(l.wrote, w.Key) // nobody took back the write before this one
			}
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

// remind tells the group of a change of which only the time is known, if the state lacks it.
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
	for _, by := range []int32{+1, -1} {
		to := slices.Clone(from)
		for i := range to {
			if !l.targets[i].Missing {
				to[i] = max(scaling.Plus(from[i], by), 0)
			}
		}
		l.group.Applied(at, from, to)
	}
}

// index returns the place of a target, -1 if there is none with the key.
func (l *Loop) index(key string) int { return place(l.places, key) }

func place(among map[string]int, key string) int {
	if i, ok := among[key]; ok {
		return i
	}
	return -1
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
