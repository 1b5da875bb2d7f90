// Package keda is an external scaler for KEDA: it answers KEDA's calls with the metrics of a target's pods, or with the
// number of replicas that a policy wants. [NewTriggers] says where to look, [NewEngine] makes the rounds, and [NewGRPC]
// serves their results:
//
//	triggers, err := keda.NewTriggers(keda.TriggersConfig{Scales: scales, Observe: observe, Objects: objects, Store: store})
//	engine, err := keda.NewEngine(ctx, keda.EngineConfig{Build: triggers.Build})
//	server, healthy, err := keda.NewGRPC(keda.GRPCConfig{Engine: engine, TLS: config})
//	err = server.Serve(listener)
//
// The Engine creates a [Trigger] from a ScaledObject's metadata at the first call for it, and from then on makes its rounds by
// the Engine's own clock. KEDA asks from two loops, several times for one value and again after errors, so a call must not
// advance anything: it is answered from the last [Snapshot], in about a microsecond. A Trigger can be your own;
// [Triggers] creates those that scrape pods, in Mode [Metric] or [Replicas], from metadata as [ParseMetadata] documents them.
//
// Package externalscaler has the protocol. Package defaulting fills in what a ScaledObject leaves out. Module
// adapters/certs makes certificates for both sides and rotates them.
//
// # What is not known
//
// Before the first round has ended, when the last is older than three intervals, and when no pod has answered, the
// answer is the error Unavailable with the reason. A HorizontalPodAutoscaler then holds. The answer is never a number, least of
// all one that KEDA would read as 0. A target at 0 replicas is a different case: the HorizontalPodAutoscaler is off, and Mode Metric
// sends the load of the one replica that KEDA then begins with.
//
// # Errors
//
// Bad metadata is InvalidArgument with every wrong key, each as "key: value: rule". Constructors report every
// wrong field at once, each a scaling.FieldError; a zero optional field means its default.
package keda
