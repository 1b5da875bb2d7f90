package history

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naiveAdd is the twin of mixer.add: it compares all bounds one by one.
func naiveAdd(m *Mixture, c Counted) bool {
	for i := range *m {
		into := &(*m)[i]
		if !slices.Equal(into.Bounds, c.Bounds) {
			continue
		}
		if c.Total() > 0 && (c.Sum == 0 || into.Sum == 0 && into.Total() > 0) {
			into.Sum = 0
		} else {
			into.Sum += c.Sum
		}
		for k, n := range c.Counts {
			into.Counts[k] += n
		}
		return false
	}
	*m = append(*m, Counted{Bounds: slices.Clone(c.Bounds), Counts: slices.Clone(c.Counts), Sum: c.Sum})
	return true
}

// TestMixturesAreThoseOfTheNaiveTwin, to the bit, whatever comes in which order.
func TestMixturesAreThoseOfTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x mixer
		var fast, slow [2]Mixture
		for range rapid.IntRange(1, 100).Draw(t, "histograms") {
			var c Counted
			for k := range rapid.IntRange(1, 4).Draw(t, "bounds") {
				zero := rapid.SampledFrom([]float64{0, negative(0)}).Draw(t, "zero")
				c.Bounds = append(c.Bounds, zero+float64(k)*rapid.SampledFrom([]float64{1, 0.1}).Draw(t, "bound"))
			}
			for range len(c.Bounds) + 1 {
				c.Counts = append(c.Counts, rapid.Float64Range(0, 100).Draw(t, "count"))
			}
			c.Sum = rapid.SampledFrom([]float64{0, 0.1, 1e9}).Draw(t, "sum")
			k := rapid.IntRange(0, 1).Draw(t, "mixture")
			require.Equal(t, naiveAdd(&slow[k], c), x.add(&fast[k], c))
		}
		require.Equal(t, slow, fast)
	})
}

// negative returns -x, also of 0.
func negative(x float64) float64 { return -x }

// BenchmarkManyBounds adds 4,000 histograms, each with bounds of its own, by the mixer and by its naive twin, whose time grows with the
// square of their number.
func BenchmarkManyBounds(b *testing.B) {
	for name, with := range map[string]func() func(m *Mixture, c Counted) bool{
		"mixer": func() func(m *Mixture, c Counted) bool { return new(mixer).add },
		"naive": func() func(m *Mixture, c Counted) bool { return naiveAdd },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var m Mixture
				add := with()
				for i := range 4000 {
					require.True(b, add(&m, Counted{Bounds: []float64{float64(i)}, Counts: []float64{1, 0}}))
				}
			}
		})
	}
}

// TestMeansWithinBucketsAreOfAllWithTheirBounds: histograms with equal bounds have their means in common, wherever they are.
func TestMeansWithinBucketsAreOfAllWithTheirBounds(t *testing.T) {
	all := make([]LengthsOf, 40)
	for i := range all {
		for k := range 20 {
			bounds := []float64{float64(100 + k), 1000}
			all[i].Prompts = append(all[i].Prompts, Counted{Bounds: bounds, Counts: []float64{float64(1 + i), 2, 0}, Sum: float64(50*(1+i) + 1000)})
		}
	}
	within(all, func(l *LengthsOf) Mixture { return l.Prompts })
	for k := range 20 {
		alone := make([]LengthsOf, len(all))
		for i := range all {
			c := all[i].Prompts[k]
			alone[i].Prompts = Mixture{{Bounds: c.Bounds, Counts: c.Counts, Sum: c.Sum}}
		}
		within(alone, func(l *LengthsOf) Mixture { return l.Prompts })
		for i := range all {
			require.Equal(t, alone[i].Prompts[0].Means, all[i].Prompts[k].Means)
			require.Len(t, all[i].Prompts[k].Means, 3)
		}
	}
}
