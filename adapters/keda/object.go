package keda

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
)

// KEDA's defaults for a ScaledObject.
const (
	minReplicaCount = 0
	maxReplicaCount = 100
)

const (
	// mostExternal is the maximum number of triggers of a ScaledObject that call external scalers: each is compared with all
	// others.
	mostExternal = 100
	// mostExternalMetadata is the maximum size of their metadata together, in bytes of keys and values.
	mostExternalMetadata = 256 << 10
	// mostExternalKeys is the maximum number of their keys together: a key takes more memory than its text.
	mostExternalKeys = 4096
)

// excess stands for metadata above the limits.
var excess = strings.Repeat("-", mostExternalMetadata+1) //nolint:gochecknoglobals // never written, and shared by all objects that exceed

// An Object has what a trigger needs of its ScaledObject.
type Object struct {
	// Target is spec.scaleTargetRef, in the ScaledObject's namespace.
	Target k8s.Target
	// Min and Max are spec.minReplicaCount and spec.maxReplicaCount.
	Min, Max int32

	triggers unique.Handle[string] // its external triggers as JSON, shared between equal objects: see external
	owners   *owners               // owners of their states; nil if there are none
}

// ObjectOf reads a ScaledObject (keda.sh/v1alpha1), with KEDA's defaults. The error has every wrong field.
func ObjectOf(u *unstructured.Unstructured) (Object, error) {
	var s struct {
		Spec struct {
			ScaleTargetRef struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Name       string `json:"name"`
			} `json:"scaleTargetRef"`
			MinReplicaCount *int32            `json:"minReplicaCount"`
			MaxReplicaCount *int32            `json:"maxReplicaCount"`
			Triggers        []json.RawMessage `json:"triggers"`
			Advanced        struct {
				ScalingModifiers struct {
					Formula    string     `json:"formula"`
					MetricType MetricType `json:"metricType"`
				} `json:"scalingModifiers"`
			} `json:"advanced"`
		} `json:"spec"`
	}
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return Object{}, fmt.Errorf("ScaledObject %s/%s: %w", u.GetNamespace(), u.GetName(), typed.Error(err))
	}
	ref := s.Spec.ScaleTargetRef
	o := Object{
		Target: k8s.Target{
			APIVersion: cmp.Or(ref.APIVersion, "apps/v1"), Kind: cmp.Or(ref.Kind, "Deployment"), Namespace: u.GetNamespace(), Name: ref.Name,
		},
		Min: minReplicaCount,
		Max: maxReplicaCount,
	}
	external := externals(s.Spec.Triggers)
	if m := s.Spec.Advanced.ScalingModifiers; m.Formula != "" { // its result is what the HorizontalPodAutoscaler sees
		for i := range external {
			external[i].MetricType = m.MetricType
		}
	}
	size, keys := 0, 0
	for i := range external {
		size, keys = size+sizeOf(external[i].Metadata), keys+len(external[i].Metadata)
	}
	if len(external) > 0 && len(external) <= mostExternal && size <= mostExternalMetadata && keys <= mostExternalKeys {
		o = o.with(external)
	}
	if s.Spec.MinReplicaCount != nil {
		o.Min = *s.Spec.MinReplicaCount
	}
	if s.Spec.MaxReplicaCount != nil {
		o.Max = *s.Spec.MaxReplicaCount
	}
	var e scaling.FieldErrors
	e.Check(o.Target.Name != "", "spec.scaleTargetRef.name", o.Target.Name, "must not be empty")
	e.Check(o.Min >= 0, "spec.minReplicaCount", o.Min, "must be at least 0")
	e.Check(o.Max >= max(o.Min, 1), "spec.maxReplicaCount", o.Max, "must be at least 1, and at least minReplicaCount")
	e.Check(len(external) <= mostExternal, "spec.triggers", len(external), fmt.Sprintf("must be at most %d that ask external scalers", mostExternal))
	e.Check(size <= mostExternalMetadata, "spec.triggers", size, fmt.Sprintf("must be at most %d bytes of metadata of those that ask external scalers", mostExternalMetadata))
	e.Check(keys <= mostExternalKeys, "spec.triggers", keys, fmt.Sprintf("must be at most %d keys of metadata of those that ask external scalers", mostExternalKeys))
	return o, e.Err()
}

// TrimObject returns the part of a ScaledObject that ObjectOf reads, for the cache of an informer, which has the
// ScaledObjects of all namespaces. The part is small, however large the annotations and the other triggers are. If the
// triggers exceed the limits, enough of them are kept for ObjectOf to refuse the object still.
func TrimObject(u *unstructured.Unstructured) *unstructured.Unstructured {
	spec, _ := u.Object["spec"].(map[string]any)
	ref, _ := spec["scaleTargetRef"].(map[string]any)
	advanced, _ := spec["advanced"].(map[string]any)
	modifiers, _ := advanced["scalingModifiers"].(map[string]any)
	kept := picked(spec, "minReplicaCount", "maxReplicaCount")
	kept["scaleTargetRef"] = picked(ref, "apiVersion", "kind", "name")
	kept["advanced"] = map[string]any{"scalingModifiers": picked(modifiers, "formula", "metricType")}
	if all, ok := spec["triggers"].([]any); ok {
		kept["triggers"] = trimmed(all)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": kept}}
	o.SetNamespace(u.GetNamespace())
	o.SetName(u.GetName())
	o.SetUID(u.GetUID())
	o.SetResourceVersion(u.GetResourceVersion())
	return o
}

// trimmed returns the triggers with their indices unchanged. Those that call external scalers keep the fields that are read.
func trimmed(all []any) []any {
	var kept []any
	count, size, keys := 0, 0, 0
	for i := range all {
		t, _ := all[i].(map[string]any)
		if kind, _ := t["type"].(string); kind != "external" && kind != "external-push" {
			continue
		}
		if count > mostExternal || size > mostExternalMetadata {
			break
		}
		kept = append(kept, make([]any, i-len(kept))...)
		metadata, _ := t["metadata"].(map[string]any)
		before := size
		for key, value := range metadata {
			text, _ := value.(string)
			size += len(key) + len(text)
		}
		if keys += len(metadata); keys > mostExternalKeys || size > mostExternalMetadata { // one byte above the limit stands for the rest
			size = mostExternalMetadata + 1
			metadata = map[string]any{"": excess[:size-before]}
		}
		e := picked(t, "type", "metricType")
		e["metadata"] = metadata
		kept = append(kept, e)
		count++
	}
	return kept
}

// longestText is how many bytes are kept of a text without a limit of its own: far more than any valid text has.
const longestText = 1024

// picked returns those of the fields that are neither lists nor objects.
func picked(from map[string]any, fields ...string) map[string]any {
	kept := make(map[string]any, len(fields))
	for _, field := range fields {
		switch x := from[field].(type) {
		case string:
			kept[field] = strings.Clone(x[:min(len(x), longestText)]) // a copy, so that the whole text is not kept in memory
		case nil, map[string]any, []any:
		default:
			kept[field] = x
		}
	}
	return kept
}

// resolve returns the target of a trigger and its bounds: from the metadata, and the rest from the ScaledObject.
func (m *Metadata) resolve(ref Ref, o Object, crossNamespace bool) (k8s.Target, scaling.Bounds, error) {
	t := o.Target
	t.Namespace, t.Name = cmp.Or(t.Namespace, ref.Namespace), cmp.Or(m.Target.Name, t.Name)
	if m.Target.Kind != "" {
		t.APIVersion, t.Kind = m.Target.APIVersion, m.Target.Kind
	}
	var e scaling.FieldErrors
	if m.Target.Namespace != "" && m.Target.Namespace != ref.Namespace {
		e.Check(crossNamespace, m.written("targetNamespace"), shown(m.keys, "targetNamespace", m.Target.Namespace), "must be the ScaledObject's namespace, "+ref.Namespace+", unless the scaler allows others")
		t.Namespace = m.Target.Namespace
	}
	e.Add(m.inKeys(t.Validate("target")))
	e.Check(!m.shares(o), m.written("stateName"), shown(m.keys, "stateName", m.StateName), "must tell this trigger from another of the ScaledObject, which has the same metric of the same pods: they would share one state")
	b := scaling.Bounds{Min: o.Min, Max: o.Max}
	if m.Mode == Metric {
		return t, scaling.Bounds{Min: 0, Max: max(o.Max, 1)}, e.Err() // the HorizontalPodAutoscaler enforces the bounds
	}
	if m.MaxReplicas != nil {
		b.Max = *m.MaxReplicas
	}
	switch {
	case m.MinReplicas != nil:
		b.Min = *m.MinReplicas
	case m.Scaler.Cron == nil, m.bounded: // without pods nothing could tell that one is needed; a document says 1
		b.Min = max(b.Min, 1)
	}
	e.Check(b.Max >= b.Min, m.written("maxReplicas"), shown(m.keys, "maxReplicas", b.Max), fmt.Sprintf("must be at least minReplicas %d", b.Min))
	return t, b, e.Err()
}
