package keda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// dotted reports whether a key is the path of a field of a policy.
func dotted(key string) bool {
	first, _, found := strings.Cut(key, ".")
	return found && slices.Contains([]string{"realtime", "proportional", "capacity", "cron"}, first)
}

// tree builds the field scaler of a policy document from the keys that are paths.
func (p *parser) tree() map[string]any {
	tree := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(p.given)) {
		if !dotted(key) {
			continue
		}
		text, _ := p.take(key)
		path := strings.Split(key, ".")
		value, ok := leaf(text, mostDeep-len(path))
		switch {
		case !ok:
			p.wrong(key, text, fmt.Sprintf("must be at most %d deep, its key's names included", mostDeep))
		case slices.ContainsFunc(path, isNoName):
			p.wrong(key, text, "must name a field")
		case !plant(tree, path, value):
			p.wrong(key, text, "must not be given in part and as a whole")
		}
	}
	return tree
}

// isNoName reports whether a name cannot be that of a field: field names have only letters and digits. Other names must not
// get into the YAML text, which would encode them in its own way.
func isNoName(name string) bool {
	return name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// plant sets the value at a path; false means that there was one already.
func plant(tree map[string]any, path []string, value any) bool {
	for _, name := range path[:len(path)-1] {
		if _, ok := tree[name]; !ok {
			tree[name] = make(map[string]any)
		}
		branch, ok := tree[name].(map[string]any)
		if !ok {
			return false
		}
		tree = branch
	}
	name := path[len(path)-1]
	_, taken := tree[name]
	tree[name] = value
	return !taken
}

// mostDeep is the maximum depth of a field, in names and list items: more than twice the depth of any field. YAML indents
// each line by its depth, so that a document's size grows with the square of the depth.
const mostDeep = 16

// leaf reads a value as YAML. A value that is not YAML, such as the schedule "*/5 * * * *", is text. leaf returns false if
// the value is nested in more than most lists and mappings.
func leaf(text string, most int) (any, bool) {
	d := yaml.NewDecoder(strings.NewReader(text))
	var n, second yaml.Node
	if d.Decode(&n) != nil || !errors.Is(d.Decode(&second), io.EOF) || n.Content[0].Tag == "!!null" {
		return text, most >= 0
	}
	return open(n.Content[0]), !deeper(n.Content[0], most)
}

// deeper reports whether a node is nested in more than most lists and mappings.
func deeper(n *yaml.Node, most int) bool {
	return most < 0 || slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return deeper(c, most-1) })
}

// open converts a mapping into a map, so that more fields can be added. A mapping with a repeated field stays a node, and is
// refused later.
func open(n *yaml.Node) any {
	if n.Kind != yaml.MappingNode {
		return n
	}
	branch := make(map[string]any)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i]; name.Kind != yaml.ScalarNode || !plant(branch, []string{name.Value}, open(n.Content[i+1])) {
			return n
		}
	}
	return branch
}

// metrics returns the number of metrics of a policy in a tree.
func metrics(tree map[string]any, which string) int {
	branch, _ := tree[which].(map[string]any)
	list, _ := branch["metrics"].(*yaml.Node)
	if list == nil {
		return 0
	}
	return len(list.Content)
}

// measure puts a policy's metric, and its profile, into a tree.
func (p *parser) measure(tree map[string]any, which, profile string, metric policy.Scaler) {
	p.m.policy, p.m.Scaler.Scaler = which, metric
	n := metrics(tree, which)
	p.check(n == 0, which+".metrics", n, "must not be given beside threshold")
	data, err := json.Marshal(metric)
	var made map[string]map[string]any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err = d.Decode(&made)
	}
	p.errs.Add(err) // always nil: the data was made from types of this module
	branch, ok := tree[which].(map[string]any)
	if !ok {
		branch = make(map[string]any)
		tree[which] = branch
	}
	branch["metrics"] = made[which]["metrics"]
	if profile == "" {
		return
	}
	other, ok := branch["profile"].(*yaml.Node)
	p.check(!ok || other.Value == profile, "profile", profile, "must be that of "+which+".profile, or not be given")
	branch["profile"] = profile
}

// measured refuses policies without metrics: a policy document would give them default metrics that nobody asked for.
func (p *parser) measured(tree map[string]any) {
	for _, which := range []string{"realtime", "proportional"} {
		if branch, ok := tree[which].(map[string]any); ok && branch["metrics"] == nil {
			p.wrong(which+".metrics", 0, "must be at least one")
		}
	}
}

// rules reads a tree as a policy document. Errors name the metadata keys.
func (p *parser) rules(tree map[string]any) {
	m := &p.m
	data, err := yaml.Marshal(map[string]any{"intervalSeconds": int(m.Interval.Seconds()), "scaler": tree})
	var d *policy.Document
	if err == nil {
		d, err = policy.Read(bytes.TrimSpace(data), "metadata")
	}
	if err == nil {
		m.Scaler = d.Policies[0].Scaler
		return
	}
	m.Scaler.Static = &policy.StaticScaler{Replicas: 1} // so that the other keys can still be checked
	for _, e := range typed.Split(err) {
		f := new(scaling.FieldError)
		if !errors.As(e, &f) {
			f.Rule = e.Error()
		}
		key, written := m.keyOf("spec." + f.Field)
		if from := environment(p.keys, key); from != "" {
			written = from // the field names in the value are secret too
		}
		if e := m.inKeysAs(key, written, f); !follows(e, typed.Split(p.errs.Err())) {
			p.errs.Add(e)
		}
	}
}
