package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// spans computes the distributions. The counts are from buckets, which are queried less often than the rest; the sums are
// those of the pods over the same time.
func (r *reducer) spans() error {
	f := r.fleet
	every, length := bucketSteps(f.Step), spanSteps(f.Step)
	for from := 0; from < r.steps-1; from += length {
		f.Spans = append(f.Spans, Span{From: from, To: min(from+length, r.steps-1)})
	}
	for from := 0; from < r.steps-1; from += every {
		f.sizes = append(f.sizes, LengthsOf{From: from})
	}
	for _, p := range r.pods {
		for _, s := range []Signal{PromptTokens, GenerationTokens, TTFT, TPOTs} {
			if err := r.distribution(p, s, length); err != nil {
				return err
			}
		}
	}
	for _, p := range r.routers {
		for _, s := range []Signal{PromptTokens, GenerationTokens} {
			if !r.has[s] {
				if err := r.distribution(p, s, length); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// mixture returns the distribution of a signal in a span.
func (s *Span) mixture(of Signal) *Mixture {
	switch of {
	case PromptTokens:
		return &s.Prompts
	case GenerationTokens:
		return &s.Answers
	case TTFT:
		return &s.TTFT
	default:
		return &s.TPOT
	}
}

// distribution adds the counts of a pod in the buckets of a signal.
func (r *reducer) distribution(p *replica, s Signal, length int) error {
	engines := map[string][]*Series{}
	for _, series := range p.series[part{s, Bucket}] {
		name := nameOf(series.Labels, "le")
		engines[name] = append(engines[name], series)
	}
	if len(engines) == 0 {
		return nil
	}
	sum, err := p.increase(s, Sum)
	if err != nil {
		return err
	}
	count, err := p.increase(s, Count)
	if err != nil {
		return err
	}
	found, _ := p.engine.source(s)
	for _, series := range engines {
		h := buckets{scale: cmp.Or(found.Scale, 1)}
		keys := keysOf(p.engine, newest(series, found.Families))
		if len(keys) > mostBounds {
			return &RefusedError{s, fmt.Sprintf("pod %s has %d buckets: must be at most %d", p.name, len(keys), mostBounds)}
		}
		for _, k := range keys {
			if err := h.read(p, s, &k); err != nil {
				return err
			}
		}
		others := 0
		changes := h.each(func(i, since int, c Counted) {
			span := &r.fleet.Spans[min((i-1)/length, len(r.fleet.Spans)-1)]
			total, tokens := 0.0, 0.0
			for k := max(since, p.first-1); k < i && k < p.last; k++ {
				if n, t := count.by[k+1-p.first], sum.by[k+1-p.first]; known(n) && known(t) {
					total += n
					tokens += t
				}
			}
			if total > 0 {
				c.Sum = tokens / total * c.Total()
			}
			switch of := &r.fleet.sizes[min((i-1)/bucketSteps(r.fleet.Step), len(r.fleet.sizes)-1)]; s {
			case PromptTokens:
				r.mixer.add(&of.Prompts, c)
			case GenerationTokens:
				r.mixer.add(&of.Answers, c)
			default:
			}
			if into := span.mixture(s); r.mixer.add(into, c) && len(*into) > 1 {
				others++
			}
		})
		r.fleet.Repairs.Rebucketed += max(changes, others)
	}
	return nil
}

// newest returns the series without the values of steps at which a newer name of the metric has values: a server may have both
// names, with other buckets, and the buckets of the two must not become one histogram.
func newest(series []*Series, families []string) []*Series {
	var all []*Series
	newer := map[int]bool{}
	for _, family := range families {
		steps := map[int]bool{}
		for _, s := range series {
			if s.Family != family+s.Part.suffix() {
				continue
			}
			one := *s
			if len(newer) > 0 {
				one.Values = slices.Clone(s.Values)
			}
			for k, x := range s.Values {
				switch step := s.From + k*s.every(); {
				case !known(x):
				case newer[step]:
					one.Values[k] = math.NaN()
				default:
					steps[step] = true
				}
			}
			all = append(all, &one)
		}
		if len(all) == len(series) {
			break
		}
		maps.Copy(newer, steps)
	}
	return all
}

// mostBounds is the highest number of buckets of one engine, over all its versions.
const mostBounds = 1024

// buckets are the buckets of one engine of a pod.
type buckets struct {
	scale  float64
	ends   []float64        // upper ends of the buckets, ascending
	deltas []map[int]change // by bucket, by step
}

// A change is the increase of a cumulative bucket since a step.
type change struct {
	since int
	by    float64
}

// read reads one bucket.
func (b *buckets) read(p *replica, s Signal, k *key) error {
	end, _ := strconv.ParseFloat(k.labels["le"], 64) // Validate has checked it; it parses +Inf too
	deltas := map[int]change{}
	w := p.walk(k, k.variants[0].every())
	w.delta = func(i, since int, by float64, _ bool) { deltas[i] = change{since, by} }
	k.counter(w)
	if err := p.tell(w, s, k); err != nil {
		return err
	}
	at, _ := slices.BinarySearch(b.ends, end*b.scale)
	b.ends = slices.Insert(b.ends, at, end*b.scale)
	b.deltas = slices.Insert(b.deltas, at, deltas)
	return nil
}

// each calls f with the histogram of each step that has one, and returns the number of changes of the bounds.
func (b *buckets) each(f func(i, since int, c Counted)) (changes int) {
	n := len(b.ends)
	if n == 0 || !math.IsInf(b.ends[n-1], 1) {
		return 0 // without the bucket for all values
	}
	var before []float64
	for _, i := range slices.Sorted(maps.Keys(b.deltas[n-1])) {
		var c Counted
		below, since := 0.0, 0
		for k, end := range b.ends {
			d, ok := b.deltas[k][i]
			if !ok {
				continue
			}
			c.Counts = append(c.Counts, max(0, d.by-below))
			below, since = max(below, d.by), d.since
			if k < n-1 {
				c.Bounds = append(c.Bounds, end)
			}
		}
		if len(c.Bounds) == 0 {
			continue
		}
		if before != nil && !slices.Equal(before, c.Bounds) {
			changes++
		}
		before = c.Bounds
		f(i, since, c)
	}
	return changes
}
