package main

import (
	"cmp"
	"math"

	"github.com/inferscale/inferscale/sim"
)

// An estimate is a mean over seeds, with half the width of its 95 % confidence interval: 0 for one seed.
type estimate struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half"`
}

// A summary is the means of a line.
type summary struct {
	attained, ttft, tpot estimate
	hours                estimate
	// attains says whether the mean attainment is alpha or more.
	attains bool
	// ratio is the replica-hours over the oracle's, 0 without an oracle. If the line does not attain alpha it says
	// nothing, as less service is cheap.
	ratio                      estimate
	ahead                      bool    // cheaper than the oracle, by what it begins with; there is no ratio then
	p50, p95, p99              float64 // of the TTFT, in seconds
	actions, reversals, starts float64
	unfinished                 float64 // share of the requests
}

func (c *comparison) summarize(results []sim.Result) summary {
	mean := func(of func(r *sim.Result) float64) float64 { return over(results, of).Mean }
	s := summary{
		attained:  over(results, func(r *sim.Result) float64 { return r.Attainment }),
		ttft:      over(results, func(r *sim.Result) float64 { return r.AttainedTTFT }),
		tpot:      over(results, func(r *sim.Result) float64 { return r.AttainedTPOT }),
		hours:     over(results, hoursOf),
		p50:       mean(func(r *sim.Result) float64 { return r.TTFT.P50 }),
		p95:       mean(func(r *sim.Result) float64 { return r.TTFT.P95 }),
		p99:       mean(func(r *sim.Result) float64 { return r.TTFT.P99 }),
		actions:   mean(func(r *sim.Result) float64 { return float64(r.Actions) }),
		reversals: mean(func(r *sim.Result) float64 { return float64(r.Reversals) }),
		starts:    mean(func(r *sim.Result) float64 { return float64(r.Starts) }),
		unfinished: mean(func(r *sim.Result) float64 {
			return float64(r.Unfinished) / float64(max(1, r.Requests))
		}),
	}
	s.attains = s.attained.Mean >= c.alpha
	if len(c.replays) == len(results) {
		s.ratio = over(results, func(r *sim.Result) float64 {
			return r.ReplicaHours / c.replays[r.Seed-1].Result.ReplicaHours
		})
	}
	return s
}

// summarizeAll sums lines up. A fleet that is never scaled begins with all its replicas ready, and the oracle's schedule
// with those that the policies begin with. Where the fleet is the cheaper one for that, a ratio would say of the oracle
// that it is none.
func (c *comparison) summarizeAll(lines []*line) {
	for _, l := range lines {
		l.summary = c.summarize(l.results)
		if s := &l.summary; l.sort == ofStatic && s.attains && s.ratio.Mean < 1 {
			s.ahead, s.ratio = s.ratio.Mean > 0, estimate{}
		}
	}
}

// apartFromOracle sums up fleets that are not the oracle's: there is no ratio to it.
func (c *comparison) apartFromOracle() *comparison { return &comparison{alpha: c.alpha} }

// over returns the mean over results.
func over(results []sim.Result, of func(r *sim.Result) float64) estimate {
	values := make([]float64, len(results))
	for i := range results {
		values[i] = of(&results[i])
	}
	return estimated(values)
}

func estimated(values []float64) estimate {
	n := float64(len(values))
	mean := meanOf(values)
	if n < 2 {
		return estimate{Mean: mean}
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return estimate{Mean: mean, Half: student(len(values)-1) * math.Sqrt(squares/(n-1)/n)}
}

// student returns the 97.5 % quantile of Student's t distribution: from a table up to 10 degrees of freedom, and beyond
// by the first terms of its expansion around the normal one (Fisher, 1925), to three digits.
func student(freedom int) float64 {
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}
	if freedom <= len(table) {
		return table[freedom-1]
	}
	const z = 1.959964
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
}

// order sorts lines: those that attain alpha first, the cheapest of them first, then the others, the best first.
func (c *comparison) order(a, b *line) int {
	x, y := &a.summary, &b.summary
	if first := trueFirst(x.attains, y.attains); first != 0 {
		return first
	}
	if x.attains {
		return cmp.Or(cmp.Compare(x.hours.Mean, y.hours.Mean), cmp.Compare(y.attained.Mean, x.attained.Mean))
	}
	return cmp.Or(cmp.Compare(y.attained.Mean, x.attained.Mean), cmp.Compare(x.hours.Mean, y.hours.Mean))
}

// trueFirst sorts true before false.
func trueFirst(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// round3 rounds to three digits after the point.
func round3(x float64) float64 { return math.Round(x*1e3) / 1e3 }

func hoursOf(r *sim.Result) float64 { return r.ReplicaHours }
