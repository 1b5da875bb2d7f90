package oracle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

// TestFloorWithPrefixCaches: where all prompts begin alike a fleet with prefix caches does what is below the floor of one
// without, and not below its own.
func TestFloorWithPrefixCaches(t *testing.T) {
	trace := sim.Trace{Length: time.Minute}
	for i := range 1800 {
		r := sim.Request{At: time.Duration(i) * time.Minute / 1800, Input: 4000, Output: 1 + int32(i%3)}
		for id := range uint64(7) {
			r.Blocks = append(r.Blocks, id)
		}
		trace.Requests = append(trace.Requests, r)
	}
	s := sim.Ramp()
	s.Workload, s.Horizon, s.BlockTokens = trace, 2*time.Minute, 512
	s.Types[0].Initial = 1
	r := run(t, &s, 1, sim.Static(1))
	require.Greater(t, r.Attainment, 0.9)
	floor, err := oracle.Floor(&s, 0, 1, r.Attainment)
	require.NoError(t, err)
	require.LessOrEqual(t, floor, r.ReplicaHours)
	s.BlockTokens = 0
	without, err := oracle.Floor(&s, 0, 1, r.Attainment)
	require.NoError(t, err)
	require.Greater(t, without, r.ReplicaHours)
}

// TestFloorIsOfOpenLoops: of sessions there is none, since a slower fleet is asked something else.
func TestFloorIsOfOpenLoops(t *testing.T) {
	s := sim.Ramp()
	length := sim.Length{Mean: 10, Min: 1, Max: 20}
	s.Workload = sim.Sessions{First: sim.Trace{Requests: []sim.Request{{Input: 1, Output: 1}}}, Turns: length, Question: length, Answer: length}
	_, err := oracle.Floor(&s, 0, 1, 0.9)
	require.ErrorContains(t, err, `workload: "Sessions": must be open loop`)
}

// TestReplayServesSessions: schedules are run on the sessions themselves, and not on what the reference is asked.
func TestReplayServesSessions(t *testing.T) {
	first := sim.Trace{Length: 10 * time.Minute}
	for i := range 60 {
		first.Requests = append(first.Requests, sim.Request{At: time.Duration(i) * 5 * time.Second, Input: 2000, Output: 200})
	}
	s := sim.Ramp()
	s.Horizon = 0
	s.Workload = sim.Sessions{
		First: first, Turns: sim.Length{Mean: 20, Min: 1, Max: 20}, Think: sim.Delay{Median: 5 * time.Second},
		Question: sim.Length{Mean: 100, Min: 1, Max: 100}, Answer: sim.Length{Mean: 200, Min: 1, Max: 200}, Reference: s.SLO,
	}
	c, err := oracle.FindCapacity(t.Context(), &s, 0, 0.9, 1)
	require.NoError(t, err)
	best, err := oracle.Replay(t.Context(), &s, 1, c, oracle.Search{Alpha: 0.9, Bounds: sim.RampBounds()})
	require.NoError(t, err)
	require.Positive(t, best.Result.Reference)
	require.Greater(t, best.Result.Requests, best.Result.Reference, "faster than the SLO allows")
	again := run(t, &s, 1, best.Controller(s.Begin()))
	require.Equal(t, best.Result.Attainment, again.Attainment)
}
