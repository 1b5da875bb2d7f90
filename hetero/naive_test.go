package hetero_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
)

// naive is the plainest restatement of the rule: it writes down every batch, sorts them, and expands them into the
// sequence. Costs are whole numbers, so it knows no rounding.
type naive struct {
	mins     []int32
	least    int64
	most     int64
	batches  []naiveBatch
	sequence []int // types
}

type naiveBatch struct {
	kind   int
	name   string
	number int
	size   int64
	cost   int64
}

// wholeType is a type whose cost is a whole number.
type wholeType struct {
	name     string
	cost     int64
	min, max int32
	weight   float64
}

func newNaive(types []wholeType, rate float64) *naive {
	n := &naive{}
	for i, k := range types {
		n.mins = append(n.mins, k.min)
		n.least += int64(k.min)
		n.most += int64(k.max)
		left := int64(k.max - k.min)
		power := 1.0
		for number := 0; left > 0; number++ {
			size := int64(1)
			if power >= 1 {
				size = int64(math.Min(math.Floor(power), 1e9))
			}
			size = min(size, left) // the remainder is the last batch
			n.batches = append(n.batches, naiveBatch{i, k.name, number, size, size * k.cost})
			left -= size
			power *= rate
		}
	}
	slices.SortFunc(n.batches, func(a, b naiveBatch) int {
		switch {
		case a.cost != b.cost:
			return int(a.cost - b.cost)
		case a.name != b.name:
			return strings.Compare(a.name, b.name)
		default:
			return a.number - b.number
		}
	})
	for _, b := range n.batches {
		for range b.size {
			n.sequence = append(n.sequence, b.kind)
		}
	}
	return n
}

func (n *naive) allocate(total int64) []int32 {
	counts := slices.Clone(n.mins)
	places := min(max(total, n.least), n.most) - n.least
	for _, kind := range n.sequence[:places] {
		counts[kind]++
	}
	return counts
}

// drawTypes draws types whose costs tie often, in any order of their names.
func drawTypes(t *rapid.T, most int, capacity int32) []wholeType {
	names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "names")
	var types []wholeType
	for _, name := range names[:rapid.IntRange(1, most).Draw(t, "types")] {
		least := rapid.Int32Range(0, 4).Draw(t, "min")
		types = append(types, wholeType{
			name: name, cost: rapid.OneOf(
				rapid.SampledFrom([]int64{3, 6, 7, 9, 12, 14, 18, 21, 24}), rapid.Int64Range(1, 24),
			).Draw(t, "cost"),
			min: least, max: least + rapid.Int32Range(0, capacity).Draw(t, "capacity"),
			weight: float64(rapid.IntRange(1, 12).Draw(t, "weight")) / 4,
		})
	}
	return types
}

// drawRate draws rates of every sort: below 1, just above it, broken, whole, beyond all bounds.
func drawRate(t *rapid.T) float64 {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{2, 3}), // in whose batches costs tie most
		rapid.SampledFrom([]float64{0, 0.2, 1, math.Nextafter(1, 2), 1.01, 1.1, 1.5, 2, 2.5, 3, 10, 1e9, 1e308, math.MaxFloat64}),
		rapid.Float64Range(0, 1),
		rapid.Float64Range(1, 1.2),
		rapid.Float64Range(1, 6),
	).Draw(t, "rate")
}

// configOf returns the configuration of types whose cost is counted in a unit.
func configOf(types []wholeType, rate, unit float64) hetero.Config {
	c := hetero.Config{ExpansionRate: rate}
	for _, k := range types {
		c.Types = append(c.Types, hetero.Type{Name: k.name, Cost: float64(k.cost) * unit, Min: k.min, Max: k.max, Weight: k.weight})
	}
	return c
}

// drawUnit draws a unit of cost. In most of them costs that tie are not equal as floats.
func drawUnit(t *rapid.T) float64 {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{1, 0.1, 0.7, 0.01, 1.0 / 3, 1e-12, 1e280, 1e-300}),
		rapid.Float64Range(1e-6, 1e6),
	).Draw(t, "unit")
}

// both are the two ways a Fleet answers: from the sequence that it keeps, and by searching.
func both(t rapid.TB, c hetero.Config) map[string]*hetero.Fleet {
	t.Helper()
	kept, err := hetero.New(c)
	if err != nil {
		t.Fatal(err)
	}
	searching, err := hetero.NewSearching(c)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*hetero.Fleet{"kept": kept, "searching": searching}
}

func describe(types []wholeType, rate float64) string { return fmt.Sprintf("%+v at %v", types, rate) }
