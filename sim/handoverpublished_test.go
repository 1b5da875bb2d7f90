package sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// splitTokenAware is the benchmark of tokenAware with prefill and decode apart: prefill on one H100 each, decode on two. The prefill
// replica is Qwen32B with half of the cards: twice the time to read weights and KV cache and to compute a prompt, and the
// 48,000 tokens that the guide says it has room for.
func splitTokenAware(rate float64, input, output int32, bandwidth float64) sim.Scenario {
	s := tokenAware(rate, input, output)
	one := sim.Qwen32B()
	one.Base, one.PrefillToken, one.KVToken, one.KVTokens = one.Base+65.5/6700, 2*one.PrefillToken, 2*one.KVToken, 48_000
	prefill, decode := s.Types[0], s.Types[0]
	prefill.Name, prefill.Role, prefill.Server, prefill.Bandwidth = "prefill", sim.Prefill, one, bandwidth
	decode.Name, decode.Role = "decode", sim.Decode
	s.Types = []sim.Type{prefill, decode}
	s.Transfer.TokenBytes = 262_144
	s.Metrics = []sim.Metric{{Name: "tokens", Signal: sim.InFlightTokens}, {Name: "kv", Signal: sim.KVCacheUsage, Type: "decode", Fill: 0.8}}
	return s
}

// splitLaw is the pair of ScaledObjects of the guide: prefill by seconds of tokens in flight at the rate that was measured,
// decode by KV caches in use.
func splitLaw(rate float64) func() (scaling.Group, error) {
	one := func(period time.Duration) scaling.RateLimit {
		return scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: period}}}
	}
	law := func(m proportional.Metric) (scaling.Policy, error) {
		c := proportional.HPA(scaling.Bounds{Min: 1, Max: 4}, m)
		c.RateLimits = scaling.RateLimits{Up: one(3 * time.Minute), Down: one(5 * time.Minute)}
		p, err := proportional.New(c)
		return scaling.New(p), err
	}
	return func() (scaling.Group, error) {
		prefill, err := law(proportional.Metric{Name: "tokens", Target: 1.5 * rate, Measure: proportional.Total})
		if err != nil {
			return nil, err
		}
		decode, err := law(proportional.Metric{Name: "kv", Target: 0.8})
		return scaling.Each(prefill, decode), err
	}
}

// TestSplitTokenAwareFidelity holds prefill and decode apart against what llm-d publishes of them in its guide to token-aware
// autoscaling, with the servers of its other half as they are. One number is fitted, the link: on an idle stack a prompt of 8,192
// tokens and the first token that the client sees, the second one here, take what was measured as 1,154 to 1,410 tokens
// a second, of which 1,210 fits best. With it, for all that is published:
//
//	one and one: of the short prompts the median is 0.27 s and the 99th percentile 0.45 s; of prompts and answers of 2,048
//	tokens, 282 and 536 s, as the link takes 1.4 s for each of them; of the long prompts 116 come within ten minutes
//	with the law: prefill goes to 4 for the long prompts and for those of 2,048 tokens, of which the median is then 1.97 s
//
// Not met is how late the last few come while replicas are added (150 s, here a third of it), that decode went to 2 for those of 2,048
// tokens, and how many of the long prompts come with the law (818, here 461 within ten minutes).
func TestSplitTokenAwareFidelity(t *testing.T) {
	const (
		seeds    = 5
		measured = 1210
		longest  = 600.0 // seconds that a client waits
	)
	idle := splitTokenAware(1, 8192, 2, 0)
	p, d := idle.Types[0].Server, idle.Types[1].Server
	computed := p.Base + 8192*(p.PrefillToken+p.KVToken) + d.Base + d.Sequence + 8192*d.KVToken
	bandwidth := 8192 * idle.Transfer.TokenBytes / (8192.0/measured - computed)
	require.InDelta(t, 3.0, bandwidth*8/1e9, 0.1, "Gbit/s")

	type outcome struct{ p50, p99, within, prefill, decode float64 }
	runs := func(requests float64, input, output int32, group func() (scaling.Group, error)) (mean outcome) {
		for seed := range uint64(seeds) {
			s := splitTokenAware(requests/1200, input, output, bandwidth)
			var late []float64
			most := [2]int32{}
			_, err := sim.Run(context.Background(), &s, group, sim.Options{
				Seed:     seed + 1,
				Handover: func(h sim.Handover) { late = append(late, (h.Second - h.Arrived).Seconds()) },
				Decision: func(_ time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
					for i := range most {
						most[i] = max(most[i], obs.Targets[i].SpecReplicas)
					}
				},
			})
			require.NoError(t, err)
			slices.Sort(late)
			n := float64(len(late) - 1)
			within, _ := slices.BinarySearch(late, longest)
			mean.p50 += late[int(n*0.5)] / seeds
			mean.p99 += late[int(n*0.99)] / seeds
			mean.within += float64(within) / seeds
			mean.prefill += float64(most[0]) / seeds
			mean.decode += float64(most[1]) / seeds
		}
		t.Logf("%d/%d: p50 %.2f s, p99 %.2f s, %.0f within %g s, %.1f and %.1f replicas", input, output, mean.p50, mean.p99, mean.within, longest, mean.prefill, mean.decode)
		return mean
	}
	still := func() (scaling.Group, error) { return sim.Static(1, 1), nil }
	long := runs(2316, 8192, 256, still)
	require.InEpsilon(t, 116, long.within, 0.05)
	even := runs(1248, 2048, 2048, still)
	require.InEpsilon(t, 282, even.p50, 0.1)
	require.InEpsilon(t, 536, even.p99, 0.1)
	for _, group := range []func() (scaling.Group, error){still, splitLaw(measured)} {
		short := runs(624, 256, 4096, group)
		require.InDelta(t, 0.27, short.p50, 0.03)
		require.InDelta(t, 0.45, short.p99, 0.05)
		require.Equal(t, []float64{1, 1}, []float64{short.prefill, short.decode})
	}
	scaled := runs(2316, 8192, 256, splitLaw(measured))
	require.EqualValues(t, 4, scaled.prefill)
	require.EqualValues(t, 1, scaled.decode)
	scaled = runs(1248, 2048, 2048, splitLaw(measured))
	require.EqualValues(t, 4, scaled.prefill)
	require.InEpsilon(t, 1.97, scaled.p50, 0.15)
}

// TestDistServeBandwidth: 512 tokens of OPT-66B have 1.13 GB of KV cache, so that 10 requests a second need 90 Gbit/s for the transfer not
// to be seen (Zhong et al., DistServe, OSDI 2024, 3.3). With less, caches wait for each other ever longer.
func TestDistServeBandwidth(t *testing.T) {
	server := sim.Server{Base: 0.001, MaxSeqs: 1000, TokenBudget: 1 << 20, KVTokens: 1e8}
	waits := func(gigabits float64) (last, alone float64) {
		trace := sim.Trace{}
		for i := range 2000 {
			trace.Requests = append(trace.Requests, sim.Request{At: time.Duration(i) * 100 * time.Millisecond, Input: 512, Output: 20})
		}
		s := tokenAware(1, 1, 1)
		s.Workload = trace
		s.Metrics = nil
		s.Types = []sim.Type{
			{Name: "prefill", Role: sim.Prefill, Server: server, Initial: 1, Bandwidth: gigabits * 1e9 / 8},
			{Name: "decode", Role: sim.Decode, Server: server, Initial: 1},
		}
		s.Transfer.TokenBytes = 1.13e9 / 512
		_, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return sim.Static(1, 1), nil },
			sim.Options{Handover: func(h sim.Handover) { last = (h.Came - h.First).Seconds() }})
		require.NoError(t, err)
		return last, 1.13e9 / (gigabits * 1e9 / 8)
	}
	for _, enough := range []float64{91, 100, 800} {
		last, alone := waits(enough)
		require.InDelta(t, alone, last, 0.002)
	}
	for _, less := range []float64{45, 80, 89} {
		last, alone := waits(less)
		require.Greater(t, last, 10*alone)
	}
}

// TestSplitwiseTransfers: Llama-2-70B, whose times are those of the same paper, takes less than 7 % of a prompt's time for its KV cache
// after it, on InfiniBand of 200 Gbit/s between A100 and of 400 between H100, where it is twice as fast; and of the median
// request for code (1,500 tokens, 13 written) at most 3 % of the whole time (Patel et al., Splitwise, ISCA 2024, 6.1, sent in one piece).
func TestSplitwiseTransfers(t *testing.T) {
	moved := func(server sim.Server, gigabits float64, input int32) (first, transfer, all float64) {
		s := tokenAware(1, 1, 1)
		s.Metrics = nil
		s.Workload = sim.Trace{Requests: []sim.Request{{Input: input, Output: 13}}}
		for i, role := range []sim.Role{sim.Prefill, sim.Decode} {
			s.Types = append(s.Types[:i], sim.Type{Name: role.String(), Role: role, Server: server, Initial: 1, Bandwidth: gigabits * 1e9 / 8})
		}
		s.Transfer.TokenBytes = 327_680
		r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return sim.Static(1, 1), nil }, sim.Options{
			Request: func(o sim.Outcome) { all = o.Total.Seconds() },
			Handover: func(h sim.Handover) {
				first, transfer = (h.First - h.Arrived).Seconds(), (h.Came - h.First).Seconds()
			},
		})
		require.NoError(t, err)
		require.InEpsilon(t, transfer, r.Transfer.Max, 0.02)
		return first, transfer, all
	}
	for _, input := range []int32{512, 1500, 2048, 8192} {
		firstA, a, allA := moved(sim.Llama70BA100(), 200, input)
		firstH, h, allH := moved(sim.Llama70BH100x8(), 400, input)
		require.Less(t, a/firstA, 0.07)
		require.Less(t, h/firstH, 0.07)
		require.InEpsilon(t, 2, a/h, 1e-3)
		if input == 1500 {
			require.Less(t, a/allA, 0.03)
			require.Less(t, h/allH, 0.03)
		}
	}
}
