package saturation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// TestDownStabilizationCountsOnlyWhileAVariantCanBeSpared: of variants of different capacity none can go under a load that
// the rest would not carry. That time does not count as safe: once the load is gone, the whole stabilization is waited for.
func TestDownStabilizationCountsOnlyWhileAVariantCanBeSpared(t *testing.T) {
	c := saturation.Defaults()
	g, err := saturation.NewGroup(saturation.GroupConfig{Config: c, Variants: []saturation.Variant{
		{Name: "large", Cost: 5, Capacity: 3, Max: 4}, {Name: "small", Cost: 1, Capacity: 1, Max: 4},
	}})
	require.NoError(t, err)
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	decide := func(kv float64) scaling.GroupDecision {
		var obs scaling.GroupObservation
		obs.Readings = []scaling.Reading{scaling.Exactly(saturation.DefaultKV, kv), scaling.Exactly(saturation.DefaultQueue, 0)}
		for _, name := range []string{"large", "small"} {
			target := scaling.TargetObservation{Name: name, SpecReplicas: 2, ReadyReplicas: 2}
			for i := range 2 {
				target.Pods = append(target.Pods, scaling.PodObservation{Name: fmt.Sprint(name, i), Values: []float64{kv, 0}})
			}
			obs.Targets = append(obs.Targets, target)
		}
		now = now.Add(15 * time.Second)
		return g.Decide(now, obs)
	}
	for range 40 { // ten minutes
		d := decide(0.68)
		require.False(t, d.Acts(), d.Explain())
	}
	for range c.DownStabilization / (15 * time.Second) {
		d := decide(0.1)
		require.False(t, d.Acts(), d.Explain())
	}
	d := decide(0.1)
	require.True(t, d.Acts(), d.Explain())
}
