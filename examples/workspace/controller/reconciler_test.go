package controller_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

func TestFromCreationToReady(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)

	got := w.workspace(t.Context(), t)
	require.NotNil(t, got.Status.Inference)
	assert.Equal(t, v1alpha1.InferenceStatus{
		PerReplicaNodeCount: 1, TargetNodeCount: 2, Selector: "workspace.inferscale.io/name=llama",
	}, *got.Status.Inference)
	assert.Equal(t, int64(1), got.Status.ObservedGeneration)
	assert.Equal(t, "True Estimated", condition(got, v1alpha1.ConditionNodesEstimated))
	assert.Equal(t, "True Scalable", condition(got, v1alpha1.ConditionScalable))
	assert.Equal(t, "False Progressing", condition(got, v1alpha1.ConditionInferenceReady))

	d := w.deployment(t.Context(), t)
	assert.Equal(t, int32(2), *d.Spec.Replicas)
	assert.True(t, metav1.IsControlledBy(d, got))
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	require.NoError(t, err)
	assert.Equal(t, got.Status.Inference.Selector, selector.String())
	assert.Equal(t, "status.inference.targetNodeCount 0 -> 2: 1 nodes a replica", (<-w.events.Events)[len("Normal TargetNodeCountChanged "):])

	w.serve(t.Context(), t, 1)
	w.settle(t.Context(), t)
	got = w.workspace(t.Context(), t)
	assert.Equal(t, int32(1), got.Status.Inference.Replicas)
	assert.Equal(t, "False Progressing", condition(got, v1alpha1.ConditionInferenceReady))
	assert.Equal(t, "1 of 2 replicas are available", message(got, v1alpha1.ConditionInferenceReady))

	w.serve(t.Context(), t, 2)
	w.settle(t.Context(), t)
	got = w.workspace(t.Context(), t)
	assert.Equal(t, int32(2), got.Status.Inference.Replicas)
	assert.Equal(t, "True Available", condition(got, v1alpha1.ConditionInferenceReady))
}

func TestNothingIsWrittenTwice(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	w.serve(t.Context(), t, 2)
	w.settle(t.Context(), t)
	before := *w.writes
	for range 20 {
		_, err := w.reconcile(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, before.status, w.writes.status)
	assert.Equal(t, before.applied, w.writes.applied)
}

func TestScaling(t *testing.T) {
	w := newWorld(t, served(count("1")))
	w.settle(t.Context(), t)
	available := int32(0)
	for i, n := range []int32{5, 0, 1, 1, 30} {
		require.NoError(t, scale(t.Context(), w, n))
		w.settle(t.Context(), t)
		got := w.workspace(t.Context(), t)
		assert.Equal(t, n, got.Status.Inference.TargetNodeCount)
		assert.Equal(t, n, *w.deployment(t.Context(), t).Spec.Replicas)
		assert.Equal(t, int64(i+2), got.Status.ObservedGeneration)
		want := "True Available"
		if available < n {
			want = "False Progressing"
		}
		assert.Equal(t, want, condition(got, v1alpha1.ConditionInferenceReady), "%d of %d", available, n)
		available = n
		w.serve(t.Context(), t, n)
		w.settle(t.Context(), t)
		assert.Equal(t, "True Available", condition(w.workspace(t.Context(), t), v1alpha1.ConditionInferenceReady))
	}
}

// What the status says is for display: a wrong one changes no decision.
func TestStatusDecidesNothing(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	got := w.workspace(t.Context(), t)
	got.Status.Inference.Replicas = 77
	got.Status.Inference.TargetNodeCount = 99
	require.NoError(t, w.Status().Update(t.Context(), got))
	w.settle(t.Context(), t)
	got = w.workspace(t.Context(), t)
	assert.Equal(t, int32(2), got.Status.Inference.TargetNodeCount)
	assert.Equal(t, int32(0), got.Status.Inference.Replicas)
	assert.Equal(t, int32(2), *w.deployment(t.Context(), t).Spec.Replicas)
}

func TestPerReplicaNodeCountStaysWhateverTheAnnotationSays(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	got := w.workspace(t.Context(), t)
	got.Annotations[v1alpha1.PerReplicaNodeCountAnnotation] = "4"
	require.NoError(t, w.Update(t.Context(), got))
	w.settle(t.Context(), t)
	assert.Equal(t, int32(1), w.workspace(t.Context(), t).Status.Inference.PerReplicaNodeCount)
}

func TestWithoutAPlanNothingChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Workspace)
		reason string
		says   string
	}{
		"no inference":    {func(w *v1alpha1.Workspace) { w.Spec.Inference = nil }, "NoInference", "spec.inference is not set"},
		"no annotation":   {func(w *v1alpha1.Workspace) { w.Annotations = nil }, "NodeCountUnknown", "per-replica-node-count"},
		"bad annotation":  {count("many"), "NodeCountInvalid", `"many"`},
		"zero annotation": {count("0"), "NodeCountInvalid", `"0"`},
		"overflow": {func(w *v1alpha1.Workspace) {
			w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation] = "2"
			w.Spec.Inference.Replicas = new(int32(math.MaxInt32))
		}, "NodeCountOverflow", "spec.inference.replicas: 2 nodes a replica * 2147483647 replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, served(c.change))
			w.settle(t.Context(), t)
			got := w.workspace(t.Context(), t)
			assert.Nil(t, got.Status.Inference)
			assert.Equal(t, "False "+c.reason, condition(got, v1alpha1.ConditionNodesEstimated))
			assert.Equal(t, "False "+c.reason, condition(got, v1alpha1.ConditionInferenceReady))
			assert.Contains(t, message(got, v1alpha1.ConditionNodesEstimated), c.says)
			assert.True(t, apierrors.IsNotFound(w.Get(t.Context(), key(), &appsv1.Deployment{})))
			assert.Zero(t, w.writes.applied)
		})
	}
}

// The webhook refuses such replicas. Should it not be there, the last plan stays in force.
func TestOverflowKeepsTheLastPlan(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	got := w.workspace(t.Context(), t)
	got.Status.Inference.PerReplicaNodeCount = 2 // as if it had been estimated so
	require.NoError(t, w.Status().Update(t.Context(), got))
	require.NoError(t, scale(t.Context(), w, math.MaxInt32))
	w.settle(t.Context(), t)
	got = w.workspace(t.Context(), t)
	assert.Equal(t, int32(2), got.Status.Inference.TargetNodeCount)
	assert.Equal(t, "False NodeCountOverflow", condition(got, v1alpha1.ConditionNodesEstimated))
	assert.Equal(t, int32(2), *w.deployment(t.Context(), t).Spec.Replicas)
}

func TestDistributedReplicasAreCountedAndNotMade(t *testing.T) {
	w := newWorld(t, served(count("3")))
	w.settle(t.Context(), t)
	got := w.workspace(t.Context(), t)
	assert.Equal(t, int32(6), got.Status.Inference.TargetNodeCount)
	assert.Equal(t, "True Estimated", condition(got, v1alpha1.ConditionNodesEstimated))
	assert.Equal(t, "False DistributedUnsupported", condition(got, v1alpha1.ConditionInferenceReady))
	assert.Zero(t, w.writes.applied)
}

func TestPreferredNodesAreSaid(t *testing.T) {
	w := newWorld(t, served(func(w *v1alpha1.Workspace) { w.Spec.Resource.PreferredNodes = []string{"gpu-1", "gpu-2"} }))
	w.settle(t.Context(), t)
	got := w.workspace(t.Context(), t)
	assert.Equal(t, "False PreferredNodes", condition(got, v1alpha1.ConditionScalable))
	assert.Equal(t, int32(2), got.Status.Inference.TargetNodeCount)
	terms := w.deployment(t.Context(), t).Spec.Template.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	require.Len(t, terms, 1)
	assert.Equal(t, []string{"gpu-1", "gpu-2"}, terms[0].Preference.MatchExpressions[0].Values)
}

func TestConditionsOfOthersStay(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	got := w.workspace(t.Context(), t)
	meta.SetStatusCondition(&got.Status.Conditions, metav1.Condition{
		Type: "ResourceReady", Status: metav1.ConditionTrue, Reason: "NodesProvided",
	})
	require.NoError(t, w.Status().Update(t.Context(), got))
	require.NoError(t, scale(t.Context(), w, 4))
	w.settle(t.Context(), t)
	got = w.workspace(t.Context(), t)
	assert.Equal(t, "True NodesProvided", condition(got, "ResourceReady"))
	assert.Equal(t, int32(4), got.Status.Inference.TargetNodeCount)
}

func TestDeploymentOfSomebodyElse(t *testing.T) {
	w := newWorld(t, served(), foreignDeployment())
	_, err := w.reconcile(t.Context())
	require.ErrorContains(t, err, "belongs to somebody else")
	got := w.workspace(t.Context(), t)
	assert.Equal(t, "False DeploymentConflict", condition(got, v1alpha1.ConditionInferenceReady))
	assert.Equal(t, int32(2), got.Status.Inference.TargetNodeCount)
	assert.Equal(t, int32(9), *w.deployment(t.Context(), t).Spec.Replicas)
	assert.Zero(t, w.writes.applied)
}

func TestDeploymentOfAnEarlierWorkspace(t *testing.T) {
	old := newWorld(t, served(func(w *v1alpha1.Workspace) { w.UID = "uid-0" }))
	old.settle(t.Context(), t)
	left := old.deployment(t.Context(), t)
	left.ResourceVersion = ""
	w := newWorld(t, served(), left)
	_, err := w.reconcile(t.Context())
	require.ErrorContains(t, err, "belongs to somebody else", "the garbage collector is about to delete it")

	require.NoError(t, w.Delete(t.Context(), left))
	w.settle(t.Context(), t)
	assert.Equal(t, int32(2), *w.deployment(t.Context(), t).Spec.Replicas)
}

func TestDriftIsPutRight(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	d := w.deployment(t.Context(), t)
	d.Spec.Replicas = new(int32(7))
	d.Spec.Template.Spec.Containers[0].Image = "theirs"
	d.Annotations = map[string]string{"team/note": "kept"}
	d.Spec.MinReadySeconds = 5
	require.NoError(t, w.Update(t.Context(), d, client.FieldOwner("kubectl-scale")))
	w.settle(t.Context(), t)
	d = w.deployment(t.Context(), t)
	assert.Equal(t, int32(2), *d.Spec.Replicas)
	assert.Equal(t, "vllm/vllm-openai:test", d.Spec.Template.Spec.Containers[0].Image)
	assert.Equal(t, "kept", d.Annotations["team/note"], "fields of others stay")
	assert.Equal(t, int32(5), d.Spec.MinReadySeconds)
}

func TestDeletedDeploymentComesBack(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	require.NoError(t, w.Delete(t.Context(), w.deployment(t.Context(), t)))
	w.settle(t.Context(), t)
	assert.Equal(t, int32(2), *w.deployment(t.Context(), t).Spec.Replicas)
}

func TestDeletedWorkspaces(t *testing.T) {
	w := newWorld(t)
	_, err := w.reconcile(t.Context())
	require.NoError(t, err, "gone")

	w = newWorld(t, served(func(w *v1alpha1.Workspace) {
		w.Finalizers = []string{"example.com/slow"}
		w.DeletionTimestamp = new(metav1.Now())
	}))
	_, err = w.reconcile(t.Context())
	require.NoError(t, err, "being deleted")
	assert.Zero(t, *w.writes)
}

func TestConflictOfStatusMeansAgain(t *testing.T) {
	w := newWorld(t, served())
	w.writes.between = func(c client.Client) { require.NoError(t, scale(t.Context(), c, 6)) }
	result, err := w.reconcile(t.Context())
	require.NoError(t, err, "a conflict is no fault")
	assert.Positive(t, result.RequeueAfter)
	assert.Nil(t, w.workspace(t.Context(), t).Status.Inference, "nothing of the old version is written")
	w.settle(t.Context(), t)
	assert.Equal(t, int32(6), w.workspace(t.Context(), t).Status.Inference.TargetNodeCount)
	assert.Equal(t, int32(6), *w.deployment(t.Context(), t).Spec.Replicas)
}

func TestFailuresAreSaidAndTriedAgain(t *testing.T) {
	w := newWorld(t, served())
	w.writes.fail = func(what string) error {
		if what == "apply" {
			return errors.New("quota exceeded")
		}
		return nil
	}
	_, err := w.reconcile(t.Context())
	require.ErrorContains(t, err, "quota exceeded")
	got := w.workspace(t.Context(), t)
	assert.Equal(t, "False DeploymentFailed", condition(got, v1alpha1.ConditionInferenceReady))
	assert.Equal(t, "quota exceeded", message(got, v1alpha1.ConditionInferenceReady))
	assert.Equal(t, int32(2), got.Status.Inference.TargetNodeCount, "the nodes do not wait for the pods")

	w.writes.fail = nil
	w.settle(t.Context(), t)
	assert.Equal(t, int32(2), *w.deployment(t.Context(), t).Spec.Replicas)
}

// unread is a client that reads a workspace which its type cannot hold.
type unread struct{ client.Client }

func (u unread) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := u.Client.Get(ctx, key, o, options...)
	if w, ok := o.(*v1alpha1.Workspace); ok {
		w.Spec, w.Unreadable = v1alpha1.WorkspaceSpec{}, "json: cannot unmarshal number 3000000000"
	}
	return err
}

// TestUnreadable is told in the conditions, and its pods go on serving.
func TestUnreadable(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	before := w.deployment(t.Context(), t)
	w.reconciler.Client = unread{w.Client}
	for range 3 {
		_, err := w.reconcile(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, "False InvalidSpec", condition(w.workspace(t.Context(), t), v1alpha1.ConditionNodesEstimated))
	require.Contains(t, message(w.workspace(t.Context(), t), v1alpha1.ConditionInferenceReady), "3000000000")
	require.Equal(t, before.Spec, w.deployment(t.Context(), t).Spec)
}

// TestANewImageIsNotReady: what the Deployment said before it was changed is nothing of the new generation.
func TestANewImageIsNotReady(t *testing.T) {
	w := newWorld(t, served(func(w *v1alpha1.Workspace) {
		w.Spec.Inference.Preset = nil
		w.Spec.Inference.Template = &v1alpha1.TemplateSpec{Image: "one"}
		w.Spec.Inference.Model = &v1alpha1.ModelSpec{ParametersMillion: new(int64(1)), ContextTokens: 1}
	}))
	w.settle(t.Context(), t)
	w.serve(t.Context(), t, 2)
	w.settle(t.Context(), t)
	require.Equal(t, "True Available", condition(w.workspace(t.Context(), t), v1alpha1.ConditionInferenceReady))

	got := w.workspace(t.Context(), t)
	got.Spec.Inference.Template.Image = "two"
	got.Generation++
	require.NoError(t, w.Update(t.Context(), got))
	_, err := w.reconcile(t.Context())
	require.NoError(t, err)
	require.Equal(t, "two", w.deployment(t.Context(), t).Spec.Template.Spec.Containers[0].Image)
	got = w.workspace(t.Context(), t)
	require.Equal(t, "False Progressing", condition(got, v1alpha1.ConditionInferenceReady), "no pod of the new image exists")
}

// newServing returns a world whose two replicas serve.
func newServing(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	w.serve(t.Context(), t, 2)
	w.settle(t.Context(), t)
	require.Equal(t, int32(2), w.workspace(t.Context(), t).Status.Inference.Replicas)
	return w
}

// TestADeletedDeploymentHasNoReplicas: its pods were counted until another Deployment was there.
func TestADeletedDeploymentHasNoReplicas(t *testing.T) {
	w := newServing(t)
	require.NoError(t, w.Delete(t.Context(), w.deployment(t.Context(), t)))
	w.writes.fail = func(what string) error {
		if what == "apply" {
			return errors.New("quota exceeded")
		}
		return nil
	}
	_, err := w.reconcile(t.Context())
	require.Error(t, err)
	got := w.workspace(t.Context(), t)
	assert.Equal(t, int32(0), got.Status.Inference.Replicas, "there is no Deployment and no pod")
}

// TestAForeignDeploymentHasNoReplicas: pods of somebody else are not counted, nor are those that there were before.
func TestAForeignDeploymentHasNoReplicas(t *testing.T) {
	w := newServing(t)
	require.NoError(t, w.Delete(t.Context(), w.deployment(t.Context(), t)))
	require.NoError(t, w.Create(t.Context(), foreignDeployment()))
	_, err := w.reconcile(t.Context())
	require.Error(t, err)
	got := w.workspace(t.Context(), t)
	assert.Equal(t, "False DeploymentConflict", condition(got, v1alpha1.ConditionInferenceReady))
	assert.Equal(t, int32(0), got.Status.Inference.Replicas, "none of its pods exist")
}

// TestReplicasThatExistAreCountedWithUnknownSettings: the count follows the pods, although nothing can be applied.
func TestReplicasThatExistAreCountedWithUnknownSettings(t *testing.T) {
	w := newServing(t)
	w.reconciler.Servers.Instances = nil
	w.serve(t.Context(), t, 0)
	w.settle(t.Context(), t)
	got := w.workspace(t.Context(), t)
	assert.Equal(t, "False UnknownSettings", condition(got, v1alpha1.ConditionInferenceReady))
	assert.Equal(t, int32(0), got.Status.Inference.Replicas)
}
