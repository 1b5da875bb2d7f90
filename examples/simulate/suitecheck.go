package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/scaling"
)

// A judged is a run that a baseline knows: a policy in a row with a seed.
type judged struct {
	policy, row string
	seed        uint64
}

// A standing is what came of it; its ratio is 0 where no schedule attains the goal.
type standing struct{ attained, ratio float64 }

// Beyond its noise, a score may fall by so much: what is rounded off, and what a request more or less does.
const (
	slackAttained = 0.0005
	slackRatio    = 0.005
	slackRow      = 0.02 // of the attainment of one row, with every seed that the baseline has
)

// standings returns what came of every run.
func (b *board) standings() map[judged]standing {
	all := map[judged]standing{}
	for _, e := range b.Entries {
		for i, c := range e.Cells {
			for _, r := range c.results {
				all[judged{e.Name, c.Row, r.Seed}] = standing{r.Attainment, over0(r.ReplicaHours, b.Rows[i].Oracle[r.Seed-1])}
			}
		}
	}
	return all
}

// baselineHeader returns the first line of a baseline.
func baselineHeader() []string { return []string{"policy", "row", "seed", "attained", "x_oracle"} }

// writeBaseline writes what came of every run.
func (b *board) writeBaseline(w io.Writer) error {
	rows := [][]string{baselineHeader()}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 5, 64) }
	all := b.standings()
	for _, e := range b.Entries {
		for _, c := range e.Cells {
			for _, r := range c.results {
				s := all[judged{e.Name, c.Row, r.Seed}]
				rows = append(rows, []string{e.Name, c.Row, strconv.FormatUint(r.Seed, 10), number(s.attained), number(s.ratio)})
			}
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// readBaseline reads what writeBaseline wrote.
func readBaseline(r io.Reader) (map[judged]standing, error) {
	records, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 || !slices.Equal(records[0], baselineHeader()) {
		return nil, fmt.Errorf("line 1: must be %s", strings.Join(baselineHeader(), ","))
	}
	if len(records) == 1 {
		return nil, errors.New("must have a run, or there is nothing to compare with")
	}
	all := map[judged]standing{}
	for i, record := range records[1:] { // as many fields as the header, or csv refuses
		seed, err := strconv.ParseUint(record[2], 10, 64)
		attained, err2 := strconv.ParseFloat(record[3], 64)
		ratio, err3 := strconv.ParseFloat(record[4], 64)
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		var e scaling.FieldErrors
		run := judged{record[0], record[1], seed}
		_, twice := all[run]
		e.Check(!twice, "seed", seed, "must be a run of "+run.policy+" in "+run.row+" once")
		e.Check(attained >= 0 && attained <= 1, "attained", attained, "must be within 0 and 1")
		e.Check(ratio >= 0 && ratio <= math.MaxFloat64, "x_oracle", ratio, "must be a number that is not negative")
		if err := e.Err(); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		all[run] = standing{attained, ratio}
	}
	return all, nil
}

// before returns what the file of -baseline has, if there is one to compare with.
func (o *options) before() (map[judged]standing, error) {
	if o.baseline == "" || o.update {
		return nil, nil
	}
	text, err := cli.ReadFile(o.baseline, cli.Document)
	if err != nil {
		return nil, misuse("-baseline: %w", err)
	}
	all, err := readBaseline(bytes.NewReader(text))
	if err != nil {
		return nil, misuse("-baseline %s: %w", o.baseline, err)
	}
	return all, nil
}

// compareBaseline says which policies' scores have fallen below those of the baseline by more than their noise. Runs are
// compared one by one, as both met the same requests.
func (b *board) compareBaseline(before map[judged]standing, out io.Writer) error {
	now := b.standings()
	var failed error
	for _, e := range b.Entries {
		var pairs [][2]standing
		for _, c := range e.Cells {
			known, lost := 0, 0 // runs
			for _, r := range c.results {
				p := judged{e.Name, c.Row, r.Seed}
				was, ok := before[p]
				if !ok {
					continue
				}
				pairs = append(pairs, [2]standing{was, now[p]})
				if known++; now[p].attained < was.attained-slackRow {
					lost++
				}
			}
			if known > 0 && lost == known {
				failed = errors.Join(failed, fmt.Errorf("%s: attained %.4f of %s, more than %g less than before", e.Name, c.Attainment.Mean, c.Row, slackRow))
			}
		}
		if err := fallen(pairs); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", e.Name, err))
		}
	}
	var gone []string
	for p := range before {
		if _, ok := now[p]; !ok && !slices.Contains(gone, p.policy) {
			gone = append(gone, p.policy)
		}
	}
	slices.Sort(gone)
	for _, name := range gone {
		failed = errors.Join(failed, fmt.Errorf("%s: the baseline has runs of it that were not made", name))
	}
	if failed != nil {
		return fmt.Errorf("scores have fallen; if that is meant, write the baseline anew with -update:\n%w", failed)
	}
	fmt.Fprintf(out, "\nNo score is below the baseline's by more than its noise.\n")
	return nil
}

// fallen says what has become worse over pairs of before and now, by more than the 95 % confidence of their mean
// difference: the attainment, or at no higher one the cost where both have one.
func fallen(pairs [][2]standing) error {
	if len(pairs) == 0 {
		return nil
	}
	attained := differences(pairs, func(s standing) float64 { return s.attained })
	var ratio estimate
	if known := slices.DeleteFunc(slices.Clone(pairs), func(p [2]standing) bool { return p[0].ratio == 0 || p[1].ratio == 0 }); len(known) > 0 {
		ratio = differences(known, func(s standing) float64 { return s.ratio })
	}
	switch {
	case attained.Mean < -attained.Half-slackAttained:
		return fmt.Errorf("attains %.4f ±%.4f less than before", -attained.Mean, attained.Half)
	case attained.Mean <= slackAttained && ratio.Mean > ratio.Half+slackRatio:
		return fmt.Errorf("costs %.4f ±%.4f x the oracle more than before", ratio.Mean, ratio.Half)
	}
	return nil
}

// differences returns the mean of what came on top.
func differences(pairs [][2]standing, of func(standing) float64) estimate {
	return estimated(each(pairs, func(p [2]standing) float64 { return of(p[1]) - of(p[0]) }))
}
