package hetero_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// TestWhatWasNotConfiguredDecidesUnknown: the zero Group, and what NewGroup returns beside an error, never acts,
// whatever it is shown and told, and keeps the state that it is given.
func TestWhatWasNotConfiguredDecidesUnknown(t *testing.T) {
	refused := func(f *hetero.Fleet) *hetero.Group {
		g, err := hetero.NewGroup(scaling.New[asksState](asks{}), f, hetero.Options{})
		require.Error(t, err)
		return g
	}
	none, err := hetero.New(hetero.Config{})
	require.Error(t, err)
	rapid.Check(t, func(t *rapid.T) {
		for about, g := range map[string]*hetero.Group{
			"zero": {}, "without a fleet": refused(nil), "with the zero fleet": refused(&hetero.Fleet{}), "with a refused fleet": refused(none),
		} {
			var obs scaling.GroupObservation
			for range rapid.IntRange(0, 3).Draw(t, "targets") {
				obs.Targets = append(obs.Targets, scaling.TargetObservation{
					Name:    rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"),
					Missing: rapid.Bool().Draw(t, "missing"), SpecReplicas: rapid.Int32().Draw(t, "spec"), ReadyReplicas: rapid.Int32().Draw(t, "ready"),
				})
			}
			now := time.UnixMilli(rapid.Int64Range(-1e14, 1e14).Draw(t, "now"))
			d := g.Decide(now, obs)
			require.False(t, d.Acts(), about)
			require.Equal(t, scaling.Unknown, d.Total.Verdict, about)
			require.Equal(t, scaling.NotConfigured, d.Total.Code(), about)
			require.Len(t, d.Targets, len(obs.Targets))
			for i := range d.Targets {
				require.Equal(t, scaling.Unknown, d.Targets[i].Verdict, about)
				require.Equal(t, obs.Targets[i].SpecReplicas, d.Targets[i].Replicas, about)
			}
			g.Applied(now, []int32{1}, []int32{2})
			_, err := g.MarshalJSON()
			require.ErrorContains(t, err, "not configured", about)
			const stored = `{"kind":"bounded","version":1,"state":{}}`
			require.Error(t, g.UnmarshalJSON([]byte(stored)), about)
			data, err := g.MarshalJSON()
			require.NoError(t, err, about)
			require.Equal(t, stored, string(data), about)
		}
	})
}

// TestZeroFleetIsEmpty: what New returns beside an error has no types, and nothing that it answers is wrong for none.
func TestZeroFleetIsEmpty(t *testing.T) {
	refused, err := hetero.New(hetero.Config{})
	require.Error(t, err)
	rapid.Check(t, func(t *rapid.T) {
		total, demand := rapid.Int64().Draw(t, "total"), rapid.Float64().Draw(t, "demand")
		for _, f := range []*hetero.Fleet{{}, refused} {
			require.Empty(t, f.Types())
			require.Empty(t, f.Allocate(nil, total))
			require.Empty(t, f.AllocateFor(nil, demand))
			require.Empty(t, f.AllocateFor(nil, math.NaN()))
			require.Empty(t, f.AllocateSticky(nil, []int32{3}, total, 1))
			require.Empty(t, f.Plan(nil, []int32{3}, []int32{4}))
			require.Empty(t, slices.Collect(f.Batches()))
			require.Zero(t, f.Cost([]int32{3})+f.Capability([]int32{3}))
			require.Equal(t, scaling.Bounds{}, f.Bounds())
		}
	})
}
