package exact

import "math"

// AddTwo adds x to a number in two parts, high + low with |low| <= ulp(high)/2, which carry twice the precision of a
// float64: Knuth's exact sum of two numbers, then the low parts.
func AddTwo(high, low, x float64) (newHigh, newLow float64) {
	sum := high + x
	part := sum - high
	low += (high - (sum - part)) + (x - part)
	top := sum + low
	return top, low - (top - sum)
}

// DivideTwo divides high + low by n with one correction, which makes the result the nearest float64 but for rare halves.
func DivideTwo(high, low, n float64) float64 {
	q := high / n
	return q + (math.FMA(-q, n, high)+low)/n
}
