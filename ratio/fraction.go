package ratio

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Fraction is a ratio of two whole numbers, such as 7/10 or 2/3. A float64 can represent neither exactly, and errors such as
// 0.7 * 3 = 2.0999999999999996 would decide whether 7 of 10 are within "at most 0.7". All arithmetic on fractions is in whole
// numbers.
//
// The zero value, 0/0, is not a number: as a limit it means no limit.
type Fraction struct {
	Num int64
	Den int64
}

// maxTerm is the highest numerator and denominator: multiplied by MaxReplicas it fits an int64.
const maxTerm = 1_000_000_000_000

// errFraction is the error of ParseFraction for any other text.
var errFraction = errors.New("must be a decimal number such as 0.7 or a fraction such as 2/3, not negative, of at most twelve digits")

// ParseFraction reads a decimal number ("0.7", "2", "1e-2") or a fraction of whole numbers ("2/3"), exactly.
func ParseFraction(s string) (Fraction, error) {
	f, ok := parse(s)
	if f = f.reduced(); !ok || !f.valid() {
		return Fraction{}, fmt.Errorf("%q: %w", s, errFraction)
	}
	return f, nil
}

func parse(s string) (f Fraction, ok bool) {
	if num, den, ok := strings.Cut(s, "/"); ok {
		n, err := strconv.ParseUint(num, 10, 63)
		d, err2 := strconv.ParseUint(den, 10, 63)
		f = Fraction{int64(n), int64(d)}
		return f, err == nil && err2 == nil && f.valid()
	}
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	shift := int64(0)
	if hasExponent {
		var err error
		if shift, err = strconv.ParseInt(exponent, 10, 16); err != nil {
			return f, false
		}
	}
	whole, part, _ := strings.Cut(mantissa, ".")
	part = strings.TrimRight(part, "0")
	n, err := strconv.ParseUint(whole+part, 10, 63)
	if err != nil {
		return f, false
	}
	f = Fraction{int64(n), 1}
	shift -= int64(len(part))
	for ; shift < 0 && f.Den <= maxTerm; shift++ {
		if f.Num%10 == 0 {
			f.Num /= 10
		} else {
			f.Den *= 10
		}
	}
	for ; shift > 0 && f.Num <= maxTerm; shift-- {
		f.Num *= 10
	}
	return f, shift == 0
}

// FractionOf returns x as a fraction, by its shortest decimal that reads back as x. So 0.7 becomes 7/10, although no float64
// equals that.
func FractionOf(x float64) (Fraction, error) {
	if math.Signbit(x) && x != 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return Fraction{}, fmt.Errorf("%v: %w", x, errFraction)
	}
	return ParseFraction(strconv.FormatFloat(math.Abs(x), 'g', -1, 64))
}

// valid reports whether the fraction is a number whose terms are within the limit.
func (f Fraction) valid() bool {
	return 0 <= f.Num && f.Num <= maxTerm && 1 <= f.Den && f.Den <= maxTerm
}

// reduced returns the fraction in lowest terms.
func (f Fraction) reduced() Fraction {
	a, b := f.Num, f.Den
	for b != 0 {
		a, b = b, a%b
	}
	if a > 1 {
		return Fraction{f.Num / a, f.Den / a}
	}
	return f
}

// above reports whether f > g.
func (f Fraction) above(g Fraction) bool {
	// Cross products may not fit an int64. So compare the whole parts first, then the reciprocals of the remainders, whose
	// terms are smaller. Like Euclid's algorithm this ends when one remainder is 0.
	for {
		if a, b := f.Num/f.Den, g.Num/g.Den; a != b {
			return a > b
		}
		f.Num, g.Num = f.Num%f.Den, g.Num%g.Den
		if f.Num == 0 || g.Num == 0 {
			return f.Num > 0
		}
		// f > g exactly if 1/f < 1/g.
		f, g = Fraction{g.Den, g.Num}, Fraction{f.Den, f.Num}
	}
}

// String returns "num/den", or the number alone if it is whole. The zero value is "none".
func (f Fraction) String() string {
	switch {
	case f.IsZero():
		return "none"
	case f.Den == 1:
		return strconv.FormatInt(f.Num, 10)
	}
	return strconv.FormatInt(f.Num, 10) + "/" + strconv.FormatInt(f.Den, 10)
}

// IsZero reports whether the fraction is the zero value, so that the JSON option omitzero leaves it out.
func (f Fraction) IsZero() bool { return f == Fraction{} }

// MarshalText writes the fraction as String does, but the zero value as an empty text.
func (f Fraction) MarshalText() ([]byte, error) {
	if f.IsZero() {
		return nil, nil
	}
	return []byte(f.String()), nil
}

// UnmarshalText reads what ParseFraction reads; an empty text gives the zero value.
func (f *Fraction) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*f = Fraction{}
		return nil
	}
	parsed, err := ParseFraction(string(text))
	if err != nil {
		return err
	}
	*f = parsed
	return nil
}
