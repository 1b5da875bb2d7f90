// Package keda is an external scaler for KEDA: it answers KEDA's calls with what the pods of a target say, or with how
// many replicas a policy wants. [NewTriggers] says where to look, [NewEngine] makes the rounds, and [NewGRPC] serves what
// they came to:
//
//	triggers, err := keda.NewTriggers(keda.TriggersConfig{Scales: scales, Observe: observe, Objects: objects, Store: store})
//	engine, err := keda.NewEngine(ctx, keda.EngineConfig{Build: triggers.Build})
//	server, healthy, err := keda.NewGRPC(keda.GRPCConfig{Engine: engine, TLS: config})
//	err = server.Serve(listener)
//
// The Engine makes a [Trigger] of a ScaledObject's metadata when it is first asked for it, and from then on makes its
// rounds by its own clock: KEDA asks from two loops, several times for one value and again after errors, so a call must
// not advance anything. It is answered from the last [Snapshot], in about a microsecond. A Trigger may be anybody's;
// [Triggers] makes those that scrape pods, in Mode [Metric] or [Replicas], of metadata as [ParseMetadata] documents them.
//
// Package externalscaler has the protocol, package defaulting fills in what a ScaledObject leaves out, and module
// adapters/certs makes certificates for both sides and rotates them.
//
// # What is not known
//
// Before the first round has ended, when the last is older than three intervals, and when no pod has said anything, the
// answer is the error Unavailable with the reason. A HorizontalPodAutoscaler then holds. It is never a number, and never
// one that KEDA would read as 0. A target at 0 replicas is no such case: the HorizontalPodAutoscaler is off, and what is
// sent in Mode Metric is the load of the one replica that KEDA then begins with.
//
// # Errors
//
// Bad metadata is InvalidArgument with every key that is wrong, each as "key: value: rule". Constructors report every
// wrong field at once, each a scaling.FieldError; a zero field that need not be set means its default.
package keda
