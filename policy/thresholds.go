package policy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/saturation"
)

// DefaultThresholds is the key of the entry for all models without an entry of their own.
const DefaultThresholds = "default"

// A ThresholdTable has the thresholds of many models, from the data of a ConfigMap: one entry for each model of a namespace, and one
// for "default". An entry has the key "modelID#namespace" or, as no key of a ConfigMap has a / or a #, any other key, and then its
// model_id and namespace say which model it is for.
//
//	default: |
//	  kvCacheThreshold: 0.80
//	  queueLengthThreshold: 5
//	  kvSpareTrigger: 0.1
//	  queueSpareTrigger: 3
//	llama-70b: |
//	  model_id: meta/llama-70b
//	  namespace: production
//	  kvCacheThreshold: 0.85
//	  queueLengthThreshold: 5
//	  kvSpareTrigger: 0.15
//	  queueSpareTrigger: 3
//
// The zero value has no entries.
//
// +kubebuilder:object:generate=false
type ThresholdTable struct {
	mode    saturation.Mode
	entries map[string]saturation.Thresholds // by ThresholdKey
	keys    map[string]string                // of the entries, by ThresholdKey
	broken  map[string][]error
}

// ReadThresholds reads a ConfigMap's data. Every error in an entry is a [*PositionError] whose file is the entry, for example
// `entry "default"`. The errors are joined in the order of the keys. The valid entries are in the table and can be used.
//
// An entry is a document with the four thresholds above. With the key "default" or "modelID#namespace", which counts, model_id and
// namespace are allowed and ignored. A second entry for a model is an error; the first, in the order of the keys, is used. In mode Default all four must be given, because an entry replaces the one that it overrides as a whole, and a
// missing threshold would be 0. In mode Literal a missing threshold is 0, as in llm-d. Thresholds are checked with
// saturation.Config.Validate.
func ReadThresholds(data map[string]string, mode saturation.Mode) (*ThresholdTable, error) {
	t := &ThresholdTable{mode: mode, entries: map[string]saturation.Thresholds{}, keys: map[string]string{}, broken: map[string][]error{}}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		of, thresholds, err := t.read(key, data[key])
		if err == nil {
			t.entries[of], t.keys[of] = thresholds, key
			continue
		}
		t.broken[of] = append(t.broken[of], err)
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

// ThresholdKey names the model of an entry.
func ThresholdKey(modelID, namespace string) string { return modelID + "#" + namespace }

// Resolve returns the thresholds of a model and the key of their entry: the model's own, else "default", else none. With none
// the key is empty, and the thresholds are the Recommended ones in mode Default and all zeros in mode Literal. An entry
// counts as a whole; no field of it is filled from another.
//
// If an entry that should be used is broken, the next one in that order is used, and the error is returned too: the
// thresholds can be used, but the error should be reported.
func (t *ThresholdTable) Resolve(modelID, namespace string) (thresholds saturation.Thresholds, key string, err error) {
	for _, of := range []string{ThresholdKey(modelID, namespace), DefaultThresholds} {
		if thresholds, ok := t.entries[of]; ok {
			return thresholds, t.keys[of], err
		}
		err = errors.Join(err, errors.Join(t.broken[of]...))
	}
	if t.mode == saturation.Default {
		thresholds = saturation.Recommended()
	}
	return thresholds, "", err
}

// mostKey is the maximum length of a ConfigMap's key.
const mostKey = 253

// read reads one entry, and returns whose it is.
func (t *ThresholdTable) read(key, text string) (of string, _ saturation.Thresholds, _ error) {
	var entry struct {
		saturation.Thresholds `json:",inline"`

		Model     NumberOrName `json:"model_id,omitempty"`
		Namespace NumberOrName `json:"namespace,omitempty"`
	}
	r := newReader(fmt.Sprintf("entry %q", printable.Cut(key, mostKey)))
	r.partial = t.mode == saturation.Literal
	roots := r.documents([]byte(text), "")
	if len(roots) == 0 && len(r.errs) == 0 {
		roots = []*yaml.Node{{Kind: yaml.MappingNode}}
	}
	r.one(roots, &entry, "", oneDocument)
	if of = key; key != DefaultThresholds && !strings.Contains(key, "#") {
		of = ThresholdKey(string(entry.Model), string(entry.Namespace))
	}
	if model, namespace, _ := strings.Cut(of, "#"); of != DefaultThresholds && (model == "" || namespace == "") {
		r.report(0, "key", key, `must be "default" or modelID#namespace, or the entry must have model_id and namespace`)
	}
	if first, twice := t.keys[of]; twice {
		r.report(0, "key", key, fmt.Sprintf("must not be a second entry for %s: there is %q", of, first))
	}
	if !r.failed["file"] && !r.failed[""] {
		r.rules(saturation.Config{Thresholds: r.given(entry.Thresholds), Mode: t.mode}.Validate())
	}
	return of, entry.Thresholds, r.err()
}

// given returns the thresholds with NaN for those that could not be read: no rule compares another one with NaN.
func (r *reader) given(t saturation.Thresholds) saturation.Thresholds {
	for field, to := range map[string]*float64{
		"kvCacheThreshold": &t.KVCache, "queueLengthThreshold": &t.QueueLength, "kvSpareTrigger": &t.KVSpare, "queueSpareTrigger": &t.QueueSpare,
	} {
		if r.failed[field] {
			*to = math.NaN()
		}
	}
	return t
}
