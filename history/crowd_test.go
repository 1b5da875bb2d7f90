package history_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

// TestPromptsThatCrowdWithinABucket: a seventh of Azure's conversations have more than 2,000 tokens, and of these more than half were cut off at some
// 4,090, which no bound of vLLM's tells. By the buckets beside it they had 2,600 on average, so that what is late was 20 % too early; that
// the sums of five minutes go up with the count of that bucket tells more.
func TestPromptsThatCrowdWithinABucket(t *testing.T) {
	traffic, err := traces.Open(traces.NameAzure2023Conversation)
	require.NoError(t, err)
	r := record(t, scenario(sim.Llama70BH100x4(), traffic, 0.02))
	w, _, err := reduced(t, dumped(t, r)).Workload()
	require.NoError(t, err)
	type bucket struct{ n, sum float64 }
	// into adds a prompt to the bucket up to 2,000 or to that up to 5,000.
	into := func(all *[2]bucket, input int32) {
		k := 0
		switch {
		case input > 2000 && input <= 5000:
			k = 1
		case input <= 1000 || input > 5000:
			return
		}
		all[k].n++
		all[k].sum += float64(input)
	}
	var was, drawn [2]bucket
	for _, o := range r.Done {
		into(&was, o.Input)
	}
	next := w.Arrivals(1)
	for q, more := next(); more; q, more = next() {
		into(&drawn, q.Input)
	}
	for k := range was {
		require.InEpsilon(t, was[k].n, drawn[k].n, 0.05)
		require.InEpsilon(t, was[k].sum/was[k].n, drawn[k].sum/drawn[k].n, 0.15)
	}
	for i := range w.Lengths {
		c := w.Lengths[i].Prompts[0]
		require.Len(t, c.Means, len(c.Counts))
	}
	w.Lengths[0].Prompts[0].Means = w.Lengths[0].Prompts[0].Means[1:]
	require.ErrorContains(t, w.Validate("workload"), "workload.lengths[0].prompts: 1: must be histograms with rising bounds")
}
