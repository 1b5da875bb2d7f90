package k8s_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// storeOf returns a store in so many ConfigMaps.
func storeOf(t *testing.T, client *fake.Clientset, parts int) *k8s.ConfigMapStore {
	t.Helper()
	s, err := k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: client.CoreV1(), Namespace: "default", Name: "state", Parts: parts})
	require.NoError(t, err)
	return s
}

// TestRegressionStatesOfManyModelsFit: the states of all models were in one ConfigMap, which has room for some 70 with a forecast. The
// next could store none, and so was not scaled.
func TestRegressionStatesOfManyModelsFit(t *testing.T) {
	state := []byte(strings.Repeat("x", 130_000)) // of ten
	client := fake.NewClientset()
	one, several := storeOf(t, client, 1), storeOf(t, fake.NewClientset(), 16)
	var full *k8s.SizeError
	for i := range 40 {
		key := fmt.Sprintf("serving.models-%d.capacity", i)
		if err := one.Save(t.Context(), key, nil, state); i >= 8 {
			require.ErrorAs(t, err, &full)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, several.Save(t.Context(), key, nil, state))
	}
}

// TestStatesMoveToTheirParts: each state of a store with one ConfigMap is found by one with several, and moves when it is saved. Of two
// that save it one has a conflict.
func TestStatesMoveToTheirParts(t *testing.T) {
	const keys = 40
	client := fake.NewClientset()
	one := storeOf(t, client, 0)
	key := func(i int) string { return fmt.Sprintf("key-%d", i) }
	for i := range keys {
		require.NoError(t, one.Save(t.Context(), key(i), nil, []byte("one")))
	}
	several := storeOf(t, client, 4)
	for i := range keys {
		other := storeOf(t, client, 4)
		state, err := several.Load(t.Context(), key(i))
		require.NoError(t, err)
		require.Equal(t, "one", string(state))
		require.ErrorIs(t, several.Save(t.Context(), key(i), []byte("another"), []byte("two")), k8s.ErrStateConflict)
		require.NoError(t, several.Save(t.Context(), key(i), []byte("one"), []byte("two")))
		require.ErrorIs(t, other.Save(t.Context(), key(i), []byte("one"), []byte("three")), k8s.ErrStateConflict)
		require.NoError(t, other.Save(t.Context(), key(i), []byte("two"), []byte("three")))
		state, err = several.Load(t.Context(), key(i))
		require.NoError(t, err)
		require.Equal(t, "three", string(state))
	}
	maps, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, maps.Items, 4)
	found := 0
	for _, m := range maps.Items {
		own := 0
		for _, v := range m.Data {
			if v != "" {
				require.Equal(t, "three", v, "%s: nothing old is left", m.Name)
				own++
			}
		}
		require.Positive(t, own, m.Name)
		require.Contains(t, []string{"state", "state-1", "state-2", "state-3"}, m.Name)
		found += own
	}
	require.Equal(t, keys, found, "each is there once")
}

// TestRegressionMorePartsFindEachState: only states of a store with one ConfigMap were found by one with several. From four to eight half
// of them were not, and what they say of cooldowns was forgotten.
func TestRegressionMorePartsFindEachState(t *testing.T) {
	const keys = 40
	client := fake.NewClientset()
	few, many := storeOf(t, client, 4), storeOf(t, client, 8)
	key := func(i int) string { return fmt.Sprintf("key-%d", i) }
	for i := range keys {
		require.NoError(t, few.Save(t.Context(), key(i), nil, []byte("one")))
	}
	for i := range keys {
		state, err := many.Load(t.Context(), key(i))
		require.NoError(t, err)
		require.Equal(t, "one", string(state), key(i))
		require.ErrorIs(t, many.Save(t.Context(), key(i), []byte("another"), []byte("two")), k8s.ErrStateConflict)
		require.NoError(t, many.Save(t.Context(), key(i), []byte("one"), []byte("two")))
		require.ErrorIs(t, storeOf(t, client, 8).Save(t.Context(), key(i), []byte("one"), []byte("three")), k8s.ErrStateConflict)
	}
	maps, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, maps.Items, 8)
	found := 0
	for _, m := range maps.Items {
		for _, v := range m.Data {
			if v != "" {
				require.Equal(t, "two", v, "%s: nothing old is left", m.Name)
				found++
			}
		}
	}
	require.Equal(t, keys, found, "each is there once")
}
