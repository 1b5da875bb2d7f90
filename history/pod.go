package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/internal/enginemetrics"
)

// A part is a signal, or the sum, count or buckets of a histogram.
type part struct {
	signal Signal
	part   Part
}

// counts reports whether it is a counter, which decreases only when a process restarts.
func (p part) counts() bool {
	return p.part != Whole || enginemetrics.KindOf(string(p.signal)) == enginemetrics.Counter
}

// A replica is what a dump contains of a pod in one life.
type replica struct {
	life

	name      string
	engine    Engine
	series    map[part][]*Series
	first     int // first and last step with values
	last      int
	gone      int   // last step of the previous life, to which values that cover several steps may belong; far back if there is none
	until     int   // last step before the next life, or of the dump: up to it such values belong to this life
	bornAt    int   // the step at which its counters were zero; first if unknown
	known     bool  // whether bornAt is known
	distances []int // steps between two scrapes
	falls     []fall
	restarts  []int // steps before which its process restarted
	arrived   increase

	relabelled int
	doubled    bool
}

func (p *replica) keys(s Signal, of Part) []key { return keysOf(p.engine, p.series[part{s, of}]) }

// A fall is the decrease of a counter from its value at a step to that at a later one. Its process restarted in between.
type fall struct{ from, to int }

// An increase is the increase of a counter of a pod, by step from the pod's first on: NaN at steps without a value. span is
// the number of steps that each increase covers.
type increase struct {
	by   []float64
	span []uint16
	any  bool
}

// increase adds up the parts of a counter. A step counts if all parts that exist at it have a value.
func (p *replica) increase(s Signal, of Part) (increase, error) {
	keys := p.keys(s, of)
	n := p.last - p.first + 1
	if len(keys) == 0 {
		return increase{by: unknown(n), span: make([]uint16, n)}, nil
	}
	sum := increase{by: make([]float64, n), span: make([]uint16, n), any: true}
	counts, need := make([]uint16, n), make([]uint16, n)
	scale := 1.0
	found, _ := p.engine.source(s)
	if of != Count {
		scale = cmp.Or(found.Scale, 1)
	}
	for i := range keys {
		w := p.walk(&keys[i], 1)
		var away []fall
		w.delta = func(i, since int, by float64, reset bool) {
			sum.by[i-p.first] += by * scale
			counts[i-p.first]++
			if reset {
				away = append(away, fall{since, i})
			}
			if w.fell {
				p.falls = append(p.falls, fall{since, i})
			}
		}
		keys[i].counter(w)
		if err := p.tell(w, s, &keys[i]); err != nil {
			return increase{}, err
		}
		if w.first < 0 {
			continue
		}
		begin := w.first
		if w.bornAt >= w.first {
			begin++ // the first value has no increase
		}
		for i := begin; i <= w.last; i++ {
			need[i-p.first]++
		}
		for _, a := range away { // until it began again there was nothing to count
			for i := a.from + 1; i < a.to; i++ {
				need[i-p.first]--
			}
		}
	}
	p.restarts = restartsOf(p.falls)
	carried, from := 0.0, p.bornAt
	for i := range sum.by {
		if counts[i] == 0 || counts[i] < need[i] {
			carried += sum.by[i]
			sum.by[i] = math.NaN()
			continue
		}
		sum.by[i] += carried
		carried = 0
		sum.span[i] = uint16(min(max(1, p.first+i-from), math.MaxUint16))
		from = p.first + i
	}
	return sum, nil
}

// restartsOf returns the fewest steps at which restarts explain all falls: a counter that is not there at once after a restart falls
// later than others. It sorts the falls.
func restartsOf(falls []fall) (restarts []int) {
	slices.SortFunc(falls, func(a, b fall) int { return cmp.Compare(a.to, b.to) })
	last := -1
	for _, f := range falls {
		if f.from >= last {
			last = f.to
			restarts = append(restarts, last)
		}
	}
	return restarts
}

// walk returns the walk through a counter of the pod. A counter that begins after the pod was first seen began at zero: it
// had not counted anything before.
func (p *replica) walk(k *key, every int) *walk {
	first := math.MaxInt
	for v := range k.variants {
		first = min(first, k.variants[v].From)
	}
	from := p.first
	if every > 1 {
		from = max(from, p.gone+every)
	}
	if r := from % every; r != 0 {
		from += every - r
	}
	w := &walk{bornAt: first, from: from, upTo: min(p.until, p.last+every-1), every: every, restarted: p.restarted}
	switch {
	case first > from && first-every >= p.first:
		w.bornAt = first - every
	case p.known:
		w.bornAt = p.bornAt
	}
	return w
}

// tell counts the irregularities of a walk, and refuses series that are not duplicates of each other.
func (p *replica) tell(w *walk, s Signal, k *key) error {
	p.relabelled += w.relabelled
	p.doubled = p.doubled || w.doubled > 0
	found, _ := p.engine.source(s)
	if !found.Max && w.apart > 10 && w.apart*10 > w.doubled {
		return &RefusedError{s, fmt.Sprintf("pod %s has several series %s that count different things, and differ in labels of which is not known what they tell: keep one with a matcher, or, if they are of several pods, name the label that tells pods apart", p.name, k.variants[0].Family)}
	}
	return nil
}

// restarted reports whether the process restarted after a step and up to another one, as far as is known yet.
func (p *replica) restarted(after, upTo int) bool {
	i, _ := slices.BinarySearch(p.restarts, after+1)
	return i < len(p.restarts) && p.restarts[i] <= upTo
}

func (p *replica) gauge(s Signal) []float64 {
	return gauge(p.engine, p.keys(s, Whole), p.first, p.last)
}

// tally counts the irregularities of a pod.
func (p *replica) tally(to *Repairs) {
	to.Restarts += len(p.restarts)
	to.Relabelled += p.relabelled
	if p.doubled {
		to.Duplicated++
	}
}
