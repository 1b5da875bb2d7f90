package capacity

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// Demand returns the work that a Scaler's decision is based on, in replica-seconds per second, and how much of it one replica is
// given. Package forecast reads it. The upper end is unknown while a pod is silent; nothing is known if the decision has no work.
// After an hour without requests the work is 0.
func Demand(obs *scaling.Observation, d *scaling.Decision) (work scaling.Reading, each float64) {
	s, ok := d.Find(AboveCapacity, BelowCapacity, AtCapacity, Unused)
	if !ok {
		return work, 0
	}
	now, each := s.Numbers[2], s.Numbers[3]
	if s.Code == Unused {
		now, each = 0, s.Numbers[2]
	}
	work = scaling.Exactly("work", now)
	for i := range obs.Readings {
		work.Failed = max(work.Failed, obs.Readings[i].Failed)
	}
	for i := range obs.Histograms {
		work.Failed = max(work.Failed, obs.Histograms[i].Failed)
	}
	if work.Failed > 0 {
		work.Upper = math.Inf(1)
	}
	return work, each
}

// A demand is the load of a fleet.
type demand struct {
	work    float64 // replica-seconds per second, now or, with a trend, expected
	mean    float64 // its mean over some minutes
	most    float64 // work, and mean, if as many requests came as may have
	means   float64
	each    float64 // replica-seconds of a request
	answer  float64 // mean tokens of an answer
	prompts float64 // prompt tokens per second
	prefill float64 // prompts, if as many requests came as may have
}

// came returns the recent demand: the arrival rate times the work of a request of the observed lengths. The rate is the largest of
// that over a minute (five for the mean), those over shorter windows minus chance, and, beside silent pods, that which certainly came.
// The mean prompt is the largest of that over two minutes or longer and those over shorter windows minus chance.
func (c Scaler) came(s *State, try *trial, lead float64, d *scaling.Decision) demand {
	rate, unsure := s.rate(max(try.Span, rateSpan))
	mean, more := s.rate(meanSpan)
	unsure = max(unsure, more)
	longest, last := 0.0, s.last()
	for _, span := range [...]float64{2 * rateSpan, rateSpan, surgeSpan, surgeSpan / 2} {
		from := s.back(span)
		surging := surging(from, last, try.Dispersion)
		unsure = max(unsure, unsureBetween(from, last))
		if span <= rateSpan {
			rate = max(rate, surging)
			longest = max(longest, longer(from, last, try.Deviation))
		}
		if span >= rateSpan {
			mean = max(mean, surging)
		}
	}
	steady := s.steady()
	rate, mean = max(rate, steady), max(mean, steady)
	if try.Trend {
		if more := s.trend(trendSpan(lead), lead, try.Dispersion); scaling.Exceeds(rate+more, rate) {
			d.Consider(d.From, Rising, "", rate, rate+more, lead)
			rate += more
			mean += more
		}
	}
	_, answer := s.sizes(longSpan)
	given := 2 * answer * c.config.SLO.TPOT.Seconds()
	usual := try.work(s.sizes(min(max(meanSpan, given), longSpan)))
	prompt, answer := s.sizes(min(max(lengthSpan, try.Span, given), longSpan))
	prompt = max(prompt, longest)
	each := try.work(prompt, answer)
	return demand{
		work: rate * each, mean: mean * usual, most: (rate + unsure) * each, means: (mean + unsure) * usual,
		each: each, answer: answer, prompts: rate * prompt, prefill: (rate + unsure) * prompt,
	}
}
