package oracle_test

import (
	"context"
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
