package window

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// A Max is the maximum of the samples in a window. Its zero value is empty. Recording and asking take constant
// time on average and allocate only while the window fills.
type Max struct{ monotone }

// Max returns the greatest sample in the window at now; false if there is none.
func (s *Max) Max(w Window, now time.Time) (float64, bool) { return s.first(w, now) }

// Clone returns a copy that shares no memory.
func (s *Max) Clone() Max { return Max{monotone{s.Ring.Clone(), s.newest}} }

// MarshalJSON writes the kept samples as pairs of Unix milliseconds and value.
func (s Max) MarshalJSON() ([]byte, error) { return s.save(1) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Max) UnmarshalJSON(data []byte) error { return s.load(data, 1) }

// A Min is the minimum of the samples in a window. Its zero value is empty. Recording and asking take constant
// time on average and allocate only while the window fills.
type Min struct{ monotone }

// Record adds a sample. A value that is not finite is left out, and false is returned.
func (s *Min) Record(w Window, now time.Time, v float64) bool { return s.monotone.Record(w, now, -v) }

// Min returns the least sample in the window at now; false if there is none.
func (s *Min) Min(w Window, now time.Time) (float64, bool) {
	v, ok := s.first(w, now)
	return 0 - v, ok
}

// Clone returns a copy that shares no memory.
func (s *Min) Clone() Min { return Min{monotone{s.Ring.Clone(), s.newest}} }

// MarshalJSON writes the kept samples as pairs of Unix milliseconds and value.
func (s Min) MarshalJSON() ([]byte, error) { return s.save(-1) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Min) UnmarshalJSON(data []byte) error { return s.load(data, -1) }

type sample struct {
	at    int64 // slot, Unix milliseconds
	value float64
}

// monotone is the deque behind Max: samples in order of time whose values strictly decrease. A sample that is
// no greater than a later one can never be the maximum again.
type monotone struct {
	Ring[sample]
	newest int64
}

// Record adds a sample. A value that is not finite is left out, and false is returned.
func (m *monotone) Record(w Window, now time.Time, v float64) bool {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return false
	}
	at := w.slot(now)
	if at < m.newest {
		for i := range m.n {
			m.At(i).at -= m.newest - at
		}
	}
	m.newest = at
	m.evict(w, at)
	for m.n > 0 && m.At(m.n-1).value <= v {
		m.PopBack()
	}
	if m.n == 0 || m.At(m.n-1).at != at {
		m.Push(sample{at, v})
	}
	return true
}

func (m *monotone) first(w Window, now time.Time) (float64, bool) {
	m.newest = max(m.newest, w.slot(now))
	m.evict(w, m.newest)
	if m.n == 0 {
		return 0, false
	}
	return m.At(0).value, true
}

func (m *monotone) evict(w Window, now int64) {
	for horizon := w.horizon(now); m.n > 0 && m.At(0).at <= horizon; {
		m.PopFront()
	}
}

// Leaves returns when the first sample, which is the maximum, is out of the window. There must be one.
func (m *monotone) Leaves(w Window) time.Time {
	at := m.At(0).at
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
		e := m.At(i)
		s.Samples = append(s.Samples, [2]float64{float64(e.at), sign * e.value})
	}
	return json.Marshal(s)
}

func (m *monotone) load(data []byte, sign float64) error {
	var s storedSamples
	if err := decode(data, &s); err != nil {
		return err
	}
	if !Remembered(s.Newest) {
		return fmt.Errorf("newest: %d is not a time in milliseconds", s.Newest)
	}
	fresh := monotone{newest: s.Newest}
	for i, p := range s.Samples {
		e := sample{int64(p[0]), sign * p[1]}
		if float64(e.at) != p[0] || e.at > s.Newest || !Remembered(e.at) {
			return fmt.Errorf("samples[%d]: %v is not a time in milliseconds up to newest", i, p[0])
		}
		if i > 0 {
			if last := fresh.At(i - 1); last.at >= e.at || last.value <= e.value {
				return fmt.Errorf("samples[%d]: not in order", i)
			}
		}
		fresh.Push(e)
	}
	*m = fresh
	return nil
}
