package window

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/exact"
)

// A Mean is the average of the samples in a window, each sample counting alike. Its zero value is empty.
// Recording and asking take constant time on average and allocate only while the window fills. Sums carry twice the
// precision of a float64 and are never subtracted from, so that a huge sample leaves no trace once it is out of the
// window and the mean of a constant is that constant.
type Mean struct {
	Ring[slotSum]
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

// maxMean bounds what a Mean takes, so that no sum of samples can overflow.
const maxMean = 1e290

// mostPerSlot bounds the samples of a slot that a state may say, so that no number of samples can overflow.
const mostPerSlot = 1e9

// Record adds a sample. A value that is not finite or beyond +-1e290 is left out, and false is returned.
func (s *Mean) Record(w Window, now time.Time, v float64) bool {
	if !(math.Abs(v) <= maxMean) {
		return false
	}
	at := w.slot(now)
	if at < s.newest {
		for i := range s.n {
			s.At(i).at -= s.newest - at
		}
	}
	s.newest = at
	s.evict(w, at)
	one := sum{hi: v, n: 1}
	s.back = s.back.plus(one)
	if s.n > 0 {
		if last := s.At(s.n - 1); last.at == at {
			last.own = last.own.plus(one)
			return true
		}
	}
	s.Push(slotSum{at: at, own: one})
	return true
}

// Mean returns the average of the samples in the window at now; false if there is none.
func (s *Mean) Mean(w Window, now time.Time) (float64, bool) {
	s.newest = max(s.newest, w.slot(now))
	s.evict(w, s.newest)
	total := s.back
	if s.front > 0 {
		total = s.At(0).through.plus(total)
	}
	if total.n == 0 {
		return 0, false
	}
	return total.mean(), true
}

func (s *Mean) evict(w Window, now int64) {
	for horizon := w.horizon(now); s.n > 0 && s.At(0).at <= horizon; {
		if s.n == 1 {
			s.PopFront()
			s.front, s.back = 0, sum{}
			return
		}
		if s.front == 0 {
			// The last entry stays behind: samples of its slot may still come.
			s.front = s.n - 1
			var through sum
			for i := s.front - 1; i >= 0; i-- {
				e := s.At(i)
				through = through.plus(e.own)
				e.through = through
			}
			s.back = s.At(s.n - 1).own
		}
		s.PopFront()
		s.front--
	}
}

type storedSums struct {
	Newest int64        `json:"newest"`
	Sums   [][4]float64 `json:"sums"`
}

// MarshalJSON writes each slot as Unix milliseconds, number of samples, and the high and low part of their sum.
func (s Mean) MarshalJSON() ([]byte, error) {
	out := storedSums{Newest: s.newest, Sums: make([][4]float64, 0, s.n)}
	for i := range s.n {
		e := s.At(i)
		out.Sums = append(out.Sums, [4]float64{float64(e.at), float64(e.own.n), e.own.hi, e.own.lo})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Mean) UnmarshalJSON(data []byte) error {
	var in storedSums
	if err := decode(data, &in); err != nil {
		return err
	}
	if !Remembered(in.Newest) {
		return fmt.Errorf("newest: %d is not a time in milliseconds", in.Newest)
	}
	fresh := Mean{newest: in.Newest}
	for i, p := range in.Sums {
		e := slotSum{at: int64(p[0]), own: sum{hi: p[2], lo: p[3], n: int64(p[1])}}
		switch {
		case float64(e.at) != p[0] || e.at > in.Newest || !Remembered(e.at):
			return fmt.Errorf("sums[%d]: %v is not a time in milliseconds up to newest", i, p[0])
		case float64(e.own.n) != p[1] || e.own.n < 1 || e.own.n > mostPerSlot:
			return fmt.Errorf("sums[%d]: %v is not a number of samples", i, p[1])
		case math.Abs(p[2]) > p[1]*2*maxMean || math.Abs(p[3]) > math.Abs(p[2]):
			return fmt.Errorf("sums[%d]: %v, %v is not a sum of so many samples", i, p[2], p[3])
		case i > 0 && fresh.At(i-1).at >= e.at:
			return errors.New("sums are not in order")
		}
		fresh.Push(e)
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
	hi, lo := exact.AddTwo(a.hi, a.lo+b.lo, b.hi)
	return sum{hi: hi, lo: lo, n: a.n + b.n}
}

func (a sum) mean() float64 { return exact.DivideTwo(a.hi, a.lo, float64(a.n)) }
