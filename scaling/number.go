package scaling

import "math"

// Noise is the relative difference below which two numbers count as the same: 1e-9. It is far above what a chain of
// float64 operations loses (2.1/0.7 is 3.0000000000000004) and far below what any metric can tell apart.
const Noise = 1e-9

// Exceeds reports whether a is above b by more than Noise, relative to the larger of the two:
//
//	a > b  and  a - b > Noise * max(|a|, |b|)
//
// It is monotone in a, antitone in b and unchanged when both are multiplied by one positive number. NaN exceeds
// nothing and nothing exceeds it; +Inf exceeds every other number.
func Exceeds(a, b float64) bool {
	if !(a > b) {
		return false
	}
	if math.IsInf(a, 1) || math.IsInf(b, -1) {
		return true
	}
	return a-b > Noise*max(math.Abs(a), math.Abs(b)) // also where the difference overflows
}

// Ceil returns the least whole number that x does not exceed, as a replica count: 2.1/0.7 gives 3, not 4. The tolerance is at
// most a thousandth of a replica, which Noise reaches at a million replicas. A result that does not fit saturates at the ends
// of int32; it never wraps. NaN gives math.MaxInt32, as a quotient that is not a number has no upper limit: callers that can
// meet NaN must reject it first.
func Ceil(x float64) int32 {
	if math.IsNaN(x) {
		return math.MaxInt32
	}
	n := math.Floor(x)
	if x-n > 1e-3 || Exceeds(x, n) {
		n++
	}
	return Saturate(n)
}

// Saturate converts a whole number to a replica count. A number that does not fit becomes math.MaxInt32 or math.MinInt32; NaN
// becomes math.MaxInt32.
func Saturate(n float64) int32 {
	switch {
	case n <= math.MinInt32:
		return math.MinInt32
	case n < math.MaxInt32:
		return int32(n)
	default:
		return math.MaxInt32
	}
}

// Plus returns n + change; a result that does not fit becomes math.MaxInt32 or math.MinInt32.
func Plus(n, change int32) int32 {
	return int32(max(math.MinInt32, min(int64(n)+int64(change), math.MaxInt32)))
}
