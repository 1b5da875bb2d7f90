package k8s

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/inferscale/inferscale/scaling"
)

// A Target names a resource that has a /scale subresource: a Deployment, a LeaderWorkerSet, a custom resource.
type Target struct {
	APIVersion string // group and version, for example "apps/v1"
	Kind       string // for example "Deployment"
	Namespace  string
	Name       string
}

// String returns "Kind namespace/name", for messages.
func (t Target) String() string {
	return t.Kind + " " + t.Namespace + "/" + t.Name
}

// Validate reports every wrong field, each as a *scaling.FieldError with a path below field.
func (t Target) Validate(field string) error {
	var e scaling.FieldErrors
	gv, err := schema.ParseGroupVersion(t.APIVersion)
	// Clients make paths of requests out of them, of which ".." would make others.
	names := (gv.Group == "" || len(validation.IsDNS1123Subdomain(gv.Group)) == 0) && len(validation.IsDNS1123Label(gv.Version)) == 0
	e.Check(err == nil && names, field+".apiVersion", t.APIVersion, `must be "version" or "group/version"`)
	e.Check(t.Kind != "", field+".kind", t.Kind, "must not be empty")
	isKind := t.Kind == "" || len(validation.IsDNS1123Label(strings.ToLower(t.Kind))) == 0
	e.Check(isKind, field+".kind", t.Kind, "must be at most 63 letters, digits and -")
	e.Check(t.Namespace != "", field+".namespace", t.Namespace, "must not be empty")
	e.Check(t.Name != "", field+".name", t.Name, "must not be empty")
	return e.Err()
}

// groupKind returns the group with the kind, and the version.
func (t Target) groupKind() (schema.GroupKind, string, error) {
	gv, err := schema.ParseGroupVersion(t.APIVersion)
	if err != nil {
		return schema.GroupKind{}, "", err
	}
	return gv.WithKind(t.Kind).GroupKind(), gv.Version, nil
}

// mapping returns the REST mapping of the target's kind.
func (t Target) mapping(mapper meta.RESTMapper) (*meta.RESTMapping, error) {
	kind, version, err := t.groupKind()
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(kind, version)
}

// same reports whether two targets are the same object, in any version of its API.
func (t Target) same(other Target) bool {
	a, _, err := t.groupKind()
	b, _, _ := other.groupKind() // with an invalid group the result differs from any valid kind
	return err == nil && a == b && t.Namespace == other.Namespace && t.Name == other.Name
}

// key identifies the target in stored states, whatever the version of its API.
func (t Target) key() string {
	kind, _, _ := t.groupKind() // the target has been validated before
	return kind.String() + " " + t.Namespace + "/" + t.Name
}

// reference returns the reference to the target for events.
func (t Target) reference(uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: uid}
}
