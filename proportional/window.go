package proportional

import (
	"encoding/json"
	"fmt"

	"github.com/inferscale/inferscale/internal/exact"
	"github.com/inferscale/inferscale/internal/window"
)

// maxLoad is what a load saturates at, so that no sum of loads can overflow.
const maxLoad = 1e290

// roundedUp is a factor by which sums and averages of loads never exceed the exact ones, whatever the rounding.
const roundedUp = 1 + 1e-9

// A Window has the loads of one metric in timed buckets, and averages them. Its zero value is empty.
//
// Buckets have the length Config.Resolution, are aligned to Unix time and take about 30 bytes of JSON each. The load of a bucket
// is the average of its samples; that of the window is the average of the buckets that have a sample, with equal weights. Hence
//
//	gaps               are left out: a missed scrape is missing, not a load of zero
//	partial start-up   uses the samples that there are: the first one alone can scale up at once; there is no
//	                   scale-down before the metric has been known for a whole stable window (code Uncovered)
//	trailing silence   is left out too: the last samples count until they are as old as the window; then the metric
//	                   is not known, and blocks scale-down until it is known again
//
// The last two make a restart safe: with a fresh state there is no scale-down for a stable window, and with a stored state one or
// two missing readings delay a change but do not restart the window. A metric counts as known throughout if no two consecutive
// samples were more than two stable windows apart.
//
// A sample counts at the time of its reading (Reading.At, or the time of the decision if that is zero). A sample that is not newer
// than the latest one was counted already or is too late, and is left out.
//
// Averages carry twice the precision of a float64 and nothing is ever subtracted from them, so that a huge load leaves
// no trace once it is out of the window and the average of a constant is the constant. Recording and averaging take
// constant time on average, and allocate only while the window fills.
type Window struct {
	buckets window.Ring[bucket]
	// The newest bucket is open: it has the sums of its samples, while all others have averages. In the oldest front buckets,
	// through is the sum of the buckets from itself to bucket front-1; the closed buckets after those are summed in back. So
	// buckets leave at the front without a subtraction. When front is 0 the sums are rebuilt, for which each bucket is
	// visited once.
	samples float64 // in the open bucket
	front   int
	back    total
}

type bucket struct {
	at      int64 // its start, Unix milliseconds
	load    span
	through total
}

// A span is a load from lower up to lower + gap.
type span struct{ lower, gap float64 }

// total is a sum of spans, each number in two parts, high + low with |low| <= ulp(high)/2.
type total struct{ high, low span }

func (t *total) add(s span) {
	t.high.lower, t.low.lower = exact.AddTwo(t.high.lower, t.low.lower, s.lower)
	if s.gap != 0 {
		t.high.gap, t.low.gap = exact.AddTwo(t.high.gap, t.low.gap, s.gap)
	}
}

func (t *total) join(o *total) {
	t.add(o.high)
	t.add(o.low)
}

// over divides by n with one correction, which makes the result the nearest float64 except in rare halfway cases.
func (t *total) over(n float64) span {
	s := span{lower: exact.DivideTwo(t.high.lower, t.low.lower, n)}
	if t.high.gap != 0 {
		s.gap = exact.DivideTwo(t.high.gap, t.low.gap, n)
	}
	return s
}

// Len returns how many buckets are kept.
func (w *Window) Len() int { return w.buckets.Len() }

// record adds a load to the bucket that starts at a time, or to the newest one if that starts later.
func (w *Window) record(at int64, s span) {
	if w.Len() > 0 {
		newest := w.buckets.At(w.Len() - 1)
		if at <= newest.at {
			newest.load.lower += s.lower
			newest.load.gap += s.gap
			w.samples++
			return
		}
		if w.samples != 1 {
			newest.load.lower /= w.samples
			newest.load.gap /= w.samples
		}
		w.back.add(newest.load)
	}
	w.buckets.Push(bucket{at: at, load: s})
	w.samples = 1
}

// rewind moves all buckets back by a multiple of the bucket length, and by more if the newest would still start after slot: after
// a clock went back nothing expires early, and nothing is kept for longer.
func (w *Window) rewind(by, slot int64) {
	if w.Len() == 0 {
		return
	}
	if by = max(by, w.buckets.At(w.Len()-1).at-slot); by > 0 {
		for i := range w.Len() {
			w.buckets.At(i).at -= by
		}
	}
}

// evict drops the buckets that start at the horizon or before.
func (w *Window) evict(horizon int64) {
	for w.Len() > 0 && w.buckets.At(0).at <= horizon {
		if w.Len() == 1 {
			w.buckets.PopFront() // front and back are empty: no closed bucket is left
			return
		}
		if w.front == 0 {
			w.front = w.Len() - 1 // all but the open one
			var through total
			for i := w.front - 1; i >= 0; i-- {
				b := w.buckets.At(i)
				through.add(b.load)
				b.through = through
			}
			w.back = total{}
		}
		w.buckets.PopFront()
		w.front--
	}
}

// open returns the load of the newest bucket, of which there must be one.
func (w *Window) open() span {
	s := w.buckets.At(w.Len() - 1).load
	if w.samples != 1 {
		s.lower /= w.samples
		s.gap /= w.samples
	}
	return s
}

// mean returns the average of all buckets; false if there is none.
func (w *Window) mean() (span, bool) {
	if w.Len() == 0 {
		return span{}, false
	}
	all := w.back
	all.join(&w.buckets.At(0).through) // zero unless the bucket is one of the front
	all.add(w.open())
	return all.over(float64(w.Len())), true
}

// burst returns the average lower load of the buckets that start after the horizon, by adding them up: a panic window
// is short. It is 0 if there is none.
func (w *Window) burst(horizon int64) float64 {
	high, low, n := 0.0, 0.0, 0
	for i := w.Len() - 1; i >= 0 && w.buckets.At(i).at > horizon; i-- {
		load := w.buckets.At(i).load.lower
		if i == w.Len()-1 {
			load = w.open().lower
		}
		high, low = exact.AddTwo(high, low, load)
		n++
	}
	return exact.DivideTwo(high, low, float64(max(1, n)))
}

// ceiling returns the average upper load of the buckets that start after the horizon; 0 if there is none.
func (w *Window) ceiling(horizon int64) (load float64) {
	n := 0
	for i := w.Len() - 1; i >= 0 && w.buckets.At(i).at > horizon; i-- {
		b := w.buckets.At(i).load
		if i == w.Len()-1 {
			b = w.open()
		}
		load += b.lower + b.gap
		n++
	}
	return load / float64(max(1, n))
}

type storedWindow struct {
	Samples int64        `json:"samples"` // in the newest bucket, whose loads are sums
	Buckets [][3]float64 `json:"buckets"` // start in Unix milliseconds, lower load, upper less lower
}

// MarshalJSON writes the buckets; milliseconds are exact in a float64 until the year 287396.
func (w Window) MarshalJSON() ([]byte, error) {
	stored := storedWindow{Samples: int64(w.samples), Buckets: make([][3]float64, 0, w.Len())}
	for i := range w.Len() {
		b := w.buckets.At(i)
		stored.Buckets = append(stored.Buckets, [3]float64{float64(b.at), b.load.lower, b.load.gap})
	}
	return json.Marshal(stored)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (w *Window) UnmarshalJSON(data []byte) error {
	var stored storedWindow
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	if len(stored.Buckets) > MaxBuckets+1 {
		return fmt.Errorf("buckets: %d: must be at most %d", len(stored.Buckets), MaxBuckets+1)
	}
	if len(stored.Buckets) > 0 && (stored.Samples < 1 || stored.Samples > 1<<53) {
		return fmt.Errorf("samples: %d: must be at least 1", stored.Samples)
	}
	fresh := Window{samples: float64(stored.Samples)}
	for i, b := range stored.Buckets {
		at := int64(b[0])
		if float64(at) != b[0] || !window.Remembered(at) || i > 0 && fresh.buckets.At(i-1).at >= at {
			return fmt.Errorf("buckets[%d]: %v: must be a time in milliseconds after the one before", i, b[0])
		}
		for _, load := range b[1:] {
			if !(load >= 0 && load <= maxLoad*fresh.samples*roundedUp) {
				return fmt.Errorf("buckets[%d]: %v: must be a load", i, load)
			}
		}
		if i > 0 {
			fresh.back.add(fresh.buckets.At(i - 1).load)
		}
		fresh.buckets.Push(bucket{at: at, load: span{b[1], b[2]}})
	}
	*w = fresh
	return nil
}
