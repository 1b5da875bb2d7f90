package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
)

// TestLongerPromptsCountAtOnce: of prompts that become half as long again, at the same rate, a decision knows at the next scrape. It was
// known after two minutes, over which mean lengths are taken; on a fleet with little headroom most requests missed the SLO until then.
func TestLongerPromptsCountAtOnce(t *testing.T) {
	try := someTrial()
	try.Deviation = 1
	p := scaling.New(build(t, config(), found(try)))
	var d scaling.Decision
	served, tokens, became := 0.0, 0.0, 20*time.Minute
	work := func() float64 {
		w, _ := Demand(&scaling.Observation{}, &d)
		return w.Lower
	}
	var before float64
	for at := time.Duration(0); at <= became+15*time.Second; at += 15 * time.Second {
		each := 1500.0
		if at > became {
			before, each = work(), 2250
		}
		served, tokens = served+1800, tokens+1800*each
		obs := observation(16, 0, 20, served, tokens/served, 200)
		d = p.Decide(start().Add(at), obs)
	}
	added := 120 * 750 * try.PromptToken // of 120 requests/s
	require.InEpsilon(t, before+added, work(), 0.05, d.Explain())
	require.Less(t, work(), before+added, "what chance can add is taken off")
}

// TestPromptsThatAreLongByChanceAreNotLonger draws lognormal prompts of one distribution. The work that a decision is based on is seldom
// much above what the mean over two minutes would make it.
func TestPromptsThatAreLongByChanceAreNotLonger(t *testing.T) {
	random := splitmix.Stream{State: 7}
	var s State
	var firsts, prefilled float64
	excess, n := 0.0, 0
	for i := range 4000 {
		for range 45 {
			normal := math.Sqrt(2*random.Exponential()) * math.Cos(2*math.Pi*random.Uniform())
			prefilled += 1000 * math.Exp(0.83*normal-0.83*0.83/2) // a deviation of one mean
			firsts++
		}
		s.Samples = append(s.Samples, Sample{At: 15 * float64(i), Firsts: firsts, Prefilled: prefilled, Ready: 4})
		if len(s.Samples) > 100 {
			s.Samples = s.Samples[1:]
		}
		if i < 20 {
			continue
		}
		usual, _ := s.sizes(lengthSpan)
		longest := usual
		for _, span := range [...]float64{rateSpan, surgeSpan, surgeSpan / 2} {
			longest = max(longest, longer(s.back(span), s.last(), 1))
		}
		excess += longest/usual - 1
		n++
	}
	require.Less(t, excess/float64(n), 0.005)
	past := Past{Samples: s.Samples}
	require.InDelta(t, 1, past.deviation(), 0.25)
	require.InDelta(t, 1, (&Past{Samples: s.Samples[:5]}).deviation(), 1, "of few it is not known, and thought to be two means")
}

// TestLongerPromptsOfSomePodsAreNotThoseOfAll: while a pod gives no answer, the prompts of the others say nothing of what it got.
func TestLongerPromptsOfSomePodsAreNotThoseOfAll(t *testing.T) {
	a := Sample{At: 0, Firsts: 1000, Prefilled: 1000 * 500}
	b := Sample{At: 30, Firsts: 2000, Prefilled: a.Prefilled + 1000*1500}
	require.Greater(t, longer(&a, &b, 1), 1400.0)
	require.Equal(t, longer(&a, &b, 1), longer(&a, &b, 0), "unknown counts as one mean")
	require.Zero(t, longer(&b, &b, 1), "no prompt has no length")
	one := Sample{At: 30, Firsts: 1001, Prefilled: a.Prefilled + 1e6}
	require.Zero(t, longer(&a, &one, 1), "a prompt alone is chance")
	b.Partly = true
	require.Zero(t, longer(&a, &b, 1))
}

// TestHugeCountsHaveADeviation: counts of which neither sums nor differences are numbers leave a tuning that can be stored.
func TestHugeCountsHaveADeviation(t *testing.T) {
	var p Past
	for i := range 50 {
		n := float64(i) * (math.MaxFloat64 / 50)
		p.Samples = append(p.Samples, Sample{At: 15 * float64(i), Firsts: math.SmallestNonzeroFloat64 * float64(i), Prefilled: n, Waiting: n})
	}
	for _, x := range []float64{p.deviation(), p.dispersion()} {
		require.True(t, x >= 0 && !math.IsInf(x, 1), "%v", x)
	}
}
