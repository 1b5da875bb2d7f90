// Package keda is an external scaler for KEDA: it answers KEDA's calls with what the pods of a target say, or with how
// many replicas a scaling.Policy wants.
//
// # The story
//
// A Server answers the five calls of the protocol (package externalscaler) from the snapshots of an Engine. The Engine
// makes a Trigger of a ScaledObject's metadata when it is first asked for it, and from then on makes its rounds by its
// own clock: KEDA asks from two loops, several times for one value and again after errors, so a call must not advance
// anything. An answer takes about a microsecond. Triggers builds those that scrape pods, from metadata as
// ParseMetadata documents them.
//
// # Two modes
//
// In Mode Metric the value is what the pods say, and the HorizontalPodAutoscaler decides: the total over the pods where
// the trigger's metricType is AverageValue (the default), their mean where it is Value. What a missing pod could have
// said moves nothing: the total is then the one nearest to "hold" that is possible.
//
// In Mode Replicas a policy decides, and the value is the count that it wants, with a target of 1. Its state is stored
// before it is answered with; each round is made by one replica of the scaler, and the others answer with what that
// found. One that finds nothing answers with what another finds. A HorizontalPodAutoscaler has a tolerance of 0.1, so
// that from 10 replicas on a step of 1 is none to it: set
// spec.advanced.horizontalPodAutoscalerConfig.behavior.{scaleUp,scaleDown}.tolerance to 0, as package defaulting does,
// which needs Kubernetes 1.33 with the feature gate or 1.35. On others make steps of more than a tenth, or start the
// controller manager with --horizontal-pod-autoscaler-tolerance=0.
//
// # What is not known
//
// Before the first round has ended, when the last is older than three intervals, and when no pod has said anything, the
// answer is the error Unavailable with the reason. A HorizontalPodAutoscaler then holds. It is never a number, and never
// one that KEDA would read as 0. A target at 0 replicas is no such case: the HorizontalPodAutoscaler is off, and what is
// sent in Mode Metric is the load of the one replica that KEDA then begins with.
//
// IsActive is about the target: in Mode Metric whether it exists and can be scaled, as without pods nobody could say
// that one is needed; in Mode Replicas whether any replicas are wanted. It does not fail where GetMetrics works. KEDA
// asks it of a trigger of the type external only after GetMetrics has answered.
//
// # Who may ask
//
// Module adapters/certs makes certificates for both sides and rotates them. Package defaulting fills in what a ScaledObject
// leaves out.
//
// # Errors
//
// Bad metadata is InvalidArgument with every key that is wrong, each as "key: value: rule". Constructors report every
// wrong field at once, each a scaling.FieldError.
package keda
