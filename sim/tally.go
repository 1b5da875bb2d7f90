package sim

import (
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// The tallies: the histograms that a replica counts since it started, and the controller since the run began.
const (
	tallies      = int(TPOTs-PromptTokens) + 1
	firstTallied = PromptTokens
)

// A tally is a cumulative histogram.
type tally struct {
	bounds *buckets
	counts []float64
	sum    float64
}

func (t *tally) add(x float64) {
	t.counts[t.bounds.place(x)]++
	t.sum += x
}

// A meter has the tallies of a replica, and their values when the controller last read them.
type meter struct{ now, read [tallies]tally }

// tallied reports whether any metric of a scenario uses a tally.
func (s *Scenario) tallied() bool {
	return slices.ContainsFunc(s.Metrics, func(m Metric) bool { return m.Signal >= firstTallied })
}

func (e *engine) newTallies() (t [tallies]tally) {
	b := &e.bounds
	for s, bounds := range [tallies]*buckets{&b.tokens, &b.tokens, &b.none, &b.ttft, &b.tpot} {
		t[s].bounds, t[s].counts = bounds, make([]float64, len(bounds.ends)+1)
	}
	return t
}

// tokenBuckets are the buckets of vLLM's histograms of request lengths, up to a context of 131,072 tokens.
func tokenBuckets() buckets {
	var ends []float64
	for decade := 1.0; decade < 1e6; decade *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			if digit*decade <= 131_072 {
				ends = append(ends, digit*decade)
			}
		}
	}
	return newBuckets(ends...)
}

// add counts x in a replica's tally of a signal, if any metric uses it.
func (m *meter) add(s Signal, x float64) {
	if m != nil {
		m.now[s-firstTallied].add(x)
	}
}

// reset empties the tallies: the process restarted.
func (m *meter) reset() {
	if m == nil {
		return
	}
	for s := range m.now {
		clear(m.now[s].counts)
		m.now[s].sum = 0
	}
}

// tally adds what a replica has counted since it was last read. If any count is lower than before, the process restarted, and all
// of it is new.
func (o *observer) tally(m *meter) {
	if m == nil || o.tallies[0].counts == nil {
		return
	}
	for s := range m.now {
		now, read, total := &m.now[s], &m.read[s], &o.tallies[s]
		restarted := now.sum < read.sum
		for i, n := range now.counts {
			restarted = restarted || n < read.counts[i]
		}
		if restarted {
			clear(read.counts)
			read.sum = 0
		}
		for i, n := range now.counts {
			total.counts[i] += n - read.counts[i]
			read.counts[i] = n
		}
		total.sum += now.sum - read.sum
		read.sum = now.sum
	}
}

// tabulate makes the histograms of an observation, in the order of the metrics.
func (o *observer) tabulate(e *engine) {
	o.view.Histograms = o.view.Histograms[:0]
	if o.round == 0 {
		return
	}
	failed := int32(0)
	for _, r := range e.ready {
		if r.scraped != o.last {
			failed++
		}
	}
	for i := range o.metrics[o.readings:] {
		m := &o.metrics[o.readings+i]
		t := &o.tallies[m.Signal-firstTallied]
		o.view.Histograms = append(o.view.Histograms, scaling.Histogram{
			Metric: m.Name, Bounds: t.bounds.ends, Counts: t.counts, Sum: t.sum, Failed: failed, At: e.at(o.last),
		})
	}
}
