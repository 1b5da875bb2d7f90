// Package k8s runs scaling policies on a Kubernetes cluster. It reads, asks pods, stores and writes; it decides nothing.
//
//	cluster, err := k8s.For(config) // a *rest.Config
//	settings, err := cluster.Settings(ctx, target, scrape.Named("vllm:num_requests_waiting"))
//	loop, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: policy, Settings: settings})
//	err = loop.Run(ctx)
//
// A [Loop] scales one [Target], anything with a /scale subresource, by a scaling.Policy; a [VariantLoop] several that
// serve one model, by a scaling.Group as saturation and hetero have it. What is to be done in which order, and what
// follows from each answer, is package loop's to say; see [Loop] for what a round does.
//
// Each part of the [Settings] is a small interface: [ScaleClient] reads and writes counts ([Scales]), [Observer] finds
// pods and asks them ([PodObserver]), [Store] keeps the state ([ConfigMapStore], [AnnotationStore]), [Recorder] makes
// events. An [Outcome] is what a round came to: [Conditions] turns it into conditions of a status, [Events] into events
// that do not repeat themselves, [Metrics] into Prometheus metrics, with or without a loop. Package watch
// shows policies that only watch what rounds see. Package k8stest has a cluster in memory, for tests.
//
// # What is needed
//
// Permissions: get and update on the target's scale subresource; list and watch on pods; get, create and patch on the
// ConfigMap (or get and patch on the annotated object) that keeps the state; create and patch on events. A target needs a
// selector in its /scale: custom resources declare labelSelectorPath. One loop may drive a target at a time: use leader
// election. Two that do are told so by ErrStateConflict, and neither undoes what the other wrote.
//
// # Errors
//
// A [TargetError] names the target and says what to do; errors.Is finds [ErrConflict], [ErrNotFound], [ErrNoScale],
// [ErrForbidden], [ErrRefused], [ErrUncertain] and [ErrNoSelector]. Of stores, [ErrStateConflict] and [SizeError]; of
// states, scaling.StateError. Constructors report every wrong field at once, each a scaling.FieldError.
package k8s
