package policyfile

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/scaling"
)

const maxList = 1000 // entries

// A member is a field of a struct and its name in the file.
type member struct {
	name  string
	index []int
}

// members returns the fields of a struct. Embedded structs are part of it; bounds are not: they belong to the policy.
func members(t reflect.Type) []member {
	var all []member
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous:
			for _, m := range members(f.Type) {
				all = append(all, member{m.name, append([]int{i}, m.index...)})
			}
		case f.IsExported() && f.Type != reflect.TypeFor[scaling.Bounds]():
			all = append(all, member{nameOf(t, f), []int{i}})
		}
	}
	return all
}

func nameOf(t reflect.Type, f reflect.StructField) string {
	if t == reflect.TypeFor[cronscale.Policy]() && f.Name == "TargetReplicas" {
		return "replicas"
	}
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	name := []rune(f.Name)
	name[0] = unicode.ToLower(name[0])
	return string(name)
}

// required returns the names of the fields that must be given, as a zero that nobody wrote would take a fleet down.
func required(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[scaling.Bounds]():
		return []string{"min", "max"}
	case reflect.TypeFor[cronscale.Policy](), reflect.TypeFor[cronscale.Window](), reflect.TypeFor[staticBody]():
		return []string{"replicas"}
	}
	return nil
}

// enum reports whether a type is a choice among names: small numbers from 0 that have a String.
func enum(t reflect.Type) bool {
	return t.Kind() == reflect.Int8 && t.Implements(reflect.TypeFor[fmt.Stringer]())
}

// choices returns the names of an enum, in order.
func choices(t reflect.Type) []string {
	var names []string
	for i := range math.MaxInt8 {
		v := reflect.New(t).Elem()
		v.SetInt(int64(i))
		name := v.Interface().(fmt.Stringer).String()
		if strings.Contains(name, "(") {
			break
		}
		names = append(names, name)
	}
	return names
}

// decode reads a node into v, where there is something to read; v keeps what it has if it cannot be read.
func (r *reader) decode(n *yaml.Node, v reflect.Value, field string) {
	switch t := v.Type(); {
	case t.Kind() == reflect.Struct:
		r.structure(n, v, field)
	case t.Kind() == reflect.Slice:
		r.list(n, v, field)
	case n.Kind != yaml.ScalarNode:
		r.is(n, yaml.ScalarNode, field, "must be one value")
	case t == reflect.TypeFor[time.Duration]():
		r.duration(n, v, field)
	case enum(t):
		names := choices(t)
		if i := slices.Index(names, n.Value); isText(n) && i >= 0 {
			v.SetInt(int64(i))
			return
		}
		r.wrong(n, field, "must be "+oneOf(names))
	default:
		r.scalar(n, v, field)
	}
}

func (r *reader) scalar(n *yaml.Node, v reflect.Value, field string) {
	tag := n.ShortTag()
	switch v.Kind() {
	case reflect.String:
		if tag != "!!str" {
			r.wrong(n, field, "must be text; numbers and the like need quotes")
			return
		}
		v.SetString(n.Value)
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
			r.wrong(n, field, "must be a whole number of at most 2147483647")
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		var f float64
		if tag != "!!int" && tag != "!!float" || n.Decode(&f) != nil {
			r.wrong(n, field, "must be a number")
			return
		}
		v.SetFloat(f + 0) // a zero without a sign
	default:
		r.wrong(n, field, "cannot be given in a file")
	}
}

func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

func (r *reader) duration(n *yaml.Node, v reflect.Value, field string) {
	const rule = `must be a duration with a unit, as in "30s" or "5m"`
	if n.ShortTag() == "!!int" || n.ShortTag() == "!!float" {
		r.wrong(n, field, rule+", not a number alone")
		return
	}
	d, err := time.ParseDuration(n.Value)
	if !isText(n) || err != nil {
		r.wrong(n, field, rule)
		return
	}
	v.SetInt(int64(d))
}

// structure reads the fields that are given. The others, such as that of a profile, were read already.
func (r *reader) structure(n *yaml.Node, v reflect.Value, field string, others ...string) {
	fields := members(v.Type())
	known := others
	for _, m := range fields {
		known = append(known, m.name)
	}
	given, ok := r.mapping(n, field, known)
	if !ok {
		return
	}
	for _, m := range fields {
		if node := given[m.name]; node != nil {
			r.decode(node, v.FieldByIndex(m.index), join(field, m.name))
		}
	}
	for _, name := range required(v.Type()) {
		if given[name] == nil {
			r.missing(n, join(field, name))
		}
	}
}

func (r *reader) list(n *yaml.Node, v reflect.Value, field string) {
	items, ok := r.items(n, field)
	if !ok {
		return
	}
	v.SetZero()
	for i, item := range items {
		element := reflect.New(v.Type().Elem()).Elem()
		r.decode(item, element, r.item(item, field, i))
		v.Set(reflect.Append(v, element))
	}
}

var errKind = errors.New("cannot be given in a file")

// encode returns the node that decode reads v from.
func encode(v reflect.Value) (*yaml.Node, error) {
	t := v.Type()
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return scalar(durationText(time.Duration(v.Int())), 0), nil
	case enum(t):
		return scalar(v.Interface().(fmt.Stringer).String(), 0), nil
	}
	switch t.Kind() {
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range members(t) {
			value, err := encode(v.FieldByIndex(m.index))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			put(n, m.name, value)
		}
		return n, nil
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			item, err := encode(v.Index(i))
			if err != nil {
				return nil, err
			}
			item.Style = yaml.FlowStyle
			n.Content = append(n.Content, item)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	case reflect.String:
		return scalar(v.String(), yaml.DoubleQuotedStyle), nil
	case reflect.Bool, reflect.Int32, reflect.Float64:
		return scalar(fmt.Sprint(v.Interface()), 0), nil
	default:
		return nil, fmt.Errorf("%s %w", t, errKind)
	}
}

func scalar(value string, style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Style: style}
}

func put(n *yaml.Node, name string, value *yaml.Node) {
	n.Content = append(n.Content, scalar(name, 0), value)
}

// durationText writes a duration without the zeros that time.Duration has at its end: 5m, not 5m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// oneOf writes a, b or c.
func oneOf(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
