// Package window has what the algorithms look back with: the greatest, the least and the mean of the samples in a sliding
// window, in constant time, and the ring that they keep them in.
package window

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// A Window says which samples a sliding minimum, maximum or average looks at: those strictly newer than now - Length.
//
// Times are rounded down to a multiple of Resolution first, and samples of one such slot merge, which bounds the
// memory at Length/Resolution entries. A Resolution of zero means one millisecond, the resolution of stored state.
// A Length below one slot means that slot alone.
//
// A clock that goes back by some time shifts every sample back by as much: nothing expires early and nothing is kept
// for longer than Length of the new time. Asking for a time before the newest one asks for the newest one. Lengths must not be negative.
type Window struct {
	Length     time.Duration
	Resolution time.Duration
}

// Far bounds the times that are remembered, in milliseconds before and after 1970: some 285,000 years, within which
// differences do not overflow and are exact in a float64.
const Far = 1 << 53

// Milli returns a time in Unix milliseconds. What is farther away than Far is as far.
func Milli(t time.Time) int64 {
	switch s := t.Unix(); {
	case s >= Far/1000:
		return Far
	case s <= -Far/1000:
		return -Far
	default:
		return s*1000 + int64(t.Nanosecond()/1e6)
	}
}

// Millis returns a duration in milliseconds, rounded up: what is compared in milliseconds then has waited at least as long.
func Millis(d time.Duration) int64 {
	if d%time.Millisecond > 0 {
		return d.Milliseconds() + 1
	}
	return d.Milliseconds()
}

// Remembered reports whether a stored time is one that can have been remembered.
func Remembered(ms int64) bool { return earliest <= ms && ms <= Far }

const earliest = -4 * Far

// Back returns a remembered time earlier by ms, as far as it can be remembered.
func Back(t, ms int64) int64 { return max(t-ms, earliest) }

// slot rounds a time down to its slot, in milliseconds.
func (w Window) slot(t time.Time) int64 {
	ms := Milli(t)
	res := w.slotLength()
	return ms - (ms%res+res)%res
}

func (w Window) slotLength() int64 { return max(1, w.Resolution.Milliseconds()) }

// horizon is the newest slot that is out of the window at slot now.
func (w Window) horizon(now int64) int64 {
	return now - max(w.Length.Milliseconds(), w.slotLength())
}

// A Ring is a queue in a slice that is reused: it grows to what a window needs and then allocates no more. Its zero value
// is empty.
type Ring[T any] struct {
	buf  []T // length a power of two
	head int
	n    int
}

// Len returns how many entries there are.
func (r *Ring[T]) Len() int { return r.n }

// Clone returns a copy that shares no memory.
func (r *Ring[T]) Clone() Ring[T] { return Ring[T]{slices.Clone(r.buf), r.head, r.n} }

// At returns entry i, counted from the oldest.
func (r *Ring[T]) At(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

// Push appends an entry.
func (r *Ring[T]) Push(v T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.n++
	*r.At(r.n - 1) = v
}

// PushFront puts an entry before the oldest.
func (r *Ring[T]) PushFront(v T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.head = (r.head - 1) & (len(r.buf) - 1)
	r.n++
	*r.At(0) = v
}

func (r *Ring[T]) grow() {
	grown := make([]T, max(8, 2*len(r.buf)))
	for i := range r.n {
		grown[i] = *r.At(i)
	}
	r.buf, r.head = grown, 0
}

// PopFront drops the oldest entry, of which there must be one.
func (r *Ring[T]) PopFront() {
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
}

// PopBack drops the newest entry, of which there must be one.
func (r *Ring[T]) PopBack() { r.n-- }

// decode refuses fields that the type does not have: in a state of a known version they mean damage.
func decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
