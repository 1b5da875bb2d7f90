package oracle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

func run(t require.TestingT, s *sim.Scenario, seed uint64, c scaling.Group) sim.Result {
	r, err := sim.Run(context.Background(), s, func() (scaling.Group, error) { return c, nil }, sim.Options{Seed: seed})
	require.NoError(t, err)
	return r
}

// TestFloor is the bound that can be proved: no fleet costs less than Floor at its own attainment.
func TestFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := func(name string, mean float64) sim.Length {
			return sim.Length{
				Mean: mean, Deviation: mean * rapid.Float64Range(0, 1).Draw(t, name+" deviation"), Min: 1, Max: int32(8 * mean), LogNormal: true,
			}
		}
		s := &sim.Scenario{
			Workload: sim.Stages{
				Stages: []sim.Stage{
					{Rate: float64(rapid.IntRange(0, 4).Draw(t, "rate")), Duration: 3 * time.Minute},
					{Rate: float64(rapid.IntRange(0, 8).Draw(t, "rate")), Duration: 2 * time.Minute},
				},
				Input:  tokens("input", rapid.Float64Range(1, 4000).Draw(t, "input")),
				Output: tokens("output", rapid.Float64Range(1, 600).Draw(t, "output")),
				CV:     rapid.SampledFrom([]float64{0, 1, 3}).Draw(t, "cv"),
			},
			Types:   []sim.Type{{Server: sim.Qwen32B(), Initial: rapid.Int32Range(1, 6).Draw(t, "replicas")}},
			SLO:     sim.SLO{TTFT: rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, time.Minute}).Draw(t, "ttft"), TPOT: 100 * time.Millisecond},
			Scrape:  sim.Scrape{Interval: time.Minute},
			Control: sim.Control{Interval: 15 * time.Second},
			Grace:   rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "grace"),
		}
		v := &s.Types[0].Server
		v.MaxSeqs = rapid.SampledFrom([]int32{1, 8, 256}).Draw(t, "maxSeqs")
		v.KVTokens = rapid.SampledFrom([]int64{20_000, 350_000}).Draw(t, "kvTokens")
		v.TokenBudget = rapid.SampledFrom([]int32{256, 8192}).Draw(t, "budget")
		seed := rapid.Uint64Range(1, 1000).Draw(t, "seed")
		counts := sim.Static(s.Types[0].Initial)
		if rapid.Bool().Draw(t, "falls") {
			counts = sim.Schedule(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Minute, []int32{s.Types[0].Initial, s.Types[0].Initial, 1})
		}
		r := run(t, s, seed, counts)
		floor, err := oracle.Floor(s, 0, seed, r.Attainment)
		require.NoError(t, err)
		require.LessOrEqual(t, floor, r.ReplicaHours, "at an attainment of %v", r.Attainment)
		if r.Attainment > 0 {
			less, err := oracle.Floor(s, 0, seed, r.Attainment/2)
			require.NoError(t, err)
			require.LessOrEqual(t, less, floor, "monotone in the attainment")
		}
	})
}

// TestRamp has the bounds on the reference scenario: Floor, then Cover for the capacity of a full fleet in slots of two minutes,
// then Replay, then whatever attains as much.
func TestRamp(t *testing.T) {
	long.Skip(t)
	ctx := context.Background()
	s := sim.Ramp()
	bounds := sim.RampBounds()
	for _, alpha := range []float64{0.95, 0.99} {
		single, err := oracle.FindCapacity(ctx, &s, 0, alpha, 2)
		require.NoError(t, err)
		fleet, err := oracle.FindFleetCapacity(ctx, &s, 0, bounds.Max, alpha, 2)
		require.NoError(t, err)
		require.Greater(t, fleet.PerSecond, single.PerSecond, "a fleet pools the noise of its arrivals")
		for seed := range uint64(2) {
			seed++
			floor, err := oracle.Floor(&s, 0, seed, alpha)
			require.NoError(t, err)

			step := 2 * time.Minute
			demand, err := oracle.Demand(s.Workload, seed, step, fleet)
			require.NoError(t, err)
			for len(demand) < int(s.Horizon/step) {
				demand = append(demand, 0)
			}
			for i := range demand {
				demand[i] = bounds.Clamp(demand[i])
			}
			cover := oracle.Bound(oracle.Cover(demand, 0, bounds.Min), step)
			require.Less(t, floor, cover)

			best, err := oracle.Replay(ctx, &s, seed, single, oracle.Search{Alpha: alpha, Bounds: bounds})
			require.NoError(t, err)
			require.GreaterOrEqual(t, best.Result.Attainment, alpha)
			require.LessOrEqual(t, cover, best.Result.ReplicaHours, "the oracle")
			for _, n := range best.Asked {
				require.True(t, bounds.Contains(n))
			}
			again := run(t, &s, seed, best.Controller(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
			require.Equal(t, best.Result.ReplicaHours, again.ReplicaHours, "what was certified happens in the scenario too")
			require.Equal(t, best.Result.Attainment, again.Attainment)

			check := func(name string, r sim.Result) {
				own, err := oracle.Floor(&s, 0, seed, r.Attainment)
				require.NoError(t, err)
				require.LessOrEqual(t, own, r.ReplicaHours, "%s", name)
				if r.Attainment >= alpha {
					require.LessOrEqual(t, cover, r.ReplicaHours, "%s", name)
					require.GreaterOrEqual(t, oracle.Score(&r, &best), 1.0, name)
				}
			}
			for n := int32(1); n <= bounds.Max; n++ {
				fixed := s
				fixed.Types = []sim.Type{s.Types[0]}
				fixed.Types[0].Initial = n
				check("static", run(t, &fixed, seed, sim.Static(n)))
			}
			law := s
			law.Metrics = []sim.Metric{{Name: proportional.TTFTP90, Signal: sim.RouterTTFT}, {Name: proportional.TPOTP90, Signal: sim.RouterTPOT}}
			policy, err := proportional.SLOAware(bounds, s.SLO.TTFT, s.SLO.TPOT)
			require.NoError(t, err)
			check("llm-d", run(t, &law, seed, scaling.GroupOf(policy)))
			for _, safety := range []float64{0.7, 0.8, 0.9, 1, 1.2} {
				c := single
				c.PerSecond /= safety
				demand, err := oracle.Demand(s.Workload, seed, 15*time.Second, c)
				require.NoError(t, err)
				for _, hold := range []time.Duration{0, 5 * time.Minute} {
					lag, err := oracle.ZeroLag(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), demand, 15*time.Second, hold, bounds)
					require.NoError(t, err)
					check("zero lag", run(t, &s, seed, lag))
				}
			}
		}
	}
}

func TestFloorErrors(t *testing.T) {
	s := sim.Ramp()
	_, err := oracle.Floor(&s, 1, 1, 2)
	require.ErrorContains(t, err, "type: 1: must be a place in the 1 types")
	require.ErrorContains(t, err, "alpha: 2: must be within 0 and 1")
	_, err = oracle.Floor(&sim.Scenario{}, 0, 1, 1)
	require.ErrorContains(t, err, "workload: ")
}

// TestFloorWithPreemptions: the step that computes a preempted sequence again makes its next token, too, and may cost less than one that
// only makes a token.
func TestFloorWithPreemptions(t *testing.T) {
	tr := sim.Trace{Length: 100 * time.Second}
	for i := range 2000 {
		tr.Requests = append(tr.Requests, sim.Request{At: time.Duration(i) * 50 * time.Millisecond, Input: 2, Output: 2})
	}
	s := &sim.Scenario{
		Workload: tr,
		Types:    []sim.Type{{Server: sim.Server{Base: 1e-6, Sequence: 0.1, MaxSeqs: 2, TokenBudget: 1000, KVTokens: 4}, Initial: 1}},
		SLO:      sim.SLO{TTFT: 10 * time.Second, TPOT: 5 * time.Second},
		Scrape:   sim.Scrape{Interval: time.Minute}, Control: sim.Control{Interval: 15 * time.Second}, Grace: time.Hour,
	}
	r := run(t, s, 1, sim.Static(1))
	floor, err := oracle.Floor(s, 0, 1, r.Attainment)
	require.NoError(t, err)
	require.LessOrEqual(t, floor, r.ReplicaHours)
}
