package wva_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/wva"
)

// TestTie: threshold 0.8 and trigger 0.1, at 0.7 on average and next to it.
func TestTie(t *testing.T) {
	for _, c := range []struct {
		loads           []float64
		short, safe, ok bool
	}{
		{[]float64{0.7}, false, false, true},
		{[]float64{0.7000000000000001}, true, false, true},
		{[]float64{0.35, 0.35}, false, true, true},
		{[]float64{0.7, 1e-16}, false, false, true},
		{[]float64{0.75, -0.05}, false, true, true},
		{[]float64{0.7, math.NaN()}, false, false, false},
		{[]float64{math.Inf(-1)}, false, false, false},
	} {
		short, safe, ok := wva.Tie(0.8, 0.1, slices.Values(c.loads))
		require.Equal(t, []bool{c.short, c.safe, c.ok}, []bool{short, safe, ok}, "%v", c.loads)
	}
}
