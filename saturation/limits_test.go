package saturation_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// atHalf has one threshold of 0.5, no triggers, and no wait: 0.4999999995 is the least load that is saturated there.
func atHalf(kv, queue float64) saturation.Config {
	c := saturation.Defaults()
	c.Thresholds = saturation.Thresholds{KVCache: kv, QueueLength: queue}
	c.DownStabilization = 0
	return c
}

const leastOfHalf = 0.4999999995

// TestWhatAConstructorReturnsBesideAnErrorDecidesUnknown, and does not panic.
func TestWhatAConstructorReturnsBesideAnErrorDecidesUnknown(t *testing.T) {
	single, err := saturation.NewSingle(saturation.SingleConfig{})
	require.Error(t, err)
	one := single.Decide(start, scaling.Observation{SpecReplicas: 3})
	require.Equal(t, scaling.NotConfigured, one.Code())
	group, err := saturation.NewGroup(saturation.GroupConfig{})
	require.Error(t, err)
	all := group.Decide(start, scaling.OneTarget(3))
	require.Equal(t, scaling.NotConfigured, all.Targets[0].Code())
}

// TestTheLeastLoadThatIsSaturatedIsNamed: a replica at it is the reason why none goes, and so is what the rest would carry,
// each with the metric that is there and not the other.
func TestTheLeastLoadThatIsSaturatedIsNamed(t *testing.T) {
	variant := func(n int32) []saturation.Variant { return []saturation.Variant{{Name: "a", Cost: 1, Current: n}} }
	last := func(c saturation.Config, replicas []saturation.Replica) scaling.Step {
		m := decideOnce(t, c, scene{replicas, variant(int32(len(replicas)))}).Model()
		steps := m.Steps()
		return steps[len(steps)-1]
	}
	s := last(atHalf(0.5, 5), append(same("a", 3, 0.1, 0), rows("a", leastOfHalf, 0)...))
	require.Equal(t, saturation.SaturatedKV, s.Code)
	s = last(atHalf(0.5, 5), same("a", 3, 0.333333333, 0))
	require.Equal(t, saturation.FullSaturated, s.Code)
	require.Equal(t, []float64{leastOfHalf, 0.5}, s.Numbers[:2])
	s = last(atHalf(0.8, 0.5), same("a", 3, 0, 0.333333333))
	require.Equal(t, saturation.FullSaturated, s.Code)
	require.Equal(t, []float64{leastOfHalf, 0.5}, s.Numbers[:2])
}

// TestAnAverageAtTheLeastLoadThatIsSaturated: all replicas are then, by the cache as by the queue.
func TestAnAverageAtTheLeastLoadThatIsSaturated(t *testing.T) {
	for want, c := range map[scaling.Code]saturation.SingleConfig{
		saturation.SaturatedKV: singleConfig(atHalf(0.5, 5)), saturation.SaturatedQueue: singleConfig(atHalf(0.8, 0.5)),
	} {
		kv, queue := leastOfHalf, 0.0
		if want == saturation.SaturatedQueue {
			kv, queue = queue, kv
		}
		single, err := saturation.NewSingle(c)
		require.NoError(t, err)
		d := single.Decide(start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
			scaling.Exactly(c.KV, kv), scaling.Exactly(c.Queue, queue),
		}})
		require.Equal(t, want, d.Code(), d.Explain())
	}
}

// TestOneOfTwoReplicasGoes: beside a variant of another capacity that runs none.
func TestOneOfTwoReplicasGoes(t *testing.T) {
	p := decideOnce(t, atHalf(0.8, 5), scene{same("a", 2, 0.1, 0), []saturation.Variant{
		{Name: "a", Cost: 1, Current: 2}, {Name: "b", Cost: 1, Capacity: 3},
	}})
	require.EqualValues(t, 1, p.Target("a").Decision.Replicas, p.Explain())
}

// TestAStepBackKeepsWhatATransitionHasWaited: it is set aside when it has waited for the timeout, before and after.
func TestAStepBackKeepsWhatATransitionHasWaited(t *testing.T) {
	c := saturation.Defaults()
	m := modelOf(t, c)
	setAside := func(at time.Duration) (is bool) {
		p := m.Decide(start.Add(at), same("a", 3, 0.1, 0), []saturation.Variant{{Name: "a", Cost: 1, Current: 4}})
		for _, s := range p.Targets[0].Decision.Steps() {
			is = is || s.Code == saturation.SetAside
		}
		return is
	}
	require.False(t, setAside(0))
	require.False(t, setAside(100*time.Second))
	require.False(t, setAside(40*time.Second), "it has waited for 100 s")
	require.False(t, setAside(40*time.Second+c.TransitionTimeout-101*time.Second))
	require.True(t, setAside(40*time.Second+c.TransitionTimeout-100*time.Second))
}

// TestAPlanOfBeforeSaysNothing: a plan that is used again has no step of the decision before, whoever uses it.
func TestAPlanOfBeforeSaysNothing(t *testing.T) {
	s := build(t, saturation.Defaults())
	variants := []saturation.Variant{{Name: "a", Cost: 1, Current: 2}}
	a := analyze(s, same("a", 2, 0.9, 0))
	var p saturation.Plan
	s.Decide(saturation.State{}, start, a, variants, &p)
	m := p.Model()
	require.Equal(t, scaling.Up, m.Verdict)
	saturation.Scaler{}.Decide(saturation.State{}, start, a, variants, &p)
	m = p.Model()
	require.Len(t, m.Steps(), 1)
	require.Equal(t, scaling.NotConfigured, m.Code())
}

// TestCountsOfWhatWasCarriedOutThatDoNotMatch: those that have no other are not looked at.
func TestCountsOfWhatWasCarriedOutThatDoNotMatch(t *testing.T) {
	g := groupOf(t, saturation.Defaults(), saturation.Variant{Name: "a", Cost: 1})
	require.NotPanics(t, func() {
		g.Applied(start, []int32{1, 2}, []int32{1})
		g.Applied(start, nil, []int32{1})
	})
}

// TestAFingerprintHas16Digits: fewer are no fingerprint that was written, nor are others than hexadecimal ones.
func TestAFingerprintHas16Digits(t *testing.T) {
	var f saturation.Fingerprint
	require.NoError(t, f.UnmarshalText([]byte("00000000000000ff")))
	require.EqualValues(t, 255, f)
	for _, text := range []string{"ff", "", "000000000000000000ff", "00000000000000gg"} {
		require.Error(t, f.UnmarshalText([]byte(text)), text)
	}
	require.EqualValues(t, 255, f)
}

// TestAVariantWithoutAValueHasAnAverageOfZero: and what is known of the model can be written as JSON, which knows no NaN.
func TestAVariantWithoutAValueHasAnAverageOfZero(t *testing.T) {
	byDefault, _ := both(t)
	a := analyze(byDefault, rows("a", math.NaN(), 0))
	require.Zero(t, a.Variants[0].AverageKV)
	_, err := json.Marshal(a)
	require.NoError(t, err)
}

// TestSumsBelowZero: to the last billionth, as far from zero as above it.
func TestSumsBelowZero(t *testing.T) {
	for _, x := range []float64{1e-9, 2e-9, 0.25, 1, 1e9} {
		require.Equal(t, -x, saturation.Sum([]float64{-x})) //nolint:testifylint // the same bits are meant
		require.Zero(t, saturation.Sum([]float64{-x, x}))
	}
}
