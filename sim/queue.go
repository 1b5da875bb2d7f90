package sim

import "github.com/inferscale/inferscale/internal/window"

// A queue holds requests by their number.
type queue struct{ window.Ring[int32] }

// drop removes a request at any position.
func (q *queue) drop(r int32) {
	for range q.Len() {
		if o := q.pop(); o != r {
			q.Push(o)
		}
	}
}

func (q *queue) front() int32 { return *q.At(0) }

func (q *queue) pop() int32 {
	r := q.front()
	q.PopFront()
	return r
}
