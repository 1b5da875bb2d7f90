package page

import (
	"math/bits"
	"sync"
	"unsafe"
)

// A room has what is kept of the lines of a page.
type room struct {
	series  []Series
	buckets []Bucket
	keys    []byte
	index   []int32 // of series, by hash; 0 for none, else one more
}

// size is what it takes, in bytes.
func (m *room) size() int {
	return cap(m.series)*int(unsafe.Sizeof(Series{})) + cap(m.buckets)*int(unsafe.Sizeof(Bucket{})) + cap(m.keys) + cap(m.index)*4
}

func (m *room) empty() {
	clear(m.index)
	m.series, m.buckets, m.keys = m.series[:0], m.buckets[:0], m.keys[:0]
}

// Spares are the rooms of large pages that have been read, for the next ones: without them, half a dozen hostile pages a
// second keep the garbage collector busy. They are by size, at most 256 KiB, 512 KiB, and so on, and a page gets one that
// takes at most twice what it has been granted. What is not used for a while goes to the garbage collector. The zero value
// is ready; several goroutines may use it.
type Spares [classes]sync.Pool // of *room

const classes = 5

var _ = [1]struct{}{}[grain<<classes-Most] // no page is granted more

// classOf returns the largest class whose rooms take no more than so many bytes, -1 for none.
func classOf(held int) int { return bits.Len(uint(held/grain)) - 1 } //nolint:gosec // not negative

// put keeps a room.
func (s *Spares) put(m room) {
	if c := classOf(m.size()-1) + 1; s != nil && c < classes {
		m.empty()
		s[c].Put(&m)
	}
}

// move moves the page to a spare room of the next class or of its own, if there is any.
func (r *Reader) move(class int) {
	from := r.class
	r.class = class
	if r.spares == nil {
		return
	}
	// The page may still grow: a room of the next class saves it a move.
	spare, ok := r.spares[min(class+1, classes-1)].Get().(*room)
	if !ok {
		spare, ok = r.spares[class].Get().(*room)
	}
	if !ok {
		return
	}
	left := r.room
	r.room = room{append(spare.series, left.series...), append(spare.buckets, left.buckets...), append(spare.keys, left.keys...), append(spare.index[:0], left.index...)}
	if from < 0 {
		left.empty()
		r.small = left
	} else {
		r.spares.put(left)
	}
}
