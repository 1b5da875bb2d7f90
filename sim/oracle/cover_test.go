package oracle_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/sim/oracle"
)

func drawDemand(t *rapid.T, slots int, most int32) []int32 {
	least := 0
	if rapid.Bool().Draw(t, "long") { // left to itself, rapid draws few slots
		least = slots
	}
	return rapid.SliceOfN(rapid.Int32Range(0, most), least, slots).Draw(t, "demand")
}

// cheapest is the naive twin of Cover: it tries every count up to the highest demand to come, which no schedule has a use
// for more than.
func cheapest(demand []int32, start int64, initial int32) int64 {
	if len(demand) == 0 {
		return 0
	}
	top := slices.Max(demand)
	best := int64(-1)
	for n := demand[0]; n <= top; n++ {
		cost := int64(n) + start*int64(max(0, n-initial)) + cheapest(demand[1:], start, n)
		if best < 0 || cost < best {
			best = cost
		}
	}
	return best
}

// byLevel is the rule as the design has it: level by level, slot by slot.
func byLevel(demand []int32, start int64, initial int32) oracle.Plan {
	p := oracle.Plan{Counts: make([]int32, len(demand))}
	top := int32(0)
	for _, d := range demand {
		top = max(top, d)
	}
	for k := int32(1); k <= top; k++ {
		last := -2 // no span yet
		if k <= initial {
			last = -1
		}
		for t, d := range demand {
			if d < k {
				continue
			}
			gap := int64(t - last - 1)
			if last == -2 || gap > start {
				p.Starts++
				p.Cost += start
			} else {
				for u := last + 1; u < t; u++ {
					p.Counts[u]++
					p.Cost++
				}
			}
			p.Counts[t]++
			p.Cost++
			last = t
		}
	}
	return p
}

// TestCoverTwin: the cover equals the cheapest of all schedules, and the rule level by level.
func TestCoverTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand := drawDemand(t, 7, 3)
		start := rapid.Int64Range(0, 8).Draw(t, "start")
		initial := rapid.Int32Range(0, 4).Draw(t, "initial")
		p := oracle.Cover(demand, start, initial)
		require.Equal(t, cheapest(demand, start, initial), p.Cost, "all schedules")
		checkPlan(t, demand, start, initial, p)
	})
	rapid.Check(t, func(t *rapid.T) {
		demand := drawDemand(t, 200, 30)
		start := rapid.Int64Range(0, 250).Draw(t, "start")
		initial := rapid.Int32Range(0, 40).Draw(t, "initial")
		checkPlan(t, demand, start, initial, oracle.Cover(demand, start, initial))
	})
}

func checkPlan(t *rapid.T, demand []int32, start int64, initial int32, p oracle.Plan) {
	want := byLevel(demand, start, initial)
	require.Equal(t, want.Cost, p.Cost)
	require.Equal(t, want.Starts, p.Starts)
	require.Equal(t, len(demand), len(p.Counts))
	cost, starts, before := int64(0), int64(0), initial
	for i, n := range p.Counts {
		require.Equal(t, want.Counts[i], n, "slot %d", i)
		require.GreaterOrEqual(t, n, demand[i], "covered")
		cost += int64(n)
		starts += int64(max(0, n-before))
		before = n
	}
	require.Equal(t, p.Starts, starts)
	require.Equal(t, p.Cost, cost+start*starts)
	require.Zero(t, p.Uncovered)
}

func TestCoverProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand := drawDemand(t, 60, 12)
		start := rapid.Int64Range(0, 70).Draw(t, "start")
		initial := rapid.Int32Range(0, 12).Draw(t, "initial")
		given := slices.Clone(demand)
		p := oracle.Cover(demand, start, initial)
		require.Equal(t, given, demand, "the input is left alone")

		sum := int64(0)
		for _, d := range demand {
			sum += int64(d)
		}
		require.Equal(t, sum, oracle.Cover(demand, 0, initial).Cost, "free starts: the sum of the demand")
		dearer := rapid.Int64Range(0, 20).Draw(t, "dearer")
		require.GreaterOrEqual(t, oracle.Cover(demand, start+dearer, initial).Cost, p.Cost, "monotone in the start")
		require.LessOrEqual(t, oracle.Cover(demand, start, initial+1).Cost, p.Cost, "one more at the beginning does no harm")
		if len(demand) == 0 {
			return
		}
		demand[rapid.IntRange(0, len(demand)-1).Draw(t, "slot")] += rapid.Int32Range(1, 3).Draw(t, "more")
		more := oracle.Cover(demand, start, initial)
		require.GreaterOrEqual(t, more.Cost, p.Cost, "monotone in the demand")
		for i := range p.Counts {
			require.GreaterOrEqual(t, more.Counts[i], p.Counts[i])
		}
	})
}

func TestCoverEdges(t *testing.T) {
	require.Equal(t, oracle.Plan{}, oracle.Cover(nil, 5, 3))
	require.Equal(t, []int32{0, 0}, oracle.Cover([]int32{-4, 0}, -1, -7).Counts, "below 0 counts as 0")
	p := oracle.Cover([]int32{1, 0, 1}, 1<<62, 0)
	require.Equal(t, []int32{1, 1, 1}, p.Counts)
	require.Equal(t, int64(1<<62+3), p.Cost)
	require.Equal(t, int64(math.MaxInt64), oracle.Cover([]int32{4}, 1<<62, 0).Cost, "saturates")
	require.Equal(t, []int32{2, 2, 2, 1}, oracle.Cover([]int32{2, 0, 2, 1}, 1, 2).Counts, "a tie is bridged")
}

func BenchmarkCover(b *testing.B) {
	for _, size := range []struct {
		slots int
		most  int32
	}{{1440, 100}, {100_000, 10_000}} {
		demand := make([]int32, size.slots)
		x := uint32(1)
		for i := range demand {
			x = x*1664525 + 1013904223
			demand[i] = int32(x>>8) % size.most
		}
		for _, start := range []int64{5, 1000} {
			b.Run(fmt.Sprintf("slots=%d/most=%d/start=%d", size.slots, size.most, start), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					oracle.Cover(demand, start, 3)
				}
			})
		}
	}
}
