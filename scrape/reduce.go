package scrape

import (
	"fmt"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/inferscale/inferscale/internal/exact"
)

// A share is what one pod contributes to a metric: num over den, and the distribution behind a quantile.
type share struct {
	num, den float64 // den is 1 without Over; both 0 mean that nothing was observed
	dist     *distribution
	value    float64 // of the pod alone; undefined if nothing was observed
	series   int
	engines  int
	min, max float64 // over the engines
	at       time.Time
}

// idle reports that the pod answered and had nothing to report: 0/0.
func (s *share) idle() bool { return s.den == 0 }

// A moment is what the reduction of a page needs to know beside the page.
type moment struct {
	at        time.Time     // when the page was asked for
	staleness time.Duration // of a sample with a timestamp of its own
	start     float64       // process start, 0 if unknown
}

// reduce makes one share of a page. memory has one baseline for each series of the metric, which reduce advances; so
// every series is looked at even after one has failed. The failure is that of the first.
func (p *metricPlan) reduce(families map[string]*dto.MetricFamily, now moment, memory []baseline) (*share, *Error) {
	var (
		first        *Error
		terms, overs exact.Sum
		engines      engines
		out          = &share{at: now.at}
	)
	for i := range p.series {
		s := &p.series[i]
		r, fail := s.reduce(families, now, &memory[i])
		if fail != nil {
			if first == nil {
				first = fail
			}
			continue
		}
		out.series += r.series
		out.dist = r.dist
		if s.over {
			overs.Add(r.value)
		} else {
			terms.Add(r.value)
		}
		engines.add(r.groups, s.over)
	}
	if first != nil {
		return nil, first
	}
	out.num, out.den = terms.Value(), 1
	if d := out.dist; d != nil {
		return out.distributed(p)
	}
	if len(p.Over) > 0 {
		out.den = overs.Value()
	}
	if fail := out.divide(); fail != nil {
		return nil, fail
	}
	out.engines = len(engines.list)
	out.min, out.max = engines.extremes(len(p.Over) > 0)
	if fail := checkNumber(out.max); fail != nil {
		return nil, failf(fail.Reason, "an engine alone is %v", out.max)
	}
	return out, nil
}

// distributed finishes the share of a Mean or a Quantile.
func (s *share) distributed(p *metricPlan) (*share, *Error) {
	term := &p.Terms[0]
	s.engines = s.series
	if term.Read == Quantile {
		s.num, s.den = 0, s.dist.total()
		if !s.idle() {
			s.value = s.dist.at(term.Quantile*s.den) * term.scale()
			s.min, s.max = s.value, s.value
		}
		if fail := checkNumber(s.value); fail != nil {
			return nil, fail
		}
		return s, nil
	}
	s.num, s.den = s.dist.sum*term.scale(), s.dist.count
	s.dist = nil
	if fail := s.divide(); fail != nil {
		return nil, fail
	}
	s.min, s.max = s.value, s.value
	return s, nil
}

func (s *share) divide() *Error {
	if s.num == 0 && s.den == 0 {
		return nil
	}
	s.value = s.num / s.den
	if fail := checkNumber(s.value); fail != nil {
		return failf(fail.Reason, "%v/%v is %v", s.num, s.den, s.value)
	}
	return nil
}

// engines adds up terms and divisors by data-parallel group.
type engines struct {
	index map[string]int
	list  []engine
}

type engine struct {
	num, den float64
	divided  bool
}

func (e *engines) add(groups []group, over bool) {
	if e.index == nil {
		e.index = make(map[string]int, len(groups))
	}
	for _, g := range groups {
		i, ok := e.index[g.key]
		if !ok {
			i = len(e.list)
			e.index[g.key] = i
			e.list = append(e.list, engine{})
		}
		if over {
			e.list[i].den += g.value
			e.list[i].divided = true
		} else {
			e.list[i].num += g.value
		}
	}
}

// extremes returns the least and the greatest value of an engine. An engine that saw nothing has none.
func (e *engines) extremes(divided bool) (lo, hi float64) {
	n := 0
	for _, g := range e.list {
		v := g.num
		if divided {
			if g.den == 0 {
				continue
			}
			v /= g.den
		}
		if n++; n == 1 {
			lo, hi = v, v
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// reduced is one Series of a page.
type reduced struct {
	value  float64
	groups []group
	dist   *distribution
	series int
}

// A group is one data-parallel engine.
type group struct {
	key    string
	values []float64
	value  float64
}

func (s *seriesPlan) reduce(families map[string]*dto.MetricFamily, now moment, memory *baseline) (reduced, *Error) {
	family := s.find(families)
	if family == nil {
		memory.absent(now.at)
		return reduced{}, failf(NotFound, "no family %s", strings.Join(s.Families, " or "))
	}
	if fail := s.checkType(family); fail != nil {
		return reduced{}, fail
	}
	list, fail := s.choose(family)
	if fail != nil {
		return reduced{}, fail
	}
	if len(list) == 0 {
		memory.absent(now.at)
		return reduced{}, failf(NotFound, "no series of %s matches %v", family.GetName(), s.Match)
	}
	for _, c := range list {
		if ms := c.metric.TimestampMs; ms != nil {
			if age := now.at.Sub(time.UnixMilli(*ms)); age > now.staleness {
				return reduced{}, failf(Stale, "the page says that %s is %v old", family.GetName(), age)
			}
		}
	}
	out := reduced{series: len(list)}
	if s.Read == Value {
		out.groups, fail = s.group(list, func(c chosen) (float64, *Error) { return scalarOf(c.metric) })
	} else {
		out.dist, out.groups, fail = s.counted(families, family, list, now, memory)
	}
	if fail != nil {
		return reduced{}, &Error{Reason: fail.Reason, Err: fmt.Errorf("%s: %w", family.GetName(), fail.Err)}
	}
	if s.Read.distribution() {
		return out, nil
	}
	values := make([]float64, len(out.groups))
	for i := range out.groups {
		out.groups[i].value *= s.scale()
		values[i] = out.groups[i].value
	}
	var ok bool
	if out.value, ok = s.Across.of(values); !ok {
		return reduced{}, ambiguous(list)
	}
	return out, nil
}

// counted reads what needs two pages: rates and distributions.
func (s *seriesPlan) counted(families map[string]*dto.MetricFamily, family *dto.MetricFamily, list []chosen, now moment,
	memory *baseline,
) (*distribution, []group, *Error) {
	current := baseline{at: now.at, family: family.GetName(), start: now.start, series: make(map[string]counted, len(list))}
	created := s.createdTimes(families, family.GetName())
	for _, c := range list {
		is := counted{created: created[c.key]}
		var fail *Error
		if s.Read == Rate {
			is.value, fail = scalarOf(c.metric)
		} else {
			is.dist, fail = readDistribution(c.metric, s.Read)
		}
		if fail != nil {
			return nil, nil, fail
		}
		current.series[c.key] = is
	}
	last := *memory
	*memory = current
	seconds, fail := last.elapsed(&current, 2*now.staleness)
	if fail != nil {
		return nil, nil, fail
	}
	if s.Read == Rate {
		groups, fail := s.group(list, func(c chosen) (float64, *Error) { return last.increase(c.key, &current) / seconds, nil })
		return nil, groups, fail
	}
	observed := make([]*distribution, 0, len(list))
	for _, c := range list {
		d, fail := last.observed(c.key, &current)
		if fail != nil {
			return nil, nil, fail
		}
		observed = append(observed, d)
	}
	merged := merge(observed)
	if merged == nil {
		return nil, nil, failf(Buckets, "its series differ in the bounds of their buckets")
	}
	return merged, nil, nil
}

// createdTimes returns the creation times of a family's series by their labels.
func (s *seriesPlan) createdTimes(families map[string]*dto.MetricFamily, name string) map[string]float64 {
	metrics := families[createdFamily(name, s.Read)].GetMetric()
	times := make(map[string]float64, len(metrics))
	for _, m := range metrics {
		if v, fail := scalarOf(m); fail == nil {
			times[labelsKey(m)] = v
		}
	}
	return times
}
