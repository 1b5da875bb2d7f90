package sim

import (
	"math"

	"github.com/inferscale/inferscale/internal/splitmix"
)

// Streams of random numbers: one for each subsystem, so that a policy that scales differently meets the same arrivals
// and the k-th replica to start takes as long as it does under every other policy.
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

// draw returns the stream of one thing among many, such as the start of the k-th replica: what it draws depends on
// nothing else that has happened.
func draw(seed, name uint64, index ...uint64) *stream {
	s := newStream(seed, name)
	for _, i := range index {
		s.State = splitmix.Mix(s.State ^ splitmix.Mix(i+splitmix.Golden))
	}
	return s
}

// normal returns a number with mean 0 and deviation 1.
func (s *stream) normal() float64 { return math.Sqrt2 * math.Erfinv(2*s.Uniform()-1) }

// gamma returns a number with mean 1 and the coefficient of variation cv, which is above 0: the method of Marsaglia and
// Tsang (2000), and for shapes below 1 their power of a uniform number.
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
