package oracle

import (
	"fmt"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// Placements are the cheapest ones of a fleet of several types for a walk of the demand, each step for itself.
type Placements struct {
	// Counts has one count for each type, in the order of the fleet, for each step.
	Counts [][]int32 `json:"counts"`
	// Costs are those of the steps, in the unit of the types' costs; Cost is their sum.
	Costs []float64 `json:"costs"`
	Cost  float64   `json:"cost"`
	// Starts and Stops are the replicas of all types started and stopped from each step to the next: what the cheapest
	// placements cost in churn. The first step has none.
	Starts []int64 `json:"starts"`
	Stops  []int64 `json:"stops"`
	// Comparison is with the sequence that a hetero.Policy goes along.
	Comparison hetero.Comparison `json:"comparison"`
}

// Churn returns the starts and stops for each step but the first.
func (p *Placements) Churn() float64 {
	if len(p.Counts) < 2 {
		return 0
	}
	return float64(p.Comparison.OptimalStarts+p.Comparison.OptimalStops) / float64(len(p.Counts)-1)
}

// Hetero returns the cheapest placements of a fleet for demands in the unit of its weights, as found by
// hetero.Fleet.Optimal. No placement costs less in any step; what they cost in starts is beside it, and is why nobody
// would run them. Errors are those of Optimal.
func Hetero(fleet *hetero.Fleet, demands []float64) (Placements, error) {
	if fleet == nil {
		return Placements{}, &scaling.FieldError{Field: "fleet", Rule: "must be set"}
	}
	comparison, err := fleet.Compare(demands)
	if err != nil {
		return Placements{}, err
	}
	p := Placements{Comparison: comparison}
	for t, demand := range demands {
		counts, err := fleet.Optimal(nil, demand)
		if err != nil {
			return Placements{}, fmt.Errorf("step %d: %w", t, err)
		}
		var starts, stops int64
		if t > 0 {
			starts, stops = hetero.Moves(p.Counts[t-1], counts)
		}
		p.Counts = append(p.Counts, counts)
		p.Costs = append(p.Costs, fleet.Cost(counts))
		p.Starts = append(p.Starts, starts)
		p.Stops = append(p.Stops, stops)
	}
	p.Cost = comparison.OptimalCost
	return p, nil
}
