package sim

import "math"

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
)

// A stream is a splitmix64 generator: a counter and a mixing function, written out here so that no release of a library
// changes a run.
type stream struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func newStream(seed, name uint64) *stream {
	return &stream{state: mix(mix(seed+golden) + name*golden)}
}

// draw returns the stream of one thing among many, such as the start of the k-th replica: what it draws depends on
// nothing else that has happened.
func draw(seed, name uint64, index ...uint64) *stream {
	s := newStream(seed, name)
	for _, i := range index {
		s.state = mix(s.state ^ mix(i+golden))
	}
	return s
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) next() uint64 {
	s.state += golden
	return mix(s.state)
}

// uniform returns a number in (0, 1).
func (s *stream) uniform() float64 { return (float64(s.next()>>11) + 0.5) / (1 << 53) }

// exponential returns a number with mean 1.
func (s *stream) exponential() float64 { return -math.Log(s.uniform()) }

// normal returns a number with mean 0 and deviation 1.
func (s *stream) normal() float64 { return math.Sqrt2 * math.Erfinv(2*s.uniform()-1) }

// gamma returns a number with mean 1 and the coefficient of variation cv, which is above 0: the method of Marsaglia and
// Tsang (2000), and for shapes below 1 their power of a uniform number.
func (s *stream) gamma(cv float64) float64 {
	if cv == 1 {
		return s.exponential()
	}
	shape := 1 / (cv * cv)
	boost := 1.0
	k := shape
	if k < 1 {
		boost = math.Pow(s.uniform(), 1/k)
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
		if math.Log(s.uniform()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * boost / shape
		}
	}
}
