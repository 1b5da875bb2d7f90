package loop_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// moves is a group that asks for the same counts in every round, and remembers what it saw and was told.
type moves struct {
	to   []int32
	seen scaling.GroupObservation
	told [][2][]int32
}

func (m *moves) Decide(_ time.Time, obs scaling.GroupObservation) (d scaling.GroupDecision) {
	m.seen = obs
	for i, to := range m.to {
		t := scaling.UnknownAt(to, "Move", "")
		if i < len(obs.Targets) {
			t = scaling.HoldAt(obs.Targets[i].SpecReplicas)
			t.To(to, "Move", "")
		}
		d.Targets = append(d.Targets, t)
	}
	return d
}

func (m *moves) Applied(_ time.Time, from, to []int32) { m.told = append(m.told, [2][]int32{from, to}) }

func (m *moves) MarshalJSON() ([]byte, error) {
	return []byte(`{"kind":"moves","version":1,"state":{}}`), nil
}

func (m *moves) UnmarshalJSON([]byte) error { return nil }

// targets have the counts given, under the names a, b, c.
func targets(counts ...int32) (all []loop.Target) {
	for i, n := range counts {
		all = append(all, loop.Target{Name: string(rune('a' + i)), ID: "1", Version: "7", Replicas: n})
	}
	return all
}

// move begins a round of a fresh loop over moves, and stores.
func move(t *testing.T, m *moves, c loop.Config, read ...loop.Target) *loop.Loop {
	t.Helper()
	l := loopOf(t, m, c)
	require.NoError(t, l.Restore(nil))
	again(l, start(), read...)
	return l
}

// again begins another round.
func again(l *loop.Loop, now time.Time, read ...loop.Target) *loop.Step {
	l.Read(now, read...)
	s := l.Decide(now, scaling.GroupObservation{})
	l.Saved(nil)
	return s
}

// written returns the names of the targets that are written, with these answers in turn.
func written(l *loop.Loop, answers ...loop.Result) (names string) {
	for w := range l.Writes() {
		names += fmt.Sprintf("%s%d ", w.Name, w.To)
		l.Wrote(w, answers[0])
		answers = answers[1:]
	}
	return names
}

// TestNothingIsTakenAwayAfterAWriteThatFailed: what grows comes first, and what shrinks only where all of that was written.
func TestNothingIsTakenAwayAfterAWriteThatFailed(t *testing.T) {
	for _, row := range []struct {
		want    string
		answers []loop.Result
	}{
		{"b6 c7 a3 ", []loop.Result{loop.Applied, loop.Applied, loop.Applied}},
		{"b6 c7 ", []loop.Result{loop.Applied, loop.Uncertain}},
		{"b6 c7 ", []loop.Result{loop.Refused, loop.Applied}},
		{"b6 c7 ", []loop.Result{loop.Uncertain, loop.Applied}},
	} {
		l := move(t, &moves{to: []int32{3, 6, 7}}, loop.Config{}, targets(4, 5, 6)...)
		require.Equal(t, row.want, written(l, row.answers...))
	}
}

// TestWritesMayEndEarly: who stops asking for them gets no more.
func TestWritesMayEndEarly(t *testing.T) {
	l := move(t, &moves{to: []int32{5, 6}}, loop.Config{}, targets(4, 5)...)
	n := 0
	require.NotPanics(t, func() {
		for w := range l.Writes() {
			l.Wrote(w, loop.Applied)
			l.Wrote(loop.Write{Index: -1}, loop.Applied)
			l.Wrote(loop.Write{Index: 2}, loop.Applied)
			n++
			break
		}
	})
	require.Equal(t, 1, n)
	l.Advance(start())
	require.Empty(t, l.Read(start(), targets(5, 5)...).Settled, "the second one was never tried")
}

// TestWhatIsNotToBeWritten: a target that is not there, and one that is to be left alone.
func TestWhatIsNotToBeWritten(t *testing.T) {
	for _, change := range []func(*loop.Target){
		func(t *loop.Target) { t.Missing = true }, func(t *loop.Target) { t.Alone = true },
	} {
		for i := range 2 {
			read := targets(4, 4)
			change(&read[i])
			l := move(t, &moves{to: []int32{5, 5}}, loop.Config{}, read...)
			require.Equal(t, []string{"b5 ", "a5 "}[i], written(l, loop.Applied))
		}
	}
}

// TestAGroupIsToldOfEveryTarget: also of those that were not written; and the store of all together.
func TestAGroupIsToldOfEveryTarget(t *testing.T) {
	m := &moves{to: []int32{4, 6}}
	l := move(t, m, loop.Config{}, targets(4, 5)...)
	require.Equal(t, "b6 ", written(l, loop.Applied))
	store, _ := l.Advance(start())
	require.Equal(t, [][2][]int32{{{4, 5}, {4, 6}}}, m.told)
	require.Contains(t, string(store), `"last":{"from":9,"to":10,`)
}

// TestAGroupSeesWhatIsReady: of the observation, and the counts of what was read.
func TestAGroupSeesWhatIsReady(t *testing.T) {
	m := &moves{to: []int32{4, 5}}
	l := move(t, m, loop.Config{}, targets(4, 5)...)
	l.Decide(start(), scaling.GroupObservation{Targets: []scaling.TargetObservation{{Name: "x", SpecReplicas: 9, ReadyReplicas: 3}}})
	require.Equal(t, []scaling.TargetObservation{{Name: "a", SpecReplicas: 4, ReadyReplicas: 3}, {Name: "b", SpecReplicas: 5}}, m.seen.Targets)
}

// TestAGroupOfAnotherSizeDecidesNothing: and the step says why.
func TestAGroupOfAnotherSizeDecidesNothing(t *testing.T) {
	for _, to := range [][]int32{{5}, {5, 6, 7}} {
		l := loopOf(t, &moves{to: to}, loop.Config{})
		require.NoError(t, l.Restore(nil))
		s := again(l, start(), targets(4, 5)...)
		require.EqualError(t, s.Err, fmt.Sprintf("the group gave %d decisions for 2 targets", len(to)))
		require.Len(t, s.Targets, 2)
		require.Equal(t, scaling.Unknown, s.Targets[1].Verdict)
		require.Empty(t, written(l))
		store, more := l.Advance(start())
		require.Nil(t, store)
		require.False(t, more)
	}
}

// TestConflictsAreCountedByTheRound: one conflict is decided again in each of three rounds, a second one in a round is not.
func TestConflictsAreCountedByTheRound(t *testing.T) {
	for _, c := range []loop.Config{{Conflicts: 1}, {Conflicts: 1, Atomic: true}} {
		l := move(t, &moves{to: []int32{5}}, c, targets(4)...)
		for range 3 {
			require.NotEmpty(t, written(l, loop.Conflict))
			_, more := l.Advance(start())
			require.True(t, more)
			require.NoError(t, l.Restore(nil))
			again(l, start(), targets(4)...)
			require.NotEmpty(t, written(l, loop.Conflict))
			_, more = l.Advance(start())
			require.False(t, more, "the second one")
			require.NoError(t, l.Restore(nil))
			again(l, start(), targets(4)...)
		}
		require.NotEmpty(t, written(l, loop.Conflict))
		_, more := l.Advance(start())
		require.True(t, more)
		require.NoError(t, l.Restore(nil))
		again(l, start(), targets(5)...) // nothing to do any more
		require.Empty(t, written(l))
		_, more = l.Advance(start())
		require.False(t, more)
		again(l, start(), targets(4)...)
		require.NotEmpty(t, written(l, loop.Conflict))
		_, more = l.Advance(start())
		require.True(t, more)
	}
}

// TestNoConflictIsDecidedAgainAfterAWrite: be it one of which no answer came.
func TestNoConflictIsDecidedAgainAfterAWrite(t *testing.T) {
	for _, first := range []loop.Result{loop.Applied, loop.Uncertain} {
		l := move(t, &moves{to: []int32{5, 6}}, loop.Config{Conflicts: 3}, targets(4, 5)...)
		require.Equal(t, "a5 b6 ", written(l, first, loop.Conflict))
		_, more := l.Advance(start())
		require.False(t, more)
	}
	l := move(t, &moves{to: []int32{5, 6}}, loop.Config{Conflicts: 3}, targets(4, 5)...)
	require.Equal(t, "a5 b6 ", written(l, loop.Refused, loop.Conflict))
	_, more := l.Advance(start())
	require.True(t, more, "what was refused was not written")
}

// TestAWriteWithoutAnAnswerIsWaitedFor: another target is written when it is too old to arrive, two minutes later; the same
// one at once. One that grows is not held up by one that grows, but one that shrinks is by any.
func TestAWriteWithoutAnAnswerIsWaitedFor(t *testing.T) {
	for at, want := range map[time.Duration]string{loop.LongestWrite - time.Second: "", loop.LongestWrite: "b6 "} {
		m := &moves{to: []int32{5, 5}}
		l := move(t, m, loop.Config{}, targets(4, 5)...)
		require.Equal(t, "a5 ", written(l, loop.Uncertain))
		l.Advance(start())
		l.Saved(nil)
		m.to = []int32{4, 6}
		s := again(l, start().Add(at), targets(4, 5)...)
		require.Equal(t, want == "", s.Waiting != nil)
		if want == "" {
			require.Equal(t, loop.WaitingError{Key: "a", From: 4, To: 5, At: s.Waiting.At}, *s.Waiting)
			require.True(t, start().Equal(s.Waiting.At))
			require.ErrorContains(t, s.Waiting, "the write 4 -> 5 of a")
		}
		require.Equal(t, want, written(l, loop.Applied))
	}
	for _, row := range []struct {
		to   []int32
		want string
	}{{[]int32{5, 6}, "a5 b6 "}, {[]int32{3, 4}, "a3 b4 "}, {[]int32{3, 6}, ""}, {[]int32{4, 4}, ""}} {
		m := &moves{to: []int32{5, 5}}
		l := move(t, m, loop.Config{}, targets(4, 5)...)
		require.Equal(t, "a5 ", written(l, loop.Uncertain))
		l.Advance(start())
		l.Saved(nil)
		m.to = row.to
		again(l, start().Add(time.Second), targets(4, 5)...)
		require.Equal(t, row.want, written(l, loop.Applied, loop.Applied), "%v", row.to)
	}
}

// TestLoopStatesThatNobodyWrote: each in words; what is at a limit is a state.
func TestLoopStatesThatNobodyWrote(t *testing.T) {
	const group = `"group":{"kind":"moves","version":1,"state":{}}`
	for text, want := range map[string]string{
		``: "group: ",
		group + `,"open":[{"key":"a","from":1,"to":2}]`:                         "open.at: <nil>: must be given",
		group + `,"open":[{"key":"a","from":0,"to":0,"at":1}]`:                  "",
		group + `,"contests":[{"key":"a","times":[]}]`:                          "contests.times: 0: must be 1 to 3",
		group + `,"contests":[{"key":"a","times":[1]}]`:                         "",
		group + `,"contests":[{"key":"a","times":[1,2,3]}]`:                     "",
		group + `,"contests":[{"key":"a","times":[1,2,3,4]}]`:                   "contests.times: 4: must be 1 to 3",
		group + `,"contests":[{"key":"a","times":[1],"until":9,"level":-1}]`:    "contests.level: -1: must not be negative",
		group + `,"contests":[{"key":"a","times":[1,2,3],"until":9,"level":1}]`: "",
	} {
		l := loopOf(t, &moves{}, loop.Config{})
		err := l.Restore([]byte(`{"kind":"loop","version":1,"state":{` + text + `}}`))
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// TestAStoredLevelIsAnyNumber: a level at the end of int, which who may write the state can store, overflowed, and the loop panicked an
// hour later.
func TestAStoredLevelIsAnyNumber(t *testing.T) {
	l := loopOf(t, &moves{to: []int32{6}}, loop.Config{})
	c := fmt.Sprintf(`"contests":[{"key":"a","times":[%[1]d,%[1]d],"level":%d}]`, start().UnixMilli(), math.MaxInt)
	require.NoError(t, l.Restore([]byte(`{"kind":"loop","version":1,"state":{"group":{"kind":"moves","version":1,"state":{}},`+c+`}}`)))
	for at := time.Duration(0); at < 6*time.Hour; at += 15 * time.Second {
		again(l, start().Add(at), targets(4)...)
		written(l, loop.Applied, loop.Applied)
		if store, _ := l.Advance(start().Add(at)); store != nil {
			l.Saved(nil)
		}
	}
}

// TestALoopThatIsNotRestoredSaysSo: it said that a state was refused, and had no error.
func TestALoopThatIsNotRestoredSaysSo(t *testing.T) {
	l := loopOf(t, &moves{}, loop.Config{})
	l.Read(start(), targets(3)...)
	s := l.Decide(start(), scaling.GroupObservation{})
	require.ErrorContains(t, s.Err, "was not given to Restore")
	require.Equal(t, scaling.Unknown, s.Targets[0].Verdict)
}

// TestRegressionManyTargetsTakeLinearTime: with an open write of each of 10,000 targets, Decide took 2.7 s and the Advance after
// conflicts 7 s, growing with the square of their number: these rounds took three minutes.
func TestRegressionManyTargetsTakeLinearTime(t *testing.T) {
	long.Skip(t)
	const n = 15_000
	m, read := &moves{to: make([]int32, n)}, make([]loop.Target, n)
	for i := range read {
		m.to[i] = 5
		read[i] = loop.Target{Key: fmt.Sprintf("Deployment.apps models/chat-%05d", i), ID: "1", Version: "7", Replicas: 4, Missing: i == 0}
	}
	deadline := time.Now().Add(time.Minute)
	for _, result := range []loop.Result{loop.Uncertain, loop.Conflict, loop.Refused, loop.Applied} {
		l := move(t, m, loop.Config{}, read...)
		for range 2 * loop.Reversals { // the counts never change: what was applied was taken back
			writes := 0
			for w := range l.Writes() {
				writes++
				l.Wrote(w, result)
			}
			require.Contains(t, []int{0, n - 1}, writes)
			l.Advance(start())
			l.Saved(nil)
			again(l, start(), read...)
			require.True(t, time.Now().Before(deadline))
		}
	}
}
