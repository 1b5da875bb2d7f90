package shadow

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A fleet is the imagined fleet of a shadow.
type fleet struct {
	count  int32
	waits  []batch // of replicas that are starting, the oldest first
	inStep bool    // whether it equals the real fleet: both were the same once, and their counts have been equal since
}

// A batch has the replicas that were requested together.
type batch struct {
	at time.Time
	n  int32
}

// mostBatches is how many batches are kept apart.
const mostBatches = 32

// ready is how many replicas have started.
func (f *fleet) ready() int32 {
	n := f.count
	for _, b := range f.waits {
		n -= b.n
	}
	return n
}

// wait records that n of the replicas are starting since the given time.
func (f *fleet) wait(at time.Time, n int32) {
	if n <= 0 {
		return
	}
	if len(f.waits) == mostBatches { // merge the oldest two, at the later time
		f.waits[1].n += f.waits[0].n
		f.waits = slices.Delete(f.waits, 0, 1)
	}
	f.waits = append(f.waits, batch{at, n})
}

// set changes the count. A scale-down first removes replicas that are starting, the newest of them first.
func (f *fleet) set(at time.Time, count int32) {
	more := count - f.count
	f.count = count
	if more > 0 {
		f.wait(at, more)
		return
	}
	for more < 0 && len(f.waits) > 0 {
		last := &f.waits[len(f.waits)-1]
		gone := min(last.n, -more)
		more += gone
		if last.n -= gone; last.n == 0 {
			f.waits = f.waits[:len(f.waits)-1]
		}
	}
}

// look brings the fleet up to a time at which the real fleet has spec replicas requested and ready ones ready.
func (f *fleet) look(now time.Time, spec, ready int32, start time.Duration) {
	pending := max(0, spec-max(ready, 0))
	same := f.count == spec
	if f.inStep = same && f.inStep; f.inStep {
		f.follow(now, pending)
		return
	}
	f.waits = slices.DeleteFunc(f.waits, func(b batch) bool { return now.Sub(b.at) >= start })
	f.inStep = same && pending == 0 && len(f.waits) == 0
}

// follow keeps as many replicas starting as the real fleet has pending.
func (f *fleet) follow(now time.Time, pending int32) {
	started := f.count - f.ready() - pending
	for started > 0 {
		first := &f.waits[0]
		gone := min(first.n, started)
		started -= gone
		if first.n -= gone; first.n == 0 {
			f.waits = slices.Delete(f.waits, 0, 1)
		}
	}
	f.wait(now, -started)
}

func (f *fleet) back(by time.Duration) {
	for i := range f.waits {
		f.waits[i].at = f.waits[i].at.Add(-by)
	}
}

// reading returns what a reading of the real fleet would be for this fleet; served is the number of real replicas that are ready.
func (f *fleet) reading(r scaling.Reading, m Metric, served int32) scaling.Reading {
	if m.Kind == Fleet || !r.Known() {
		return r
	}
	ready := f.ready()
	starting := f.count - ready
	if ready <= 0 {
		return scaling.Reading{Metric: r.Metric, NotReady: starting, At: r.At}
	}
	if m.Kind == Average {
		if served <= 0 {
			return scaling.Reading{Metric: r.Metric, At: r.At}
		}
		by := float64(served) / float64(ready)
		r.Lower = finite(r.Lower * by)
		r.Upper = max(r.Lower, r.Upper*by)
		return r
	}
	// The counts as float64, since a reading from elsewhere may have any int32 in them.
	values, failed, booting, stuck := float64(r.Values), float64(max(r.Failed, 0)), float64(max(r.NotReady, 0)), float64(max(r.Stuck, 0))
	pods := values + failed + booting
	lower := finite(r.Lower * pods)
	upper, fill := lower, m.Fill
	if missing := failed + booting - min(stuck, booting); missing > 0 && r.Upper > r.Lower {
		fill = (r.Upper - r.Lower) * pods / missing
		if failed > 0 {
			upper += fill * failed
		}
	} else if r.Upper > r.Lower { // an interval although no pod is missing
		upper = r.Upper * pods
	}
	switch {
	case starting == 0:
	case fill == 0:
		upper = math.Inf(1)
	default:
		upper += fill * float64(starting)
	}
	silent := scaling.Saturate(math.Round(float64(ready) * failed / (values + failed)))
	if failed > 0 {
		silent = max(silent, 1)
	}
	silent = min(silent, ready-1)
	own := scaling.Reading{
		Metric: r.Metric, Values: ready - silent, NotReady: starting, Failed: silent, At: r.At,
	}
	own.Reused = min(max(r.Reused, 0), own.Values)
	own.Lower = lower / float64(f.count)
	own.Upper = max(own.Lower, upper/float64(f.count))
	return own
}

// starts learns how long replicas of the real fleet take to start: from the time when a higher count is first seen to the time
// when as many are ready.
type starts struct {
	spec  int32
	known bool
	rises []rise
	took  []time.Duration // the latest last
}

type rise struct {
	at    time.Time
	count int32
}

const (
	mostRises  = 32
	mostStarts = 21
)

func (s *starts) look(now time.Time, spec, ready int32) {
	if s.known && spec > s.spec && len(s.rises) < mostRises {
		s.rises = append(s.rises, rise{now, spec})
	}
	s.spec, s.known = spec, true
	s.rises = slices.DeleteFunc(s.rises, func(r rise) bool {
		if spec >= r.count && ready >= r.count {
			if len(s.took) == mostStarts {
				s.took = slices.Delete(s.took, 0, 1)
			}
			s.took = append(s.took, min(max(now.Sub(r.at), 0), 24*time.Hour))
			return true
		}
		return spec < r.count // the count was lowered again
	})
}

func (s *starts) back(by time.Duration) {
	for i := range s.rises {
		s.rises[i].at = s.rises[i].at.Add(-by)
	}
}

// typical returns the median of the starts, or otherwise if there are none.
func (s *starts) typical(otherwise time.Duration) time.Duration {
	if len(s.took) == 0 {
		return otherwise
	}
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[len(sorted)/2]
}
