// Package k8s runs scaling policies on a Kubernetes cluster. It does the I/O of package loop: it reads targets, scrapes pods,
// stores state and writes counts. It makes no decisions.
//
//	cluster, err := k8s.For(config) // a *rest.Config
//	settings, err := cluster.Settings(ctx, target, scrape.Named("vllm:num_requests_waiting"))
//	loop, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: policy, Settings: settings})
//	err = loop.Run(ctx)
//
// A [Loop] scales one [Target], which is anything with a /scale subresource, by a scaling.Policy. A [VariantLoop] scales several
// targets that serve one model, by a scaling.Group such as those of saturation and hetero. Package loop says in which order things
// are done, and what follows from each answer; see [Loop] for what a round does.
//
// Each part of the [Settings] is a small interface: [ScaleClient] reads and writes counts ([Scales]), [Observer] finds
// pods and scrapes them ([PodObserver]), [Store] keeps the state ([ConfigMapStore], [AnnotationStore]), [Recorder] makes
// events. An [Outcome] is the result of a round: [Conditions] turns it into conditions of a status, [Events] into events
// without repetitions, and [Metrics] into Prometheus metrics, with or without a loop. Package watch shows what rounds see to
// policies that only watch. Package k8stest has an in-memory cluster for tests.
//
// # What is needed
//
// Permissions: get and update on the target's scale subresource; list and watch on pods; get, create and patch on the
// ConfigMap (or get and patch on the annotated object) that keeps the state; create and patch on events. A target needs a
// selector in its /scale: custom resources declare labelSelectorPath. Only one loop may drive a target at a time: use leader
// election. If two do, they get ErrStateConflict, and neither undoes what the other wrote.
//
// # Errors
//
// A [TargetError] names the target and says what to do; errors.Is finds [ErrConflict], [ErrNotFound], [ErrNoScale],
// [ErrForbidden], [ErrRefused], [ErrUncertain] and [ErrNoSelector]. Stores return [ErrStateConflict] and [SizeError];
// unreadable states are a scaling.StateError. Constructors report every wrong field at once, each a scaling.FieldError.
package k8s
