package oracle

import "math"

// A Plan is a schedule of replicas: one count for each slot of time. All slots have the same length.
type Plan struct {
	Counts []int32 `json:"counts"`
	// Cost is in replica-slots, the cost of the starts included.
	Cost int64 `json:"cost"`
	// Starts is how many replicas are started over the plan; those present at the beginning are not counted.
	Starts int64 `json:"starts"`
	// Uncovered is the replica-slots by which the plan stays below the demand. It is 0 for Cover. Constrained defines how it
	// counts them.
	Uncovered int64 `json:"uncovered"`
}

// Cover returns the cheapest plan that covers a demand, exactly, where each start of a replica costs as much as running one
// for start slots, for example its cold start:
//
//	minimise  sum n[t] + start * sum max(0, n[t] - n[t-1])   with   n[t] >= demand[t],   n[-1] = initial
//
// Keeping the replicas that are present at the beginning costs no start; a plan may drop them at once. A demand or a start
// below 0 counts as 0.
//
// A plan is a stack of levels: level k is on where n[t] >= k, and its slots and starts cost the same whatever the other
// levels do. It must be on where demand[t] >= k, and a gap between two such spans is bridged if it is not longer than start
// (of two plans with equal cost, the one with fewer starts). One operation bridges the gaps of all levels at once, in image
// processing called a closing: a sliding maximum over start+1 slots, followed by a sliding minimum in the other direction,
//
//	n[t] = min over windows W of start+1 slots that contain t of  max over u in W of demand[u]
//
// with initial as the demand of slot -1, and no demand before it or after the end. So time and memory are proportional to
// the slots, whatever the counts: 100,000 slots take a few milliseconds.
func Cover(demand []int32, start int64, initial int32) Plan {
	slots := len(demand)
	if slots == 0 {
		return Plan{}
	}
	start = max(0, start)
	width := int(min(start, int64(slots))) + 1 // no gap is longer than that
	padded := make([]int32, 1+slots+width-1)
	padded[0] = max(0, initial)
	for t, d := range demand {
		padded[1+t] = max(0, d)
	}
	slide(padded, width, 1)
	slide(padded, width, -1)
	return priced(padded[width:width+slots:width+slots], start, initial)
}

// slide replaces each value by the highest of the last width values, or, with sign -1, by the lowest.
func slide(values []int32, width int, sign int32) {
	queue := make([]int, 0, len(values)) // indices of values that can still be the highest, in falling order
	kept := make([]int32, 0, len(values))
	first := 0
	for i, v := range values {
		for len(queue) > first && sign*kept[len(kept)-1] <= sign*v {
			queue, kept = queue[:len(queue)-1], kept[:len(kept)-1]
		}
		queue, kept = append(queue, i), append(kept, v)
		if queue[first] <= i-width {
			first++
		}
		values[i] = kept[first]
	}
}

// priced returns counts as a plan with its costs.
func priced(counts []int32, start int64, initial int32) Plan {
	p := Plan{Counts: counts}
	before := max(0, initial)
	for _, n := range counts {
		p.Cost += int64(n)
		p.Starts += int64(max(0, n-before))
		before = n
	}
	if p.Starts > 0 && start > (math.MaxInt64-p.Cost)/p.Starts {
		p.Cost = math.MaxInt64
		return p
	}
	p.Cost += start * p.Starts
	return p
}
