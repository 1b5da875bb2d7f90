package scrape

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/exact"
)

// A share is the contribution of one pod to a metric: num over den, and the distribution behind a quantile.
type share struct {
	num, den float64 // den is 1 without Over; both 0 mean that nothing was observed
	dist     *distribution
	value    float64 // of the pod alone; undefined if nothing was observed
	series   int
	engines  int
	min, max float64 // over the engines
	at       time.Time
}

// idle reports that the pod answered but observed nothing: 0/0.
func (s *share) idle() bool { return s.den == 0 }

// A moment is what the reduction of a page needs beside the page.
type moment struct {
	at        time.Time     // when the page was requested
	staleness time.Duration // limit for a sample with its own timestamp
	start     float64       // process start, 0 if unknown
}

// reduce makes the share of a page. It reads every series even after one has failed, so that its baseline advances. The
// returned failure is the first one.
func (p *metricPlan) reduce(w *worker, now moment, m *memory, metric int) (*share, *Error) {
	if fail := p.damage(w); fail != nil {
		return nil, fail
	}
	var (
		first        *Error
		terms, overs exact.Sum
		engines      engines
		out          = &share{at: now.at}
	)
	for i := range p.series {
		s := &p.series[i]
		var last *baseline
		if len(m.baselines[metric]) > 0 {
			last = &m.baselines[metric][i]
		}
		r, fail := s.reduce(w, now, m, last)
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
		engines.add(w, s, r.groups, len(p.series) > 1)
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

// damage reports malformed lines of the families, whichever of them is read.
func (p *metricPlan) damage(w *worker) *Error {
	for i := range p.series {
		s := &p.series[i]
		for _, list := range [...][]int{s.families, s.created} {
			for _, f := range list {
				if err := w.page.Err(f); err != nil {
					return &Error{Reason: Parse, Err: err}
				}
			}
		}
		if err := w.page.Err(0); err != nil && s.Read != Value {
			return &Error{Reason: Parse, Err: err}
		}
	}
	return nil
}

// distributed completes the share of a Mean or a Quantile.
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
	for _, v := range [...]float64{s.value, s.den} { // an infinite weight would be that of the fleet
		if fail := checkNumber(v); fail != nil {
			return failf(fail.Reason, "%v/%v is %v", s.num, s.den, s.value)
		}
	}
	return nil
}

// engines adds up terms and divisors by data-parallel group.
type engines struct {
	index map[string]int // of a metric of several series
	list  []engine
}

type engine struct {
	num, den float64
}

func (e *engines) add(w *worker, s *seriesPlan, groups []group, several bool) {
	if several && e.index == nil {
		e.index = make(map[string]int, len(groups))
	}
	e.list = slices.Grow(e.list, len(groups))
	for _, g := range groups {
		i, ok := len(e.list), false
		if several {
			if i, ok = e.index[string(s.groupKey(w, g.of))]; !ok {
				i = len(e.list)
				e.index[string(w.key)] = i
			}
		}
		if !ok {
			e.list = append(e.list, engine{})
		}
		if s.over {
			e.list[i].den += g.value
		} else {
			e.list[i].num += g.value
		}
	}
}

// extremes returns the lowest and the highest value of an engine. An engine without observations has none.
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
	groups []group // valid until the next reduction
	dist   *distribution
	series int
}

func (s *seriesPlan) reduce(w *worker, now moment, m *memory, last *baseline) (reduced, *Error) {
	k, fail := s.find(w, now)
	if fail != nil {
		if fail.Reason == NotFound && s.Read != Value {
			last.absent(now.at)
		}
		return reduced{}, fail
	}
	list := w.list
	out := reduced{series: len(list)}
	if s.Read == Value {
		for i := range list {
			if fail = list[i].read(); fail != nil {
				break
			}
		}
	} else {
		out.dist, fail = s.counted(w, k, now, m, last)
	}
	if fail == nil && !s.Read.distribution() {
		out.groups, out.value, fail = s.group(w)
	}
	if fail != nil {
		return reduced{}, &Error{Reason: fail.Reason, Err: fmt.Errorf("%s: %w", s.Families[k], fail.Err)}
	}
	return out, nil
}

// find lists in w the series to read, and returns the index of their family in Families.
func (s *seriesPlan) find(w *worker, now moment) (k int, fail *Error) {
	k = slices.IndexFunc(s.families, func(f int) bool { return w.page.First(f) != nil })
	if k < 0 {
		return k, failf(NotFound, "no family %s", strings.Join(s.Families, " or "))
	}
	name, family := s.Families[k], s.families[k]
	if fail := s.checkType(name, w.page.Type(family)); fail != nil {
		return k, fail
	}
	if fail := s.choose(w, family); fail != nil {
		return k, fail
	}
	if len(w.list) == 0 {
		return k, failf(NotFound, "no series of %s matches %v", name, s.Match)
	}
	for _, c := range w.list {
		if age := now.at.Sub(time.UnixMilli(c.series.At)); c.series.Timed && age > now.staleness {
			return k, failf(Stale, "the page says that %s is %v old", name, age)
		}
	}
	return k, nil
}
