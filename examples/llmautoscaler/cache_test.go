package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
)

// TestAnObjectThatIsFullTakesLittleMemory: what the cache keeps of an LLMAutoScaler whose metadata have a megabyte and more.
func TestAnObjectThatIsFullTakesLittleMemory(t *testing.T) {
	las := &stored.LLMAutoScaler{}
	las.Namespace, las.Name, las.UID, las.ResourceVersion, las.Generation = "a", "b", "1", "2", 3
	las.Labels, las.Annotations = map[string]string{}, map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 200<<10)}
	for i := range 4000 {
		las.Labels[fmt.Sprintf("%0250d", i)] = strings.Repeat("v", 63)
		las.Annotations[fmt.Sprintf("%s/state-%d", k8s.AnnotationPrefix, i)] = strings.Repeat("x", 30)
		las.OwnerReferences = append(las.OwnerReferences, metav1.OwnerReference{Kind: "Deployment", Name: strings.Repeat("o", 200)})
		las.Finalizers = append(las.Finalizers, fmt.Sprint("f", i))
	}
	kept, err := trim(las)
	require.NoError(t, err)
	text, err := json.Marshal(kept)
	require.NoError(t, err)
	require.Less(t, len(text), 4<<10)

	las = kept.(*stored.LLMAutoScaler)
	require.Equal(t, [3]string{"a", "b", "2"}, [3]string{las.Namespace, las.Name, las.ResourceVersion})
	require.Equal(t, int64(3), las.Generation)
	require.Len(t, las.Annotations, mostStates)
	require.Contains(t, las.Annotations, k8s.AnnotationPrefix+"/state-0", "rounds see that there is a state of another algorithm")

	gone := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	kept, err = trim(gone)
	require.NoError(t, err)
	require.Equal(t, gone, kept)
}
