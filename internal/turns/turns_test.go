package turns_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/turns"
)

// TestTenantsThatAlwaysWaitGetEqualWork: whatever a job is, no tenant is ahead of another by more than one job.
func TestTenantsThatAlwaysWaitGetEqualWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q turns.Queue[int]
		tenants := rapid.IntRange(1, turns.Most).Draw(t, "tenants")
		done := make(map[string]float64)
		for i := range tenants {
			q.Put(strconv.Itoa(i), i)
			done[strconv.Itoa(i)] = 0
		}
		for range 5 * tenants {
			tenant, j, ok := q.Take()
			require.True(t, ok)
			for _, n := range done {
				require.LessOrEqual(t, done[tenant], n)
			}
			work := rapid.Float64Range(1, 1000).Draw(t, "work")
			q.Did(tenant, work)
			done[tenant] += work
			_, replaces, ok := q.Room(tenant)
			require.True(t, ok)
			require.False(t, replaces)
			q.Put(tenant, j)
		}
	})
}

// TestRoomIsShared: in any order no more than Most wait, and nobody without an equal part is refused.
func TestRoomIsShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q turns.Queue[string]
		waiting := make(map[string]int)
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			if tenant, j, ok := q.Take(); ok && rapid.IntRange(0, 3).Draw(t, "take") > 0 {
				require.Equal(t, tenant, j)
				waiting[tenant]--
			} else if ok {
				q.Put(tenant, j)
			}
			tenant := strconv.Itoa(rapid.IntRange(0, 40).Draw(t, "tenant"))
			dropped, replaces, ok := q.Room(tenant)
			if replaces {
				require.NotEqual(t, tenant, dropped)
				waiting[dropped]--
			}
			if ok {
				q.Put(tenant, tenant)
				waiting[tenant]++
			} else {
				require.Equal(t, turns.Most, q.Len())
			}
			require.LessOrEqual(t, q.Len(), turns.Most)
			require.Equal(t, waiting[tenant], q.Of(tenant))
		}
	})
}

// TestRegressionWhatWasDoneBeforeNobodyWaited: the work of a tenant that came once was kept for ever, since no tenant that is served later
// begins with more. And a tenant for which much had been done waited until as much had been done for one that came much later.
func TestRegressionWhatWasDoneBeforeNobodyWaited(t *testing.T) {
	var q turns.Queue[int]
	for i := range 1000 {
		tenant := strconv.Itoa(i)
		q.Put(tenant, i)
		got, _, ok := q.Take()
		require.True(t, ok)
		require.Equal(t, tenant, got)
		q.Did(tenant, 1000)
		_, _, ok = q.Take()
		require.False(t, ok)
	}
	require.Zero(t, q.Known())

	q.Put("b", 0)
	_, _, _ = q.Take()
	q.Did("b", 1e6)
	_, _, ok := q.Take()
	require.False(t, ok)
	for i := range 20 {
		q.Put("a", i)
	}
	q.Put("b", 0)
	for i, want := range []string{"a", "b", "a"} {
		tenant, _, ok := q.Take()
		require.True(t, ok)
		require.Equal(t, want, tenant, "turn %d", i)
		q.Did(tenant, 1000)
	}
}
