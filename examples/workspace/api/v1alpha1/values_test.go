package v1alpha1_test

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

func TestTargetNodeCountIsTheProductOrAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perReplica := rapid.Int32().Draw(t, "per replica")
		replicas := rapid.Int32().Draw(t, "replicas")
		exact := new(big.Int).Mul(big.NewInt(int64(perReplica)), big.NewInt(int64(replicas)))
		got, err := v1alpha1.TargetNodeCount(perReplica, replicas)
		if perReplica < 0 || replicas < 0 || exact.Cmp(big.NewInt(math.MaxInt32)) > 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, exact.Int64(), int64(got))
	})
}

func TestTargetNodeCountNamesTheNumbers(t *testing.T) {
	_, err := v1alpha1.TargetNodeCount(65536, 32768)
	require.EqualError(t, err, "65536 nodes a replica * 32768 replicas = 2147483648 nodes, more than 2147483647")
	n, err := v1alpha1.TargetNodeCount(1, math.MaxInt32)
	require.NoError(t, err)
	assert.Equal(t, int32(math.MaxInt32), n)
}

func TestDesiredReplicas(t *testing.T) {
	var w v1alpha1.Workspace
	_, ok := w.DesiredReplicas()
	assert.False(t, ok, "without inference settings there are no replicas")

	w.Spec.Inference = &v1alpha1.InferenceSpec{}
	n, ok := w.DesiredReplicas()
	assert.True(t, ok)
	assert.Equal(t, int32(1), n)

	zero := int32(0)
	w.Spec.Inference.Replicas = &zero
	n, ok = w.DesiredReplicas()
	assert.True(t, ok)
	assert.Equal(t, int32(0), n)
}

func TestPerReplicaNodeCount(t *testing.T) {
	var w v1alpha1.Workspace
	n, err := w.PerReplicaNodeCount()
	require.NoError(t, err)
	assert.Zero(t, n, "not known yet")

	w.Annotations = map[string]string{v1alpha1.PerReplicaNodeCountAnnotation: "3"}
	n, err = w.PerReplicaNodeCount()
	require.NoError(t, err)
	assert.Equal(t, int32(3), n)

	w.Status.Inference = &v1alpha1.InferenceStatus{PerReplicaNodeCount: 2}
	n, err = w.PerReplicaNodeCount()
	require.NoError(t, err)
	assert.Equal(t, int32(2), n, "the status is constant, and goes first")
}

func TestAnnotationsThatAreNoCount(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "1.5", "two", "2147483648", strconv.Itoa(math.MaxInt64) + "0", " 1"} {
		w := v1alpha1.Workspace{}
		w.Annotations = map[string]string{v1alpha1.PerReplicaNodeCountAnnotation: text}
		_, err := w.PerReplicaNodeCount()
		require.ErrorContains(t, err, v1alpha1.PerReplicaNodeCountAnnotation)
		require.ErrorContains(t, err, strconv.Quote(text))
	}
}

func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	kinds, _, err := scheme.ObjectKinds(&v1alpha1.Workspace{})
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.GroupVersion().WithKind(v1alpha1.Kind), kinds[0])
}
