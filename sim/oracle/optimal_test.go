package oracle_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scalingtest"
	"github.com/inferscale/inferscale/sim/oracle"
)

func fleet(t require.TestingT, rate float64, types ...hetero.Type) *hetero.Fleet {
	f, err := hetero.New(hetero.Config{Types: types, ExpansionRate: rate})
	require.NoError(t, err)
	return f
}

// compare returns the comparison of a walk.
func compare(t require.TestingT, f *hetero.Fleet, demands []float64) oracle.Comparison {
	p, err := oracle.Hetero(f, demands)
	require.NoError(t, err)
	return p.Comparison
}

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
			c := compare(t, fleet(t, rate, w.types...), day())
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
	a, err := oracle.Optimal(nil, f, 5)
	require.NoError(t, err)
	b, err := oracle.Optimal(nil, f, 6)
	require.NoError(t, err)
	require.Equal(t, [][]int32{{0, 2}, {1, 0}}, [][]int32{a, b})
	starts, stops := hetero.Moves(f.AllocateFor(nil, 5), f.AllocateFor(nil, 6))
	require.True(t, starts == 1 && stops == 0)

	c := compare(t, f, []float64{5, 6, 5, 6, 5})
	require.Equal(t, oracle.Comparison{
		Steps: 5, SequenceCost: 6 + 9 + 6 + 9 + 6, OptimalCost: 6 + 7 + 6 + 7 + 6,
		SequenceStarts: 2, SequenceStops: 2, OptimalStarts: 6, OptimalStops: 6,
	}, c)
	require.InDelta(t, 4.0/32, c.Premium(), 1e-12)
	require.EqualValues(t, 4, c.SavedStarts())
	require.Zero(t, oracle.Comparison{}.Premium())
}

func TestOptimalErrors(t *testing.T) {
	third := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Weight: 1.0 / 3, Max: 10}, hetero.Type{Name: "b", Cost: 1, Max: 10})
	_, err := oracle.Optimal(nil, third, 5)
	require.ErrorIs(t, err, oracle.ErrWeights)
	_, err = oracle.Hetero(third, []float64{0, 5})
	require.ErrorIs(t, err, oracle.ErrWeights)
	_, err = oracle.Optimal(nil, fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Weight: 2e9, Max: 10}, hetero.Type{Name: "b", Cost: 1, Weight: 1, Max: 10}), 5)
	require.ErrorIs(t, err, oracle.ErrWeights)
	large := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Weight: 1.000001, Max: 100}, hetero.Type{Name: "b", Cost: 1, Weight: 2, Max: 100})
	_, err = oracle.Optimal(nil, large, 250)
	require.ErrorIs(t, err, oracle.ErrTooLarge)
	// What needs no table needs no unit either.
	counts, err := oracle.Optimal(nil, third, 0)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 0}, counts)
	counts, err = oracle.Optimal(nil, third, math.NaN())
	require.NoError(t, err)
	require.Equal(t, []int32{10, 10}, counts)
	counts, err = oracle.Optimal(nil, third, 1e9)
	require.NoError(t, err)
	require.Equal(t, []int32{10, 10}, counts)
	// A common unit makes the table small: thousands of units are units of a thousand.
	coarse := fleet(t, 2, hetero.Type{Name: "a", Cost: 3, Weight: 3e6, Max: 1000}, hetero.Type{Name: "b", Cost: 1, Weight: 1e6, Max: 1000})
	counts, err = oracle.Optimal(nil, coarse, 2_500_000_000)
	require.NoError(t, err)
	require.InDelta(t, 2500, coarse.Cost(counts), 0)
}

// drawFleet draws types in any order of their names, with weights in quarters.
func drawFleet(t *rapid.T, most int, capacity int32) (types []hetero.Type) {
	names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "names")
	for _, name := range names[:rapid.IntRange(1, most).Draw(t, "types")] {
		least := rapid.Int32Range(0, 4).Draw(t, "min")
		types = append(types, hetero.Type{
			Name: name, Cost: float64(rapid.IntRange(1, 24).Draw(t, "cost")),
			Min: least, Max: least + rapid.Int32Range(0, capacity).Draw(t, "capacity"),
			Weight: float64(rapid.IntRange(1, 12).Draw(t, "weight")) / 4,
		})
	}
	return types
}

func drawRate(t *rapid.T) float64 {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{0, 0.2, 1, 1.01, 1.5, 2, 3, 10, 1e9, math.MaxFloat64}), rapid.Float64Range(0, 6),
	).Draw(t, "rate")
}

func drawWork(t *rapid.T, most float64) float64 {
	demand := rapid.Float64Range(0, most).Draw(t, "demand")
	if rapid.Bool().Draw(t, "whole") {
		demand = math.Round(demand*4) / 4
	}
	return demand
}

func TestNothingIsCheaperThanTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawFleet(t, 3, 6)
		f := fleet(t, drawRate(t), types...)
		demand := drawWork(t, 60)
		counts := f.AllocateFor(nil, demand)
		optimal, err := oracle.Optimal(nil, f, demand)
		require.NoError(t, err)
		all := 0.0
		for i, k := range types {
			require.True(t, k.Min <= optimal[i] && optimal[i] <= k.Max)
			all += k.Weight * float64(k.Max)
		}
		if all < demand*(1-1e-9) { // no placement covers it: all there is
			for i, k := range types {
				require.Equal(t, k.Max, optimal[i])
				require.Equal(t, k.Max, counts[i])
			}
			return
		}
		require.GreaterOrEqual(t, f.Capability(optimal), demand*(1-1e-9), "the optimum covers")
		require.InDelta(t, placements(types, demand*(1-1e-9)), f.Cost(optimal), 1e-9, "brute force, demand %v of %+v", demand, types)
		require.GreaterOrEqual(t, f.Capability(counts), demand*(1-1e-9), "the placement covers")
		require.GreaterOrEqual(t, f.Cost(counts), f.Cost(optimal)-1e-9)
		if len(types) == 1 {
			require.Equal(t, optimal, counts, "one type leaves no choice")
		}
	})
}

func TestOrderOfTypesChangesNoOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawFleet(t, 6, 40)
		rate, demand := drawRate(t), drawWork(t, 300)
		permuted := rapid.Permutation(types).Draw(t, "permuted")
		a, err := oracle.Optimal(nil, fleet(t, rate, types...), demand)
		require.NoError(t, err)
		b, err := oracle.Optimal(nil, fleet(t, rate, permuted...), demand)
		require.NoError(t, err)
		for i, k := range permuted {
			from := slices.IndexFunc(types, func(o hetero.Type) bool { return o.Name == k.Name })
			require.Equal(t, a[from], b[i], "type %s", k.Name)
		}
	})
}

func BenchmarkOptimal(b *testing.B) {
	var types []hetero.Type
	for i := range 10 {
		types = append(types, hetero.Type{Name: fmt.Sprintf("type-%05d", i), Cost: float64(10 + i*7%100), Max: 1_000, Weight: float64(1 + i%4)})
	}
	f := fleet(b, 2, types...)
	var dst []int32
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = oracle.Optimal(dst, f, 12_345); err != nil {
			b.Fatal(err)
		}
	}
}
