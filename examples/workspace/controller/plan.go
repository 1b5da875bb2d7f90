package controller

import (
	"fmt"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// Plan is what follows from a workspace's specification.
type Plan struct {
	// PerReplicaNodes is the number of nodes of one replica.
	PerReplicaNodes int32
	// Replicas is how many replicas are wanted.
	Replicas int32
	// TargetNodes is PerReplicaNodes * Replicas.
	TargetNodes int32
}

// Problem says why there is no [Plan]. Nothing is changed then: the last plan stays in force.
type Problem struct {
	// Reason is that of the condition NodesEstimated.
	Reason string
	// Message is for people, and names the field.
	Message string
}

// NewPlan returns the plan of a workspace, or why there is none.
func NewPlan(w *v1alpha1.Workspace) (Plan, *Problem) {
	replicas, ok := w.DesiredReplicas()
	if !ok {
		return Plan{}, &Problem{v1alpha1.ReasonNoInference, "spec.inference is not set: there is nothing to run"}
	}
	perReplica, err := w.PerReplicaNodeCount()
	switch {
	case err != nil:
		return Plan{}, &Problem{v1alpha1.ReasonNodeCountInvalid, err.Error()}
	case perReplica == 0:
		return Plan{}, &Problem{v1alpha1.ReasonNodeCountUnknown, fmt.Sprintf(
			"metadata.annotations[%s] is not set: the webhook sets it on the next update of the workspace",
			v1alpha1.PerReplicaNodeCountAnnotation)}
	}
	target, err := v1alpha1.TargetNodeCount(perReplica, replicas)
	if err != nil {
		return Plan{}, &Problem{v1alpha1.ReasonNodeCountOverflow, "spec.inference.replicas: " + err.Error()}
	}
	return Plan{PerReplicaNodes: perReplica, Replicas: replicas, TargetNodes: target}, nil
}
