package ratio_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/ratio"
	"github.com/inferscale/inferscale/scaling"
)

// FuzzRatio: whatever the texts and numbers, a range is refused, or its projection is the nearest feasible pair.
func FuzzRatio(f *testing.F) {
	f.Add("0.25", "1", uint8(0), uint8(8), uint8(0), uint8(16), int32(6), int32(2))
	f.Add("1/2", "0.5", uint8(1), uint8(10), uint8(1), uint8(10), int32(1), int32(5))
	f.Add("0.55", "0.8", uint8(1), uint8(10), uint8(1), uint8(10), int32(1), int32(1))
	f.Add("999999999999/1000000000000", "1", uint8(0), uint8(40), uint8(3), uint8(40), int32(math.MaxInt32), int32(math.MinInt32))
	f.Add("1e-12", "1e12", uint8(0), uint8(0), uint8(9), uint8(3), int32(0), int32(0))
	f.Fuzz(func(t *testing.T, low, high string, minP, maxP, minD, maxD uint8, prefill, decode int32) {
		c := ratio.Config{
			Prefill: scaling.Bounds{Min: int32(minP % 64), Max: int32(maxP % 64)},
			Decode:  scaling.Bounds{Min: int32(minD % 64), Max: int32(maxD % 64)},
		}
		for text, fraction := range map[*string]*ratio.Fraction{&low: &c.Min, &high: &c.Max} {
			parsed, err := ratio.ParseFraction(*text)
			if err != nil {
				return
			}
			again, err := ratio.ParseFraction(parsed.String())
			require.NoError(t, err)
			require.Equal(t, parsed, again)
			*fraction = parsed
		}
		r, err := ratio.New(c)
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
