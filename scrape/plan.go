package scrape

import (
	"slices"

	"github.com/inferscale/inferscale/scrape/internal/page"
)

// A plan is a configuration in another order: which metrics to read from each page, not which page each metric is on.
type plan struct {
	metrics []metricPlan
	// pages has one entry for each distinct endpoint, in the order of the metrics, so that each page of a pod is read once.
	pages []pagePlan
	// static is the single page of a pod whose URL has its own path: all metrics are read from it.
	static pagePlan
	// filter has the families of all pages; the first is startFamily.
	filter *page.Filter
	// counts is 0, or the number of metrics if there are some that are read as Counts.
	counts int
	// bytes is the approximate memory of what is remembered of a pod, beside the contents of its baselines and distributions.
	bytes int64
}

type metricPlan struct {
	Metric
	series []seriesPlan // the terms, then the divisors, or the sum and the less
}

type seriesPlan struct {
	Series
	over, sum, less   bool
	families, created []int // indices of Families in the filter; created only unless Read is Value
}

type pagePlan struct {
	endpoint Endpoint
	metrics  []int // indices into plan.metrics
}

func newPlan(metrics []Metric) *plan {
	p := &plan{metrics: make([]metricPlan, len(metrics))}
	for i, m := range metrics {
		m.Endpoint = m.Endpoint.orDefault()
		m.Terms, m.Over, m.Sum, m.Less = cloned(m.Terms), cloned(m.Over), cloned(m.Sum), cloned(m.Less)
		mp := &p.metrics[i]
		mp.Metric = m
		for _, s := range m.Terms {
			mp.series = append(mp.series, seriesPlan{Series: s})
		}
		for _, s := range m.Over {
			mp.series = append(mp.series, seriesPlan{Series: s, over: true})
		}
		for _, s := range m.Sum {
			mp.series = append(mp.series, seriesPlan{Series: s, sum: true})
		}
		for _, s := range m.Less {
			mp.series = append(mp.series, seriesPlan{Series: s, less: true})
		}
		at := slices.IndexFunc(p.pages, func(q pagePlan) bool { return q.endpoint == m.Endpoint })
		if at < 0 {
			at = len(p.pages)
			p.pages = append(p.pages, pagePlan{endpoint: m.Endpoint})
		}
		p.pages[at].metrics = append(p.pages[at].metrics, i)
		p.static.metrics = append(p.static.metrics, i)
	}
	p.resolve()
	// Bytes: of the memory and its place in the map; of a share, its pointer and the slice of baselines; of a baseline; of a tally.
	const each, perMetric, perBaseline, perTally = 256, 128, 208, 72
	if n := len(metrics); n > 0 && metrics[n-1].counts() {
		p.counts = n
	}
	p.bytes = int64(each + perMetric*len(metrics) + perTally*p.counts)
	for i := range p.metrics {
		p.bytes += int64(perBaseline * p.metrics[i].baselines())
	}
	return p
}

// cloned returns a copy that shares nothing with the caller's configuration, who may go on to change that.
func cloned(all []Series) []Series {
	all = slices.Clone(all)
	for i := range all {
		s := &all[i]
		s.Families, s.Match, s.GroupBy = slices.Clone(s.Families), slices.Clone(s.Match), slices.Clone(s.GroupBy)
	}
	return all
}

// baselines returns how many baselines there are of the metric: of each series, or none if all are read as Value.
func (p *metricPlan) baselines() int {
	if slices.ContainsFunc(p.series, func(s seriesPlan) bool { return s.Read != Value }) {
		return len(p.series)
	}
	return 0
}

// resolve makes the filter of all pages, and looks up the families' indices in it.
func (p *plan) resolve() {
	names := []string{startFamily}
	for _, m := range p.metrics {
		for _, s := range m.series {
			names = append(names, s.Families...)
			if s.Read == Value {
				continue
			}
			for _, f := range s.Families {
				names = append(names, createdFamily(f, s.Read))
			}
		}
	}
	p.filter = page.NewFilter(names)
	for _, m := range p.metrics {
		for i := range m.series {
			s := &m.series[i]
			for _, f := range s.Families {
				s.families = append(s.families, p.filter.Index(f))
				if s.Read != Value {
					s.created = append(s.created, p.filter.Index(createdFamily(f, s.Read)))
				}
			}
		}
	}
}

// read reduces a worker's page to the shares of its metrics, in the order of q.metrics. memory is that of the pod.
func (p *plan) read(w *worker, q *pagePlan, now moment, m *memory, done func(metric int, s *share, failure *Error)) {
	now.start = w.startTime()
	for _, i := range q.metrics {
		reduce := p.metrics[i].reduce
		if p.metrics[i].counts() {
			reduce = p.metrics[i].tally
		}
		s, fail := reduce(w, now, m, i)
		done(i, s, fail)
	}
}
