package saturation

import (
	"math/bits"
	"strconv"
)

// A reader who checks the seed's rules by hand computes with the decimals that are printed: 0.8 - 0.7 is exactly the
// trigger 0.1, and is not below it. In float64 the difference is 0.10000000000000009, and other such ties come out on
// the other side. Mode Literal decides ties as the reader does: in decimals, exactly. (Mode Default takes numbers that
// differ by less than scaling.Noise for equal.)

// A decimal is a number that is not negative, in units of 10^-18.
type decimal struct{ hi, lo uint64 }

// decimalDigits is how many digits behind the point a decimal keeps.
const decimalDigits = 18

// decimalOf returns the shortest decimal that reads back as x, without its sign. It reports false if it does not fit
// 10^-18 to 10^9.
func decimalOf(x float64) (d decimal, negative, ok bool) {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], x, 'e', -1, 64)
	if text[0] == '-' {
		negative = true
		text = text[1:]
	}
	mantissa, digits, i := uint64(0), 0, 0
	for ; i < len(text) && text[i] != 'e'; i++ {
		if c := text[i]; c != '.' {
			if c < '0' || c > '9' {
				return decimal{}, false, false // NaN and Inf
			}
			mantissa = mantissa*10 + uint64(c-'0')
			digits++
		}
	}
	exponent, sign := 0, 1
	for _, c := range text[i+1:] {
		switch c {
		case '+':
		case '-':
			sign = -1
		default:
			exponent = exponent*10 + int(c-'0')
		}
	}
	exponent *= sign
	if exponent >= 9 {
		return decimal{}, false, false
	}
	places := decimalDigits + exponent - (digits - 1)
	if places < 0 {
		return decimal{}, negative, mantissa == 0
	}
	d = decimal{lo: mantissa}
	for range places {
		d = d.times(10)
	}
	return d, negative, true
}

func (d decimal) plus(o decimal) decimal {
	lo, carry := bits.Add64(d.lo, o.lo, 0)
	hi, _ := bits.Add64(d.hi, o.hi, carry)
	return decimal{hi, lo}
}

func (d decimal) minus(o decimal) decimal {
	lo, borrow := bits.Sub64(d.lo, o.lo, 0)
	hi, _ := bits.Sub64(d.hi, o.hi, borrow)
	return decimal{hi, lo}
}

func (d decimal) times(n uint64) decimal {
	hi, lo := bits.Mul64(d.lo, n)
	return decimal{d.hi*n + hi, lo}
}

func (d decimal) less(o decimal) bool {
	return d.hi < o.hi || d.hi == o.hi && d.lo < o.lo
}

// A tie is one threshold of a model, in decimals: what is spare in total, and the threshold and trigger it meets.
type tie struct {
	spare, threshold, trigger decimal
	n                         uint64 // of the replicas that are not saturated
}

// tieOf adds up in decimals what the replicas that are not saturated have to spare. It reports false if a number does
// not fit.
func tieOf(replicas []Replica, t *Thresholds, load func(*Replica) float64, threshold, trigger float64) (s tie, ok bool) {
	var ok1, ok2 bool
	s.threshold, _, ok1 = decimalOf(threshold)
	s.trigger, _, ok2 = decimalOf(trigger)
	if !ok1 || !ok2 || len(replicas) > 1<<22 {
		return tie{}, false
	}
	for i := range replicas {
		r := &replicas[i]
		if r.KV >= t.KVCache || r.Queue >= t.QueueLength {
			continue
		}
		d, negative, fits := decimalOf(load(r))
		if !fits {
			return tie{}, false
		}
		s.n++
		if negative {
			s.spare = s.spare.plus(s.threshold.plus(d))
		} else {
			s.spare = s.spare.plus(s.threshold.minus(d))
		}
	}
	return s, true
}

// short reports whether the average spare is below the trigger.
func (s *tie) short() bool { return s.spare.less(s.trigger.times(s.n)) }

// safe reports whether with one replica less the spare that remains is not below the trigger:
//
//	threshold - load/(n-1) >= trigger,  load = n*threshold - spare
func (s *tie) safe() bool { return !s.spare.less(s.threshold.plus(s.trigger.times(s.n - 1))) }
