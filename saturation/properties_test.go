package saturation_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestGroupProperties has the properties that package scalingtest checks of any group, and that more load never asks
// for fewer replicas in mode Default.
func TestGroupProperties(t *testing.T) {
	scalingtest.RunGroupDrawn(t, func(t *rapid.T) (func() scaling.Group, scalingtest.Options) {
		c := saturation.GroupConfig{Config: drawConfig(t)}
		opts := scalingtest.Options{
			Memory: 10 * time.Minute, MaxState: 1000, Monotone: c.Mode == saturation.Default,
			Refused: true,
			Metrics: []scalingtest.Metric{
				{Name: saturation.DefaultKV, Low: (c.KVCache - c.KVSpare) / 2, High: c.KVCache - c.KVSpare},
				{Name: saturation.DefaultQueue, Low: (c.QueueLength - c.QueueSpare) / 2, High: c.QueueLength - c.QueueSpare},
			},
		}
		for i, name := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "variants")] {
			v := saturation.Variant{
				Name: name, Cost: float64(rapid.IntRange(0, 2).Draw(t, "cost")), Capacity: float64(rapid.IntRange(0, 3).Draw(t, "capacity")),
				Min: rapid.Int32Range(0, 1).Draw(t, "min"), Max: int32(4 + i),
			}
			c.Variants = append(c.Variants, v)
			opts.Targets = append(opts.Targets, scalingtest.Target{Name: name, Bounds: scaling.Bounds{Min: v.Min, Max: v.Max}})
		}
		if c.Mode == saturation.Literal {
			// The literal rule knows no time, and takes infinities and negative values as they are. Saturated replicas
			// have no say in it, so that one whose KV cache usage is not known can turn a hold into an up.
			opts.Skip = []string{"ClockBack", "NoData", "MissingNeverActs"}
		}
		return func() scaling.Group {
			g, err := saturation.NewGroup(c)
			require.NoError(t, err)
			return g
		}, opts
	})
}

// TestTotalOfNegativeCountsDoesNotWrap: the sum of counts below the least one of an int32 came out as a large positive one.
func TestTotalOfNegativeCountsDoesNotWrap(t *testing.T) {
	g := groupOf(t, saturation.Defaults(), saturation.Variant{Name: "a"}, saturation.Variant{Name: "b"})
	d := g.Decide(start, scaling.GroupObservation{Targets: []scaling.TargetObservation{
		{Name: "a", SpecReplicas: -1}, {Name: "b", SpecReplicas: math.MinInt32},
	}})
	require.Equal(t, int32(math.MinInt32), d.Total.From)
}
