package history

import (
	"math"
	"time"
)

// An Hour has the recorded SLO misses and cost of one span.
type Hour struct {
	From     time.Time
	Length   time.Duration
	Requests float64 // arrived; NaN if unknown
	// Late are the first tokens that came later than the SLO, and Slow the requests with a longer time per token: the lowest
	// and the highest possible number, as the SLO may be within a bucket. Firsts and Answers are the totals.
	Late, Slow      [2]float64
	Firsts, Answers float64
	ReplicaHours    float64 // requested; NaN if unknown
}

// Hours returns the misses of an SLO, and the cost, by span.
func (f *Fleet) Hours(ttft, tpot time.Duration) (all []Hour) {
	for i := range f.Spans {
		s := &f.Spans[i]
		h := Hour{From: f.at(s.From), Length: time.Duration(s.To-s.From) * f.Step, Firsts: s.TTFT.Total(), Answers: s.TPOT.Total()}
		h.Late[0], h.Late[1] = s.TTFT.Over(ttft.Seconds())
		h.Slow[0], h.Slow[1] = s.TPOT.Over(tpot.Seconds())
		for k := s.From; k < s.To; k++ {
			h.Requests += f.Arrivals[k]
			h.ReplicaHours += f.Spec[k] * f.Step.Hours()
		}
		all = append(all, h)
	}
	return all
}

// Over returns how many values are above a bound: at least low, and at most high if the bound is within a bucket.
func (m Mixture) Over(bound float64) (low, high float64) {
	for i := range m {
		for k, n := range m[i].Counts {
			from, to := 0.0, math.Inf(1)
			if k > 0 {
				from = m[i].Bounds[k-1]
			}
			if k < len(m[i].Bounds) {
				to = m[i].Bounds[k]
			}
			if from >= bound {
				low += n
			}
			if to > bound {
				high += n
			}
		}
	}
	return low, high
}
