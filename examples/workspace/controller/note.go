package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// A note is a status in the making.
type note struct{ status *v1alpha1.WorkspaceStatus }

// newNote starts with the status that is there: what nobody changes stays.
func newNote(w *v1alpha1.Workspace) *note {
	status := w.Status.DeepCopy()
	status.ObservedGeneration = w.Generation
	return &note{status}
}

// condition sets a condition. Its time changes only with its status.
func (n *note) condition(kind string, value metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&n.status.Conditions, metav1.Condition{
		Type: kind, Status: value, ObservedGeneration: n.status.ObservedGeneration, Reason: reason, Message: message,
	})
}

// scalable says whether a scale request would be admitted.
func (n *note) scalable(w *v1alpha1.Workspace) {
	value, reason, message := metav1.ConditionTrue, v1alpha1.ReasonScalable, "scale requests are admitted"
	switch {
	case w.Spec.Inference == nil:
		value, reason = metav1.ConditionFalse, v1alpha1.ReasonNoInference
		message = "spec.inference is not set: scale requests are refused"
	case len(w.Spec.Resource.PreferredNodes) > 0:
		value, reason = metav1.ConditionFalse, v1alpha1.ReasonPreferredNodes
		message = "spec.resource.preferredNodes is set: scale requests are refused"
	}
	n.condition(v1alpha1.ConditionScalable, value, reason, message)
}

// unplanned says why there is no plan.
func (n *note) unplanned(p *Problem) {
	n.condition(v1alpha1.ConditionNodesEstimated, metav1.ConditionFalse, p.Reason, p.Message)
	n.notReady(p.Reason, p.Message)
}

// planned notes a plan.
func (n *note) planned(w *v1alpha1.Workspace, p Plan) {
	if n.status.Inference == nil {
		n.status.Inference = &v1alpha1.InferenceStatus{}
	}
	inference := n.status.Inference
	inference.PerReplicaNodeCount = p.PerReplicaNodes
	inference.TargetNodeCount = p.TargetNodes
	inference.Selector = v1alpha1.Selector(w.Name)
	n.condition(v1alpha1.ConditionNodesEstimated, metav1.ConditionTrue, v1alpha1.ReasonEstimated,
		fmt.Sprintf("%d nodes = %d a replica * %d replicas", p.TargetNodes, p.PerReplicaNodes, p.Replicas))
}

// exist notes how many pods the Deployment has. It may be nil: then there are none.
func (n *note) exist(d *appsv1.Deployment) {
	switch {
	case n.status.Inference == nil:
	case d == nil:
		n.status.Inference.Replicas = 0
	default:
		n.status.Inference.Replicas = d.Status.Replicas
	}
}

// serving notes what the Deployment says. It may be nil: it is being made. What was written just now it does not speak of.
func (n *note) serving(p Plan, d *appsv1.Deployment, written bool) {
	switch {
	case d == nil:
		n.notReady(v1alpha1.ReasonProgressing, "the Deployment is being made")
		return
	case written:
		n.notReady(v1alpha1.ReasonProgressing, "the Deployment is being changed")
		return
	}
	seen := d.Status.ObservedGeneration >= d.Generation && d.Spec.Replicas != nil && *d.Spec.Replicas == p.Replicas
	message := fmt.Sprintf("%d of %d replicas are available", d.Status.AvailableReplicas, p.Replicas)
	if seen && d.Status.AvailableReplicas >= p.Replicas && d.Status.UpdatedReplicas >= p.Replicas {
		n.condition(v1alpha1.ConditionInferenceReady, metav1.ConditionTrue, v1alpha1.ReasonAvailable, message)
		return
	}
	n.notReady(v1alpha1.ReasonProgressing, message)
}

// notReady says why the replicas do not all serve.
func (n *note) notReady(reason, message string) {
	n.condition(v1alpha1.ConditionInferenceReady, metav1.ConditionFalse, reason, message)
}
