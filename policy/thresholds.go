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

// DefaultThresholds is the key of the entry for all models that have none of their own.
const DefaultThresholds = "default"

// A ThresholdTable has the thresholds of many models, as the data of a ConfigMap gives them: an entry for each
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
//
// +kubebuilder:object:generate=false
type ThresholdTable struct {
	mode    saturation.Mode
	entries map[string]saturation.Thresholds
	broken  map[string]error
}

// ReadThresholds reads a ConfigMap's data. Every fault of an entry is a [*PositionError] whose file is the entry, as
// `entry "default"`, all of them joined in the order of their keys; the other entries are in the table and can be used.
//
// An entry is a document with the four keys above. The keys model_id and namespace are allowed and say nothing: the key
// of the entry decides. In mode Default all four must be given, as an entry replaces what it overrides as a whole and a
// threshold that was left out would be 0; in mode Literal what is left out is 0, as it is in llm-d. Thresholds are
// checked as saturation.Config.Validate does.
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

// Resolve returns the thresholds of a model and the key of the entry that they are from: its own, else "default", else
// none (an empty key), which means the Recommended ones in mode Default and all zeros in mode Literal. An entry counts
// as a whole; no field of it is filled from another.
//
// If an entry that would have decided is broken, the next one in that order decides, and what is wrong with it is
// returned too: the thresholds can be used, and somebody should hear of it.
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

// mostKey is how long a ConfigMap's key can be.
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
