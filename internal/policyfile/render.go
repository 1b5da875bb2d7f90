package policyfile

import (
	"bytes"
	_ "embed"
	"reflect"

	"go.yaml.in/yaml/v3"
)

//go:embed sample.yaml
var sample string

// Example returns a file with every algorithm, and a comment on what it does.
func Example() string { return sample }

// Effective returns a file with the policy alone and every field of it, whether given or from a profile. Parse reads it
// as the same policy.
func (p Policy) Effective() ([]byte, error) {
	if p.body == nil {
		return nil, errEmpty
	}
	n, err := p.node()
	if err != nil {
		return nil, err
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	put(root, "policies", list(n))
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	err = encoder.Close()
	return b.Bytes(), err
}

func list(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

// node returns the node that the policy is read from.
func (p Policy) node() (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	put(n, "name", scalar(p.Name, yaml.DoubleQuotedStyle))
	configuration, err := p.configuration()
	if err != nil {
		return nil, err
	}
	put(n, p.Algorithm, configuration)
	for _, part := range []struct {
		name  string
		value any
	}{{"bounds", p.Bounds}, {"stabilized", p.stabilized}, {"rateLimited", p.rateLimited}} {
		v := reflect.ValueOf(part.value)
		if v.IsNil() {
			continue
		}
		value, err := encode(v.Elem())
		if err != nil {
			return nil, err
		}
		put(n, part.name, value)
	}
	return n, nil
}

// configuration returns the node of what is under the algorithm's name.
func (p Policy) configuration() (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	switch b := p.body.(type) {
	case floorBody:
		base, err := b.Base.node()
		if err != nil {
			return nil, err
		}
		cron, err := encode(reflect.ValueOf(b.Cron))
		if err != nil {
			return nil, err
		}
		put(n, "base", base)
		put(n, kindCron, cron)
		return n, nil
	case highestBody:
		members := list()
		for _, m := range b.Members {
			member, err := m.node()
			if err != nil {
				return nil, err
			}
			members.Content = append(members.Content, member)
		}
		put(n, "members", members)
		return n, nil
	}
	if p.Profile != "" {
		put(n, "profile", scalar(p.Profile, 0))
	}
	fields, err := encode(reflect.ValueOf(p.body))
	if err != nil {
		return nil, err
	}
	n.Content = append(n.Content, fields.Content...)
	return n, nil
}
