package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/policy"
)

const inferenceSet = `
apiVersion: kaito.sh/v1beta1
kind: InferenceSet
metadata: {name: phi-4, namespace: models}
spec:
  replicas: 1
  labelSelector: {matchLabels: {apps: phi-4}}
  template: {inference: {preset: {name: phi-4}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: phi-4, namespace: models}
spec:
  replicas: 1
  selector: {matchLabels: {inferenceset.kaito.sh/created-by: phi-4}}
  template:
    metadata: {labels: {inferenceset.kaito.sh/created-by: phi-4}}
    spec: {containers: [{name: server, image: vllm}]}
`

// TestInferenceSetFollowsPages: an InferenceSet of Kaito, as released, is scaled with the roles of the manifests alone. In
// place of its controller the test keeps as many pods, and the status that it has.
func TestInferenceSetFollowsPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition, err := os.ReadFile("testdata/inferencesets.yaml")
	require.NoError(t, err)
	require.NoError(t, w.cluster.Apply(t.Context(), definition))
	w.eventually("the kind is served", time.Minute, func() bool {
		return w.cluster.Apply(t.Context(), []byte(inferenceSet)) == nil
	})
	set := func() *unstructured.Unstructured {
		found := &unstructured.Unstructured{}
		found.SetAPIVersion("kaito.sh/v1beta1")
		found.SetKind("InferenceSet")
		require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "phi-4"}, found))
		return found
	}
	asked := func() int64 {
		found := set()
		n, _, err := unstructured.NestedInt64(found.Object, "spec", "replicas")
		require.NoError(t, err)
		var pods appsv1.Deployment
		require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "phi-4"}, &pods))
		if int64(*pods.Spec.Replicas) != n {
			before := pods.DeepCopy()
			pods.Spec.Replicas = new(int32(n))
			require.NoError(t, w.client.Patch(context.Background(), &pods, client.MergeFrom(before)))
		}
		before := found.DeepCopy()
		require.NoError(t, unstructured.SetNestedMap(found.Object, map[string]any{
			"replicas": n, "readyReplicas": int64(pods.Status.ReadyReplicas), "selector": "inferenceset.kaito.sh/created-by=phi-4",
		}, "status"))
		require.NoError(t, w.client.Status().Patch(context.Background(), found, client.MergeFrom(before)))
		return n
	}
	require.EqualValues(t, 1, asked())
	w.autoscaler(func(s *v1alpha1.LLMAutoScalerSpec) {
		s.ScaleTargetRef = policy.ScaleTargetReference{APIVersion: "kaito.sh/v1beta1", Kind: "InferenceSet", Name: "phi-4"}
		s.Grouping = "KaitoWorkspace"
	})
	w.run("-leader-elect=false")
	w.waiting.Store(20)
	w.eventually("three replicas are asked for", time.Minute, func() bool { return asked() >= 3 })
	w.waiting.Store(0)
	w.eventually("one replica is left", time.Minute, func() bool { return asked() == 1 })
	status, reason := w.condition("Ready")
	require.Equal(t, metav1.ConditionTrue, status, reason)
}
