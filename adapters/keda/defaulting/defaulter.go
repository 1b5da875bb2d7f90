package defaulting

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	apiVersion = "keda.sh/v1alpha1"
	kind       = "ScaledObject"

	// The most triggers of this scaler that get defaults, and the most bytes of keys and values of their metadata. They are the
	// limits of the scaler: to read the rules of all triggers of a larger object could take most of a minute.
	mostTriggers = 100
	mostMetadata = 256 << 10
)

// A Defaulter adds defaults to ScaledObjects. It stores nothing about them and is safe for concurrent use.
type Defaulter struct {
	config    Config
	behavior  map[mode]object // by mode, as JSON
	pending   budget          // bytes of requests that ServeHTTP has not answered yet
	answering crowd           // of these, those whose namespace is known
}

// New returns a Defaulter, or an error that joins all wrong fields of c, each a *scaling.FieldError.
func New(c Config) (*Defaulter, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := &Defaulter{config: c, behavior: map[mode]object{}}
	for m, b := range map[mode]Behavior{modeMetric: c.Metric, modeReplicas: c.Replicas} {
		tree, err := json.Marshal(b)
		if err == nil {
			d.behavior[m], err = decode(tree)
		}
		if err != nil {
			return nil, fmt.Errorf("defaulting: the behavior of mode %s: %w", m, err)
		}
	}
	return d, nil
}

// Default returns the operations that add the missing defaults to an object in JSON, in the order in which they must be
// applied, and warnings for its author. Both are nil for objects without triggers of this scaler. An error means that the
// input is not a JSON object.
//
// An object gets defaults if it is a ScaledObject of keda.sh/v1alpha1 with at least one trigger of type external or
// external-push that has the metadata scalerName of Config. Objects that are being deleted, and other triggers, are left
// unchanged. So are objects with more than 100 such triggers, or with more than 256 KiB of metadata in them, which the scaler
// refuses; a warning says so.
//
// Every operation adds something that is absent, so nothing that exists is changed or rewritten: numbers and unknown fields
// survive. Absent means missing or null; an empty string, list or object is not absent. A list of policies is one leaf. A
// metadata key with KEDA's suffix FromEnv counts as the key, except for scalerAddress, which KEDA reads from the metadata
// only. A second pass adds nothing. A default is left out or changed if it would contradict what the user said elsewhere:
//
//   - minReplicaCount is maxReplicaCount, if that is lower, and is left out if that is below 1: KEDA would refuse it. It
//     is left out too if a trigger in mode replicas has the metadata minReplicas 0, which needs KEDA's default of 0.
//   - No metricName, metricProtocol, metricPort and metricPath beside engine or signal, which determine all of them.
//   - No scrapeTimeout beside interval, on which the scaler's own default depends.
//   - None of these five beside scaler, a whole scaler as YAML for mode replicas, or if rules are given by their paths
//     without a threshold, such as cron.policies or realtime.metrics.
//   - None of the first four beside realtime.metrics or proportional.metrics: one metric that the threshold and a rule
//     both read must be read in one way.
//   - No metricProtocol beside metricPorotocol.
func (d *Defaulter) Default(object []byte) (patch []Operation, warnings []string, err error) {
	root, err := decode(object)
	if err != nil {
		return nil, nil, fmt.Errorf("defaulting: the object: %w", err)
	}
	r := d.review(root)
	return r.patch, r.warnings, nil
}

// review collects the operations and warnings for an object.
func (d *Defaulter) review(root object) review {
	var r review
	spec, ours := d.ours(root)
	if len(ours) == 0 {
		return r
	}
	if why := tooMuch(ours); why != "" {
		r.warn(path{"spec", "triggers"}, why+": no defaults were added")
		return r
	}
	d.defaultSpec(&r, spec, ours)
	formula := below(spec, "advanced", "scalingModifiers")["formula"] != nil
	for _, t := range ours {
		d.defaultTrigger(&r, t, formula)
	}
	return r
}

// tooMuch returns why the triggers of this scaler get no defaults, or "" if they do.
func tooMuch(ours []trigger) string {
	if len(ours) > mostTriggers {
		return fmt.Sprintf("%d of this scaler, more than %d", len(ours), mostTriggers)
	}
	size := 0
	for _, t := range ours {
		for key, value := range t.meta {
			text, _ := value.(string)
			size += len(key) + len(text)
		}
	}
	if size > mostMetadata {
		return fmt.Sprintf("%d bytes of metadata for this scaler, more than %d", size, mostMetadata)
	}
	return ""
}

// ours returns the triggers of this scaler, and the spec that contains them. There are none unless root is a ScaledObject
// that is not being deleted.
func (d *Defaulter) ours(root object) (spec object, ours []trigger) {
	if root["apiVersion"] != apiVersion || root["kind"] != kind {
		return nil, nil
	}
	if meta, ok := root["metadata"].(object); ok && meta["deletionTimestamp"] != nil {
		return nil, nil
	}
	spec, _ = root["spec"].(object)
	triggers, _ := spec["triggers"].([]any)
	for i, raw := range triggers {
		fields, _ := raw.(object)
		meta, _ := fields["metadata"].(object)
		if (fields["type"] == "external" || fields["type"] == "external-push") && meta["scalerName"] == d.config.ScalerName {
			ours = append(ours, trigger{index: i, fields: fields, meta: meta})
		}
	}
	return spec, ours
}

// decode returns a JSON object; its numbers stay as they are written.
func decode(raw []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the JSON value")
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	return o, nil
}
