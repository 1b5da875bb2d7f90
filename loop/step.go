package loop

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// LongestWrite is how long a write without an answer may take to arrive: twice the time that a Kubernetes API server allows a
// request.
const LongestWrite = 2 * time.Minute

// A Step is the result of one call of Decide. It is valid until the next one.
type Step struct {
	scaling.GroupDecision

	// Store is to be stored before anything is written; nil if the store has it already.
	Store []byte
	// Waiting says why nothing is written although the decision acts: a write of another target may still arrive, and both
	// writes together would be more than was ever decided. Nil otherwise.
	Waiting *WaitingError
	// Contended says for each target why it is left alone, whatever is decided: somebody else takes its writes back. Its
	// elements are nil for the other targets; it may be nil if there is no such target.
	Contended []*ContendedError
	// Err says why there is no state to store, and so nothing to write; nil otherwise.
	Err error
}

// A WaitingError names the write without an answer that the Loop waits for.
type WaitingError struct {
	Key      string
	From, To int32
	At       time.Time
}

// Error names the write.
func (e *WaitingError) Error() string {
	return fmt.Sprintf("the write %d -> %d of %s at %s can yet arrive", e.From, e.To, cmp.Or(e.Key, "the target"), e.At.Format(time.RFC3339))
}

var errNotRestored = errors.New("the stored state was not given to Restore: it must be, with no bytes if there is none, as long as NeedsRestore reports so")

// Decide asks the group. The observation must have the targets in the order of Read; their names, counts and Missing are taken
// from Read. A target that the observation lacks has no ready replicas.
func (l *Loop) Decide(now time.Time, obs scaling.GroupObservation) *Step {
	l.end()
	l.step = Step{}
	l.pending, l.before, l.saved = nil, nil, false
	l.results = append(l.results[:0], make([]Result, len(l.targets))...)
	l.tried = append(l.tried[:0], make([]bool, len(l.targets))...)
	obs.Targets = l.complete(obs.Targets)
	s := &l.step
	if !l.restored || l.refused != nil {
		s.GroupDecision, s.Err = scaling.UnknownGroup(obs, scaling.StateRefused), l.refused
		if s.Err == nil {
			s.Err = errNotRestored
		}
		return s
	}
	if n := len(l.targets); l.config.Atomic && n > 1 {
		s.GroupDecision = scaling.UnknownGroup(obs, scaling.NotOne, float64(n))
		s.Err = &scaling.FieldError{Field: "atomic", Value: true, Rule: fmt.Sprintf("must not be set for %d targets: one update cannot write them all", n)}
		return s
	}
	if !l.config.Volatile {
		if l.before, s.Err = scaling.Snapshot(l.group); s.Err != nil {
			s.GroupDecision = scaling.UnknownGroup(obs, scaling.StateRefused)
			return s
		}
	}
	s.GroupDecision = l.group.Decide(now, obs)
	l.durable.look(now, obs)
	if n := len(s.Targets); n != len(l.targets) {
		s.GroupDecision = scaling.UnknownGroup(obs, scaling.NotOne, float64(len(l.targets)))
		s.Err = fmt.Errorf("the group gave %d decisions for %d targets", n, len(l.targets))
		return s
	}
	l.arrange()
	if l.config.Paused {
		l.order = l.order[:0]
	}
	l.leave(now)
	switch {
	case l.config.DryRun:
	case l.config.Delegated:
		l.memory.Open = l.memory.Open[:0]
		for _, i := range l.order {
			l.memory.Open = append(l.memory.Open, l.intent(i, now))
		}
		l.order = l.order[:0]
	case l.config.Atomic:
		changed, last, before := l.changed, l.memory.Last, l.before
		l.carriedOut(now, func(i int) bool { return slices.Contains(l.order, i) })
		l.changed = changed // not yet
		l.before = func() error {
			l.memory.Last = last
			return before()
		}
	case !l.waits(now):
		l.intend(now)
	}
	if len(l.order) == 0 {
		l.before = nil // nothing to undo; it may be large
	}
	s.Store = l.save()
	return s
}

// leave takes the contended targets out of those to be written.
func (l *Loop) leave(now time.Time) {
	if len(l.memory.Contests) == 0 || l.config.DryRun || l.config.Delegated {
		return
	}
	l.step.Contended = make([]*ContendedError, len(l.targets))
	for n := range l.memory.Contests {
		c := &l.memory.Contests[n]
		if i, why := l.index(c.Key), c.reason(now); i >= 0 && why != nil {
			l.step.Contended[i] = why
		}
	}
	l.order = slices.DeleteFunc(l.order, func(i int) bool { return l.step.Contended[i] != nil })
}

// complete returns the observations of the targets, with names, counts and Missing from Read.
func (l *Loop) complete(given []scaling.TargetObservation) []scaling.TargetObservation {
	l.observed = l.observed[:0]
	for i := range l.targets {
		var o scaling.TargetObservation
		if i < len(given) {
			o = given[i]
		}
		t := &l.targets[i]
		o.Name, o.Missing, o.SpecReplicas = t.Name, t.Missing, t.Replicas
		l.observed = append(l.observed, o)
	}
	return l.observed
}

// save returns the state if it is to be stored.
func (l *Loop) save() []byte {
	l.saved = true
	if l.config.Volatile {
		return nil
	}
	data, err := l.unsaved()
	if err != nil {
		l.step.Err, l.saved = err, false
		return nil
	}
	if data != nil {
		l.saved, l.pending = false, data
	}
	return data
}

// Unsaved returns the state if it differs from the stored one, even if that one is good enough. A process that ends or hands over
// stores it, so that nothing is lost, and reports the result to Saved. Call it between rounds only.
func (l *Loop) Unsaved() ([]byte, error) {
	if l.config.Volatile || !l.restored || l.refused != nil {
		return nil, nil //nolint:nilerr // what was refused stays as it is stored
	}
	data, err := l.State()
	if err != nil || string(data) == string(l.stored) {
		return nil, err
	}
	l.pending = data
	return data, nil
}

// Saved reports the result of storing what Decide, Advance or Unsaved returned. After an error nothing is written, and the state
// must be restored: if somebody else has stored one, that one replaces the Loop's.
func (l *Loop) Saved(err error) {
	if l.pending != nil {
		l.known.add(l.pending) // after an error too: it may be stored all the same
	}
	if err != nil {
		if !slices.Contains(l.tried, true) && !l.config.Atomic && !l.config.Delegated {
			l.resolve() // what is not stored is not written
		}
		l.restored, l.pending = false, nil
		return
	}
	if l.pending != nil {
		l.stored, l.pending, l.ahead = l.pending, nil, false
		l.durable.stored = l.durable.now
	}
	l.saved = true
}

// arrange puts the targets that are to be written in order: those to scale up before those to scale down, and among each those
// with an open write first. If that write has arrived, its conflict is found before anything else is written.
func (l *Loop) arrange() {
	unanswered := l.unanswered()
	for _, verdict := range []scaling.Verdict{scaling.Up, scaling.Down} {
		for _, open := range []bool{true, false} {
			for i := range l.targets {
				if !l.targets[i].Missing && !l.targets[i].Alone && l.step.Targets[i].Verdict == verdict && (unanswered[i] != nil) == open {
					l.order = append(l.order, i)
				}
			}
		}
	}
}

// unanswered returns of each target the first write that may still arrive, by index.
func (l *Loop) unanswered() map[int]*intent {
	all := make(map[int]*intent, len(l.memory.Open))
	for n := range l.memory.Open {
		w := &l.memory.Open[n]
		if i := l.index(w.Key); i >= 0 && !w.Answered && all[i] == nil {
			all[i] = w
		}
	}
	return all
}

// ordered reports of each target whether it is to be written.
func (l *Loop) ordered() []bool {
	is := make([]bool, len(l.targets))
	for _, i := range l.order {
		is[i] = true
	}
	return is
}

// waits reports whether a write of a target other than the first ones of the order may still arrive: then nothing is written. A
// target's own older write needs no waiting, since of two writes that are conditional on the same version at most one is
// carried out.
func (l *Loop) waits(now time.Time) bool {
	if len(l.order) == 0 {
		return false
	}
	down := l.step.Targets[l.order[0]].Verdict == scaling.Down
	unanswered, ordered := l.unanswered(), l.ordered()
	for i := range l.targets {
		w := unanswered[i]
		if w == nil || now.Sub(w.At.Time()).Abs() >= LongestWrite {
			continue
		}
		if ordered[i] && (down || l.step.Targets[i].Verdict == scaling.Up) {
			continue
		}
		l.step.Waiting = &WaitingError{Key: w.Key, From: w.From, To: w.To, At: w.At.Time()}
		l.order = l.order[:0]
		return true
	}
	return false
}

// intend notes the writes that are about to be made. Each also stands for the open writes of its target: they are conditional on
// the same version, so that at most one of them is carried out.
func (l *Loop) intend(now time.Time) {
	l.older = l.forget(l.ordered())
	for _, i := range l.order {
		l.memory.Open = append(l.memory.Open, l.intent(i, now))
	}
}

func (l *Loop) intent(i int, now time.Time) intent {
	t, d := &l.targets[i], &l.step.Targets[i]
	return intent{
		subject: subject{t.Key, t.ID}, From: d.From, To: d.Replicas, At: scaling.StampOf(now), Version: t.Version,
		Delegated: l.config.Delegated,
	}
}

// forget drops the open writes of these targets and returns them by index.
func (l *Loop) forget(of []bool) (closed map[int][]intent) {
	closed = make(map[int][]intent)
	l.memory.Open = slices.DeleteFunc(l.memory.Open, func(w intent) bool {
		i := l.index(w.Key)
		if i < 0 || !of[i] {
			return false
		}
		closed[i] = append(closed[i], w)
		return true
	})
	return closed
}

// Writes yields the writes to make, one after the other. Writes that add replicas come first, and after a failed write none
// that removes replicas follows, so that the total never falls below the smaller of the totals before and after. If storing
// failed, or there is a Step.Err, Writes yields nothing. Report each write with Wrote before the next one; a write that is not
// reported counts as Uncertain.
func (l *Loop) Writes() iter.Seq[Write] {
	return func(yield func(Write) bool) {
		if may := l.saved || l.config.Atomic && l.restored; !may || l.step.Err != nil || l.config.DryRun {
			return
		}
		failed := false
		for _, i := range l.order {
			d, t := &l.step.Targets[i], &l.targets[i]
			if failed && d.Verdict == scaling.Down {
				continue
			}
			l.tried[i] = true
			if !yield(Write{Index: i, Name: t.Name, From: d.From, To: d.Replicas, Version: t.Version}) {
				return
			}
			if len(l.order) == 0 || l.results[i] == Conflict && l.goesAgain() { // the caller has ended the round, or it is decided again
				return
			}
			failed = failed || l.results[i] != Applied
		}
	}
}

// Wrote reports the result of a write. A result that there is not counts as Uncertain.
func (l *Loop) Wrote(w Write, r Result) {
	if r > Conflict {
		r = Uncertain
	}
	if w.Index >= 0 && w.Index < len(l.results) {
		l.results[w.Index] = r
	}
}

// goesAgain reports whether the round is to be decided again: a target had changed, and certainly nothing was written.
func (l *Loop) goesAgain() bool {
	if l.conflicts >= l.config.Conflicts || l.before == nil {
		return false
	}
	conflict := false
	for _, i := range l.order {
		if r := l.results[i]; l.tried[i] && (r == Applied || r == Uncertain) {
			return false
		} else if l.tried[i] && r == Conflict {
			conflict = true
		}
	}
	return conflict
}

// Advance ends the round: it tells the group what was written, and returns the state to store, if any. If again is true, the
// decision was undone because a target had changed: restore if that is needed, then read and decide once more in the same
// round. If the target turns out to be another one (Seen.Anew), decide in the next round instead, which observes that one.
func (l *Loop) Advance(now time.Time) (store []byte, again bool) {
	defer l.end()
	if !l.restored || l.refused != nil || l.step.Err != nil {
		return nil, false
	}
	if l.config.Atomic && !l.config.DryRun {
		return nil, l.advanceAtomic()
	}
	if l.config.DryRun {
		ordered := l.ordered()
		l.carriedOut(now, func(i int) bool { return ordered[i] })
		return l.save(), false
	}
	if l.goesAgain() {
		l.resolve()
		if err := l.before(); err != nil {
			l.restored, l.step.Err = false, err // restore from the store
			return nil, false
		}
		l.conflicts++
		return nil, true
	}
	l.conflicts, l.before = 0, nil
	if !slices.Contains(l.tried, true) {
		return nil, false
	}
	l.carriedOut(now, func(i int) bool { return l.tried[i] && l.results[i] == Applied })
	for _, i := range l.order {
		if l.tried[i] && l.results[i] == Applied {
			l.remember(i, now)
		}
	}
	l.resolve()
	return l.save(), false
}

// end leaves no writes of the round, so that none is made or told of twice.
func (l *Loop) end() {
	if l.unended() {
		l.advanceAtomic()
		l.conflicts = 0
	}
	l.order, l.tried, l.results = l.order[:0], l.tried[:0], l.results[:0]
}

// carriedOut tells the group of the targets whose decision was carried out.
func (l *Loop) carriedOut(now time.Time, was func(i int) bool) {
	l.applied(now, func(i int) (from, to int32, ok bool) {
		if !was(i) {
			return 0, 0, false
		}
		d := &l.step.Targets[i]
		return d.From, d.Replicas, true
	})
}

// remember notes a write that was carried out, to find out later whether somebody takes it back.
func (l *Loop) remember(i int, now time.Time) {
	if l.wrote == nil {
		l.wrote = make(map[string]intent)
	}
	l.wrote[l.targets[i].Key] = l.intent(i, now)
}

// resolve updates the open writes with the results of the round's writes. Only a write that was carried out proves that an older
// one was not and never will be.
func (l *Loop) resolve() {
	known := l.ordered()
	for _, i := range l.order {
		known[i] = !l.tried[i] || l.results[i] != Uncertain // what is uncertain stays open
	}
	own := l.forget(known)
	for _, i := range l.order {
		switch {
		case !known[i] || l.tried[i] && l.results[i] == Applied:
			continue
		case l.tried[i] && l.results[i] == Conflict:
			for n := range own[i] {
				own[i][n].Answered = true
			}
		default:
			own[i] = nil
		}
		l.memory.Open = append(append(l.memory.Open, l.older[i]...), own[i]...)
	}
}

// unended reports whether the group was told of an update that stores and writes, and the round is not ended.
func (l *Loop) unended() bool { return l.config.Atomic && !l.config.DryRun && len(l.order) > 0 }

// advanceAtomic ends a round in which one update stores and writes: the object has both or neither.
func (l *Loop) advanceAtomic() (again bool) {
	if len(l.order) == 0 {
		l.conflicts = 0
		return false
	}
	switch i := l.order[0]; {
	case l.tried[i] && l.results[i] == Applied:
		l.Saved(nil)
		if l.targets[i].Version != "" {
			l.late = nil // an older update was conditional on the same version, or on one before it
		}
		l.changed = l.memory.Last.At.Time()
		l.remember(i, l.changed)
	case l.tried[i] && l.results[i] == Uncertain:
		late := l.targets[i]
		l.restored, l.late = false, &late
	default: // what was told to the group did not happen
		again = l.goesAgain()
		l.restored = l.restored && !l.tried[i]
		if err := l.before(); err != nil {
			l.restored, l.refused = false, err
		}
	}
	if l.order = l.order[:0]; again {
		l.conflicts++
	} else {
		l.conflicts = 0
	}
	return again
}

// RequeueAfter returns how long to wait for the next round: until a period has passed since this one began, or until next (of a
// Step or a Decision), if that is set and earlier. The wait is at least a second, or the period if that is shorter, and at most
// the period, so that nobody sleeps forever on a zero next. A period of 0 or less counts as a second.
func RequeueAfter(began, now, next time.Time, period time.Duration) time.Duration {
	if period <= 0 {
		period = time.Second
	}
	due := began.Add(period)
	if next.After(began) && next.Before(due) {
		due = next
	}
	return min(max(due.Sub(now), min(time.Second, period)), period)
}
