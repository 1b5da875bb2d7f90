package scalingtest

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// drawWidened draws an episode, and a second version of its readings of which less is known: for a while the interval of a
// metric reaches further down, further up or both, some of its pods do not answer, or its reading is missing.
func drawWidened(t *rapid.T, o *Options) Episode {
	e := drawEpisode(t, o, anything())
	n := e.count()
	if len(o.Metrics) == 0 || n == 0 {
		return e
	}
	oldest := 0
	if o.Learns {
		oldest = n - 1
	}
	for range rapid.IntRange(1, 3).Draw(t, "widened") {
		if len(o.Histograms) > 0 && rapid.IntRange(0, 2).Draw(t, "counted") == 0 {
			gone := Change{Metric: rapid.SampledFrom(o.Histograms).Draw(t, "histogram").Name, Gone: true}
			gone.Tick = rapid.IntRange(oldest, n-1).Draw(t, "from tick")
			for range min(n-gone.Tick, rapid.IntRange(1, n).Draw(t, "ticks")) {
				e.Changes = append(e.Changes, gone)
				gone.Tick++
			}
			continue
		}
		m := rapid.SampledFrom(o.Metrics).Draw(t, "metric")
		unit := max(m.High-m.Low, m.High, 1) / 4
		by := func(label string) float64 {
			return rapid.SampledFrom([]float64{unit, unit / 8, 4 * unit, 12 * unit, math.Inf(1)}).Draw(t, label)
		}
		c := Change{Metric: m.Name}
		kinds := 4
		if len(o.Histograms) > 0 {
			kinds = 3 // no pod without an answer: rates then begin before it, and more or less may have come in that time
		}
		switch rapid.IntRange(0, kinds).Draw(t, "what is not known") {
		case 0:
			c.Gone = true
			c.Silent, c.Booting = rapid.Int32Range(0, 3).Draw(t, "all silent"), rapid.Int32Range(0, 3).Draw(t, "all booting")
		case 1:
			c.Upper = by("up by")
		case 2:
			c.Lower = -by("down by")
		case 3:
			c.Lower, c.Upper = -by("down by"), by("up by")
		case 4:
			e.silence(&c, t, by)
		}
		if len(o.Targets) > 0 {
			c.Pods = rapid.Int32Range(0, 4).Draw(t, "pods")
		}
		c.Tick = rapid.IntRange(oldest, n-1).Draw(t, "from tick")
		for range min(n-c.Tick, rapid.IntRange(1, n).Draw(t, "ticks")) {
			e.Changes = append(e.Changes, c)
			c.Tick++
		}
	}
	return e
}

// silence draws how many pods do not answer or are not ready, for a metric of which more pods gave a value before. Their load is not in
// Lower, and may be higher than Upper was.
func (e *Episode) silence(c *Change, t *rapid.T, by func(label string) float64) {
	c.Silent = rapid.Int32Range(1, 3).Draw(t, "silent")
	c.Upper = by("up by")
	if rapid.Bool().Draw(t, "not idle") {
		c.Lower = -by("down by")
	}
	for i := range e.Ticks {
		for k := range e.Ticks[i].Readings {
			if r := &e.Ticks[i].Readings[k]; r.Metric == c.Metric && r.Known() {
				r.Values = max(r.Values, c.Silent+1)
			}
		}
	}
	if rapid.Bool().Draw(t, "booting") {
		c.Silent, c.Booting = 0, c.Silent
	}
}

// checkMissing: missing data never causes an action. If a policy acts on intervals, present and past, it acts in the same
// direction, and at least as far, on all values within them: where it scales Up, they give an Up to at least as many; where
// it scales Down, a Down to at most as many.
//
// The runs are compared until one of them moves the count and the other does not: what a policy remembers of that, as a
// cooldown, may rightly differ. For a policy with windows (Options.Windows) a tick without a reading is like one that did
// not take place: a metric that is gone is then gone in the whole episode, and the runs are compared until their decisions
// have different reasons. For a memory that survives such a tick (Options.Lapses) it is gone in the whole episode too. If
// less is known of a metric that is UpOnly, a Down is allowed.
func checkMissing(s *subject, e *Episode) *failed {
	if s.options.Windows || s.options.Lapses {
		e = e.always()
	}
	same := true
	return s.compared(e, "with less known", func(known, wide *moment) bool {
		defer func() {
			same = same && each(func(a, b *scaling.Decision) string {
				if slices.Equal(moves(a), moves(b)) && (!s.options.Windows || codes(a) == codes(b)) {
					return ""
				}
				return "another move"
			})(known, wide) == ""
		}()
		switch {
		case wide.answers != nil && wide.repairs: // of one target, while another one moves
			return true
		case same && wide.d.Verdict == scaling.Up:
			return known.d.Replicas >= wide.d.Replicas
		case same && wide.d.Verdict == scaling.Down:
			return known.d.Replicas <= wide.d.Replicas || slices.ContainsFunc(e.Changes, s.options.upOnly)
		}
		return true
	})
}

// always returns the episode in which a metric with a missing reading is missing at every tick.
func (e *Episode) always() *Episode {
	gone := *e
	gone.Changes = slices.Clone(e.Changes)
	for _, c := range e.Changes {
		for c.Tick = range e.count() {
			if c.Gone {
				gone.Changes = append(gone.Changes, c)
			}
		}
	}
	return &gone
}

func (o *Options) upOnly(c Change) bool {
	return slices.ContainsFunc(o.Metrics, func(m Metric) bool { return m.UpOnly && m.Name == c.Metric })
}

// moves returns the steps of the deciding line that move the count, without their numbers.
func moves(d *scaling.Decision) (moves []scaling.Step) {
	for _, s := range d.Steps() {
		if s.Branch == 0 && s.From != s.To {
			moves = append(moves, scaling.Step{Code: s.Code, From: s.From, To: s.To})
		}
	}
	return moves
}

// drawRaised draws an episode without changes, and raises some of its readings: by a little, or so far that counts overflow.
func drawRaised(t *rapid.T, o *Options) Episode {
	e := drawEpisode(t, o, life{gaps: true, odd: true})
	quarters := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1e2, 1e4, 1e6, 1e9, 1e12, 1e18}
	e.each(func(i int, tick *Tick, _ bool) bool {
		tick.Refuse = true
		for _, m := range o.Metrics {
			if rapid.IntRange(0, 3).Draw(t, "raised") > 0 {
				continue
			}
			unit := max(m.High-m.Low, m.High, 1) / 4
			by := rapid.SampledFrom(quarters).Draw(t, "by") * unit
			upper := float64(rapid.IntRange(0, 4).Draw(t, "upper by")) * unit
			if by+upper > 0 {
				e.Changes = append(e.Changes, Change{Tick: i, Metric: m.Name, Lower: by, Upper: by + upper})
			}
		}
		return true
	})
	return e
}

// checkMonotone: raising readings never lowers the requested count.
func checkMonotone(s *subject, e *Episode) *failed {
	return s.compared(e, "with readings raised", func(before, raised *moment) bool {
		return raised.d.Replicas >= before.d.Replicas
	})
}

// compared plays an episode without its changes and with them, and compares the decisions.
func (s *subject) compared(e *Episode, name string, right func(without, with *moment) bool) *failed {
	plain := *e
	plain.Changes = nil
	without, f := s.play(&plain)
	if f != nil {
		return f
	}
	return s.differs(without, e, name, func(a, b *moment) string {
		if !right(a, b) {
			return fmt.Sprintf("%s became %s", headline(&a.d), headline(&b.d))
		}
		return ""
	})
}
