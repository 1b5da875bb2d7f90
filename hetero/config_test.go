package hetero_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestErrorsNameEveryField: a configuration in which everything is wrong is told so in one go.
func TestErrorsNameEveryField(t *testing.T) {
	c := hetero.Config{ExpansionRate: -1, Types: []hetero.Type{
		{Name: "a", Cost: 1, Max: 1},
		{},
		{Name: "a", Cost: math.NaN(), Min: -1, Max: -2, Weight: -1},
		{Name: "b", Cost: math.Inf(1), Min: 3, Max: 2, Weight: math.NaN()},
		{Name: "c", Cost: 1e300, Min: 0, Max: 1_000_001, Weight: math.Inf(1)},
		{Name: "a", Cost: -1, Max: 1},
	}}
	_, err := hetero.New(c)
	require.Error(t, err)
	require.Equal(t, err.Error(), c.Validate().Error())
	scalingtest.Golden(t, "errors.txt", err.Error()+"\n")

	var field *scaling.FieldError
	require.True(t, errors.As(err, &field))
	for _, rate := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e-300} {
		require.Equal(t, []string{"expansionRate"}, fieldsOf(hetero.Config{ExpansionRate: rate, Types: c.Types[:1]}.Validate()))
	}
	require.Equal(t, []string{"types"}, fieldsOf(hetero.Config{}.Validate()))
	many := make([]hetero.Type, hetero.MaxTypes+1)
	for i := range many {
		many[i] = hetero.Type{Name: fmt.Sprint(i), Cost: 1, Max: 1}
	}
	require.Equal(t, []string{"types"}, fieldsOf(hetero.Kthena(many...).Validate()))
	require.NoError(t, hetero.Kthena(many[1:]...).Validate())
}

// TestEveryFieldIsLookedAt: one wrong field is enough.
func TestEveryFieldIsLookedAt(t *testing.T) {
	good := hetero.Type{Name: "a", Cost: 1, Min: 1, Max: 2, Weight: 1}
	require.NoError(t, hetero.Kthena(good).Validate())
	for field, spoil := range map[string]func(*hetero.Type){
		"name":   func(k *hetero.Type) { k.Name = "" },
		"cost":   func(k *hetero.Type) { k.Cost = 0 },
		"min":    func(k *hetero.Type) { k.Min = -1 },
		"max":    func(k *hetero.Type) { k.Max = 0 },
		"weight": func(k *hetero.Type) { k.Weight = -1 },
	} {
		bad := good
		spoil(&bad)
		require.Equal(t, []string{"types[0]." + field}, fieldsOf(hetero.Kthena(bad).Validate()))
	}
	good.Max = hetero.MaxReplicas
	require.NoError(t, hetero.Kthena(good).Validate())
	good.Max++
	require.Equal(t, []string{"types[0].max"}, fieldsOf(hetero.Kthena(good).Validate()))
}

func TestFleetIsItsOwn(t *testing.T) {
	types := []hetero.Type{{Name: "b", Cost: 2, Min: 1, Max: 5}, {Name: "a", Cost: 1, Max: 4}}
	f := fleet(t, 2, types...)
	want := slices.Clone(types)
	types[0].Cost = 1e9
	require.Equal(t, want, f.Types(), "a change of the configuration does not reach it")
	f.Types()[0].Min = 4
	require.Equal(t, want, f.Types(), "nor does one of what it returns")
	require.Equal(t, 2, len(f.Types()))
	require.Equal(t, scaling.Bounds{Min: 1, Max: 9}, f.Bounds())

	// Counts may be of any length.
	require.InDelta(t, 0, f.Cost(nil), 0)
	require.InDelta(t, 6, f.Cost([]int32{3}), 0)
	require.InDelta(t, 7, f.Cost([]int32{3, 1, 99}), 0)
	require.InDelta(t, 4, f.Capability([]int32{3, 1, 99}), 0)
	require.Equal(t, []hetero.Change{{Type: 0, Name: "b", From: 0, To: 2}}, f.Plan(nil, nil, []int32{2}))
	require.Equal(t, []int32{1, 3}, f.AllocateSticky(nil, nil, 4, 0))

	for range f.Sequence() {
		break // and nothing is left behind
	}
	searching, err := hetero.NewSearching(hetero.Config{Types: want, ExpansionRate: 2})
	require.NoError(t, err)
	for range searching.Sequence() {
		break
	}
}

// TestNothingIsAllocated: answers into a slice with room allocate nothing, in either way.
func TestNothingIsAllocated(t *testing.T) {
	c := hetero.Kthena(
		hetero.Type{Name: "h100", Cost: 98, Weight: 7, Max: 16},
		hetero.Type{Name: "a100", Cost: 60, Weight: 4, Max: 16},
		hetero.Type{Name: "l40s", Cost: 32, Weight: 2, Max: 16},
	)
	for way, f := range both(t, c) {
		dst := make([]int32, 0, len(f.Types()))
		current := []int32{1, 2, 3}
		plan := make([]hetero.Change, 0, len(f.Types()))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			dst = f.Allocate(dst, 20)
			dst = f.AllocateFor(dst, 55)
			dst = f.AllocateSticky(dst, current, 20, 1)
			plan = f.Plan(plan[:0], current, dst)
			_ = f.Cost(dst) + f.Capability(dst)
		}), way)
	}
}

// TestNothingIsWrongAtALimit: of a type without a name that is all that is wrong, however many replicas it may have.
func TestNothingIsWrongAtALimit(t *testing.T) {
	for _, n := range []hetero.Type{
		{Cost: hetero.MaxCost, Weight: hetero.MaxCost}, {Cost: 1, Max: hetero.MaxReplicas}, {Cost: 1, Min: hetero.MaxReplicas, Max: hetero.MaxReplicas},
	} {
		require.EqualError(t, hetero.Kthena(n).Validate(), `types[0].name: "": must not be empty`)
	}
}

// TestTwoTypesOfOneName: be they the first two, or all there are.
func TestTwoTypesOfOneName(t *testing.T) {
	require.EqualError(t, hetero.Kthena(hetero.Type{Name: "a", Cost: 1}, hetero.Type{Name: "a", Cost: 2}).Validate(), `types[1].name: "a": must be unique`)
}
