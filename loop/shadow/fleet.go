package shadow

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A fleet is what a shadow believes to have.
type fleet struct {
	count  int32
	waits  []batch // of replicas that start, the oldest first
	inStep bool    // whether it is the real fleet: asked for the same count since both were the same
}

// A batch is replicas that were asked for together.
type batch struct {
	at time.Time
	n  int32
}

// mostBatches is how many batches are told apart.
const mostBatches = 32

// ready is how many replicas have started.
func (f *fleet) ready() int32 {
	n := f.count
	for _, b := range f.waits {
		n -= b.n
	}
	return n
}

// wait has n replicas, of those that are there, start at a time.
func (f *fleet) wait(at time.Time, n int32) {
	if n <= 0 {
		return
	}
	if len(f.waits) == mostBatches { // the oldest two as late as the later of them
		f.waits[1].n += f.waits[0].n
		f.waits = slices.Delete(f.waits, 0, 1)
	}
	f.waits = append(f.waits, batch{at, n})
}

// set asks for a count. What starts is the first to go, the newest of it first.
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

// look brings the fleet up to a time at which so many replicas are asked for and ready in truth.
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

// follow has as many replicas start as do in truth.
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

// reading returns what a reading would be of this fleet, where so many real replicas are ready.
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
	// The counts as numbers, as whoever made them may have made anything of them.
	values, failed, booting, stuck := float64(r.Values), float64(max(r.Failed, 0)), float64(max(r.NotReady, 0)), float64(max(r.Stuck, 0))
	pods := values + failed + booting
	lower := finite(r.Lower * pods)
	upper, fill := lower, m.Fill
	if missing := failed + booting - min(stuck, booting); missing > 0 && r.Upper > r.Lower {
		fill = (r.Upper - r.Lower) * pods / missing
		if failed > 0 {
			upper += fill * failed
		}
	} else if r.Upper > r.Lower { // nobody is missing, and yet it is an interval
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

// starts learns how long a replica of the real fleet takes to start: from when a count was asked for to when as many
// are ready.
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
		return spec < r.count // it was taken back
	})
}

func (s *starts) back(by time.Duration) {
	for i := range s.rises {
		s.rises[i].at = s.rises[i].at.Add(-by)
	}
}

// typical is the median.
func (s *starts) typical(otherwise time.Duration) time.Duration {
	if len(s.took) == 0 {
		return otherwise
	}
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[len(sorted)/2]
}
