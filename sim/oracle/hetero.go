package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// MaxOptimalCells is the most cells of the table of Optimal: types times units of demand. Such a table takes 64 MiB and
// about a fifth of a second.
const MaxOptimalCells = 1 << 24

// ErrWeights is the error of Optimal for weights that are not multiples of one millionth: exact calculation needs a common
// unit.
var ErrWeights = errors.New("weights must be multiples of 0.000001, at most 1000000000 of the common unit")

// Optimal returns the cheapest placement of a fleet that covers a demand in the unit of its weights, exactly:
//
//	minimise  sum Cost_i * n_i   with   sum Weight_i * n_i >= demand,   Min_i <= n_i <= Max_i
//
// It is the reference for the fleet's own order, and not meant for placing: the cheapest placements of two adjacent demands
// may have no replica in common (see Hetero). Of several placements with the same cost it returns the same one whatever the
// order of the types. A demand that the fleet cannot cover gives the maxima, one of 0 or less the minima, as in
// hetero.Fleet.AllocateFor. The answer is written over dst, which grows if needed.
//
// It is a bounded covering knapsack, solved by dynamic programming over the demand. The unit of the demand is the largest
// power of ten (from 1 down to a millionth) of which all weights are multiples, divided by their common factor. Each type
// adds a pass with a sliding minimum, so the time is types times units, whatever the counts. Optimal returns ErrWeights,
// ErrTooLarge, or a scaling.FieldError if there is no fleet.
func Optimal(dst []int32, fleet *hetero.Fleet, demand float64) ([]int32, error) {
	if fleet == nil {
		return nil, &scaling.FieldError{Field: "fleet", Rule: "must be set"}
	}
	types := fleet.Types()
	order := make([]int, len(types)) // by name
	dst = dst[:0]
	for i := range types {
		order[i] = i
		dst = append(dst, types[i].Min)
	}
	if covers(fleet, dst, demand) {
		return dst, nil
	}
	for i := range types {
		dst[i] = types[i].Max
	}
	if !covers(fleet, dst, demand) || !scaling.Exceeds(fleet.Capability(dst), demand) {
		return dst, nil
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(types[a].Name, types[b].Name) })
	units, scale, err := weightUnits(types, order)
	if err != nil {
		return nil, err
	}
	least := 0.0 // units that the minima have; float64 represents them exactly, or the table is too large anyway
	most := 0.0
	for n, i := range order {
		least += float64(types[i].Min) * float64(units[n])
		most += float64(types[i].Max) * float64(units[n])
	}
	need := max(0, min(wholeAbove(demand*scale)-least, most-least))
	if cells := (need + 1) * float64(len(types)); !(cells <= MaxOptimalCells) {
		return nil, fmt.Errorf("%w: %d types * %g units, limit %d", ErrTooLarge, len(types), need, MaxOptimalCells)
	}
	t := newKnapsack(int(need), len(types))
	for n, i := range order {
		t.add(int(min(units[n], math.MaxInt32)), types[i].Cost, int(types[i].Max-types[i].Min))
	}
	for n, more := range t.counts(units) {
		dst[order[n]] = types[order[n]].Min + more
	}
	return dst, nil
}

// covers reports whether a placement serves a demand.
func covers(fleet *hetero.Fleet, counts []int32, demand float64) bool {
	return demand <= 0 || demand > 0 && !scaling.Exceeds(demand, fleet.Capability(counts))
}

// wholeAbove returns the smallest whole number that x does not exceed, as scaling.Ceil, but beyond int32.
func wholeAbove(x float64) float64 {
	n := math.Floor(x)
	if scaling.Exceeds(x, n) {
		n++
	}
	return n
}

// weightUnits returns the weights as whole numbers of a common unit, in the given order, and the factor that converts a
// demand to it.
func weightUnits(types []hetero.Type, order []int) (units []int64, scale float64, err error) {
	units = make([]int64, len(types))
	for scale = 1; scale <= 1e6; scale *= 10 {
		common := int64(0)
		for i, place := range order {
			w := scale * cmp.Or(types[place].Weight, 1)
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

// Placements are the cheapest placements of a fleet of several types for a sequence of demands, each step by itself.
type Placements struct {
	// Counts has one count for each type, in the order of the fleet, for each step.
	Counts [][]int32 `json:"counts"`
	// Costs are the costs of the steps, in the unit of the types' costs; Cost is their sum.
	Costs []float64 `json:"costs"`
	Cost  float64   `json:"cost"`
	// Starts and Stops are the replicas of all types that are started and stopped from each step to the next: the churn of
	// the cheapest placements. The first step has none.
	Starts []int64 `json:"starts"`
	Stops  []int64 `json:"stops"`
	// Comparison is with the placements by the fleet's own order.
	Comparison Comparison `json:"comparison"`
}

// Churn returns the starts and stops per step, without the first step.
func (p *Placements) Churn() float64 {
	if len(p.Counts) < 2 {
		return 0
	}
	return float64(p.Comparison.OptimalStarts+p.Comparison.OptimalStops) / float64(len(p.Counts)-1)
}

// A Comparison has the cost of a sequence of demands with the fleet's order and with the cheapest placements, and how many
// replicas each starts and stops. Costs are in units of cost times step.
type Comparison struct {
	Steps          int     `json:"steps"`
	SequenceCost   float64 `json:"sequenceCost"`
	OptimalCost    float64 `json:"optimalCost"`
	SequenceStarts int64   `json:"sequenceStarts"` // cold starts
	OptimalStarts  int64   `json:"optimalStarts"`
	SequenceStops  int64   `json:"sequenceStops"`
	OptimalStops   int64   `json:"optimalStops"`
}

// Premium returns how much more the fleet's order costs than the cheapest placements: 0.05 is five percent. It is 0 if
// neither costs anything.
func (c Comparison) Premium() float64 {
	if c.OptimalCost == 0 {
		return 0
	}
	return c.SequenceCost/c.OptimalCost - 1
}

// SavedStarts returns how many cold starts the fleet's order saves compared with the cheapest placements. It is negative if
// the fleet's order has more.
func (c Comparison) SavedStarts() int64 { return c.OptimalStarts - c.SequenceStarts }

// Hetero returns the cheapest placements of a fleet for demands in the unit of its weights, as found by Optimal, and
// compares them with those of hetero.Fleet.AllocateFor. No placement costs less in any step. Their starts are reported
// separately, and make these placements impractical. The errors are those of Optimal.
func Hetero(fleet *hetero.Fleet, demands []float64) (Placements, error) {
	var p Placements
	if fleet == nil {
		return p, &scaling.FieldError{Field: "fleet", Rule: "must be set"}
	}
	c := &p.Comparison
	var sequence, before []int32
	for t, demand := range demands {
		optimal, err := Optimal(nil, fleet, demand)
		if err != nil {
			return Placements{}, fmt.Errorf("step %d: %w", t, err)
		}
		before, sequence = sequence, fleet.AllocateFor(before, demand)
		var starts, stops int64
		if t > 0 {
			starts, stops = hetero.Moves(before, sequence)
			c.SequenceStarts += starts
			c.SequenceStops += stops
			starts, stops = hetero.Moves(p.Counts[t-1], optimal)
			c.OptimalStarts += starts
			c.OptimalStops += stops
		}
		p.Counts = append(p.Counts, optimal)
		p.Costs = append(p.Costs, fleet.Cost(optimal))
		p.Starts = append(p.Starts, starts)
		p.Stops = append(p.Stops, stops)
		c.Steps++
		c.SequenceCost += fleet.Cost(sequence)
		c.OptimalCost += p.Costs[t]
	}
	p.Cost = c.OptimalCost
	return p, nil
}
