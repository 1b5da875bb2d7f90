package saturation

import (
	"math"
	"math/bits"
)

// A sum adds numbers as whole billionths, so that their order changes no bit and decimals add up as they do by hand. Numbers
// above most, or below -most, count as most or -most. Infinities and NaN are kept apart; if there are any, they are the sum.
type sum struct {
	hi, lo uint64 // 128 bits in two's complement, which 2^64 numbers cannot fill
	odd    float64
}

const (
	billion = 1e9
	most    = 1e9
)

func (s *sum) add(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		s.odd += x
		return
	}
	s.addWhole(int64(math.Round(min(max(x, -most), most) * billion)))
}

// addSpare adds a number from 0 to most.
func (s *sum) addSpare(x float64) { s.addWhole(int64(x*billion + 0.5)) }

func (s *sum) addWhole(n int64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, uint64(n), 0)
	s.hi += uint64(n>>63) + carry
}

func (s *sum) join(o *sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi, _ = bits.Add64(s.hi, o.hi, carry)
	s.odd += o.odd
}

// value returns the sum, rounded once below 2^53 billionths.
func (s *sum) value() float64 {
	switch {
	case s.odd != 0:
		return s.odd
	case s.hi>>63 != 0:
		lo, borrow := bits.Sub64(0, s.lo, 0)
		hi, _ := bits.Sub64(0, s.hi, borrow)
		return -(&sum{hi: hi, lo: lo}).value()
	}
	return (float64(s.hi)*0x1p64 + float64(s.lo)) / billion
}
