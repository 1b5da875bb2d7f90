// Package stored has the LLMAutoScaler as an API server may have it stored, for the cache of a controller: an object that
// the types of package v1alpha1 cannot hold, as one of a definition that did not limit its numbers, is an object with an
// error. With the types themselves it is the end of every list and watch that it is part of, and so of the whole cluster's
// autoscaling.
//
//	stored.AddToScheme(scheme)          // in place of v1alpha1.AddToScheme: a scheme has one type of a kind
//
//	las := &stored.LLMAutoScaler{}
//	err := client.Get(ctx, key, las)
//	if las.SpecErr != nil { ... }       // to be told: the condition Ready is False with the reason InvalidSpec
package stored

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonutil "k8s.io/apimachinery/pkg/util/json"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/scaling"
)

// An LLMAutoScaler is what could be read of one. Its JSON is that of the LLMAutoScaler; who writes one whose spec could
// not be read writes an empty spec, so such an object is to be patched in its status alone.
type LLMAutoScaler struct {
	v1alpha1.LLMAutoScaler `json:",inline"`

	// SpecErr is why Spec is empty, and StatusErr why Status is.
	SpecErr, StatusErr error `json:"-"`
}

// UnmarshalJSON reads what can be read. The error is that of what is no object, or has metadata of no API server.
func (l *LLMAutoScaler) UnmarshalJSON(data []byte) (err error) {
	l.LLMAutoScaler, l.SpecErr, l.StatusErr, err = Unmarshal[v1alpha1.LLMAutoScaler](data)
	return err
}

// DeepCopyInto copies l into out.
func (l *LLMAutoScaler) DeepCopyInto(out *LLMAutoScaler) {
	out.SpecErr, out.StatusErr = l.SpecErr, l.StatusErr
	l.LLMAutoScaler.DeepCopyInto(&out.LLMAutoScaler)
}

// DeepCopyObject returns a copy.
func (l *LLMAutoScaler) DeepCopyObject() runtime.Object {
	out := &LLMAutoScaler{}
	l.DeepCopyInto(out)
	return out
}

// An LLMAutoScalerList is a list of what could be read of each.
type LLMAutoScalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"` //nolint:modernize // as all lists of Kubernetes
	Items           []LLMAutoScaler             `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *LLMAutoScalerList) DeepCopyObject() runtime.Object {
	list := l.ListMeta
	out := &LLMAutoScalerList{TypeMeta: l.TypeMeta, ListMeta: *list.DeepCopy(), Items: make([]LLMAutoScaler, len(l.Items))}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// AddToScheme makes the types of this package known to a scheme as the kinds of package v1alpha1.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(v1alpha1.GroupVersion(), &LLMAutoScaler{}, &LLMAutoScalerList{})
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion())
	return nil
}

// MaxPart is how long a spec or a status may be, in bytes of JSON: what is longer is left out, as it would stay in the cache, which
// has the objects of all namespaces.
const MaxPart = 256 << 10

// Unmarshal reads an object of type T, or what can be read of it without its spec, its status or both, with the reason
// for which they are empty. For other kinds than the LLMAutoScaler it makes types like it.
func Unmarshal[T any](data []byte) (object T, spec, status, err error) {
	var why error
	if len(data) <= MaxPart {
		why = jsonutil.Unmarshal(data, &object)
	} else {
		object, why = without[T](data)
	}
	if why == nil {
		return object, nil, nil, nil
	}
	if object, spec = without[T](data, "status"); spec == nil {
		return object, nil, why, nil
	}
	if object, status = without[T](data, "spec"); status == nil {
		return object, spec, nil, nil
	}
	object, err = without[T](data, "spec", "status")
	return object, spec, status, err
}

// without reads an object without some of its parts. Parts that are too long are errors.
func without[T any](data []byte, names ...string) (object T, err error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return object, err
	}
	for _, name := range names {
		delete(parts, name)
	}
	var e scaling.FieldErrors
	for _, name := range [...]string{"spec", "status"} {
		e.Check(len(parts[name]) <= MaxPart, name, len(parts[name]), fmt.Sprintf("must be at most %d bytes of JSON", MaxPart))
	}
	if err := e.Err(); err != nil {
		return object, err
	}
	rest, err := json.Marshal(parts)
	if err != nil {
		return object, err
	}
	return object, jsonutil.Unmarshal(rest, &object)
}
