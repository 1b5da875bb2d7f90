package scaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// A Window says which samples a sliding minimum, maximum or average looks at: those strictly newer than now - Length.
//
// Times are rounded down to a multiple of Resolution first, and samples of one such slot merge, which bounds the
// memory at Length/Resolution entries. A Resolution of zero means one millisecond, the resolution of stored state.
// A Length below one slot means that slot alone.
//
// A clock that goes back by some time shifts every sample back by as much: nothing expires early and nothing is kept
// for longer than Length of the new time. Asking for a time before the newest one asks for the newest one.
type Window struct {
	Length     time.Duration
	Resolution time.Duration
}

// Validate reports a negative Length or Resolution. Its fields are named under field.
func (w Window) Validate(field string) error {
	var e FieldErrors
	e.Check(w.Length >= 0, field+".length", w.Length, "must not be negative")
	e.Check(w.Resolution >= 0, field+".resolution", w.Resolution, "must not be negative")
	return e.Err()
}

// slot rounds a time down to its slot, in milliseconds.
func (w Window) slot(t time.Time) int64 {
	ms := t.UnixMilli()
	res := w.slotLength()
	return ms - (ms%res+res)%res
}

func (w Window) slotLength() int64 { return max(1, w.Resolution.Milliseconds()) }

// horizon is the newest slot that is out of the window at slot now.
func (w Window) horizon(now int64) int64 {
	return now - max(w.Length.Milliseconds(), w.slotLength())
}

// A SlidingMax is the maximum of the samples in a window. Its zero value is empty. Recording and asking take constant
// time on average and allocate only while the window fills.
type SlidingMax struct{ m monotone }

// Record adds a sample. A value that is not finite is left out, and false is returned.
func (s *SlidingMax) Record(w Window, now time.Time, v float64) bool { return s.m.record(w, now, v) }

// Max returns the greatest sample in the window at now; false if there is none.
func (s *SlidingMax) Max(w Window, now time.Time) (float64, bool) { return s.m.first(w, now) }

// Len returns how many samples are kept: those that can still become the maximum.
func (s *SlidingMax) Len() int { return s.m.n }

// MarshalJSON writes the kept samples as pairs of Unix milliseconds and value.
func (s SlidingMax) MarshalJSON() ([]byte, error) { return s.m.save(1) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *SlidingMax) UnmarshalJSON(data []byte) error { return s.m.load(data, 1) }

// A SlidingMin is the minimum of the samples in a window. Its zero value is empty. Recording and asking take constant
// time on average and allocate only while the window fills.
type SlidingMin struct{ m monotone }

// Record adds a sample. A value that is not finite is left out, and false is returned.
func (s *SlidingMin) Record(w Window, now time.Time, v float64) bool { return s.m.record(w, now, -v) }

// Min returns the least sample in the window at now; false if there is none.
func (s *SlidingMin) Min(w Window, now time.Time) (float64, bool) {
	v, ok := s.m.first(w, now)
	return 0 - v, ok
}

// Len returns how many samples are kept: those that can still become the minimum.
func (s *SlidingMin) Len() int { return s.m.n }

// MarshalJSON writes the kept samples as pairs of Unix milliseconds and value.
func (s SlidingMin) MarshalJSON() ([]byte, error) { return s.m.save(-1) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *SlidingMin) UnmarshalJSON(data []byte) error { return s.m.load(data, -1) }

type sample struct {
	at    int64 // slot, Unix milliseconds
	value float64
}

// monotone is the deque behind SlidingMax: samples in order of time whose values strictly decrease. A sample that is
// no greater than a later one can never be the maximum again.
type monotone struct {
	ring[sample]
	newest int64
}

func (m *monotone) record(w Window, now time.Time, v float64) bool {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return false
	}
	at := w.slot(now)
	if m.n > 0 && at < m.newest {
		for i := range m.n {
			m.at(i).at -= m.newest - at
		}
	}
	m.newest = at
	m.evict(w, at)
	if m.n > 0 {
		if last := m.at(m.n - 1); last.at == at && last.value >= v {
			return true
		}
	}
	for m.n > 0 && m.at(m.n-1).value <= v {
		m.popBack()
	}
	m.push(sample{at, v})
	return true
}

func (m *monotone) first(w Window, now time.Time) (float64, bool) {
	m.newest = max(m.newest, w.slot(now))
	m.evict(w, m.newest)
	if m.n == 0 {
		return 0, false
	}
	return m.at(0).value, true
}

func (m *monotone) evict(w Window, now int64) {
	for horizon := w.horizon(now); m.n > 0 && m.at(0).at <= horizon; {
		m.popFront()
	}
}

// leaves returns when the first sample is out of the window.
func (m *monotone) leaves(w Window) time.Time {
	at := m.at(0).at
	return time.UnixMilli(at + at - w.horizon(at))
}

type storedSamples struct {
	Newest  int64        `json:"newest"`
	Samples [][2]float64 `json:"samples"`
}

// save writes the samples with their sign; milliseconds are exact in a float64 until the year 287396.
func (m *monotone) save(sign float64) ([]byte, error) {
	s := storedSamples{Newest: m.newest, Samples: make([][2]float64, 0, m.n)}
	for i := range m.n {
		e := m.at(i)
		s.Samples = append(s.Samples, [2]float64{float64(e.at), sign * e.value})
	}
	return json.Marshal(s)
}

func (m *monotone) load(data []byte, sign float64) error {
	var s storedSamples
	if err := decodeStrictly(data, &s); err != nil {
		return err
	}
	fresh := monotone{newest: s.Newest}
	for i, p := range s.Samples {
		e := sample{int64(p[0]), sign * p[1]}
		if float64(e.at) != p[0] || e.at > s.Newest {
			return fmt.Errorf("samples[%d]: %v is not a time in milliseconds up to newest", i, p[0])
		}
		if i > 0 {
			if last := fresh.at(i - 1); last.at >= e.at || last.value <= e.value {
				return fmt.Errorf("samples[%d]: not in order", i)
			}
		}
		fresh.push(e)
	}
	*m = fresh
	return nil
}

// A SlidingMean is the average of the samples in a window, each sample counting alike. Its zero value is empty.
// Recording and asking take constant time on average and allocate only while the window fills. Sums carry twice the
// precision of a float64 and are never subtracted from, so that a huge sample leaves no trace once it is out of the
// window and the mean of a constant is that constant.
type SlidingMean struct {
	ring[slotSum]
	newest int64
	// The first front entries carry in through the sum of themselves up to entry front-1; the entries behind them
	// are added up in back. Entries leave at the front without a subtraction, and when front reaches 0 the sums
	// are built anew: each entry is visited once for that.
	front int
	back  sum
}

type slotSum struct {
	at      int64
	own     sum
	through sum
}

// maxMean bounds what a SlidingMean takes, so that no sum of samples can overflow.
const maxMean = 1e290

// Record adds a sample. A value that is not finite or beyond +-1e290 is left out, and false is returned.
func (s *SlidingMean) Record(w Window, now time.Time, v float64) bool {
	if !(math.Abs(v) <= maxMean) {
		return false
	}
	at := w.slot(now)
	if s.n > 0 && at < s.newest {
		for i := range s.n {
			s.at(i).at -= s.newest - at
		}
	}
	s.newest = at
	s.evict(w, at)
	one := sum{hi: v, n: 1}
	s.back = s.back.plus(one)
	if s.n > 0 {
		if last := s.at(s.n - 1); last.at == at {
			last.own = last.own.plus(one)
			return true
		}
	}
	s.push(slotSum{at: at, own: one})
	return true
}

// Mean returns the average of the samples in the window at now; false if there is none.
func (s *SlidingMean) Mean(w Window, now time.Time) (float64, bool) {
	s.newest = max(s.newest, w.slot(now))
	s.evict(w, s.newest)
	total := s.back
	if s.front > 0 {
		total = s.at(0).through.plus(total)
	}
	if total.n == 0 {
		return 0, false
	}
	return total.mean(), true
}

// Len returns how many slots with samples are kept.
func (s *SlidingMean) Len() int { return s.n }

func (s *SlidingMean) evict(w Window, now int64) {
	for horizon := w.horizon(now); s.n > 0 && s.at(0).at <= horizon; {
		if s.n == 1 {
			s.popFront()
			s.front, s.back = 0, sum{}
			return
		}
		if s.front == 0 {
			// The last entry stays behind: samples of its slot may still come.
			s.front = s.n - 1
			var through sum
			for i := s.front - 1; i >= 0; i-- {
				e := s.at(i)
				through = through.plus(e.own)
				e.through = through
			}
			s.back = s.at(s.n - 1).own
		}
		s.popFront()
		s.front--
	}
}

type storedSums struct {
	Newest int64        `json:"newest"`
	Sums   [][4]float64 `json:"sums"`
}

// MarshalJSON writes each slot as Unix milliseconds, number of samples, and the high and low part of their sum.
func (s SlidingMean) MarshalJSON() ([]byte, error) {
	out := storedSums{Newest: s.newest, Sums: make([][4]float64, 0, s.n)}
	for i := range s.n {
		e := s.at(i)
		out.Sums = append(out.Sums, [4]float64{float64(e.at), float64(e.own.n), e.own.hi, e.own.lo})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *SlidingMean) UnmarshalJSON(data []byte) error {
	var in storedSums
	if err := decodeStrictly(data, &in); err != nil {
		return err
	}
	fresh := SlidingMean{newest: in.Newest}
	for i, p := range in.Sums {
		e := slotSum{at: int64(p[0]), own: sum{hi: p[2], lo: p[3], n: int64(p[1])}}
		switch {
		case float64(e.at) != p[0] || e.at > in.Newest:
			return fmt.Errorf("sums[%d]: %v is not a time in milliseconds up to newest", i, p[0])
		case float64(e.own.n) != p[1] || e.own.n < 1:
			return fmt.Errorf("sums[%d]: %v is not a number of samples", i, p[1])
		case i > 0 && fresh.at(i-1).at >= e.at:
			return errors.New("sums are not in order")
		}
		fresh.push(e)
		fresh.back = fresh.back.plus(e.own)
	}
	*s = fresh
	return nil
}

// sum is a sum of n numbers in two parts, hi + lo with |lo| <= ulp(hi)/2.
type sum struct {
	hi, lo float64
	n      int64
}

func (a sum) plus(b sum) sum {
	// Knuth's exact sum of two numbers, then the low parts.
	hi := a.hi + b.hi
	bb := hi - a.hi
	lo := (a.hi - (hi - bb)) + (b.hi - bb) + a.lo + b.lo
	top := hi + lo
	return sum{hi: top, lo: lo - (top - hi), n: a.n + b.n}
}

// mean divides with one correction, which makes the result the nearest float64 but for rare halves.
func (a sum) mean() float64 {
	n := float64(a.n)
	q := a.hi / n
	r := math.FMA(-q, n, a.hi) + a.lo
	return q + r/n
}

// ring is a queue in a slice that is reused: it grows to what the window needs and then allocates no more.
type ring[T any] struct {
	buf  []T // length a power of two
	head int
	n    int
}

func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		grown := make([]T, max(8, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = *r.at(i)
		}
		r.buf, r.head = grown, 0
	}
	r.n++
	*r.at(r.n - 1) = v
}

func (r *ring[T]) popFront() {
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
}

func (r *ring[T]) popBack() { r.n-- }
