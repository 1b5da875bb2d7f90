package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/sim"
)

// A change is what comes of the recommended policy in a world that is a little different.
type change struct {
	What         string  `json:"what"`
	Attainment   float64 `json:"attainment"`
	ReplicaHours float64 `json:"replicaHours"`
	// First is the cheapest of the policies that were run which attains alpha, empty if none does.
	First string `json:"first"`
}

// changes are what would change a verdict.
type changes struct {
	Policy string   `json:"policy"`
	Among  []string `json:"among"` // that First is one of
	Runs   []change `json:"runs"`  // the first one is as it is
	Bounds []string `json:"bounds"`
}

// mostChanged is how many requests all runs may have: with more, fewer policies are run beside the recommended one.
const mostChanged = 12_000_000

// A variant is a world that is a little different.
type variant struct {
	what string
	make func(w *world)
}

func (w *world) variants() []variant {
	times := func(d time.Duration, by float64) time.Duration { return time.Duration(by * float64(d)) }
	start := func(by float64) func(w *world) {
		return func(w *world) {
			for _, d := range []*sim.Delay{&w.Types[0].Startup.Provision, &w.Types[0].Startup.Load} {
				d.Median, d.Max = times(d.Median, by), times(d.Max, by)
			}
		}
	}
	slo := func(by float64) func(w *world) {
		return func(w *world) { w.SLO = sim.SLO{TTFT: times(w.SLO.TTFT, by), TPOT: times(w.SLO.TPOT, by)} }
	}
	took := w.coldStart()
	return []variant{
		{"as it is", func(*world) {}},
		{"cold starts x 0.5, " + inWords(times(took, 0.5)), start(0.5)},
		{"cold starts x 2, " + inWords(times(took, 2)), start(2)},
		{fmt.Sprintf("SLO 20 %% tighter, %s and %s", inWords(times(w.SLO.TTFT, 0.8)), inWords(times(w.SLO.TPOT, 0.8))), slo(0.8)},
		{fmt.Sprintf("SLO 20 %% looser, %s and %s", inWords(times(w.SLO.TTFT, 1.2)), inWords(times(w.SLO.TPOT, 1.2))), slo(1.2)},
	}
}

// boundsOf says whether the bounds hold a policy back, with the worlds in which they do not.
func (w *world) boundsOf(l *line) (words []string, more []variant) {
	peak := int32(0)
	for i := range l.results {
		peak = max(peak, l.results[i].PeakReplicas)
	}
	if peak < w.bounds.Max {
		words = append(words, fmt.Sprintf("-max %d was never reached: %d were the most.", w.bounds.Max, peak))
	} else {
		higher := w.bounds.Max + (w.bounds.Max+1)/2
		words = append(words, fmt.Sprintf("-max %d was reached.", w.bounds.Max))
		more = append(more, variant{fmt.Sprintf("-max %d", higher), func(w *world) { w.bounds.Max = higher }})
	}
	least, all := 0, 0
	for _, m := range l.results[0].Timeline {
		if all++; m.Spec <= w.bounds.Min {
			least++
		}
	}
	if all > 0 {
		words = append(words, fmt.Sprintf("It was at -min %d for %.0f %% of the time.", w.bounds.Min, 100*float64(least)/float64(all)))
		if lower := w.bounds.Min / 2; least*5 > all && lower >= 1 {
			more = append(more, variant{fmt.Sprintf("-min %d", lower), func(w *world) { w.bounds.Min = lower }})
		}
	}
	return words, more
}

// whatIf runs the recommended policy, and those that come after it, in worlds that are a little different.
func (r *runner) whatIf(ctx context.Context, o *options) error {
	_, best, err := r.best()
	if err != nil || r.world.fleet == nil {
		return nil //nolint:nilerr // nothing is recommended, which is said elsewhere
	}
	c := &changes{Policy: best.name}
	words, more := r.world.boundsOf(best)
	c.Bounds = words
	variants := append(r.world.variants(), more...)
	most := min(4, max(2, mostChanged/max(1, r.requests*len(variants))))
	c.Among = []string{best.name}
	for _, l := range r.lines {
		if l.sort == ofPolicy && l != best && !learns(l.name) && len(c.Among) < most { // which is slow to simulate
			c.Among = append(c.Among, l.name)
		}
	}
	r.progress.at("what would change it")
	for _, v := range variants {
		w := *r.world
		w.Types = slices.Clone(w.Types)
		v.make(&w)
		all, err := o.contenders(&w, io.Discard)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(x contender) bool { return !slices.Contains(c.Among, x.name) })
		if !slices.ContainsFunc(all, func(x contender) bool { return x.name == c.Policy }) {
			continue // it does not take such an SLO
		}
		other := &runner{comparison: &comparison{world: &w, alpha: r.alpha, seeds: 1, demandStep: r.demandStep, demand: r.demand}, workers: r.workers, progress: r.progress}
		lines, err := other.runAll(ctx, all, 0, other.scenario)
		if err != nil {
			return err
		}
		other.summarizeAll(lines)
		slices.SortStableFunc(lines, other.order)
		one := change{What: v.what}
		if lines[0].summary.attains {
			one.First = lines[0].name
		}
		for _, l := range lines {
			if l.name == best.name {
				one.Attainment, one.ReplicaHours = l.summary.attained.Mean, l.summary.hours.Mean
			}
		}
		c.Runs = append(c.Runs, one)
	}
	r.changes = c
	return nil
}

// section returns the changes in words.
func (c *changes) section(seeds int) *section {
	text := fmt.Sprintf("%s again, seed 1, and the cheapest that attains of %s.", c.Policy, strings.Join(c.Among, ", "))
	if seeds > 1 {
		text += " The table above is of all seeds."
	}
	s := &section{Introduction: text + " " + strings.Join(c.Bounds, " "), Headings: []string{"if", "attained %", "replica-h", "change %", "cheapest that attains"}}
	is := c.Runs[0].ReplicaHours
	for i, x := range c.Runs {
		by := "–"
		if i > 0 && is > 0 {
			by = fmt.Sprintf("%+.1f", 100*(x.ReplicaHours/is-1))
		}
		s.Rows = append(s.Rows, []string{x.What, percent(x.Attainment), fmt.Sprintf("%.2f", x.ReplicaHours), by, cmp.Or(x.First, "none")})
	}
	return s
}

// changesTable prints what would change the verdict.
func (c *comparison) changesTable(out io.Writer) {
	if c.changes == nil {
		return
	}
	s := c.changes.section(c.seeds)
	fmt.Fprintf(out, "\nWhat would change it: %s\n\n", s.Introduction)
	printLines(out, aligned(s.Headings, s.Rows))
}
