package saturation

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/scaling"
)

// DefaultKey is the key of the entry for all models that have none of their own.
const DefaultKey = "default"

// A Table has the thresholds of many models, as the data of a ConfigMap gives them: an entry for each
// "modelID#namespace", and one "default".
//
//	default: |
//	  kvCacheThreshold: 0.80
//	  queueLengthThreshold: 5
//	  kvSpareTrigger: 0.1
//	  queueSpareTrigger: 3
//	meta/llama-70b#production: |
//	  kvCacheThreshold: 0.85
//	  queueLengthThreshold: 5
//	  kvSpareTrigger: 0.15
//	  queueSpareTrigger: 3
//
// The zero value has no entries.
type Table struct {
	mode    Mode
	entries map[string]Thresholds
	broken  map[string]*EntryError
}

// An EntryError says what is wrong with one entry. Its causes, scaling.FieldError for single fields, are joined.
type EntryError struct {
	Key string
	Err error
}

// Error returns the key and the causes in one line.
func (e *EntryError) Error() string {
	return fmt.Sprintf("entry %q: %s", e.Key, strings.ReplaceAll(e.Err.Error(), "\n", "; "))
}

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// ParseTable reads a ConfigMap's data. Every wrong entry is an *EntryError, all of them joined in the order of their
// keys; the other entries are in the table and can be used.
//
// An entry is YAML with the four keys above. The keys model_id and namespace are allowed and say nothing: the key of
// the entry decides. Any other key is an error that names it, and so is a key given twice. In mode Default all four
// must be given, as an entry replaces what it overrides as a whole and a threshold that was left out would be 0; in
// mode Literal what is left out is 0, as it is in the seed. Thresholds are checked as Config.Validate does.
func ParseTable(data map[string]string, mode Mode) (*Table, error) {
	t := &Table{mode: mode, entries: map[string]Thresholds{}, broken: map[string]*EntryError{}}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		thresholds, err := parseEntry(key, data[key], mode)
		if err == nil {
			t.entries[key] = thresholds
			continue
		}
		t.broken[key] = &EntryError{Key: key, Err: err}
		errs = append(errs, t.broken[key])
	}
	return t, errors.Join(errs...)
}

// Key returns the key of a model's own entry.
func Key(modelID, namespace string) string { return modelID + "#" + namespace }

// Resolve returns the thresholds of a model and the key of the entry that they are from: its own, else "default", else
// none (an empty key), which means the Recommended ones in mode Default and all zeros in mode Literal. An entry counts
// as a whole; no field of it is filled from another.
//
// If an entry that would have decided is broken, the next one in that order decides, and the *EntryError is returned
// too: the thresholds can be used, and somebody should hear of it.
func (t *Table) Resolve(modelID, namespace string) (thresholds Thresholds, key string, err error) {
	var errs []error
	for _, key := range []string{Key(modelID, namespace), DefaultKey} {
		if thresholds, ok := t.entries[key]; ok {
			return thresholds, key, errors.Join(errs...)
		}
		if e := t.broken[key]; e != nil {
			errs = append(errs, e)
		}
	}
	if t.mode == Default {
		thresholds = Recommended()
	}
	return thresholds, "", errors.Join(errs...)
}

// parseEntry reads one entry.
func parseEntry(key, text string, mode Mode) (Thresholds, error) {
	var e scaling.FieldErrors
	model, namespace, found := strings.Cut(key, "#")
	e.Check(key == DefaultKey || found && model != "" && namespace != "", "key", key, `must be "default" or modelID#namespace`)
	fields, err := parseMapping(text)
	if err != nil {
		e.Add(err)
		return Thresholds{}, e.Err()
	}
	var t Thresholds
	names := [...]string{kvCache, queueLength, kvSpare, queueSpare}
	values := [...]*float64{&t.KVCache, &t.QueueLength, &t.KVSpare, &t.QueueSpare}
	given := map[string]bool{}
	for _, f := range fields {
		e.Check(!given[f.key.Value], f.key.Value, f.value.Value, fmt.Sprintf("must be given once (line %d)", f.key.Line))
		given[f.key.Value] = true
		place := slices.Index(names[:], f.key.Value)
		switch {
		case place >= 0:
			e.Check(number(f.value, values[place]), f.key.Value, f.value.Value, fmt.Sprintf("must be a number (line %d)", f.value.Line))
		case f.key.Value == "model_id" || f.key.Value == "namespace":
			e.Check(f.value.Kind == yaml.ScalarNode, f.key.Value, f.value.Value, fmt.Sprintf("must be text (line %d)", f.value.Line))
		default:
			e.Check(false, f.key.Value, f.value.Value, fmt.Sprintf("is not a known key (line %d)", f.key.Line))
		}
	}
	if mode == Default {
		for _, name := range names {
			e.Check(given[name], name, "", "must be given: an entry replaces all four thresholds")
		}
	}
	if err := e.Err(); err != nil {
		return Thresholds{}, err
	}
	return t, t.validate("", mode)
}

// number reads a scalar that is a number without quotes.
func number(n *yaml.Node, target *float64) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" {
		return false
	}
	return n.Decode(target) == nil
}

type yamlField struct{ key, value *yaml.Node }

// parseMapping reads YAML that is one mapping, or empty.
func parseMapping(text string) ([]yamlField, error) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one YAML document")
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("must be one YAML document")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("must be a mapping of keys to values")
	}
	var fields []yamlField
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key must be a name", root.Content[i].Line)
		}
		fields = append(fields, yamlField{root.Content[i], root.Content[i+1]})
	}
	return fields, nil
}
