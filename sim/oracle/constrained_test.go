package oracle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim/oracle"
)

// schedules calls visit with every schedule of so many slots within the rules. It knows of them by their history alone.
func schedules(slots int, r oracle.Rules, visit func([]int32)) {
	var counts []int32
	var grow func()
	allowed := func(n int32) bool {
		t := len(counts)
		at := func(u int) int32 {
			if u < 0 {
				return r.Initial
			}
			return counts[u]
		}
		d := n - at(t-1)
		if d == 0 {
			return true
		}
		if d > 0 && r.UpStep > 0 && d > r.UpStep || d < 0 && r.DownStep > 0 && -d > r.DownStep {
			return false
		}
		for u := range t {
			change := at(u) - at(u-1)
			if change == 0 {
				continue
			}
			if cooldown := r.UpCooldown; d > 0 && t-u < cooldown && (!r.PerDirection || change > 0) {
				return false
			}
			if cooldown := r.DownCooldown; d < 0 && t-u < cooldown && (!r.PerDirection || change < 0) {
				return false
			}
			if d < 0 && change > 0 && t-u < r.MinUp {
				return false
			}
		}
		return true
	}
	grow = func() {
		if len(counts) == slots {
			visit(counts)
			return
		}
		for n := r.Bounds.Min; n <= r.Bounds.Max; n++ {
			if allowed(n) {
				counts = append(counts, n)
				grow()
				counts = counts[:len(counts)-1]
			}
		}
	}
	grow()
}

// ready starts and stops replicas one by one and returns how many are ready in each slot.
func ready(counts []int32, r oracle.Rules) []int32 {
	var begun []int // when each was asked for, the oldest first
	for range r.Initial {
		begun = append(begun, -1<<20)
	}
	var out []int32
	for t, n := range counts {
		for len(begun) > int(n) {
			begun = begun[:len(begun)-1]
		}
		for len(begun) < int(n) {
			begun = append(begun, t)
		}
		k := int32(0)
		for _, u := range begun {
			if t-u >= r.StartSlots {
				k++
			}
		}
		out = append(out, k)
	}
	return out
}

// short is what ready replicas leave uncovered; late is how Constrained counts it, restated.
func short(demand, counts []int32, r oracle.Rules) (short, late int64) {
	for t, k := range ready(counts, r) {
		short += int64(max(0, demand[t]-k))
	}
	for t, n := range counts {
		due := int32(0)
		for u := t; u < len(demand) && u <= t+r.StartSlots; u++ {
			d := demand[u]
			if u < r.StartSlots {
				d = min(d, r.Initial)
			}
			due = max(due, d)
		}
		late += int64(max(0, due-n))
		if t < r.StartSlots {
			late += int64(max(0, demand[t]-r.Initial))
		}
	}
	return short, late
}

func price(counts []int32, r oracle.Rules) (cost int64) {
	before := r.Initial
	for _, n := range counts {
		cost += int64(n) + r.Start*int64(max(0, n-before))
		before = n
	}
	return cost
}

func TestConstrainedTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand := drawDemand(t, 6, 4)
		r := oracle.Rules{
			Bounds:       scaling.Bounds{Min: rapid.Int32Range(0, 1).Draw(t, "min"), Max: rapid.Int32Range(1, 3).Draw(t, "max")},
			UpStep:       rapid.Int32Range(0, 2).Draw(t, "upStep"),
			DownStep:     rapid.Int32Range(0, 2).Draw(t, "downStep"),
			UpCooldown:   rapid.IntRange(0, 9).Draw(t, "upCooldown"),
			DownCooldown: rapid.IntRange(0, 9).Draw(t, "downCooldown"),
			PerDirection: rapid.Bool().Draw(t, "perDirection"),
			MinUp:        rapid.IntRange(0, 9).Draw(t, "minUp"),
			StartSlots:   rapid.SampledFrom([]int{0, 0, 1, 2, 9}).Draw(t, "startSlots"),
			Start:        rapid.Int64Range(0, 4).Draw(t, "start"),
		}
		r.Initial = rapid.Int32Range(r.Bounds.Min, r.Bounds.Max).Draw(t, "initial")
		given := slices.Clone(demand)
		p, err := oracle.Constrained(demand, r)
		require.NoError(t, err)
		require.Equal(t, given, demand, "the input is left alone")
		if len(demand) == 0 {
			return
		}
		bestLate, bestCost, coverable, bestCovered := int64(-1), int64(0), false, int64(0)
		found := false
		schedules(len(demand), r, func(counts []int32) {
			found = found || slices.Equal(counts, p.Counts)
			missing, late := short(demand, counts, r)
			require.Equal(t, missing == 0, late == 0, "both ways of counting agree on whether all is covered")
			cost := price(counts, r)
			if bestLate < 0 || late < bestLate || late == bestLate && cost < bestCost {
				bestLate, bestCost = late, cost
			}
			if missing == 0 && (!coverable || cost < bestCovered) {
				coverable, bestCovered = true, cost
			}
		})
		require.True(t, found, "the plan is within the rules: %v", p.Counts)
		require.Equal(t, bestLate, p.Uncovered)
		require.Equal(t, bestCost, p.Cost)
		require.Equal(t, price(p.Counts, r), p.Cost)
		_, late := short(demand, p.Counts, r)
		require.Equal(t, late, p.Uncovered)
		if coverable {
			require.Zero(t, p.Uncovered)
			require.Equal(t, bestCovered, p.Cost)
		}
	})
}

// TestConstrainedLoose holds Constrained without rules against Cover: a start has its price, or takes its time.
func TestConstrainedLoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand := drawDemand(t, 60, 9)
		start := rapid.IntRange(0, 20).Draw(t, "start")
		r := oracle.Rules{Bounds: scaling.Bounds{Max: 9}, Start: int64(start), Initial: rapid.Int32Range(0, 9).Draw(t, "initial")}
		priced, err := oracle.Constrained(demand, r)
		require.NoError(t, err)
		cover := oracle.Cover(demand, int64(start), r.Initial)
		require.Equal(t, cover.Cost, priced.Cost)
		require.Zero(t, priced.Uncovered)

		// No demand before the first replicas can be ready, so that none is too late.
		demand = append(make([]int32, start), demand...)
		timed, err := oracle.Constrained(demand, oracle.Rules{Bounds: r.Bounds, StartSlots: start})
		require.NoError(t, err)
		require.Equal(t, oracle.Cover(demand, int64(start), 0).Cost, timed.Cost)
		require.Zero(t, timed.Uncovered)
	})
}

// TestConstrainedRegret checks that no rule makes a plan better.
func TestConstrainedRegret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand := drawDemand(t, 40, 6)
		loose := oracle.Rules{Bounds: scaling.Bounds{Max: 6}, Start: rapid.Int64Range(0, 9).Draw(t, "start")}
		tight := loose
		tight.UpStep, tight.DownStep = 2, 1
		tight.UpCooldown = rapid.IntRange(0, 6).Draw(t, "upCooldown")
		tight.DownCooldown = rapid.IntRange(0, 12).Draw(t, "downCooldown")
		tight.PerDirection = rapid.Bool().Draw(t, "perDirection")
		tight.MinUp = rapid.IntRange(0, 20).Draw(t, "minUp")
		a, err := oracle.Constrained(demand, loose)
		require.NoError(t, err)
		b, err := oracle.Constrained(demand, tight)
		require.NoError(t, err)
		require.True(t, a.Uncovered < b.Uncovered || a.Uncovered == b.Uncovered && a.Cost <= b.Cost)
	})
}

func TestConstrainedErrors(t *testing.T) {
	_, err := oracle.Constrained([]int32{1}, oracle.Rules{
		Bounds: scaling.Bounds{Min: 3, Max: 2}, UpStep: -1, DownStep: -1, UpCooldown: -1, DownCooldown: 1 << 30, MinUp: -2, StartSlots: -3, Start: -4, Initial: 9,
	})
	for _, want := range []string{
		"bounds.max: 2: must not be below min 3", "upStep: -1: ", "downStep: -1: ", "upCooldown: -1: ", "downCooldown: 1073741824: ",
		"minUp: -2: ", "startSlots: -3: ", "start: -4: ", "initial: 9: must be within the bounds, 3 to 2",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = oracle.Constrained(make([]int32, 100_000), oracle.Rules{Bounds: scaling.Bounds{Max: 1000}})
	require.ErrorIs(t, err, oracle.ErrTooLarge)
	p, err := oracle.Constrained(nil, oracle.Rules{Bounds: scaling.Bounds{Max: 1}})
	require.NoError(t, err)
	require.Equal(t, oracle.Plan{}, p)
}

// TestRegressionMemoryBesideTheTable: with few slots most of the memory is not in the table. One slot with 29 million counts
// took 2 GB.
func TestRegressionMemoryBesideTheTable(t *testing.T) {
	_, err := oracle.Constrained([]int32{1}, oracle.Rules{Bounds: scaling.Bounds{Max: 3_000_000}})
	require.ErrorIs(t, err, oracle.ErrTooLarge)
}

// TestConstrainedTimesBeyondTheDemand: a time that does not end within the demand costs no table, and never ends.
func TestConstrainedTimesBeyondTheDemand(t *testing.T) {
	const long = 1 << 20
	for _, c := range []struct {
		rules oracle.Rules
		want  []int32
	}{
		{oracle.Rules{UpCooldown: long, DownCooldown: long}, []int32{1, 4, 4, 4, 4, 4}},
		{oracle.Rules{UpCooldown: long, DownCooldown: long, MinUp: long, PerDirection: true}, []int32{1, 4, 4, 4, 4, 4}},
		{oracle.Rules{UpCooldown: long, PerDirection: true}, []int32{1, 4, 4, 4, 4, 0}},
		{oracle.Rules{DownCooldown: long, PerDirection: true}, []int32{2, 5, 0, 2, 5, 5}},
	} {
		c.rules.Bounds.Max, c.rules.UpStep, c.rules.Initial = 6, 3, 1
		p, err := oracle.Constrained([]int32{1, 5, 0, 2, 5, 0}, c.rules)
		require.NoError(t, err)
		require.Equal(t, c.want, p.Counts, "%+v", c.rules)
	}
}

func BenchmarkConstrained(b *testing.B) {
	demand := make([]int32, 1440)
	x := uint32(1)
	for i := range demand {
		x = x*1664525 + 1013904223
		demand[i] = int32(x>>8) % 50
	}
	for _, c := range []struct {
		name  string
		rules oracle.Rules
	}{
		{"one age", oracle.Rules{UpCooldown: 3, DownCooldown: 10}},
		{"two ages", oracle.Rules{UpCooldown: 3, DownCooldown: 10, MinUp: 10, PerDirection: true}},
	} {
		b.Run(fmt.Sprintf("slots=%d/most=50/%s", len(demand), c.name), func(b *testing.B) {
			c.rules.Bounds.Max = 50
			c.rules.UpStep, c.rules.DownStep, c.rules.StartSlots = 4, 1, 2
			b.ReportAllocs()
			for b.Loop() {
				if _, err := oracle.Constrained(demand, c.rules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
