package lengths_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/lengths"
	"github.com/inferscale/inferscale/internal/splitmix"
)

// TestTailsOfBuckets: uniform logarithms within vLLM's buckets have 10 % and more too many squares; on the slope of the buckets beside it is 3 % at most.
func TestTailsOfBuckets(t *testing.T) {
	var bounds []float64
	for _, power := range []float64{1, 10, 100, 1000, 10000} {
		bounds = append(bounds, power, 2*power, 5*power)
	}
	for _, shape := range []struct{ median, sigma float64 }{{250, 0.9}, {900, 1.1}, {2000, 0.6}} {
		random := splitmix.Stream{State: 3}
		counts := make([]float64, len(bounds)+1)
		sum, squares := 0.0, 0.0
		const n = 100_000
		for range n {
			x := math.Ceil(shape.median * math.Exp(shape.sigma*math.Sqrt(2*random.Exponential())*math.Cos(2*math.Pi*random.Uniform())))
			k, _ := slices.BinarySearch(bounds, x)
			counts[k]++
			sum += x
			squares += x * x
		}
		moments := func(d lengths.Drawer) (mean, square float64) {
			for i := range n {
				x := float64(d.At((float64(i) + 0.5) / n))
				mean += x
				square += x * x
			}
			return mean, square
		}
		mean, square := moments(lengths.Sloped(bounds, counts, sum, nil))
		require.InEpsilon(t, sum, mean, 0.01)
		require.InEpsilon(t, squares, square, 0.03)
		mean, plain := moments(lengths.Of(bounds, counts, sum))
		require.InEpsilon(t, sum, mean, 0.01)
		require.Greater(t, plain, square)
	}
}

// TestSharesRise: a larger share is never a shorter length, every length is within its bucket, and empty buckets have none.
func TestSharesRise(t *testing.T) {
	for _, counts := range [][]float64{{0, 10, 0, 0}, {3, 0, 9, 0}, {0, 0, 0, 4}, {1, 100, 1e6, 1}, {5, 0, 0, 5}} {
		d := lengths.Sloped([]float64{1, 10, 100}, counts, 0, nil)
		before := int32(0)
		for i := range 1001 {
			x := d.At(float64(i) / 1000)
			require.GreaterOrEqual(t, x, before)
			require.LessOrEqual(t, x, int32(200))
			before = x
		}
	}
}

// TestRegressionEndsThatAreFarApart: between 1 and 1e308 the drawn length was the least int32.
func TestRegressionEndsThatAreFarApart(t *testing.T) {
	for _, d := range []lengths.Drawer{
		lengths.Of([]float64{1, 1e308}, []float64{1, 5, 3}, 1e3), lengths.Sloped([]float64{1, 1e308}, []float64{1, 5, 3}, 1e3, nil),
	} {
		for i := range 1001 {
			require.GreaterOrEqual(t, d.At(float64(i)/1000), int32(1))
		}
	}
}
