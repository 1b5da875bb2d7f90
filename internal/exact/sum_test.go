package exact

import (
	"math"
	"math/big"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naive is the sum by arbitrary precision: 2,300 bits hold every sum of the terms drawn here without rounding.
func naive(terms []float64) float64 {
	sum := new(big.Float).SetPrec(2300)
	for _, x := range terms {
		sum.Add(sum, new(big.Float).SetPrec(2300).SetFloat64(x))
	}
	v, _ := sum.Float64()
	return v + 0 // big.Float keeps the sign of zero
}

func sumOf(terms []float64) float64 {
	var s Sum
	for _, x := range terms {
		s.Add(x)
	}
	return s.Value()
}

func anyFinite() *rapid.Generator[float64] {
	return rapid.Custom(func(t *rapid.T) float64 {
		x := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return rapid.SampledFrom([]float64{0, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022}).Draw(t, "edge")
		}
		return x
	})
}

func TestSumIsTheRoundedSumOfBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOfN(rapid.OneOf(anyFinite(), rapid.Float64Range(-1e3, 1e3)), 0, 40).Draw(t, "terms")
		// Cancelling pairs leave only what rounding would have lost.
		for _, x := range terms[:len(terms)/2] {
			terms = append(terms, -x)
		}
		require.Equal(t, naive(terms), sumOf(terms), "%v", terms)
	})
}

func TestSumDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOfN(anyFinite(), 1, 40).Draw(t, "terms")
		shuffled := rapid.Permutation(terms).Draw(t, "shuffled")
		require.Equal(t, math.Float64bits(sumOf(terms)), math.Float64bits(sumOf(shuffled)))
	})
}

func TestSumEdges(t *testing.T) {
	inf := math.Inf(1)
	for _, row := range []struct {
		name  string
		terms []float64
		want  float64
	}{
		{"empty", nil, 0},
		{"negative zero", []float64{math.Copysign(0, -1)}, 0},
		{"plain addition gives 0.6000000000000001", []float64{0.1, 0.2, 0.3}, 0.6},
		{"lost by plain addition", []float64{1, 1e100, 1, -1e100}, 2},
		{"tie to even, down", []float64{1, 0x1p-53}, 1},
		{"tie to even, up", []float64{1 + 0x1p-52, 0x1p-53}, 1 + 0x1p-51},
		{"above the tie by the least bit", []float64{1, 0x1p-53, math.SmallestNonzeroFloat64}, 1 + 0x1p-52},
		{"rounding carries into the next binade", []float64{0x1p53 - 1, 0.5}, 0x1p53},
		{"subnormal", []float64{math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64}, 2 * math.SmallestNonzeroFloat64},
		{"subnormals become normal", []float64{0x1p-1023, 0x1p-1023}, 0x1p-1022},
		{"overflow", []float64{math.MaxFloat64, math.MaxFloat64}, inf},
		{"overflow, negative", []float64{-math.MaxFloat64, -math.MaxFloat64}, -inf},
		{"back from overflow", []float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}, math.MaxFloat64},
		{"infinity", []float64{1, inf}, inf},
		{"least below zero", []float64{-math.SmallestNonzeroFloat64}, -math.SmallestNonzeroFloat64},
		{"crossing zero", []float64{1, -3, 1}, -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, math.Float64bits(row.want), math.Float64bits(sumOf(row.terms)))
		})
	}
	require.True(t, math.IsNaN(sumOf([]float64{inf, -inf})))
	require.True(t, math.IsNaN(sumOf([]float64{math.NaN(), 1})))
}

// TestTiesAtEveryBit: 2^k + 2^(k-53) is halfway to the next float64, and any bit below it decides.
func TestTiesAtEveryBit(t *testing.T) {
	for k := -1000; k <= 1023; k += 7 {
		one := math.Ldexp(1, k)
		tie := []float64{one, math.Ldexp(1, k-53)}
		require.Equal(t, one, sumOf(tie), "2^%d", k)
		for low := k - 54; low >= -1074; low -= 5 {
			if got := sumOf([]float64{tie[0], tie[1], math.Ldexp(1, low)}); got != one+math.Ldexp(1, k-52) {
				t.Fatalf("2^%d, half a unit and 2^%d give %v", k, low, got)
			}
		}
	}
}

// TestSumsFarBeyondTheLargest: 2^15 times 2^1023 is an infinity, and back in range when as much is taken away.
func TestSumsFarBeyondTheLargest(t *testing.T) {
	for _, x := range []float64{0x1p1023, -0x1p1023} {
		var s Sum
		for n := 1; n <= 1<<15; n++ {
			s.Add(x)
			if n&(n-1) == 0 && n > 1 {
				require.Equal(t, math.Inf(int(math.Copysign(1, x))), s.Value(), n)
			}
		}
		for range 1<<15 - 1 {
			s.Add(-x)
		}
		require.Equal(t, x, s.Value())
	}
	highest := [limbs]uint64{limbs - 1: 1 << 62}
	require.Equal(t, math.Float64bits(math.Inf(1)), round(&highest))
}

func TestAddTwo(t *testing.T) {
	for _, row := range []struct{ high, low, x, newHigh, newLow float64 }{
		{0x1p53, 0, 1, 0x1p53, 1},
		{1, 0, 0x1p53, 0x1p53, 1},
		{0x1p53, 1, 1, 0x1p53 + 2, 0},
		{0x1p53, 1, -0x1p53, 1, 0},
		{-0x1p53, -1, 0.5, -0x1p53, -0.5},
	} {
		high, low := AddTwo(row.high, row.low, row.x)
		require.Equal(t, []float64{row.newHigh, row.newLow}, []float64{high, low}, "%+v", row)
	}
	rapid.Check(t, func(t *rapid.T) {
		term := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Float64Range(-1e20, 1e20))
		high, low, exact, size := 0.0, 0.0, new(big.Float).SetPrec(2300), 0.0
		for _, x := range rapid.SliceOfN(term, 1, 20).Draw(t, "terms") {
			high, low = AddTwo(high, low, x)
			exact.Add(exact, big.NewFloat(x))
			size += math.Abs(x)
			require.Equal(t, high, high+low, "low is less than half a unit of high")
			rest := new(big.Float).SetPrec(2300).Sub(exact, big.NewFloat(high))
			miss, _ := rest.Sub(rest, big.NewFloat(low)).Float64()
			require.LessOrEqual(t, math.Abs(miss), size*0x1p-98) // 20 roundings of 2^-104 at most
		}
	})
}

// TestDivideTwo: 2^53 + 1 is three times 3002399751580331, and a third of 2^53 is a half less as a float64.
func TestDivideTwo(t *testing.T) {
	require.Equal(t, 3002399751580330.5, DivideTwo(0x1p53, 0, 3))
	require.Equal(t, 3002399751580331.0, DivideTwo(0x1p53, 1, 3))
	require.Equal(t, -3002399751580331.0, DivideTwo(-0x1p53, -1, 3))
}

func TestSumAllocatesNothingAndHasItsSize(t *testing.T) {
	require.LessOrEqual(t, int(unsafe.Sizeof(Sum{})), 288)
	var s Sum
	x := 0.1
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range 1000 {
			s.Add(x)
			x = -x
		}
	}))
	require.Zero(t, s.Value())
}

func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	var s Sum
	for b.Loop() {
		s.Add(0.1)
	}
	if s.Value() <= 0 {
		b.Fatal("nothing was added")
	}
}
