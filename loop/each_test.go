package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// twoOfEach is a group that scales two targets, each by itself.
func twoOfEach(t *testing.T) scaling.Group {
	t.Helper()
	s, err := realtime.New(realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "q", High: 10, Low: 2}))
	require.NoError(t, err)
	return scaling.Each(scaling.New(s), scaling.New(s))
}

// TestTheBareStateOfEachIsTaken, which is a list.
func TestTheBareStateOfEachIsTaken(t *testing.T) {
	bare, err := twoOfEach(t).MarshalJSON()
	require.NoError(t, err)
	l := loopOf(t, twoOfEach(t), loop.Config{})
	require.NoError(t, l.Restore(bare))
}

// TestEachRefusesNoState: without one it holds, as after any state that it refuses.
func TestEachRefusesNoState(t *testing.T) {
	g := twoOfEach(t)
	require.Error(t, g.UnmarshalJSON(nil))
	d := g.Decide(time.Unix(1e9, 0), scaling.GroupObservation{Targets: []scaling.TargetObservation{{SpecReplicas: 20}, {SpecReplicas: 2}}})
	require.False(t, d.Acts(), "%s", d.Targets[0].Reason())
}

// TestTargetsWithoutNamesAreToldApart, by their places: they were taken for one, so that their writes looked like those of somebody who
// takes them back, and after three of them neither was written for minutes.
func TestTargetsWithoutNamesAreToldApart(t *testing.T) {
	for _, names := range [][2]string{{"", ""}, {"role", "role"}} {
		l := loopOf(t, scaling.Each(scaling.New(stepper{}), scaling.New(stepper{})), loop.Config{})
		require.NoError(t, l.Restore(nil))
		counts := [2]int32{3, 5}
		for now := start(); now.Before(start().Add(3 * cooldown)); now = now.Add(15 * time.Second) {
			seen := l.Read(now, loop.Target{Name: names[0], Replicas: counts[0]}, loop.Target{Name: names[1], Replicas: counts[1]})
			require.Empty(t, seen.Contended)
			if step := l.Decide(now, loaded(20)); step.Store != nil {
				l.Saved(nil)
			}
			for w := range l.Writes() {
				counts[w.Index] = w.To
				l.Wrote(w, loop.Applied)
			}
			if store, _ := l.Advance(now); store != nil {
				l.Saved(nil)
			}
		}
		require.Equal(t, [2]int32{6, 8}, counts)
	}
}

// TestRegressionAtomicIsForOneTarget: of two, the group was told that both had been written when the first was.
func TestRegressionAtomicIsForOneTarget(t *testing.T) {
	l := loopOf(t, scaling.Each(scaling.New(stepper{}), scaling.New(stepper{})), loop.Config{Atomic: true})
	require.NoError(t, l.Restore(nil))
	l.Read(start(), loop.Target{Name: "a", Replicas: 3}, loop.Target{Name: "b", Replicas: 5})
	step := l.Decide(start(), loaded(20))
	require.EqualError(t, step.Err, "atomic: true: must not be set for 2 targets: one update cannot write them all")
	require.False(t, step.Acts())
	for w := range l.Writes() {
		require.Fail(t, "written", "%v", w)
	}
	store, again := l.Advance(start())
	require.Nil(t, store)
	require.False(t, again)
}
