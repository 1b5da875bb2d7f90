package loop_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// wants is a group that asks for one count of each target, and counts what it was told.
type wants struct {
	to   int32
	told int
}

func (g *wants) Decide(_ time.Time, obs scaling.GroupObservation) (d scaling.GroupDecision) {
	for _, t := range obs.Targets {
		one := scaling.HoldAt(t.SpecReplicas)
		one.To(g.to, "Wanted", t.Name)
		d.Targets = append(d.Targets, one)
	}
	return d
}

func (g *wants) Applied(time.Time, []int32, []int32) { g.told++ }

func (g *wants) MarshalJSON() ([]byte, error) { return json.Marshal(g.told) }

func (g *wants) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &g.told) }

// begun returns a group that wants 5 replicas of targets that have one, and a Loop that has decided and stored that.
func begun(t *testing.T, c loop.Config, names ...string) (*wants, *loop.Loop) {
	t.Helper()
	g := &wants{to: 5}
	l := loopOf(t, g, c)
	require.NoError(t, l.Restore(nil))
	var targets []loop.Target
	for _, name := range names {
		targets = append(targets, loop.Target{Name: name, Replicas: 1})
	}
	l.Read(start(), targets...)
	l.Decide(start(), scaling.GroupObservation{})
	l.Saved(nil)
	return g, l
}

// TestRegressionAReadEndsTheRound: with fewer targets than before, the writes and Advance panicked, and with others they were of other
// targets. A change that Read had found was told a second time by Advance.
func TestRegressionAReadEndsTheRound(t *testing.T) {
	for name, c := range map[string]loop.Config{"stored": {}, "volatile": {Volatile: true}, "conflicts": {Conflicts: 3}, "dry": {DryRun: true}} {
		_, l := begun(t, c, "a", "b")
		l.Read(start(), loop.Target{Name: "a", Replicas: 1})
		for w := range l.Writes() {
			t.Errorf("%s: %v", name, w)
		}
		_, again := l.Advance(start())
		require.False(t, again, name)

		_, l = begun(t, c, "a", "b")
		l.Read(start(), loop.Target{Name: "a", Replicas: 1}, loop.Target{Name: "b", Replicas: 1}, loop.Target{Name: "c"})
		l.Advance(start())

		g, l := begun(t, c, "a", "b")
		for w := range l.Writes() {
			l.Wrote(w, loop.Applied)
		}
		l.Read(start(), loop.Target{Name: "b", Replicas: 5}, loop.Target{Name: "a", Replicas: 5})
		l.Advance(start())
		require.LessOrEqual(t, g.told, 1, name)
	}
}

// TestRegressionAReadAmongTheWrites: it panicked.
func TestRegressionAReadAmongTheWrites(t *testing.T) {
	for _, end := range []func(l *loop.Loop){
		func(l *loop.Loop) { l.Read(start(), loop.Target{Name: "a", Replicas: 5}) },
		func(l *loop.Loop) { l.Advance(start()) },
	} {
		_, l := begun(t, loop.Config{}, "a", "b")
		n := 0
		for w := range l.Writes() {
			n++
			end(l)
			l.Wrote(w, loop.Applied)
		}
		require.Equal(t, 1, n)
	}
}

// TestRegressionAResultThatThereIsNot: it counted as Refused, so that nobody looked whether the count had been written.
func TestRegressionAResultThatThereIsNot(t *testing.T) {
	g, l := begun(t, loop.Config{}, "a")
	for w := range l.Writes() {
		l.Wrote(w, 77)
	}
	l.Advance(start())
	l.Saved(nil)
	l.Read(start(), loop.Target{Name: "a", Replicas: 5, Version: "2"})
	require.Equal(t, 1, g.told)
}

// TestRegressionARoundIsAdvancedOnce: a second Advance told the group of the same change again, at a later time.
func TestRegressionARoundIsAdvancedOnce(t *testing.T) {
	g, l := begun(t, loop.Config{}, "a")
	for w := range l.Writes() {
		l.Wrote(w, loop.Applied)
	}
	for range 2 {
		l.Advance(start())
		l.Saved(nil)
	}
	require.Equal(t, 1, g.told)
}

// TestRegressionCountsBelowZeroAreTakenBack: what the Loop had stored for them was refused after a restart.
func TestRegressionCountsBelowZeroAreTakenBack(t *testing.T) {
	for _, counts := range [][2]int32{{-5, 5}, {5, -5}} {
		l := loopOf(t, &wants{to: counts[1]}, loop.Config{})
		require.NoError(t, l.Restore(nil))
		l.Read(start(), loop.Target{Name: "a", Replicas: counts[0]})
		stored := l.Decide(start(), scaling.GroupObservation{}).Store
		again := loopOf(t, &wants{}, loop.Config{})
		require.NoError(t, again.Restore(stored), "%s", stored)
	}
}

// unstorable is a group whose state has no place in JSON once it has decided.
type unstorable struct {
	wants

	decided bool
}

func (g *unstorable) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	g.decided = true
	return g.wants.Decide(now, obs)
}

func (g *unstorable) MarshalJSON() ([]byte, error) {
	if g.decided {
		return nil, errors.New("no state")
	}
	return []byte("0"), nil
}

// TestRegressionNothingIsWrittenWithoutAState: a caller that reported Saved all the same was given the writes, which nothing had been stored
// for.
func TestRegressionNothingIsWrittenWithoutAState(t *testing.T) {
	l := loopOf(t, &unstorable{wants: wants{to: 5}}, loop.Config{})
	require.NoError(t, l.Restore(nil))
	l.Read(start(), loop.Target{Name: "a", Replicas: 1})
	require.EqualError(t, l.Decide(start(), scaling.GroupObservation{}).Err, "no state")
	l.Saved(nil)
	for w := range l.Writes() {
		t.Error(w)
	}
}
