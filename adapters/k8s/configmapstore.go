package k8s

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/inferscale/inferscale/scaling"
)

// maxConfigMap is the largest data of a ConfigMap, in bytes, that the API server accepts.
const maxConfigMap = 1 << 20

// A ConfigMapStore keeps states in a ConfigMap, each under its own key. It creates the ConfigMap if there is none, and needs
// the permissions get, create and patch on it. It is safe for concurrent use.
type ConfigMapStore struct{ document }

// ConfigMapStoreConfig names the ConfigMap of a ConfigMapStore.
type ConfigMapStoreConfig struct {
	Client    corev1client.ConfigMapsGetter // for example clientset.CoreV1()
	Namespace string
	Name      string
	// Owner is set on a ConfigMap that the store creates, so that it is deleted with its owner; nil means none.
	Owner *metav1.OwnerReference
}

// NewConfigMapStore returns the Store in a ConfigMap, or an error with every rule that the configuration breaks.
func NewConfigMapStore(c ConfigMapStoreConfig) (*ConfigMapStore, error) {
	var e scaling.FieldErrors
	e.Check(c.Client != nil, "client", nil, "must be set")
	e.Check(c.Namespace != "", "namespace", c.Namespace, "must not be empty")
	e.Check(c.Name != "", "name", c.Name, "must not be empty")
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &ConfigMapStore{document: document{
		where: "ConfigMap " + c.Namespace + "/" + c.Name,
		limit: maxConfigMap,
		key:   func(key string) string { return key },
		get:   c.get,
		put:   c.put,
	}}, nil
}

// SaveAndDrop is Save and drops other states, see Pruner. Dropped states make room for the new one.
func (s *ConfigMapStore) SaveAndDrop(ctx context.Context, key string, old, state []byte, drop func(key string, state []byte) bool) error {
	return s.swap(ctx, key, old, state, drop)
}

func (c ConfigMapStoreConfig) get(ctx context.Context) (page, error) {
	m, err := c.Client.ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return page{}, nil
	}
	if err != nil {
		return page{}, err
	}
	return pageOf(m), nil
}

func (c ConfigMapStoreConfig) put(ctx context.Context, p page, values map[string]*string) (page, error) {
	maps := c.Client.ConfigMaps(c.Namespace)
	var m *corev1.ConfigMap
	var err error
	if !p.exists {
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}, Data: make(map[string]string)}
		for k, v := range values { // a new ConfigMap has no keys to remove
			m.Data[k] = *v
		}
		if c.Owner != nil {
			m.OwnerReferences = []metav1.OwnerReference{*c.Owner}
		}
		m, err = maps.Create(ctx, m, metav1.CreateOptions{})
	} else {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": p.version},
			"data":     values,
		}); err != nil {
			return page{}, err
		}
		m, err = maps.Patch(ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return page{}, err
	}
	return pageOf(m), nil
}

// pageOf counts binary data in its encoded form, which is larger than the form that the API server counts, to be on the safe
// side.
func pageOf(m *corev1.ConfigMap) page {
	p := page{exists: true, version: m.ResourceVersion, values: make(map[string]string)}
	for k, v := range m.BinaryData {
		p.values[k] = base64.StdEncoding.EncodeToString(v)
	}
	maps.Copy(p.values, m.Data)
	return p
}
