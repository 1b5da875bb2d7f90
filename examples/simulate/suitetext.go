package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fatih/color"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim/suite"
)

// parseRows reads a list of rows.
func parseRows(list string) (rows []suite.Row, err error) {
	for text := range strings.SplitSeq(list, ",") {
		r, err := suite.Parse(strings.TrimSpace(text))
		if f, ok := errors.AsType[*scaling.FieldError](err); ok && f.Field == "row" {
			return nil, misuse("-rows %q: %s", f.Value, f.Rule)
		}
		if err != nil {
			return nil, misuse("-rows %s: %w", text, err)
		}
		if slices.Contains(rows, r) {
			return nil, misuse("-rows: %s is there twice", r)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// showBoard prints the board, writes what is asked for, and compares it with a baseline.
func (o *options) showBoard(b *board, before map[judged]standing, stdout, stderr io.Writer) error {
	text := stdout
	if o.json == standard {
		text = stderr
	}
	out := bufio.NewWriter(text)
	b.table(out)
	failed := out.Flush()
	write := func(flag, name string, write func(io.Writer) error) {
		if err := writeFile(name, stdout, write); err != nil {
			failed = errors.Join(failed, fmt.Errorf("-%s: %w", flag, err))
		} else if name != standard {
			fmt.Fprintf(text, "\nWritten: %s\n", name)
		}
	}
	if o.json != "" {
		write("json", o.json, b.json)
	}
	if o.scores != "" {
		write("scores", o.scores, func(w io.Writer) error { return b.markdown(w, filepath.Base(o.beside(""))) })
		write("scores", o.beside(".csv"), b.csv)
		write("scores", o.beside(".svg"), b.svg)
	}
	if o.update {
		write("baseline", o.baseline, b.writeBaseline)
	} else if before != nil {
		failed = errors.Join(failed, b.compareBaseline(before, text))
	}
	return failed
}

func (b *board) json(w io.Writer) error { return writeJSON(w, b) }

// boardHeadings are those of the table of policies, boardRow a policy under them.
func boardHeadings() []string {
	return []string{"policy", "rows", "in budget", "worst %", "median %", "x oracle worst", "median", "x limit worst", "median", "actions", "reversals", "starts", "GPU-h"}
}

func (e *entry) boardRow() []string {
	s := &e.Score
	ratio := func(x float64) string {
		if x == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", x)
	}
	name := e.Name
	if e.Recommended {
		name += " *"
	}
	return []string{
		name, fmt.Sprintf("%d/%d", s.Attaining, len(e.Cells)), strconv.Itoa(s.InBudget), percent(s.Worst), percent(s.Median), ratio(s.WorstOverOracle), ratio(s.MedianOracle),
		ratio(s.WorstOverLimit), ratio(s.MedianLimit), fmt.Sprintf("%.0f", s.Actions), fmt.Sprintf("%.0f", s.Reversals), fmt.Sprintf("%.0f", s.Starts), fmt.Sprintf("%.0f", s.GPUHours),
	}
}

func cellHeadings() []string {
	return []string{"row", "attained %", "x oracle", "x limit", "actions", "reversals", "starts", "GPU-h"}
}

func (c *cell) row() []string {
	oracle, limit := c.OverOracle.text("%.2f", 1), "–"
	if c.OverLimit != nil {
		limit = c.OverLimit.text("%.2f", 1)
	}
	switch {
	case c.OverOracle.Mean == 0: // no schedule attains the goal
		oracle = "–"
	case !c.Attains:
		oracle = "(" + oracle + ")"
	}
	s := summary{attained: c.Attainment}
	return []string{c.Row, s.attainedText(), oracle, limit, count(c.Actions), count(c.Reversals), count(c.Starts), c.GPUHours.text("%.1f", 1)}
}

// worstFirst returns cells, those of the lowest attainment first, and of those that attain the goal the dearest.
func worstFirst(cells []*cell) []*cell {
	return slices.SortedStableFunc(slices.Values(cells), func(x, y *cell) int {
		if last := trueFirst(x.Attains, y.Attains); last != 0 {
			return -last
		}
		if x.Attains {
			return cmp.Compare(y.OverOracle.Mean, x.OverOracle.Mean)
		}
		return cmp.Compare(x.Attainment.Mean, y.Attainment.Mean)
	})
}

// introduction says what was run.
func (b *board) introduction() []string {
	seeds := "seed 1"
	if b.Seeds > 1 {
		seeds = fmt.Sprintf("seeds 1 to %d, ± half a 95 %% confidence interval", b.Seeds)
	}
	return []string{
		fmt.Sprintf("%d rows of shape/pattern/cold start/server (package sim/suite), %s; the goal is %s %% of the requests within the SLO.", len(b.Rows), seeds, goal(b.Goal)),
		"x oracle: replica-hours over those of the best schedule known. x limit: over those of the cheapest policy that is told the present,",
		"with its margin fitted in hindsight. Both are over the rows in which the policy attains the goal: less service is cheap at any price.",
		"In budget: rows in which it attains the goal for at most 1.25 x the oracle, or 1.10 x the limit that is told the present.",
		"The present, margin m: the same policy with one margin for all rows, and needs held for a cold start. Nothing is fitted.",
		"Missing: prompts that hit a cache of prefixes, which these rows do not have.",
	}
}

// table prints the board.
func (b *board) table(out io.Writer) {
	printLines(out, b.introduction())
	fmt.Fprint(out, "\n")
	lines := aligned(boardHeadings(), each(b.Entries, (*entry).boardRow))
	color.New(color.Bold).Fprint(out, lines[0])
	fmt.Fprint(out, "\n")
	printLines(out, lines[1:])
	for _, e := range b.Entries {
		if !e.Recommended {
			continue
		}
		fmt.Fprintf(out, "\n* recommended: %s, the worst row first\n", e.Name)
		printLines(out, aligned(cellHeadings(), each(worstFirst(e.Cells), (*cell).row)))
	}
}

// csv writes every cell.
func (b *board) csv(w io.Writer) error {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
	rows := [][]string{{"policy", "row", "attained", "attained_half", "x_oracle", "x_oracle_half", "x_limit", "actions", "reversals", "starts", "gpu_hours"}}
	for _, e := range b.Entries {
		line := func(row string, attained, ratio estimate, limit string, rest ...float64) {
			record := []string{e.Name, row, number(attained.Mean), number(attained.Half), "", "", limit}
			if ratio.Mean > 0 { // or no schedule attains the goal
				record[4], record[5] = number(ratio.Mean), number(ratio.Half)
			}
			for _, x := range rest {
				record = append(record, number(x))
			}
			rows = append(rows, record)
		}
		s := &e.Score
		line("all", s.Attainment, s.OverOracle, "", s.Actions, s.Reversals, s.Starts, s.GPUHours)
		for _, x := range e.Cells {
			limit := ""
			if x.OverLimit != nil {
				limit = number(x.OverLimit.Mean)
			}
			line(x.Row, x.Attainment, x.OverOracle, limit, x.Actions, x.Reversals, x.Starts, x.GPUHours.Mean)
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}
