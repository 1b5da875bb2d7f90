// Package defaulting fills in what a user left out of a KEDA ScaledObject that uses this external scaler: the mutating
// admission that seed 001 calls the Scaler Webhook. [Defaulter.Default] is a pure function from an object to a JSON
// patch, [Defaulter.Review] answers an admission request and [Defaulter.ServeHTTP] an API server.
//
// # Which objects
//
// A ScaledObject of keda.sh/v1alpha1 with at least one trigger of ours: of type external or external-push, and with
// the metadata scalerName of [Config]. An object that is being deleted, any other object and any other trigger are left
// as they are. Requests other than CREATE and UPDATE, and those to a subresource, are too.
//
// # The rule
//
// Every operation is an add of something absent, so nothing that was there is changed or even written anew: numbers
// and unknown fields survive. Absent means missing or null; an empty string, list or object is set.
// A second pass adds nothing. With [Default] as configuration this is added:
//
//	spec.minReplicaCount          1
//	of each trigger of ours
//	  authenticationRef           {keda-kaito-creds, ClusterTriggerAuthentication}, as a whole, unless Plaintext
//	  metadata.scalerAddress      keda-kaito-scaler.keda.svc.cluster.local:10450
//	  metadata.metricType         the trigger's metricType, AverageValue if it has none
//	  metadata.metricName         vllm:num_requests_waiting
//	  metadata.metricProtocol     http
//	  metadata.metricPort         5000
//	  metadata.metricPath         /metrics
//	  metadata.scrapeTimeout      5
//	spec.advanced.horizontalPodAutoscalerConfig.behavior, leaf by leaf
//	                              mode metric     mode replicas
//	  scaleUp     window          30 s            0
//	              tolerance       0.1             0
//	              policies        1 pod / 300 s   100000 pods / 1 s
//	              selectPolicy    Max             Max
//	  scaleDown   window          300 s           0
//	              tolerance       0.5             0
//	              policies        1 pod / 600 s   100 % / 1 s
//	              selectPolicy    Max             Max
//
// A list of policies is one leaf: whoever gives one keeps it. A metadata key with KEDA's suffix FromEnv counts as the
// key, except for scalerAddress, which KEDA reads from metadata only.
//
// A default gives way where it would contradict what the user said elsewhere:
//
//   - minReplicaCount is maxReplicaCount, if that is lower, and is left out if that is below 1: KEDA would refuse it. It
//     is left out too if a trigger in mode replicas has the metadata minReplicas 0, which needs KEDA's default of 0.
//   - No metricName, metricProtocol, metricPort and metricPath beside engine or signal, which say it all.
//   - No scrapeTimeout beside interval, on which the scaler's own default depends.
//   - None of these five beside scaler, a whole scaler as YAML for mode replicas, and where rules are given by their paths
//     without a threshold, as cron.… and realtime.metrics.
//   - No metricProtocol beside metricPorotocol.
//
// # Modes
//
// A trigger's metadata.mode is metric (also if absent) or replicas. In mode metric the HPA decides, and the
// seed's windows, tolerances and policies suit slow GPU nodes. In mode replicas the scaler has decided, with windows and
// cooldowns of its own, and the HPA is to carry it out: a window would delay it, and the HPA's tolerance of a tenth
// would hold a step from 10 to 11 for ever. The behavior is that of mode replicas if any trigger of ours is in it, and
// that of mode metric if all are in that. A mode that does not exist, or that comes from the
// environment, adds no behavior.
//
// The behavior belongs to the HPA and so to all triggers: beside a cron trigger that asks for ten, one pod in five
// minutes takes three quarters of an hour. A warning says so.
//
// Two triggers of ours in mode replicas that read the same metric of the same pods would share one state, and the scaler
// refuses both; a warning says so where [Config] has Identity.
//
// # Why these numbers
//
// An HPA takes policies with a value of at least 1 and a period of 1 to 1800 s. Its limit on the way up is the count
// plus the value in 32 bits, so a value near the largest int32 would overflow to a negative limit; 100000 is more than
// any fleet has and far from that. On the way down 100 % is no limit. The HPA looks every 15 s, so a period of 1 s
// remembers no earlier change.
//
// KEDA's own minReplicaCount is 0. Its idleReplicaCount must be below minReplicaCount, so an idleReplicaCount of 0
// without a minReplicaCount is refused by KEDA, and accepted with ours.
//
// Tolerances are quantities, written as "100m" for 0.1; the schema takes a string or an integer and refuses the number
// 0.1 that seed 001's examples have, so that a user who copies them gets a warning with the refusal. API servers drop
// tolerances before Kubernetes 1.33, and with the feature gate HPAConfigurableTolerance off, as it is before 1.35.
// Then a tenth applies in both directions.
//
// # Differences from seed 001
//
// The protocol is http, not https: the servers meant serve plain metrics. The key metricPorotocol of the seed is read
// as metricProtocol, with a warning. Its spec.minReplicas and maxReplicas do not exist; an API server drops them before
// admission, so that the warning about them is seen only where Default is called on a file. metricType is new: KEDA
// does not tell an external scaler how the HPA will use a value.
//
// # Installing
//
// A MutatingWebhookConfiguration has the rule CREATE and UPDATE of scaledobjects in keda.sh/v1alpha1, without
// subresources; admissionReviewVersions v1, sideEffects None, matchPolicy Equivalent, a timeoutSeconds of a few and
// failurePolicy Ignore: a webhook that is down stops nobody, and an object that came in meanwhile gets its defaults at
// its next update. Until then KEDA cannot find a scaler without scalerAddress. Reinvocation is not needed.
//
// # What is wrong stays
//
// A trigger that is no object or a value of the wrong type, is left to KEDA and the schema; where it is ours a warning
// names it. Admission is never refused.
//
// Two things follow from never overriding. Defaults that were stored once are the user's from then on: a changed mode
// keeps the old mode's behavior (a warning says so), and a later version's defaults do not reach old objects. And an
// old object gets its defaults at its next update, whoever makes it.
package defaulting
