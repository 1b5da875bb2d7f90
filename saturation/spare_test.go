package saturation_test

import (
	"fmt"
	"math"
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

// TestASmallReplicaThatIsSpareSettlesNoLargeOne: the time for which a scale-down was safe went on while only a small variant at its
// minimum had a replica to spare, and one sample was then enough to remove a replica ten times as large.
func TestASmallReplicaThatIsSpareSettlesNoLargeOne(t *testing.T) {
	s := build(t, saturation.Defaults())
	var state saturation.State
	var a saturation.Analysis
	var plan saturation.Plan
	variants := []saturation.Variant{{Name: "big", Cost: 20, Capacity: 10, Min: 1, Current: 2}, {Name: "small", Cost: 1, Capacity: 1, Min: 1, Current: 1}}
	begin := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	removed := func(after time.Duration, kv float64) bool {
		s.Analyze(&a, []saturation.Replica{{Pod: "b0", Variant: "big", KV: kv}, {Pod: "b1", Variant: "big", KV: kv}, {Pod: "s0", Variant: "small", KV: kv}})
		state = s.Decide(state, begin.Add(after), &a, variants, &plan)
		return plan.Target("big").Decision.Acts()
	}
	for after := time.Duration(0); after < 10*time.Minute; after += 15 * time.Second {
		require.False(t, removed(after, 0.5))
	}
	for after := 10 * time.Minute; after < 15*time.Minute; after += 15 * time.Second {
		require.False(t, removed(after, 0.3), "%s", after)
	}
	require.True(t, removed(15*time.Minute, 0.3))

	state.Spare = math.NaN()
	require.ErrorContains(t, state.Validate(), "spare: must be a number that is not negative")
}

// TestASmallReplicaDoesNotStarve: a large replica that can be spared now and then does not keep a small one that always can.
func TestASmallReplicaDoesNotStarve(t *testing.T) {
	s := build(t, saturation.Defaults())
	var state saturation.State
	var a saturation.Analysis
	var plan saturation.Plan
	variants := []saturation.Variant{{Name: "big", Cost: 20, Capacity: 10, Min: 1, Current: 2}, {Name: "small", Cost: 1, Capacity: 1, Min: 1, Current: 3}}
	begin := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	for i := range 21 {
		kv := 0.5 // 0.52 without a small one, 0.88 without a big one
		if i%8 == 1 {
			kv = 0.3 // 0.53 without a big one
		}
		s.Analyze(&a, []saturation.Replica{
			{Pod: "b0", Variant: "big", KV: kv},
			{Pod: "b1", Variant: "big", KV: kv},
			{Pod: "s0", Variant: "small", KV: kv},
			{Pod: "s1", Variant: "small", KV: kv},
			{Pod: "s2", Variant: "small", KV: kv},
		})
		state = s.Decide(state, begin.Add(time.Duration(i)*15*time.Second), &a, variants, &plan)
		require.False(t, plan.Target("big").Decision.Acts())
		require.Equal(t, i == 20, plan.Target("small").Decision.Acts(), "%d: %s", i, plan.Explain())
	}
}
