package scalingtest

import (
	"fmt"
	"go/format"
	"math"
	"reflect"
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
	if len(e.Specs) == 0 {
		fmt.Fprintf(&b, "\t\tSpec: %d,\n", e.Spec)
	}
	for _, field := range []struct {
		name  string
		value any
	}{{"Specs", e.Specs}, {"Startup", e.Startup}, {"Shift", e.Shift}, {"Loads", e.Loads}, {"Changes", e.Changes}} {
		if text := source(field.value); text != "" {
			fmt.Fprintf(&b, "\t\t%s: %s,\n", field.name, text)
		}
	}
	b.WriteString("\t\tTicks: []scalingtest.Tick{\n")
	for _, t := range merged(e.Ticks) {
		if t.Times == 1 {
			t.Times = 0
		}
		if !slices.ContainsFunc(t.Targets, func(target TargetTick) bool { return element(reflect.ValueOf(target)) != "{}" }) {
			t.Targets = nil
		}
		fmt.Fprintf(&b, "\t\t\t%s,\n", element(reflect.ValueOf(t)))
	}
	b.WriteString("\t\t},\n\t})\n}\n")
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		return b.String() // NewPolicy is not an expression: show it as it is
	}
	return string(text)
}

// merged returns the ticks with consecutive equal ones merged.
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

// repeats reports whether a tick repeats the one before. Scaling by someone else and a restart happen only at the first.
func repeats(before, t *Tick) bool {
	return !t.Spec.Set && !t.Restart && t.After == before.After && t.NotReady == before.NotReady && t.Refuse == before.Refuse &&
		slices.EqualFunc(before.Readings, t.Readings, sameReading) && slices.EqualFunc(before.Counted, t.Counted, sameCounting) && slices.EqualFunc(before.Targets, t.Targets, func(a, b TargetTick) bool {
		return !b.Spec.Set && a.NotReady == b.NotReady && a.Missing == b.Missing && a.Refuse == b.Refuse &&
			slices.EqualFunc(a.Pods, b.Pods, func(x, y []float64) bool { return slices.EqualFunc(x, y, sameBits) })
	})
}

// optionsSource writes the options that are needed to check this episode.
func optionsSource(p *property, o *Options, e *Episode) string {
	start, memory, size := "", "", ""
	if !o.Start.Equal(Start()) {
		start = source(o.Start)
	}
	if p.name == "BoundedState" {
		memory, size = source(o.Memory), source(o.MaxState)
	}
	cooldown, convergence, twin, metrics := "", "", "", ""
	switch p.name {
	case "MissingNeverActs":
		metrics = source(slices.DeleteFunc(slices.Clone(o.Metrics), func(m Metric) bool { return !m.UpOnly }))
	case "Cooldown", "CooldownEnds", "ClockBackEnds":
		cooldown = "&scalingtest.Cooldown" + element(reflect.ValueOf(*o.Cooldown))
	case "Convergence":
		want := ""
		if o.Convergence.Want != nil {
			least, most := o.Convergence.Want(e.Loads)
			want = fmt.Sprintf("func([]scalingtest.Load) (least, most int32) { return %d, %d }", least, most)
		}
		convergence = "&scalingtest.Convergence" + fields("Within", source(o.Convergence.Within), "Want", want)
	case "Twin":
		twin = "newTwin"
	}
	return "scalingtest.Options" + fields("Metrics", metrics, "Bounds", source(o.Bounds), "Targets", source(o.Targets), "Start", start, "Memory", memory, "MaxState", size,
		"ActsWithoutData", source(o.ActsWithoutData), "Windows", source(o.Windows && p.name == "MissingNeverActs"),
		"Lapses", source(o.Lapses && p.name == "MissingNeverActs"), "Cooldown", cooldown, "Convergence", convergence, "Twin", twin)
}

// fields writes a composite literal of names and values, without empty values.
func fields(pairs ...string) string {
	var set []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			set = append(set, pairs[i]+": "+pairs[i+1])
		}
	}
	return "{" + strings.Join(set, ", ") + "}"
}

// source writes a value as Go source, empty for a zero value. Elements are without their types, and structs without zero
// fields.
func source(v any) string { return typed(reflect.ValueOf(v)) }

func typed(v reflect.Value) string {
	text := literal(v)
	if v.Kind() == reflect.Slice && text != "" {
		text = v.Type().String() + text
	}
	return text
}

func literal(v reflect.Value) string {
	if v.CanFloat() {
		return floatSource(v.Float())
	}
	if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return ""
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return durationSource(x)
	case time.Time:
		return timeSource(x)
	case scaling.Bounds:
		return fmt.Sprintf("scaling.Bounds{Min: %d, Max: %d}", x.Min, x.Max)
	case Count:
		return fmt.Sprintf("scalingtest.CountOf(%d)", x.N)
	case string:
		return strconv.Quote(x)
	}
	var parts []string
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if text := typed(v.Field(i)); text != "" {
				parts = append(parts, v.Type().Field(i).Name+": "+text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, element(v.Index(i)))
		}
	default: // int, int32, bool
		return fmt.Sprint(v.Interface())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// element writes a value that must be written even if it is zero.
func element(v reflect.Value) string {
	switch text := literal(v); {
	case text != "":
		return text
	case v.CanFloat() || v.CanInt():
		return "0"
	}
	return "{}"
}

func list[T any](all []T, separator string, text func(T) string) string {
	texts := make([]string, 0, len(all))
	for _, v := range all {
		texts = append(texts, text(v))
	}
	return strings.Join(texts, separator)
}

func durationSource(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}} {
		if d%u.unit == 0 {
			return fmt.Sprintf("%d * time.%s", d/u.unit, u.name)
		}
	}
	return strconv.FormatInt(int64(d), 10)
}

func timeSource(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("time.Date(%d, %d, %d, %d, %d, %d, %d, time.UTC)", t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond())
}

// floatSource writes a number exactly; 0 is left out, -0 is not.
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
