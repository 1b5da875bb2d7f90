// Package splitmix is the generator of random numbers of everything here that is simulated: a counter and a mixing
// function (Steele, Lea and Flood 2014), written out so that no release of a library changes a run.
package splitmix

import "math"

// Golden is what the counter goes up by: 2^64 over the golden ratio.
const Golden = 0x9e3779b97f4a7c15

// Mix returns a number that depends on every bit of z.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// A Stream is the generator. Streams that begin with different states draw different numbers.
type Stream struct{ State uint64 }

// Next returns the next number.
func (s *Stream) Next() uint64 {
	s.State += Golden
	return Mix(s.State)
}

// Uniform returns a number in (0, 1).
func (s *Stream) Uniform() float64 { return (float64(s.Next()>>11) + 0.5) / (1 << 53) }

// Exponential returns a number with mean 1.
func (s *Stream) Exponential() float64 { return -math.Log(s.Uniform()) }
