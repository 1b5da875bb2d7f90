package scrape

import (
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A tally is the count of histograms: of a pod in one sweep, or of the fleet since the first sweep.
type tally struct {
	bounds    []float64 // of the buckets
	counts    []float64 // per bucket, not cumulative; one more than bounds
	sum, less float64
	shown     float64 // of the fleet: the highest sum - less that was reported, as counters are not read at the same time
}

// tally adds what a page has counted to the tally of its pod, and returns the number of observations as the share. It reads
// every series even after one has failed, so that nothing is counted twice. The returned failure is the first one.
func (p *metricPlan) tally(w *worker, now moment, m *memory, metric int) (*share, *Error) {
	if fail := p.damage(w); fail != nil {
		return nil, fail
	}
	out := &share{den: 1, at: now.at}
	var first *Error
	w.begun, w.fell = false, false
	for i := range p.series {
		s, last := &p.series[i], &m.baselines[metric][i]
		n, fail := s.tally(w, now, m, last, &m.counted[metric], len(p.Sum) > 0)
		if !s.sum && !s.less {
			out.num, out.value, out.min, out.max = n, n, n, n
			out.series, out.engines = len(w.list), len(w.list)
		}
		switch {
		case fail == nil || first != nil:
		case s.less && fail.Reason == NotFound:
			last.absent(now.at) // SGLang has no counter of cached tokens before the first hit
		default:
			first = fail
		}
	}
	if first != nil {
		return nil, first
	}
	return out, nil
}

// tally adds what one Series of a page has counted since the last page, and returns how much that is. It may return a
// failure too, for example if one engine of several is missing.
func (s *seriesPlan) tally(w *worker, now moment, m *memory, last *baseline, into *tally, other bool) (float64, *Error) {
	k, fail := s.find(w, now)
	if fail != nil {
		return 0, fail
	}
	current := w.begin(s.Families[k], now)
	for i := range w.list {
		if fail := s.count(w, &w.list[i], s.created[k]); fail != nil {
			return 0, fail
		}
		if s.Read == Counts && !other && current.rows[len(current.rows)-current.width()] < 0 {
			return 0, failf(Buckets, "%s has no _sum", s.Families[k])
		}
	}
	fail = w.rises(now, m, last, s.less)
	n := s.into(w, into, other)
	m.keep(last, current)
	return n, fail
}

// into adds the increases in w.rows.
func (s *seriesPlan) into(w *worker, to *tally, other bool) (total float64) {
	b := &w.current
	if s.Read == Rate {
		for i := range w.list {
			w.list[i].value = w.rows[i]
		}
		_, value, fail := s.group(w)
		switch {
		case fail != nil:
			return 0
		case s.less:
			to.less += value
		default:
			to.sum += value
		}
		return value
	}
	width := len(w.rows) / len(w.list)
	if other {
		to.bounds, to.counts = nil, make([]float64, 1)
	} else {
		to.bounds, to.counts = make([]float64, len(b.bounds)), make([]float64, len(b.bounds)+1)
		for i, x := range b.bounds {
			to.bounds[i] = x * s.scale()
		}
	}
	for i := range w.list {
		row := w.rows[i*width : (i+1)*width]
		below := 0.0
		for j, n := range row[2:] {
			to.counts[min(j, len(to.counts)-1)] += max(0, n-below)
			total += max(0, n-below)
			below = max(below, n)
		}
		if !other {
			to.sum += row[0] * s.scale()
		}
	}
	return total
}

// rises sets w.rows to the increase of each series of w.current since the last page. An increase that cannot be determined
// is 0, so that the result is never too high. What is subtracted (less) has risen from 0 if it was not there, unless what it is
// subtracted from was not there either: then that has begun at what it is (w.begun). If that fell, all of what
// is subtracted is new (w.fell). Series of the last page that are missing are
// remembered, as they may come back, for as long as an increase may span.
func (w *worker) rises(now moment, m *memory, last *baseline, less bool) *Error {
	b := &w.current
	w.rows = append(w.rows[:0], b.rows...)
	width := b.width()
	if last.known() && !last.lost {
		again, fail := last.restarted(b)
		switch {
		case again:
			return nil // all of its counts came since
		case fail != nil:
			clear(w.rows)
			w.begun = true
			return fail
		}
	}
	fresh := last.lost || !last.known() || last.family != b.family || !slices.Equal(last.bounds, b.bounds)
	clear(w.ids)
	if !fresh {
		for i, id := range last.ids {
			w.ids[id] = i
		}
	}
	seen := !m.since.IsZero() && !last.known() // no process of before can have been counted
	reader := baseline{at: m.since}
	for i, id := range b.ids {
		row := w.rows[i*width : (i+1)*width]
		j, ok := w.ids[id]
		switch {
		case ok && last.began[j] != 0 && b.began[i] != 0 && last.began[j] != b.began[i]: // only this series has restarted
		case ok && less && w.fell: // it has restarted with what it is subtracted from, though it has counted more since
		case ok:
			w.fell = increase(row, last.row(j)) || w.fell
		case !fresh && last.isBefore(b.began[i], b), seen && (reader.isBefore(b.start, b) || reader.isBefore(b.began[i], b)):
		case less && !w.begun && last.known() && !last.lost && (!fresh || last.family == ""):
		default:
			clear(row)
			w.begun = true
		}
		delete(w.ids, id)
	}
	if last.lost {
		return failf(NoBaseline, "the budget had no memory left for the last scrape")
	}
	if len(w.ids) == 0 {
		return nil
	}
	if b.gone = last.gone; b.gone.IsZero() {
		b.gone = now.at
	}
	if now.at.Sub(b.gone) > 2*now.staleness || len(w.ids) > maxMissing {
		b.gone = time.Time{}
		return nil
	}
	missing := len(w.ids)
	for j, id := range last.ids {
		if _, is := w.ids[id]; is {
			b.ids, b.began, b.rows = append(b.ids, id), append(b.began, last.began[j]), append(b.rows, last.row(j)...)
		}
	}
	return failf(NoBaseline, "%d of %d series of the last scrape are gone", missing, len(last.ids))
}

// maxMissing is how many series of a pod that are no longer on its page are remembered.
const maxMissing = 1024

// restart lets the tallies of all metrics begin anew if one of them is so large that others would be lost beside it, as after a broken page.
// All do, so that they are counts since the same time.
func (s *Scraper) restart() {
	if !slices.ContainsFunc(s.totals, func(t tally) bool { return t.most() > mostCount }) {
		return
	}
	for i := range s.totals {
		t := &s.totals[i]
		clear(t.counts)
		*t = tally{bounds: t.bounds, counts: t.counts}
	}
}

// most is the largest of the tally's numbers.
func (t *tally) most() float64 {
	total := 0.0
	for _, n := range t.counts {
		total += n
	}
	return max(total, t.sum, t.less)
}

// collect adds what the pods have counted in a sweep to the fleet's tally, and returns the tally.
func (s *Scraper) collect(i int, visits []*visit, at time.Time) (scaling.Histogram, error) {
	p, total := &s.plan.metrics[i], &s.totals[i]
	h := scaling.Histogram{Metric: p.Name, At: at}
	var first *tally // the first one with buckets
	answered, notReady, same := 0, 0, false
	for _, v := range visits {
		last := v.memory.baselines[i][0].bounds // of a pod that does not answer now, too
		same = same || len(last) > 0 && slices.EqualFunc(last, total.bounds, func(x, y float64) bool { return x*p.Terms[0].scale() == y })
		if v.pod.State.waits() {
			notReady++
			continue
		}
		h.Failed += int32(one(v.shares[i] == nil))
		if c := &v.memory.counted[i]; c.counts != nil {
			if answered++; first == nil {
				first = c
			}
			same = same || slices.Equal(c.bounds, total.bounds) // also where there are no buckets
		}
	}
	if first != nil && (total.counts == nil || !same) {
		*total = tally{bounds: first.bounds, counts: make([]float64, len(first.counts))}
	}
	for _, v := range visits {
		total.add(&v.memory.counted[i])
		v.memory.counted[i] = tally{}
	}
	if answered == 0 {
		return h, p.unknown(i, visits, 0, notReady, nil)
	}
	total.shown = max(total.shown, total.sum-total.less)
	h.Bounds, h.Counts, h.Sum = slices.Clone(total.bounds), slices.Clone(total.counts), total.shown
	return h, nil
}

// add adds a pod's counts. Counts of buckets with other bounds go to the bucket of their lower end.
func (t *tally) add(pod *tally) {
	t.sum += pod.sum
	t.less += pod.less
	if t.counts == nil {
		return
	}
	same := slices.Equal(t.bounds, pod.bounds)
	for i, n := range pod.counts {
		at := i
		if !same {
			low := 0.0
			if i > 0 {
				low = pod.bounds[i-1]
			}
			// The bucket of numbers just above low.
			if at, _ = slices.BinarySearch(t.bounds, low); at < len(t.bounds) && t.bounds[at] == low {
				at++
			}
		}
		t.counts[at] += n
	}
}
