package oracle

import "math"

// A knapsack has the lowest cost of covering 0, 1, 2, ... units with the types added so far, and how many of each type that
// takes.
type knapsack struct {
	cost  []float64
	spare []float64
	taken [][]int32 // by type, by units covered
	queue []candidate
}

// A candidate is a cost that is continued by adding replicas of the present type.
type candidate struct {
	step int // how many replicas of the type fit below it
	cost float64
}

// at returns the candidate's cost continued to a step. The conversion keeps a compiler from fusing the operations.
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

// add allows up to limit replicas of a type. For units u = rest + step*weight the new cost is
//
//	cost'[u] = min over n in 0..limit of  cost[max(0, u - n*weight)] + n*cost
//
// which for each rest is a sliding minimum over the last limit+1 steps.
func (t *knapsack) add(weight int, cost float64, limit int) {
	taken := make([]int32, len(t.cost))
	for rest := range min(weight, len(t.cost)) {
		q := t.queue[:0]
		first := 0
		if rest > 0 {
			// One replica more than fits covers all units: it continues from no units at all.
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

// counts returns how many replicas of each type cover all units at the lowest cost.
func (t *knapsack) counts(units []int64) []int32 {
	counts := make([]int32, len(t.taken))
	left := int64(len(t.cost) - 1)
	for i := len(t.taken) - 1; i >= 0; i-- {
		counts[i] = t.taken[i][left]
		left = max(0, left-int64(counts[i])*units[i])
	}
	return counts
}
