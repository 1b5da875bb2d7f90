package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// The apiVersion and the kind of an LLMAutoScaler.
const (
	apiVersion = "autoscaling.inferscale.io/v1alpha1"
	kind       = "LLMAutoScaler"
)

// A Document is the content of a file.
//
// +kubebuilder:object:generate=false
type Document struct {
	Policies []Policy // at least one, with unique names
	// Warnings say what is questionable in a valid document, in the order of the lines.
	Warnings []*PositionError
}

// The forms of a document.
type (
	// flat is a spec with a name.
	flat struct {
		Name string `json:"name,omitempty"`
		Spec `json:",inline"`
	}
	// bare is a scaler with a name.
	bare struct {
		Name      string `json:"name,omitempty"`
		Composite `json:",inline"`
	}
	// manifest is a whole LLMAutoScaler. Metadata and status may contain anything that an API server takes.
	manifest struct {
		APIVersion string    `json:"apiVersion"`
		Kind       string    `json:"kind"`
		Metadata   yaml.Node `json:"metadata"`
		Spec       Spec      `json:"spec"`
		Status     yaml.Node `json:"status,omitempty"`
	}
)

// Read reads a file in YAML or JSON; file is its name in errors. The file has one of these, or several of them as YAML
// documents:
//
//	realtime: ...                                    a scaler
//	{maxReplicas: 8, scaler: {realtime: ...}}        a spec
//	{apiVersion: ..., kind: LLMAutoScaler, ...}      a manifest
//	policies: [{name: a, realtime: ...}, ...]        a list of scalers and specs
//
// Scalers and specs may have a name. The error joins all errors, each a [*PositionError].
func Read(data []byte, file string) (*Document, error) {
	r := newReader(file)
	d := &Document{}
	for _, root := range r.documents(data, "must have a policy") {
		r.lines, r.failed, r.within, r.first = map[string]int{}, map[string]bool{}, map[string]bool{}, root.Line
		if list := child(root, "policies"); list != nil && root.Kind == yaml.MappingNode {
			if _, ok := r.mapping(root, "", []string{"policies"}); ok {
				r.policies(list, d)
			}
			continue
		}
		r.add(d, r.policy(root, ""), root, "")
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.warnings, func(a, b *PositionError) int { return cmp.Compare(a.Line, b.Line) })
	d.Warnings = r.warnings
	return d, nil
}

// policies reads a list of policies.
func (r *reader) policies(n *yaml.Node, d *Document) {
	const field = "policies"
	items, ok := r.items(n, field)
	if ok && len(items) == 0 {
		r.report(n.Line, field, 0, "must be at least one")
	}
	for i, item := range items {
		at := r.item(item, field, i)
		r.add(d, r.policy(item, at), item, at)
	}
}

// add adds a policy. Its name must be unique.
func (r *reader) add(d *Document, p Policy, n *yaml.Node, field string) {
	same := func(q Policy) bool { return q.Name == p.Name && q.Namespace == p.Namespace }
	path := join(field, "name")
	if p.Manifest {
		path = "metadata.name"
	}
	if p.Name != "" && slices.ContainsFunc(d.Policies, same) {
		r.report(cmp.Or(r.line(path), n.Line), path, p.Name, "must be unique")
	}
	if p.Name != p.Scaler.Name() && !printable.Is(p.Name) { // a default name is made of the profile, which is checked elsewhere
		r.report(cmp.Or(r.line(path), n.Line), path, p.Name, printable.Rule)
	}
	if len(d.Policies) < maxList {
		d.Policies = append(d.Policies, p)
	} else if len(d.Policies) == maxList {
		r.report(n.Line, field, nil, fmt.Sprintf("must not be more than %d policies", maxList))
	}
}

// policy reads one policy. Its fields tell which of the forms it has.
func (r *reader) policy(n *yaml.Node, field string) Policy {
	if n.Kind == yaml.MappingNode && field == "" && (child(n, "kind") != nil || child(n, "apiVersion") != nil) {
		return r.manifest(n)
	}
	isSpec := slices.ContainsFunc(members(reflect.TypeFor[Spec]()), func(m member) bool { return child(n, m.name) != nil })
	if isSpec {
		var f flat
		r.into(n, &f, field)
		p := Policy{Name: f.Name, Spec: f.Spec}
		p.ready()
		r.checked(&p, field, join(field, "scaler"))
		return p
	}
	var b bare
	r.into(n, &b, field)
	p := Policy{Name: b.Name, Spec: Spec{Scaler: b.Composite}}
	p.Scaler.ready()
	r.checked(&p, field, field)
	return p
}

// manifest reads an LLMAutoScaler.
func (r *reader) manifest(n *yaml.Node) Policy {
	r.strict = true
	defer func() { r.strict = false }()
	var m manifest
	r.into(n, &m, "")
	for _, f := range []struct{ name, is, must string }{{"apiVersion", m.APIVersion, apiVersion}, {"kind", m.Kind, kind}} {
		if node := child(n, f.name); node != nil && f.is != f.must {
			r.wrong(node, f.name, "must be "+f.must)
		}
	}
	p := Policy{Manifest: true, Spec: m.Spec}
	if child(n, "metadata") != nil && r.is(&m.Metadata, yaml.MappingNode, "metadata", "must be a mapping") {
		r.metadata(&m.Metadata, &p)
	}
	r.once(&m.Status, "status")
	var e scaling.FieldErrors
	for _, f := range []struct{ name, is, pattern, rule string }{
		{"apiVersion", p.ScaleTargetRef.APIVersion, `^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z]([a-z0-9-]*[a-z0-9])?$`, `must be "version" or "group/version"`},
		{"kind", p.ScaleTargetRef.Kind, `.`, "must not be empty"},
		{"name", p.ScaleTargetRef.Name, `.`, "must not be empty"},
	} {
		e.Check(regexp.MustCompile(f.pattern).MatchString(f.is), "spec.scaleTargetRef."+f.name, f.is, f.rule)
	}
	r.rules(e.Err())
	p.readyShadows()
	if p.Scaler.Highest != nil {
		r.report(r.line("spec.scaler.highest"), "spec.scaler.highest", printable.Plain("a list"), "is not a field of an LLMAutoScaler: it has one of each kind")
	}
	r.checked(&p, "spec", "spec.scaler")
	return p
}

// metadata reads the name and the namespace of a manifest. Of the rest it checks what kubectl, or any API server, refuses.
func (r *reader) metadata(n *yaml.Node, p *Policy) {
	r.once(n, "metadata")
	var generate string
	text := func(name string, to *string) bool {
		node, path := child(n, name), "metadata."+name
		if node == nil {
			return false
		}
		r.lines[path] = node.Line
		r.into(node, to, path)
		return !r.failed[path] && *to != ""
	}
	const rule = "must be at most 253 of a-z, 0-9, - and ., and each part between dots must begin and end with one of a-z and 0-9"
	named, generated := text("name", &p.Name), text("generateName", &generate)
	switch {
	case named && !isSubdomain(p.Name) && printable.Is(p.Name): // of other names add tells
		r.report(r.line("metadata.name"), "metadata.name", p.Name, rule)
	case generated && (!isSubdomain(strings.TrimRight(generate, "-.")) || len(generate) > 253 || strings.HasSuffix(generate, ".")):
		r.report(r.line("metadata.generateName"), "metadata.generateName", generate, rule)
	case !named && generated:
		p.Name = strings.TrimRight(generate, "-.")
	case !named && !r.failed["metadata.name"] && !r.failed["metadata.generateName"]:
		r.missing(n, "metadata.name")
	}
	if text("namespace", &p.Namespace) && !isLabel(p.Namespace) {
		r.report(r.line("metadata.namespace"), "metadata.namespace", p.Namespace, labelRule)
	}
}

// isSubdomain reports whether a name is a subdomain of RFC 1123, as the names of objects are.
func isSubdomain(name string) bool {
	return len(name) <= 253 && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString(name)
}

// once reports keys that a mapping, or one in it, has twice.
func (r *reader) once(n *yaml.Node, field string) {
	lines := map[string]int{}
	for i, item := range n.Content {
		switch path := printable.Cut(field, 4*mostShown); {
		case n.Kind != yaml.MappingNode:
			r.once(item, fmt.Sprintf("%s[%d]", path, i))
		case i%2 == 1:
			r.once(item, join(path, printable.Cut(n.Content[i-1].Value, mostShown)))
		case item.Kind != yaml.ScalarNode:
			r.wrong(item, join(path, "key"), "must be text")
		case lines[item.Value] > 0:
			r.report(item.Line, join(path, printable.Cut(item.Value, mostShown)), shown(n.Content[i+1]), fmt.Sprintf("must be given once; it is on line %d", lines[item.Value]))
		default:
			lines[item.Value] = item.Line
		}
	}
}

// checked checks a policy against the rules, and gives it a name if it has none. spec and scaler are the paths of its parts.
func (r *reader) checked(p *Policy, spec, scaler string) {
	p.Name = cmp.Or(p.Name, p.Scaler.Name())
	if r.hasFailed(cmp.Or(spec, "file")) {
		return
	}
	_, err := p.plan(prefix(spec), prefix(scaler), unbounded(), nil)
	r.rules(err)
	shadows, err := p.Shadows(spec, unbounded(), nil)
	r.rules(err)
	attained, err := p.Attained(spec, shadows, unbounded())
	r.rules(err)
	odd := append(p.Scaler.warnings(prefix(scaler), p.Interval()), ShadowWarnings(shadows)...)
	if attained != nil {
		odd = append(odd, attained.Warnings...)
	}
	for _, e := range odd {
		r.warnings = append(r.warnings, r.position(e.Field, e.Value, e.Rule))
	}
}

// rules records errors of the rules, except those of fields that could not be read, and of objects with such a field: what they lack may
// be that.
func (r *reader) rules(err error) {
	for _, e := range fieldErrors(err) {
		if !r.hasFailed(e.Field) && !r.within[e.Field] {
			r.errs = append(r.errs, r.position(e.Field, e.Value, e.Rule))
		}
	}
}

func (r *reader) position(path string, value any, rule string) *PositionError {
	return &PositionError{File: r.file, Line: cmp.Or(r.line(path), r.first), FieldError: scaling.FieldError{Field: path, Value: value, Rule: rule}}
}

// documents returns the documents of a file. needed is the error of a file without any; if it is empty, such a file is valid.
func (r *reader) documents(data []byte, needed string) []*yaml.Node {
	if len(data) > maxFile {
		r.report(0, "", nil, fmt.Sprintf("must not be larger than %d bytes", maxFile))
		return nil
	}
	var all []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.syntax(err)
			return nil
		}
		if len(n.Content) > 0 && !empty(n.Content[0]) {
			all = append(all, n.Content[0])
		}
		if len(all) > maxList {
			r.report(n.Line, "", nil, fmt.Sprintf("must not be more than %d documents", maxList))
			return nil
		}
	}
	if len(all) == 0 && needed != "" {
		r.report(0, "", nil, needed)
	}
	return all
}

// one decodes the only document; to is a pointer to the result, and several is the error if there is a second document.
func (r *reader) one(documents []*yaml.Node, to any, field, several string) {
	for i, root := range documents {
		if i > 0 {
			r.report(root.Line, "", nil, several)
			return
		}
		r.into(root, to, field)
	}
}

// empty reports whether a document has nothing but comments.
func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.ShortTag() == "!!null"
}

// child returns the value of a key of a mapping, or nil.
func child(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
