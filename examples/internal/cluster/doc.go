// Package cluster starts a real Kubernetes control plane on the loopback of one machine, for tests and for the demo:
// etcd, kube-apiserver and, if asked, kube-controller-manager with the controllers one names. No container engine, no
// kubelet and no root are needed; the three programs are built once by internal/controlplane/build.
//
//   - [Start] and [Cluster.Stop] (in a test: [ForTest]); [Cluster.RestartAPIServer] in between.
//   - Clients: [Cluster.Config] may do everything, [Cluster.User] and [Cluster.ServiceAccount] only what RBAC grants
//     them; [WriteKubeconfig] is for kubectl and other programs.
//   - [Cluster.InstallCRDs], [Cluster.InstallWebhooks], [Cluster.Apply] and [Cluster.Aggregate] fill it.
//   - [Cluster.StartProgram] runs a further program beside it; [FreePort], [Cluster.ServiceAccount] and
//     [Cluster.WriteCertificates] are for such.
//   - [Cluster.Writes] reads from the audit log who wrote what.
//   - [StartKubelet] lets pods run without containers: each has an address of its own in 127.8.0.0/13 and serves a
//     page as vLLM's /metrics there. [Fleet] is a queue that the ready pods share; [Kubelet.Fail] breaks pods.
//
// Everything listens on 127.x.y.z. It is tested on Linux, where a killed test leaves no server behind. Other systems lack
// that, and most have no addresses for pods.
package cluster
