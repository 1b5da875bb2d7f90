package oracle_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestReplay(t *testing.T) {
	ctx := context.Background()
	s := sim.Ramp()
	c, err := oracle.FindCapacity(ctx, &s, 0, 0.99, 2)
	require.NoError(t, err)
	search := oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: 8}}
	plain, err := oracle.Replay(ctx, &s, 1, c, search)
	require.NoError(t, err)
	again, err := oracle.Replay(ctx, &s, 1, c, search)
	require.NoError(t, err)
	require.Equal(t, plain, again, "deterministic")
	require.Zero(t, plain.Trimmed)
	require.Equal(t, 100*time.Second, plain.Lead)
	for slot, n := range plain.Plan.Counts {
		from, to := time.Duration(slot)*plain.Step, time.Duration(slot+1)*plain.Step
		for i, asked := range plain.Asked {
			// What is asked for from this tick to the next is ready a lead later.
			if at := time.Duration(i) * plain.Tick; at < to && at+plain.Tick+plain.Lead > from {
				require.GreaterOrEqual(t, asked, n, "slot %d at tick %d", slot, i)
			}
		}
	}

	search.Trims = 60
	trimmed, err := oracle.Replay(ctx, &s, 1, c, search)
	require.NoError(t, err)
	require.LessOrEqual(t, trimmed.Result.ReplicaHours, plain.Result.ReplicaHours)
	require.LessOrEqual(t, trimmed.Runs, plain.Runs+60, "bounded")
	require.Equal(t, plain.Plan, trimmed.Plan)
	r := run(t, &s, 1, trimmed.Controller(begin))
	require.Equal(t, trimmed.Result.ReplicaHours, r.ReplicaHours)
	require.GreaterOrEqual(t, r.Attainment, 0.99)
	require.Equal(t, 1.0, oracle.Score(&r, &trimmed))
	r.Attainment = 0.98
	require.Equal(t, math.Inf(1), oracle.Score(&r, &trimmed), "the SLO is not for sale")

	// A larger capacity is the same as more safety, to a step of it.
	c.PerSecond *= 1.2
	search.Trims = 0
	other, err := oracle.Replay(ctx, &s, 1, c, search)
	require.NoError(t, err)
	require.InEpsilon(t, plain.Result.ReplicaHours, other.Result.ReplicaHours, 0.05)
}

// TestReplayWorld checks what the world may do to a schedule: random cold starts, a delay of writes, faults of the
// controller, a quota and a fleet that may go to zero.
func TestReplayWorld(t *testing.T) {
	ctx := context.Background()
	s := sim.Ramp()
	s.Types = []sim.Type{s.Types[0]}
	s.Types[0].Startup = sim.HeavyTail(100 * time.Second)
	s.Types[0].Quota = 7
	s.Control.Delay = 20 * time.Second
	s.Control.RejectRate, s.Control.CrashRate = 0.5, 0.2
	c, err := oracle.FindCapacity(ctx, &s, 0, 0.95, 1)
	require.NoError(t, err)
	search := oracle.Search{Alpha: 0.95, Bounds: scaling.Bounds{Max: 12}, Steps: []time.Duration{time.Minute}}
	r, err := oracle.Replay(ctx, &s, 1, c, search)
	require.NoError(t, err)
	require.Contains(t, []time.Duration{120 * time.Second, 170 * time.Second, 220 * time.Second}, r.Lead)
	require.Equal(t, time.Minute, r.Step)
	require.Zero(t, r.Result.Refusals+r.Result.Crashes, "the schedule's controller has no faults")
	require.LessOrEqual(t, r.Result.PeakReplicas, int32(7))
	for _, n := range r.Asked {
		require.LessOrEqual(t, n, int32(7), "the quota is a bound")
	}
	require.Zero(t, r.Asked[len(r.Asked)-1], "there is nothing to do at the end")
	require.Equal(t, 0.5, s.Control.RejectRate, "the scenario is left alone")
}

func TestReplayErrors(t *testing.T) {
	ctx := context.Background()
	s := sim.Ramp()
	c := oracle.Capacity{PerSecond: 1.2}
	_, err := oracle.Replay(ctx, &s, 1, c, oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 3, Max: 4}})
	require.ErrorIs(t, err, oracle.ErrUnattainable)
	require.ErrorContains(t, err, "of 0.9900, at safety ")
	require.ErrorContains(t, err, "where it asks for the most that there can be, 4")
	_, err = oracle.Replay(ctx, &s, 1, oracle.Capacity{}, oracle.Search{Steps: []time.Duration{0}, Trims: -1})
	for _, want := range []string{"capacity.perSecond: 0: ", "alpha: 0: ", "bounds.max: 0: ", "trims: -1: ", "steps[0]: 0s: "} {
		require.ErrorContains(t, err, want)
	}
	s.Types = append(s.Types, s.Types[0])
	s.Types[0].Name, s.Types[1].Name = "a", "b"
	_, err = oracle.Replay(ctx, &s, 1, c, oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 3, Max: 8}})
	require.ErrorContains(t, err, "types: 2: must be one")
	s = sim.Ramp()
	s.Types[0].Quota = 5
	_, err = oracle.Replay(ctx, &s, 1, c, oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 6, Max: 8}})
	require.ErrorContains(t, err, "bounds.min: 6: must not be above the quota, 5")
	stopped, stop := context.WithCancel(ctx)
	stop()
	s = sim.Ramp()
	_, err = oracle.Replay(stopped, &s, 1, c, oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 3, Max: 8}})
	require.ErrorIs(t, err, context.Canceled)
}

func TestZeroLag(t *testing.T) {
	demand := []int32{1, 5, 2, 0, 9, 1}
	ask := func(hold time.Duration) (got []int32) {
		c, err := oracle.ZeroLag(begin, demand, 10*time.Second, hold, scaling.Bounds{Min: 1, Max: 8})
		require.NoError(t, err)
		for i := range 7 {
			d := c.Decide(begin.Add(time.Duration(i)*10*time.Second), scaling.GroupObservation{Targets: []scaling.TargetObservation{{SpecReplicas: 3}}})
			got = append(got, d.Targets[0].Replicas)
		}
		return got
	}
	require.Equal(t, []int32{1, 5, 2, 1, 8, 1, 1}, ask(0))
	require.Equal(t, []int32{1, 5, 2, 1, 8, 1, 1}, ask(10*time.Second))
	require.Equal(t, []int32{1, 5, 5, 2, 8, 8, 8}, ask(15*time.Second))
	require.Equal(t, []int32{1, 5, 5, 5, 8, 8, 8}, ask(30*time.Second))
	require.Equal(t, []int32{1, 5, 5, 5, 8, 8, 8}, ask(time.Hour))
	require.Equal(t, []int32{1, 5, 2, 0, 9, 1}, demand, "the input is left alone")
	_, err := oracle.ZeroLag(begin, nil, 0, -1, scaling.Bounds{})
	for _, want := range []string{"demand: 0: ", "step: 0s: ", "hold: -1ns: ", "bounds.max: 0: "} {
		require.ErrorContains(t, err, want)
	}
}
