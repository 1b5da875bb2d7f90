package hetero_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scalingtest"
)

// cards are three types whose prices rise with what they serve, though not as fast.
func cards() []hetero.Type {
	return []hetero.Type{
		{Name: "h100", Cost: 98, Weight: 7, Max: 16},
		{Name: "a100", Cost: 60, Weight: 4, Max: 16},
		{Name: "l40s", Cost: 32, Weight: 2, Max: 16},
	}
}

// day is a demand that rises from 10 to 150 and falls again, five times, with ripples on the way.
func day() (demands []float64) {
	for i := range 480 {
		x := float64(i)
		demands = append(demands, math.Round(80-70*math.Cos(x*2*math.Pi/96)+6*math.Sin(x*1.7)))
	}
	return demands
}

// TestPremiumAndChurn measures what the sequence costs over the cheapest placements and how many cold starts it saves,
// for several expansion rates. docs/hetero.md quotes the table.
func TestPremiumAndChurn(t *testing.T) {
	var table strings.Builder
	walks := []struct {
		name  string
		types []hetero.Type
	}{{"weights 7, 4, 2", cards()}, {"equal weights", cards()}}
	for i := range walks[1].types {
		walks[1].types[i].Weight = 4
	}
	for _, w := range walks {
		fmt.Fprintf(&table, "%s\n%6s %9s %12s %12s\n", w.name, "rate", "premium", "cold starts", "of optimum")
		for _, rate := range []float64{1, 1.1, 1.5, 2, 3, 10} {
			c, err := fleet(t, rate, w.types...).Compare(day())
			require.NoError(t, err)
			fmt.Fprintf(&table, "%6v %8.1f%% %12d %12d\n", rate, 100*c.Premium(), c.SequenceStarts, c.OptimalStarts)
			require.GreaterOrEqual(t, c.Premium(), -1e-12)
			require.Equal(t, 480, c.Steps)
			require.Equal(t, c.OptimalStarts-c.SequenceStarts, c.SavedStarts())
			if w.name != "equal weights" {
				require.Positive(t, c.SavedStarts())
			} else if rate == 1 {
				require.InDelta(t, 0, c.Premium(), 1e-12, "with equal weights cheapest first is the optimum")
				require.Zero(t, c.SavedStarts())
			}
		}
	}
	scalingtest.Golden(t, "premium.txt", table.String())
}

// TestOptimumReplacesTheFleet is the counterexample to placing by the optimum: for one unit of demand more the
// cheapest placement has no replica in common with the one before. The sequence adds one replica.
func TestOptimumReplacesTheFleet(t *testing.T) {
	f := fleet(t, 1,
		hetero.Type{Name: "big", Cost: 7, Weight: 7, Max: 4},
		hetero.Type{Name: "small", Cost: 3, Weight: 2.5, Max: 4},
	)
	a, err := f.Optimal(nil, 5)
	require.NoError(t, err)
	b, err := f.Optimal(nil, 6)
	require.NoError(t, err)
	require.Equal(t, [][]int32{{0, 2}, {1, 0}}, [][]int32{a, b})
	starts, stops := hetero.Moves(f.AllocateFor(nil, 5), f.AllocateFor(nil, 6))
	require.True(t, starts == 1 && stops == 0)

	c, err := f.Compare([]float64{5, 6, 5, 6, 5})
	require.NoError(t, err)
	require.Equal(t, hetero.Comparison{
		Steps: 5, SequenceCost: 6 + 9 + 6 + 9 + 6, OptimalCost: 6 + 7 + 6 + 7 + 6,
		SequenceStarts: 2, SequenceStops: 2, OptimalStarts: 6, OptimalStops: 6,
	}, c)
	require.InDelta(t, 4.0/32, c.Premium(), 1e-12)
	require.EqualValues(t, 4, c.SavedStarts())
	require.Zero(t, hetero.Comparison{}.Premium())
}

// TestSequenceNeverReplaces: along any walk of the total the sequence starts what the total rises by and stops what it
// falls by, not a replica more.
func TestSequenceNeverReplaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawTypes(t, 4, 20)
		f, err := hetero.New(configOf(types, drawRate(t), 1))
		require.NoError(t, err)
		least, most := f.Totals()
		before := rapid.Int64Range(least, most).Draw(t, "before")
		after := rapid.Int64Range(least, most).Draw(t, "after")
		starts, stops := hetero.Moves(f.Allocate(nil, before), f.Allocate(nil, after))
		require.Equal(t, max(0, after-before), starts)
		require.Equal(t, max(0, before-after), stops)
	})
}

func TestOptimalErrors(t *testing.T) {
	third := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Weight: 1.0 / 3, Max: 10}, hetero.Type{Name: "b", Cost: 1, Max: 10})
	_, err := third.Optimal(nil, 5)
	require.ErrorIs(t, err, hetero.ErrWeights)
	_, err = third.Compare([]float64{0, 5})
	require.ErrorIs(t, err, hetero.ErrWeights)
	_, err = fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Weight: 2e9, Max: 10}, hetero.Type{Name: "b", Cost: 1, Weight: 1, Max: 10}).Optimal(nil, 5)
	require.ErrorIs(t, err, hetero.ErrWeights)
	large := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Weight: 1.000001, Max: 100}, hetero.Type{Name: "b", Cost: 1, Weight: 2, Max: 100})
	_, err = large.Optimal(nil, 250)
	require.ErrorIs(t, err, hetero.ErrTooLarge)
	// What needs no table needs no unit either.
	counts, err := third.Optimal(nil, 0)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 0}, counts)
	counts, err = third.Optimal(nil, math.NaN())
	require.NoError(t, err)
	require.Equal(t, []int32{10, 10}, counts)
	counts, err = third.Optimal(nil, 1e9)
	require.NoError(t, err)
	require.Equal(t, []int32{10, 10}, counts)
	// A common unit makes the table small: thousands of units are units of a thousand.
	coarse := fleet(t, 2, hetero.Type{Name: "a", Cost: 3, Weight: 3e6, Max: 1000}, hetero.Type{Name: "b", Cost: 1, Weight: 1e6, Max: 1000})
	counts, err = coarse.Optimal(nil, 2_500_000_000)
	require.NoError(t, err)
	require.InDelta(t, 2500, coarse.Cost(counts), 0)
}
