package capacity

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// Demand returns the work on which a Scaler has decided, in seconds of a replica a second, and how much of it one replica
// is given: what package forecast looks at. Its upper end is not known while a pod is silent, and nothing is known where
// the Scaler did not come to count.
func Demand(obs *scaling.Observation, d *scaling.Decision) (work scaling.Reading, each float64) {
	s, ok := d.Find(AboveCapacity, BelowCapacity, AtCapacity)
	if !ok {
		return work, 0
	}
	work = scaling.Exactly("work", s.Numbers[2])
	for i := range obs.Readings {
		work.Failed = max(work.Failed, obs.Readings[i].Failed)
	}
	for i := range obs.Histograms {
		work.Failed = max(work.Failed, obs.Histograms[i].Failed)
	}
	if work.Failed > 0 {
		work.Upper = math.Inf(1)
	}
	return work, s.Numbers[3]
}

// A demand is what comes to a fleet.
type demand struct {
	work    float64 // seconds of a replica a second, as it comes or, with a trend, will come
	mean    float64 // that over some minutes
	each    float64 // seconds of a replica that a request takes
	answer  float64 // tokens of an answer
	prompts float64 // tokens of prompts a second
}

// came returns what has come lately: the rate of arrivals over a minute or, for the mean, five, and of shorter times what is above
// chance and beside silent pods what surely came, each times the work of a request of the lengths that finished.
func (c Scaler) came(s *State, try *trial, lead float64, d *scaling.Decision) demand {
	rate, mean := s.rate(max(try.Span, rateSpan)), s.rate(meanSpan)
	for _, span := range [...]float64{2 * rateSpan, rateSpan, surgeSpan, surgeSpan / 2} {
		surging := s.surging(span, try.Dispersion)
		if span <= rateSpan {
			rate = max(rate, surging)
		}
		if span >= rateSpan {
			mean = max(mean, surging)
		}
	}
	steady := s.steady()
	rate, mean = max(rate, steady), max(mean, steady)
	if try.Trend {
		if more := s.trend(trendSpan(lead), lead, try.Dispersion); more > 0 {
			d.Consider(d.From, Rising, "", rate, rate+more, lead)
			rate += more
			mean += more
		}
	}
	_, answer := s.sizes(longSpan)
	given := 2 * answer * c.config.SLO.TPOT.Seconds()
	mean *= try.work(s.sizes(min(max(meanSpan, given), longSpan)))
	prompt, answer := s.sizes(min(max(lengthSpan, try.Span, given), longSpan))
	each := try.work(prompt, answer)
	return demand{work: rate * each, mean: mean, each: each, answer: answer, prompts: rate * prompt}
}
