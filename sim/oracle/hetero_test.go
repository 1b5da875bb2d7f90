package oracle_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/sim/oracle"
)

// placements tries every placement of a fleet and returns the least cost that covers a demand, or that of the maxima.
func placements(types []hetero.Type, demand float64) float64 {
	best := math.Inf(1)
	var most float64
	var try func(i int, weight, cost float64)
	try = func(i int, weight, cost float64) {
		if i == len(types) {
			most = max(most, cost)
			if weight >= demand {
				best = min(best, cost)
			}
			return
		}
		for n := types[i].Min; n <= types[i].Max; n++ {
			try(i+1, weight+float64(n)*types[i].Weight, cost+float64(n)*types[i].Cost)
		}
	}
	try(0, 0, 0)
	if math.IsInf(best, 1) {
		return most
	}
	return best
}

func TestHeteroTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var types []hetero.Type
		for i := range rapid.IntRange(1, 3).Draw(t, "types") {
			least := rapid.Int32Range(0, 2).Draw(t, "min")
			types = append(types, hetero.Type{
				Name: fmt.Sprint("type-", i), Min: least, Max: least + rapid.Int32Range(1, 4).Draw(t, "more"),
				Cost:   float64(rapid.IntRange(1, 9).Draw(t, "cost")),
				Weight: float64(rapid.IntRange(1, 5).Draw(t, "weight")),
			})
		}
		f, err := hetero.New(hetero.Config{Types: types, ExpansionRate: 2})
		require.NoError(t, err)
		var demands []float64
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			demands = append(demands, float64(rapid.IntRange(0, 60).Draw(t, "demand")))
		}
		p, err := oracle.Hetero(f, demands)
		require.NoError(t, err)
		require.Len(t, p.Counts, len(demands))
		sum, starts, stops := 0.0, int64(0), int64(0)
		for i, demand := range demands {
			require.InDelta(t, placements(types, demand), p.Costs[i], 1e-9, "step %d", i)
			require.InDelta(t, f.Cost(p.Counts[i]), p.Costs[i], 1e-9)
			sum += p.Costs[i]
			starts += p.Starts[i]
			stops += p.Stops[i]
		}
		require.InDelta(t, sum, p.Cost, 1e-9)
		require.LessOrEqual(t, p.Cost, p.Comparison.SequenceCost+1e-9)
		require.Equal(t, p.Comparison.OptimalStarts, starts)
		require.Equal(t, p.Comparison.OptimalStops, stops)
		if len(demands) > 1 {
			require.InDelta(t, float64(starts+stops)/float64(len(demands)-1), p.Churn(), 1e-9)
		} else {
			require.Zero(t, p.Churn())
		}
	})
}

func TestHeteroErrors(t *testing.T) {
	_, err := oracle.Hetero(nil, nil)
	require.ErrorContains(t, err, "fleet: ")
	f, err := hetero.New(hetero.Config{ExpansionRate: 2, Types: []hetero.Type{{Name: "a", Max: 9, Cost: 1, Weight: math.Pi}}})
	require.NoError(t, err)
	_, err = oracle.Hetero(f, []float64{4})
	require.ErrorIs(t, err, oracle.ErrWeights)
}
