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

// Who is told the present is dearer than who knows the future, and cheaper than who holds what the peak needs.
func TestLimit(t *testing.T) {
	ctx := context.Background()
	s := sim.Ramp()
	c, err := oracle.FindCapacity(ctx, &s, 0, 0.99, 2)
	require.NoError(t, err)
	search := oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: 8}, Trims: 20}
	replayed, err := oracle.Replay(ctx, &s, 1, c, search)
	require.NoError(t, err)
	present, err := oracle.Limit(ctx, &s, 1, c, search, 0)
	require.NoError(t, err)
	require.True(t, present.Attains)
	again, err := oracle.Limit(ctx, &s, 1, c, search, 0)
	require.NoError(t, err)
	require.Equal(t, present, again, "deterministic")
	start, err := oracle.Limit(ctx, &s, 1, c, search, 100*time.Second)
	require.NoError(t, err)
	t.Logf("replay %.2f, a cold start ahead %.2f, the present %.2f replica-hours", replayed.Result.ReplicaHours, start.Result.ReplicaHours, present.Result.ReplicaHours)
	require.Greater(t, present.Result.ReplicaHours, replayed.Result.ReplicaHours)
	require.Less(t, start.Result.ReplicaHours, present.Result.ReplicaHours)
	r := run(t, &s, 1, present.Controller(begin))
	require.Equal(t, present.Result.ReplicaHours, r.ReplicaHours, "what is certified is what it does")
	require.Equal(t, present.Result.Attainment, r.Attainment)
}

func TestLimitThatCannotAttain(t *testing.T) {
	ctx := context.Background()
	s := sim.Ramp()
	c, err := oracle.FindCapacity(ctx, &s, 0, 0.99, 1)
	require.NoError(t, err)
	l, err := oracle.Limit(ctx, &s, 1, c, oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: 3}}, 0)
	require.NoError(t, err)
	require.False(t, l.Attains)
	require.Less(t, l.Result.Attainment, 0.99)
	require.Positive(t, l.Result.Requests, "the run that attained most")
	_, err = oracle.Limit(ctx, &s, 1, c, oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: 3}}, -time.Second)
	require.Error(t, err)
}

// With the margin and the hold that Limit found, Told is the same policy. What one scenario needs does not do for another.
func TestTold(t *testing.T) {
	ctx := context.Background()
	s := sim.Ramp()
	c, err := oracle.FindCapacity(ctx, &s, 0, 0.99, 2)
	require.NoError(t, err)
	search := oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: 8}}
	fitted, err := oracle.Limit(ctx, &s, 1, c, search, 0)
	require.NoError(t, err)
	told, err := oracle.Told(ctx, &s, 1, c, search, 0, fitted.Margin, fitted.Hold)
	require.NoError(t, err)
	require.Equal(t, 1, told.Runs)
	told.Runs = fitted.Runs
	require.Equal(t, fitted, told)
	less, err := oracle.Told(ctx, &s, 1, c, search, 0, fitted.Margin/2, fitted.Hold)
	require.NoError(t, err)
	require.False(t, less.Attains)
	require.Less(t, less.Result.ReplicaHours, told.Result.ReplicaHours)
	s.Types[0].Startup = sim.ColdStart(10 * time.Minute)
	slow, err := oracle.Told(ctx, &s, 1, c, search, 0, fitted.Margin, fitted.Hold)
	require.NoError(t, err)
	require.False(t, slow.Attains, "with starts of ten minutes the same margin is too little")
	for _, margin := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		_, err = oracle.Told(ctx, &s, 1, c, search, 0, margin, 0)
		require.ErrorContains(t, err, "margin")
	}
	_, err = oracle.Told(ctx, &s, 1, c, search, 0, 1, -time.Second)
	require.ErrorContains(t, err, "hold")
	_, err = oracle.Told(ctx, &s, 1, c, search, -time.Second, 1, 0)
	require.ErrorContains(t, err, "ahead")
}
