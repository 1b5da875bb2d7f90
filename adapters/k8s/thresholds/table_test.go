package thresholds_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/k8s/thresholds"
)

func TestThresholds(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	entry := func(kv string) string {
		return "kvCacheThreshold: " + kv + "\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.1\nqueueSpareTrigger: 3\n"
	}
	version := 0
	put := func(data map[string]string) {
		version++
		require.NoError(t, indexer.Update(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "thresholds", ResourceVersion: strings.Repeat("1", version)}, Data: data,
		}))
	}
	table, err := thresholds.New(thresholds.Config{
		Lister: corelisters.NewConfigMapLister(indexer), Namespace: "default", Name: "thresholds",
	})
	require.NoError(t, err)
	resolve := func() (float64, error) {
		got, err := table.Resolve("llama", "default")
		return got.KVCache, err
	}
	kv, err := resolve()
	require.NoError(t, err)
	require.InDelta(t, 0.8, kv, 0, "no ConfigMap: built in")

	put(map[string]string{"default": entry("0.7"), "llama#default": entry("0.9")})
	kv, err = resolve()
	require.NoError(t, err)
	require.InDelta(t, 0.9, kv, 0)

	put(map[string]string{"default": entry("0.7"), "llama#default": entry("9")})
	kv, err = resolve()
	require.ErrorContains(t, err, "ConfigMap default/thresholds: the last good thresholds stay in force")
	require.InDelta(t, 0.9, kv, 0, "not those of the default entry")

	put(map[string]string{"default": entry("0.6"), "other#default": entry("9")})
	kv, err = resolve()
	require.NoError(t, err, "another model's entry is not ours")
	require.InDelta(t, 0.6, kv, 0)

	require.NoError(t, indexer.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "thresholds"}}))
	kv, err = resolve()
	require.ErrorContains(t, err, "not found")
	require.InDelta(t, 0.6, kv, 0)
}

func TestNewErrors(t *testing.T) {
	_, err := thresholds.New(thresholds.Config{})
	for _, field := range []string{"lister", "namespace", "name"} {
		require.ErrorContains(t, err, field)
	}
}
