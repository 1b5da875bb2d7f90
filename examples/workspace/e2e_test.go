package main

import (
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func getOptions() metav1.GetOptions { return metav1.GetOptions{} }

func patchOptions() metav1.PatchOptions { return metav1.PatchOptions{FieldManager: "kubectl-scale"} }

// The program on a real control plane, under its own service account with the roles of deploy/ only.
func TestE2E(t *testing.T) {
	i := install(t)
	// Each step builds on those before.
	_ = t.Run("Create", i.testCreate) &&
		t.Run("Scale", i.testScale) &&
		t.Run("Refusals", i.testRefusals) &&
		t.Run("Constant", i.testConstant) &&
		t.Run("Drift", i.testDrift) &&
		t.Run("HPA", i.testHPA) &&
		t.Run("DryRun", i.testDryRun) &&
		t.Run("Metrics", i.testMetrics) &&
		t.Run("Storm", i.testStorm) &&
		t.Run("Quiet", i.testQuiet) &&
		t.Run("Restart", i.testRestart) &&
		t.Run("Audit", i.testAudit) &&
		t.Run("Outage", i.testOutage) &&
		t.Run("Delete", i.testDelete)
}

// A create request brings no status; the webhook's annotation becomes one.
func (i *installation) testCreate(t *testing.T) {
	w := workspace("created", 2, func(w *v1alpha1.Workspace) {
		w.Spec.Resource.Count = new(int32)
		*w.Spec.Resource.Count = 5
		w.Status.Inference = &v1alpha1.InferenceStatus{PerReplicaNodeCount: 9, TargetNodeCount: 9}
	})
	i.create(t, w)
	assert.Equal(t, "1", w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation])
	assert.Nil(t, w.Status.Inference, "the API server drops the status of a create request")
	assert.Contains(t, i.warnings.take(), "spec.resource.count is deprecated and ignored")
	got := i.serving(t, "created", 2, 2)
	assert.Equal(t, int32(1), got.Status.Inference.PerReplicaNodeCount)

	// A replica of two nodes: counted, not made.
	i.create(t, workspace("distributed", 3, func(w *v1alpha1.Workspace) { w.Spec.Inference.Preset.Name = "llama-3.3-70b-instruct" }))
	assert.Contains(t, i.warnings.take(), "a replica needs 3 nodes")
	eventually(t, func() error {
		w, err := i.get(t.Context(), "distributed")
		if err == nil && (w.Status.Inference == nil || w.Status.Inference.TargetNodeCount != 9) {
			err = io.ErrNoProgress
		}
		return err
	})
	assert.True(t, apierrors.IsNotFound(i.api.Get(t.Context(), named("distributed"), &appsv1.Deployment{})))
}

// Deployment, pods, node count and status follow /scale, by patch and by update.
func (i *installation) testScale(t *testing.T) {
	i.create(t, workspace("scaled", 1))
	i.serving(t, "scaled", 1, 1)
	for _, n := range []int32{4, 0, 2} {
		require.NoError(t, i.scaleTo(t.Context(), "scaled", n))
		i.serving(t, "scaled", n, n)
	}
	s := i.scaleOf(t, "scaled")
	assert.Equal(t, int32(2), s.Spec.Replicas)
	assert.Equal(t, int32(2), s.Status.Replicas)
	assert.Equal(t, "workspace.inferscale.io/name=scaled", s.Status.Selector)
	var pods corev1.PodList
	require.NoError(t, i.api.List(t.Context(), &pods, &client.ListOptions{Namespace: "default", Raw: &metav1.ListOptions{LabelSelector: s.Status.Selector}}))
	assert.Len(t, pods.Items, 2)

	fresh := s.DeepCopy()
	fresh.Spec.Replicas = 3
	_, err := i.scales.Scales("default").Update(t.Context(), workspaces(), fresh, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.Spec.Replicas = 1
	_, err = i.scales.Scales("default").Update(t.Context(), workspaces(), s, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsConflict(err), "an old version must not win: %v", err)
	i.serving(t, "scaled", 3, 3)

	w, err := i.get(t.Context(), "scaled")
	require.NoError(t, err)
	*w.Spec.Inference.Replicas = 1
	require.NoError(t, i.api.Update(t.Context(), w), "and directly")
	i.serving(t, "scaled", 1, 1)
}

// What must not be scaled is not, whichever way the request takes; the messages name field and value.
func (i *installation) testRefusals(t *testing.T) {
	i.create(t, workspace("pinned", 1, func(w *v1alpha1.Workspace) { w.Spec.Resource.PreferredNodes = []string{"gpu-1"} }))
	i.create(t, workspace("bare", 1, func(w *v1alpha1.Workspace) { w.Spec.Inference = nil }))
	i.create(t, workspace("large", 1, func(w *v1alpha1.Workspace) { w.Spec.Inference.Preset.Name = "llama-3.3-70b-instruct" }))

	i.serving(t, "pinned", 1, 1)

	preferred := `spec.resource.preferredNodes: Invalid value: ["gpu-1"]: a workspace with preferred nodes cannot be scaled`
	err := i.scaleTo(t.Context(), "pinned", 3)
	require.ErrorContains(t, err, `admission webhook "scale.workspace.inferscale.io" denied the request`)
	require.ErrorContains(t, err, preferred)
	s := i.scaleOf(t, "pinned")
	s.Spec.Replicas = 0
	_, err = i.scales.Scales("default").Update(t.Context(), workspaces(), s, metav1.UpdateOptions{})
	require.ErrorContains(t, err, preferred)
	err = i.api.Patch(t.Context(), workspace("pinned", 1), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"inference":{"replicas":3}}}`)))
	require.ErrorContains(t, err, preferred)
	i.serving(t, "pinned", 1, 1)

	err = i.scaleTo(t.Context(), "bare", 3)
	require.ErrorContains(t, err, "a workspace without inference settings cannot be scaled")
	w, err := i.get(t.Context(), "bare")
	require.NoError(t, err)
	assert.Nil(t, w.Spec.Inference)

	err = i.scaleTo(t.Context(), "large", math.MaxInt32)
	require.ErrorContains(t, err, "spec.inference.replicas: Invalid value: 2147483647")
	require.Error(t, i.scaleTo(t.Context(), "large", -1))
	w, err = i.get(t.Context(), "large")
	require.NoError(t, err)
	assert.Equal(t, int32(1), *w.Spec.Inference.Replicas)

	err = i.api.Create(t.Context(), workspace("unknown", 1, func(w *v1alpha1.Workspace) { w.Spec.Resource.InstanceType = "Standard_D2" }))
	require.ErrorContains(t, err, `spec.resource.instanceType: Unsupported value: "Standard_D2"`)
	i.warnings.take()
}

// What the nodes were estimated from, and the estimate, do not change.
func (i *installation) testConstant(t *testing.T) {
	i.create(t, workspace("constant", 1))
	i.serving(t, "constant", 1, 1)
	patch := func(text string) error {
		return i.api.Patch(t.Context(), workspace("constant", 1), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	status := func(text string) error {
		return i.api.Status().Patch(t.Context(), workspace("constant", 1), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	for want, err := range map[string]error{
		"spec.resource.instanceType is immutable":              patch(`{"spec":{"resource":{"instanceType":"Standard_NC48ads_A100_v4"}}}`),
		"spec.inference.preset.name is immutable":              patch(`{"spec":{"inference":{"preset":{"name":"qwen2.5-7b-instruct"}}}}`),
		"spec.inference.preset.contextTokens is immutable":     patch(`{"spec":{"inference":{"preset":{"contextTokens":1000}}}}`),
		"spec.inference cannot be removed":                     patch(`{"spec":{"inference":null}}`),
		"spec.inference needs exactly one of preset and":       patch(`{"spec":{"inference":{"preset":null}}}`),
		"per-replica-node-count]: Invalid value: \"5\"":        patch(`{"metadata":{"annotations":{"workspace.inferscale.io/per-replica-node-count":"5"}}}`),
		"status.inference.perReplicaNodeCount is immutable":    status(`{"status":{"inference":{"perReplicaNodeCount":2}}}`),
		"status.inference cannot be removed: its perReplica":   status(`{"status":{"inference":null}}`),
		"status.inference cannot be removed":                   status(`{"status":null}`),
		"targetNodeCount in body should be greater than or eq": status(`{"status":{"inference":{"targetNodeCount":-1}}}`),
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, patch(`{"metadata":{"annotations":{"workspace.inferscale.io/per-replica-node-count":null}}}`))
	w, err := i.get(t.Context(), "constant")
	require.NoError(t, err)
	assert.Equal(t, "1", w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation], "it comes back")
}

// Others' replicas in the Deployment go back; a Deployment of somebody else is left alone.
func (i *installation) testDrift(t *testing.T) {
	d := &appsv1.Deployment{}
	d.Name, d.Namespace = "constant", "default"
	require.NoError(t, i.api.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`)), client.FieldOwner("somebody")))
	eventually(t, func() error {
		var d appsv1.Deployment
		err := i.api.Get(t.Context(), named("constant"), &d)
		if err == nil && *d.Spec.Replicas != 1 {
			err = io.ErrNoProgress
		}
		return err
	})

	labels := map[string]string{"app": "theirs"}
	theirs := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "theirs"}}},
		},
	}}
	theirs.Name, theirs.Namespace = "taken", "default"
	require.NoError(t, i.api.Create(t.Context(), theirs))
	i.create(t, workspace("taken", 2))
	eventually(t, func() error {
		w, err := i.get(t.Context(), "taken")
		if err != nil {
			return err
		}
		for _, c := range w.Status.Conditions {
			if c.Reason == v1alpha1.ReasonDeploymentConflict {
				return nil
			}
		}
		return io.ErrNoProgress
	})
	var now appsv1.Deployment
	require.NoError(t, i.api.Get(t.Context(), named("taken"), &now))
	assert.Equal(t, int64(1), now.Generation)
	assert.Empty(t, now.Labels)
	assert.Empty(t, now.OwnerReferences)
	w, err := i.get(t.Context(), "taken")
	require.NoError(t, err)
	require.NoError(t, i.api.Delete(t.Context(), w))
}
