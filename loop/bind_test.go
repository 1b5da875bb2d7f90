package loop

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// TestSubjectsAreFoundAsByLookingAtAll compares the index with a search through all subjects.
func TestSubjectsAreFoundAsByLookingAtAll(t *testing.T) {
	name := rapid.SampledFrom([]string{"", "a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		subjects := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) subject {
			return subject{Key: name.Draw(t, "key"), ID: name.Draw(t, "id")}
		}), 0, 6).Draw(t, "subjects")
		target := Target{Key: name.Draw(t, "key"), ID: name.Draw(t, "id"), Missing: rapid.Bool().Draw(t, "missing")}
		index := indexed(subjects)
		require.Equal(t, slices.IndexFunc(subjects, func(s subject) bool { return s.about(&target) }), index.of(&target))
	})
}

// TestTheFirstSubjectOfATarget: a key without an ID before the ID, and the ID before such a key.
func TestTheFirstSubjectOfATarget(t *testing.T) {
	target := Target{Key: "a", ID: "x"}
	for _, row := range []struct {
		subjects []subject
		first    int
	}{
		{[]subject{{"a", ""}, {"b", "x"}}, 0},
		{[]subject{{"a", "y"}, {"b", "x"}, {"a", ""}}, 1},
		{[]subject{{"c", "x"}, {"c", "z"}, {"a", ""}, {"a", ""}}, 0},
	} {
		index := indexed(row.subjects)
		require.Equal(t, row.first, index.of(&target), row.subjects)
	}
}

// TestWhatATargetInAnotherOrderKeeps: its write, and one that is missing its name. A write to one that was made anew is forgotten.
func TestWhatATargetInAnotherOrderKeeps(t *testing.T) {
	l, err := New(idle{}, Config{Volatile: true})
	require.NoError(t, err)
	bind := func(targets ...Target) (anew bool) {
		l.targets = targets
		return l.bind()
	}
	a, b, c := Target{Key: "a", ID: "1"}, Target{Key: "b", ID: "2"}, Target{Key: "c", ID: "3"}
	require.False(t, bind(a, b))
	l.wrote = map[string]intent{"a": {}, "b": {}}
	b.Missing = true
	require.False(t, bind(c, b, a))
	require.Equal(t, []subject{{"c", "3"}, {"b", "2"}, {"a", "1"}}, l.memory.Targets)
	require.Len(t, l.wrote, 2)
	a.ID, b.Missing = "4", false
	require.False(t, bind(b, a))
	require.Contains(t, l.wrote, "b")
	require.NotContains(t, l.wrote, "a")
	require.False(t, bind(b, c), "the first is the same")
	require.True(t, bind(Target{Key: "d", ID: "5"}))
}

// idle is a group that does nothing.
type idle struct{}

func (idle) Decide(time.Time, scaling.GroupObservation) scaling.GroupDecision {
	return scaling.GroupDecision{}
}
func (idle) Applied(time.Time, []int32, []int32) {}
func (idle) MarshalJSON() ([]byte, error)        { return []byte("0"), nil }
func (idle) UnmarshalJSON([]byte) error          { return nil }

// TestRegressionTargetsInAnotherOrder: each was looked for among all, which took 6 s for 50,000.
func TestRegressionTargetsInAnotherOrder(t *testing.T) {
	l, err := New(idle{}, Config{Volatile: true})
	require.NoError(t, err)
	targets := make([]Target, 50_000)
	for i := range targets {
		targets[i] = Target{Name: "t" + strconv.Itoa(i), ID: "id" + strconv.Itoa(i)}
	}
	now := time.Unix(1_700_000_000, 0)
	l.Read(now, targets...)
	slices.Reverse(targets)
	began := time.Now()
	require.False(t, l.Read(now, targets...).Anew)
	require.Less(t, time.Since(began), 2*time.Second)
	require.Zero(t, testing.AllocsPerRun(10, func() { l.bind() }), "they are in the same order now")
}
