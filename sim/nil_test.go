package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestRegressionNothingIsNotRun: without a scenario or a function that makes the group, Run panicked.
func TestRegressionNothingIsNotRun(t *testing.T) {
	_, err := sim.Run(t.Context(), nil, func() (scaling.Group, error) { return nil, nil }, sim.Options{})
	require.ErrorContains(t, err, "scenario: ")
	ramp := sim.Ramp()
	_, err = sim.Run(t.Context(), &ramp, nil, sim.Options{})
	require.ErrorContains(t, err, "newGroup: ")
}

// TestRegressionNoStep: without a step, or with a negative length, Diurnal panicked.
func TestRegressionNoStep(t *testing.T) {
	require.Empty(t, sim.Diurnal(1, 2, time.Hour, 0))
	require.Empty(t, sim.Diurnal(1, 2, -time.Hour, time.Minute))
	require.Len(t, sim.Diurnal(1, 2, time.Hour, time.Minute), 60)
}

// TestRegressionSpansWithoutEnd: with a step of nanoseconds, as where the unit was forgotten, Diurnal asked for terabytes and ended
// the process; a burst to the end of time never began.
func TestRegressionSpansWithoutEnd(t *testing.T) {
	require.Len(t, sim.Diurnal(1, 1, 90*24*time.Hour, time.Second), 7_776_000)
	rates := sim.Diurnal(1, 1, 2*time.Hour, time.Hour, sim.Burst{At: time.Hour, Duration: math.MaxInt64, Factor: 3})
	require.Equal(t, []sim.Rate{{PerSecond: 1}, {PerSecond: 3}}, rates)
	require.Empty(t, sim.Diurnal(1, 2, 24*time.Hour, 60))
}

// TestRegressionRequestsOfNothing: without a workload, as after an error of traces.Open that nobody looked at, Requests panicked.
func TestRegressionRequestsOfNothing(t *testing.T) {
	n := 0
	for _, err := range sim.Requests(nil, 1) {
		require.EqualError(t, err, "workload: <nil>: must be set")
		n++
	}
	require.Equal(t, 1, n)
}
