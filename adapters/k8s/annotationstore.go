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

// maxAnnotations is what the API server accepts as all annotations of an object, keys included, in bytes.
const maxAnnotations = 256 << 10

// AnnotationPrefix is the prefix of the annotations that an AnnotationStore writes: "autoscaling.inferscale.io/state".
const AnnotationPrefix = "autoscaling.inferscale.io"

// An AnnotationStore keeps states in annotations of an object, such as the resource that configures the scaling. It
// needs get and patch on it. It is safe for concurrent use.
//
// The object must not be the one that is scaled: every save changes an object's resource version, and the write of
// replicas is conditional on that. A controller that watches the object should look at its generation, which
// annotations do not change.
type AnnotationStore struct {
	document document
	object   Target
}

// AnnotationStoreConfig says which object.
type AnnotationStoreConfig struct {
	Client metadata.Interface
	Mapper meta.RESTMapper
	Object Target
}

// NewAnnotationStore returns the Store of an object's annotations, or every rule that the configuration breaks.
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

// Load returns what is stored under key. An annotation that is absent or empty is nothing stored.
func (s *AnnotationStore) Load(ctx context.Context, key string) ([]byte, error) {
	return s.document.load(ctx, key)
}

// Save replaces old by state, see Store. A state that would not fit is a *SizeError.
func (s *AnnotationStore) Save(ctx context.Context, key string, old, state []byte) error {
	return s.document.swap(ctx, key, old, state, nil)
}

// on reports whether the annotations are those of a target, in any version of its API.
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
