package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/workspaces"
	"github.com/inferscale/inferscale/policy"
)

const workspaceRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: llmautoscaler-workspaces}
rules:
  - {apiGroups: [workspace.inferscale.io], resources: [workspaces/scale], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: llmautoscaler-workspaces}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: llmautoscaler-workspaces}
subjects: [{kind: ServiceAccount, name: llmautoscaler, namespace: inferscale-system}]
`

const workspace = `
apiVersion: workspace.inferscale.io/v1alpha1
kind: Workspace
metadata: {name: llama, namespace: models}
spec:
  resource:
    instanceType: Standard_NC24ads_A100_v4
    labelSelector: {matchLabels: {apps: llama}}
  inference:
    replicas: 1
    preset: {name: llama-3.1-8b-instruct, contextTokens: 32768}
`

// TestWorkspaceFollowsPages: from the pages of a Workspace's pods to its /scale, to its Deployment and to the nodes that
// it asks for, up and down.
func TestWorkspaceFollowsPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	workspaces.Start(t, w.cluster, "../../workspace")
	require.NoError(t, w.cluster.Apply(t.Context(), []byte(workspaceRole)))
	w.eventually("the webhook answers", time.Minute, func() bool {
		return w.cluster.Apply(t.Context(), []byte(workspace)) == nil
	})
	w.autoscaler(func(s *v1alpha1.LLMAutoScalerSpec) {
		s.ScaleTargetRef = policy.ScaleTargetReference{APIVersion: "workspace.inferscale.io/v1alpha1", Kind: "Workspace", Name: "llama"}
	})
	number := func(path ...string) int64 {
		var ws unstructured.Unstructured
		ws.SetAPIVersion("workspace.inferscale.io/v1alpha1")
		ws.SetKind("Workspace")
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "llama"}, &ws); err != nil {
			return -1
		}
		n, _, err := unstructured.NestedInt64(ws.Object, path...)
		require.NoError(t, err)
		return n
	}
	w.eventually("its first replica runs", time.Minute, func() bool { return number("status", "inference", "replicas") == 1 })

	w.run("-leader-elect=false")
	w.fleet.SetRate(40) // for five pods: the Deployment chat of the other tests has one of them
	w.eventually("the Workspace is asked for three replicas", time.Minute, func() bool { return number("spec", "inference", "replicas") >= 3 })
	w.eventually("its Deployment and its nodes follow", time.Minute, func() bool {
		return number("status", "inference", "replicas") >= 3 &&
			number("status", "inference", "targetNodeCount") == number("status", "inference", "perReplicaNodeCount")*number("spec", "inference", "replicas")
	})
	w.fleet.SetRate(0)
	w.eventually("one replica is left", time.Minute, func() bool { return number("spec", "inference", "replicas") == 1 })
	status, reason := w.condition("Ready")
	require.Equal(t, metav1.ConditionTrue, status, reason)
}
