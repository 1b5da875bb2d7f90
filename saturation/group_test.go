package saturation_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

func groupOf(t require.TestingT, c saturation.Config, variants ...saturation.Variant) *saturation.Group {
	g, err := saturation.NewGroup(saturation.GroupConfig{Config: c, Variants: variants})
	require.NoError(t, err)
	return g
}

// observed returns the observation of a scene: what its rows say, below an unrelated reading.
func observed(s scene) scaling.GroupObservation {
	obs := scaling.GroupObservation{Readings: []scaling.Reading{
		{Metric: "other"}, {Metric: saturation.DefaultQueue}, {Metric: saturation.DefaultKV},
	}}
	for _, v := range s.variants {
		t := scaling.TargetObservation{Name: v.Name, SpecReplicas: v.Current, PendingReplicas: v.Pending}
		for _, r := range s.replicas {
			if r.Variant == v.Name {
				t.Pods = append(t.Pods, scaling.PodObservation{Name: r.Pod, Values: []float64{7, r.Queue, r.KV}})
			}
		}
		t.ReadyReplicas = int32(len(t.Pods))
		obs.Targets = append(obs.Targets, t)
	}
	return obs
}

// TestGroupAgreesWithModel: through random lives with restarts, a Group answers what the algorithm answers on the same
// rows and variants.
func TestGroupAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		variants := drawVariants(t)
		scaler := build(t, c)
		m, g := saturation.NewModel(scaler), groupOf(t, c, variants...)
		now := start
		for range rapid.IntRange(1, 12).Draw(t, "ticks") {
			now = now.Add(drawSeconds(t, -10, 60, "step"))
			s := drawScene(t, variants, rapid.IntRange(0, 2).Draw(t, "mood"), c.Mode == saturation.Literal)
			for i := range s.variants {
				s.variants[i].Pending = min(s.variants[i].Pending, s.variants[i].Current)
			}
			for i := range s.replicas {
				if s.replicas[i].Variant == "ghost" { // pods are their targets'
					s.replicas[i].Variant = "a"
				}
			}
			p, d := m.Decide(now, s.replicas, s.variants), g.Decide(now, observed(s))
			require.Equal(t, p.Model(), d.Total)
			require.Len(t, d.Targets, len(s.variants))
			from, to := make([]int32, len(variants)), make([]int32, len(variants))
			for i, v := range s.variants {
				require.NoError(t, scalingtest.Explained(&d.Targets[i]))
				require.Equal(t, p.Target(v.Name).Decision, d.Targets[i], p.Explain())
				from[i], to[i] = v.Current, v.Current
				if d.Targets[i].Acts() && rapid.Bool().Draw(t, "carried out") {
					to[i] = min(d.Targets[i].Replicas, 12)
					m.Applied(now, from[i], to[i])
				}
				variants[i].Current = to[i]
			}
			g.Applied(now, from, to)
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				data, err := json.Marshal(g)
				require.NoError(t, err)
				g = groupOf(t, c, variants...)
				require.NoError(t, g.UnmarshalJSON(data))
			}
		}
	})
}

// TestGroupTargets goes through what a target can be besides there.
func TestGroupTargets(t *testing.T) {
	c := saturation.Defaults()
	c.DownStabilization = 0
	busy := func(name string, n int32) scaling.TargetObservation {
		s := scene{same(name, int(n), 0.9, 9), []saturation.Variant{{Name: name, Current: n}}}
		return observed(s).Targets[0]
	}
	for _, l := range []struct {
		name    string
		targets []scaling.TargetObservation
		want    string
	}{
		{"there", []scaling.TargetObservation{busy("b", 2), busy("a", 2)}, "Up: Hold Dearer, Up Cheapest"},
		{"missing", []scaling.TargetObservation{busy("b", 2), {Name: "a", Missing: true}}, "Up: Up Alone, Unknown NoTarget"},
		{"missing, with what it was", []scaling.TargetObservation{busy("b", 2), {Name: "a", Missing: true, SpecReplicas: 5, Pods: busy("a", 5).Pods}}, "Up: Up Alone, Unknown NoTarget"},
		{"no variant", []scaling.TargetObservation{busy("b", 2), busy("c", 2)}, "Up: Up Alone, Unknown NoVariant"},
		{"no variant and no pods", []scaling.TargetObservation{busy("b", 2), {Name: "c", SpecReplicas: 1}}, "Up: Up Alone, Unknown NoVariant"},
		{"twice", []scaling.TargetObservation{busy("a", 2), busy("b", 2), busy("a", 2)}, "Up: Unknown Contradicted, Up Alone, Unknown Contradicted"},
		// As one known variant it was the cheapest, was chosen, and could not act: nobody ever grew.
		{"twice, once without pods", []scaling.TargetObservation{busy("a", 2), busy("b", 2), {Name: "a", SpecReplicas: 2}}, "Up: Unknown Contradicted, Up Alone, Unknown Contradicted"},
		{"twice, without pods", []scaling.TargetObservation{{Name: "a", SpecReplicas: 2}, busy("b", 2), {Name: "a", SpecReplicas: 2}}, "Up: Unknown Contradicted, Up Alone, Unknown Contradicted"},
		{"twice, once missing", []scaling.TargetObservation{busy("a", 2), {Name: "a", Missing: true}}, "Up: Up Alone, Unknown NoTarget"},
		{"pods below the count", []scaling.TargetObservation{busy("a", 2), {Name: "b", SpecReplicas: 1, PendingReplicas: 1}}, "Hold: Hold Blocked, Hold Starting"},
		{"nothing", nil, "Unknown: "},
	} {
		t.Run(l.name, func(t *testing.T) {
			g := groupOf(t, c, saturation.Variant{Name: "a", Cost: 1}, saturation.Variant{Name: "b", Cost: 2})
			obs := scaling.GroupObservation{Targets: l.targets, Readings: observed(scene{}).Readings}
			d := g.Decide(start, obs)
			got := fmt.Sprint(d.Total.Verdict, ": ")
			for i := range d.Targets {
				require.Equal(t, l.targets[i].SpecReplicas, d.Targets[i].From)
				if i > 0 {
					got += ", "
				}
				got += fmt.Sprint(d.Targets[i].Verdict, " ", d.Targets[i].Code())
			}
			require.Equal(t, l.want, got, d.Explain())
		})
	}
	t.Run("a reading that nobody has", func(t *testing.T) {
		g := groupOf(t, c, saturation.Variant{Name: "a", Cost: 1})
		d := g.Decide(start, scaling.GroupObservation{Targets: []scaling.TargetObservation{busy("a", 2)}})
		require.Equal(t, scaling.Unknown, d.Targets[0].Verdict)
		require.Equal(t, saturation.NoData, d.Targets[0].Code())
	})
	t.Run("a pod with too few values", func(t *testing.T) {
		g := groupOf(t, c, saturation.Variant{Name: "a", Cost: 1})
		obs := observed(scene{same("a", 2, 0.1, 0), []saturation.Variant{{Name: "a", Current: 2}}})
		obs.Targets[0].Pods[1].Values = []float64{7}
		require.Equal(t, saturation.Missing, g.Decide(start, obs).Targets[0].Code())
		obs.Targets[0].Pods[1].Values = []float64{7, 0, math.NaN()}
		require.Equal(t, saturation.Missing, g.Decide(start, obs).Targets[0].Code())
	})
}

// TestGroupRetune: new thresholds come into force with the state kept; wrong ones change nothing.
func TestGroupRetune(t *testing.T) {
	g := groupOf(t, saturation.Defaults(), saturation.Variant{Name: "a", Cost: 1}, saturation.Variant{Name: "b", Cost: 2})
	s := scene{same("a", 2, 0.55, 0), []saturation.Variant{{Name: "a", Current: 2}, {Name: "b", Current: 1, Pending: 1}}}
	code := func(at time.Duration) scaling.Code {
		d := g.Decide(start.Add(at), observed(s))
		return d.Targets[0].Code()
	}
	require.Equal(t, saturation.Blocked, code(0))
	other := saturation.Recommended()
	other.KVCache = 0.6
	require.NoError(t, g.Retune(other))
	require.Equal(t, saturation.Blocked, code(599*time.Second))
	other.KVSpare = 0.7
	var field *scaling.FieldError
	require.ErrorAs(t, g.Retune(other), &field)
	require.Equal(t, saturation.Alone, code(600*time.Second), "what was waited for stays waited for, and 0.6 is in force")
	require.NoError(t, g.Retune(saturation.Recommended()))
	require.NotEqual(t, saturation.Alone, code(601*time.Second))
}

// TestZeroValuesDecideUnknown: what New, NewGroup or NewSingle did not make says nothing, and keeps a state.
func TestZeroValuesDecideUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t, drawVariants(t), rapid.IntRange(0, 3).Draw(t, "mood"), false)
		var scaler saturation.Scaler
		p := saturation.NewModel(scaler).Decide(start, s.replicas, s.variants)
		require.Equal(t, scaling.Unknown, p.Model().Verdict)
		for i := range p.Targets {
			require.Equal(t, scaling.Unknown, p.Targets[i].Decision.Verdict)
			require.Equal(t, scaling.NotConfigured, p.Targets[i].Decision.Code())
		}
		before := saturation.State{Fleet: 3}
		require.Equal(t, before, scaler.Applied(before, start, 2, 3))

		var g saturation.Group
		const stored = `{"kind":"saturation","version":1,"state":{"seen":1768464000000}}`
		require.NoError(t, g.UnmarshalJSON([]byte(stored)))
		d := g.Decide(start, observed(s))
		g.Applied(start, []int32{1}, []int32{2})
		require.False(t, d.Acts())
		for i := range d.Targets {
			require.Equal(t, scaling.Unknown, d.Targets[i].Verdict)
			require.Equal(t, scaling.NotConfigured, d.Targets[i].Code())
			require.Equal(t, s.variants[i].Current, d.Targets[i].From)
		}
		require.Equal(t, scaling.Unknown, d.Total.Verdict)
		data, err := json.Marshal(&g)
		require.NoError(t, err)
		require.JSONEq(t, stored, string(data))

		var single saturation.Single
		one := single.Decide(start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
			scaling.Exactly(saturation.DefaultKV, rapid.Float64Range(0, 1).Draw(t, "kv")), scaling.Exactly("", 0.5),
		}})
		single.Applied(start, 3, 4)
		require.Equal(t, scaling.Unknown, one.Verdict, one.Explain())
		require.Equal(t, scaling.NotConfigured, one.Code())
	})
}

// TestGroupHoldAllocatesNothing: a decision of a Group that was asked before.
func TestGroupHoldAllocatesNothing(t *testing.T) {
	g := groupOf(t, saturation.Defaults(), saturation.Variant{Name: "a", Cost: 1}, saturation.Variant{Name: "b", Cost: 2})
	obs := observed(scene{append(same("a", 3, 0.6, 1), same("b", 3, 0.6, 1)...), []saturation.Variant{{Name: "a", Current: 3}, {Name: "b", Current: 3}}})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if d := g.Decide(start, obs); d.Acts() {
			t.Error(d.Explain())
		}
	}))
}

func TestNewGroupErrors(t *testing.T) {
	_, err := saturation.NewGroup(saturation.GroupConfig{KV: "x", Queue: "x"})
	for _, field := range []string{"kvCacheThreshold", "variants", "queue"} {
		require.ErrorContains(t, err, field)
	}
	_, err = saturation.NewGroup(saturation.GroupConfig{Config: saturation.Defaults(), Variants: []saturation.Variant{{Name: "a"}, {Name: "a", Cost: -1}}})
	for _, field := range []string{"variants[1].name", "variants[1].cost"} {
		require.ErrorContains(t, err, field)
	}
}

// TestEveryWrongFieldNamesItsVariant: with two wrong fields in a variant, the second had no variant in its line, and neither
// had one in its Field.
func TestEveryWrongFieldNamesItsVariant(t *testing.T) {
	_, err := saturation.NewGroup(saturation.GroupConfig{Config: saturation.Defaults(), Variants: []saturation.Variant{
		{Name: "a", Cost: 1}, {Name: "b", Cost: -1, Min: 3, Max: 2},
	}})
	require.EqualError(t, err, "variants[1].cost: -1: must be a number from 0 to 1e100\nvariants[1].max: 2: must be 0, which is none, or not below min")
	var field *scaling.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "variants[1].cost", field.Field)
}

// TestRegressionAVariantNeedsAName: without one it was taken, and its target was Unknown for ever.
func TestRegressionAVariantNeedsAName(t *testing.T) {
	_, err := saturation.NewGroup(saturation.GroupConfig{Config: saturation.Defaults(), Variants: []saturation.Variant{{Cost: 1}}})
	require.EqualError(t, err, `variants[0].name: "": must not be empty`)
}
