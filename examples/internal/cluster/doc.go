// Package cluster starts a real Kubernetes control plane on the loopback of one machine, for tests and for the demo:
// etcd, kube-apiserver and, where it is wanted, kube-controller-manager with the controllers that are named. No container
// engine, kubelet or root is needed; internal/controlplane/build builds the three programs once.
//
//   - [Start] and [Cluster.Stop] (in a test: [ForTest]); [Cluster.RestartAPIServer] in between.
//   - Clients: [Cluster.Config] may do everything, [Cluster.User] and [Cluster.ServiceAccount] only what RBAC grants
//     them; [WriteKubeconfig] is for kubectl and other programs.
//   - [Cluster.InstallCRDs], [Cluster.InstallWebhooks], [Cluster.Apply] and [Cluster.Aggregate] fill it.
//   - [Cluster.StartProgram] runs another program beside it, for which [FreePort], [Cluster.ServiceAccount] and
//     [Cluster.WriteCertificates] are meant.
//   - [Cluster.Writes] reads from the audit log who wrote what.
//   - [StartKubelet] runs pods without containers: each has an address of its own in 127.8.0.0/13, where it serves a page
//     like vLLM's /metrics. [Fleet] is a queue that the ready pods share; [Kubelet.Fail] breaks pods.
//
// Everything listens on 127.x.y.z. It is tested on Linux, where a killed test leaves no server behind. Other systems do not
// end them, and most have no addresses for pods.
package cluster
