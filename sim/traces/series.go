package traces

import (
	"fmt"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// MaxTokens is the longest prompt or answer that is drawn for a series from a file.
const MaxTokens = 1 << 17

func readSeries(t *table, columns []int) (sim.Workload, error) {
	var s sim.Series
	var first time.Duration
	for err := range t.records() {
		if err != nil {
			return nil, err
		}
		at, err := t.span(columns[0], time.Second)
		if err != nil {
			return nil, err
		}
		switch n := len(s.Rates); {
		case n == 0:
			first = at
		case at <= first:
			return nil, t.wrong(columns[0], "must be after the window above it")
		case n == 1:
			s.Step = at - first
		case at != first+s.Duration():
			return nil, t.wrong(columns[0], fmt.Sprintf("must be %s after the window above it, as the second is after the first", s.Step))
		}
		if time.Duration(len(s.Rates)+1) > longest/max(s.Step, 1) {
			return nil, t.wrong(columns[0], lateRule)
		}
		if len(s.Rates) == MaxRequests {
			return nil, t.missing(fmt.Sprintf("must have at most %d windows", MaxRequests))
		}
		rate, err := t.rate(columns)
		if err != nil {
			return nil, err
		}
		s.Rates = append(s.Rates, rate)
	}
	if len(s.Rates) < 2 {
		return nil, t.missing("must have at least two windows, which tell how long they are")
	}
	s.Input, s.Output = lengths(s.Rates)
	if s.Input.Mean == 0 || s.Output.Mean == 0 {
		return nil, t.missing("must have requests and both means in at least one window")
	}
	return s, nil
}

// rate reads the present record.
func (t *table) rate(columns []int) (r sim.Rate, err error) {
	if r.PerSecond, err = t.number(columns[1], 0, 1e6, "must be a number within 0 and 1000000"); err != nil {
		return r, err
	}
	for _, mean := range []struct {
		place int
		to    *float64
	}{{columns[2], &r.Input}, {columns[3], &r.Output}} {
		if t.record[mean.place] == "" {
			continue
		}
		rule := fmt.Sprintf("must be a number within 1 and %d, or empty if it is not known", MaxTokens)
		least := 1.0
		if r.PerSecond == 0 {
			least = 0 // without requests
		}
		if *mean.to, err = t.number(mean.place, least, MaxTokens, rule); err != nil {
			return r, err
		}
		if *mean.to < 1 {
			*mean.to = 0
		}
	}
	return r, nil
}

// lengths returns the lengths of all requests of a series; a mean of 0 is unknown.
func lengths(rates []sim.Rate) (input, output sim.Length) {
	var in, inRate, out, outRate float64
	for _, r := range rates {
		if r.Input > 0 {
			in += r.PerSecond * r.Input
			inRate += r.PerSecond
		}
		if r.Output > 0 {
			out += r.PerSecond * r.Output
			outRate += r.PerSecond
		}
	}
	length := func(sum, weight float64) sim.Length {
		if weight == 0 || sum == 0 { // rates so small that their products are 0
			return sim.Length{}
		}
		mean := min(max(sum/weight, 1), MaxTokens)
		return sim.Length{Mean: mean, Deviation: mean, Min: 1, Max: MaxTokens, LogNormal: true}
	}
	return length(in, inRate), length(out, outRate)
}

// FillGaps returns the series with every window without requests filled, and the number of those windows. Rates and means
// are interpolated linearly between the windows before and after the gap; at an end of the series they equal those of the
// nearest window. It is for recordings in which such windows are gaps in the collection. A series that is zero throughout
// stays unchanged.
func FillGaps(s sim.Series) (sim.Series, int) {
	s.Rates = slices.Clone(s.Rates)
	filled := 0
	before := -1 // the last window with requests
	for i := 0; i <= len(s.Rates); i++ {
		if i < len(s.Rates) && s.Rates[i].PerSecond == 0 {
			continue
		}
		for k := before + 1; k < i; k++ {
			switch {
			case before < 0 && i == len(s.Rates):
				return s, 0
			case before < 0:
				s.Rates[k] = s.Rates[i]
			case i == len(s.Rates):
				s.Rates[k] = s.Rates[before]
			default:
				s.Rates[k] = between(s.Rates[before], s.Rates[i], float64(k-before)/float64(i-before))
			}
			filled++
		}
		before = i
	}
	return s, filled
}

// between returns the rate on the line from a to b. A mean that is unknown in one of them is unknown in the result.
func between(a, b sim.Rate, share float64) sim.Rate {
	line := func(a, b float64) float64 {
		return min(max(a*(1-share)+b*share, min(a, b)), max(a, b)) // rounding must not leave the line
	}
	mean := func(a, b float64) float64 {
		if a == 0 || b == 0 {
			return 0
		}
		return max(line(a, b), 1)
	}
	return sim.Rate{
		PerSecond: line(a.PerSecond, b.PerSecond),
		Input:     mean(a.Input, b.Input),
		Output:    mean(a.Output, b.Output),
	}
}

// Slice returns the part of a series in [from, to), for example one day of fourteen. Both must be multiples of its step.
//
// The rates are those of the whole series. At both ends there is no neighbour to interpolate to, and the rate is constant
// for half a window.
func Slice(s sim.Series, from, to time.Duration) (sim.Series, error) {
	var e scaling.FieldErrors
	if s.Step <= 0 {
		e.Check(false, "step", s.Step, "must be above 0")
		return sim.Series{}, e.Err()
	}
	within := fmt.Sprintf("must be a multiple of the step %s within 0 and %s", s.Step, s.Duration())
	e.Check(from >= 0 && from <= s.Duration() && from%s.Step == 0, "from", from, within)
	e.Check(to >= 0 && to <= s.Duration() && to%s.Step == 0, "to", to, within)
	e.Check(from < to, "to", to, fmt.Sprintf("must be after from, %s", from))
	if err := e.Err(); err != nil {
		return sim.Series{}, err
	}
	s.Rates = slices.Clone(s.Rates[from/s.Step : to/s.Step])
	return s, nil
}
