package loop_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// stepper goes one up above a load of 10 and one down below 1, with a cooldown of a minute for both.
type stepper struct{}

type memory struct {
	Last scaling.Stamp `json:"last,omitzero"`
}

const cooldown = time.Minute

func (stepper) Kind() scaling.Kind { return scaling.Kind{Name: "stepper", Version: 1} }

func (stepper) Decide(s memory, now time.Time, obs scaling.Observation) (memory, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	load := obs.Reading("load")
	switch {
	case !load.Known():
		d = scaling.UnknownAt(obs.SpecReplicas, "NoLoad", "")
	case s.Last.Set && now.Before(s.Last.Time().Add(cooldown)):
		d.To(obs.SpecReplicas, "Cooling", "")
		d.NextBy(s.Last.Time().Add(cooldown))
	case load.Lower > 10:
		d.To(min(obs.SpecReplicas+1, 8), "Step", "")
	case load.Upper < 1:
		d.To(max(obs.SpecReplicas-1, 1), "Step", "")
	}
	return s, d
}

func (stepper) Applied(_ memory, now time.Time, _, _ int32) memory {
	return memory{Last: scaling.StampOf(now)}
}

func start() time.Time { return time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC) }

func newLoop(t require.TestingT, c loop.Config) *loop.Loop {
	return loopOf(t, scaling.GroupOf(scaling.New(stepper{})), c)
}

func loopOf(t require.TestingT, g scaling.Group, c loop.Config) *loop.Loop {
	l, err := loop.New(g, c)
	require.NoError(t, err)
	return l
}

func loaded(load float64) scaling.GroupObservation {
	return scaling.GroupObservation{Readings: []scaling.Reading{scaling.Exactly("load", load)}}
}

// begin restores, reads and decides, and stores what is to be stored.
func begin(t *testing.T, l *loop.Loop, now time.Time, stored []byte, target loop.Target) (*loop.Step, []byte) {
	t.Helper()
	if l.NeedsRestore() {
		require.NoError(t, l.Restore(stored))
	}
	l.Read(now, target)
	s := l.Decide(now, loaded(50))
	if s.Store != nil {
		stored = s.Store
		l.Saved(nil)
	}
	return s, stored
}

func write(l *loop.Loop, r loop.Result) (n int) {
	for w := range l.Writes() {
		l.Wrote(w, r)
		n++
	}
	return n
}

// What comes of every answer to a write, for the next round and for a process that begins anew.
func TestAfterEveryAnswer(t *testing.T) {
	target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3}
	changed := func(replicas int32, version string) loop.Target {
		next := target
		next.Replicas, next.Version = replicas, version
		return next
	}
	for name, tt := range map[string]struct {
		result  loop.Result
		config  loop.Config
		again   bool        // decided once more in this round
		next    loop.Target // 15 s later
		settled bool
		acts    bool // in the next round
	}{
		"applied":                         {loop.Applied, loop.Config{}, false, changed(4, "8"), false, false},
		"refused":                         {loop.Refused, loop.Config{}, false, target, false, true},
		"conflict":                        {loop.Conflict, loop.Config{}, false, changed(3, "8"), false, true},
		"conflict, decided again":         {loop.Conflict, loop.Config{Conflicts: 1}, true, changed(3, "8"), false, true},
		"conflict with itself":            {loop.Conflict, loop.Config{}, false, changed(4, "8"), true, false},
		"conflict, and somebody wrote":    {loop.Conflict, loop.Config{}, false, changed(6, "8"), false, true},
		"answer lost, written":            {loop.Uncertain, loop.Config{}, false, changed(4, "8"), true, false},
		"answer lost, can yet arrive":     {loop.Uncertain, loop.Config{}, false, target, false, true},
		"answer lost, not written":        {loop.Uncertain, loop.Config{}, false, changed(3, "8"), false, true},
		"answer lost, and somebody wrote": {loop.Uncertain, loop.Config{}, false, changed(6, "8"), true, false},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				l := newLoop(t, tt.config)
				s, stored := begin(t, l, start(), nil, target)
				require.True(t, s.Acts())
				require.Contains(t, string(s.Store), `"open":[{"key":"chat","id":"1","from":3,"to":4`, "the intent is stored first")
				require.Equal(t, 1, write(l, tt.result))
				store, again := l.Advance(start())
				require.Equal(t, tt.again, again)
				if store != nil {
					stored = store
					l.Saved(nil)
				}
				if restart {
					l = newLoop(t, tt.config)
					require.NoError(t, l.Restore(stored))
				}
				now := start().Add(15 * time.Second)
				require.Equal(t, tt.settled, len(l.Read(now, tt.next).Settled) > 0)
				require.Equal(t, tt.acts, l.Decide(now, loaded(50)).Acts())
			})
		}
	}
}

func TestNothingIsWrittenThatIsNotStored(t *testing.T) {
	l := newLoop(t, loop.Config{})
	require.True(t, l.NeedsRestore())
	require.NoError(t, l.Restore(nil))
	l.Read(start(), loop.Target{Replicas: 3})
	s := l.Decide(start(), loaded(50))
	require.True(t, s.Acts())
	require.Zero(t, write(l, loop.Applied), "not stored yet")
	l.Saved(errors.New("no"))
	require.Zero(t, write(l, loop.Applied))
	require.True(t, l.NeedsRestore(), "what the store has is what counts")
	store, again := l.Advance(start())
	require.Nil(t, store)
	require.False(t, again)
}

func TestRefusedStateIsKept(t *testing.T) {
	for name, stored := range map[string]string{
		"no JSON":     `{`,
		"newer":       `{"kind": "loop", "version": 2, "state": {}}`,
		"of another":  `{"kind": "other", "version": 1, "state": {}}`,
		"without":     `{"kind": "loop", "version": 1, "state": {}}`,
		"more fields": `{"kind": "loop", "version": 1, "state": {"x": 1, "group": {"kind": "stepper", "version": 1, "state": {}}}}`,
		"a write without a time": `{"kind": "loop", "version": 1, "state": {"open": [{"key": "", "from": 1, "to": 2}],
			"group": {"kind": "stepper", "version": 1, "state": {}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{})
			bad := new(scaling.StateError)
			require.ErrorAs(t, l.Restore([]byte(stored)), &bad)
			require.True(t, l.NeedsRestore())
			l.Read(start(), loop.Target{Replicas: 3})
			s := l.Decide(start(), loaded(50))
			require.Equal(t, scaling.Unknown, s.Targets[0].Verdict)
			require.Nil(t, s.Store)
			require.Zero(t, write(l, loop.Applied))
			require.ErrorAs(t, l.Restore([]byte(stored)), &bad, "the same again")
			require.NoError(t, l.Restore([]byte(`{"kind": "stepper", "version": 1, "state": {}}`)), "the bare state of the policy is one")
			l.Read(start(), loop.Target{Replicas: 3})
			require.True(t, l.Decide(start(), loaded(50)).Acts())
		})
	}
}

func TestDryRunShowsThePace(t *testing.T) {
	l := newLoop(t, loop.Config{DryRun: true})
	s, stored := begin(t, l, start(), nil, loop.Target{Replicas: 3})
	require.True(t, s.Acts())
	require.Zero(t, write(l, loop.Applied))
	store, _ := l.Advance(start())
	require.NotEqual(t, string(stored), string(store))
	l.Saved(nil)
	s, _ = begin(t, l, start().Add(15*time.Second), nil, loop.Target{Replicas: 3})
	require.False(t, s.Acts(), "it is told that the write happened")
	require.Equal(t, start().Add(cooldown), s.Next().UTC())
}

func TestPausedActsOnceThePauseEnds(t *testing.T) {
	paused := newLoop(t, loop.Config{Paused: true})
	s, stored := begin(t, paused, start(), nil, loop.Target{Replicas: 3})
	require.True(t, s.Acts(), "it says what it would do")
	require.Zero(t, write(paused, loop.Applied))
	store, again := paused.Advance(start())
	require.Nil(t, store)
	require.False(t, again)
	l := newLoop(t, loop.Config{})
	s, _ = begin(t, l, start().Add(time.Second), stored, loop.Target{Replicas: 3})
	require.True(t, s.Acts())
	require.Equal(t, 1, write(l, loop.Applied))
}

func TestDelegatedIsToldWhereItWent(t *testing.T) {
	for name, tt := range map[string]struct {
		replicas int32
		settled  bool
	}{"as asked": {4, true}, "further": {6, true}, "not yet": {3, false}, "the other way": {2, false}} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{Delegated: true})
			s, stored := begin(t, l, start(), nil, loop.Target{Replicas: 3})
			require.True(t, s.Acts())
			require.Zero(t, write(l, loop.Applied), "somebody else writes")
			l = newLoop(t, loop.Config{Delegated: true})
			require.NoError(t, l.Restore(stored))
			now := start().Add(15 * time.Second)
			seen := l.Read(now, loop.Target{Replicas: tt.replicas})
			require.Equal(t, tt.settled, len(seen.Settled) > 0)
			require.Equal(t, !tt.settled, l.Decide(now, loaded(50)).Acts())
		})
	}
}

// In one update either the count and the cooldown are there or neither.
func TestAtomicUpdate(t *testing.T) {
	target := loop.Target{Version: "7", Replicas: 3}
	for name, tt := range map[string]struct {
		result  loop.Result
		written bool
		acts    bool
	}{
		"applied": {loop.Applied, true, false}, "lost, written": {loop.Uncertain, true, false}, "lost": {loop.Uncertain, false, true},
		"refused": {loop.Refused, false, true}, "conflict": {loop.Conflict, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{Atomic: true})
			require.NoError(t, l.Restore(nil))
			l.Read(start(), target)
			s := l.Decide(start(), loaded(50))
			var stored []byte
			next := target
			if tt.written {
				stored, next = s.Store, loop.Target{Version: "8", Replicas: 4}
			}
			require.Equal(t, 1, write(l, tt.result))
			l.Advance(start())
			if l.NeedsRestore() {
				require.NoError(t, l.Restore(stored))
			}
			now := start().Add(15 * time.Second)
			require.Empty(t, l.Read(now, next).Settled)
			require.Equal(t, tt.acts, l.Decide(now, loaded(50)).Acts())
		})
	}
}

func TestAnotherTargetBeginsAnew(t *testing.T) {
	l := newLoop(t, loop.Config{})
	_, stored := begin(t, l, start(), nil, loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3})
	write(l, loop.Applied)
	store, _ := l.Advance(start())
	require.NotEqual(t, stored, store)
	l.Saved(nil)
	now := start().Add(15 * time.Second)
	require.False(t, l.Read(now, loop.Target{Key: "chat", ID: "1", Replicas: 4}).Anew)
	require.False(t, l.Decide(now, loaded(50)).Acts())
	require.True(t, l.Read(now, loop.Target{Key: "chat", ID: "2", Replicas: 1}).Anew, "made anew under its name")
	require.True(t, l.Decide(now, loaded(50)).Acts())
	require.False(t, l.Read(now, loop.Target{Key: "chat", Missing: true}).Anew, "one that is not there says nothing")
}

func TestRequeueAfter(t *testing.T) {
	began := start()
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	for name, tt := range map[string]struct {
		now, next time.Time
		want      time.Duration
	}{
		"never":         {at(0), time.Time{}, 15 * time.Second},
		"the rest":      {at(4), time.Time{}, 11 * time.Second},
		"late":          {at(40), time.Time{}, time.Second},
		"earlier":       {at(1), at(6), 5 * time.Second},
		"later":         {at(1), at(60), 14 * time.Second},
		"past":          {at(1), at(-5), 14 * time.Second},
		"at once":       {at(1), at(1.2), time.Second},
		"a clock apart": {at(-3600), time.Time{}, 15 * time.Second},
	} {
		require.Equal(t, tt.want, loop.RequeueAfter(began, tt.now, tt.next, 15*time.Second), name)
	}
	require.Equal(t, 100*time.Millisecond, loop.RequeueAfter(began, at(9), time.Time{}, 100*time.Millisecond))
}

// TestRegressionAPeriodThatIsForgotten: without a period there was nothing to wait for, and a controller never slept.
func TestRegressionAPeriodThatIsForgotten(t *testing.T) {
	for _, period := range []time.Duration{0, -time.Minute} {
		for _, next := range []time.Time{{}, start().Add(time.Millisecond), start().Add(time.Hour)} {
			require.Equal(t, time.Second, loop.RequeueAfter(start(), start(), next, period))
		}
	}
}

func TestConfigErrors(t *testing.T) {
	_, err := loop.New(nil, loop.Config{Conflicts: -1, Delegated: true, Atomic: true, DryRun: true, Volatile: true})
	require.EqualError(t, err, "group: <nil>: must be set\nconflicts: -1: must not be negative\n"+
		"delegated: true: must not be set with dryRun\ndelegated: true: must not be set with atomic\natomic: true: must not be set with volatile")
}

// What the process knows outranks what is gone: a kubectl replace erases annotations, and a copy of the object that is
// older brings old ones back. Three scale-ups in 8 s with a cooldown of 600 s were the consequence.
func TestErasedStateLosesNoCooldown(t *testing.T) {
	for name, left := range map[string]func(first, second []byte) []byte{
		"erased": func(_, _ []byte) []byte { return nil }, "an old one": func(first, _ []byte) []byte { return first },
		"erased, and not stored again": func(_, _ []byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{})
			target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3}
			_, first := begin(t, l, start(), nil, target)
			write(l, loop.Applied)
			second, _ := l.Advance(start())
			l.Saved(nil)
			target.Replicas, target.Version = 4, "8"
			for range 3 {
				l.Saved(errors.New("somebody else has written"))
				require.NoError(t, l.Restore(left(first, second)))
			}
			now := start().Add(15 * time.Second)
			s, stored := begin(t, l, now, nil, target)
			require.False(t, s.Acts(), "the cooldown of the write that it made itself")
			require.NotNil(t, stored, "and stores what it knows")
			l = newLoop(t, loop.Config{})
			require.NoError(t, l.Restore(stored))
			l.Read(now, target)
			require.False(t, l.Decide(now, loaded(50)).Acts())
		})
	}
}

func TestStateOfSomebodyElseIsTaken(t *testing.T) {
	target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3}
	a, b := newLoop(t, loop.Config{}), newLoop(t, loop.Config{})
	_, stored := begin(t, a, start(), nil, target)
	begin(t, b, start(), stored, target)
	write(b, loop.Applied)
	stored, _ = b.Advance(start())
	a.Saved(errors.New("somebody else has written"))
	require.NoError(t, a.Restore(stored))
	target.Replicas, target.Version = 4, "8"
	a.Read(start(), target)
	require.False(t, a.Decide(start(), loaded(50)).Acts(), "the other one's cooldown")
}

// After a restart a status that says when the target was last changed is the second source.
func TestLastChangeOfAStatus(t *testing.T) {
	old := newLoop(t, loop.Config{})
	_, early := begin(t, old, start(), nil, loop.Target{Key: "chat", ID: "1", Replicas: 3})
	for name, tt := range map[string]struct {
		stored []byte
		at     time.Time
		acts   bool
	}{
		"nothing stored, nothing known": {nil, time.Time{}, true},
		"nothing stored":                {nil, start().Add(time.Minute), false},
		"long ago":                      {nil, start(), true},
		"in the future":                 {nil, start().Add(time.Hour), false},
		"an old state":                  {early, start().Add(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{LastChange: tt.at})
			require.NoError(t, l.Restore(tt.stored))
			now := start().Add(90 * time.Second)
			l.Read(now, loop.Target{Key: "chat", ID: "1", Version: "9", Replicas: 4})
			require.Equal(t, tt.acts, l.Decide(now, loaded(50)).Acts())
		})
	}
}

// TestAChangeOfTheFutureWasNow: a status from a clock that is ahead delays by a cooldown, and not until then.
func TestAChangeOfTheFutureWasNow(t *testing.T) {
	l := newLoop(t, loop.Config{LastChange: start().Add(time.Hour)})
	require.NoError(t, l.Restore(nil))
	target := loop.Target{Key: "chat", ID: "1", Version: "9", Replicas: 4}
	for _, at := range []time.Duration{0, cooldown - time.Second, cooldown} {
		l.Read(start().Add(at), target)
		require.Equal(t, at == cooldown, l.Decide(start().Add(at), loaded(50)).Acts())
	}
}

// told is a group that remembers what it was told of changes.
type told struct {
	both

	changes *[][2][]int32
}

func (g told) Applied(_ time.Time, from, to []int32) {
	*g.changes = append(*g.changes, [2][]int32{from, to})
}

// TestWhatAGroupIsToldOfALastChange: one up and one down, of every target that is there, and never below none.
func TestWhatAGroupIsToldOfALastChange(t *testing.T) {
	var changes [][2][]int32
	l := loopOf(t, told{both{scaling.New(stepper{})}, &changes}, loop.Config{LastChange: start()})
	require.NoError(t, l.Restore(nil))
	l.Read(start().Add(time.Minute), loop.Target{Name: "a", Missing: true}, loop.Target{Name: "b", ID: "2"})
	require.Equal(t, [][2][]int32{{{0, 0}, {0, 1}}, {{0, 0}, {0, 0}}}, changes)
	l.Read(start().Add(time.Minute), loop.Target{Name: "a", Missing: true}, loop.Target{Name: "b", ID: "2"})
	require.Len(t, changes, 2, "once")

	changes = nil
	l = loopOf(t, told{both{scaling.New(stepper{})}, &changes}, loop.Config{LastChange: start()})
	require.NoError(t, l.Restore(nil))
	l.Read(start().Add(time.Minute), loop.Target{Name: "a", Replicas: 3}, loop.Target{Name: "b", ID: "2", Replicas: 1})
	require.Equal(t, [][2][]int32{{{3, 1}, {4, 2}}, {{3, 1}, {2, 0}}}, changes, "each may have a cooldown of its own")
}

// A process that hands over loses nothing, not even what would have done.
func TestUnsaved(t *testing.T) {
	d := drive(t, kaito, period)
	for i := range 5 {
		d.round(t, start().Add(time.Duration(i)*period), 5)
	}
	old := d.stored
	state, err := d.loop.Unsaved()
	require.NoError(t, err)
	require.NotEqual(t, string(old), string(state), "it would have done")
	d.save(state)
	state, err = d.loop.Unsaved()
	require.NoError(t, err)
	require.Nil(t, state)
}

// A write that was answered by a conflict is not on its way: nothing waits for it, and nothing is left of it, at whatever
// version the target is.
func TestAnsweredIsNotOpen(t *testing.T) {
	group := both{scaling.New(stepper{})}
	l := loopOf(t, group, loop.Config{})
	require.NoError(t, l.Restore(nil))
	a, b := loop.Target{Name: "a", ID: "1", Version: "7", Replicas: 4}, loop.Target{Name: "b", ID: "2", Version: "7", Replicas: 1}
	l.Read(start(), a, b)
	require.True(t, l.Decide(start(), loaded(50)).Acts())
	l.Saved(nil)
	for w := range l.Writes() {
		l.Wrote(w, loop.Conflict)
	}
	store, _ := l.Advance(start())
	require.Contains(t, string(store), `"answered":true`)
	l.Saved(nil)
	gone := b
	gone.Missing, gone.Replicas = true, 0
	now := start().Add(15 * time.Second)
	l.Read(now, a, gone)
	step := l.Decide(now, loaded(50))
	require.True(t, step.Acts())
	require.Nil(t, step.Waiting, "one that is gone and was answered is not waited for")
	l.Saved(nil)
	l.Read(now, a, b)
	state, err := l.State()
	require.NoError(t, err)
	require.NotContains(t, string(state), `"answered":true`, "at the same version")
}

// spoiled has a state that cannot be stored once it has decided.
type spoiled struct{}

func (spoiled) Kind() scaling.Kind { return scaling.Kind{Name: "spoiled", Version: 1} }

func (spoiled) Decide(_ float64, _ time.Time, obs scaling.Observation) (float64, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(obs.SpecReplicas+1, "Step", "")
	return math.NaN(), d
}

func (spoiled) Applied(s float64, _ time.Time, _, _ int32) float64 { return s }

// TestNothingIsWrittenWithoutAState: of a state that cannot be stored there is none that a write could take along.
func TestNothingIsWrittenWithoutAState(t *testing.T) {
	for _, c := range []loop.Config{{}, {Atomic: true}} {
		l := loopOf(t, scaling.GroupOf(scaling.New(spoiled{})), c)
		s, _ := begin(t, l, start(), nil, loop.Target{Key: "a", Version: "1", Replicas: 3})
		require.ErrorContains(t, s.Err, "NaN")
		require.Nil(t, s.Store)
		require.Zero(t, write(l, loop.Applied), "%+v", c)
		_, again := l.Advance(start())
		require.False(t, again)
	}
}

// together begins a round in which one update stores and writes.
func together(t *testing.T, l *loop.Loop, now time.Time, stored []byte, target loop.Target) *loop.Step {
	t.Helper()
	if l.NeedsRestore() {
		require.NoError(t, l.Restore(stored))
	}
	l.Read(now, target)
	return l.Decide(now, loaded(50))
}

// TestRegressionAtomicWithoutAdvance: a controller that went on to the next round after an update that failed kept in the group's
// memory a change that had not happened, and waited for its cooldown.
func TestRegressionAtomicWithoutAdvance(t *testing.T) {
	target := loop.Target{Version: "7", Replicas: 3}
	for name, tt := range map[string]struct {
		results  []loop.Result
		written  bool
		restores bool
	}{
		"not tried": {}, "not reported": {[]loop.Result{loop.Uncertain}, false, true}, "lost, written": {[]loop.Result{loop.Uncertain}, true, true},
		"refused": {[]loop.Result{loop.Refused}, false, true}, "conflict": {[]loop.Result{loop.Conflict}, false, true},
		"applied": {[]loop.Result{loop.Applied}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{Atomic: true, Conflicts: 1})
			s := together(t, l, start(), nil, target)
			for _, r := range tt.results {
				require.Equal(t, 1, write(l, r))
			}
			var stored []byte
			next := target
			if tt.written {
				stored, next = s.Store, loop.Target{Version: "8", Replicas: 4}
			}
			require.Equal(t, tt.restores, l.NeedsRestore())
			now := start().Add(15 * time.Second)
			s = together(t, l, now, stored, next)
			require.NoError(t, s.Err)
			require.Equal(t, !tt.written, s.Acts())
		})
	}
	l := newLoop(t, loop.Config{Atomic: true})
	together(t, l, start(), nil, target)
	write(l, loop.Refused)
	l.Read(start(), target) // without Restore
	require.ErrorContains(t, l.Decide(start(), loaded(50)).Err, "was not given to Restore")
}

// TestRegressionAtomicWithoutItsState: where the object had lost the state, as after a kubectl replace, the Loop kept its own, with
// the change that had just failed.
func TestRegressionAtomicWithoutItsState(t *testing.T) {
	for _, result := range []loop.Result{loop.Refused, loop.Conflict} {
		l := newLoop(t, loop.Config{Atomic: true})
		target := loop.Target{Version: "7", Replicas: 3}
		together(t, l, start(), nil, target)
		write(l, loop.Applied)
		l.Advance(start())
		target = loop.Target{Version: "8", Replicas: 4}
		now := start().Add(cooldown)
		s := together(t, l, now, nil, target)
		require.True(t, s.Acts())
		write(l, result)
		l.Advance(now)
		require.True(t, l.NeedsRestore())
		s = together(t, l, now, nil, target) // the state is gone
		require.NoError(t, s.Err)
		require.True(t, s.Acts(), "the update failed")
		require.Contains(t, string(s.Store), `"last":{"from":4,"to":5,`)
	}
}

// TestRegressionAtomicThatArrivesLate: an update without an answer arrived a round after the state was restored. The Loop kept the state from
// before it, and stepped again 30 s after a step.
func TestRegressionAtomicThatArrivesLate(t *testing.T) {
	for _, rounds := range []int{1, 2, 3} {
		l, before := newLoop(t, loop.Config{Atomic: true, Conflicts: 1}), loop.Target{Version: "7", Replicas: 3}
		quiet := func(now time.Time, stored []byte) []byte {
			if l.NeedsRestore() {
				require.NoError(t, l.Restore(stored))
			}
			l.Read(now, before)
			s := l.Decide(now, scaling.GroupObservation{}) // nothing is known of the load
			require.False(t, s.Acts())
			return s.Store
		}
		stored := quiet(start(), nil)
		l.Saved(nil)
		l.Advance(start())
		update := together(t, l, start(), stored, before).Store
		require.Equal(t, 1, write(l, loop.Uncertain))
		l.Advance(start())
		now := start()
		for range rounds {
			now = now.Add(15 * time.Second)
			require.Nil(t, quiet(now, stored), "the object stays as it is")
			l.Advance(now)
		}
		after := loop.Target{Version: "8", Replicas: 4}
		require.False(t, together(t, l, now, update, after).Acts(), "the cooldown runs")
		require.False(t, l.NeedsRestore(), "the object has changed since")
		require.True(t, together(t, l, start().Add(cooldown), update, after).Acts())
	}
}

// TestRegressionAtomicThatCannotArriveAnyMore: after an update without an answer the next one was applied, so that the first can no longer
// arrive. NeedsRestore reported true all the same until the next Read, and an old read of the object took the Loop's state back.
func TestRegressionAtomicThatCannotArriveAnyMore(t *testing.T) {
	l, target, now := newLoop(t, loop.Config{Atomic: true}), loop.Target{Version: "7", Replicas: 3}, start()
	for _, r := range []loop.Result{loop.Uncertain, loop.Applied} {
		require.True(t, together(t, l, now, nil, target).Acts())
		require.Equal(t, 1, write(l, r))
		l.Advance(now)
		require.Equal(t, r != loop.Applied, l.NeedsRestore())
		now = now.Add(15 * time.Second)
	}
}

// TestRegressionAtomicDryRunKeepsThePace: it asked for the same change in each round, as the group was not told of it.
func TestRegressionAtomicDryRunKeepsThePace(t *testing.T) {
	l, target, stored := newLoop(t, loop.Config{Atomic: true, DryRun: true}), loop.Target{Version: "7", Replicas: 3}, []byte(nil)
	for round := range 8 {
		now := start().Add(time.Duration(round) * 15 * time.Second)
		var s *loop.Step
		s, stored = begin(t, l, now, stored, target)
		require.Equal(t, round%4 == 0, s.Acts(), round)
		require.Zero(t, write(l, loop.Applied))
		store, again := l.Advance(now)
		require.False(t, again)
		if store != nil {
			stored = store
			l.Saved(nil)
		}
		require.False(t, l.NeedsRestore())
	}
}
