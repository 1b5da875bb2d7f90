package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/inferscale/inferscale/sim"
)

// A score sums up a policy over the rows. The halves are of 95 % confidence intervals of the means, from how much the
// seeds of a row differ; 0 for one seed.
type score struct {
	Attaining  int      `json:"attaining"` // rows in which the goal is attained
	InBudget   int      `json:"inBudget"`  // of these, at most 1.25 x as dear as the oracle or 1.10 x as dear as the limit
	Attainable int      `json:"attainable"`
	Worst      float64  `json:"worst"` // attainment of the worst row
	Median     float64  `json:"median"`
	Attainment estimate `json:"attainment"`
	// OverOracle is the mean over all rows in which a schedule attains the goal, the others are over those in which the policy does: 0
	// if there is none.
	OverOracle      estimate `json:"overOracle"`
	WorstOverOracle float64  `json:"worstOverOracle"`
	MedianOracle    float64  `json:"medianOverOracle"`
	WorstOverLimit  float64  `json:"worstOverLimit"`
	MedianLimit     float64  `json:"medianOverLimit"`
	Actions         float64  `json:"actions"`
	Reversals       float64  `json:"reversals"`
	Starts          float64  `json:"starts"`
	GPUHours        float64  `json:"gpuHours"` // of all rows
}

// sum sums everything up and sorts it: limits first, then those that attain the goal in the most rows, and of those the
// one with the better worst row.
func (b *board) sum() {
	for _, e := range b.Entries {
		for i, c := range e.Cells {
			c.sum(&b.Rows[i], b.Goal)
		}
		e.sum(b)
	}
	slices.SortStableFunc(b.Entries, func(x, y *entry) int {
		if first := trueFirst(x.Sort == ofLimit, y.Sort == ofLimit); first != 0 || x.Sort == ofLimit {
			return first
		}
		return cmp.Or(cmp.Compare(y.Score.Attaining, x.Score.Attaining), cmp.Compare(y.Score.Worst, x.Score.Worst))
	})
}

func (c *cell) sum(r *boarded, goal float64) {
	of := func(f func(r *sim.Result) float64) estimate { return over(c.results, f) }
	c.Attainment = of(func(r *sim.Result) float64 { return r.Attainment })
	c.Attains = c.Attainment.Mean >= goal
	if known := slices.DeleteFunc(slices.Clone(c.results), func(x sim.Result) bool { return r.Oracle[x.Seed-1] == 0 }); len(known) > 0 {
		c.OverOracle = over(known, func(x *sim.Result) float64 { return x.ReplicaHours / r.Oracle[x.Seed-1] })
	}
	if !slices.Contains(r.Present, 0) {
		e := of(func(x *sim.Result) float64 { return x.ReplicaHours / r.Present[x.Seed-1] })
		c.OverLimit = &e
	}
	c.Actions = of(func(r *sim.Result) float64 { return float64(r.Actions) }).Mean
	c.Reversals = of(func(r *sim.Result) float64 { return float64(r.Reversals) }).Mean
	c.Starts = of(func(r *sim.Result) float64 { return float64(r.Starts) }).Mean
	c.GPUHours = of(func(x *sim.Result) float64 { return float64(r.Cards) * x.ReplicaHours })
}

// inBudget reports whether the cell costs at most as much as the goal of this project allows.
func (c *cell) inBudget() bool {
	const mostOracle, mostLimit = 1.25, 1.10
	return c.OverOracle.Mean > 0 && c.OverOracle.Mean <= mostOracle || c.OverLimit != nil && c.OverLimit.Mean <= mostLimit
}

// over0 is a quotient, 0 where there is none.
func over0(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (e *entry) sum(b *board) {
	s := &e.Score
	s.Worst = math.Inf(1)
	var attained, oracles, limits []float64
	for i, c := range e.Cells {
		attained = append(attained, c.Attainment.Mean)
		s.Worst = min(s.Worst, c.Attainment.Mean)
		if !slices.Contains(b.Rows[i].Present, 0) {
			s.Attainable++
		}
		s.Actions += c.Actions / float64(len(e.Cells))
		s.Reversals += c.Reversals / float64(len(e.Cells))
		s.Starts += c.Starts / float64(len(e.Cells))
		s.GPUHours += c.GPUHours.Mean
		if !c.Attains {
			continue
		}
		s.Attaining++
		if c.inBudget() {
			s.InBudget++
		}
		if c.OverOracle.Mean > 0 {
			oracles = append(oracles, c.OverOracle.Mean)
		}
		if c.OverLimit != nil {
			limits = append(limits, c.OverLimit.Mean)
		}
	}
	s.Median = median(attained)
	s.MedianOracle, s.MedianLimit = median(oracles), median(limits)
	s.WorstOverOracle, s.WorstOverLimit = highest(oracles), highest(limits)
	s.Attainment = e.pooled(func(_ int, r *sim.Result) (float64, bool) { return r.Attainment, true })
	s.OverOracle = e.pooled(func(i int, r *sim.Result) (float64, bool) {
		hours := b.Rows[i].Oracle[r.Seed-1]
		return over0(r.ReplicaHours, hours), hours > 0
	})
}

// pooled returns the mean over rows and seeds of what is known, with the noise of the seeds: rows are not drawn, and do not count as
// noise.
func (e *entry) pooled(of func(row int, r *sim.Result) (value float64, known bool)) estimate {
	sum, squares, n, freedom := 0.0, 0.0, 0, 0
	for i, c := range e.Cells {
		var values []float64
		for k := range c.results {
			if x, known := of(i, &c.results[k]); known {
				values = append(values, x)
			}
		}
		if len(values) == 0 {
			continue
		}
		mean := estimated(values).Mean
		for _, x := range values {
			squares += (x - mean) * (x - mean)
		}
		sum += mean * float64(len(values))
		n += len(values)
		freedom += len(values) - 1
	}
	switch {
	case n == 0:
		return estimate{}
	case freedom == 0:
		return estimate{Mean: sum / float64(n)}
	}
	return estimate{Mean: sum / float64(n), Half: student(freedom) * math.Sqrt(squares/float64(freedom)/float64(n))}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func highest(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values)
}
