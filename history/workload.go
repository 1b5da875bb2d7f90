package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/lengths"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// mostUnknown is the highest share of a history with unknown arrivals that is filled in.
const mostUnknown = 0.2

// Workload returns the traffic of the fleet, for the simulator. Each interval has as many requests as had arrived, at random
// times within it, with lengths drawn from the buckets of the same time, see [Recorded]. Unknown intervals are interpolated
// linearly between their neighbours. filled is the number of those intervals, plus those within gaps of more than five
// minutes, of which only the sum is known.
//
// It returns an error if no lengths are known, if no request arrived, or if more than a fifth of the intervals is unknown.
func (f *Fleet) Workload() (w *Recorded, filled int, err error) {
	if came, share := f.Requests(); came == 0 && share >= 1-mostUnknown {
		return nil, 0, &RefusedError{Finished, "no request came in this range"}
	}
	if !f.lengths() {
		return nil, 0, &RefusedError{PromptTokens, "the lengths of prompts and answers are not known, so there is no traffic to simulate"}
	}
	w = &Recorded{Step: f.Step, Counts: slices.Clone(f.Arrivals), Start: f.Start}
	if filled = fill(w.Counts) + f.spread; float64(filled) > mostUnknown*float64(len(w.Counts)) {
		return nil, filled, &RefusedError{Finished, fmt.Sprintf("what came when is not known for %s of %s, more than a fifth: choose a range without the gap", time.Duration(filled)*f.Step, time.Duration(len(w.Counts))*f.Step)}
	}
	total := 0.0
	for _, n := range w.Counts {
		total += n
	}
	if total < 1 {
		return nil, filled, &RefusedError{Finished, "no request came in this range"}
	}
	w.Lengths = f.lengthsOf()
	within(w.Lengths, func(l *LengthsOf) Mixture { return l.Prompts })
	within(w.Lengths, func(l *LengthsOf) Mixture { return l.Answers })
	w.Correlation = f.correlation(w.Lengths)
	return w, filled, nil
}

// leastLengths is the lowest number of requests in a period from which lengths are drawn.
const leastLengths = 300

// lengthsOf returns the distributions of lengths: for periods that are as short as possible with enough requests, or of an
// hour if that has any requests.
func (f *Fleet) lengthsOf() (all []LengthsOf) {
	var now LengthsOf
	var x mixer
	begun := false
	most := spanSteps(f.Step) - bucketSteps(f.Step)
	for i := range f.sizes {
		s := &f.sizes[i]
		if !begun {
			now, x, begun = LengthsOf{From: s.From}, nil, true
		}
		for k := range s.Prompts {
			x.add(&now.Prompts, s.Prompts[k])
		}
		for k := range s.Answers {
			x.add(&now.Answers, s.Answers[k])
		}
		least := min(now.Prompts.Total(), now.Answers.Total())
		if least >= leastLengths || least > 0 && s.From-now.From >= most || least > 0 && i == len(f.sizes)-1 {
			all, begun = append(all, now), false
		}
	}
	return all
}

// within sets the means within buckets, jointly for all histograms with the same buckets.
func within(all []LengthsOf, of func(l *LengthsOf) Mixture) {
	alike := make(map[string][]*Counted)
	var key []byte
	for i := range all {
		m := of(&all[i])
		for k := range m {
			key = keyOf(key[:0], m[k].Bounds)
			alike[string(key)] = append(alike[string(key)], &m[k])
		}
	}
	for _, group := range alike {
		rows := make([]lengths.Row, len(group))
		for i, c := range group {
			rows[i] = lengths.Row{Counts: c.Counts, Sum: c.Sum}
		}
		for i, means := range lengths.Means(group[0].Bounds, rows) {
			group[i].Means = means
		}
	}
}

// fill replaces missing values by linear interpolation, and returns their number. Before the first and after the last known
// value the value is constant.
func fill(values []float64) (filled int) {
	before := -1
	for i := 0; i <= len(values); i++ {
		if i < len(values) && !known(values[i]) {
			continue
		}
		for k := before + 1; k < i; k++ {
			switch {
			case before < 0 && i == len(values):
				values[k] = 0
			case before < 0:
				values[k] = values[i]
			case i == len(values):
				values[k] = values[before]
			default:
				share := float64(k-before) / float64(i-before)
				values[k] = values[before]*(1-share) + values[i]*share
			}
			filled++
		}
		before = i
	}
	return filled
}

// The requests of one interval are drawn at once, which takes memory; the total takes time.
const (
	mostAtOnce   = 1e7
	mostRequests = 1e9
)

// Recorded is traffic with known counts by interval, and known lengths for periods of five minutes to an hour.
//
// Within an interval requests arrive at uniformly random times. Lengths are drawn from the buckets of the period. Within a
// bucket, their density follows from the neighbouring buckets, or is such that the mean is that of Counted.Means, and the
// overall mean is the recorded one. No histogram has prompts and answers jointly: their ranks are drawn with Correlation.
// Each seed draws other times and lengths; the counts are the same.
type Recorded struct {
	Start   time.Time     `json:"start"`
	Step    time.Duration `json:"step"`
	Counts  []float64     `json:"counts"` // of each interval; fractions of requests are carried to the next
	Lengths []LengthsOf   `json:"lengths"`
	// Correlation is the correlation of the normal deviates from which the ranks of a prompt and its answer are computed (a
	// Gaussian copula): 0 means independent, and it is within -1 and 1.
	Correlation float64 `json:"correlation"`
}

// LengthsOf has the distributions from an interval on.
type LengthsOf struct {
	From             int
	Prompts, Answers Mixture
}

// Duration returns the sum of the intervals.
func (w *Recorded) Duration() time.Duration { return w.Step * time.Duration(len(w.Counts)) }

// Validate reports every wrong field at once, under field.
func (w *Recorded) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(w.Step > 0 && w.Step <= sim.MaxDuration, field+".step", w.Step, "must be above 0 and at most 90 days")
	e.Check(len(w.Counts) > 0, field+".counts", len(w.Counts), "must have at least one")
	e.Check(w.Step <= 0 || len(w.Counts) <= int(sim.MaxDuration/w.Step), field+".counts", len(w.Counts), "must be within 90 days")
	total := 0.0
	for i, n := range w.Counts {
		if ok := n >= 0 && n <= mostAtOnce; !ok {
			e.Check(ok, fmt.Sprintf("%s.counts[%d]", field, i), n, fmt.Sprintf("must be within 0 and %d", int(mostAtOnce)))
			break
		}
		total += n
	}
	e.Check(total <= mostRequests, field+".counts", total, fmt.Sprintf("must be at most %d together", int(mostRequests)))
	e.Check(math.Abs(w.Correlation) <= 1, field+".correlation", w.Correlation, "must be within -1 and 1")
	e.Check(len(w.Lengths) > 0, field+".lengths", len(w.Lengths), "must have at least one")
	for i := range w.Lengths {
		l, name := &w.Lengths[i], fmt.Sprintf("%s.lengths[%d]", field, i)
		e.Check(l.Prompts.valid() && l.Prompts.Total() > 0, name+".prompts", len(l.Prompts), "must be histograms with rising bounds that counted something, and a mean for each bucket or none")
		e.Check(l.Answers.valid() && l.Answers.Total() > 0, name+".answers", len(l.Answers), "must be histograms with rising bounds that counted something, and a mean for each bucket or none")
	}
	return e.Err()
}

func (m Mixture) valid() bool {
	for i := range m {
		means := m[i].Means
		if h := (scaling.Histogram{Bounds: m[i].Bounds, Counts: m[i].Counts, Sum: m[i].Sum}); !h.Known() || len(means) > 0 && len(means) != len(m[i].Counts) {
			return false
		}
	}
	return true
}

// Arrivals returns the requests of one run.
func (w *Recorded) Arrivals(seed uint64) sim.Arrivals {
	random := splitmix.Stream{State: splitmix.Mix(splitmix.Mix(seed+splitmix.Golden) + 0x68697374)}
	interval, left, span := -1, 0.0, -1
	var prompts, answers mixed
	var batch []sim.Request
	next := 0
	return func() (sim.Request, bool) {
		for next == len(batch) {
			if interval++; interval >= len(w.Counts) {
				interval = len(w.Counts)
				return sim.Request{}, false
			}
			for span+1 < len(w.Lengths) && (span < 0 || w.Lengths[span+1].From <= interval) {
				span++
				prompts, answers = w.Lengths[span].Prompts.drawer(), w.Lengths[span].Answers.drawer()
			}
			left += w.Counts[interval]
			count := int(left + 1e-9)
			left = math.Max(0, left-float64(count))
			batch, next = batch[:0], 0
			begin := time.Duration(interval) * w.Step
			for range count {
				at := begin + min(time.Duration(random.Uniform()*float64(w.Step)), w.Step-1)
				q := sim.Request{At: at}
				q.Input, q.Output = pair(&prompts, &answers, w.Correlation, &random)
				batch = append(batch, q)
			}
			slices.SortFunc(batch, func(a, b sim.Request) int { return cmp.Compare(a.At, b.At) })
		}
		next++
		return batch[next-1], true
	}
}

// Between returns the traffic of the intervals from..to, without to.
func (w *Recorded) Between(from, to int) *Recorded {
	part := &Recorded{Start: w.Start.Add(time.Duration(from) * w.Step), Step: w.Step, Counts: w.Counts[from:to], Correlation: w.Correlation}
	for i, l := range w.Lengths {
		if i+1 < len(w.Lengths) && w.Lengths[i+1].From <= from || l.From >= to && len(part.Lengths) > 0 {
			continue
		}
		l.From = max(0, l.From-from)
		part.Lengths = append(part.Lengths, l)
	}
	return part
}
