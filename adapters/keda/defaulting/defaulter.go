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
)

// A Defaulter adds defaults to ScaledObjects. It keeps nothing of them and is safe for concurrent use.
type Defaulter struct {
	config   Config
	behavior map[mode]object // by mode, as JSON
	pending  budget          // bytes of requests that ServeHTTP has before it
}

// New returns a Defaulter, or every wrong field of c at once, each a *scaling.FieldError, joined by errors.Join.
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

// Default returns the operations that add to an object in JSON what it lacks, in the order in which they are to be
// applied, and what its author should know. Both are nil for objects that are none of ours. An error means that the
// input is not a JSON object.
//
// Ours is a ScaledObject of keda.sh/v1alpha1 with at least one trigger of type external or external-push and with the
// metadata scalerName of Config. An object that is being deleted and any other trigger are left as they are.
//
// Every operation is an add of something absent, so nothing that was there is changed or even written anew: numbers
// and unknown fields survive. Absent means missing or null; an empty string, list or object is set. A list of policies
// is one leaf. A metadata key with KEDA's suffix FromEnv counts as the key, except for scalerAddress, which KEDA reads
// from metadata only. A second pass adds nothing. A default gives way where it would contradict what the user said
// elsewhere:
//
//   - minReplicaCount is maxReplicaCount, if that is lower, and is left out if that is below 1: KEDA would refuse it. It
//     is left out too if a trigger in mode replicas has the metadata minReplicas 0, which needs KEDA's default of 0.
//   - No metricName, metricProtocol, metricPort and metricPath beside engine or signal, which say it all.
//   - No scrapeTimeout beside interval, on which the scaler's own default depends.
//   - None of these five beside scaler, a whole scaler as YAML for mode replicas, and where rules are given by their paths
//     without a threshold, as cron.… and realtime.metrics.
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

// review gathers what is to be said of an object.
func (d *Defaulter) review(root object) review {
	var r review
	spec, ours := d.ours(root)
	if len(ours) == 0 {
		return r
	}
	d.defaultSpec(&r, spec, ours)
	formula := below(spec, "advanced", "scalingModifiers")["formula"] != nil
	for _, t := range ours {
		d.defaultTrigger(&r, t, formula)
	}
	return r
}

// ours returns the triggers of ours, and the spec that they stand in. There are none unless root is a ScaledObject that
// is to stay.
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

// decode returns a JSON object with its numbers as written.
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
