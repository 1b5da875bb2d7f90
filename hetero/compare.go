package hetero

// A Comparison says what a walk of the demand costs with the sequence and with the cheapest placements, and how many
// replicas each starts and stops on the way. Costs are in units of cost times step.
type Comparison struct {
	Steps          int     `json:"steps"`
	SequenceCost   float64 `json:"sequenceCost"`
	OptimalCost    float64 `json:"optimalCost"`
	SequenceStarts int64   `json:"sequenceStarts"` // cold starts
	OptimalStarts  int64   `json:"optimalStarts"`
	SequenceStops  int64   `json:"sequenceStops"`
	OptimalStops   int64   `json:"optimalStops"`
}

// Premium returns by what part the sequence is dearer than the cheapest placements: 0.05 is five percent. It is 0 if
// neither costs anything.
func (c Comparison) Premium() float64 {
	if c.OptimalCost == 0 {
		return 0
	}
	return c.SequenceCost/c.OptimalCost - 1
}

// SavedStarts returns how many cold starts the sequence spares over the cheapest placements. It is negative where the
// sequence has more.
func (c Comparison) SavedStarts() int64 { return c.OptimalStarts - c.SequenceStarts }

// Compare walks through demands, in the unit of the weights, and places each with AllocateFor and with Optimal. The
// first placement counts no starts. Errors are those of Optimal.
func (f *Fleet) Compare(demands []float64) (Comparison, error) {
	var c Comparison
	var sequence, optimal [2][]int32
	for step, demand := range demands {
		now, before := step%2, 1-step%2
		sequence[now] = f.AllocateFor(sequence[now], demand)
		var err error
		if optimal[now], err = f.Optimal(optimal[now], demand); err != nil {
			return Comparison{}, err
		}
		c.Steps++
		c.SequenceCost += f.Cost(sequence[now])
		c.OptimalCost += f.Cost(optimal[now])
		if step == 0 {
			continue
		}
		starts, stops := Moves(sequence[before], sequence[now])
		c.SequenceStarts += starts
		c.SequenceStops += stops
		starts, stops = Moves(optimal[before], optimal[now])
		c.OptimalStarts += starts
		c.OptimalStops += stops
	}
	return c, nil
}
