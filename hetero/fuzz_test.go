package hetero_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
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
		require.Equal(t, within, hetero.Sum(counts), "H3")
		require.Equal(t, counts, searching.Allocate(nil, total))
		require.Equal(t, kept.AllocateFor(nil, demand), searching.AllocateFor(nil, demand))
		for i, k := range c.Types {
			require.True(t, k.Min <= counts[i] && counts[i] <= k.Max, "H4")
		}
		if within < most {
			more := kept.Allocate(nil, within+1)
			starts, stops := hetero.Moves(counts, more)
			require.True(t, starts == 1 && stops == 0, "H2")
			require.Equal(t, more, searching.Allocate(nil, within+1))
		}
		n := int64(0)
		for b := range searching.Batches() {
			n += int64(b.Size) * int64(b.Count)
		}
		require.Equal(t, most-least, n, "H1")
	})
}

// FuzzRatio: whatever the texts and numbers, a range is refused, or its projection is the nearest feasible pair.
func FuzzRatio(f *testing.F) {
	f.Add("0.25", "1", uint8(0), uint8(8), uint8(0), uint8(16), int32(6), int32(2))
	f.Add("1/2", "0.5", uint8(1), uint8(10), uint8(1), uint8(10), int32(1), int32(5))
	f.Add("0.55", "0.8", uint8(1), uint8(10), uint8(1), uint8(10), int32(1), int32(1))
	f.Add("999999999999/1000000000000", "1", uint8(0), uint8(40), uint8(3), uint8(40), int32(math.MaxInt32), int32(math.MinInt32))
	f.Add("1e-12", "1e12", uint8(0), uint8(0), uint8(9), uint8(3), int32(0), int32(0))
	f.Fuzz(func(t *testing.T, low, high string, minP, maxP, minD, maxD uint8, prefill, decode int32) {
		c := hetero.RatioConfig{
			Prefill: scaling.Bounds{Min: int32(minP % 64), Max: int32(maxP % 64)},
			Decode:  scaling.Bounds{Min: int32(minD % 64), Max: int32(maxD % 64)},
		}
		for text, fraction := range map[*string]*hetero.Fraction{&low: &c.Min, &high: &c.Max} {
			parsed, err := hetero.ParseFraction(*text)
			if err != nil {
				return
			}
			again, err := hetero.ParseFraction(parsed.String())
			require.NoError(t, err)
			require.Equal(t, parsed, again)
			*fraction = parsed
		}
		r, err := hetero.NewRatio(c)
		if err != nil {
			require.NotEmpty(t, fieldsOf(err), "%v", err)
			return
		}
		p, d := r.Project(prefill, decode)
		require.True(t, inRange(c, p, d), "%d/%d of %+v", p, d, c)
		wantP, wantD := nearest(t, c, prefill, decode)
		require.Equal(t, [2]int32{wantP, wantD}, [2]int32{p, d}, "%d/%d of %+v", prefill, decode, c)
	})
}
