// Package controller keeps Workspaces: the number of nodes that each needs, its Deployment, and its status.
//
//	targetNodeCount     = perReplicaNodeCount * spec.inference.replicas
//	Deployment.replicas = spec.inference.replicas
//
// Both are computed from the specification, at every change of it; what the status said before is never part of a
// decision, except perReplicaNodeCount, which is constant.
//
// Nodes are not made here: targetNodeCount is for a program that provides nodes, as Kaito's controller does with
// NodeClaims. It reads status.inference.targetNodeCount when status.observedGeneration is metadata.generation and the
// condition NodesEstimated is true, and may report with a condition of its own (ResourceReady): conditions of others
// stay as they are.
//
// # Writes
//
// The Deployment is applied server-side under the name [FieldOwner], with the fields that follow from the workspace and
// no others, and only if the fields that this owner has in it differ. A Deployment of the same name that belongs to
// somebody else is left alone: the first application does not force, so it conflicts, and the condition InferenceReady
// says so. In the workspace's own Deployment the application forces: replicas that somebody else wrote there go back to
// what the workspace says.
//
// The status is replaced only when it differs, and only in the version that was read: a conflict means that something
// newer is there to be looked at, so the reconciliation starts again.
package controller
