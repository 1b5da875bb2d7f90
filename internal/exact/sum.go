// Package exact sums float64 numbers without rounding, so that a sum does not depend on the order of its terms.
//
// A fleet's reading is a sum over pods in whatever order they answered. Plain addition rounds after each term, and a
// different order can end on a different bit, which a comparison with a threshold turns into a different decision.
package exact

import (
	"math"
	"math/bits"
)

// The accumulator is a whole number in units of the least float64, 2^-1074, in two's complement. A finite float64 is
// below 2^1024 and so needs 2,098 bits; the 78 that are left carry the sign and room for 2^77 terms.
const limbs = 34

// A Sum adds float64 numbers exactly and rounds once, in [Sum.Value]. The zero value is an empty sum. It has a fixed
// size of 288 bytes, allocates nothing and may be copied.
type Sum struct {
	limbs   [limbs]uint64 // least significant first
	special float64       // sum of the infinities and NaNs that were added
	odd     bool          // whether special counts
}

// Add adds x. Infinities and NaN are kept apart and decide the value by their own sum: one infinity gives itself, two
// of opposite sign or a NaN give NaN.
func (s *Sum) Add(x float64) {
	const (
		exponentMask = 0x7ff
		mantissaBits = 52
	)
	b := math.Float64bits(x)
	mantissa := b & (1<<mantissaBits - 1)
	shift := int(b >> mantissaBits & exponentMask)
	switch shift {
	case exponentMask:
		s.special += x
		s.odd = true
		return
	case 0: // subnormal: no hidden bit, the same unit as exponent 1
	default:
		mantissa |= 1 << mantissaBits
		shift--
	}
	i, offset := shift/64, uint(shift%64)
	lo, hi := mantissa<<offset, mantissa>>(64-offset)
	if b>>63 == 0 {
		s.add(i, lo, hi)
	} else {
		s.subtract(i, lo, hi)
	}
}

func (s *Sum) add(i int, lo, hi uint64) {
	var carry uint64
	s.limbs[i], carry = bits.Add64(s.limbs[i], lo, 0)
	s.limbs[i+1], carry = bits.Add64(s.limbs[i+1], hi, carry)
	for i += 2; carry != 0 && i < limbs; i++ {
		s.limbs[i], carry = bits.Add64(s.limbs[i], 0, carry)
	}
}

func (s *Sum) subtract(i int, lo, hi uint64) {
	var borrow uint64
	s.limbs[i], borrow = bits.Sub64(s.limbs[i], lo, 0)
	s.limbs[i+1], borrow = bits.Sub64(s.limbs[i+1], hi, borrow)
	for i += 2; borrow != 0 && i < limbs; i++ {
		s.limbs[i], borrow = bits.Sub64(s.limbs[i], 0, borrow)
	}
}

// Value returns the float64 nearest to the sum of all that was added, ties to even: the same for every order of the
// terms. A sum beyond the largest float64 gives an infinity, though it may still come back into range when more is
// added. The empty sum, and a sum of negative zeros, is 0.
func (s *Sum) Value() float64 {
	if s.odd {
		return s.special
	}
	magnitude, sign := s.limbs, uint64(0)
	if magnitude[limbs-1]>>63 != 0 {
		sign = 1 << 63
		carry := uint64(1)
		for i := range magnitude {
			magnitude[i], carry = bits.Add64(^magnitude[i], 0, carry)
		}
	}
	return math.Float64frombits(sign | round(&magnitude))
}

// round returns the bits of the float64 nearest to a magnitude in units of 2^-1074.
func round(m *[limbs]uint64) uint64 {
	top := limbs - 1
	for top > 0 && m[top] == 0 {
		top--
	}
	highest := top*64 + bits.Len64(m[top]) - 1
	const precision = 52 // bits below the highest one
	if highest <= precision {
		// Zero, subnormals, and the first binade of normals, are the number itself in their bits.
		return m[0]
	}
	low := highest - precision
	mantissa := window(m, low)
	if half := low - 1; window(m, half)&1 == 1 && (mantissa&1 == 1 || !zeroBelow(m, half)) {
		// Rounding up 2^53-1 carries into the next binade, which is what the addition below does to the exponent.
		mantissa++
	}
	// The hidden bit adds one to the exponent field, hence low and not low+1.
	b := uint64(low)<<precision + mantissa
	return min(b, math.Float64bits(math.Inf(1)))
}

// window returns the 53 bits from bit low upwards.
func window(m *[limbs]uint64, low int) uint64 {
	i, offset := low/64, uint(low%64)
	w := m[i] >> offset
	if i+1 < limbs {
		w |= m[i+1] << (64 - offset)
	}
	return w & (1<<53 - 1)
}

// zeroBelow reports whether every bit below bit n is 0.
func zeroBelow(m *[limbs]uint64, n int) bool {
	for i := range n / 64 {
		if m[i] != 0 {
			return false
		}
	}
	return m[n/64]&(1<<uint(n%64)-1) == 0
}
