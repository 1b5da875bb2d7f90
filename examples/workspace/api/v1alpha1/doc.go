// +kubebuilder:object:generate=true
// +groupName=workspace.inferscale.io
//
// Both are for controller-gen.

// Package v1alpha1 is the API of Workspaces that scale: a custom resource with a /scale subresource, after the Kaito
// proposal "Support scale subresource api for workspace". The group is this project's own, so that nobody takes it for
// Kaito's Workspace.
//
// # Who writes what
//
//   - spec.inference.replicas is written by people and by autoscalers, directly or through /scale. Every decision is made
//     on it.
//   - The annotation [PerReplicaNodeCountAnnotation] is written once by the defaulting webhook. An API server drops the
//     status of an object that is being created when the kind has a status subresource, so a webhook for create requests
//     cannot fill the status itself; and a webhook on workspaces/status would run only after somebody else writes a
//     status. An annotation is the only place that the create request can carry.
//   - The controller copies it to status.inference.perReplicaNodeCount, which the schema then holds constant, and
//     computes status.inference.targetNodeCount = perReplicaNodeCount * spec.inference.replicas at every change.
//   - status.inference.replicas is for display.
//
// What a schema can say is said there, as CEL rules: the settings that the node count was estimated from do not change
// during the life of a Workspace.
package v1alpha1

//go:generate ../../generate.sh
