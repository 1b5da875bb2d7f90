package scrape

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/exact"
	"github.com/inferscale/inferscale/scrape/internal/page"
)

// startFamily is the family with the time at which the process of a page started.
const startFamily = "process_start_time_seconds"

// createdFamily is the family with the time at which a counter or histogram was created: Python's client drops _total first.
func createdFamily(name string, read Read) string {
	if read == Rate {
		name = strings.TrimSuffix(name, "_total")
	}
	return name + "_created"
}

// A baseline is what one Series of a Metric had counted on a pod's last good page.
type baseline struct {
	at     time.Time
	family string    // which of the aliases; empty if the page had none
	start  float64   // process_start_time_seconds; 0 if unknown
	seen   time.Time // when a page first had this start
	former float64   // the start before this one; 0 if there was none
	bounds []float64 // of the buckets of all series of a Quantile; never changed
	ids    []uint64  // of the series, in the order of the page
	began  []float64 // when they were created; 0 if unknown
	rows   []float64 // their counts, width() numbers each: see [worker.row]
	lost   bool      // the budget had no memory for the page
	gone   time.Time // for Counts: since when some of the series have been missing from the page
}

// width is how many numbers a series has.
func (b *baseline) width() int { return len(b.rows) / max(1, len(b.ids)) }

func (b *baseline) row(i int) []float64 { return b.rows[i*b.width() : (i+1)*b.width()] }

// known reports whether there ever was a page.
func (b *baseline) known() bool { return !b.at.IsZero() }

// absent records a page without the family. The first such page is a baseline too. Later ones leave the present baseline, so
// that a family that disappears for a while continues from its last counts.
func (b *baseline) absent(at time.Time) {
	if !b.known() || b.family == "" {
		*b = baseline{at: at}
	}
}

// elapsed returns the seconds from the baseline to now, or a failure if no increase can be determined.
func (b *baseline) elapsed(now *baseline, limit time.Duration) (float64, *Error) {
	switch age := now.at.Sub(b.at); {
	case b.lost:
		return 0, failf(NoBaseline, "the budget had no memory left for the last scrape")
	case !b.known():
		return 0, failf(NoBaseline, "first scrape")
	case age <= 0:
		return 0, failf(NoBaseline, "the clock stood still or went back")
	case age > limit:
		return 0, failf(NoBaseline, "the last scrape is %v old, more than %v", age, limit)
	case b.family != "" && b.family != now.family:
		return 0, failf(NoBaseline, "the family was %s before", b.family)
	default:
		return age.Seconds(), nil
	}
}

// same reports whether the page may be one of the same process, by its start time. A process cannot restart within a second, while
// its start time may vary by one: Linux derives it from a boot time that follows clock corrections.
func (b *baseline) same(now *baseline) bool {
	return b.start == 0 || now.start == 0 || math.Abs(now.start-b.start) <= 1
}

// restarted reports whether another process serves the page now. If both pages have a start time, only these are compared, as the
// pod's clock may be ahead of this one. Then a process that follows another one cannot have started while that was seen: a start
// time that is earlier than that, but for the drift of clocks, is of a clock that was corrected, or of several servers at one address,
// and it fails. So does one that was there before: no process has the start time of one that has ended.
func (b *baseline) restarted(now *baseline) (bool, *Error) {
	switch later := now.start - b.start; {
	case b.start == 0:
		return b.isBefore(now.start, now), nil
	case b.same(now):
		return false, nil
	case b.former != 0 && math.Abs(now.start-b.former) <= 1:
		return false, failf(NoBaseline, "%s was the same before the last one: several servers have this address", startFamily)
	case later < 0.999*b.at.Sub(b.seen).Seconds()-1:
		return false, failf(NoBaseline, "%s has changed by %g s, which no restart explains", startFamily, later)
	default:
		return true, nil
	}
}

// isBefore reports whether the baseline is before a Unix time of the pod, or at most a second after it. A time in the future
// only shows that the pod's clock is ahead, and does not count.
func (b *baseline) isBefore(unix float64, now *baseline) bool {
	at := func(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
	return unix != 0 && unix >= at(b.at)-1 && unix <= at(now.at)+1
}

// counted reads what needs two pages: the rates of w.list, or the distribution over all of it. It returns an increase only
// if nothing can be missing from it: every series of the last page is here, and a series that the last page did not have has
// counted nothing yet, or is known to have begun since. Otherwise it reports NoBaseline, and this page is the baseline of
// the next one.
func (s *seriesPlan) counted(w *worker, k int, now moment, m *memory, last *baseline) (*distribution, *Error) {
	current := w.begin(s.Families[k], now)
	for i := range w.list {
		if fail := s.count(w, &w.list[i], s.created[k]); fail != nil {
			return nil, fail
		}
	}
	seconds, fail := last.elapsed(current, 2*now.staleness)
	if fail == nil {
		var gone bool
		if gone, fail = w.increases(last); gone {
			return nil, fail
		}
	}
	width := current.width()
	m.keep(last, current)
	if fail != nil {
		return nil, fail
	}
	if s.Read == Rate {
		for i := range w.list {
			w.list[i].value = w.rows[i] / seconds
		}
		return nil, nil
	}
	d := &distribution{bounds: last.bounds}
	if last.lost {
		d.bounds = slices.Clone(current.bounds)
	}
	column := func(j int) float64 {
		var sum exact.Sum
		for i := j; i < len(w.rows); i += width {
			sum.Add(w.rows[i])
		}
		return sum.Value()
	}
	d.sum, d.count = column(0), column(1)
	for j := 2; j < width; j++ {
		d.counts = append(d.counts, column(j))
	}
	return d, nil
}

// begin resets w.current to a page without series.
func (w *worker) begin(family string, now moment) *baseline {
	b := &w.current
	*b = baseline{at: now.at, family: family, start: now.start, bounds: b.bounds[:0], ids: b.ids[:0], began: b.began[:0], rows: b.rows[:0]}
	return b
}

// count adds a series to w.current.
func (s *seriesPlan) count(w *worker, c *chosen, created int) (fail *Error) {
	b := &w.current
	if s.Read == Rate {
		if fail = c.read(); fail != nil {
			return fail
		}
		b.rows = append(b.rows, c.value)
	} else if b.rows, fail = w.row(b.rows, c.series, s.Read); fail != nil {
		return fail
	}
	if s.Read.buckets() {
		bounds := w.buckets[:len(w.buckets)-1]
		if len(b.ids) == 0 {
			for _, x := range bounds {
				b.bounds = append(b.bounds, x.Bound)
			}
		}
		if !slices.EqualFunc(bounds, b.bounds, func(x page.Bucket, y float64) bool { return x.Bound == y }) {
			return failf(Buckets, "its series differ in the bounds of their buckets")
		}
	}
	key := w.page.Key(c.series)
	began := 0.0
	if x := w.page.Find(created, key); x != nil && x.HasValue && checkNumber(x.Value) == nil {
		began = x.Value
	}
	b.ids, b.began = append(b.ids, identity(key)), append(b.began, began)
	return nil
}

// identity is the FNV-1a hash of the labels: short, and the same in every process.
func identity(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// increases sets w.rows to the increase of w.current since the last page. gone reports that the last page had more series;
// the baseline then stays in place, as they may be back on the next page.
func (w *worker) increases(last *baseline) (gone bool, fail *Error) {
	now := &w.current
	w.rows = append(w.rows[:0], now.rows...)
	if again, fail := last.restarted(now); again || fail != nil {
		return false, fail
	}
	same := slices.Equal(last.ids, now.ids)
	if !same {
		clear(w.ids)
		for i, id := range last.ids {
			w.ids[id] = i
		}
	}
	width, found := now.width(), 0
	for i, id := range now.ids {
		j, ok := i, true
		if !same {
			j, ok = w.ids[id]
		}
		row := w.rows[i*width : (i+1)*width]
		switch {
		case !ok && fail == nil && !last.isBefore(now.began[i], now) && slices.Max(row) > 0:
			fail = failf(NoBaseline, "a series is new, and nothing says that it began since the last scrape")
		case !ok:
		case last.began[j] != 0 && now.began[i] != 0 && last.began[j] != now.began[i]: // only this series has restarted
			found++
		case !slices.Equal(last.bounds, now.bounds):
			return false, failf(Buckets, "the bounds of the buckets have changed")
		default:
			found++
			increase(row, last.row(j))
		}
	}
	if found < len(last.ids) {
		return true, failf(NoBaseline, "%d of %d series of the last scrape are gone", len(last.ids)-found, len(last.ids))
	}
	return false, fail
}

// increase subtracts from row what was counted before. A decrease of any number means that the series restarted from 0, so
// that all of it is new, which increase reports. -1 is an unknown number.
func increase(row, before []float64) (fell bool) {
	for i := range row {
		if row[i] >= 0 && row[i] < before[i] {
			return true
		}
	}
	for i := range row {
		row[i] = max(0, row[i]-before[i])
		// Servers do not render all buckets at the same time, so a difference may decrease; a cumulative count cannot.
		if i > 2 {
			row[i] = max(row[i], row[i-1])
		}
	}
	return false
}

// bytes is the approximate memory of the baseline.
func (b *baseline) bytes() int64 {
	return int64(8 * (len(b.bounds) + len(b.ids) + len(b.began) + len(b.rows)))
}

// keep stores current in place of last, if the budget has the memory.
func (m *memory) keep(last, current *baseline) {
	had := last.bytes()
	if !m.budget.keep(m.tenant, current.bytes()-had) {
		m.budget.keep(m.tenant, -had)
		*last = baseline{at: current.at, lost: true}
		return
	}
	if current.seen.IsZero() { // it is of no snapshot
		switch current.seen, current.former = current.at, last.former; {
		case !last.same(current):
			current.former = last.start
		case last.start != 0:
			current.seen = last.seen
		}
	}
	bounds := last.bounds
	if !slices.Equal(bounds, current.bounds) {
		bounds = slices.Clone(current.bounds)
	}
	*last = baseline{
		at: current.at, family: current.family, start: current.start, seen: current.seen, former: current.former, gone: current.gone, bounds: bounds,
		ids: refill(last.ids, current.ids), began: refill(last.began, current.began), rows: refill(last.rows, current.rows),
	}
}

// refill copies from into the memory of old, unless that is much too large.
func refill[T any](old, from []T) []T {
	if cap(old) > 2*len(from)+16 {
		old = nil
	}
	return append(slices.Grow(old[:0], len(from)), from...)
}

// remember stores the last value of a metric, if the budget has the memory for its distribution.
func (m *memory) remember(metric int, s *share) {
	if !m.budget.keep(m.tenant, s.bytes()-m.last[metric].bytes()) {
		m.budget.keep(m.tenant, -m.last[metric].bytes())
		s = nil
	}
	m.last[metric] = s
}

// bytes is the approximate memory of the distribution.
func (s *share) bytes() int64 {
	if s == nil || s.dist == nil {
		return 0
	}
	return int64(8 * (len(s.dist.bounds) + len(s.dist.counts)))
}

// forget frees what is remembered of a pod that is gone.
func (m *memory) forget() {
	m.budget.keep(m.tenant, -m.taken)
	for _, s := range m.last {
		m.budget.keep(m.tenant, -s.bytes())
	}
	for _, series := range m.baselines {
		for i := range series {
			m.budget.keep(m.tenant, -series[i].bytes())
		}
	}
}

// startTime returns process_start_time_seconds of the page, or 0 if it is absent, ambiguous or not a number.
func (w *worker) startTime() float64 {
	x := w.page.First(0)
	if x == nil || w.page.Next(x) != nil || x.Twice || !x.HasValue || checkNumber(x.Value) != nil {
		return 0
	}
	return x.Value
}
