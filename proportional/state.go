package proportional

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// State is what a Scaler remembers: plain data whose size is bounded by the configuration and does not depend on the
// length of the run. The zero value is a fresh start.
//
// Decide reuses the slices of the state it is given: like a slice passed to append, that state must not be used again.
type State struct {
	Seen scaling.Stamp `json:"seen,omitzero"` // the last decision or record
	// Panic is the last time at which a burst met the threshold; no time while not in panic.
	Panic scaling.Stamp `json:"panic,omitzero"`
	Peak  int32         `json:"peak,omitempty"`  // the highest count that was asked for in this panic
	Loads []Load        `json:"loads,omitempty"` // one per metric, by name; none without a stable window
	// Recommendations is the memory of the stabilization. It has the recommendations, never the counts after stabilization,
	// limits and bounds.
	Recommendations scaling.Recommendations `json:"recommendations"`
	Changes         scaling.Changes         `json:"changes"` // the memory of the rate limits
}

// A Load is what is remembered of one metric.
type Load struct {
	Metric  string        `json:"metric"`
	Measure Measure       `json:"measure"`
	Since   scaling.Stamp `json:"since,omitzero"` // since when the metric has been known
	Last    scaling.Stamp `json:"last,omitzero"`  // the latest sample
	Window  Window        `json:"window"`
}

// Clone returns a copy that shares no memory.
func (s State) Clone() State {
	s.Recommendations, s.Changes, s.Loads = s.Recommendations.Clone(), s.Changes.Clone(), slices.Clone(s.Loads)
	for i := range s.Loads {
		w := &s.Loads[i].Window
		w.buckets = w.buckets.Clone()
	}
	return s
}

// Validate reports a state that no Scaler can have written.
func (s State) Validate() error {
	if len(s.Loads) > MaxMetrics {
		return fmt.Errorf("loads: %d: must be at most %d", len(s.Loads), MaxMetrics)
	}
	if s.Panic.Set && !upTo(s.Panic, s.Seen) {
		return errors.New("panic: must be a time up to seen")
	}
	if s.Peak != 0 && !s.Panic.Set {
		return fmt.Errorf("peak: %d: must be 0 outside a panic", s.Peak)
	}
	if err := s.Changes.Validate(); err != nil {
		return fmt.Errorf("changes.%w", err)
	}
	for i := range s.Loads {
		l := &s.Loads[i]
		if n := l.Window.Len(); n > 0 && s.Seen.Set && l.Window.buckets.At(n-1).at > s.Seen.Milli {
			return fmt.Errorf("loads[%d].window: must be up to seen", i)
		}
		if l.Last.Set && !upTo(l.Last, s.Seen) {
			return fmt.Errorf("loads[%d].last: must be a time up to seen", i)
		}
		if (l.Since.Set || l.Window.Len() > 0) && !upTo(l.Since, l.Last) {
			return fmt.Errorf("loads[%d].since: must be a time up to last", i)
		}
	}
	return nil
}

// turnBack returns by how many milliseconds the clock is behind the last decision, and moves every remembered time back by as
// much, so that the time already waited stays the same. Times that are still in the future become now. The memories of package
// scaling do the same by themselves.
func turnBack(s *State, now int64) (back int64) {
	if s.Seen.Set && now >= s.Seen.Milli {
		return 0
	}
	if s.Seen.Set {
		back = s.Seen.Milli - now
	}
	s.Panic = past(s.Panic.Back(back), now)
	for i := range s.Loads {
		l := &s.Loads[i]
		l.Since, l.Last = past(l.Since.Back(back), now), past(l.Last.Back(back), now)
	}
	return back
}

// upTo reports whether there are two times and the first is not after the second.
func upTo(a, b scaling.Stamp) bool { return a.Set && b.Set && a.Milli <= b.Milli }

func past(s scaling.Stamp, now int64) scaling.Stamp {
	if s.Set {
		s.Milli = min(s.Milli, now)
	}
	return s
}

// loadsOf returns the memory of every metric, in the order of metrics. A metric keeps its window if its name and measure are the
// same: a changed target, tolerance or window length does not make its loads wrong.
func loadsOf(s *State, metrics []Metric) []Load {
	if same(s.Loads, metrics) {
		return s.Loads
	}
	loads := make([]Load, len(metrics))
	for i := range metrics {
		loads[i] = Load{Metric: metrics[i].Name, Measure: metrics[i].Measure}
		for _, old := range s.Loads {
			if old.Metric == metrics[i].Name && old.Measure == metrics[i].Measure {
				loads[i] = old
			}
		}
	}
	s.Loads = loads
	return loads
}

func same(loads []Load, metrics []Metric) bool {
	if len(loads) != len(metrics) {
		return false
	}
	for i := range loads {
		if loads[i].Metric != metrics[i].Name || loads[i].Measure != metrics[i].Measure {
			return false
		}
	}
	return true
}

// stampMilli returns the stamp of a time in Unix milliseconds.
func stampMilli(ms int64) scaling.Stamp { return scaling.Stamp{Set: true, Milli: ms} }

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func timeOf(ms int64) time.Time { return time.UnixMilli(ms) }
