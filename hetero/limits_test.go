package hetero_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
)

// TestLimits builds and asks the largest fleets there may be, at rates of every sort: no overflow, no long loop, no
// more memory than the runs take.
func TestLimits(t *testing.T) {
	most := hetero.MaxTypes
	if raceEnabled {
		most /= 10
	}
	for _, s := range []struct {
		types int
		rate  float64
	}{
		{most, 0},
		{most, 1},
		{most, 2},
		{most, 1e9},
		{most, math.MaxFloat64},
		{1_000, 1.001},             // a thousand runs a type
		{10, math.Nextafter(1, 2)}, // a million unit batches a type, one run
		{most, 1 + 1e-6},           // 850,000 batches a type, two runs
	} {
		t.Run(fmt.Sprintf("types=%d/rate=%v", s.types, s.rate), func(t *testing.T) {
			f := largest(t, s.types, s.rate)
			require.LessOrEqual(t, f.Kept(), 1<<21)
			require.NotZero(t, f.Kept())
			checkLarge(t, f, s.types)
		})
	}
}

// TestTooManyRunsToKeep: a rate at which every type has a thousand runs, so that the sequence of all would take a
// gigabyte. It keeps one level of them and searches in it.
func TestTooManyRunsToKeep(t *testing.T) {
	types := hetero.MaxTypes
	if testing.Short() || raceEnabled {
		types = 4_000
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f := largest(t, types, 1.001)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Equal(t, 1, f.Kept())
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(40<<20), "memory in proportion to the types")
	began := time.Now()
	checkLarge(t, f, types)
	t.Logf("%d types: six answers in %v", types, time.Since(began))

	n := 0
	cost := 0.0
	for b := range f.Batches() { // lazily: the first of a hundred million
		require.GreaterOrEqual(t, b.Cost, cost*(1-1e-13))
		cost = b.Cost
		if n++; n == 1000 {
			break
		}
	}
	require.Equal(t, 1000, n)
}

// largest returns a fleet of types with the greatest capacity. Costs are prime to each other in part, so that many
// batches tie and many do not.
func largest(t *testing.T, types int, rate float64) *hetero.Fleet {
	t.Helper()
	c := hetero.Config{ExpansionRate: rate, Types: make([]hetero.Type, types)}
	for i := range c.Types {
		c.Types[i] = hetero.Type{Name: fmt.Sprintf("type-%06d", i*7919%types), Cost: float64(1+i%997) / 7, Max: hetero.MaxReplicas}
	}
	return fleetFrom(t, c)
}

// checkLarge asks a fleet without minima for totals all over its range.
func checkLarge(t *testing.T, f *hetero.Fleet, types int) {
	t.Helper()
	least, most := f.Totals()
	require.Zero(t, least)
	require.Equal(t, int64(types)*hetero.MaxReplicas, most)
	var counts, more []int32
	for _, k := range []int64{math.MinInt64, most / 3, math.MaxInt64} {
		counts = f.Allocate(counts, k)
		within := max(least, min(k, most))
		require.Equal(t, within, hetero.Sum(counts), "the total at %d", k)
		if within == most {
			continue
		}
		more = f.Allocate(more, within+1)
		starts, stops := hetero.Moves(counts, more)
		require.True(t, starts == 1 && stops == 0, "one replica more at %d", k)
		margin := f.Margin(within)
		for i, kind := range f.Types() {
			// A type whose next replica were in a unit batch below the margin would have been given it.
			require.False(t, counts[i] == 0 && kind.Cost < margin*(1-1e-9), "type %d", i)
		}
	}
	cost := f.Cost(counts)
	require.True(t, cost > 0 && !math.IsInf(cost, 0))
}
