package sim

// A queue holds requests by their number, in a ring that never shrinks.
type queue struct {
	ring  []int32
	first int
	size  int
}

func (q *queue) len() int { return q.size }

func (q *queue) at(i int) *int32 { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *queue) grow() {
	if q.size < len(q.ring) {
		return
	}
	ring := make([]int32, max(8, 2*len(q.ring)))
	for i := range q.size {
		ring[i] = *q.at(i)
	}
	q.ring, q.first = ring, 0
}

func (q *queue) push(r int32) {
	q.grow()
	q.size++
	*q.at(q.size - 1) = r
}

func (q *queue) pushFront(r int32) {
	q.grow()
	q.first = (q.first + len(q.ring) - 1) & (len(q.ring) - 1)
	q.size++
	*q.at(0) = r
}

// drop removes a request at any position.
func (q *queue) drop(r int32) {
	for n := q.size; n > 0; n-- {
		if o := q.pop(); o != r {
			q.push(o)
		}
	}
}

func (q *queue) front() int32 { return *q.at(0) }

func (q *queue) pop() int32 {
	r := *q.at(0)
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.size--
	return r
}
