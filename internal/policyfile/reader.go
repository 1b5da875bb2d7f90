package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/scaling"
)

const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 8       // of policies in policies
)

// Parse reads the policies of a file; file is its name in errors.
func Parse(data []byte, file string) ([]Policy, error) {
	r := &reader{file: file, lines: map[string]int{}, failed: map[string]bool{}}
	root := r.document(data)
	if root == nil {
		return nil, r.err()
	}
	const field = "policies"
	given, ok := r.mapping(root, "", []string{field})
	if ok && given[field] == nil {
		r.missing(root, field)
	} else if ok {
		policies := r.policies(given[field], field, 1)
		if len(r.errs) == 0 {
			return policies, nil
		}
	}
	return nil, r.err()
}

// A reader reads one file.
type reader struct {
	file   string
	errs   []error
	lines  map[string]int  // of every field that is given, by its path
	failed map[string]bool // fields that could not be read
}

// document returns the one document of a file.
func (r *reader) document(data []byte) *yaml.Node {
	if len(data) > maxFile {
		r.report(0, "", nil, fmt.Sprintf("must not be larger than %d bytes", maxFile))
		return nil
	}
	var first, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) || err == nil && len(first.Content) == 0 {
		r.report(0, "", nil, "must have policies")
		return nil
	}
	if err != nil {
		r.syntax(err)
		return nil
	}
	err = decoder.Decode(&second)
	if errors.Is(err, io.EOF) {
		return first.Content[0]
	}
	if err != nil {
		r.syntax(err)
	} else {
		r.report(second.Line, "", nil, "must have one document")
	}
	return nil
}

// syntax notes an error of the YAML parser, which has the line in its text.
func (r *reader) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		text = text[len(m[0]):]
	}
	r.report(line, "", nil, "must be YAML: "+text)
}

// mapping returns the values of a mapping by their keys, and whether it is one.
func (r *reader) mapping(n *yaml.Node, field string, known []string) (map[string]*yaml.Node, bool) {
	if !r.is(n, yaml.MappingNode, field, "must be a mapping; {} is an empty one") {
		return nil, false
	}
	given := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := join(field, short(key.Value))
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			r.wrong(key, join(field, "key"), "must be "+oneOf(known))
		case !slices.Contains(known, key.Value):
			r.report(key.Line, path, shown(value), "is not a field here; the fields are "+strings.Join(known, ", "))
		case given[key.Value] != nil:
			r.report(key.Line, path, shown(value), fmt.Sprintf("must be given once; it is on line %d", r.lines[path]))
		default:
			given[key.Value] = value
			r.lines[path] = key.Line
		}
	}
	return given, true
}

// is reports whether a node is of a kind, and notes what it must be if it is not.
func (r *reader) is(n *yaml.Node, kind yaml.Kind, field, rule string) bool {
	if n.Kind == yaml.AliasNode {
		rule = "must be written out: aliases are not taken"
	}
	if n.Kind != kind {
		if field == "" {
			field = "file"
		}
		r.wrong(n, field, rule)
	}
	return n.Kind == kind
}

// items returns the entries of a list, and whether it is one.
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

// item notes the line of an entry and returns its path.
func (r *reader) item(n *yaml.Node, field string, i int) string {
	path := index(field, i)
	r.lines[path] = n.Line
	return path
}

// policies reads a list of policies.
func (r *reader) policies(n *yaml.Node, field string, depth int) []Policy {
	items, ok := r.items(n, field)
	if !ok {
		return nil
	}
	if len(items) == 0 {
		r.report(n.Line, field, 0, "must be at least one")
	}
	var all []Policy
	names := map[string]int{}
	for i, item := range items {
		at := r.item(item, field, i)
		p := r.policy(item, at, depth)
		if first, taken := names[p.Name]; taken && p.Name != "" {
			r.report(r.line(at+".name"), at+".name", p.Name, fmt.Sprintf("must be unique: %s has it", index(field, first)))
		} else {
			names[p.Name] = i
		}
		all = append(all, p)
	}
	return all
}

// policy reads one policy. Without a name it is called after its algorithm.
func (r *reader) policy(n *yaml.Node, field string, depth int) (p Policy) {
	if depth > maxDepth {
		r.wrong(n, field, fmt.Sprintf("must not be more than %d policies deep", maxDepth))
		return p
	}
	kinds := algorithms()
	given, ok := r.mapping(n, field, append([]string{"name", "bounds", "stabilized", "rateLimited"}, kinds...))
	if !ok {
		return p
	}
	bounds := scaling.Bounds{Max: math.MaxInt32} // the caller's are not known yet
	if node := given["bounds"]; node != nil {
		p.Bounds = read[scaling.Bounds](r, node, join(field, "bounds"))
		if err := p.Bounds.Validate("bounds"); err == nil {
			bounds = *p.Bounds
		} else {
			r.check(err, field)
		}
	}
	if node := given["stabilized"]; node != nil {
		p.stabilized = read[scaling.Stabilization](r, node, join(field, "stabilized"))
		r.check(p.stabilized.Validate("stabilized"), field)
	}
	if node := given["rateLimited"]; node != nil {
		p.rateLimited = read[scaling.RateLimits](r, node, join(field, "rateLimited"))
		r.check(p.rateLimited.Validate("rateLimited"), field)
	}
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return given[kind] == nil })
	if len(kinds) != 1 {
		var value any
		if len(kinds) > 0 {
			value = plain(strings.Join(kinds, ", "))
		}
		r.report(n.Line, field, value, "must have exactly one of "+strings.Join(algorithms(), ", "))
	} else {
		r.algorithm(&p, kinds[0], given[kinds[0]], field, depth, bounds)
	}
	if node := given["name"]; node != nil {
		r.decode(node, reflect.ValueOf(&p.Name).Elem(), join(field, "name"))
		if p.Name == "" {
			r.wrong(node, join(field, "name"), "must not be empty")
		}
	}
	return p
}

// read reads a struct that starts from its zero.
func read[T any](r *reader, n *yaml.Node, field string) *T {
	v := new(T)
	r.decode(n, reflect.ValueOf(v).Elem(), field)
	return v
}

// algorithm reads what is under the name of an algorithm, and checks it.
func (r *reader) algorithm(p *Policy, kind string, n *yaml.Node, field string, depth int, bounds scaling.Bounds) {
	p.Algorithm, p.Name = kind, kind
	at := join(field, kind)
	switch kind {
	case kindFloor:
		given, ok := r.mapping(n, at, []string{"base", kindCron})
		if !ok {
			return
		}
		var b floorBody
		if given["base"] == nil {
			r.missing(n, join(at, "base"))
		} else {
			b.Base = r.policy(given["base"], join(at, "base"), depth+1)
		}
		if given[kindCron] == nil {
			r.missing(n, join(at, kindCron))
		} else {
			b.Cron = r.settings(b.Cron, given[kindCron], join(at, kindCron), bounds).(cronBody)
		}
		p.body = b
	case kindHighest:
		given, ok := r.mapping(n, at, []string{"members"})
		if !ok {
			return
		}
		if given["members"] == nil {
			r.missing(n, join(at, "members"))
			return
		}
		p.body = highestBody{r.policies(given["members"], join(at, "members"), depth+1)}
	default:
		r.leaf(p, n, at, bounds)
	}
}

// leaf reads an algorithm that has a configuration and no policies in it.
func (r *reader) leaf(p *Policy, n *yaml.Node, field string, bounds scaling.Bounds) {
	var others []string
	if names := profiles(p.Algorithm); len(names) > 0 {
		others = []string{"profile"}
		p.Profile = names[0]
		if profile := child(n, "profile"); profile != nil {
			if !isText(profile) || !slices.Contains(names, profile.Value) {
				r.wrong(profile, join(field, "profile"), "must be "+oneOf(names))
				r.failed[field] = true // the other fields cannot be judged
			} else {
				p.Profile = profile.Value
			}
		}
		p.Name += "/" + p.Profile
	}
	p.body = r.settings(start(p.Algorithm, p.Profile), n, field, bounds, others...)
}

// child returns what a mapping has under a name, or nil.
func child(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// settings returns b with what a configuration gives, and checks it.
func (r *reader) settings(b body, n *yaml.Node, field string, bounds scaling.Bounds, others ...string) body {
	v := reflect.New(reflect.TypeOf(b)).Elem()
	v.Set(reflect.ValueOf(b))
	r.structure(n, v, field, others...)
	b = v.Interface().(body)
	if !r.failed[join(field, "mode")] { // on which the other fields depend
		_, err := b.build(bounds)
		r.check(err, field)
	}
	return b
}
