package scaling_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

func ExampleFromPods() {
	// Three pods answered, one of them with nonsense; one is starting, one did not answer in time.
	r := scaling.FromPods("queue", []float64{4, 8, math.NaN()}, 1, 1, 10)
	fmt.Printf("%g to %g of %d values, %d not ready, %d failed\n", r.Lower, r.Upper, r.Values, r.NotReady, r.Failed)
	// Output:
	// 2.4 to 8.4 of 2 values, 1 not ready, 2 failed
}

func TestFromPods(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, row := range map[string]struct {
		values           []float64
		notReady, failed int32
		fill             float64
		want             scaling.Reading // without the name
	}{
		"all answered":           {[]float64{2, 4}, 0, 0, 10, scaling.Reading{Lower: 3, Upper: 3, Values: 2}},
		"one is missing":         {[]float64{2, 4}, 1, 0, 9, scaling.Reading{Lower: 2, Upper: 5, Values: 2, NotReady: 1}},
		"no fill is no limit":    {[]float64{2, 4}, 0, 1, 0, scaling.Reading{Lower: 2, Upper: inf, Values: 2, Failed: 1}},
		"nor is an infinite one": {[]float64{2, 4}, 0, 1, inf, scaling.Reading{Lower: 2, Upper: inf, Values: 2, Failed: 1}},
		"no fill is needed":      {[]float64{2, 4}, 0, 0, 0, scaling.Reading{Lower: 3, Upper: 3, Values: 2}},
		"a fill below the mean":  {[]float64{8, 8}, 0, 2, 2, scaling.Reading{Lower: 4, Upper: 5, Values: 2, Failed: 2}},
		"nonsense is missing":    {[]float64{6, nan, inf, -inf, -1}, 0, 1, 12, scaling.Reading{Lower: 1, Upper: 11, Values: 1, Failed: 5}},
		"no pod":                 {nil, 0, 0, 10, scaling.Reading{}},
		"no value":               {[]float64{nan}, 2, 1, 10, scaling.Reading{NotReady: 2, Failed: 2}},
		"a negative count":       {[]float64{1}, -1, 0, 10, scaling.Reading{NotReady: -1}},
		"another":                {[]float64{1}, 0, -1, 10, scaling.Reading{Failed: -1}},
		"a negative fill":        {[]float64{1}, 0, 0, -1, scaling.Reading{}},
		"a fill that is none":    {[]float64{1}, 0, 0, nan, scaling.Reading{}},
		"a sum that overflows":   {[]float64{math.MaxFloat64, math.MaxFloat64}, 0, 0, 1, scaling.Reading{}},
		"the least number":       {[]float64{5e-324, 0}, 0, 0, 1, scaling.Reading{Values: 2}},
		"counts that saturate":   {[]float64{1, nan}, math.MaxInt32, math.MaxInt32, 1, scaling.Reading{Lower: 1 / 4294967296.0, Upper: 1, Values: 1, NotReady: math.MaxInt32, Failed: math.MaxInt32}},
	} {
		row.want.Metric = "queue"
		got := scaling.FromPods("queue", row.values, row.notReady, row.failed, row.fill)
		require.Equal(t, row.want, got, name)
		require.Equal(t, row.want.Values > 0, got.Known(), name)
	}
}

// TestFromPodsHoldsEveryCompletion: whatever the missing pods have, up to the fill, the mean of all is in the interval;
// and the order of the pods changes no bit of it.
func TestFromPodsHoldsEveryCompletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fill := rapid.Float64Range(0.1, 100).Draw(t, "fill")
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 20).Draw(t, "values")
		missing := rapid.SliceOfN(rapid.Float64Range(0, fill), 0, 5).Draw(t, "missing")
		notReady := rapid.IntRange(0, len(missing)).Draw(t, "not ready")
		r := scaling.FromPods("queue", values, int32(notReady), int32(len(missing)-notReady), fill)
		require.True(t, r.Known())
		all := scaling.FromPods("queue", append(append([]float64{}, values...), missing...), 0, 0, fill)
		require.False(t, scaling.Exceeds(r.Lower, all.Lower), "%v %v", r, all)
		require.False(t, scaling.Exceeds(all.Upper, r.Upper), "%v %v", r, all)
		require.Equal(t, r, scaling.FromPods("queue", rapid.Permutation(values).Draw(t, "order"), int32(notReady), int32(len(missing)-notReady), fill))
	})
}
