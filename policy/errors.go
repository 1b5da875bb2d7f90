package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
)

// A PositionError says where a file is wrong. It unwraps to the scaling.FieldError.
//
// +kubebuilder:object:generate=false
type PositionError struct {
	File string
	Line int // counted from 1; 0 if the error is about the whole file
	// FieldError has the path from the root of the file, for example policies[0].realtime.scaleUpRule.scaleStep. A nil Value
	// means that the field is missing.
	scaling.FieldError
}

// Error returns "file:line: field: value: rule".
func (e *PositionError) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.Field == "" {
		return at + ": " + e.Rule
	}
	if e.Value == nil {
		return at + ": " + e.Field + ": " + e.Rule
	}
	return at + ": " + e.FieldError.Error()
}

// Unwrap returns the scaling.FieldError.
func (e *PositionError) Unwrap() error { return &e.FieldError }

// mostShown is the maximum number of bytes of a value that an error shows.
const mostShown = 80

// shown returns how an error shows a node.
func shown(n *yaml.Node) any {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.MappingNode:
		return printable.Plain("a mapping")
	case n.Kind == yaml.SequenceNode:
		return printable.Plain("a list")
	case n.Kind == yaml.AliasNode:
		return printable.Plain("*" + n.Value)
	case n.ShortTag() == "!!str":
		return printable.Cut(n.Value, mostShown)
	case n.Value == "":
		return printable.Plain("null")
	}
	return printable.Plain(printable.Cut(n.Value, mostShown))
}

// report records an error.
func (r *reader) report(line int, field string, value any, rule string) {
	r.failed[field] = true
	r.errs = append(r.errs, &PositionError{File: r.file, Line: line, FieldError: scaling.FieldError{Field: field, Value: value, Rule: rule}})
}

// wrong records an error about a node.
func (r *reader) wrong(n *yaml.Node, field, rule string) {
	r.within[parent(field)] = true
	r.report(n.Line, field, shown(n), rule)
}

// missing records that a field is missing.
func (r *reader) missing(n *yaml.Node, field string) { r.report(n.Line, field, nil, "must be given") }

// fieldErrors splits joined errors. An error without a field becomes a FieldError with an empty path.
func fieldErrors(err error) (all []*scaling.FieldError) {
	for _, e := range typed.Split(err) {
		field := &scaling.FieldError{Rule: e.Error()}
		errors.As(e, &field)
		all = append(all, field)
	}
	return all
}

// line returns the line of a field or, if that is unknown, of the nearest enclosing field.
func (r *reader) line(path string) int {
	for ; path != ""; path = parent(path) {
		if line, ok := r.lines[path]; ok {
			return line
		}
	}
	return 0
}

// hasFailed reports whether a field, or one that encloses it, could not be read.
func (r *reader) hasFailed(path string) bool {
	for ; path != ""; path = parent(path) {
		if r.failed[path] {
			return true
		}
	}
	return false
}

// parent returns the path of the enclosing field: a[1] for a[1].b, and a for a[1].
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

func join(field, name string) string {
	switch {
	case field == "":
		return name
	case name == "":
		return field
	}
	return field + "." + name
}

const maxErrors = 100

// err returns the errors in the order of their lines, at most maxErrors of them.
func (r *reader) err() error {
	slices.SortStableFunc(r.errs, func(a, b *PositionError) int { return cmp.Compare(a.Line, b.Line) })
	if more := len(r.errs) - maxErrors; more > 0 {
		rule := fmt.Sprintf("and %d more", more)
		r.errs = append(r.errs[:maxErrors], &PositionError{File: r.file, FieldError: scaling.FieldError{Rule: rule}})
	}
	var all scaling.FieldErrors
	for _, e := range r.errs {
		all.Add(e)
	}
	return all.Err()
}
