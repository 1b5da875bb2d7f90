// Package v1alpha1 has the LLMAutoScaler, the object by which a user says how one target is to be scaled.
//
// It is the API of Kaito's LLMAutoScaler proposal, with its field names and defaults, and has what the algorithms of this
// module have in addition: profiles, roles of metrics, presets of engines, the proportional, saturation and capacity scalers,
// time windows, shadows, and a dry run.
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
// The rules are the types of package policy: a spec in a file for the simulator is the same here. Besides that package these
// types need only apimachinery. Package adapters/k8s/build makes a policy and a scraper's configuration from a spec; package
// crd has the definition for an API server.
//
// Durations are whole seconds and say so in their names, as in the proposal. Numbers that can have a fraction are a
// Decimal: 40, or "0.9" with quotes, as Kubernetes' API has no floating point.
//
// +groupName=autoscaling.inferscale.io
// +kubebuilder:object:generate=true
package v1alpha1
