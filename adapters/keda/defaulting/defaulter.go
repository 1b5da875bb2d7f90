package defaulting

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

const (
	apiVersion = "keda.sh/v1alpha1"
	kind       = "ScaledObject"
)

// A Defaulter adds defaults to ScaledObjects. It keeps nothing of them and is safe for concurrent use.
type Defaulter struct {
	config   Config
	behavior map[mode]object // by mode, as JSON
	pending  atomic.Int64    // bytes of requests that ServeHTTP has before it
}

// New returns a Defaulter, or every wrong field of c at once, each a *scaling.FieldError, joined by errors.Join.
func New(c Config) (*Defaulter, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := &Defaulter{config: c, behavior: map[mode]object{}}
	for m, b := range map[mode]autoscalingv2.HorizontalPodAutoscalerBehavior{modeMetric: c.Metric, modeReplicas: c.Replicas} {
		tree, err := toObject(b)
		if err != nil {
			return nil, fmt.Errorf("defaulting: the behavior of mode %s: %w", m, err)
		}
		d.behavior[m] = tree
	}
	return d, nil
}

// Default returns the operations that add to an object in JSON what it lacks, in the order in which they are to be
// applied, and what its author should know. Both are nil for objects that are none of ours. An error means that the
// input is not a JSON object.
func (d *Defaulter) Default(object []byte) (patch []Operation, warnings []string, err error) {
	root, err := decode(object)
	if err != nil {
		return nil, nil, fmt.Errorf("defaulting: the object: %w", err)
	}
	spec, ours := d.ours(root)
	if len(ours) == 0 {
		return nil, nil, nil
	}
	var r review
	d.defaultSpec(&r, spec, ours)
	for _, t := range ours {
		d.defaultTrigger(&r, t)
	}
	d.warnShared(&r, ours)
	return r.patch, r.warnings, nil
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

func toObject(v any) (object, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decode(raw)
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
