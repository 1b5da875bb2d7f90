package sim

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// memoryless is traffic of queueing theory: Poisson arrivals, and answers of geometrically distributed length, which on
// a server of one token a step is the exponential service time as near as steps of 1/1000 of the mean allow.
type memoryless struct {
	rate, mean float64 // requests per second, tokens
	requests   int
}

func (m memoryless) Validate(string) error { return nil }

func (m memoryless) Duration() time.Duration {
	return time.Duration(float64(m.requests) / m.rate * float64(time.Second))
}

func (m memoryless) Arrivals(seed uint64) Arrivals {
	gaps, lengths := newStream(seed, streamArrivals), newStream(seed, streamLengths)
	t := 0.0
	return func() (Request, bool) {
		t += gaps.Exponential() / m.rate
		at := time.Duration(t * float64(time.Second))
		return Request{At: at, Input: 1, Output: max(1, int32(math.Ceil(m.mean*lengths.Exponential())))}, at < m.Duration()
	}
}

// erlangC returns the probability of waiting in an M/M/k queue at a load of a servers.
func erlangC(k int, a float64) float64 {
	term, sum := 1.0, 0.0
	for n := range k {
		sum += term
		term *= a / float64(n+1)
	}
	last := term * float64(k) / (float64(k) - a)
	return last / (sum + last)
}

// TestD3WaitingTimesOfQueueingTheory: a server that gives one token a millisecond to each of k sequences, and to no more
// at a time, is an M/M/k queue. The mean wait over 20 runs must have the theory's within four standard errors, which the
// steps of a millisecond widen by one step.
func TestD3WaitingTimesOfQueueingTheory(t *testing.T) {
	for _, q := range []struct {
		k    int
		load float64 // of each server
	}{{1, 0.3}, {1, 0.5}, {1, 0.8}, {2, 0.7}, {4, 0.8}, {16, 0.9}} {
		const mean = 1.0 // second of service
		server := Server{Base: 0.001, MaxSeqs: int32(q.k), TokenBudget: 1 << 20, KVTokens: 1e9}
		rate := q.load * float64(q.k) / mean
		var waits []float64
		for seed := range uint64(20) {
			s := plain(memoryless{rate: rate, mean: mean * 1000, requests: 20_000}, server, 1)
			s.Control.Interval, s.Scrape.Interval = time.Hour, time.Hour
			waits = append(waits, runStatic(t, &s, Options{Seed: seed}).Queue.Mean)
		}
		got, spread := meanAndError(waits)
		want := erlangC(q.k, q.load*float64(q.k)) * mean / (float64(q.k) * (1 - q.load))
		require.InDelta(t, want, got, 4*spread+0.0015, "M/M/%d at load %g", q.k, q.load)
	}
}

func meanAndError(x []float64) (mean, standardError float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	sum := 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / float64(len(x)-1) / float64(len(x)))
}

// TestD4LittlesLaw: both sides are equal to the bit, in a run whose numbers theory gives as well: in an M/M/1 queue at
// load 0.8 there are 4 requests on average.
func TestD4LittlesLaw(t *testing.T) {
	s := plain(memoryless{rate: 0.8, mean: 1000, requests: 200_000}, Server{Base: 0.001, MaxSeqs: 1, TokenBudget: 1, KVTokens: 1e9}, 1)
	s.Control.Interval, s.Scrape.Interval = time.Hour, time.Hour
	r := runStatic(t, &s, Options{Seed: 3})
	require.InEpsilon(t, r.Little.L, r.Little.LambdaW, 1e-12)
	require.InDelta(t, 4, r.Little.L, 0.25)
}
