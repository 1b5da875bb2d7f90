package sim

import (
	"math"

	"github.com/inferscale/inferscale/internal/splitmix"
)

// Streams of random numbers, one for each subsystem: every policy then meets the same arrivals, and the k-th replica to
// start takes equally long under every policy.
const (
	streamArrivals uint64 = iota + 1
	streamLengths
	streamScale
	streamStartup
	streamScrape
	streamControl
	streamCrash
	streamSession
)

// A stream is the generator, with more distributions.
type stream struct{ splitmix.Stream }

func newStream(seed, name uint64) *stream {
	s := &stream{}
	s.State = splitmix.Mix(splitmix.Mix(seed+splitmix.Golden) + name*splitmix.Golden)
	return s
}

// draw returns the stream of one item, such as the start of the k-th replica. Its numbers do not depend on any other event.
func draw(seed, name uint64, index ...uint64) *stream {
	s := newStream(seed, name)
	for _, i := range index {
		s.State = splitmix.Mix(s.State ^ splitmix.Mix(i+splitmix.Golden))
	}
	return s
}

// normal returns a number with mean 0 and standard deviation 1.
func (s *stream) normal() float64 { return math.Sqrt2 * math.Erfinv(2*s.Uniform()-1) }

// gamma returns a number with mean 1 and the coefficient of variation cv, which must be above 0. It uses the method of
// Marsaglia and Tsang (2000), and for shapes below 1 their method with a power of a uniform number.
func (s *stream) gamma(cv float64) float64 {
	if cv == 1 {
		return s.Exponential()
	}
	shape := 1 / (cv * cv)
	boost := 1.0
	k := shape
	if k < 1 {
		boost = math.Pow(s.Uniform(), 1/k)
		k++
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.normal()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(s.Uniform()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * boost / shape
		}
	}
}
