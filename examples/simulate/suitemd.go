package main

import (
	"fmt"
	"io"
	"strings"
)

// markdown writes the scores as a page, beside which are stem.csv and stem.svg.
func (b *board) markdown(w io.Writer, stem string) error {
	var s strings.Builder
	what := "simulate -suite"
	if b.Quick {
		what += " -quick"
	}
	fmt.Fprintf(&s, "# Scores\n\nMade by `%s -scores docs/%s.md`; not to be edited. Every number is in [%s.csv](%s.csv).\n\n", what, stem, stem, stem)
	fmt.Fprintf(&s, "%s\nRecordings (rows named recorded) are to be reported only; some numbers of capacity were chosen with some of them in sight: capacity.md.\n\n", strings.Join(b.introduction(), "\n"))
	fmt.Fprintf(&s, "![Every policy in every row: attainment, and cost over the oracle](%s.svg)\n\n", stem)
	fmt.Fprint(&s, "## Policies\n\nThe most rows that attain the goal first, then the best worst row. Actions, reversals (within 10 minutes of a change the other way) and\nstarts are means of a row; GPU-hours are of all rows. * is the recommended one. Limits are told the truth, and cannot be had.\n\n")
	tableOf(&s, boardHeadings(), each(b.Entries, (*entry).boardRow))
	for _, e := range b.Entries {
		if !e.Recommended && e.Name != learnedName {
			continue
		}
		fmt.Fprintf(&s, "\n## %s, the worst row first\n\n", e.Name)
		tableOf(&s, cellHeadings(), each(worstFirst(e.Cells), (*cell).row))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// tableOf writes a table in Markdown.
func tableOf(s *strings.Builder, headings []string, rows [][]string) {
	fmt.Fprintf(s, "| %s |\n|%s\n", strings.Join(headings, " | "), strings.Repeat("---|", len(headings)))
	for _, row := range rows {
		fmt.Fprintf(s, "| %s |\n", strings.Join(row, " | "))
	}
}

// svg writes the picture: a line a policy, a dot a row, by attainment and by cost.
func (b *board) svg(w io.Writer) error {
	const width, line, head = 1100, 26, 56
	height := float64(head + line*len(b.Entries))
	p := newPicture("scores", width, height, "Scores", "Every policy in every row: the share of requests within the SLO, and replica-hours over those of the best schedule known.")
	left := &panel{picture: p, left: 190, right: 620, bottom: 8, top: height - head + 8, x: nines(3), y: linear(0, 1)}
	right := &panel{picture: p, left: 660, right: width - 20, bottom: 8, top: height - head + 8, x: linear(0.8, 3), y: linear(0, 1)}
	axis := func(on *panel, title string, ticks ...tick) {
		p.write(on.left, height-12, 1, 0, 12, black(), title)
		for _, t := range ticks {
			x := on.px(t.value)
			p.stroke(pale(), 1, nil, at(x, on.bottom), at(x, on.top))
			p.write(x, height-32, 0, 0, 11, grey(), t.label)
		}
	}
	axis(left, "requests within the SLO", tick{0, "0 %"}, tick{0.5, "50 %"}, tick{0.9, "90 %"}, tick{0.99, "99 %"}, tick{0.999, "99.9 %"})
	axis(right, "replica-hours over the best schedule's (grey: goal missed)", tick{1, "1"}, tick{1.25, "1.25"}, tick{1.5, "1.5"}, tick{2, "2"}, tick{3, "3"})
	for i, e := range b.Entries {
		y := height - head - line*float64(i) - line/2 + 8
		name := e.Name
		if e.Recommended {
			name += " *"
		}
		p.write(8, y, 1, 0, 12, black(), name)
		p.stroke(pale(), 1, nil, at(left.left, y), at(right.right, y))
		for _, c := range e.Cells {
			tone := blue()
			if !c.Attains {
				tone = grey()
			}
			p.dot(tone, 2.5, left.px(c.Attainment.Mean), y)
			if c.OverOracle.Mean > 0 {
				p.dot(tone, 2.5, right.px(min(max(c.OverOracle.Mean, 0.8), 3)), y)
			}
		}
	}
	inline, err := p.inline()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.Replace(string(inline), "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" `, 1)+"\n")
	return err
}
