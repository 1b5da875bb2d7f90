package saturation

import (
	"math"
	"math/bits"

	"github.com/inferscale/inferscale/internal/exact"
)

// A sum adds numbers exactly, so that their order cannot matter, as exact.Sum does, and in a fraction of its time for
// numbers that are whole multiples of 1/scale below 2^63/scale. Those are kept as a whole number in 128 bits, which
// 2^64 of them cannot fill. All others go to an exact.Sum, and both are joined in the end.
//
// A scale is a power of two, the same for every call on one sum; NaN sends all numbers the long way.
type sum struct {
	lo, hi uint64
	odd    bool // whether wide counts
	wide   exact.Sum
}

// scaleOf returns the scale for numbers in [0, limit], of which those that are not far below the limit have to be whole
// multiples: the product with limit is in [2^61, 2^62). What a load leaves of a threshold always is one: the difference
// is either above 2^-9 of the threshold, and so a multiple of 2^-62 of it in any case, or exact.
func scaleOf(limit float64) float64 {
	_, exponent := math.Frexp(limit)
	if !(limit > 0) || exponent < -900 || exponent > 900 {
		return math.NaN()
	}
	return math.Ldexp(1, 62-exponent)
}

func (s *sum) reset() {
	s.lo, s.hi = 0, 0
	if s.odd {
		s.odd, s.wide = false, exact.Sum{}
	}
}

// add adds x, if it is one of the numbers kept in 128 bits, and reports whether it was.
func (s *sum) add(x, scale float64) bool {
	y := x * scale
	n := int64(y)
	if float64(n) != y || n < 0 {
		return false
	}
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, uint64(n), 0)
	s.hi += carry
	return true
}

// addWide adds any x.
func (s *sum) addWide(x float64) {
	s.odd = true
	s.wide.Add(x)
}

// addWideBoth adds any x to s, and to the total, as join leaves it out.
func (s *sum) addWideBoth(x float64, total *sum) {
	s.addWide(x)
	total.addWide(x)
}

// join adds another sum but for its wide part, which addWideBoth has put into the total already.
func (s *sum) join(o *sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi, _ = bits.Add64(s.hi, o.hi, carry)
}

// value returns the float64 nearest to the sum, ties to even.
func (s *sum) value(scale float64) float64 {
	unit := 1 / scale
	switch {
	case s.odd:
		w := s.wide
		if s.lo|s.hi != 0 {
			// Four numbers that are float64 exactly and add up to the whole.
			const half = 1<<32 - 1
			w.Add(float64(s.lo&half) * unit)
			w.Add(float64(s.lo>>32) * (unit * 0x1p32))
			w.Add(float64(s.hi&half) * (unit * 0x1p64))
			w.Add(float64(s.hi>>32) * (unit * 0x1p96))
		}
		return w.Value()
	case s.hi == 0 && s.lo == 0:
		return 0
	case s.hi == 0:
		return float64(s.lo) * unit // the conversion rounds to nearest even, the product is exact
	}
	// Normalise so that the highest bit is bit 127; the bits below 64 then only matter as "something is there".
	shift := uint(bits.LeadingZeros64(s.hi))
	hi := s.hi<<shift | s.lo>>(64-shift)
	if s.lo<<shift != 0 {
		hi |= 1
	}
	return float64(hi) * math.Ldexp(unit, 64-int(shift))
}
