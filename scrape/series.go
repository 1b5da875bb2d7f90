package scrape

import (
	"cmp"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/internal/exact"
	"github.com/inferscale/inferscale/scrape/internal/page"
)

// A worker has the buffers that are reused from page to page. It belongs to one goroutine.
type worker struct {
	page    *page.Reader
	list    []chosen
	groups  []group
	values  []float64
	flags   []bool
	buckets []page.Bucket
	current baseline
	rows    []float64
	begun   bool // whether a series of the metric has begun to be counted with this page
	fell    bool // whether a count of the metric is below that of the last page
	index   map[string]int
	ids     map[uint64]int
	key     []byte
}

func newWorker(spares *page.Spares) *worker {
	return &worker{page: page.NewReader(spares), index: make(map[string]int), ids: make(map[uint64]int)}
}

// release discards the page.
func (w *worker) release() *worker {
	w.page.Release()
	if cap(w.list) > keptSeries || cap(w.rows)+cap(w.values) > 16*keptSeries {
		return &worker{page: w.page, index: make(map[string]int), ids: make(map[uint64]int)}
	}
	return w
}

// keptSeries is the number of series for which a worker keeps memory from page to page.
const keptSeries = 512

// chosen is a series that is read.
type chosen struct {
	series *page.Series
	group  int     // index by its GroupBy labels
	value  float64 // or its increase per second
}

// A group is one data-parallel engine.
type group struct {
	of    *page.Series // one of its series
	value float64
}

// read sets the value of a scalar.
func (c *chosen) read() *Error {
	if !c.series.HasValue {
		return failf(Type, "is no single number")
	}
	c.value = c.series.Value
	return checkNumber(c.value)
}

func (s *seriesPlan) checkType(name string, typ page.Type) *Error {
	ok, hint := false, "Value"
	switch typ {
	case page.Gauge:
		ok = s.Read == Value
	case page.Counter:
		ok, hint = s.Read == Rate, "Rate"
	case page.Histogram:
		ok, hint = s.Read.distribution(), "Mean or Quantile"
	case page.Summary:
		ok, hint = s.Read == Mean, "Mean"
	case page.Untyped:
		ok, hint = !s.Read.distribution(), "Value or Rate"
	default:
		return failf(Type, "%s is a %v, which cannot be read", name, typ)
	}
	if !ok {
		return failf(Type, "%s is a %v: read it as %s, not %v", name, typ, hint, s.Read)
	}
	return nil
}

// choose lists in w the series that match, after Prefer.
func (s *seriesPlan) choose(w *worker, family int) *Error {
	w.list = w.list[:0]
	clear(w.index)
	groups := 0
	for x := w.page.First(family); x != nil; x = w.page.Next(x) {
		labels := w.page.Key(x)
		if slices.ContainsFunc(s.Match, func(m Matcher) bool { return !m.matches(labels) }) {
			continue
		}
		if x.Twice {
			return failf(Duplicate, "%s%v is on the page twice", w.page.Name(family), labels)
		}
		g := groups
		if len(s.GroupBy) > 0 {
			known, ok := w.index[string(s.groupKey(w, x))]
			if ok {
				g = known
			} else {
				w.index[string(w.key)] = g
			}
		}
		groups = max(groups, g+1)
		w.list = append(w.list, chosen{series: x, group: g})
	}
	if s.Prefer.Label == "" {
		return nil
	}
	w.flags = slices.Grow(w.flags[:0], groups)[:groups]
	clear(w.flags)
	prefers := func(c chosen) bool { return s.Prefer.matches(w.page.Key(c.series)) }
	for _, c := range w.list {
		w.flags[c.group] = w.flags[c.group] || prefers(c)
	}
	w.list = slices.DeleteFunc(w.list, func(c chosen) bool { return w.flags[c.group] && !prefers(c) })
	return nil
}

func (m Matcher) matches(l page.Labels) bool { return (string(l.Get(m.Label)) == m.Value) != m.Not }

// groupKey makes in w.key the key of the group of a series.
func (s *seriesPlan) groupKey(w *worker, x *page.Series) []byte {
	labels := w.page.Key(x)
	if len(s.GroupBy) == 0 {
		w.key = append(w.key[:0], labels...)
		return w.key
	}
	w.key = w.key[:0]
	for _, name := range s.GroupBy {
		w.key = append(append(w.key, labels.Get(name)...), 0xff) // a byte that no label contains
	}
	return w.key
}

// group reduces each group of w.list to one number, and the groups to one.
func (s *seriesPlan) group(w *worker) ([]group, float64, *Error) {
	list := w.list
	if len(s.GroupBy) > 0 {
		slices.SortStableFunc(list, func(a, b chosen) int { return cmp.Compare(a.group, b.group) })
	}
	w.groups = w.groups[:0]
	for i := 0; i < len(list); {
		g := group{of: list[i].series}
		w.values = w.values[:0]
		for from := list[i].group; i < len(list) && list[i].group == from; i++ {
			w.values = append(w.values, list[i].value)
		}
		var ok bool
		if g.value, ok = s.Within.of(w.values); !ok {
			return nil, 0, ambiguous(w)
		}
		g.value *= s.scale()
		w.groups = append(w.groups, g)
	}
	w.values = w.values[:0]
	for _, g := range w.groups {
		w.values = append(w.values, g.value)
	}
	value, ok := s.Across.of(w.values)
	if !ok {
		return nil, 0, ambiguous(w)
	}
	return w.groups, value, nil
}

// of applies the aggregate to at least one value. It returns false for Only with several values.
func (a Aggregate) of(values []float64) (float64, bool) {
	if len(values) == 1 {
		return values[0], true
	}
	switch a {
	case Max:
		return slices.Max(values), true
	case Min:
		return slices.Min(values), true
	case Sum, Average:
		var s exact.Sum
		for _, v := range values {
			s.Add(v)
		}
		if a == Average {
			return s.Value() / float64(len(values)), true
		}
		return s.Value(), true
	default:
		return 0, false
	}
}

func ambiguous(w *worker) *Error {
	const shown = 3
	sets := make([]string, 0, shown+1)
	for i, c := range w.list {
		if i == shown {
			sets = append(sets, "...")
			break
		}
		sets = append(sets, w.page.Key(c.series).String())
	}
	return failf(Ambiguous, "ambiguous: %d series: %s", len(w.list), strings.Join(sets, " "))
}
