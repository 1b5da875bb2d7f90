package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/sim"
)

const (
	// leastDays is of how many days there must be to say how sure a verdict is.
	leastDays = 3
	// resamples is how often days are drawn.
	resamples = 1000
)

// A tally is what came of a day of a run.
type tally struct{ requests, met, hours float64 }

// A certainty is what comes out, 95 % of the time, where as many days are drawn with replacement of those that there were.
type certainty struct {
	Attained     bounded  `json:"attained"`
	ReplicaHours bounded  `json:"replicaHours"`
	Incumbent    *bounded `json:"overIncumbent,omitempty"` // replica-hours over those of what there was
	Oracle       *bounded `json:"overOracle,omitempty"`    // and over the oracle's
	// First is the share of the draws in which it is the cheapest policy that attains alpha.
	First float64 `json:"first"`
}

// bounded is an interval.
type bounded struct {
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

func (b *bounded) text(format string, factor float64) string {
	if b == nil {
		return "–"
	}
	low, high := fmt.Sprintf(format, factor*b.Lower), fmt.Sprintf(format, factor*b.Upper)
	if low == high {
		return low
	}
	return low + " to " + high
}

// daysIn returns how many days a time is of. A rest of less than half a day is of the last one.
func daysIn(length time.Duration) int { return int((length + 12*time.Hour) / (24 * time.Hour)) }

// dayOf returns the day of a time.
func (r *runner) dayOf(at time.Duration) int {
	return min(max(0, int(at/(24*time.Hour))), len(r.arrivals)-1)
}

// byDay fills in the options of a run that is counted by day, and returns what counts it in the end.
func (r *runner) byDay(l *line, seed int, o *sim.Options) (done func(*sim.Result)) {
	if len(r.arrivals) < leastDays {
		return func(*sim.Result) {}
	}
	days := make([]tally, len(r.arrivals))
	for i := range days {
		days[i].requests = r.arrivals[i]
	}
	o.Timeline = r.interval()
	o.Request = func(x sim.Outcome) {
		if x.Met {
			days[r.dayOf(x.Arrived)].met++
		}
	}
	l.days[seed] = days
	return func(result *sim.Result) {
		sum := 0.0
		for _, m := range result.Timeline {
			if m.At < r.world.length() {
				days[r.dayOf(m.At)].hours += float64(m.Replicas)
				sum += float64(m.Replicas)
			}
		}
		for i := range days {
			days[i].hours *= result.ReplicaHours / max(1, sum)
		}
	}
}

// over adds up the days that were drawn, over all seeds.
func (l *line) over(drawn []int) (t tally) {
	for _, days := range l.days {
		for _, i := range drawn {
			t.requests += days[i].requests
			t.met += days[i].met
			t.hours += days[i].hours
		}
	}
	return t
}

// resample says how sure each line is, by a bootstrap over days: what a week with other days of these would have been. All lines
// meet the same draws, which are the same each time.
func (r *runner) resample() {
	n := len(r.arrivals)
	if n < leastDays {
		return
	}
	random := splitmix.Stream{State: splitmix.Golden}
	drawn, of := make([]int, n), make([]tally, len(r.lines))
	values := make([][4][]float64, len(r.lines))
	first := make([]float64, len(r.lines))
	yardstick := func(s sort) int { return slices.IndexFunc(r.lines, func(l *line) bool { return l.sort == s }) }
	against := [2]int{yardstick(ofIncumbent), yardstick(ofOracle)}
	for range resamples {
		for i := range drawn {
			drawn[i] = int(random.Uniform() * float64(n))
		}
		var best []int // several that are alike share
		for i, l := range r.lines {
			if of[i] = l.over(drawn); l.sort != ofPolicy || of[i].met < r.alpha*of[i].requests {
				continue
			}
			if len(best) > 0 && of[i].hours < of[best[0]].hours {
				best = best[:0]
			}
			if len(best) == 0 || of[i].hours == of[best[0]].hours {
				best = append(best, i)
			}
		}
		for _, i := range best {
			first[i] += 1 / float64(len(best))
		}
		for i := range r.lines {
			v := &values[i]
			v[0] = append(v[0], of[i].met/max(1, of[i].requests))
			v[1] = append(v[1], of[i].hours/float64(r.seeds))
			for k, other := range against {
				if other >= 0 && of[other].hours > 0 {
					v[2+k] = append(v[2+k], of[i].hours/of[other].hours)
				}
			}
		}
	}
	for i, l := range r.lines {
		v := &values[i]
		l.certainty = &certainty{Attained: *middle(v[0]), ReplicaHours: *middle(v[1]), Incumbent: middle(v[2]), Oracle: middle(v[3]), First: first[i] / resamples}
	}
}

// middle returns the bounds of 95 % of the values.
func middle(values []float64) *bounded {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(math.Round(q*float64(len(values)-1)))] }
	return &bounded{at(0.025), at(0.975)}
}

// certaintyCells returns a line in words.
func (l *line) certaintyCells() []string {
	c := l.certainty
	share := "–"
	if l.sort == ofPolicy {
		share = fmt.Sprintf("%.0f", 100*c.First)
	}
	return []string{l.name, c.Attained.text("%.2f", 100), c.ReplicaHours.text("%.1f", 1), c.Incumbent.text("%.2f", 1), c.Oracle.text("%.2f", 1), share}
}

// howSure says how sure a verdict is: without rows where there are too few days, and without words where nobody would expect any.
func (c *comparison) howSure() section {
	s := section{Introduction: c.certaintyWords(), Headings: []string{"policy", "attained %", "replica-h", "x incumbent", "x oracle", "cheapest %"}}
	if len(c.arrivals) >= leastDays {
		s.Rows = each(c.lines, (*line).certaintyCells)
	}
	return s
}

// certaintyWords say what the table of certainty is, or why there is none; nothing for traffic of which nobody would expect it.
func (c *comparison) certaintyWords() string {
	n := len(c.arrivals)
	switch {
	case n >= leastDays:
		return fmt.Sprintf("%d days like these, drawn again %d times: 95 %% of what comes out, and how often each policy is the cheapest that attains %s %%. "+
			"It says nothing of weeks unlike this one, nor of what the simulator does wrong.", n, resamples, goal(c.alpha))
	case c.world.fleet != nil:
		return fmt.Sprintf("How sure this is cannot be told from fewer than %d days.", leastDays)
	}
	return ""
}

// certaintyTable prints how sure a verdict is.
func (c *comparison) certaintyTable(out io.Writer) {
	s := c.howSure()
	if s.Introduction != "" {
		fmt.Fprintf(out, "\n%s\n", s.Introduction)
	}
	if len(s.Rows) > 0 {
		fmt.Fprint(out, "\n")
		printLines(out, aligned(s.Headings, s.Rows))
	}
}
