package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
)

// oneDocument is the error of a file with a second document.
const oneDocument = "must have one document"

const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 8       // of scalers in scalers
	maxList  = 1000    // entries
)

// A reader reads one file.
type reader struct {
	file     string
	strict   bool // only what an API server can read too is accepted
	partial  bool // fields that are not given are zero
	first    int  // the line at which the document begins
	errs     []*PositionError
	warnings []*PositionError
	lines    map[string]int  // line of every given field, by its path
	failed   map[string]bool // fields that could not be read
	within   map[string]bool // objects with such a field
}

func newReader(file string) *reader {
	return &reader{file: file, lines: map[string]int{}, failed: map[string]bool{}, within: map[string]bool{}}
}

// syntax records an error of the YAML parser, which has the line in its text.
func (r *reader) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // never fails: the pattern matches digits only
		text = text[len(m[0]):]
	}
	r.report(line, "", nil, "must be YAML: "+text)
}

// mapping returns the values of a mapping by their keys; false if the node is not a mapping.
func (r *reader) mapping(n *yaml.Node, field string, known []string) (map[string]*yaml.Node, bool) {
	if !r.is(n, yaml.MappingNode, field, "must be a mapping; {} is an empty one") {
		return nil, false
	}
	given := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := join(field, printable.Cut(key.Value, mostShown))
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			r.wrong(key, join(field, "key"), "must be one of "+strings.Join(known, ", "))
		case !slices.Contains(known, key.Value):
			r.report(key.Line, path, shown(value), "is not a field here"+meant(key.Value, known))
		case given[key.Value] != nil:
			r.report(key.Line, path, shown(value), fmt.Sprintf("must be given once; it is on line %d", r.lines[path]))
		default:
			given[key.Value] = value
			r.lines[path] = key.Line
		}
	}
	return given, true
}

// is reports whether a node is of a kind, and records an error if it is not.
func (r *reader) is(n *yaml.Node, kind yaml.Kind, field, rule string) bool {
	if n.Kind == yaml.AliasNode {
		rule = "must be written out: aliases are not taken"
	}
	if n.Kind != kind {
		r.wrong(n, cmp.Or(field, "file"), rule)
	}
	return n.Kind == kind
}

// items returns the entries of a list; false if the node is not a list.
func (r *reader) items(n *yaml.Node, field string) ([]*yaml.Node, bool) {
	if !r.is(n, yaml.SequenceNode, field, "must be a list") {
		return nil, false
	}
	if len(n.Content) > maxList {
		r.report(n.Line, field, len(n.Content), fmt.Sprintf("must be at most %d", maxList))
		return nil, false
	}
	return n.Content, true
}

// item records the line of an entry and returns its path.
func (r *reader) item(n *yaml.Node, field string, i int) string {
	path := fmt.Sprintf("%s[%d]", field, i)
	r.lines[path] = n.Line
	return path
}

// meant returns a hint for an unknown field: the known field with a similar name, if there is one, and all known fields.
func meant(name string, known []string) string {
	best, distance := "", 1+max(2, len(name)/3)
	small := strings.ToLower(name)
	for _, k := range known {
		d := edits(small, strings.ToLower(k), distance)
		if len(name) > 2 && d >= distance && (strings.Contains(strings.ToLower(k), small) || strings.Contains(small, strings.ToLower(k))) {
			d = distance - 1
		}
		if d < distance {
			best, distance = k, d
		}
	}
	all := "; the fields are " + strings.Join(known, ", ")
	if best == "" {
		return all
	}
	return ": is it " + best + "?" + all[1:]
}

// edits returns the edit distance of a and b, or most if it is larger.
func edits(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], most)
}
