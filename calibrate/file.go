package calibrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// Format is the first line of a file with a server, and its version.
const Format = "inferscale.server/v1"

// largest is the largest such file.
const largest = 64 << 10

// Text returns the document as a file, in the form that [Read] reads:
//
//	format: inferscale.server/v1
//	name: "Qwen3-32B on 2 H100"
//	base: {value: 0.014, lower: 0.0139, upper: 0.0141, source: measured}
//
// Times are in seconds. The upper end of an unlimited interval is left out.
func (d *Document) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A server for simulate -server: the time of a step is base + prefillToken * prompt tokens + sequence * sequences\n"+
		"# + kvToken * tokens in the KV cache, in seconds. A number alone, as in maxSeqs: 256, is taken as given.\n")
	fmt.Fprintf(&b, "format: %s\nname: %s\n", Format, strconv.Quote(d.Name))
	for _, f := range d.fields() {
		fmt.Fprintf(&b, "%s: {value: %s", f.name, number(f.Value))
		if f.Lower != f.Value || f.Upper != f.Value {
			fmt.Fprintf(&b, ", lower: %s", number(f.Lower))
			if !math.IsInf(f.Upper, 1) {
				fmt.Fprintf(&b, ", upper: %s", number(f.Upper))
			}
		}
		fmt.Fprintf(&b, ", source: %s", f.Source)
		if f.Unknown != "" {
			fmt.Fprintf(&b, ", unknown: %s", strconv.Quote(f.Unknown))
		}
		b.WriteString("}\n")
	}
	if s := d.Startup; s != nil {
		fmt.Fprintf(&b, "startup: {starts: %d", s.Starts)
		for _, t := range s.times() {
			fmt.Fprintf(&b, ", %s: %s", t.name, number(t.Seconds()))
		}
		fmt.Fprintf(&b, ", source: %s}\n", s.Source)
	}
	return b.Bytes()
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// A moment of a Startup with its name.
type named struct {
	name string
	*time.Duration
}

func (s *Startup) times() []named {
	return []named{{"p50", &s.P50}, {"p90", &s.P90}, {"p99", &s.P99}, {"max", &s.Max}, {"p50Lower", &s.P50Lower}, {"p50Upper", &s.P50Upper}}
}

// Read reads a file with a server, strictly: a field that is unknown, repeated, of another type or out of its range is an
// error, and so is a missing parameter. All errors are returned at once, each as "file:line: field: value: rule" (without
// the line if the field is missing), and are scaling.FieldErrors.
func Read(data []byte, file string) (Document, error) {
	if len(data) > largest {
		return Document{}, fmt.Errorf("%s: %w", file, &scaling.FieldError{Field: "length", Value: len(data), Rule: fmt.Sprintf("must be at most %d bytes", largest)})
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return Document{}, fmt.Errorf("%s: is empty", file)
	case err != nil:
		return Document{}, fmt.Errorf("%s: %w", file, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return Document{}, fmt.Errorf("%s: must have one document", file)
	}
	r := reader{file: file}
	var d Document
	top := r.mapping(root.Content[0], "")
	if format := top["format"]; format == nil || format.Value != Format {
		return Document{}, fmt.Errorf("%s: %w", file, &scaling.FieldError{Field: "format", Value: shown(format), Rule: "must be " + Format})
	}
	known := []string{"format", "name", "startup"}
	d.Name = r.text(top["name"], "name")
	for _, f := range d.fields() {
		known = append(known, f.name)
		r.estimate(top[f.name], f)
	}
	if n := top["startup"]; n != nil {
		d.Startup = r.startup(n)
	}
	r.only(top, "", known...)
	if r.errs == nil {
		if err := d.Validate(); err != nil {
			r.errs = append(r.errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	if r.errs != nil {
		return Document{}, errors.Join(r.errs...)
	}
	return d, nil
}

// A reader collects errors.
type reader struct {
	file string
	errs []error
}

func (r *reader) wrong(n *yaml.Node, field, rule string) {
	place := r.file
	if n != nil {
		place = fmt.Sprintf("%s:%d", r.file, n.Line)
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %w", place, &scaling.FieldError{Field: field, Value: shown(n), Rule: rule}))
}

// shown returns the text of a node in an error.
func shown(n *yaml.Node) printable.Plain {
	switch {
	case n == nil:
		return "not there"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	return printable.Plain(printable.Cut(n.Value, mostShown))
}

func (r *reader) mapping(n *yaml.Node, field string) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, strings.TrimSuffix(field, "."), "must be a mapping")
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			r.wrong(key, field+"key", "must be text")
			continue
		}
		if _, twice := out[key.Value]; twice {
			r.wrong(key, field+key.Value, "must be there once")
		}
		out[key.Value] = n.Content[i+1]
	}
	return out
}

// only refuses unknown fields, in their order in the file.
func (r *reader) only(m map[string]*yaml.Node, field string, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, name) {
			r.wrong(m[name], field+name, "must be one of "+strings.Join(known, ", "))
		}
	}
}

func (r *reader) text(n *yaml.Node, field string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.wrong(n, field, "must be text")
		return ""
	}
	return n.Value
}

func (r *reader) number(n *yaml.Node, field string) (float64, bool) {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		r.wrong(n, field, "must be a number")
		return 0, false
	}
	x, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		r.wrong(n, field, "must be a number")
		return 0, false
	}
	return x, true
}

func (r *reader) source(n *yaml.Node, field string) Source {
	s := Source(r.text(n, field))
	if !slices.Contains(sources(), s) {
		r.wrong(n, field, "must be measured, benchmark, roofline, given or assumed")
	}
	return s
}

func (r *reader) estimate(n *yaml.Node, f field) {
	switch {
	case n == nil:
		r.wrong(n, f.name, "must be there")
	case n.Kind == yaml.ScalarNode:
		f.Value, _ = r.number(n, f.name)
		f.Lower, f.Upper, f.Source = f.Value, f.Value, Given
	default:
		m := r.mapping(n, f.name+".")
		if n.Kind != yaml.MappingNode {
			return
		}
		r.only(m, f.name+".", "value", "lower", "upper", "source", "unknown")
		f.Value, _ = r.number(m["value"], f.name+".value")
		f.Lower, f.Upper = f.Value, f.Value
		low, high := m["lower"], m["upper"]
		if low != nil {
			f.Upper = math.Inf(1)
			f.Lower, _ = r.number(low, f.name+".lower")
		}
		if high != nil {
			if low == nil {
				f.Lower = 0
			}
			f.Upper, _ = r.number(high, f.name+".upper")
		}
		f.Source = r.source(m["source"], f.name+".source")
		f.Unknown = r.text(m["unknown"], f.name+".unknown")
	}
}

func (r *reader) startup(n *yaml.Node) *Startup {
	s := &Startup{}
	m := r.mapping(n, "startup.")
	known := []string{"starts", "source"}
	if starts, ok := r.number(m["starts"], "startup.starts"); ok {
		if starts != math.Round(starts) || starts < 1 || starts > 1e9 {
			r.wrong(m["starts"], "startup.starts", "must be whole, and at least 1")
		}
		s.Starts = int(min(max(starts, 0), 1e9))
	}
	for _, t := range s.times() {
		known = append(known, t.name)
		x, ok := r.number(m[t.name], "startup."+t.name)
		if ok && !(x >= 0 && x <= 1e6) {
			r.wrong(m[t.name], "startup."+t.name, "must be seconds, at most 1000000")
		}
		*t.Duration = time.Duration(math.Round(min(max(x, 0), 1e6) * 1e9))
	}
	s.Source = r.source(m["source"], "startup.source")
	r.only(m, "startup.", known...)
	return s
}
