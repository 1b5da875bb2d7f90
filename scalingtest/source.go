package scalingtest

import (
	"fmt"
	"go/format"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// pasteable returns the Go test that plays an episode again.
func pasteable(p *property, o *Options, e *Episode) string {
	var b strings.Builder
	fmt.Fprintf(&b, "func TestRegression%s(t *testing.T) {\n", p.name)
	replay := "Replay"
	if len(o.Targets) > 0 {
		replay = "ReplayGroup"
	}
	fmt.Fprintf(&b, "\tscalingtest.%s(t, %s, %s, %q, scalingtest.Episode{\n", replay, o.NewPolicy, optionsSource(p, o, e), p.name)
	if len(e.Specs) > 0 {
		fmt.Fprintf(&b, "\t\tSpecs: []int32{%s},\n", list(e.Specs, func(n int32) string { return strconv.Itoa(int(n)) }))
	} else {
		fmt.Fprintf(&b, "\t\tSpec: %d,\n", e.Spec)
	}
	if e.Startup != 0 {
		fmt.Fprintf(&b, "\t\tStartup: %s,\n", durationSource(e.Startup))
	}
	if e.Shift != 0 {
		fmt.Fprintf(&b, "\t\tShift: %s,\n", durationSource(e.Shift))
	}
	if len(e.Loads) > 0 {
		fmt.Fprintf(&b, "\t\tLoads: []scalingtest.Load{%s},\n", list(e.Loads, func(l Load) string {
			return fields("Metric", strconv.Quote(l.Metric), "Sum", floatSource(l.Sum), "Whole", boolSource(l.Whole))
		}))
	}
	if len(e.Changes) > 0 {
		fmt.Fprintf(&b, "\t\tChanges: []scalingtest.Change{%s},\n", list(e.Changes, func(c Change) string {
			return fields("Tick", intSource(c.Tick), "Metric", strconv.Quote(c.Metric), "Lower", floatSource(c.Lower), "Upper", floatSource(c.Upper),
				"Gone", boolSource(c.Gone), "Pods", intSource(int(c.Pods)))
		}))
	}
	b.WriteString("\t\tTicks: []scalingtest.Tick{\n")
	for _, t := range merged(e.Ticks) {
		fmt.Fprintf(&b, "\t\t\t%s,\n", tickSource(&t))
	}
	b.WriteString("\t\t},\n\t})\n}\n")
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		return b.String() // NewPolicy is no expression: show it as it is
	}
	return string(text)
}

// merged returns ticks with those that repeat the one before made one.
func merged(ticks []Tick) (all []Tick) {
	for _, t := range ticks {
		if n := len(all); n > 0 && repeats(&all[n-1], &t) {
			all[n-1].Times = max(1, all[n-1].Times) + max(1, t.Times)
		} else {
			all = append(all, t)
		}
	}
	return all
}

// repeats reports whether a tick is the one before once more. Another's scaling and a restart happen only at the first.
func repeats(before, t *Tick) bool {
	return !t.Spec.Set && !t.Restart && t.After == before.After && t.NotReady == before.NotReady && t.Refuse == before.Refuse &&
		slices.EqualFunc(before.Readings, t.Readings, sameReading) && slices.EqualFunc(before.Counted, t.Counted, sameCounting) && slices.EqualFunc(before.Targets, t.Targets, func(a, b TargetTick) bool {
		return !b.Spec.Set && a.NotReady == b.NotReady && a.Missing == b.Missing && a.Refuse == b.Refuse &&
			slices.EqualFunc(a.Pods, b.Pods, func(x, y []float64) bool { return slices.EqualFunc(x, y, sameBits) })
	})
}

func tickSource(t *Tick) string {
	readings, counted, targets := "", "", ""
	if len(t.Counted) > 0 {
		counted = "[]scalingtest.Counting{" + list(t.Counted, countingSource) + "}"
	}
	if len(t.Readings) > 0 {
		readings = "[]scaling.Reading{" + list(t.Readings, readingSource) + "}"
	}
	if all := list(t.Targets, targetSource); strings.Trim(all, "{}, ") != "" {
		targets = "[]scalingtest.TargetTick{" + all + "}"
	}
	times := t.Times
	if times == 1 {
		times = 0
	}
	return fields("After", durationSource(t.After), "Times", intSource(times), "Spec", countSource(t.Spec), "NotReady", intSource(int(t.NotReady)),
		"Readings", readings, "Counted", counted, "Refuse", boolSource(t.Refuse), "Restart", boolSource(t.Restart), "Targets", targets)
}

func targetSource(t TargetTick) string {
	rows := ""
	if len(t.Pods) > 0 {
		rows = "[][]float64{" + list(t.Pods, func(row []float64) string {
			return "{" + list(row, func(v float64) string {
				if text := floatSource(v); text != "" {
					return text
				}
				return "0"
			}) + "}"
		}) + "}"
	}
	return fields("Spec", countSource(t.Spec), "NotReady", intSource(int(t.NotReady)), "Missing", boolSource(t.Missing),
		"Refuse", boolSource(t.Refuse), "Pods", rows)
}

func countSource(c Count) string {
	if !c.Set {
		return ""
	}
	return fmt.Sprintf("scalingtest.CountOf(%d)", c.N)
}

func readingSource(r scaling.Reading) string {
	at := ""
	if !r.At.IsZero() {
		at = timeSource(r.At)
	}
	return fields("Metric", strconv.Quote(r.Metric), "Lower", floatSource(r.Lower), "Upper", floatSource(r.Upper),
		"Values", intSource(int(r.Values)), "NotReady", intSource(int(r.NotReady)), "Failed", intSource(int(r.Failed)),
		"Reused", intSource(int(r.Reused)), "At", at, "Unschedulable", intSource(int(r.Unschedulable)),
		"Crashing", intSource(int(r.Crashing)), "Stuck", intSource(int(r.Stuck)))
}

// optionsSource writes those of the options that checking this episode needs.
func optionsSource(p *property, o *Options, e *Episode) string {
	start, memory, size := "", "", ""
	if !o.Start.Equal(Start()) {
		start = timeSource(o.Start)
	}
	bounds, targets := boundsSource(o.Bounds), ""
	if len(o.Targets) > 0 {
		targets = "[]scalingtest.Target{" + list(o.Targets, func(t Target) string {
			name := ""
			if t.Name != "" {
				name = strconv.Quote(t.Name)
			}
			return fields("Name", name, "Bounds", boundsSource(t.Bounds))
		}) + "}"
	}
	if p.name == "BoundedState" {
		memory, size = durationSource(o.Memory), intSource(o.MaxState)
	}
	cooldown, convergence, twin := "", "", ""
	switch p.name {
	case "Cooldown", "CooldownEnds":
		cooldown = "&scalingtest.Cooldown" + fields("Up", durationSource(o.Cooldown.Up), "Down", durationSource(o.Cooldown.Down),
			"PerDirection", boolSource(o.Cooldown.PerDirection))
	case "Convergence":
		want := ""
		if o.Convergence.Want != nil {
			least, most := o.Convergence.Want(e.Loads)
			want = fmt.Sprintf("func([]scalingtest.Load) (least, most int32) { return %d, %d }", least, most)
		}
		convergence = "&scalingtest.Convergence" + fields("Within", intSource(o.Convergence.Within), "Want", want)
	case "Twin":
		twin = "newTwin"
	}
	return "scalingtest.Options" + fields("Bounds", bounds, "Targets", targets, "Start", start, "Memory", memory, "MaxState", size,
		"ActsWithoutData", boolSource(o.ActsWithoutData), "Windows", boolSource(o.Windows && p.name == "MissingNeverActs"),
		"Lapses", boolSource(o.Lapses && p.name == "MissingNeverActs"), "Cooldown", cooldown, "Convergence", convergence, "Twin", twin)
}

func boundsSource(b scaling.Bounds) string {
	if b == (scaling.Bounds{}) {
		return ""
	}
	return fmt.Sprintf("scaling.Bounds{Min: %d, Max: %d}", b.Min, b.Max)
}

// fields writes a composite literal of names and values, without those whose value is empty.
func fields(pairs ...string) string {
	var set []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			set = append(set, pairs[i]+": "+pairs[i+1])
		}
	}
	return "{" + strings.Join(set, ", ") + "}"
}

func list[T any](all []T, source func(T) string) string {
	texts := make([]string, 0, len(all))
	for _, v := range all {
		texts = append(texts, source(v))
	}
	return strings.Join(texts, ", ")
}

func boolSource(v bool) string {
	if v {
		return "true"
	}
	return ""
}

func intSource(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func durationSource(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}} {
		if d != 0 && d%u.unit == 0 {
			return fmt.Sprintf("%d * time.%s", d/u.unit, u.name)
		}
	}
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(int64(d), 10)
}

func timeSource(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("time.Date(%d, %d, %d, %d, %d, %d, %d, time.UTC)", t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond())
}

// floatSource writes a number to the last bit; 0 is left out, -0 is not.
func floatSource(v float64) string {
	switch {
	case math.IsNaN(v):
		return "math.NaN()"
	case math.IsInf(v, 1):
		return "math.Inf(1)"
	case math.IsInf(v, -1):
		return "math.Inf(-1)"
	case v == 0 && math.Signbit(v):
		return "math.Copysign(0, -1)"
	case v == 0:
		return ""
	}
	return number(v)
}

func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
