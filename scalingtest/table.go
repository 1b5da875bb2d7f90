package scalingtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/inferscale/inferscale/scaling"
)

// table prints a run, one line per decision. Of more than two equal lines the first and the last are printed, and of a long
// table the beginning and the end.
func table(moments []moment) string {
	rows := make([][]string, 0, len(moments)+1)
	rows = append(rows, []string{"at", "spec", "ready", "readings", "verdict", "count", "reason"})
	for i := range moments {
		rows = append(rows, row(&moments[i]))
	}
	var widths [7]int
	for _, cells := range rows {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var lines []string
	for i := 0; i < len(rows); i++ {
		if n := alike(rows[i:]); n > 2 {
			lines = append(lines, rowText(rows[i], widths), fmt.Sprintf("  ... %d more like these", n-2))
			i += n - 1
		}
		lines = append(lines, rowText(rows[i], widths))
	}
	const first, last = 12, 20
	if n := len(lines) - first - last; n > 1 {
		lines = slices.Concat(lines[:first], []string{fmt.Sprintf("  ... %d more lines", n)}, lines[first+n:])
	}
	return strings.Join(lines, "\n") + "\n"
}

func rowText(cells []string, widths [7]int) string {
	var line strings.Builder
	for i, c := range cells {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if i < 3 { // numbers
			line.WriteString("  " + pad + c)
		} else {
			line.WriteString("  " + c + pad)
		}
	}
	return strings.TrimRight(line.String(), " ")
}

// alike returns how many of the first rows differ only in the time and in the numbers of the reason.
func alike(rows [][]string) int {
	n := 1
	for n < len(rows) && same(rows[0], rows[n]) {
		n++
	}
	return n
}

func same(a, b []string) bool {
	return slices.Equal(a[1:6], b[1:6]) && firstWord(a[6]) == firstWord(b[6])
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

func row(m *moment) []string {
	var remarks []string
	for _, r := range []struct {
		on   bool
		text string
	}{
		{m.restarted, "restarted"},
		{m.back, "the clock went back"},
		{m.scaled, "scaled by someone else"},
		{m.refused, "write refused"},
	} {
		if r.on {
			remarks = append(remarks, r.text)
		}
	}
	_, reason, _ := strings.Cut(m.d.Reason(), ": ")
	count := countText(&m.d)
	if m.answers != nil {
		reason = strings.TrimPrefix(reason+groupText(m), "; ")
		count = list(m.targets(), " + ", func(d scaling.Decision) string { return countText(&d) })
	}
	if len(remarks) > 0 {
		reason += "  (" + strings.Join(remarks, ", ") + ")"
	}
	verdict := m.d.Verdict.String()
	if m.asked {
		verdict, count, reason = "none", "", "it gives no answer"
	}
	return []string{
		m.elapsed.String(), countsText(m, func(t *scaling.TargetObservation) int32 { return t.SpecReplicas }),
		countsText(m, func(t *scaling.TargetObservation) int32 { return t.ReadyReplicas }),
		readingsText(m), verdict, count, reason,
	}
}

func countText(d *scaling.Decision) string {
	if d.Replicas != d.From {
		return fmt.Sprintf("%d -> %d", d.From, d.Replicas)
	}
	return strconv.Itoa(int(d.From))
}

// countsText prints the counts of the targets as 2 + 3; a missing target has none.
func countsText(m *moment, count func(t *scaling.TargetObservation) int32) string {
	return list(m.obs.Targets, " + ", func(t scaling.TargetObservation) string {
		if t.Missing {
			return "none"
		}
		return strconv.Itoa(int(count(&t)))
	})
}

// groupText prints the reason of each target.
func groupText(m *moment) (text string) {
	for i := range m.obs.Targets {
		_, reason, _ := strings.Cut(m.answers[i].Reason(), ": ")
		text += "; " + m.obs.Targets[i].Name + ": " + reason
	}
	return text
}

// readingsText prints readings as queue=12 or queue=9..14, with their special properties, and the values of pods.
func readingsText(m *moment) string {
	texts := make([]string, 0, len(m.obs.Readings))
	for _, r := range m.obs.Readings {
		text := r.Metric + "=" + number(r.Lower)
		if r.Lower != r.Upper {
			text += ".." + number(r.Upper)
		}
		if r.Values < 1 {
			text += " without a value"
		}
		if !r.At.IsZero() {
			text += " of " + m.now.Sub(r.At).String() + " ago"
		}
		texts = append(texts, text)
	}
	for i := range m.obs.Histograms {
		texts = append(texts, histogramText(&m.obs.Histograms[i]))
	}
	for i := range m.obs.Targets {
		t := &m.obs.Targets[i]
		rows := list(t.Pods, ", ", func(p scaling.PodObservation) string { return list(p.Values, " ", number) })
		if len(t.Pods) > 0 && len(m.obs.Readings) > 0 {
			texts = append(texts, t.Name+"["+rows+"]")
		}
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// differ returns what differs in the second of two decisions, with all times later by a shift; empty if nothing differs.
func differ(a, b *scaling.Decision, later func(d *scaling.Decision) bool) string {
	switch {
	case a.Verdict != b.Verdict || a.From != b.From || a.Replicas != b.Replicas:
		return fmt.Sprintf("%s %d -> %d became %s %d -> %d", a.Verdict, a.From, a.Replicas, b.Verdict, b.From, b.Replicas)
	case !later(b):
		return fmt.Sprintf("Next %s became %s", a.Next, b.Next)
	}
	if before, after := a.Explain(), b.Explain(); before != after {
		return "the explanation\n" + before + "became\n" + after
	}
	return ""
}

// each compares two moments decision by decision.
func each(compare func(a, b *scaling.Decision) string) func(m, n *moment) string {
	return func(m, n *moment) string {
		after := n.all()
		for i, a := range m.all() {
			if what := compare(&a, &after[i]); what != "" {
				return what
			}
		}
		return ""
	}
}

// different compares decisions exactly, to the last bit of every number.
func different(a, b *scaling.Decision) string {
	before, after := a.Steps(), b.Steps()
	next := func(b *scaling.Decision) bool { return a.Next.Equal(b.Next) }
	if a.Verdict == b.Verdict && a.From == b.From && a.Replicas == b.Replicas && next(b) && slices.EqualFunc(before, after, sameStep) {
		return ""
	}
	if text := differ(a, b, next); text != "" {
		return text
	}
	return fmt.Sprintf("the steps\n%+v\nbecame\n%+v", before, after)
}

func sameStep(a, b scaling.Step) bool {
	for i := range a.Numbers {
		if !sameBits(a.Numbers[i], b.Numbers[i]) {
			return false
		}
	}
	clear(a.Numbers[:]) // NaN is not equal to itself
	clear(b.Numbers[:])
	return a == b
}
