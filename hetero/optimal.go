package hetero

import (
	"errors"
	"fmt"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// MaxOptimalCells is the most cells that the table of Optimal may have: types times units of demand. Such a table
// takes 64 MiB and about a fifth of a second.
const MaxOptimalCells = 1 << 24

// ErrWeights is the error of Optimal for weights that are no multiples of one millionth: exact reckoning needs a
// common unit.
var ErrWeights = errors.New("weights must be multiples of 0.000001, at most 1000000000 of the common unit")

// ErrTooLarge is the error of Optimal for a table of more than MaxOptimalCells cells.
var ErrTooLarge = errors.New("too many types times units of demand")

// Optimal returns the cheapest placement that covers a demand, exactly:
//
//	minimise  sum Cost_i * n_i   with   sum Weight_i * n_i >= demand,   Min_i <= n_i <= Max_i
//
// It is the reference that the sequence is measured against, and not meant for placing: the cheapest placements for
// two demands next to each other may have no replica in common (see Compare). Of several placements of one cost it
// returns the same whatever the order of the types. A demand that the fleet cannot cover gives the maxima, one of 0 or
// less the minima, as in AllocateFor.
//
// It is a bounded covering knapsack, solved by dynamic programming over the demand in units of the largest power of
// ten (from 1 down to a millionth) that all weights are multiples of, divided by what those have in common. Each type
// adds a pass with a sliding minimum, so the time is types times units whatever the counts. Errors: ErrWeights,
// ErrTooLarge.
func (f *Fleet) Optimal(dst []int32, demand float64) ([]int32, error) {
	dst = append(dst[:0], f.mins...)
	if f.covers(dst, demand) {
		return dst, nil
	}
	for i := range f.config.Types {
		dst[i] = f.config.Types[i].Max
	}
	if !f.covers(dst, demand) || !scaling.Exceeds(f.Capability(dst), demand) {
		return dst, nil
	}
	units, scale, err := f.units()
	if err != nil {
		return nil, err
	}
	least := 0.0 // of the units that the minima have; float64 holds them exactly, or the table is too large anyhow
	most := 0.0
	for i, k := range f.kinds {
		least += float64(k.min) * float64(units[i])
		most += float64(k.max) * float64(units[i])
	}
	need := max(0, min(wholeAbove(demand*scale)-least, most-least))
	if cells := (need + 1) * float64(len(f.kinds)); !(cells <= MaxOptimalCells) {
		return nil, fmt.Errorf("%w: %d types * %g units, limit %d", ErrTooLarge, len(f.kinds), need, MaxOptimalCells)
	}
	t := newKnapsack(int(need), len(f.kinds))
	for i := range f.kinds {
		k := &f.kinds[i]
		t.add(int(min(units[i], math.MaxInt32)), k.cost, int(k.max-k.min))
	}
	counts := t.counts(units)
	for i := range f.kinds {
		k := &f.kinds[i]
		dst[k.at] = k.min + counts[i]
	}
	return dst, nil
}

// wholeAbove returns the least whole number that x does not exceed, as scaling.Ceil, beyond int32.
func wholeAbove(x float64) float64 {
	n := math.Floor(x)
	if scaling.Exceeds(x, n) {
		n++
	}
	return n
}

// units returns the weights as whole numbers, and by what a demand is to be multiplied to have their unit.
func (f *Fleet) units() (units []int64, scale float64, err error) {
	units = make([]int64, len(f.kinds))
	for scale = 1; scale <= 1e6; scale *= 10 {
		common := int64(0)
		for i, k := range f.kinds {
			w := k.weight * scale
			n := math.Round(w)
			if n < 1 || n > 1e9 || scaling.Exceeds(w, n) || scaling.Exceeds(n, w) {
				common = -1
				break
			}
			units[i] = int64(n)
			common = gcd(units[i], common)
		}
		if common < 0 {
			continue
		}
		for i := range units {
			units[i] /= common
		}
		return units, scale / float64(common), nil
	}
	return nil, 0, ErrWeights
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// A knapsack has the least cost of covering 0, 1, 2, ... units with the types added so far, and how many of each type
// that takes.
type knapsack struct {
	cost  []float64
	spare []float64
	taken [][]int32 // by type, by units covered
	queue []candidate
}

// A candidate is a cost that is carried on by adding replicas of the present type.
type candidate struct {
	step int // how many replicas of the type fit below it
	cost float64
}

// at returns the candidate's cost carried on to a step. The conversion keeps a compiler from fusing the operations.
func (c *candidate) at(step int, cost float64) float64 {
	return c.cost + float64(float64(step-c.step)*cost)
}

func newKnapsack(need, types int) *knapsack {
	t := &knapsack{cost: make([]float64, need+1), spare: make([]float64, need+1), taken: make([][]int32, 0, types)}
	for u := 1; u <= need; u++ {
		t.cost[u] = math.Inf(1)
	}
	return t
}

// add allows up to limit replicas of a type. For units u = rest + step*weight it is
//
//	cost'[u] = min over n in 0..limit of  cost[max(0, u - n*weight)] + n*cost
//
// which along one rest is a sliding minimum over the last limit+1 steps.
func (t *knapsack) add(weight int, cost float64, limit int) {
	taken := make([]int32, len(t.cost))
	for rest := range min(weight, len(t.cost)) {
		q := t.queue[:0]
		first := 0
		if rest > 0 {
			// One replica more than fits covers all: it is carried on from no units at all.
			q = append(q, candidate{-1, t.cost[0]})
		}
		for step, u := 0, rest; u < len(t.cost); step, u = step+1, u+weight {
			for len(q) > first && q[len(q)-1].at(step, cost) >= t.cost[u] {
				q = q[:len(q)-1]
			}
			q = append(q, candidate{step, t.cost[u]})
			for step-q[first].step > limit {
				first++
			}
			t.spare[u] = q[first].at(step, cost)
			taken[u] = int32(step - q[first].step)
		}
		t.queue = q
	}
	t.cost, t.spare = t.spare, t.cost
	t.taken = append(t.taken, taken)
}

// counts returns how many replicas of each type cover all units at the least cost.
func (t *knapsack) counts(units []int64) []int32 {
	counts := make([]int32, len(t.taken))
	left := int64(len(t.cost) - 1)
	for i := len(t.taken) - 1; i >= 0; i-- {
		counts[i] = t.taken[i][left]
		left = max(0, left-int64(counts[i])*units[i])
	}
	return counts
}
