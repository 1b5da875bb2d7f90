package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// plain is a value that stands in an error without quotes.
type plain string

// A reader reads one configuration and gathers what is wrong with it.
type reader struct {
	errs   []error
	failed map[string]bool // paths of which something was reported
}

// report notes an error.
func (r *reader) report(line int, field string, value any, rule string) {
	r.failed[field] = true
	r.errs = append(r.errs, &policy.PositionError{
		File: Key, Line: line, FieldError: scaling.FieldError{Field: field, Value: value, Rule: rule},
	})
}

// wrong notes an error of a node.
func (r *reader) wrong(n *yaml.Node, field, rule string) { r.report(n.Line, field, shown(n), rule) }

// check notes an error of a node unless ok, or unless the node could not be read.
func (r *reader) check(ok bool, n *yaml.Node, field, rule string) {
	if !ok && n != nil && !r.failed[field] {
		r.wrong(n, field, rule)
	}
}

// err returns all errors in the order of their lines.
func (r *reader) err() error {
	slices.SortStableFunc(r.errs, func(a, b error) int { return cmp.Compare(lineOf(a), lineOf(b)) })
	return errors.Join(r.errs...)
}

func lineOf(err error) int {
	var e *policy.PositionError
	if errors.As(err, &e) {
		return e.Line
	}
	return 0
}

// shown returns how a node stands in an error.
func shown(n *yaml.Node) any {
	switch {
	case n.Kind == yaml.MappingNode:
		return plain("a mapping")
	case n.Kind == yaml.SequenceNode:
		return plain("a list")
	case n.Kind == yaml.AliasNode:
		return plain("*" + n.Value)
	case n.ShortTag() == "!!str":
		return n.Value
	case n.Value == "":
		return plain("null")
	}
	return plain(n.Value)
}

// document returns the one document of a configuration.
func (r *reader) document(data []byte) *yaml.Node {
	var first, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&first)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(first.Content) == 0:
		r.report(0, "", nil, "must have models; models: [] is none")
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	switch err = decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return first.Content[0]
	case err != nil:
		r.syntax(err)
	default:
		r.report(second.Line, "", nil, "must have one document")
	}
	return nil
}

// syntax notes an error of the YAML parser, which has the line in its text.
func (r *reader) syntax(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		text = text[len(m[0]):]
	}
	r.report(line, "", nil, "must be YAML: "+text)
}

// A fields has the values of a mapping by their keys, and where it is.
type fields struct {
	node  *yaml.Node
	path  string
	given map[string]*yaml.Node
}

func (f fields) at(name string) string { return join(f.path, name) }

// mapping returns the fields of a mapping, and whether it is one. Those that are needed and not there are reported.
func (r *reader) mapping(n *yaml.Node, path string, known []string, needed ...string) (fields, bool) {
	f := fields{node: n, path: path, given: make(map[string]*yaml.Node)}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, cmp.Or(path, "file"), "must be a mapping")
		return f, false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := f.at(key.Value)
		switch {
		case !slices.Contains(known, key.Value):
			r.report(key.Line, at, shown(value), "is not a field here; the fields are "+strings.Join(known, ", "))
		case f.given[key.Value] != nil:
			r.report(key.Line, at, shown(value), fmt.Sprintf("must be given once; it is on line %d", f.given[key.Value].Line))
		default:
			f.given[key.Value] = value
		}
	}
	for _, name := range needed {
		if f.given[name] == nil {
			r.report(n.Line, f.at(name), nil, "must be given")
		}
	}
	return f, true
}

// list returns the entries of a field that is a list.
func (r *reader) list(f fields, name string) []*yaml.Node {
	n := f.given[name]
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, f.at(name), "must be a list")
		return nil
	}
	return n.Content
}

// text reads a field that is text and not empty.
func (r *reader) text(f fields, name string) string {
	n := f.given[name]
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		r.wrong(n, f.at(name), "must be text; numbers and the like need quotes")
		return ""
	case n.Value == "":
		r.wrong(n, f.at(name), "must not be empty")
	}
	return n.Value
}

// flag reads a field that is true or false.
func (r *reader) flag(f fields, name string) (b bool) {
	if n := f.given[name]; n != nil && (n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&b) != nil) {
		r.wrong(n, f.at(name), "must be true or false")
	}
	return b
}

// number reads a field that is a number.
func (r *reader) number(f fields, name string) (x float64) {
	n := f.given[name]
	if n == nil {
		return 0
	}
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || n.Decode(&x) != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		r.wrong(n, f.at(name), "must be a number")
		return 0
	}
	return x
}

// count reads a field that is a number of replicas.
func (r *reader) count(f fields, name string) int32 {
	var i int64
	n := f.given[name]
	if n == nil {
		return 0
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&i) != nil || i < 0 || i > math.MaxInt32 {
		r.wrong(n, f.at(name), "must be a whole number from 0 to 2147483647")
		return 0
	}
	return int32(i)
}

// duration reads a field that is a duration.
func (r *reader) duration(f fields, name string, otherwise time.Duration) time.Duration {
	n := f.given[name]
	if n == nil {
		return otherwise
	}
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || err != nil {
		r.wrong(n, f.at(name), `must be a duration with a unit, as in "30s" or "5m"`)
		return otherwise
	}
	return d
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
