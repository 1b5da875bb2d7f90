package k8s

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/inferscale/inferscale/scaling"
)

// maxAnnotations is the largest total size, in bytes with the keys, that the API server accepts for the annotations of an
// object.
const maxAnnotations = 256 << 10

// AnnotationPrefix is the prefix of the annotations that an AnnotationStore writes: "autoscaling.inferscale.io/state".
const AnnotationPrefix = "autoscaling.inferscale.io"

// An AnnotationStore keeps states in annotations of an object, for example of the resource that configures the scaling. It
// needs the permissions get and patch on the object. It is safe for concurrent use.
//
// The object must not be the target: every save changes the object's resource version, and the write of replicas is
// conditional on that of the target. A controller that watches the object should compare its generation, which annotations do
// not change.
type AnnotationStore struct {
	document

	object Target
}

// AnnotationStoreConfig names the object of an AnnotationStore.
type AnnotationStoreConfig struct {
	Client metadata.Interface
	Mapper meta.RESTMapper
	Object Target
}

// NewAnnotationStore returns the Store in an object's annotations, or an error with every rule that the configuration breaks.
func NewAnnotationStore(c AnnotationStoreConfig) (*AnnotationStore, error) {
	var e scaling.FieldErrors
	e.Check(c.Client != nil, "client", nil, "must be set")
	e.Check(c.Mapper != nil, "mapper", nil, "must be set")
	e.Add(c.Object.Validate("object"))
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &AnnotationStore{object: c.Object, document: document{
		where: "annotations of " + c.Object.String(),
		limit: maxAnnotations,
		key:   func(key string) string { return AnnotationPrefix + "/" + key },
		get:   c.get,
		put:   c.put,
	}}, nil
}

// on reports whether the annotations are those of the target, in any version of its API.
func (s *AnnotationStore) on(t Target) bool { return s.object.same(t) }

func (c AnnotationStoreConfig) get(ctx context.Context) (page, error) {
	mapping, err := c.Object.mapping(c.Mapper)
	if err != nil {
		return page{}, err
	}
	o, err := c.Client.Resource(mapping.Resource).Namespace(c.Object.Namespace).Get(ctx, c.Object.Name, metav1.GetOptions{})
	if err != nil {
		return page{}, err
	}
	return page{exists: true, version: o.ResourceVersion, values: o.Annotations}, nil
}

func (c AnnotationStoreConfig) put(ctx context.Context, p page, values map[string]*string) (page, error) {
	mapping, err := c.Object.mapping(c.Mapper)
	if err != nil {
		return page{}, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": p.version,
		"annotations":     values,
	}})
	if err != nil {
		return page{}, err
	}
	o, err := c.Client.Resource(mapping.Resource).Namespace(c.Object.Namespace).Patch(ctx, c.Object.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return page{}, err
	}
	return page{exists: true, version: o.ResourceVersion, values: o.Annotations}, nil
}
