// Package stored reads LLMAutoScalers as an API server may have stored them, for the cache of a controller. A stored object
// may not fit into the types of package v1alpha1, for example if it was written under an older definition that did not limit
// its numbers. This package reads it as an object with an error. With the types of v1alpha1 it would end every list and watch
// that contains it, and so the autoscaling of the whole cluster.
//
//	stored.AddToScheme(scheme)          // in place of v1alpha1.AddToScheme: a scheme has one type of a kind
//	config.Wrap(stored.Shallow)         // for objects that are nested too deep to be read in a list
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

// An LLMAutoScaler has those parts of an LLMAutoScaler that could be read. Its JSON is that of v1alpha1.LLMAutoScaler. If the
// spec could not be read, writing the object would write an empty spec: patch only the status of such an object.
type LLMAutoScaler struct {
	v1alpha1.LLMAutoScaler `json:",inline"`

	// SpecErr says why Spec could not be read and is empty; StatusErr says the same of Status.
	SpecErr, StatusErr error `json:"-"`
}

// UnmarshalJSON reads the parts that can be read. It returns an error only if the data is not an object or its metadata is
// invalid.
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

// An LLMAutoScalerList is a list of LLMAutoScalers, each with the parts that could be read.
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

// AddToScheme registers the types of this package in a scheme, as the kinds of package v1alpha1.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(v1alpha1.GroupVersion(), &LLMAutoScaler{}, &LLMAutoScalerList{})
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion())
	return nil
}

// MaxPart is the maximum size of a spec or a status, in bytes of JSON. A larger one is left out, because it would stay in the
// cache, which has the objects of all namespaces.
const MaxPart = 256 << 10

// Unmarshal reads an object of type T. If it cannot be read as a whole, Unmarshal leaves the spec, the status or both empty
// and returns the reasons as spec and status. It can be used to make types like LLMAutoScaler for other kinds.
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

// without reads an object without the named parts. A remaining part that is too large is an error.
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
