package config

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/policy"
)

// policy reads a policy as documents have it. The errors of package policy are about a document with this policy alone,
// and are put where the policy really is: prefix is its path there, path the one here.
func (r *reader) policy(n *yaml.Node, prefix, path string) (policy.Policy, bool) {
	text, err := yaml.Marshal(n)
	if err != nil {
		r.report(n.Line, path, nil, "cannot be read: "+err.Error())
		return policy.Policy{}, false
	}
	document, err := policy.Read(text, Key)
	if err == nil {
		if len(document.Policies) == 1 && !document.Policies[0].Manifest {
			return document.Policies[0], true
		}
		r.report(n.Line, path, nil, "must be one policy, as a scaler or a spec")
		return policy.Policy{}, false
	}
	lines := make(map[int]int)
	var again yaml.Node
	if bad := yaml.Unmarshal(text, &again); bad == nil {
		pair(again.Content[0], n, lines)
	}
	for _, e := range positions(err) {
		line, ok := lines[e.Line]
		if !ok {
			line = n.Line
		}
		field := path
		if rest := strings.TrimPrefix(e.Field, prefix); rest != "" && e.Field != "file" {
			field = join(path, strings.TrimPrefix(rest, "."))
		}
		r.report(line, field, e.Value, e.Rule)
	}
	return policy.Policy{}, false
}

// pair notes which lines of a document that was written anew are which lines of its source.
func pair(written, source *yaml.Node, lines map[int]int) {
	if _, known := lines[written.Line]; !known {
		lines[written.Line] = source.Line
	}
	for i := range min(len(written.Content), len(source.Content)) {
		pair(written.Content[i], source.Content[i], lines)
	}
}

// positions takes joined errors apart.
func positions(err error) []*policy.PositionError {
	var all []*policy.PositionError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, positions(e)...)
		}
		return all
	}
	var e *policy.PositionError
	if errors.As(err, &e) {
		all = append(all, e)
	}
	return all
}

// without returns a mapping without a key.
func without(n *yaml.Node, key string) *yaml.Node {
	other := *n
	other.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			other.Content = append(other.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &other
}

// child returns what a mapping has under a key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
