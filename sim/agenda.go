package sim

import "math/bits"

// A heap has the entry that is due first on top: ordered by time, then by rank. No two entries of a heap have the same time and
// rank. A separate table has the position of each number in the heap: -1 if it is not in it.
//
// It does not use container/heap, whose heap.Push takes an interface: converting an entry to one allocates at each event.
type heap []entry

// Ranks are not negative; a time can be, where a workload is wrong.
type entry struct {
	at, rank int64
	number   int32
}

// before returns 1 if d comes before o, and 0 if not. It does not branch, as no processor can guess the order of two events.
func (d *entry) before(o *entry) int32 {
	_, less := bits.Sub64(uint64(d.rank), uint64(o.rank), 0)
	const sign = 1 << 63
	_, less = bits.Sub64(uint64(d.at)^sign, uint64(o.at)^sign, less)
	return int32(less)
}

// due returns the time of the entry that is due first; never if there is none.
func (h *heap) due() int64 {
	if len(*h) == 0 {
		return never
	}
	return (*h)[0].at
}

func (h *heap) push(places []int32, d entry) {
	*h = append(*h, d)
	h.put(places, int32(len(*h)-1), d)
}

func (h *heap) remove(places []int32, i int32) {
	last := int32(len(*h) - 1)
	moved := (*h)[last]
	places[(*h)[i].number] = -1
	*h = (*h)[:last]
	if i != last {
		h.put(places, i, moved)
	}
}

// put moves an entry from position i to its position in the order.
func (h *heap) put(places []int32, i int32, d entry) {
	all := *h
	for n := int32(len(all)); ; {
		child := 2*i + 1
		if child+1 < n {
			child += all[child+1].before(&all[child])
		}
		if child >= n || all[child].before(&d) == 0 {
			break
		}
		all[i] = all[child]
		places[all[i].number] = i
		i = child
	}
	for i > 0 {
		parent := (i - 1) / 2
		if d.before(&all[parent]) == 0 {
			break
		}
		all[i] = all[parent]
		places[all[i].number] = i
		i = parent
	}
	all[i] = d
	places[d.number] = i
}

// An agenda has the next events: slots, each with at most one time at which it is due. Slots that are due at the same time
// come in order of their rank. The rank does not depend on earlier events, so the order of a run is unique.
type agenda struct {
	heap   heap
	ranks  []int64
	places []int32
}

// grow adds slots up to n.
func (a *agenda) grow(n int) {
	for len(a.ranks) < n {
		a.ranks, a.places = append(a.ranks, 0), append(a.places, -1)
	}
}

// set makes a slot due at a time; with never it is not due.
func (a *agenda) set(s int32, at int64) {
	switch i, d := a.places[s], (entry{at, a.ranks[s], s}); {
	case at == never && i >= 0:
		a.heap.remove(a.places, i)
	case at == never:
	case i < 0:
		a.heap.push(a.places, d)
	default:
		a.heap.put(a.places, i, d)
	}
}

// next returns the slot that is due first, and its time; never if no slot is due.
func (a *agenda) next() (int32, int64) {
	if len(a.heap) == 0 {
		return -1, never
	}
	return a.heap[0].number, a.heap[0].at
}
