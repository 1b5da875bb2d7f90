package scalingtest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// A Histogram is a histogram that the policy reads: the counts between two ticks are drawn around Low and High.
type Histogram struct {
	Name string
	// Bounds are the upper ends of its buckets, ascending.
	Bounds []float64
	// Low and High are a low and a high count per period.
	Low  float64
	High float64
}

// A Counting is what a histogram counts between the previous tick and this one.
type Counting struct {
	Metric string
	Bounds []float64
	// Counts are the counts by bucket, one more than Bounds.
	Counts []float64
	// Failed is the number of replicas that did not answer: half of what was counted since then appears once all answer.
	Failed int32
	// Anew says that the counter has restarted.
	Anew bool
	// Broken says that the histogram is not readable at this tick. What was counted comes with the next.
	Broken bool
	// Age is the time between the counts and the tick. Zero means that the counts have no time.
	Age time.Duration
}

func (h *Histogram) validate(field string) error {
	var e scaling.FieldErrors
	e.Check(h.Name != "", field+"name", h.Name, "must not be empty")
	e.Check(h.Low >= 0 && h.Low <= h.High && !math.IsInf(h.High, 0), field+"low", h.Low, fmt.Sprintf("must be in [0, high %v]", h.High))
	known := scaling.Histogram{Bounds: h.Bounds, Counts: make([]float64, len(h.Bounds)+1)}
	e.Check(known.Known(), field+"bounds", fmt.Sprint(h.Bounds), "must rise, and be numbers")
	return e.Err()
}

// counted draws the counts of each histogram up to a tick.
func (d *drawer) counted() (all []Counting) {
	for i := range d.o.Histograms {
		h := &d.o.Histograms[i]
		if (d.life.odd || d.life.noData) && d.oneIn(16, "not counted") || d.life.noData && d.oneIn(2, "nothing counted") {
			continue
		}
		all = append(all, d.counting(h))
		if d.life.twice && d.oneIn(40, "counted twice") {
			all = append(all, d.counting(h))
		}
	}
	return all
}

func (d *drawer) counting(h *Histogram) Counting {
	c := Counting{Metric: h.Name, Bounds: h.Bounds, Counts: make([]float64, len(h.Bounds)+1)}
	many := h.High + float64(rapid.SampledFrom([]int{0, 1, 4, 12}).Draw(d.T, "more"))*max(1, h.High-h.Low)
	n := map[int]float64{moodHigh: many, moodLow: h.Low}[d.mood]
	if d.mood == moodBetween {
		n = math.Round(h.Low + rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(d.T, "share")*(h.High-h.Low))
	}
	if d.oneIn(8, "another count") {
		n = float64(rapid.IntRange(0, 4).Draw(d.T, "count")) * h.High
	}
	first, second := rapid.IntRange(0, len(h.Bounds)).Draw(d.T, "bucket"), rapid.IntRange(0, len(h.Bounds)).Draw(d.T, "other bucket")
	c.Counts[first] += math.Floor(n / 2)
	c.Counts[second] += n - math.Floor(n/2)
	if d.oneIn(10, "silent") {
		c.Failed = rapid.Int32Range(1, 3).Draw(d.T, "failed")
	}
	if d.oneIn(6, "counted earlier") {
		c.Age = time.Duration(rapid.IntRange(0, 20).Draw(d.T, "age")) * d.o.Period / 4
	}
	c.Anew = d.life.odd && d.oneIn(24, "anew")
	c.Broken = d.life.noData || d.life.odd && d.oneIn(24, "broken")
	if d.life.wild && d.oneIn(6, "wild histogram") {
		for i := range c.Counts {
			c.Counts[i] = drawFloat(d.T, "any count")
		}
		c.Failed = rapid.Int32().Draw(d.T, "any failed")
		if d.oneIn(2, "other bounds") {
			c.Bounds = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return drawFloat(t, "any bound") }), 0, 4).Draw(d.T, "bounds")
		}
	}
	return c
}

// A count is the running total of a histogram.
type count struct {
	counts []float64
	sum    float64
	silent []float64 // what replicas without an answer have counted, which is not in counts yet
}

// counting adds the counts up to a tick, and sets the histograms that the policy observes.
func (p *player) counting(tick *Tick, at int) {
	p.histograms = p.histograms[:0]
	gone := func(metric string) bool {
		return slices.ContainsFunc(p.episode.Changes, func(c Change) bool { return c.Tick == at && c.Gone && c.Metric == metric })
	}
	for i := range tick.Counted {
		c := &tick.Counted[i]
		again := slices.ContainsFunc(tick.Counted[:i], func(other Counting) bool { return other.Metric == c.Metric })
		if p.counts == nil {
			p.counts = make(map[string]*count)
		}
		n := p.counts[c.Metric]
		if n == nil || c.Anew || again || len(n.counts) != len(c.Counts) {
			n = &count{counts: make([]float64, len(c.Counts)), silent: make([]float64, len(c.Counts))}
		}
		n.add(c)
		if !again {
			p.counts[c.Metric] = n
		}
		if gone(c.Metric) {
			continue
		}
		h := scaling.Histogram{Metric: c.Metric, Bounds: c.Bounds, Counts: slices.Clone(n.counts), Sum: n.sum, Failed: c.Failed}
		if c.Broken {
			h.Counts[0] = math.NaN()
		}
		if c.Age != 0 {
			h.At = p.now.Add(-c.Age)
		}
		p.histograms = append(p.histograms, h)
	}
}

func (n *count) add(c *Counting) {
	for i, x := range c.Counts {
		seen := x
		if c.Failed != 0 {
			seen = math.Floor(x / 2)
			n.silent[i] += x - seen
		} else {
			seen += n.silent[i]
			n.silent[i] = 0
		}
		n.counts[i] += seen
		n.sum += seen * typical(c.Bounds, i)
	}
}

// typical returns a value of a bucket.
func typical(bounds []float64, bucket int) float64 {
	switch {
	case len(bounds) == 0:
		return 1
	case bucket >= len(bounds):
		return 2 * bounds[len(bounds)-1]
	case bucket == 0:
		return bounds[0] / 2
	}
	return (bounds[bucket-1] + bounds[bucket]) / 2
}

// copied returns histograms that share no memory with the originals.
func copied(histograms []scaling.Histogram) (all []scaling.Histogram) {
	for _, h := range histograms {
		h.Bounds, h.Counts = slices.Clone(h.Bounds), slices.Clone(h.Counts)
		all = append(all, h)
	}
	return all
}

func sameHistogram(a, b scaling.Histogram) bool {
	return a.Metric == b.Metric && slices.EqualFunc(a.Bounds, b.Bounds, sameBits) && slices.EqualFunc(a.Counts, b.Counts, sameBits) &&
		sameBits(a.Sum, b.Sum) && a.Failed == b.Failed && a.At.Equal(b.At)
}

func sameCounting(a, b Counting) bool {
	same := slices.EqualFunc(a.Bounds, b.Bounds, sameBits) && slices.EqualFunc(a.Counts, b.Counts, sameBits)
	return same && a.Metric == b.Metric && a.Failed == b.Failed && a.Anew == b.Anew && a.Broken == b.Broken && a.Age == b.Age
}

// histogramText prints the number of observations, and of replicas without an answer.
func histogramText(h *scaling.Histogram) string {
	text := h.Metric + "=" + number(h.Total())
	if h.Failed != 0 {
		text += " without " + strconv.Itoa(int(h.Failed))
	}
	return text
}
