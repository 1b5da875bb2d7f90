// Package v1alpha1 has the LLMAutoScaler, the object by which a user says how one target is to be scaled.
//
// It is the API of the LLMAutoScaler proposal of Kaito, with its field names and defaults, and beside it what the
// algorithms of this module have that the proposal has not: profiles, roles of metrics, presets of engines, the
// proportional scaler, time windows, and a dry run.
//
//	apiVersion: autoscaling.inferscale.io/v1alpha1
//	kind: LLMAutoScaler
//	metadata: {name: chat, namespace: models}
//	spec:
//	  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
//	  maxReplicas: 8
//	  scaler:
//	    realtime:
//	      metrics:
//	        - source: {engine: VLLM, signal: InFlight}
//	          threshold: {high: 40, low: 20}
//
// The rules, and what stands beside them, are the types of package policy: a spec that is in a file for the simulator is
// the same here. These types need apimachinery alone beside it. Package adapters/k8s/build makes a policy and a
// scraper's configuration of a spec; package crd has the definition that an API server takes.
//
// Durations are whole seconds and say so in their names, as in the proposal. Numbers that can have a fraction are a
// Decimal: 40, or "0.9" with quotes, as Kubernetes' API has no floating point.
//
// +groupName=autoscaling.inferscale.io
// +kubebuilder:object:generate=true
package v1alpha1
