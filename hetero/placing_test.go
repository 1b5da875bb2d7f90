package hetero_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
)

// TestAllocateForIsTheLeastTotal holds AllocateFor against a walk over all totals.
func TestAllocateForIsTheLeastTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types, rate := drawTypes(t, 5, 20), drawRate(t)
		demand := rapid.OneOf(
			rapid.Map(rapid.IntRange(-4, 500), func(n int) float64 { return float64(n) / 4 }),
			rapid.Float64Range(0, 120),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e-300}),
		).Draw(t, "demand")
		for way, f := range both(t, configOf(types, rate, 1)) {
			got := f.AllocateFor(nil, demand)
			least, most := f.Totals()
			var want []int32
			for k := least; k <= most; k++ {
				want = f.Allocate(nil, k)
				if demand <= 0 || f.Capability(want) >= demand*(1-1e-10) {
					break
				}
			}
			require.Equal(t, want, got, "%s: demand %v of %s", way, demand, describe(types, rate))
		}
		for i := range types {
			types[i].weight = 0 // counts as 1: replicas are what is asked for
		}
		f := fleetFrom(t, configOf(types, rate, 1))
		if demand >= 0 && demand < 1e6 {
			require.Equal(t, f.Allocate(nil, int64(math.Ceil(demand))), f.AllocateFor(nil, demand))
		}
	})
}

func TestStickyLimitsExchanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types, rate := drawTypes(t, 5, 20), drawRate(t)
		f := fleetFrom(t, configOf(types, rate, 1))
		least, most := f.Totals()
		k := rapid.Int64Range(least-2, most+2).Draw(t, "K")
		limit := rapid.Int32Range(0, 12).Draw(t, "limit")
		current := make([]int32, len(types))
		within := make([]int32, len(types))
		for i, kind := range types {
			current[i] = rapid.Int32Range(-2, 30).Draw(t, "current")
			within[i] = max(kind.min, min(current[i], kind.max))
		}
		input := slices.Clone(current)
		target := f.Allocate(nil, k)
		got := f.AllocateSticky(nil, current, k, limit)
		require.Equal(t, input, current, "the input is left alone")
		require.Equal(t, hetero.Sum(target), hetero.Sum(got), "the total is the sequence's")

		wanted := exchanges(within, target)
		done := exchanges(within, got)
		require.Equal(t, min(wanted, int64(limit)), done, "as many exchanges as allowed")
		for i, n := range got {
			lo, hi := min(within[i], target[i]), max(within[i], target[i])
			require.True(t, lo <= n && n <= hi, "between the present count and the target")
		}
		require.Equal(t, target, f.AllocateSticky(nil, current, k, hetero.Unlimited))
		require.Equal(t, f.AllocateSticky(nil, current, k, 0), f.AllocateSticky(nil, current, k, -1))

		// The cheapest are started and the dearest stopped: no start is missing while a dearer one was done, no stop
		// was done while a dearer one is missing.
		for i := range types {
			for j := range types {
				if types[i].cost < types[j].cost {
					require.False(t, got[i] < target[i] && got[j] > within[j], "%s starts before %s", types[i].name, types[j].name)
					require.False(t, got[i] < within[i] && got[j] > target[j], "%s stops after %s", types[i].name, types[j].name)
				}
			}
		}
		if limit > 0 {
			calls := int64(0)
			for now := within; !slices.Equal(now, target); calls++ {
				now = f.AllocateSticky(nil, now, k, limit)
				require.LessOrEqual(t, calls, wanted/int64(limit)+1)
			}
			require.LessOrEqual(t, calls, max(1, (wanted+int64(limit)-1)/int64(limit)), "it gets there in as few calls as the limit allows")
		}
	})
}

// TestStickyStartsCheapAndStopsDear: three types start and three stop, of which two exchanges are allowed.
func TestStickyStartsCheapAndStopsDear(t *testing.T) {
	var types []hetero.Type
	for i, name := range []string{"d", "b", "c", "a", "f", "e"} {
		types = append(types, hetero.Type{Name: name, Cost: []float64{4, 2, 3, 1, 5, 5}[i], Max: 4})
	}
	f := fleet(t, 1, types...)
	require.Equal(t, []int32{0, 4, 2, 4, 0, 0}, f.Allocate(nil, 10))
	current := []int32{2, 3, 1, 2, 1, 1}
	for limit, want := range [][]int32{
		{2, 3, 1, 2, 1, 1},
		{2, 3, 1, 3, 0, 1}, // a starts; of the dearest f stops, whose name comes last
		{2, 3, 1, 4, 0, 0},
		{1, 4, 1, 4, 0, 0},
		{0, 4, 2, 4, 0, 0},
	} {
		require.Equal(t, want, f.AllocateSticky(nil, current, 10, int32(limit)), "limit %d", limit)
	}
	require.Equal(t, []int32{2, 3, 1, 3, 1, 1}, f.AllocateSticky(nil, current, 11, 0), "growing")
	require.Equal(t, []int32{2, 3, 1, 2, 0, 1}, f.AllocateSticky(nil, current, 9, 0), "shrinking")
}

func exchanges(from, to []int32) int64 {
	starts, stops := hetero.Moves(from, to)
	return min(starts, stops)
}

func TestPlanLeadsFromCurrentToTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawTypes(t, 5, 20)
		f := fleetFrom(t, configOf(types, 2, 1))
		current, target := make([]int32, len(types)), make([]int32, len(types))
		for i := range types {
			current[i] = rapid.Int32().Draw(t, "current")
			target[i] = rapid.Int32().Draw(t, "target")
			if rapid.Bool().Draw(t, "same") {
				target[i] = current[i]
			}
		}
		now := slices.Clone(current)
		for _, c := range f.Plan(nil, current, target) {
			require.Equal(t, types[c.Type].name, c.Name)
			require.NotEqual(t, c.From, c.To)
			require.Equal(t, now[c.Type], c.From)
			require.True(t, c.Starts() >= 0 && c.Stops() >= 0 && (c.Starts() == 0) != (c.Stops() == 0))
			now[c.Type] = c.To
		}
		require.Equal(t, target, now)
	})
}

// TestSequenceNeverReplaces: along any walk of the total the sequence starts what the total rises by and stops what it
// falls by, not a replica more.
func TestSequenceNeverReplaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawTypes(t, 4, 20)
		f := fleetFrom(t, configOf(types, drawRate(t), 1))
		least, most := f.Totals()
		before := rapid.Int64Range(least, most).Draw(t, "before")
		after := rapid.Int64Range(least, most).Draw(t, "after")
		starts, stops := hetero.Moves(f.Allocate(nil, before), f.Allocate(nil, after))
		require.Equal(t, max(0, after-before), starts)
		require.Equal(t, max(0, before-after), stops)
	})
}

// TestNoDemandIsMet: 0, below and -0 give the minima.
func TestNoDemandIsMet(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Min: 2, Max: 5}, hetero.Type{Name: "b", Cost: 2, Max: 5})
	for _, demand := range []float64{0, math.Copysign(0, -1), -1, math.Inf(-1)} {
		require.Equal(t, []int32{2, 0}, f.AllocateFor(nil, demand), "%v", demand)
	}
}

// TestCostsNextToEachOther: whatever the others cost, the cheaper of two is the first.
func TestCostsNextToEachOther(t *testing.T) {
	f := fleet(t, 1, hetero.Type{Name: "a", Cost: 1.0001, Max: 1}, hetero.Type{Name: "b", Cost: 1, Max: 1}, hetero.Type{Name: "c", Cost: 1000, Max: 1})
	require.Equal(t, []int32{0, 1, 0}, f.Allocate(nil, 1))
	require.Equal(t, []int32{1, 1, 0}, f.Allocate(nil, 2))
}

// TestBatchesMayEndEarly: who stops asking for them gets no more.
func TestBatchesMayEndEarly(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Max: 9}, hetero.Type{Name: "b", Cost: 2, Max: 6}, hetero.Type{Name: "c", Cost: 2, Max: 6})
	all := 0
	for range f.Batches() {
		all++
	}
	for most := range all {
		n := 0
		require.NotPanics(t, func() {
			for range f.Batches() {
				if n++; n > most {
					break
				}
			}
		})
		require.Equal(t, most+1, n)
	}
}

// TestBatchesOfOneSizeAreOneValue: in a sequence of one type each size comes once.
func TestBatchesOfOneSizeAreOneValue(t *testing.T) {
	f := fleet(t, 1.3, hetero.Type{Name: "a", Cost: 1, Max: 200})
	last, total := int32(0), int32(0)
	for b := range f.Batches() {
		require.Greater(t, b.Size, last)
		last, total = b.Size, total+b.Size*b.Count
	}
	require.EqualValues(t, 200, total)
}

// TestMovesCountsWhatIsMissingAsZero: the longer of the two says how many types there are.
func TestMovesCountsWhatIsMissingAsZero(t *testing.T) {
	for _, one := range []struct {
		current, target []int32
		starts, stops   int64
	}{
		{nil, []int32{1, 2}, 3, 0},
		{[]int32{1, 2}, nil, 0, 3},
		{[]int32{4}, []int32{3, 5}, 5, 1},
		{[]int32{3, 5}, []int32{4}, 1, 5},
	} {
		starts, stops := hetero.Moves(one.current, one.target)
		require.Equal(t, [2]int64{one.starts, one.stops}, [2]int64{starts, stops}, "%v to %v", one.current, one.target)
	}
}
