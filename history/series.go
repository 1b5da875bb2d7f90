package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A key is one number of a pod under all its names and labels, the newest name first.
type key struct {
	labels   map[string]string
	variants []variant
}

// A variant is one of the series of a key.
type variant struct {
	*Series

	family int
}

// at returns the value of a step, NaN if there is none.
func (s *Series) at(i int) float64 {
	i -= s.From
	every := s.every()
	if i < 0 || i >= len(s.Values)*every || i%every != 0 {
		return math.NaN()
	}
	return s.Values[i/every]
}

// span returns the first and the last step with a value within a range, or -1 if there is none.
func (s *Series) span(from, upTo int) (first, last int) {
	every := s.every()
	if from, upTo = from-s.From, upTo-s.From; upTo < 0 || from >= len(s.Values)*every {
		return -1, -1
	}
	i, k := max(0, (from+every-1)/every), min(len(s.Values)-1, upTo/every)
	for i <= k && !known(s.Values[i]) {
		i++
	}
	if i > k {
		return -1, -1
	}
	for !known(s.Values[k]) {
		k--
	}
	return s.From + i*every, s.From + k*every
}

// scraped reports whether a series has a value for each scrape: values of others cover more time.
func (s *Series) scraped() bool { return s.Signal != CacheBlocks && s.every() == 1 }

func known(x float64) bool { return !math.IsNaN(x) }

// keysOf groups the series of one signal and part of a pod by number.
func keysOf(e Engine, series []*Series) []key {
	if len(series) == 0 {
		return nil
	}
	found, _ := e.source(series[0].Signal)
	by := map[string]*key{}
	for _, s := range series {
		name := nameOf(s.Labels, "")
		k := by[name]
		if k == nil {
			k = &key{labels: s.Labels}
			by[name] = k
		}
		k.variants = append(k.variants, variant{s, slices.Index(found.Families, strings.TrimSuffix(s.Family, s.Part.suffix()))})
	}
	var keys []key
	for _, name := range slices.Sorted(maps.Keys(by)) {
		k := by[name]
		if found.Prefer != "" && k.labels[found.Prefer] != "" && by[nameOf(k.labels, found.Prefer)] != nil {
			continue // included in the total
		}
		slices.SortStableFunc(k.variants, func(a, b variant) int { return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.From, b.From)) })
		keys = append(keys, *k)
	}
	return keys
}

// nameOf makes one text of labels, without one of them. Bounds are numbers: Prometheus 3 writes 5.0 where 2 wrote 5.
func nameOf(labels map[string]string, without string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == without {
			continue
		}
		value := labels[name]
		if end, ok := boundOf(value); ok && name == "le" {
			value = strconv.FormatFloat(end, 'g', -1, 64)
		}
		fmt.Fprintf(&b, "%s=%q,", name, value)
	}
	return b.String()
}

// A walk iterates over the values of a counter.
type walk struct {
	first              int // step of the first value, -1 if there is none
	last               int // of the last value
	relabelled         int // times that it continued in another series
	doubled            int // steps with a value in two series of one name
	apart              int // of these, those at which one cannot be the other scraped earlier or later
	delta              func(i int, since int, by float64, reset bool)
	restarted          func(after, upTo int) bool // whether the process restarted in between, as far as is known
	fell               bool                       // whether the counter decreased to the value of the present delta
	every              int
	bornAt, from, upTo int
}

// counter calls w.delta for each step with a value, with the increase since the previous value and the step of that. For the
// first value, the counter was zero at w.bornAt, if that is known to be before it; if not, there is no delta. A counter that
// decreases restarted from zero, and so did one that does not while others of its pod do, unless it would have to have counted ten
// times as fast since as it ever did: then another counter began anew alone.
func (k *key) counter(w *walk) {
	w.first, w.last = -1, -1
	// own is the last value of the series itself, and level the highest value counted of all series: a duplicate that
	// another server scraped lags behind, and counts again once it exceeds the level.
	current, own, level := -1, 0.0, 0.0
	rate, seen := 0.0, 0 // the largest increase of a step, of so many values
	for i := w.from; i <= w.upTo; i += w.every {
		at, x := k.pick(current, i)
		if at < 0 {
			continue
		}
		w.compare(k, at, i, x)
		if w.first < 0 {
			if w.first = i; w.bornAt < i {
				w.delta(i, w.bornAt, x, false)
			}
			current, own, level, w.last = at, x, x, i
			continue
		}
		if at != current {
			w.relabelled++
			if twin := k.variants[at].at(w.last); known(twin) {
				own = twin
			}
		}
		steps := float64(i - w.last)
		w.fell = x < own
		reset := w.fell || w.restarted(w.last, i) && !(seen >= leastDistances && x > leastOlder && x > 10*steps*rate)
		if reset {
			level = 0
		} else {
			rate, seen = max(rate, (x-level)/steps), seen+1
		}
		w.delta(i, w.last, max(0, x-level), reset)
		current, own, level, w.last = at, x, max(level, x), i
	}
}

// pick returns the series to continue with at a step, -1 if none has a value: the current one, else the first one with a
// value.
func (k *key) pick(current, i int) (int, float64) {
	if current >= 0 {
		if x := k.variants[current].at(i); known(x) {
			return current, x
		}
	}
	for v := range k.variants {
		if x := k.variants[v].at(i); known(x) {
			return v, x
		}
	}
	return -1, 0
}

// compare looks for other series of the same name with a value at a step.
func (w *walk) compare(k *key, at, i int, x float64) {
	if len(k.variants) == 1 {
		return
	}
	for v := range k.variants {
		if v == at || k.variants[v].family != k.variants[at].family {
			continue
		}
		other := k.variants[v].at(i)
		if !known(other) {
			continue
		}
		w.doubled++
		low, high := k.variants[at].at(i-w.every), k.variants[at].at(i+w.every)
		if known(low) && known(high) && low <= high && (other < low-1 || other > high+1) && math.Abs(other-x) > 0.01*x {
			w.apart++
		}
	}
}

// gauge returns the values of a gauge: the sum, or the mean, over the parts of the pod. The value of a part is that of the
// first series with a value, or the highest one. If a part that existed before and after a step has no value at it, neither
// has the gauge.
func gauge(e Engine, keys []key, from, upTo int) []float64 {
	if len(keys) == 0 {
		return unknown(upTo - from + 1)
	}
	values := make([]float64, upTo-from+1)
	counts := make([]uint16, len(values))
	s := keys[0].variants[0].Series
	found, _ := e.source(s.Signal)
	need := make([]uint16, len(values)+1)
	for n := range keys {
		k := &keys[n]
		first, last, current := -1, -1, -1
		for i := from; i <= upTo; i++ {
			at, x := k.pick(current, i)
			if at < 0 {
				continue
			}
			current = at
			if found.Max {
				for v := range k.variants {
					if other := k.variants[v].at(i); other > x {
						x = other
					}
				}
			}
			if x < 0 {
				continue // -1 means that there is no value
			}
			if first < 0 {
				first = i
			}
			last = i
			values[i-from] += x
			counts[i-from]++
		}
		if first >= 0 {
			for i := first; i <= last; i++ {
				need[i-from]++
			}
		}
	}
	scale := cmp.Or(found.Scale, 1)
	for i := range values {
		switch {
		case counts[i] == 0 || counts[i] < need[i]:
			values[i] = math.NaN()
		case found.Mean:
			values[i] *= scale / float64(counts[i])
		default:
			values[i] *= scale
		}
	}
	return values
}
