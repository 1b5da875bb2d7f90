package saturation_test

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// TestPermutationsGiveTheSameBits: the order of rows changes nothing, with loads whose plain sums differ by order.
func TestPermutationsGiveTheSameBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode, thresholds := drawMode(t), drawThresholds(t)
		s := scalerOf(t, mode, thresholds)
		replicas := drawReplicas(t, mode, thresholds)
		other := shuffled(replicas, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "place") })
		a, b := analyze(s, replicas), analyze(s, other)
		same := func(x, y float64) { require.Equal(t, math.Float64bits(x), math.Float64bits(y)) }
		same(a.SpareKV, b.SpareKV)
		same(a.SpareQueue, b.SpareQueue)
		same(a.AfterKV, b.AfterKV)
		same(a.AfterQueue, b.AfterQueue)
		same(a.LoadKV, b.LoadKV)
		same(a.LoadQueue, b.LoadQueue)
		require.Equal(t, a.Variants, b.Variants)
		require.Equal(t, []any{a.PeakKV, a.PeakQueue, a.Lost, a.ScaleUp, a.DownSafe}, []any{b.PeakKV, b.PeakQueue, b.Lost, b.ScaleUp, b.DownSafe})
		// Used again, the same space gives the same.
		s.Analyze(a, other)
		require.Equal(t, b.Variants, a.Variants)
		same(a.SpareKV, b.SpareKV)
	})
}

// TestSumIsExact holds a sum against whole numbers of any length, in every order and over two parts.
func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOf(rapid.OneOf(
			rapid.Float64Range(0, 1), rapid.Float64Range(0, 40000), rapid.Float64Range(0, 1e-9), rapid.Float64(),
			rapid.Map(rapid.IntRange(0, 100), func(i int) float64 { return float64(i) / 100 }),
		)).Draw(t, "numbers")
		whole := new(big.Int)
		for _, x := range numbers {
			n, _ := big.NewFloat(math.Round(max(min(x, 1e9), -1e9) * 1e9)).Int(nil)
			whole.Add(whole, n)
		}
		got := saturation.Sum(shuffled(numbers, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "place") }))
		want, _ := new(big.Rat).SetFrac(whole, big.NewInt(1e9)).Float64()
		require.InDelta(t, want, got, 1e-15*math.Abs(want))
		if whole.CmpAbs(big.NewInt(1<<53)) < 0 {
			require.Equal(t, want, got, "exact below 2^53 billionths") //nolint:testifylint // the same bits are meant
		}
	})
}

// TestSumOfWhatIsNoNumber: infinities and NaN are the sum, in any order.
func TestSumOfWhatIsNoNumber(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	require.True(t, math.IsInf(saturation.Sum([]float64{1, inf, 2, inf}), 1))
	require.True(t, math.IsNaN(saturation.Sum([]float64{inf, -inf, 1})))
	require.True(t, math.IsNaN(saturation.Sum([]float64{1, nan, inf, 2})))
	require.InDelta(t, 2e9, saturation.Sum([]float64{math.MaxFloat64, 1e10}), 0, "as much as is counted")
}

// TestSaturatedUpToNoise: mode Default compares with the shared helper, mode Literal bit by bit.
func TestSaturatedUpToNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := drawThresholds(t)
		byDefault, literal := scalerOf(t, saturation.Default, thresholds), scalerOf(t, saturation.Literal, thresholds)
		below := rapid.SampledFrom([]float64{0, 1e-16, 1e-12, 0.9999999e-9, 1e-9, 1.0000001e-9, 1e-8, 0.1, -1e-9}).Draw(t, "below")
		r := saturation.Replica{KV: thresholds.KVCache * (1 - below)}
		if rapid.Bool().Draw(t, "queue") {
			r = saturation.Replica{Queue: thresholds.QueueLength * (1 - below)}
		}
		full := !scaling.Exceeds(thresholds.KVCache, r.KV) || !scaling.Exceeds(thresholds.QueueLength, r.Queue)
		require.Equal(t, full, byDefault.IsSaturated(r))
		require.Equal(t, full, analyze(byDefault, []saturation.Replica{r}).Saturated == 1)
		require.Equal(t, r.KV >= thresholds.KVCache || r.Queue >= thresholds.QueueLength, literal.IsSaturated(r))
		require.False(t, byDefault.IsSaturated(saturation.Replica{KV: math.Inf(1)}), "that is missing")
	})
}

// TestLiteralTiesAreDecidedInDecimals holds mode Literal against fractions of the decimals that are printed, at and
// next to ties.
func TestLiteralTiesAreDecidedInDecimals(t *testing.T) {
	fraction := func(x float64) *big.Rat {
		r, ok := new(big.Rat).SetString(strconv.FormatFloat(x, 'g', -1, 64))
		require.True(t, ok)
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		thresholds := saturation.Recommended()
		s := scalerOf(t, saturation.Literal, thresholds)
		n := rapid.IntRange(1, 8).Draw(t, "replicas")
		var replicas []saturation.Replica
		load := new(big.Rat)
		for i := range n {
			kv := rapid.SampledFrom([]float64{0.7, 0.7, 0.7000000000000001, 0.7000000000000002, 0.6999999999999999, 0.35, 0.5, 0.79, 0.1, 0, 0.75, -0.05, 1e-12, 1e-16}).Draw(t, "kv")
			replicas = append(replicas, saturation.Replica{Pod: strconv.Itoa(i), Variant: "a", KV: kv})
			load.Add(load, fraction(kv))
		}
		threshold, trigger := fraction(0.8), fraction(0.1)
		spare := new(big.Rat).Quo(load, big.NewRat(int64(n), 1))
		spare.Sub(threshold, spare)
		a := analyze(s, replicas)
		require.Equal(t, spare.Cmp(trigger) < 0, a.ScaleUp, "%v", replicas)
		if n >= 2 {
			rest := new(big.Rat).Quo(load, big.NewRat(int64(n-1), 1))
			rest.Sub(threshold, rest)
			require.Equal(t, rest.Cmp(trigger) >= 0, a.DownSafe, "%v", replicas)
		}
	})
}
