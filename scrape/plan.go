package scrape

import "slices"

// A plan is a configuration turned around: what to read of each page, instead of where to read each metric.
type plan struct {
	metrics []metricPlan
	// pages has one entry for each endpoint that differs, in the order of the metrics, so that a pod is asked once for
	// all that it serves there.
	pages []pagePlan
	// static is the one page of a pod whose URL has a path of its own: all metrics are read from it.
	static pagePlan
}

type metricPlan struct {
	Metric
	series []seriesPlan // the terms, then what they are divided by
}

type seriesPlan struct {
	Series
	over bool
}

type pagePlan struct {
	endpoint Endpoint
	metrics  []int // indices into plan.metrics
}

func newPlan(metrics []Metric) *plan {
	p := &plan{metrics: make([]metricPlan, len(metrics))}
	for i, m := range metrics {
		m.Endpoint = m.Endpoint.orDefault()
		mp := &p.metrics[i]
		mp.Metric = m
		for _, s := range m.Terms {
			mp.series = append(mp.series, seriesPlan{Series: s})
		}
		for _, s := range m.Over {
			mp.series = append(mp.series, seriesPlan{Series: s, over: true})
		}
		at := slices.IndexFunc(p.pages, func(q pagePlan) bool { return q.endpoint == m.Endpoint })
		if at < 0 {
			at = len(p.pages)
			p.pages = append(p.pages, pagePlan{endpoint: m.Endpoint})
		}
		p.pages[at].metrics = append(p.pages[at].metrics, i)
		p.static.metrics = append(p.static.metrics, i)
	}
	p.static.endpoint = p.pages[0].endpoint
	return p
}

// names returns the families that a page is filtered for.
func (p *plan) names(metrics []int) []string {
	var names []string
	for _, i := range metrics {
		for _, s := range p.metrics[i].series {
			names = append(names, s.Families...)
			if s.Read == Value {
				continue
			}
			for _, f := range s.Families {
				names = append(names, createdFamily(f, s.Read))
			}
			names = append(names, startFamily)
		}
	}
	return names
}

// A pageFilter has the filters of one page: one for all its metrics, and one for each alone, which tells the metrics
// that a damaged line concerns from those that it does not.
type pageFilter struct {
	all    *filter
	single []*filter // as pagePlan.metrics
}

func (p *plan) filter(q *pagePlan) *pageFilter {
	f := &pageFilter{all: newFilter(p.names(q.metrics))}
	for _, i := range q.metrics {
		f.single = append(f.single, newFilter(p.names([]int{i})))
	}
	return f
}

// read reduces a page to the shares of its metrics, in the order of q.metrics. memory has the baselines of every
// metric of the plan.
func (p *plan) read(r *pageReader, f *pageFilter, q *pagePlan, page []byte, now moment, memory [][]baseline,
	done func(metric int, s *share, failure *Error),
) {
	families, broken := r.read(f.all, page)
	now.start = startTime(families)
	for k, i := range q.metrics {
		if broken == nil {
			s, fail := p.metrics[i].reduce(families, now, memory[i])
			done(i, s, fail)
			continue
		}
		alone, fail := r.read(f.single[k], page)
		if fail != nil {
			done(i, nil, fail)
			continue
		}
		now.start = startTime(alone)
		s, fail := p.metrics[i].reduce(alone, now, memory[i])
		done(i, s, fail)
	}
}
