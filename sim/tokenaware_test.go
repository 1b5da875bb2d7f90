package sim_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// tokenAware is the benchmark of llm-d's guide to token-aware autoscaling (keda-epp-token-aware), prefill and decode
// together: a Poisson process of 1,200 s with one length of prompts and of answers, on one replica or, with its law, on
// one to four. The rates are the published numbers of requests over that time.
func tokenAware(rate float64, input, output int32) sim.Scenario {
	s := sim.Ramp()
	exactly := func(n int32) sim.Length { return sim.Length{Mean: float64(n), Min: n, Max: n} }
	s.Workload = sim.Stages{Stages: []sim.Stage{{Rate: rate, Duration: 20 * time.Minute}}, CV: 1, Exact: true, Input: exactly(input), Output: exactly(output)}
	s.Types[0].Initial, s.Types[0].Startup = 1, sim.ColdStart(110*time.Second)
	s.Scrape.Interval, s.Horizon, s.Grace = 15*time.Second, 0, time.Hour
	s.Metrics = []sim.Metric{{Name: "tokens", Signal: sim.InFlightTokens}, {Name: "kv", Signal: sim.KVCacheUsage, Fill: 0.8}}
	return s
}

// tokenAwareLaw is the ScaledObject of the guide: a replica for each 1.5 s of prompt tokens at 15,928 a second that are
// not computed, or for each 0.8 of a KV cache in use, whichever are more; one more in 180 s, one less in 300 s.
func tokenAwareLaw() (scaling.Group, error) {
	c := proportional.HPA(scaling.Bounds{Min: 1, Max: 4},
		proportional.Metric{Name: "tokens", Target: 1.5 * 15928, Measure: proportional.Total}, proportional.Metric{Name: "kv", Target: 0.8})
	one := func(period time.Duration) scaling.RateLimit {
		return scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: period}}}
	}
	c.RateLimits = scaling.RateLimits{Up: one(3 * time.Minute), Down: one(5 * time.Minute)}
	p, err := proportional.New(c)
	return scaling.GroupOf(scaling.New(p)), err
}

// TestTokenAwareFidelity is the second published figure that the simulator is held against, with the server of the first
// as it is: nothing was fitted to it. A published number is that of one run; five seeds differ by up to 9 % from their
// mean in the median on one replica and by 25 % in the 99th percentile while replicas start, so
//
//	overload: the mean of seeds is within 10 % of what is published, and within 15 % where replicas were added; the 99th
//	percentile with them, which a few seconds of arrivals decide, is within the range of seeds; as many replicas at the peak
//	in most seeds
//	no overload: one replica in all seeds; first tokens are not later than published, and at most 0.08 s earlier: HTTP,
//	the endpoint picker and the tokenizer are left out, which take 0.045 s of both medians
func TestTokenAwareFidelity(t *testing.T) {
	const seeds = 5
	type published struct{ p50, p99 float64 }
	runs := func(rate float64, input, output int32, group func() (scaling.Group, error)) (mean published, least, most float64, peaks map[int32]int) {
		peaks, least = map[int32]int{}, math.Inf(1)
		for seed := range uint64(seeds) {
			s := tokenAware(rate, input, output)
			r, err := sim.Run(context.Background(), &s, group, sim.Options{Seed: seed + 1})
			require.NoError(t, err)
			require.Equal(t, r.Requests, r.Finished)
			mean.p50 += r.TTFT.P50 / seeds
			mean.p99 += r.TTFT.P99 / seeds
			least, most = min(least, r.TTFT.P99), max(most, r.TTFT.P99)
			peaks[r.PeakReplicas]++
		}
		return mean, least, most, peaks
	}
	one := func() (scaling.Group, error) { return sim.Static(1), nil }

	static, _, _, _ := runs(2316.0/1200, 8192, 256, one)
	t.Logf("8192/256 on one replica: p50 %.0f s (225), p99 %.0f s (470)", static.p50, static.p99)
	require.InEpsilon(t, 225, static.p50, 0.1)
	require.InEpsilon(t, 470, static.p99, 0.1)
	scaled, least, most, peaks := runs(2316.0/1200, 8192, 256, tokenAwareLaw)
	t.Logf("8192/256 with the law: p50 %.2f s (0.62), p99 %.1f s, %.1f to %.1f (43.8), peaks %v (3)", scaled.p50, scaled.p99, least, most, peaks)
	require.InEpsilon(t, 0.62, scaled.p50, 0.15)
	require.InDelta(t, 43.8, (least+most)/2, (most-least)/2)
	require.Greater(t, peaks[3], seeds/2)

	for _, row := range []struct {
		rate          float64
		input, output int32
		static        published
		scaled        published
	}{
		{1248.0 / 1200, 2048, 2048, published{0.21, 0.41}, published{0.20, 0.43}},
		{624.0 / 1200, 256, 4096, published{0.09, 0.13}, published{0.09, 0.13}},
	} {
		static, _, _, _ := runs(row.rate, row.input, row.output, one)
		scaled, _, _, peaks := runs(row.rate, row.input, row.output, tokenAwareLaw)
		t.Logf("%d/%d: p50 %.3f s (%.2f), p99 %.2f s (%.2f), peaks %v (1)", row.input, row.output, static.p50, row.static.p50, static.p99, row.static.p99, peaks)
		require.Equal(t, static, scaled)
		require.Equal(t, map[int32]int{1: seeds}, peaks)
		for _, pair := range [][2]float64{
			{row.static.p50, static.p50}, {row.static.p99, static.p99}, {row.scaled.p50, scaled.p50}, {row.scaled.p99, scaled.p99},
		} {
			require.InDelta(t, pair[0]-0.04, pair[1], 0.04)
		}
	}
}
