package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"
)

// percent writes a share with as many digits as tell it from 1.
func percent(share float64) string {
	switch {
	case share >= 1:
		return "100"
	case share >= 0.9995:
		return fmt.Sprintf("%.3f", math.Floor(share*1e5)/1e3) // never 100 unless it is
	default:
		return strconv.FormatFloat(100*share, 'f', 2, 64)
	}
}

// goal writes alpha without more digits than it has.
func goal(alpha float64) string { return strconv.FormatFloat(math.Round(1e7*alpha)/1e5, 'f', -1, 64) }

// text writes an estimate in a format, and its half width where there is one.
func (e estimate) text(format string, factor float64) string {
	text := fmt.Sprintf(format, factor*e.Mean)
	if e.Half > 0 {
		text += " ±" + fmt.Sprintf(format, factor*e.Half)
	}
	return text
}

// ratioText writes the ratio to the oracle: in parentheses where the line does not attain alpha.
func (s *summary) ratioText() string {
	switch {
	case s.ratio.Mean == 0:
		return "–"
	case !s.attains:
		return fmt.Sprintf("(%.2f)", s.ratio.Mean)
	default:
		return fmt.Sprintf("%.2f", s.ratio.Mean)
	}
}

// attainedText writes the share of requests that met the SLO.
func (s *summary) attainedText() string {
	if s.attained.Half < 0.00005 {
		return percent(s.attained.Mean)
	}
	return fmt.Sprintf("%s ±%.2f", percent(s.attained.Mean), 100*s.attained.Half)
}

// seconds writes a time of seconds in three digits.
func seconds(t float64) string {
	switch {
	case t >= 100:
		return fmt.Sprintf("%.0f", t)
	case t >= 10:
		return fmt.Sprintf("%.1f", t)
	default:
		return fmt.Sprintf("%.2f", t)
	}
}

// count writes a mean of counts.
func count(n float64) string {
	if n == math.Trunc(n) {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.1f", n)
}

// inWords writes a length of time as one number.
func inWords(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
	case d < 10*time.Second:
		return fmt.Sprintf("%g s", math.Round(d.Seconds()*1000)/1000)
	case d < 10*time.Minute:
		return fmt.Sprintf("%g s", math.Round(d.Seconds()*10)/10)
	case d < 3*time.Hour:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	case d < 4*24*time.Hour:
		return fmt.Sprintf("%g hours", math.Round(d.Hours()*10)/10)
	default:
		return fmt.Sprintf("%g days", math.Round(d.Hours()/2.4)/10)
	}
}

// thousands writes a count with a comma at each thousand.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// headings are those of the table, here and in the report.
func headings() []string {
	return []string{"policy", "attained %", "TTFT %", "TPOT %", "replica-h", "x oracle", "TTFT p50", "p95", "p99 s", "actions", "reversals", "starts"}
}

// cells returns a line in words, under headings.
func (l *line) cells() []string {
	s := &l.summary
	return []string{
		l.name, s.attainedText(), percent(s.ttft.Mean), percent(s.tpot.Mean), s.hours.text("%.2f", 1), s.ratioText(),
		seconds(s.p50), seconds(s.p95), seconds(s.p99), count(s.actions), count(s.reversals), count(s.starts),
	}
}

// table prints the comparison.
func (c *comparison) table(out io.Writer) {
	printLines(out, c.introduction())
	fmt.Fprint(out, "\n")
	lines := aligned(headings(), each(c.lines, (*line).cells))
	color.New(color.Bold).Fprint(out, lines[0])
	fmt.Fprint(out, "\n")
	attained := true
	if c.lines[0].summary.attains {
		fmt.Fprintf(out, "-- attain %s %%, the cheapest first --\n", goal(c.alpha))
	}
	for i, l := range c.lines {
		if attained && !l.summary.attains {
			attained = false
			fmt.Fprintf(out, "-- do not attain %s %%, the best first --\n", goal(c.alpha))
		}
		paint := color.New(color.Reset)
		if l.sort != ofPolicy {
			paint = color.New(color.Faint)
		}
		paint.Fprint(out, lines[i+1])
		fmt.Fprint(out, "\n")
	}
	fmt.Fprint(out, "\n")
	printLines(out, c.legend())
	c.certaintyTable(out)
	c.changesTable(out)
	c.sectionTables(out)
	c.fidelityTable(out)
}

// each returns what a function makes of every one.
func each[T, R any](all []T, of func(T) R) []R {
	made := make([]R, 0, len(all))
	for _, x := range all {
		made = append(made, of(x))
	}
	return made
}

// printLines prints texts, one a line.
func printLines(out io.Writer, texts []string) {
	for _, text := range texts {
		fmt.Fprintf(out, "%s\n", text)
	}
}

// aligned returns headings and rows with columns of one width, the first to the left and the others to the right.
func aligned(headings []string, rows [][]string) []string {
	rows = append([][]string{each(headings, strings.ToUpper)}, rows...)
	widths := make([]int, len(headings))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// introduction says what was run.
func (c *comparison) introduction() []string {
	w := c.world
	t := &w.Types[0]
	scale := ""
	if w.rateScale != 1 {
		scale = fmt.Sprintf(", at %g times the recorded rate", w.rateScale)
	}
	start := fmt.Sprintf("a cold start of %s", inWords(t.Startup.Load.Median))
	if t.Startup.Load.Sigma > 0 {
		start = fmt.Sprintf("cold starts around %s with a heavy tail", inWords(w.coldStart()))
	}
	requests := c.lines[0].results[0].Requests
	lines := []string{
		fmt.Sprintf("%s: %s requests in %s%s.", w.title, thousands(requests), inWords(w.Workload.Duration()), scale),
		fmt.Sprintf("%d to %d replicas of %s, %d at the beginning, %s; decided every %s on metrics scraped every %s.",
			w.bounds.Min, w.bounds.Max, t.Server.Name, t.Initial, start, inWords(w.Control.Interval), inWords(w.Scrape.Interval)),
		fmt.Sprintf("SLO: TTFT %s and TPOT %s, for %s %% of the requests.", inWords(w.SLO.TTFT), inWords(w.SLO.TPOT), goal(c.alpha)),
	}
	if c.noCapacity == "" {
		lines[2] += fmt.Sprintf(" So a replica takes %.2f requests/s, and the demand is %d to %d replicas.",
			c.capacity.PerSecond, slices.Min(c.demand[0][:max(1, len(c.demand[0])-1)]), slices.Max(c.demand[0])) // the last slot may be cut
	}
	if c.seeds > 1 {
		lines = append(lines, fmt.Sprintf("Means over seeds 1 to %d, ± half a 95 %% confidence interval; all policies meet the same requests.", c.seeds))
	}
	return append(append(lines, w.notes...), c.warnings()...)
}

// warnings say what is missing.
func (c *comparison) warnings() (lines []string) {
	switch {
	case c.noCapacity != "":
		lines = append(lines, "Warning: no demand and no oracle, as a replica has no capacity: "+c.noCapacity)
	case slices.Max(c.demand[0]) > c.world.bounds.Max && !c.lines[0].summary.attains: // the lines begin with one that attains alpha, if any does
		lines = append(lines, fmt.Sprintf("Warning: the demand goes up to %d replicas, beyond -max %d: no fleet may be enough.", slices.Max(c.demand[0]), c.world.bounds.Max))
	}
	refused := int64(0)
	for _, l := range c.lines {
		refused = max(refused, l.results[0].Refused)
	}
	if refused > 0 {
		lines = append(lines, fmt.Sprintf("Warning: %s of %s requests are refused, and miss the SLO: "+
			"prompt and answer do not fit into a replica's KV cache, %s tokens.", thousands(refused), thousands(c.lines[0].results[0].Requests), thousands(c.world.Types[0].Server.KVTokens)))
	}
	if c.unattainable != "" {
		lines = append(lines, "Warning: no oracle: "+c.unattainable)
	}
	if c.noKinds != "" {
		lines = append(lines, "Warning: no comparison of two kinds of replicas: "+c.noKinds)
	}
	if c.apart != nil && c.apart.least == [2]int32{} {
		lines = append(lines, fmt.Sprintf("Warning: prefill and decode apart attain %s %% with no counts up to -max %d each.", goal(c.alpha), c.world.bounds.Max))
	}
	return lines
}

// legend says how to read the table.
func (c *comparison) legend() []string {
	legend := []string{
		fmt.Sprintf("x oracle: replica-hours over those of the replay oracle, a schedule made with foresight that attains %s %%.", goal(c.alpha)),
		"In parentheses where a policy does not attain that itself: less service is cheap at any price.",
		"replica-h: from the request for a replica until it is gone. Reversals: changes within 10 minutes of one the other way.",
	}
	var ahead []string
	for _, l := range c.lines {
		if l.summary.ahead {
			ahead = append(ahead, l.name)
		}
	}
	if len(ahead) > 0 {
		legend = append(legend, fmt.Sprintf("No ratio for %s: ready from the beginning, and cheaper than the oracle, which begins with the %d replicas that policies begin with.",
			strings.Join(ahead, ", "), c.world.Types[0].Initial))
	}
	if text := unfinished(c.lines); text != "" {
		legend = append(legend, text)
	}
	return legend
}

// unfinished says what share of the requests the runs of some lines ended on, and what that means for their times.
func unfinished(lines []*line) string {
	var shares []string
	for _, l := range lines {
		if share := 100 * l.summary.unfinished; share > 0 {
			shares = append(shares, fmt.Sprintf("%s %% of %s", strconv.FormatFloat(share, 'g', 2, 64), l.name))
		}
	}
	if len(shares) == 0 {
		return ""
	}
	return fmt.Sprintf("Requests not finished at the end: %s. Without a first token they count with the time that they waited, the least that it can be.",
		strings.Join(shares, ", "))
}

// fidelityTable prints whether the simulator meets the published figures.
func (c *comparison) fidelityTable(out io.Writer) {
	if len(c.fidelity) == 0 {
		return
	}
	fmt.Fprintf(out, "\nFidelity: llm-d's control law in this scenario, %d seeds; published: %.1f %% at %.2f replicas on average.\n",
		fidelitySeeds, 100*publishedAttainment, publishedReplicas)
	for _, f := range c.fidelity {
		paint, verdict := color.New(color.FgGreen), f.verdict()
		if !f.Pass {
			paint = color.New(color.FgRed, color.Bold)
		}
		if f.Variant {
			paint, verdict = color.New(color.Reset), verdict+", a variant for comparison"
		}
		fmt.Fprintf(out, "  %-28s  %s %%  %s replicas  ", f.Server, f.Attained.text("%.1f", 100), f.Replicas.text("%.2f", 1))
		paint.Fprint(out, verdict)
		fmt.Fprint(out, "\n")
	}
	fmt.Fprintf(out, "  Within %.0f points and %.0f %% is PASS.\n", 100*withinAttainment, 100*withinReplicas)
}
