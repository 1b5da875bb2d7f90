package suite

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/sim"
)

// A session of an agent: consecutive calls, each with everything before it in its prompt.
const (
	meanCalls  = 8
	mostCalls  = 40
	meanResult = 500   // tokens that a tool returns
	mostPrompt = 32000 // a longer prompt ends the session
	meanTool   = 6.0   // seconds that a tool takes
	perToken   = 0.03  // assumed seconds per token of the answer: the next call does not wait for the real answer
)

// sessions returns the calls of sessions that begin at the requests of a source.
func sessions(begins sim.Arrivals, s sim.Series, seed uint64) sim.Arrivals {
	random := splitmix.Stream{State: splitmix.Mix(seed ^ 0x5e5510)}
	end := s.Duration()
	var calls []sim.Request
	for r, more := begins(); more; r, more = begins() {
		for n := 0; n < mostCalls && r.At < end && r.Input <= mostPrompt; n++ {
			calls = append(calls, r)
			if random.Uniform() < 1.0/meanCalls {
				break
			}
			r.At += time.Duration((float64(r.Output)*perToken + meanTool*random.Exponential()) * float64(time.Second))
			r.Input += r.Output + int32(meanResult*random.Exponential())
			r.Output = int32(math.Ceil(s.Output.Mean * random.Exponential()))
		}
	}
	slices.SortStableFunc(calls, func(a, b sim.Request) int { return cmp.Compare(a.At, b.At) })
	return sim.Trace{Requests: calls}.Arrivals(seed)
}
