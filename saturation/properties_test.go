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

// TestRegressionWithoutAWindowNothingSettles: without a window a replica that had not been spare as long as a smaller one was kept for
// "held=0s < window=0s".
func TestRegressionWithoutAWindowNothingSettles(t *testing.T) {
	c := saturation.Config{Thresholds: saturation.Thresholds{KVCache: 0.01, QueueLength: 1}}
	readings := []scaling.Reading{
		{Metric: saturation.DefaultKV, Lower: 0.00375, Upper: 0.00375, Values: 1}, {Metric: saturation.DefaultQueue, Lower: 0.375, Upper: 0.375, Values: 1},
	}
	tick := func(targets ...scalingtest.TargetTick) scalingtest.Tick {
		return scalingtest.Tick{After: 15 * time.Second, Readings: readings, Targets: targets}
	}
	opts := scalingtest.Options{Refused: true}
	var variants []saturation.Variant
	for i, name := range []string{"a", "b", "c"} {
		v := saturation.Variant{Name: name, Max: int32(4 + i)}
		if i == 0 {
			v.Cost, v.Capacity = 1, 2
		}
		variants = append(variants, v)
		opts.Targets = append(opts.Targets, scalingtest.Target{Name: name, Bounds: scaling.Bounds{Max: v.Max}})
	}
	scalingtest.ReplayGroup(t, func() scaling.Group { return groupOf(t, c, variants...) }, opts, "Explained", scalingtest.Episode{
		Specs: []int32{0, 0, 0},
		Ticks: []scalingtest.Tick{
			tick(scalingtest.TargetTick{}, scalingtest.TargetTick{}, scalingtest.TargetTick{Spec: scalingtest.CountOf(3)}),
			tick(scalingtest.TargetTick{}, scalingtest.TargetTick{}, scalingtest.TargetTick{Refuse: true}),
			tick(scalingtest.TargetTick{Spec: scalingtest.CountOf(2)}, scalingtest.TargetTick{}, scalingtest.TargetTick{}),
		},
	})
}
