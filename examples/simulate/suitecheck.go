package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// A standing is what a baseline says of a policy over all rows.
type standing struct{ attained, ratio estimate }

// Beyond its noise, a score may fall by so much: what is rounded off, and what a request more or less does.
const (
	slackAttained = 0.0005
	slackRatio    = 0.005
)

// compareBaseline says which policies' scores have fallen below those of the baseline by more than their noise: a lower
// attainment, or at no higher one a higher cost. A policy that the baseline does not know is none of its business.
func (o *options) compareBaseline(b *board, out io.Writer) error {
	f, err := os.Open(o.baseline)
	if err != nil {
		return fmt.Errorf("-baseline: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	before, err := readBaseline(f)
	if err != nil {
		return fmt.Errorf("-baseline %s: %w", o.baseline, err)
	}
	var failed error
	for _, e := range b.Entries {
		was, ok := before[e.Name]
		if !ok {
			continue
		}
		delete(before, e.Name)
		now := standing{e.Score.Attainment, e.Score.OverOracle}
		if err := now.fallen(was); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", e.Name, err))
		}
	}
	for name := range before {
		failed = errors.Join(failed, fmt.Errorf("%s: is in the baseline and was not run", name))
	}
	if failed != nil {
		return fmt.Errorf("scores have fallen; if that is meant, write the baseline anew with -update:\n%w", failed)
	}
	fmt.Fprintf(out, "\nNo score is below the baseline's by more than its noise.\n")
	return nil
}

// fallen says what has become worse.
func (s standing) fallen(was standing) error {
	noise := func(a, b estimate, slack float64) float64 { return max(a.Half, b.Half) + slack }
	switch {
	case s.attained.Mean < was.attained.Mean-noise(s.attained, was.attained, slackAttained):
		return fmt.Errorf("attained %.4f, was %.4f ±%.4f", s.attained.Mean, was.attained.Mean, was.attained.Half)
	case s.attained.Mean <= was.attained.Mean+slackAttained && s.ratio.Mean > was.ratio.Mean+noise(s.ratio, was.ratio, slackRatio):
		return fmt.Errorf("cost %.4f x the oracle, was %.4f ±%.4f", s.ratio.Mean, was.ratio.Mean, was.ratio.Half)
	}
	return nil
}

// readBaseline reads what csv wrote: the lines of all rows.
func readBaseline(r io.Reader) (map[string]standing, error) {
	records, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	all := map[string]standing{}
	for i, record := range records {
		if i == 0 || record[1] != "all" {
			continue
		}
		var numbers [4]float64
		for k := range numbers {
			if numbers[k], err = strconv.ParseFloat(record[2+k], 64); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
		all[record[0]] = standing{estimate{numbers[0], numbers[1]}, estimate{numbers[2], numbers[3]}}
	}
	return all, nil
}
