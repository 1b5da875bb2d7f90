package v1alpha1

import (
	"fmt"
	"math"
	"strconv"
)

const (
	// PerReplicaNodeCountAnnotation carries the estimate of a create request to the controller. The webhook alone
	// writes it, once.
	PerReplicaNodeCountAnnotation = Group + "/per-replica-node-count"
	// NameLabel is on the Deployment and the pods of a workspace; its value is the workspace's name.
	NameLabel = Group + "/name"
)

// The types of the controller's conditions.
const (
	// ConditionNodesEstimated says whether the nodes of a replica are known, and targetNodeCount with them.
	ConditionNodesEstimated = "NodesEstimated"
	// ConditionScalable says whether a scale request would be admitted.
	ConditionScalable = "Scalable"
	// ConditionInferenceReady says whether as many replicas are available as spec.inference.replicas asks for.
	ConditionInferenceReady = "InferenceReady"
)

// The reasons of the controller's conditions.
const (
	ReasonEstimated          = "Estimated"
	ReasonUnreadable         = "InvalidSpec"
	ReasonNoInference        = "NoInference"
	ReasonNodeCountUnknown   = "NodeCountUnknown"
	ReasonNodeCountInvalid   = "NodeCountInvalid"
	ReasonNodeCountOverflow  = "NodeCountOverflow"
	ReasonScalable           = "Scalable"
	ReasonPreferredNodes     = "PreferredNodes"
	ReasonAvailable          = "Available"
	ReasonProgressing        = "Progressing"
	ReasonDistributed        = "DistributedUnsupported"
	ReasonUnknownSettings    = "UnknownSettings"
	ReasonDeploymentConflict = "DeploymentConflict"
	ReasonDeploymentFailed   = "DeploymentFailed"
)

// DesiredReplicas returns spec.inference.replicas, and whether the workspace has inference settings at all. Replicas
// that are not set are 1, as in the schema.
func (w *Workspace) DesiredReplicas() (int32, bool) {
	switch {
	case w.Spec.Inference == nil:
		return 0, false
	case w.Spec.Inference.Replicas == nil:
		return 1, true
	}
	return *w.Spec.Inference.Replicas, true
}

// PerReplicaNodeCount returns the nodes of one replica: of the status, which is constant once written, and before that
// of the webhook's annotation. It returns 0 when neither has it.
func (w *Workspace) PerReplicaNodeCount() (int32, error) {
	if s := w.Status.Inference; s != nil && s.PerReplicaNodeCount > 0 {
		return s.PerReplicaNodeCount, nil
	}
	return w.AnnotatedNodeCount()
}

// AnnotatedNodeCount returns the nodes of one replica that the annotation carries, 0 if there is no annotation.
func (w *Workspace) AnnotatedNodeCount() (int32, error) {
	text, ok := w.Annotations[PerReplicaNodeCountAnnotation]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("metadata.annotations[%s]: %q is not a whole number of nodes from 1 to %d",
			PerReplicaNodeCountAnnotation, text, math.MaxInt32)
	}
	return int32(n), nil
}

// TargetNodeCount returns perReplica * replicas. It fails when the product is no int32, or an argument is negative.
func TargetNodeCount(perReplica, replicas int32) (int32, error) {
	if perReplica < 0 || replicas < 0 {
		return 0, fmt.Errorf("%d nodes a replica * %d replicas: negative", perReplica, replicas)
	}
	product := int64(perReplica) * int64(replicas)
	if product > math.MaxInt32 {
		return 0, fmt.Errorf("%d nodes a replica * %d replicas = %d nodes, more than %d",
			perReplica, replicas, product, math.MaxInt32)
	}
	return int32(product), nil
}

// Selector returns the query that selects the pods of the workspace of this name.
func Selector(name string) string { return NameLabel + "=" + name }
