package hetero_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
)

// FuzzAllocate: whatever the numbers, a fleet is refused, or both of its ways give the same placements, which add up.
func FuzzAllocate(f *testing.F) {
	f.Add(2.0, 10.0, 20.0, 30.0, int32(0), int32(10), int32(3), int32(8), int32(5), int32(5), int64(12), 14.5)
	f.Add(1.0001, 0.1, 0.3, 1e-300, int32(0), int32(1000000), int32(0), int32(1000000), int32(0), int32(7), int64(1500000), 1e6)
	f.Add(1e308, 5e-324, 1e290, 1.0, int32(1), int32(1), int32(0), int32(2), int32(0), int32(0), int64(math.MaxInt64), math.Inf(1))
	f.Add(math.NaN(), -1.0, math.Inf(1), math.NaN(), int32(-1), int32(-2), int32(math.MinInt32), int32(math.MaxInt32), int32(2), int32(1), int64(math.MinInt64), math.NaN())
	f.Fuzz(func(t *testing.T, rate, costA, costB, costC float64, minA, maxA, minB, maxB, minC, maxC int32, total int64, demand float64) {
		c := hetero.Config{ExpansionRate: rate, Types: []hetero.Type{
			{Name: "b", Cost: costB, Min: minB, Max: maxB, Weight: 2},
			{Name: "a", Cost: costA, Min: minA, Max: maxA},
			{Name: "c", Cost: costC, Min: minC, Max: maxC, Weight: 0.5},
		}}
		kept, err := hetero.New(c)
		if err != nil {
			require.NotEmpty(t, fieldsOf(err), "%v", err)
			return
		}
		searching, err := hetero.NewSearching(c)
		require.NoError(t, err)
		least, most := kept.Totals()
		counts := kept.Allocate(nil, total)
		within := max(least, min(total, most))
		require.Equal(t, within, hetero.Sum(counts), "the total")
		require.Equal(t, counts, searching.Allocate(nil, total))
		require.Equal(t, kept.AllocateFor(nil, demand), searching.AllocateFor(nil, demand))
		for i, k := range c.Types {
			require.True(t, k.Min <= counts[i] && counts[i] <= k.Max, "within the bounds")
		}
		if within < most {
			more := kept.Allocate(nil, within+1)
			starts, stops := hetero.Moves(counts, more)
			require.True(t, starts == 1 && stops == 0, "one place more is one replica more of one type")
			require.Equal(t, more, searching.Allocate(nil, within+1))
		}
		n := int64(0)
		for b := range searching.Batches() {
			n += int64(b.Size) * int64(b.Count)
		}
		require.Equal(t, most-least, n, "length")
	})
}
