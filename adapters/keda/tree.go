package keda

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/policy"
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
		path, value, alone := strings.Split(key, "."), leaf(text), make(map[string]any)
		if !plant(alone, path, value) {
			p.wrong(key, text, "must name a field")
			continue
		}
		errs := strictly(alone, new(policy.Scaler))
		for _, err := range errs {
			p.misfit(key, text, "must be a field of an LLMAutoScaler's spec.scaler", err)
		}
		if len(errs) == 0 && !plant(tree, path, value) {
			p.wrong(key, text, "must not be given in part and as a whole")
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
	if err := yamlTo(text, &v); err != nil || v == nil {
		return text
	}
	return v
}

// errDocuments is for YAML whose second document would be passed over.
var errDocuments = errors.New("there must be one document")

// yamlTo reads YAML that has one document and no key twice.
func yamlTo(text string, into any) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	if _, err := documents.Read(); err == nil {
		if _, err = documents.Read(); !errors.Is(err, io.EOF) {
			return errDocuments
		}
	}
	return yaml.UnmarshalStrict([]byte(text), into)
}

// strictly makes a scaler of a tree, and returns what does not fit: unknown fields, and names in another case.
func strictly(tree map[string]any, into *policy.Scaler) []error {
	data, err := json.Marshal(tree)
	if err != nil {
		return []error{err}
	}
	errs, err := kjson.UnmarshalStrict(data, into)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return append(errs, fmt.Errorf("%s: must be of type %s, not %s", kind.Field, kind.Type, kind.Value))
	case err != nil:
		return append(errs, err)
	}
	return errs
}
