package keda

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// dotted reports whether a key is the path of a field of a policy.
func dotted(key string) bool {
	first, _, found := strings.Cut(key, ".")
	return found && slices.Contains([]string{"realtime", "proportional", "cron"}, first)
}

// tree makes of the keys that are paths what an LLMAutoScaler's spec.scaler would be.
func (p *parser) tree() map[string]any {
	tree := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(p.given)) {
		if !dotted(key) {
			continue
		}
		text, _ := p.take(key)
		if !plant(tree, strings.Split(key, "."), leaf(text)) {
			p.wrong(key, text, "must name a field, and none that has been given as a whole")
		}
	}
	return tree
}

// plant puts a value at a path.
func plant(tree map[string]any, path []string, value any) bool {
	for i, name := range path {
		if name == "" {
			return false
		}
		if i == len(path)-1 {
			_, taken := tree[name]
			tree[name] = value
			return !taken
		}
		if _, ok := tree[name]; !ok {
			tree[name] = make(map[string]any)
		}
		branch, ok := tree[name].(map[string]any)
		if !ok {
			return false
		}
		tree = branch
	}
	return false
}

// leaf reads a value as YAML; what is none, as the schedule "*/5 * * * *", is text.
func leaf(text string) any {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil || v == nil {
		return text
	}
	return v
}

// yamlTo reads YAML that has one document and no key twice.
func yamlTo(text string, into any) error { return yaml.UnmarshalStrict([]byte(text), into) }

// strictly reads JSON that has no unknown fields.
func strictly(data []byte, into *v1alpha1.Scaler) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return err
}
