package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a page may cost. A reader begins with Start bytes and asks before it takes more.
const (
	buffered = 64 << 10 // a piece of the page, and so the longest line

	seriesCost = 256 // of one series without its labels: here, and in what is made of it
	bucketCost = 64
	grain      = 256 << 10

	// Start is what a reader holds before its first line.
	Start = 2 * buffered
	// Most is the most that a page may hold.
	Most = 8 << 20
	// kept is the largest table that a reader keeps from page to page.
	kept = buffered
)

// What ends a page early.
var (
	// ErrSeries says that a family has too many samples, or that all series together need too much memory.
	ErrSeries = errors.New("too many series")
	// ErrMemory says that the memory was refused.
	ErrMemory = errors.New("out of memory")
	// ErrLong says that the page is longer than its limit.
	ErrLong = errors.New("too long")
)

// A Series is what a page says of one label set of a family: of a histogram without le, of a summary without quantile.
type Series struct {
	Value, Sum, Count          float64
	HasValue, HasSum, HasCount bool
	Timed                      bool  // whether a sample has a timestamp
	Twice                      bool  // whether a sample but a bucket is there twice
	At                         int64 // the oldest timestamp, in milliseconds
	family, next               int32 // next of the family, -1 for none
	key, keyEnd                uint32
	firstBucket, lastBucket    int32
}

// A Bucket is one bucket of a histogram, cumulative.
type Bucket struct {
	Bound, Count float64
	next         int32
}

// A table is what a page says of one family.
type table struct {
	typ         Type
	typed       bool
	other       [parts]bool // see Filter
	samples     int
	first, last int32 // series; -1 for none
	err         error
}

// A Reader reads pages, one after another, and has what the last one said. It belongs to one goroutine; what it returns
// is good until the next page. It allocates only to grow.
type Reader struct {
	filter *Filter
	limit  int                  // samples of a family
	more   func(bytes int) bool // asks for memory
	held   int
	used   int
	fatal  error
	open   bool

	tables []table
	room
	small  room // which was left for a larger one
	class  int  // of the room, by what is held; -1 for that of a small page
	spares *Spares
	seed   maphash.Seed

	buffer []byte
	pairs  []pair
	text   []byte // what was unquoted of a line
	name   []byte
	key    []byte
}

// NewReader returns a reader, which shares the room for large pages with others of the same spares; of nil, with none.
func NewReader(spares *Spares) *Reader {
	return &Reader{seed: maphash.MakeSeed(), buffer: make([]byte, buffered), spares: spares}
}

// Reset begins a page. A family may have so many samples; more is asked before memory is taken beyond Start.
func (r *Reader) Reset(f *Filter, samples int, more func(bytes int) bool) {
	r.Release()
	r.filter, r.limit, r.more = f, samples, more
	r.tables = r.tables[:0]
	for range f.families {
		r.tables = append(r.tables, table{first: -1, last: -1})
	}
}

// Release forgets the page, and gives back what is larger than most pages need.
func (r *Reader) Release() {
	if r.used > kept {
		r.spares.put(r.room)
		r.room, r.small = r.small, room{}
		r.pairs, r.text, r.name, r.key = nil, nil, nil, nil
	}
	r.filter, r.more, r.held, r.class, r.used, r.fatal, r.open = nil, nil, Start-buffered, -1, 0, nil, false
	clear(r.tables) // errors
	r.empty()
}

// Read reads the rest of src, at most limit bytes. It ends early when ctx does, and with ErrSeries, ErrMemory or
// ErrLong.
func (r *Reader) Read(ctx context.Context, src io.Reader, limit int64) (n int64, err error) {
	have, long := 0, false // bytes in the buffer; the line there is longer than it
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		m, err := src.Read(r.buffer[have:])
		n += int64(m)
		if n > limit {
			return n, ErrLong
		}
		from := have
		have += m
		if end := bytes.LastIndexByte(r.buffer[from:have], '\n') + 1; end > 0 {
			lines := r.buffer[:from+end]
			if long {
				lines, long = lines[bytes.IndexByte(lines, '\n')+1:], false
			}
			r.lines(lines)
			have = copy(r.buffer, r.buffer[from+end:have])
		}
		if have == len(r.buffer) {
			if !long {
				r.suspect(r.buffer, tooLong)
				r.unnamed(r.buffer)
			}
			long, have = true, 0
		}
		switch {
		case r.fatal != nil:
			return n, r.fatal
		case errors.Is(err, io.EOF):
			r.open = have > 0 || long
			if !long {
				r.lines(r.buffer[:have])
			}
			return n, r.fatal
		case err != nil:
			return n, err
		}
	}
}

// Open reports whether the page ended without a newline.
func (r *Reader) Open() bool { return r.open }

// Name returns the name of a family.
func (r *Reader) Name(family int) string { return r.filter.families[family].name }

// Type returns the type of a family.
func (r *Reader) Type(family int) Type { return r.tables[family].typ }

// Err returns what is wrong with the lines of a family, or nil.
func (r *Reader) Err(family int) error { return r.tables[family].err }

// First returns the first series of a family, or nil.
func (r *Reader) First(family int) *Series { return r.at(r.tables[family].first) }

// Next returns the series after s of its family, or nil.
func (r *Reader) Next(s *Series) *Series { return r.at(s.next) }

func (r *Reader) at(i int32) *Series {
	if i < 0 {
		return nil
	}
	return &r.series[i]
}

// Key returns the labels of a series, without empty ones: see [Labels].
func (r *Reader) Key(s *Series) Labels { return Labels(r.keys[s.key:s.keyEnd]) }

// Find returns the series of a family with the labels, or nil.
func (r *Reader) Find(family int, key Labels) *Series {
	i, _ := r.find(family, key)
	return r.at(i)
}

// Buckets appends the buckets of a series to into, as they are on the page.
func (r *Reader) Buckets(s *Series, into []Bucket) []Bucket {
	for i := s.firstBucket; i >= 0; i = r.buckets[i].next {
		into = append(into, r.buckets[i])
	}
	return into
}

// find returns the series or -1, and its place in the index.
func (r *Reader) find(family int, key []byte) (series int32, place uint64) {
	if len(r.index) == 0 {
		return -1, 0
	}
	mask := uint64(len(r.index) - 1)
	place = (maphash.Bytes(r.seed, key) + uint64(family)*0x9e3779b97f4a7c15) & mask
	for ; r.index[place] != 0; place = (place + 1) & mask {
		i := r.index[place] - 1
		if s := &r.series[i]; int(s.family) == family && bytes.Equal(r.keys[s.key:s.keyEnd], key) {
			return i, place
		}
	}
	return -1, place
}

// add returns the series of r.key, made if it is new. It is nil if there is no room.
func (r *Reader) add(family int) *Series {
	if i, _ := r.find(family, r.key); i >= 0 {
		return &r.series[i]
	}
	if !r.take(seriesCost + len(r.key)) {
		return nil
	}
	if c := classOf(r.held); c > r.class {
		r.move(c)
	}
	if n := len(r.index); n <= 2*len(r.series) {
		n = max(256, 2*n)
		r.index = slices.Grow(r.index[:0], n)[:n]
		clear(r.index)
		for i := range r.series {
			s := &r.series[i]
			_, place := r.find(int(s.family), r.keys[s.key:s.keyEnd])
			r.index[place] = int32(i) + 1
		}
	}
	i := int32(len(r.series)) //nolint:gosec // Most bounds it
	_, place := r.find(family, r.key)
	r.index[place] = i + 1
	s := Series{family: int32(family), next: -1, firstBucket: -1, lastBucket: -1, key: uint32(len(r.keys))} //nolint:gosec // likewise
	r.keys = append(r.keys, r.key...)
	s.keyEnd = uint32(len(r.keys)) //nolint:gosec // likewise
	r.series = append(r.series, s)
	if t := &r.tables[family]; t.first < 0 {
		t.first, t.last = i, i
	} else {
		r.series[t.last].next, t.last = i, i
	}
	return &r.series[i]
}

func (r *Reader) addBucket(s *Series, bound, count float64) {
	if !r.take(bucketCost) {
		return
	}
	i := int32(len(r.buckets)) //nolint:gosec // Most bounds it
	r.buckets = append(r.buckets, Bucket{Bound: bound, Count: count, next: -1})
	if s.firstBucket < 0 {
		s.firstBucket = i
	} else {
		r.buckets[s.lastBucket].next = i
	}
	s.lastBucket = i
}

// take accounts for memory before it is used.
func (r *Reader) take(n int) bool {
	r.used += n
	for r.used > r.held {
		switch {
		case r.held+grain > Most:
			r.fatal = fmt.Errorf("%w: they need more than %d MiB", ErrSeries, Most>>20)
			return false
		case !r.more(grain):
			r.fatal = ErrMemory
			return false
		}
		r.held += grain
	}
	return true
}

// fail notes that a line of a family is malformed.
func (r *Reader) fail(family int, line []byte, what string) {
	if t := &r.tables[family]; t.err == nil {
		t.err = fmt.Errorf("%s: %.100q", what, line[:min(len(line), 100*utf8.UTFMax)]) // fmt copies all of it
	}
}

// suspect notes a line whose name cannot be told, with the families that it may belong to.
func (r *Reader) suspect(line []byte, what string) {
	for i := range r.filter.families {
		if bytes.Contains(line, []byte(r.filter.families[i].name)) {
			r.fail(i, line, what)
		}
	}
}

const tooLong = "a line longer than 64 KiB"

// unnamed notes a long line of which the beginning does not have the whole name, behind blanks.
func (r *Reader) unnamed(line []byte) {
	begun := string(bytes.TrimLeft(line, " \t\r{#\""))
	for i := range r.filter.families {
		if strings.HasPrefix(r.filter.families[i].name, begun) {
			r.fail(i, line, tooLong)
		}
	}
}

// Labels are a label set: name, separator, value, separator, by name, without those of an empty value.
type Labels []byte

const separator = 0xff // in no label: they are UTF-8

// Get returns the value of a label; empty if there is none.
func (l Labels) Get(name string) []byte {
	for len(l) > 0 {
		var n, v []byte
		n, v, l = l.cut()
		if string(n) == name {
			return v
		}
	}
	return nil
}

func (l Labels) cut() (name, value []byte, rest Labels) {
	i := bytes.IndexByte(l, separator)
	j := i + 1 + bytes.IndexByte(l[i+1:], separator)
	return l[:i], l[i+1 : j], l[j+1:]
}

// String renders the labels as on the page, each cut to 40 bytes: {a="1",b="2"}.
func (l Labels) String() string {
	var pairs []string
	for len(l) > 0 {
		var n, v []byte
		n, v, l = l.cut()
		pairs = append(pairs, fmt.Sprintf("%.40s=%.40q", n, v))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}
