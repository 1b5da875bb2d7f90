package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/saturation"
)

// DefaultThresholds is the key of the entry for all models without an entry of their own.
const DefaultThresholds = "default"

// A ThresholdTable has the thresholds of many models, from the data of a ConfigMap: one entry for each "modelID#namespace",
// and one for "default".
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
//
// +kubebuilder:object:generate=false
type ThresholdTable struct {
	mode    saturation.Mode
	entries map[string]saturation.Thresholds
	broken  map[string]error
}

// ReadThresholds reads a ConfigMap's data. Every error in an entry is a [*PositionError] whose file is the entry, for example
// `entry "default"`. The errors are joined in the order of the keys. The valid entries are in the table and can be used.
//
// An entry is a document with the four keys above. The keys model_id and namespace are allowed and ignored: the key of the
// entry counts. In mode Default all four must be given, because an entry replaces the one that it overrides as a whole, and a
// missing threshold would be 0. In mode Literal a missing threshold is 0, as in llm-d. Thresholds are checked with
// saturation.Config.Validate.
func ReadThresholds(data map[string]string, mode saturation.Mode) (*ThresholdTable, error) {
	t := &ThresholdTable{mode: mode, entries: map[string]saturation.Thresholds{}, broken: map[string]error{}}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		thresholds, err := readThresholds(key, data[key], mode)
		if err == nil {
			t.entries[key] = thresholds
			continue
		}
		t.broken[key] = err
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

// ThresholdKey returns the key of a model's own entry.
func ThresholdKey(modelID, namespace string) string { return modelID + "#" + namespace }

// Resolve returns the thresholds of a model and the key of their entry: the model's own, else "default", else none. With none
// the key is empty, and the thresholds are the Recommended ones in mode Default and all zeros in mode Literal. An entry
// counts as a whole; no field of it is filled from another.
//
// If an entry that should be used is broken, the next one in that order is used, and the error is returned too: the
// thresholds can be used, but the error should be reported.
func (t *ThresholdTable) Resolve(modelID, namespace string) (thresholds saturation.Thresholds, key string, err error) {
	for _, key := range []string{ThresholdKey(modelID, namespace), DefaultThresholds} {
		if thresholds, ok := t.entries[key]; ok {
			return thresholds, key, err
		}
		err = errors.Join(err, t.broken[key])
	}
	if t.mode == saturation.Default {
		thresholds = saturation.Recommended()
	}
	return thresholds, "", err
}

// mostKey is the maximum length of a ConfigMap's key.
const mostKey = 253

// readThresholds reads one entry.
func readThresholds(key, text string, mode saturation.Mode) (saturation.Thresholds, error) {
	var entry struct {
		saturation.Thresholds `json:",inline"`

		Model     NumberOrName `json:"model_id,omitempty"`
		Namespace NumberOrName `json:"namespace,omitempty"`
	}
	r := newReader(fmt.Sprintf("entry %q", printable.Cut(key, mostKey)))
	r.partial = mode == saturation.Literal
	if model, namespace, _ := strings.Cut(key, "#"); key != DefaultThresholds && (model == "" || namespace == "") {
		r.report(0, "key", key, `must be "default" or modelID#namespace`)
	}
	roots := r.documents([]byte(text), "")
	if len(roots) == 0 && len(r.errs) == 0 {
		roots = []*yaml.Node{{Kind: yaml.MappingNode}}
	}
	r.one(roots, &entry, "", oneDocument)
	if len(r.errs) == 0 {
		r.rules(saturation.Config{Thresholds: entry.Thresholds, Mode: mode}.Validate())
	}
	return entry.Thresholds, r.err()
}
