package config

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/policyfile"
)

// policy reads a policy as policy files have it. The errors of package policyfile are about a file with this policy
// alone, and are put where the policy really is: prefix is its path there, path the one here.
func (r *reader) policy(n *yaml.Node, prefix, path string) (policyfile.Policy, bool) {
	file := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: "policies"},
		{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}},
	}}
	text, err := yaml.Marshal(file)
	if err != nil {
		r.report(n.Line, path, nil, "cannot be read: "+err.Error())
		return policyfile.Policy{}, false
	}
	policies, err := policyfile.Parse(text, Key)
	if err == nil {
		return policies[0], true
	}
	lines := make(map[int]int)
	var again yaml.Node
	if bad := yaml.Unmarshal(text, &again); bad == nil {
		pair(again.Content[0].Content[1].Content[0], n, lines)
	}
	for _, e := range positions(err) {
		line, ok := lines[e.Line]
		if !ok {
			line = n.Line
		}
		field := path
		if rest, ok := strings.CutPrefix(e.Field, prefix); ok {
			field = path + rest
		}
		r.report(line, field, e.Value, e.Rule)
	}
	return policyfile.Policy{}, false
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
func positions(err error) []*policyfile.PositionError {
	var all []*policyfile.PositionError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, positions(e)...)
		}
		return all
	}
	var e *policyfile.PositionError
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
