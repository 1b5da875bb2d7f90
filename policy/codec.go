package policy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
)

// A member is a field of a struct and its name in the document.
type member struct {
	name     string
	index    []int
	required bool
}

// members returns the fields of a struct, with those of embedded structs. As with an API server, a field is required unless
// it has omitempty.
func members(t reflect.Type) []member {
	var all []member
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && f.IsExported() {
			all = append(all, member{name, f.Index, options != "omitempty"})
		}
	}
	return all
}

// optional reports whether a field may be left out of a document that is not an LLMAutoScaler. Such a document has no target,
// its bounds can come from its reader, and profiles have default metrics.
func optional(name string) bool {
	return name == "scaleTargetRef" || name == maximum || name == "metrics"
}

// maximum is the name of the field that bounds a count. A document that has it bounds the count, whatever its value.
const maximum = "maxReplicas"

// into decodes a node; to is a pointer to the result.
func (r *reader) into(n *yaml.Node, to any, field string) {
	r.decode(n, reflect.ValueOf(to).Elem(), field)
}

// decode decodes a node into v. If the node cannot be read, v keeps its value.
func (r *reader) decode(n *yaml.Node, v reflect.Value, field string) {
	switch t := v.Type(); {
	case t == reflect.TypeFor[yaml.Node]():
		v.Set(reflect.ValueOf(*n))
	case t == reflect.TypeFor[Decimal]():
		r.decimal(n, v, field)
	case t == reflect.TypeFor[PortNumber]():
		port, ok := portOf(n.Value)
		if n.Kind == yaml.ScalarNode && octal(n) {
			r.wrong(n, field, octalRule)
			return
		}
		if n.Kind != yaml.ScalarNode || !ok {
			r.wrong(n, field, "must be the number of a port")
			return
		}
		v.Set(reflect.ValueOf(NewPortNumber(port)))
	case t == reflect.TypeFor[Policy]():
		v.Set(reflect.ValueOf(r.policy(n, field)))
	case t == reflect.TypeFor[ServerDocument]():
		if !r.is(n, yaml.MappingNode, field, "must be a mapping, as simulate -write-server writes it") {
			return
		}
		if octalWithin(n) {
			r.wrong(n, field, "must have no number that begins with 0, as YAML counts by eights then")
			return
		}
		d := new(ServerDocument)
		if err := d.read(n); err != nil {
			r.wrong(n, field, "must be what JSON can have: keys that are text, each once, and finite numbers")
			return
		}
		v.Set(reflect.ValueOf(*d))
		r.placed(n, field)
	case t.Kind() == reflect.Pointer:
		p := reflect.New(t.Elem())
		before := len(r.errs)
		if r.decode(n, p.Elem(), field); p.Elem().Kind() != reflect.Struct && len(r.errs) > before {
			return // a wrong number stays unset: as 0 it could break other rules too
		}
		v.Set(p)
	case t == reflect.TypeFor[Shadow](): // an API server accepts any shadow that is written in full
		strict := r.strict
		r.strict = false
		r.structure(n, v, field)
		r.strict = strict
	case t.Kind() == reflect.Struct:
		r.structure(n, v, field)
	case t.Kind() == reflect.Slice:
		r.list(n, v, field)
	case t.Kind() == reflect.Map:
		r.labels(n, v, field)
	case n.Kind != yaml.ScalarNode:
		r.is(n, yaml.ScalarNode, field, "must be one value")
	default:
		r.scalar(n, v, field)
	}
}

// structure reads the fields that are given.
func (r *reader) structure(n *yaml.Node, v reflect.Value, field string) {
	if strings.Count(field, "highest[") > maxDepth {
		r.wrong(n, field, fmt.Sprintf("must not be more than %d scalers deep", maxDepth))
		return
	}
	fields := members(v.Type())
	known := make([]string, len(fields))
	for i, m := range fields {
		known[i] = m.name
	}
	given, ok := r.mapping(n, field, known)
	if !ok {
		return
	}
	for _, m := range fields {
		if node := given[m.name]; node != nil {
			to := v.FieldByIndex(m.index)
			before := len(r.errs)
			r.decode(node, to, join(field, m.name))
			if m.name == maximum && to.IsZero() && len(r.errs) == before { // in Go, 0 is no maximum
				r.wrong(node, join(field, m.name), "must be at least 1")
			}
			if r.strict && !m.required && to.Kind() == reflect.String && to.Len() == 0 && len(r.errs) == before {
				r.wrong(node, join(field, m.name), "must not be empty: an API server takes no empty text here")
			}
		} else if m.required && !r.partial && (r.strict || !optional(m.name)) {
			r.missing(n, join(field, m.name))
		} else if m.name == maximum && given["minReplicas"] != nil {
			r.report(r.lines[join(field, "minReplicas")], join(field, m.name), nil, beside)
		}
	}
}

func (r *reader) list(n *yaml.Node, v reflect.Value, field string) {
	items, ok := r.items(n, field)
	if !ok {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		r.decode(item, v.Index(i), r.item(item, field, i))
	}
}

// placed records the lines of a node that another reader decodes.
func (r *reader) placed(n *yaml.Node, field string) {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		path := join(field, printable.Cut(n.Content[i].Value, mostShown))
		r.lines[path] = n.Content[i].Line
		r.placed(n.Content[i+1], path)
	}
}

// labels reads a mapping of names to text.
func (r *reader) labels(n *yaml.Node, v reflect.Value, field string) {
	if !r.is(n, yaml.MappingNode, field, "must be a mapping; {} is an empty one") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := n.Content[i], n.Content[i+1]
		path := join(field, printable.Cut(key.Value, mostShown))
		r.lines[path] = key.Line
		value := reflect.New(v.Type().Elem()).Elem()
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			r.wrong(key, path, "must be text; numbers and the like need quotes")
		case v.MapIndex(reflect.ValueOf(key.Value)).IsValid():
			r.report(key.Line, path, shown(item), "must be given once")
		default:
			r.decode(item, value, path)
			v.SetMapIndex(reflect.ValueOf(key.Value), value)
		}
	}
}

const octalRule = "must not begin with 0, as YAML counts by eights then"

// octal reports whether a number without quotes begins with 0: an API server reads 010 as 8.
func octal(n *yaml.Node) bool {
	tag, digits := n.ShortTag(), n.Value
	if strings.HasPrefix(digits, "-") || strings.HasPrefix(digits, "+") {
		digits = digits[1:]
	}
	return (tag == "!!int" || tag == "!!float") && len(digits) > 1 && digits[0] == '0' && strings.IndexByte("0123456789_", digits[1]) >= 0
}

// octalWithin reports whether a node has such a number.
func octalWithin(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && octal(n) || slices.ContainsFunc(n.Content, octalWithin)
}

func (r *reader) scalar(n *yaml.Node, v reflect.Value, field string) {
	tag := n.ShortTag()
	if octal(n) && (v.Kind() != reflect.String || v.Type() == reflect.TypeFor[NumberOrName]()) {
		r.wrong(n, field, octalRule)
		return
	}
	switch v.Kind() {
	case reflect.String:
		if tag != "!!str" && (tag != "!!int" || v.Type() != reflect.TypeFor[NumberOrName]()) {
			r.wrong(n, field, "must be text; numbers and the like need quotes")
			return
		}
		v.SetString(n.Value)
	case reflect.Float64:
		var x float64
		if tag != "!!int" && tag != "!!float" || n.Decode(&x) != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			r.wrong(n, field, "must be a number")
			return
		}
		v.SetFloat(x)
	case reflect.Int64: // a time.Duration
		d, err := time.ParseDuration(n.Value)
		if tag != "!!str" || err != nil {
			r.wrong(n, field, `must be a duration with a unit, as in "30s" or "5m"`)
			return
		}
		v.SetInt(int64(d))
	case reflect.Bool:
		var b bool
		if tag != "!!bool" || n.Decode(&b) != nil {
			r.wrong(n, field, "must be true or false")
			return
		}
		v.SetBool(b)
	case reflect.Int32:
		var i int64
		if tag != "!!int" || n.Decode(&i) != nil || i < math.MinInt32 || i > math.MaxInt32 {
			r.wrong(n, field, wholeRule(field, n.Value))
			return
		}
		v.SetInt(i)
	default:
		r.wrong(n, field, "cannot be given in a document")
	}
}

// wholeRule returns the rule for a whole number. Seconds are written without a unit: the unit is in the field's name.
func wholeRule(field, value string) string {
	if !strings.HasSuffix(field, "Seconds") {
		return "must be a whole number of at most 2147483647"
	}
	if d, err := time.ParseDuration(value); err == nil && d%time.Second == 0 && d >= 0 {
		return fmt.Sprintf("must be a whole number of seconds, without a unit: %d", d/time.Second)
	}
	if strings.Trim(value, "0123456789") == "" && len(value) >= len("2147483647") {
		return "must be a whole number of seconds of at most 2147483647"
	}
	return "must be a whole number of seconds, as 30"
}

// decimal reads a number that can have a fraction.
func (r *reader) decimal(n *yaml.Node, v reflect.Value, field string) {
	tag := n.ShortTag()
	is := n.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!str" || tag == "!!float")
	if !is || !isDecimal(n.Value) {
		rule := decimalRule
		if x, err := strconv.ParseFloat(n.Value, 64); x >= 0 && (errors.Is(err, strconv.ErrRange) || err == nil && !math.IsInf(x, 0)) {
			rule = `must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`
		}
		r.wrong(n, field, rule)
		return
	}
	if octal(n) {
		r.wrong(n, field, octalRule)
		return
	}
	if tag == "!!float" && r.strict {
		r.wrong(n, field, fmt.Sprintf("must have quotes, as %q: an API server takes no fractions without", n.Value))
		return
	}
	if tag == "!!float" {
		r.warnings = append(r.warnings, r.position(field, printable.Plain(n.Value), fmt.Sprintf("needs quotes in an LLMAutoScaler, as %q", n.Value)))
	}
	v.Set(reflect.ValueOf(NewDecimal(n.Value)))
}

// encode returns v as a node, the inverse of decode. Fields that are not given are left out, and so are dryRun and paused if
// false.
func encode(v reflect.Value) *yaml.Node {
	switch v := v.Interface().(type) {
	case yaml.Node:
		return &v
	case Decimal:
		if regexp.MustCompile(`^(0|[1-9][0-9]*)$`).MatchString(v.String()) {
			return scalar(v.String(), 0)
		}
		return scalar(v.String(), yaml.DoubleQuotedStyle)
	case PortNumber:
		return scalar(strconv.Itoa(v.Int()), 0)
	case ServerDocument:
		return v.node()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range members(v.Type()) {
			if f := v.FieldByIndex(m.index); !omitted(m, f) {
				put(n, m.name, encode(f))
			}
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			item := encode(v.Index(i))
			if v.Type().Elem() != reflect.TypeFor[Member]() {
				item.Style = yaml.FlowStyle
			}
			n.Content = append(n.Content, item)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range slices.Sorted(maps.Keys(v.Interface().(map[string]LabelValue))) {
			n.Content = append(n.Content, encode(reflect.ValueOf(k)), encode(v.MapIndex(reflect.ValueOf(k))))
		}
		return n
	case reflect.String:
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: v.String(), Tag: "!!str"} // with quotes if it needs some
		if n.Value == "<<" || !regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`).MatchString(n.Value) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	default: // bool, int32
		return scalar(fmt.Sprint(v.Interface()), 0)
	}
}

// omitted reports whether a field is not given.
func omitted(m member, v reflect.Value) bool {
	switch {
	case v.Kind() == reflect.Bool:
		return (m.name == "dryRun" || m.name == "paused") && !v.Bool()
	case v.Type() == reflect.TypeFor[yaml.Node]():
		return v.IsZero()
	case optional(m.name) || !m.required:
		return v.IsZero() || v.Kind() == reflect.Map && v.Len() == 0
	}
	return false
}

func scalar(value string, style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Style: style}
}

func put(n *yaml.Node, name string, value *yaml.Node) {
	n.Content = append(n.Content, scalar(name, 0), value)
}
