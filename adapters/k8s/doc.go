// Package k8s drives scaling policies against a Kubernetes cluster. It translates, fetches and writes; it decides
// nothing.
//
// # The story
//
// A [Loop] scales one [Target], anything with a /scale subresource, by a scaling.Policy. Each round reads /scale
// ([Scales]), finds the pods that its selector selects ([Pods]) and asks them for their metrics ([PodObserver]), lets
// the policy decide, stores the policy's state ([Store]), writes the replicas if the decision acts, and tells the policy
// what was carried out. A [VariantLoop] does the same for several targets that serve one model and are decided on
// together, by saturation ([SaturationVariants]) or by cost ([HeteroVariants]).
//
// # The order of duties
//
//  1. Load the state, once and after trouble. A state that cannot be used is kept, and nothing is decided.
//  2. Read /scale. Decisions are about spec.replicas, not about what runs.
//  3. Observe. What cannot be observed is not decided on.
//  4. Decide.
//  5. Store the state with the intent to write. What is not stored is not acted on.
//  6. Write, with the resource version that was decided on. A conflict means to decide again, never to overwrite.
//     Hold and Unknown write nothing.
//  7. Tell the policy (Applied) and store the state again: only now do cooldowns run.
//
// [Loop] says what a crash between any two of these comes to.
//
// # Explaining
//
// An [Outcome] is what a round came to. [Conditions] turns it into conditions of a status, [Events] into events that do
// not repeat themselves, [Metrics] into Prometheus metrics. All three can be used without a loop.
//
// # What is needed
//
// Permissions: get and update on the target's scale subresource; list and watch on pods, for the lister; get, create
// and patch on the ConfigMap (or get and patch on the annotated object) that keeps the state; create and patch on
// events. A target needs a selector in its /scale: custom resources declare labelSelectorPath.
//
// One loop may drive a target at a time: use leader election. Two that do are told so by ErrStateConflict, and neither
// undoes what the other wrote.
//
// # Errors
//
// A [TargetError] names the target and says what to do; errors.Is finds [ErrConflict], [ErrNotFound], [ErrNoScale],
// [ErrForbidden], [ErrRefused], [ErrUncertain] and [ErrNoSelector]. Of stores, [ErrStateConflict] and [SizeError]; of
// states, scaling.StateError. Constructors report every wrong field at once, each a scaling.FieldError.
package k8s
