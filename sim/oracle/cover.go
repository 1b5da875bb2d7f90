package oracle

import "math"

// A Plan is a schedule of replicas: one count for each slot of time, all slots of one length.
type Plan struct {
	Counts []int32 `json:"counts"`
	// Cost is in replica-slots, with what the starts cost.
	Cost int64 `json:"cost"`
	// Starts are the replicas that are started over the plan; those that are there at the beginning are not counted.
	Starts int64 `json:"starts"`
	// Uncovered are the replica-slots by which the plan stays below the demand. Cover has none. Constrained says how it
	// counts them.
	Uncovered int64 `json:"uncovered"`
}

// Cover returns the cheapest plan that covers a demand, exactly, where each start of a replica costs as much as
// running one for start slots, such as its cold start:
//
//	minimise  sum n[t] + start * sum max(0, n[t] - n[t-1])   with   n[t] >= demand[t],   n[-1] = initial
//
// The replicas that are there at the beginning are free to keep; a plan may drop them at once. A demand or a start below
// 0 counts as 0.
//
// A plan is a stack of levels: level k is on where n[t] >= k, and costs its slots and its starts, whatever the other
// levels do. It must be on where demand[t] >= k, and a gap between two such spans is bridged if it is not longer than
// start (of two plans that cost the same, the one with fewer starts). All levels of a demand bridge their gaps at once in
// what image processing calls a closing: a sliding maximum over start+1 slots, and back a sliding minimum,
//
//	n[t] = min over windows W of start+1 slots that contain t of  max over u in W of demand[u]
//
// with initial as the demand of slot -1, and none before it or after the end. So time and memory are in proportion to
// the slots, whatever the counts: 100,000 slots take a few milliseconds at any level.
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
	queue := make([]int, 0, len(values)) // places of values that can still be the highest, in falling order
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

// priced returns counts as a plan.
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
