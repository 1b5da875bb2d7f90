package sim

// An agenda is what happens next: a heap of slots, each with at most one time at which it is due. Slots that are due at
// one instant come in order of their rank, which does not depend on what happened before, so that the order of a run
// has one answer.
//
// It is written out, as the heap of a replica's decodes is, since heap.Push of container/heap takes an interface, and
// putting a slot into one allocates at each event.
type agenda struct {
	heap []int32 // slots, least first
	slot []slot
}

type slot struct {
	at   int64
	rank int64
	pos  int32 // in heap, -1 for none
}

// grow makes room for slots up to n.
func (a *agenda) grow(n int) {
	for len(a.slot) < n {
		a.slot = append(a.slot, slot{at: never, pos: -1})
	}
}

func (a *agenda) before(x, y int32) bool {
	s, t := &a.slot[x], &a.slot[y]
	return s.at < t.at || s.at == t.at && s.rank < t.rank
}

// set makes a slot due at a time; never takes it off.
func (a *agenda) set(s int32, at int64) {
	e := &a.slot[s]
	e.at = at
	switch {
	case at == never && e.pos >= 0:
		a.remove(e.pos)
	case at == never:
	case e.pos < 0:
		e.pos = int32(len(a.heap))
		a.heap = append(a.heap, s)
		a.up(e.pos)
	default:
		a.down(a.up(e.pos))
	}
}

// next returns the slot that is due first, and when; never if none is.
func (a *agenda) next() (int32, int64) {
	if len(a.heap) == 0 {
		return -1, never
	}
	s := a.heap[0]
	return s, a.slot[s].at
}

func (a *agenda) remove(i int32) {
	last := int32(len(a.heap) - 1)
	a.slot[a.heap[i]].pos = -1
	if i != last {
		a.heap[i] = a.heap[last]
		a.slot[a.heap[i]].pos = i
	}
	a.heap = a.heap[:last]
	if i != last {
		a.down(a.up(i))
	}
}

func (a *agenda) up(i int32) int32 {
	s := a.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !a.before(s, a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		a.slot[a.heap[i]].pos = i
		i = parent
	}
	a.heap[i] = s
	a.slot[s].pos = i
	return i
}

func (a *agenda) down(i int32) {
	s, n := a.heap[i], int32(len(a.heap))
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && a.before(a.heap[child+1], a.heap[child]) {
			child++
		}
		if !a.before(a.heap[child], s) {
			break
		}
		a.heap[i] = a.heap[child]
		a.slot[a.heap[i]].pos = i
		i = child
	}
	a.heap[i] = s
	a.slot[s].pos = i
}
