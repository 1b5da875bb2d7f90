package k8s

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/inferscale/inferscale/scaling"
)

// maxConfigMap is the largest data of a ConfigMap, in bytes, that the API server accepts.
const maxConfigMap = 1 << 20

// maxParts is the largest number of ConfigMaps of a store.
const maxParts = 100

// A ConfigMapStore keeps states in a ConfigMap, or in several, each under its own key. It creates a ConfigMap if there is none, and
// needs the permissions get, create and patch on it. It is safe for concurrent use.
type ConfigMapStore struct{ parts []*document }

// ConfigMapStoreConfig names the ConfigMap of a ConfigMapStore.
type ConfigMapStoreConfig struct {
	Client    corev1client.ConfigMapsGetter // for example clientset.CoreV1()
	Namespace string
	Name      string
	// Parts is how many ConfigMaps there are, 0 as 1: Name, Name-1, Name-2 and so on. Each key is in one of them, by its hash. A
	// ConfigMap has room for 1 MiB: for the states of some 70 policies of package capacity with a forecast. A state that is in
	// another, from a time with fewer parts, moves when it is saved. With fewer parts than before the others' states are not
	// found; with as many again later they are, as they were.
	Parts int
	// Owner is set on a ConfigMap that the store creates, so that it is deleted with its owner; nil means none.
	Owner *metav1.OwnerReference
}

// Names returns the names of the ConfigMaps, of which RBAC must allow each.
func (c ConfigMapStoreConfig) Names() []string {
	names := []string{c.Name}
	for i := 1; i < c.Parts; i++ {
		names = append(names, fmt.Sprintf("%s-%d", c.Name, i))
	}
	return names
}

// NewConfigMapStore returns the Store in ConfigMaps, or an error with every rule that the configuration breaks.
func NewConfigMapStore(c ConfigMapStoreConfig) (*ConfigMapStore, error) {
	var e scaling.FieldErrors
	e.Check(c.Client != nil, "client", nil, "must be set")
	e.Check(c.Namespace != "", "namespace", c.Namespace, "must not be empty")
	e.Check(c.Name != "", "name", c.Name, "must not be empty")
	e.Check(c.Parts >= 0 && c.Parts <= maxParts, "parts", c.Parts, fmt.Sprintf("must be within 0 and %d", maxParts))
	if err := e.Err(); err != nil {
		return nil, err
	}
	s := &ConfigMapStore{}
	for _, name := range c.Names() {
		c.Name = name
		s.parts = append(s.parts, &document{
			where: "ConfigMap " + c.Namespace + "/" + c.Name,
			limit: maxConfigMap,
			key:   func(key string) string { return key },
			get:   c.get,
			put:   c.put,
		})
	}
	return s, nil
}

// of returns the parts: first that of a key, then the others, in which its state may be from a time with fewer.
func (s *ConfigMapStore) of(key string) []*document {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash returns no error
	own := int(h.Sum32() % uint32(len(s.parts)))
	return slices.Concat(s.parts[own:own+1], s.parts[:own], s.parts[own+1:])
}

// Load returns the state stored under key, or nothing if there is none.
func (s *ConfigMapStore) Load(ctx context.Context, key string) ([]byte, error) {
	for _, part := range s.of(key) {
		if state, err := part.Load(ctx, key); err != nil || state != nil {
			return state, err
		}
	}
	return nil, nil
}

// Save replaces old with state, see Store. If the state does not fit, the error is a *SizeError.
func (s *ConfigMapStore) Save(ctx context.Context, key string, old, state []byte) error {
	return s.SaveAndDrop(ctx, key, old, state, nil)
}

// SaveAndDrop is Save and drops other states of the key's part, see Pruner. Dropped states make room for the new one.
func (s *ConfigMapStore) SaveAndDrop(ctx context.Context, key string, old, state []byte, drop func(key string, state []byte) bool) error {
	parts := s.of(key)
	own := parts[0]
	err := own.swap(ctx, key, old, state, drop)
	if len(old) == 0 || !errors.Is(err, ErrStateConflict) {
		return err
	}
	for _, other := range parts[1:] {
		if was, e := other.Load(ctx, key); e != nil {
			return errors.Join(err, e)
		} else if !bytes.Equal(was, old) {
			continue
		}
		if err := own.swap(ctx, key, nil, state, drop); err != nil { // a conflict if somebody else has moved it
			return err
		}
		return other.swap(ctx, key, old, nil, nil) // after a crash here it is there, and not read as long as the key's part has one
	}
	return err
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
