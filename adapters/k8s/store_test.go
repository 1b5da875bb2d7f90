package k8s_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/inferscale/inferscale/adapters/k8s"
)

func TestConfigMapStore(t *testing.T) {
	ctx := context.Background()
	c := newCluster(1)
	s := c.store(t)

	data, err := s.Load(ctx, "state")
	require.NoError(t, err)
	require.Empty(t, data, "no ConfigMap is nothing stored")

	require.NoError(t, s.Save(ctx, "state", nil, []byte("one")))
	require.NoError(t, s.Save(ctx, "state", []byte("one"), []byte("two")))
	require.NoError(t, s.Save(ctx, "other", nil, []byte("x")))
	data, err = s.Load(ctx, "state")
	require.NoError(t, err)
	require.Equal(t, "two", string(data))

	// Something else in the ConfigMap has changed: the state has not, and is replaced.
	c.ConfigMap.Data["note"] = "by hand"
	c.ConfigMap.ResourceVersion = c.NextVersion()
	require.NoError(t, s.Save(ctx, "state", []byte("two"), []byte("three")))
	require.Equal(t, "by hand", c.ConfigMap.Data["note"])

	// What is remembered of a state may be old, as another store wrote it: it is read before it is a conflict.
	second := c.store(t)
	require.NoError(t, second.Save(ctx, "state", []byte("three"), []byte("3")))
	require.NoError(t, s.Save(ctx, "state", []byte("3"), []byte("three")))

	// Somebody else has written the state: it is not overwritten.
	require.NoError(t, c.store(t).Save(ctx, "state", []byte("three"), []byte("theirs")))
	require.ErrorIs(t, s.Save(ctx, "state", []byte("three"), []byte("four")), k8s.ErrStateConflict)
	require.Equal(t, "theirs", c.ConfigMap.Data["state"])

	// It is removed, with what was known: that is a conflict too, and then a fresh start.
	c.ConfigMap = nil
	require.ErrorIs(t, s.Save(ctx, "state", []byte("theirs"), []byte("four")), k8s.ErrStateConflict)
	require.NoError(t, s.Save(ctx, "state", nil, []byte("five")))
	require.Equal(t, "five", c.ConfigMap.Data["state"])
}

func TestConfigMapStoreLimits(t *testing.T) {
	ctx := context.Background()
	c := newCluster(1)
	s := c.store(t)
	require.NoError(t, s.Save(ctx, "other", nil, []byte(strings.Repeat("x", 1000))))
	err := s.Save(ctx, "state", nil, []byte(strings.Repeat("x", 1<<20-1000)))
	var size *k8s.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, 1<<20, size.Limit)
	require.Greater(t, size.Size, size.Limit)
	require.ErrorContains(t, err, "state does not fit: ConfigMap default/state would have")
	require.Equal(t, 1, c.Saves, "it was not even tried")
}

// TestConfigMapStoreDrops what it is told to, in the write that it makes anyway, which makes room for it, and nothing else.
func TestConfigMapStoreDrops(t *testing.T) {
	ctx := context.Background()
	c := newCluster(1)
	s, ok := c.Store().(k8s.Pruner)
	require.True(t, ok)
	asked := map[string]string{}
	drop := func(key string, state []byte) bool {
		asked[key] = string(state)
		return strings.HasPrefix(key, "old")
	}
	require.NoError(t, s.SaveAndDrop(ctx, "old", nil, []byte("zero"), drop), "none is there")
	require.Empty(t, asked)
	require.NoError(t, s.SaveAndDrop(ctx, "old", []byte("zero"), []byte(strings.Repeat("x", 1000)), drop), "it is not asked of what is saved")
	require.Empty(t, asked)
	require.NoError(t, s.Save(ctx, "other", nil, []byte("y")))
	require.NoError(t, s.Save(ctx, "older", nil, []byte("z")))
	large := []byte(strings.Repeat("x", 1<<20-1000))
	var size *k8s.SizeError
	require.ErrorAs(t, s.Save(ctx, "state", nil, large), &size)
	require.ErrorIs(t, s.SaveAndDrop(ctx, "state", []byte("what is not there"), large, drop), k8s.ErrStateConflict)
	require.Len(t, c.ConfigMap.Data, 3)
	_, err := s.Load(ctx, "state")
	require.NoError(t, err)

	// What has been written meanwhile is asked about too.
	require.NoError(t, c.store(t).Save(ctx, "old", []byte(strings.Repeat("x", 1000)), []byte(strings.Repeat("y", 1000))))
	saves := c.Saves
	require.NoError(t, s.SaveAndDrop(ctx, "state", nil, large, drop))
	require.Equal(t, saves+2, c.Saves, "one that was too late, and one")
	require.Equal(t, map[string]string{"old": strings.Repeat("y", 1000), "older": "z", "other": "y"}, asked)
	require.Equal(t, map[string]string{"other": "y", "state": string(large)}, c.ConfigMap.Data)
	data, err := s.Load(ctx, "old")
	require.NoError(t, err)
	require.Empty(t, data)
	require.NoError(t, s.SaveAndDrop(ctx, "state", large, []byte("small"), nil))
	require.Equal(t, map[string]string{"other": "y", "state": "small"}, c.ConfigMap.Data)
}

func TestConfigMapStoreErrors(t *testing.T) {
	c := newCluster(1)
	s := c.store(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "state", errors.New("rbac"))
	c.Fault = func(string, func()) error { return forbidden }
	_, err := s.Load(context.Background(), "state")
	require.ErrorIs(t, err, forbidden)
	require.ErrorContains(t, err, "ConfigMap default/state")

	// A version that always moves on ends the attempts.
	c.Fault = nil
	require.NoError(t, s.Save(context.Background(), "state", nil, []byte("one")))
	c.Fault = func(_ string, effect func()) error {
		c.ConfigMap.ResourceVersion = c.NextVersion()
		effect()
		return nil
	}
	c.Saves = 0
	require.Error(t, s.Save(context.Background(), "state", []byte("one"), []byte("two")))
	require.LessOrEqual(t, c.Saves, 5)

	_, err = k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{})
	for _, field := range []string{"client", "namespace", "name"} {
		require.ErrorContains(t, err, field)
	}
}

// annotated is an API server with one object, of which only the metadata is seen.
func annotated(t *testing.T, object *metav1.PartialObjectMetadata) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme)
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, object.DeepCopy(), nil
	})
	client.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		var patch metav1.PartialObjectMetadata
		if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
			return true, nil, err
		}
		if patch.ResourceVersion != object.ResourceVersion {
			return true, nil, apierrors.NewConflict(resource, object.Name, nil)
		}
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		maps.Copy(object.Annotations, patch.Annotations)
		object.ResourceVersion += "+"
		return true, object.DeepCopy(), nil
	})
	return client
}

func TestAnnotationStore(t *testing.T) {
	ctx := context.Background()
	object := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "llama", ResourceVersion: "1"},
	}
	s, err := k8s.NewAnnotationStore(k8s.AnnotationStoreConfig{Client: annotated(t, object), Mapper: newCluster(1).Mapper(), Object: target})
	require.NoError(t, err)
	require.NoError(t, s.Save(ctx, "state", nil, []byte("one")))
	object.ResourceVersion = "a status update"
	require.NoError(t, s.Save(ctx, "state", []byte("one"), []byte("two")))
	require.Equal(t, map[string]string{"autoscaling.inferscale.io/state": "two"}, object.Annotations)
	data, err := s.Load(ctx, "state")
	require.NoError(t, err)
	require.Equal(t, "two", string(data))

	object.Annotations["autoscaling.inferscale.io/state"] = "theirs"
	object.ResourceVersion = "another"
	require.ErrorIs(t, s.Save(ctx, "state", []byte("two"), []byte("three")), k8s.ErrStateConflict)

	object.Annotations["big"] = strings.Repeat("x", 200<<10)
	object.ResourceVersion = "a third"
	_, err = s.Load(ctx, "state")
	require.NoError(t, err)
	var size *k8s.SizeError
	require.ErrorAs(t, s.Save(ctx, "state", []byte("theirs"), []byte(strings.Repeat("x", 60<<10))), &size)
	require.Equal(t, 256<<10, size.Limit)

	// The state of a target must not be in its own annotations, in whatever version of its API.
	c := newCluster(1)
	_, err = k8s.NewLoop(k8s.LoopConfig{
		Target: target, Policy: policy(t), Settings: k8s.Settings{Scales: c.Scales(), Store: s},
	})
	require.ErrorContains(t, err, "must not be the target itself")
}

// A ConfigMap that is made goes with its owner, and what is in it beside states takes room.
func TestConfigMapOfAnOwner(t *testing.T) {
	c := newCluster(1)
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "llama", UID: "uid"}
	s, err := k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: c.ConfigMaps(), Namespace: "default", Name: "state", Owner: &owner})
	require.NoError(t, err)
	require.NoError(t, s.Save(t.Context(), "state", nil, []byte("one")))
	require.Equal(t, []metav1.OwnerReference{owner}, c.ConfigMap.OwnerReferences)
	c.ConfigMap.BinaryData = map[string][]byte{"blob": make([]byte, 3*(1<<20)/4)}
	c.ConfigMap.ResourceVersion = c.NextVersion()
	_, err = s.Load(t.Context(), "state")
	require.NoError(t, err)
	var size *k8s.SizeError
	require.ErrorAs(t, s.Save(t.Context(), "state", []byte("one"), []byte("two")), &size)
	require.Equal(t, 1<<20+len("blob")+len("state")+len("two"), size.Size, "encoded, it has a third more")
}

// Annotations of a kind that is not known, or of an object that is not there, cannot be read or written, nor who wrote them.
func TestAnnotationsThatCannotBeReached(t *testing.T) {
	object := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "llama", ResourceVersion: "1"},
	}
	client := annotated(t, object)
	unknown := target
	unknown.Kind = "Other"
	s, err := k8s.NewAnnotationStore(k8s.AnnotationStoreConfig{Client: client, Mapper: newCluster(1).Mapper(), Object: unknown})
	require.NoError(t, err)
	_, err = s.Load(t.Context(), "state")
	require.True(t, meta.IsNoMatchError(errors.Unwrap(err)), "%v", err)
	wrote := k8s.NewLastWriter(client, newCluster(1).Mapper())
	_, err = wrote(t.Context(), unknown)
	require.True(t, meta.IsNoMatchError(err), "%v", err)
	unknown.APIVersion = "a/b/c"
	_, err = wrote(t.Context(), unknown)
	require.ErrorContains(t, err, "a/b/c")
	_, err = wrote(t.Context(), target)
	require.EqualError(t, err, "no manager of spec.replicas in metadata.managedFields")

	s, err = k8s.NewAnnotationStore(k8s.AnnotationStoreConfig{Client: client, Mapper: newCluster(1).Mapper(), Object: target})
	require.NoError(t, err)
	for _, verb := range []string{"patch", "get"} {
		client.PrependReactor(verb, "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New(verb + " is away")
		})
		require.EqualError(t, s.Save(t.Context(), "state", nil, []byte("one")), "annotations of Deployment default/llama: "+verb+" is away")
		require.Empty(t, object.Annotations)
	}
	_, err = wrote(t.Context(), target)
	require.EqualError(t, err, "get is away")
}
