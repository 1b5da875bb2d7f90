package defaulting

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// An Operation is one operation of a JSON patch (RFC 6902). Op is always "add"; the added value was missing or null before.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"` // a JSON pointer (RFC 6901)
	Value any    `json:"value"`
}

// object is a JSON object.
type object = map[string]any

// A review collects the operations and warnings for one object.
type review struct {
	patch    []Operation
	places   []path // paths of the operations
	warnings []string
}

// apply applies the operations.
func (r *review) apply(root object) {
	for i, op := range r.patch {
		var in any = root
		for _, element := range r.places[i][:len(r.places[i])-1] {
			switch e := element.(type) {
			case string:
				in = in.(object)[e]
			case int:
				in = in.([]any)[e]
			}
		}
		in.(object)[r.places[i][len(r.places[i])-1].(string)] = runtime.DeepCopyJSONValue(op.Value)
	}
}

func (r *review) add(at path, value any) {
	r.patch = append(r.patch, Operation{Op: "add", Path: at.pointer(), Value: runtime.DeepCopyJSONValue(value)})
	r.places = append(r.places, at)
}

func (r *review) warn(at path, text string) {
	r.warnings = append(r.warnings, at.String()+": "+text)
}

// fill adds to have, the object at a path, every leaf of want that is missing there. Missing objects are added as a whole. If
// want has an object where have has another value, the value stays.
func (r *review) fill(at path, have, want object) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		below := at.child(key)
		if have[key] == nil {
			r.add(below, want[key])
			continue
		}
		deeper, ok := want[key].(object)
		if !ok {
			continue
		}
		if h, ok := have[key].(object); ok {
			r.fill(below, h, deeper)
		} else {
			r.warn(below, "is not an object: no defaults below it")
		}
	}
}

// A path is a path in a JSON object: its elements are keys (string) and indices (int).
type path []any

func (p path) child(element any) path {
	return append(slices.Clip(p), element)
}

// pointer returns the path as a JSON pointer.
func (p path) pointer() string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, element := range p {
		b.WriteByte('/')
		switch e := element.(type) {
		case string:
			b.WriteString(escape.Replace(e))
		case int:
			b.WriteString(strconv.Itoa(e))
		}
	}
	return b.String()
}

// String returns the path in the usual form, for example spec.triggers[0].metadata. Keys that are not plain words are quoted,
// and long keys are cut.
func (p path) String() string {
	var b strings.Builder
	for _, element := range p {
		switch e := element.(type) {
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(shown(e))
		case int:
			b.WriteString("[" + strconv.Itoa(e) + "]")
		}
	}
	return b.String()
}

const longest = 64 // maximum bytes of user input in a warning

// shown returns user input in a form that is safe in an HTTP header.
func shown(s string) string {
	cut := len(s) > longest
	if cut {
		s = s[:longest]
	}
	plain := s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_", c)
	})
	if !plain {
		s = strconv.QuoteToASCII(s)
	}
	if cut {
		s += "..."
	}
	return s
}
