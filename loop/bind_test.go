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
