// Package kedacluster runs a real KEDA, its operator and its metrics adapter, as child processes beside a control plane
// of package cluster, for end-to-end tests: ScaledObjects make HorizontalPodAutoscalers, the operator asks the scalers,
// and Kubernetes' own controller scales. internal/controlplane/keda/build builds the two programs once, apart from the control
// plane, because that takes longer.
//
//   - [Start] and [KEDA.Stop] (in a test: [Need], and [ForTest] after cluster.ForTest with the controllers cluster.HPA).
//   - [KEDA.StopOperator], [KEDA.StartOperator], [KEDA.StopAdapter] and [KEDA.StartAdapter] make outages.
//   - Both programs run as the service account of KEDA's own manifests, with KEDA's own roles; [User] is its name in the
//     audit log. Its token lasts an hour. Secrets of ClusterTriggerAuthentications belong in [Namespace].
//   - [KEDA.LogTails] returns the ends of both logs.
//
// KEDA's admission webhooks do not run: the operator finds a wrong ScaledObject. KEDA's certificates are made here and not
// rotated. Everything listens on 127.0.0.1, so the address of an external scaler is one of this machine. Like package
// cluster, it is tested on Linux, where a killed test leaves no program behind.
package kedacluster
