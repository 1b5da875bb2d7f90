package oracle_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

// unchecked is a workload of somebody's own, which looks at nothing.
type unchecked struct {
	sim.Trace
}

func (unchecked) Validate(string) error { return nil }

// TestRegressWorkloadsThatBreakTheRulesAreErrors: of a request before 0 some once panicked, and Floor was below zero; Demand
// took any workload, and panicked of stages without one.
func TestRegressWorkloadsThatBreakTheRulesAreErrors(t *testing.T) {
	s := sim.Ramp()
	s.Workload, s.Horizon = unchecked{sim.Trace{Requests: []sim.Request{{At: -time.Hour, Input: -3, Output: -2}}, Length: time.Minute}}, 0
	c := oracle.Capacity{PerSecond: 2, Attainment: 0.99}
	o := oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: 8}}
	_, demand := oracle.Demand(s.Workload, 1, time.Second, c)
	_, limit := oracle.Limit(t.Context(), &s, 1, c, o, time.Minute)
	_, replay := oracle.Replay(t.Context(), &s, 1, c, o)
	_, capacity := oracle.FindCapacity(t.Context(), &s, 0, 0.99, 1)
	_, floor := oracle.Floor(&s, 0, 1, 0.99)
	for _, err := range []error{demand, limit, replay, capacity, floor} {
		require.ErrorContains(t, err, "workload.requests[0].at: -1h0m0s: must not be before the one before it, 0s")
		require.ErrorContains(t, err, "workload.requests[0].output: -2: must be at least 1")
	}
	_, err := oracle.Demand(sim.Stages{}, 1, time.Second, c)
	require.ErrorContains(t, err, "workload.stages: 0: must have at least one stage")
	demands, err := oracle.Demand(sim.Trace{Requests: []sim.Request{{Input: 1, Output: 1}}}, 1, math.MaxInt64, c)
	require.NoError(t, err)
	require.Equal(t, []int32{1}, demands)
}

// TestRegressRequestsLongerThanARunAreUnattainable: they were an error of a field that nobody had set, the duration of the
// measurement's own workload.
func TestRegressRequestsLongerThanARunAreUnattainable(t *testing.T) {
	s := sim.Ramp()
	s.Workload = sim.Trace{Requests: []sim.Request{{Input: math.MaxInt32, Output: math.MaxInt32}}, Length: time.Minute}
	_, err := oracle.FindCapacity(t.Context(), &s, 0, 0.99, 1)
	require.ErrorIs(t, err, oracle.ErrUnattainable)
}
