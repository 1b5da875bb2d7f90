package sim

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
)

// A Request is one arrival.
type Request struct {
	At     time.Duration `json:"at"`     // since the start of the run
	Input  int32         `json:"input"`  // tokens of the prompt, at least 1
	Output int32         `json:"output"` // tokens of the answer, at least 1; no policy sees it
	// Blocks are ids of the blocks of its tokens, for prefix caching: the blocks of the prompt and, if they are known, of
	// the answer after it. The i-th id is that of the tokens from i*Scenario.BlockTokens up to the next block, and stands
	// for all tokens before them too. A block that is not full is never cached.
	Blocks []uint64 `json:"blocks,omitempty"`
}

// Arrivals returns the requests of one run one by one, in order of time, and false when there are no more.
type Arrivals func() (Request, bool)

// A Workload is traffic: the requests that arrive, and for how long.
type Workload interface {
	// Arrivals returns the requests of one run. A request before 0, from Duration on or without tokens ends the run with an
	// error. The same seed gives the same requests under every policy.
	Arrivals(seed uint64) Arrivals
	// Duration is the time during which requests arrive.
	Duration() time.Duration
	// Validate reports every wrong field at once, each as a scaling.FieldError, under field.
	Validate(field string) error
}

// A Trace is recorded traffic. Every seed replays the same requests.
type Trace struct {
	Requests []Request
	// Length is the duration of the trace; 0 means up to a nanosecond after its last request.
	Length time.Duration
}

// Arrivals returns the recorded requests.
func (t Trace) Arrivals(uint64) Arrivals {
	i := 0
	return func() (Request, bool) {
		if i == len(t.Requests) {
			return Request{}, false
		}
		i++
		return t.Requests[i-1], true
	}
}

// Duration returns the length of the trace.
func (t Trace) Duration() time.Duration {
	if t.Length == 0 && len(t.Requests) > 0 {
		return t.Requests[len(t.Requests)-1].At + 1
	}
	return t.Length
}

// Validate reports requests that are out of order, outside the trace's length, or without tokens.
func (t Trace) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(t.Length >= 0, field+".length", t.Length, "must not be negative")
	line := queueing{length: cmp.Or(t.Length, math.MaxInt64)}
	for i := range t.Requests {
		if err := line.next(&t.Requests[i], field); err != nil {
			e.Add(err)
			break // one error is enough for a trace that is out of order
		}
	}
	return e.Err()
}

// Requests returns the requests of one run of a workload, up to the first that breaks a rule of Workload. For that one the
// second value is the error, a scaling.FieldError for each rule, such as "workload.requests[3].output: 0: must be at least
// 1".
func Requests(w Workload, seed uint64) func(yield func(Request, error) bool) {
	return func(yield func(Request, error) bool) {
		if w == nil {
			yield(Request{}, &scaling.FieldError{Field: "workload", Value: w, Rule: "must be set"})
			return
		}
		line := queueing{length: w.Duration()}
		next := w.Arrivals(seed)
		for r, ok := next(); ok; r, ok = next() {
			err := line.next(&r, "workload")
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// queueing checks the requests of a run as they arrive.
type queueing struct {
	n            int
	last, length time.Duration
}

// next checks the next request.
func (q *queueing) next(r *Request, field string) error {
	if r.At >= q.last && r.At < q.length && r.Input >= 1 && r.Output >= 1 {
		q.last = r.At
		q.n++
		return nil
	}
	var e scaling.FieldErrors
	name := fmt.Sprintf("%s.requests[%d]", field, q.n)
	e.Check(r.At >= q.last, name+".at", r.At, fmt.Sprintf("must not be before the one before it, %s", q.last))
	e.Check(r.At < q.length, name+".at", r.At, fmt.Sprintf("must be before the end, %s", q.length))
	e.Check(r.Input >= 1, name+".input", r.Input, "must be at least 1")
	e.Check(r.Output >= 1, name+".output", r.Output, "must be at least 1")
	return e.Err()
}

// Scaled returns a workload with its rate multiplied by factor, which must be above 0, and with the same duration. Each
// request is repeated floor(factor) times and once more with the probability of the rest, so that 0.5 keeps one in two.
// Copies follow the original at random times within a second, or within the rest of the workload, since arrivals at the same
// time would be a burst that the traffic does not have. The blocks of copies have ids of their own: one set of ids for all
// first copies, another for all second ones, and so on. The copies stand for additional users who ask the same and share no
// prompts with the originals.
func Scaled(w Workload, factor float64) Workload {
	if factor == 1 {
		return w
	}
	if sessions, ok := closed(w); ok { // more sessions, each as fast as before
		sessions.First = Scaled(sessions.First, factor)
		return sessions
	}
	return scaled{base: w, factor: factor}
}

type scaled struct {
	base   Workload
	factor float64
}

func (s scaled) Duration() time.Duration { return lasting(s.base) }

// lasting returns the duration of a workload, 0 if it is nil.
func lasting(w Workload) time.Duration {
	if w == nil {
		return 0
	}
	return w.Duration()
}

func (s scaled) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(s.factor > 0 && s.factor <= 1e6, field+".factor", s.factor, "must be above 0 and at most 1000000")
	e.Check(s.base != nil, field, s.base, "must be set")
	if s.base != nil {
		e.Add(s.base.Validate(field))
	}
	return e.Err()
}

func (s scaled) Arrivals(seed uint64) Arrivals {
	next := s.base.Arrivals(seed)
	random := newStream(seed, streamScale)
	var waiting delayed[Request] // those of the same time come in the order in which they were added
	added := int64(0)
	ahead, more := next()
	end := s.base.Duration()
	return func() (Request, bool) {
		for more && int64(ahead.At) <= waiting.heap.due() {
			n := int(s.factor)
			if random.Uniform() < s.factor-float64(n) {
				n++
			}
			for i := range n {
				r := ahead
				if i > 0 {
					within := min(time.Second, end-r.At)
					r.At += min(time.Duration(random.Uniform()*float64(within)), within-1)
					r.Blocks = others(r.Blocks, uint64(i))
				}
				waiting.push(int64(r.At), added, r)
				added++
			}
			ahead, more = next()
		}
		if len(waiting.heap) == 0 {
			return Request{}, false
		}
		return waiting.pop(), true
	}
}

// others returns the block ids of a copy.
func others(blocks []uint64, number uint64) []uint64 {
	if len(blocks) == 0 {
		return nil
	}
	ids := make([]uint64, len(blocks))
	for i, id := range blocks {
		ids[i] = splitmix.Mix(id ^ splitmix.Mix(number*splitmix.Golden))
	}
	return ids
}

// A delayed has what waits for its time, in the order of a heap.
type delayed[T any] struct {
	heap   heap
	places []int32
	slots  []T
	free   []int32
}

func (d *delayed[T]) push(at, rank int64, what T) {
	slot := int32(len(d.slots))
	if n := len(d.free); n > 0 {
		slot, d.free = d.free[n-1], d.free[:n-1]
		d.slots[slot] = what
	} else {
		d.slots, d.places = append(d.slots, what), append(d.places, -1)
	}
	d.heap.push(d.places, entry{at: at, rank: rank, number: slot})
}

func (d *delayed[T]) pop() (what T) {
	var none T
	slot := d.heap[0].number
	what, d.slots[slot] = d.slots[slot], none
	d.heap.remove(d.places, 0)
	d.free = append(d.free, slot)
	return what
}
