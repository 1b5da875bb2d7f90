package oracle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

// TestWithoutAScenario: sim.Run returned an error, and the oracles panicked.
func TestWithoutAScenario(t *testing.T) {
	ctx := context.Background()
	c := oracle.Capacity{PerSecond: 1}
	o := oracle.Search{Alpha: 0.9, Bounds: scaling.Bounds{Min: 1, Max: 2}}
	for name, call := range map[string]func() error{
		"Run":               func() error { _, err := sim.Run(ctx, nil, nil, sim.Options{}); return err },
		"FindCapacity":      func() error { _, err := oracle.FindCapacity(ctx, nil, 0, 0.9, 1); return err },
		"FindFleetCapacity": func() error { _, err := oracle.FindFleetCapacity(ctx, nil, 0, 2, 0.9, 1); return err },
		"Replay":            func() error { _, err := oracle.Replay(ctx, nil, 1, c, o); return err },
		"Limit":             func() error { _, err := oracle.Limit(ctx, nil, 1, c, o, 0); return err },
		"Told":              func() error { _, err := oracle.Told(ctx, nil, 1, c, o, 0, 1, 0); return err },
		"Floor":             func() error { _, err := oracle.Floor(nil, 0, 1, 0.9); return err },
	} {
		require.EqualError(t, call(), "scenario: <nil>: must be set", name)
	}
}
