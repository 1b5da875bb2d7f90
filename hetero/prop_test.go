package hetero_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
)

// TestTwin compares a Fleet, in both of its ways, with its naive twin at every total: counts, sequence and batches.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types, rate, unit := drawTypes(t, 5, 40), drawRate(t), drawUnit(t)
		twin := newNaive(types, rate)
		config := configOf(types, rate, unit)
		input := slices.Clone(config.Types)
		for way, f := range both(t, config) {
			require.Equal(t, input, config.Types, "the input is left alone")
			var sequence []int
			for i := range f.Sequence() {
				sequence = append(sequence, i)
			}
			require.Equal(t, twin.sequence, sequence, "%s: %s", way, describe(types, rate))
			least, most := f.Totals()
			require.EqualValues(t, most-least, len(sequence), "length")

			var before, counts []int32
			for k := least - 1; k <= most+1; k++ {
				counts = f.Allocate(counts, k)
				require.Equal(t, twin.allocate(k), counts, "%s: K=%d of %s", way, k, describe(types, rate))
				require.Equal(t, max(least, min(k, most)), hetero.Sum(counts), "the total")
				for i, n := range counts {
					require.True(t, types[i].min <= n && n <= types[i].max, "within the bounds")
				}
				if k > least && k <= most {
					starts, stops := hetero.Moves(before, counts)
					require.True(t, starts == 1 && stops == 0, "one place more is one replica more of one type")
				}
				before = append(before[:0], counts...)
			}
			checkBatches(t, f, types, rate, twin)
		}
	})
}

// checkBatches holds the batches against the twin's and against the formula.
func checkBatches(t *rapid.T, f *hetero.Fleet, types []wholeType, rate float64, twin *naive) {
	var all []naiveBatch
	cost := 0.0
	for b := range f.Batches() {
		require.Positive(t, b.Count)
		require.GreaterOrEqual(t, b.Cost, cost*(1-1e-13), "costs do not fall but for noise")
		cost = b.Cost
		for range b.Count {
			all = append(all, naiveBatch{kind: b.Type, size: int64(b.Size)})
		}
	}
	require.Len(t, all, len(twin.batches))
	for i, b := range twin.batches {
		require.Equal(t, naiveBatch{kind: b.kind, size: b.size}, all[i], "batch %d", i)
	}
	for i, k := range types {
		var sizes []int64
		sum := int64(0)
		for _, b := range all {
			if b.kind == i {
				sizes = append(sizes, b.size)
				sum += b.size
			}
		}
		require.EqualValues(t, k.max-k.min, sum, "the batches are the capacity")
		slices.Sort(sizes)
		power := 1.0
		for ; len(sizes) > 0; power *= rate {
			want := int64(max(1, math.Floor(min(power, 1e9))))
			place, found := slices.BinarySearch(sizes, want)
			if !found {
				require.Len(t, sizes, 1, "all but one are floor(P^k)")
				require.True(t, 1 <= sizes[0] && sizes[0] < want, "the remainder %d is in [1, %d)", sizes[0], want)
				break
			}
			sizes = slices.Delete(sizes, place, place+1)
		}
	}
}

// TestBothWaysAgree holds the kept sequence against the search where the twin cannot follow: large capacities, rates
// just above 1, costs that differ by the last bits alone.
func TestBothWaysAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := hetero.Config{ExpansionRate: rapid.OneOf(
			rapid.Float64Range(1, 1.01), rapid.Float64Range(1, 3), rapid.SampledFrom([]float64{0.5, 1, 2}),
		).Draw(t, "rate")}
		base := rapid.Float64Range(0.01, 100).Draw(t, "base")
		for _, name := range []string{"c", "a", "d", "b"}[:rapid.IntRange(1, 4).Draw(t, "types")] {
			cost := base * float64(rapid.IntRange(1, 4).Draw(t, "cost"))
			for range rapid.IntRange(0, 3).Draw(t, "bits") {
				cost = math.Nextafter(cost, math.Inf(1))
			}
			c.Types = append(c.Types, hetero.Type{Name: name, Cost: cost, Max: rapid.OneOf(
				rapid.Int32Range(0, hetero.MaxReplicas), rapid.SampledFrom([]int32{1_023, 65_537, hetero.MaxReplicas}),
			).Draw(t, "max")})
		}
		ways := both(t, c)
		kept, searching := ways["kept"], ways["searching"]
		require.Equal(t, slices.Collect(kept.Batches()), slices.Collect(searching.Batches()))
		_, most := kept.Totals()
		for range 5 {
			k := rapid.Int64Range(0, most).Draw(t, "K")
			require.Equal(t, kept.Allocate(nil, k), searching.Allocate(nil, k), "K=%d", k)
			require.InEpsilon(t, 1+kept.Margin(k), 1+searching.Margin(k), 1e-13, "K=%d", k)
		}
	})
}

func TestOrderOfTypesChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types, rate, unit := drawTypes(t, 6, 40), drawRate(t), drawUnit(t)
		order := make([]int, len(types))
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(t, "order")
		permuted := make([]wholeType, len(types))
		for i, from := range order {
			permuted[i] = types[from]
		}
		k := rapid.Int64Range(0, 260).Draw(t, "K")
		demand := rapid.Float64Range(0, 300).Draw(t, "demand")
		current := make([]int32, len(types))
		turned := make([]int32, len(types))
		for i := range current {
			current[i] = rapid.Int32Range(0, 44).Draw(t, "current")
		}
		for i, from := range order {
			turned[i] = current[from]
		}
		exchanges := rapid.Int32Range(0, 10).Draw(t, "exchanges")

		before, after := both(t, configOf(types, rate, unit)), both(t, configOf(permuted, rate, unit))
		for way := range before {
			a, b := before[way], after[way]
			for _, pair := range [][2][]int32{
				{a.Allocate(nil, k), b.Allocate(nil, k)},
				{a.AllocateFor(nil, demand), b.AllocateFor(nil, demand)},
				{a.AllocateSticky(nil, current, k, exchanges), b.AllocateSticky(nil, turned, k, exchanges)},
			} {
				for i, from := range order {
					require.Equal(t, pair[0][from], pair[1][i], "type %s", permuted[i].name)
				}
				require.Equal(t, math.Float64bits(a.Cost(pair[0])), math.Float64bits(b.Cost(pair[1])), "to the bit")
				require.Equal(t, math.Float64bits(a.Capability(pair[0])), math.Float64bits(b.Capability(pair[1])), "to the bit")
			}
			require.Equal(t, math.Float64bits(a.Margin(k)), math.Float64bits(b.Margin(k)))
		}
	})
}

func TestUnitOfCostChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types, rate := drawTypes(t, 5, 60), drawRate(t)
		config := configOf(types, rate, drawUnit(t))
		scaled := hetero.Config{ExpansionRate: rate, Types: slices.Clone(config.Types)}
		c := rapid.Float64Range(1e-6, 1e6).Draw(t, "c")
		for i := range scaled.Types {
			scaled.Types[i].Cost *= c
		}
		before, after := both(t, config), both(t, scaled)
		for way := range before {
			require.Equal(t, slices.Collect(before[way].Sequence()), slices.Collect(after[way].Sequence()))
			k := rapid.Int64Range(0, 320).Draw(t, "K")
			require.Equal(t, before[way].Allocate(nil, k), after[way].Allocate(nil, k))
		}
	})
}

// TestTiesAreNotLeftToRounding: three replicas at 0.1 cost a bit more than one at 0.3 in float64, and still tie, so that
// the name decides. So do three at 0.3, which cost a bit less than one at 0.9, in the remainder of a type as elsewhere.
func TestTiesAreNotLeftToRounding(t *testing.T) {
	tenth, thirds := 0.1, 0.3
	require.Greater(t, 3*tenth, 0.3)
	require.Less(t, 3*thirds, 0.9)
	for _, s := range []struct {
		types []hetero.Type
		want  []int
		rate  float64 // 0 means 3
	}{
		{types: []hetero.Type{{Name: "a", Cost: 0.1, Max: 4}, {Name: "b", Cost: 0.3, Max: 1}}, want: []int{0, 0, 0, 0, 1}},
		{types: []hetero.Type{{Name: "b", Cost: 0.1, Max: 4}, {Name: "a", Cost: 0.3, Max: 1}}, want: []int{0, 1, 0, 0, 0}},
		{types: []hetero.Type{{Name: "b", Cost: 0.3, Max: 4}, {Name: "a", Cost: 0.9, Max: 1}}, want: []int{0, 1, 0, 0, 0}},
		{types: []hetero.Type{{Name: "a", Cost: 0.3, Max: 4}, {Name: "b", Cost: 0.9, Max: 1}}, want: []int{0, 0, 0, 0, 1}},
		// As remainders: 1, 3, 3 of nine.
		{types: []hetero.Type{{Name: "a", Cost: 0.1, Max: 7}, {Name: "b", Cost: 0.3, Max: 1}}, want: []int{0, 0, 0, 0, 0, 0, 0, 1}},
		{types: []hetero.Type{{Name: "b", Cost: 0.1, Max: 7}, {Name: "a", Cost: 0.3, Max: 1}}, want: []int{0, 1, 0, 0, 0, 0, 0, 0}},
		// As the only batch of its size: 1, 3, and a rest of 6, which ties with two at 0.3 or one at 0.6.
		{types: []hetero.Type{{Name: "b", Cost: 0.1, Max: 10}, {Name: "a", Cost: 0.6, Max: 1}}, want: []int{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
		{types: []hetero.Type{{Name: "a", Cost: 0.1, Max: 10}, {Name: "b", Cost: 0.6, Max: 1}}, want: []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
		{types: []hetero.Type{{Name: "b", Cost: 0.7, Max: 10}, {Name: "a", Cost: 4.2, Max: 1}}, want: []int{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
		{types: []hetero.Type{{Name: "a", Cost: 0.7, Max: 10}, {Name: "b", Cost: 4.2, Max: 1}}, want: []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
		// At rate 2 the batches are 1, 2, 4 and a rest of 6, which ties with two of three times the cost.
		{types: []hetero.Type{{Name: "b", Cost: 0.15, Max: 13}, {Name: "a", Cost: 0.45, Max: 3}}, want: []int{0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0}, rate: 2},
		{types: []hetero.Type{{Name: "b", Cost: 0.05, Max: 13}, {Name: "a", Cost: 0.15, Max: 3}}, want: []int{0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0}, rate: 2},
		{types: []hetero.Type{{Name: "a", Cost: 0.05, Max: 13}, {Name: "b", Cost: 0.15, Max: 3}}, want: []int{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, rate: 2},
	} {
		if s.rate == 0 {
			s.rate = 3
		}
		for way, f := range both(t, hetero.Config{ExpansionRate: s.rate, Types: s.types}) {
			require.Equal(t, s.want, slices.Collect(f.Sequence()), "%s, %+v", way, s.types)
			counts := make([]int32, len(s.types))
			for k, i := range s.want {
				require.Equal(t, counts, f.Allocate(nil, int64(k)), "%s, K=%d, %+v", way, k, s.types)
				counts[i]++
			}
		}
	}
}

func TestRateUpToOneIsCheapestFirstAndOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawTypes(t, 3, 8)
		f := fleetFrom(t, configOf(types, rapid.Float64Range(0, 1).Draw(t, "rate"), 1))
		least, most := f.Totals()
		k := rapid.Int64Range(least, most).Draw(t, "K")
		counts := f.Allocate(nil, k)

		byCost := slices.Clone(types)
		slices.SortFunc(byCost, func(a, b wholeType) int {
			if a.cost != b.cost {
				return int(a.cost - b.cost)
			}
			return int(a.name[0]) - int(b.name[0])
		})
		left := k - least
		for _, kind := range byCost { // the cheapest type fills up first
			i := slices.IndexFunc(types, func(o wholeType) bool { return o.name == kind.name })
			more := min(left, int64(kind.max-kind.min))
			require.EqualValues(t, int64(kind.min)+more, counts[i])
			left -= more
		}
		best := math.Inf(1)
		everyPlacement(types, func(n []int32) {
			if hetero.Sum(n) == k {
				best = min(best, f.Cost(n))
			}
		})
		require.InDelta(t, best, f.Cost(counts), 0, "optimal at K=%d", k)
	})
}

// everyPlacement calls visit with every placement within the bounds.
func everyPlacement(types []wholeType, visit func([]int32)) {
	counts := make([]int32, len(types))
	var place func(i int)
	place = func(i int) {
		if i == len(types) {
			visit(counts)
			return
		}
		for n := types[i].min; n <= types[i].max; n++ {
			counts[i] = n
			place(i + 1)
		}
	}
	place(0)
}

func TestADearerTypeOnlyAppends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types, rate := drawTypes(t, 5, 40), drawRate(t)
		f := fleetFrom(t, configOf(types, rate, 1))
		dearest := int64(0)
		for b := range f.Batches() {
			dearest = max(dearest, int64(b.Cost))
		}
		more := append(slices.Clone(types), wholeType{name: "0 dear", cost: dearest + 1, max: rapid.Int32Range(1, 20).Draw(t, "more")})
		g := fleetFrom(t, configOf(more, rate, 1))
		before, after := slices.Collect(f.Sequence()), slices.Collect(g.Sequence())
		require.True(t, slices.Equal(before, after[:len(before)]), "a dearer type only appends")
		for _, i := range after[len(before):] {
			require.Equal(t, len(types), i, "a dearer type only appends")
		}
	})
}
