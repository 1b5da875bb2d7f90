package cluster

import (
	"strconv"
	"strings"
)

func (c *Cluster) apiServerFlags() []string {
	return append([]string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none", // nobody asks for this server by the name of a Service, and one on loopback cannot be one
		"--secure-port=" + strconv.Itoa(c.apiPort),
		"--etcd-servers=http://" + Address(c.etcdPort),
		"--tls-cert-file=" + c.path("server.crt"),
		"--tls-private-key-file=" + c.path("server.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("tokens.pub"),
		"--service-account-signing-key-file=" + c.path("tokens.key"),
		"--disable-admission-plugins=ServiceAccount", // pods need no service account
		// What an aggregated API trusts: this server as a client, and the users it names.
		"--requestheader-client-ca-file=" + c.path("front-proxy-ca.crt"),
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.path("front-proxy.crt"),
		"--proxy-client-key-file=" + c.path("front-proxy.key"),
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.path(auditLog),
	}, c.options.APIServerFlags...)
}

func (c *Cluster) controllerFlags(kubeconfig string) []string {
	return []string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.controllerPort),
		"--tls-cert-file=" + c.path("server.crt"),
		"--tls-private-key-file=" + c.path("server.key"),
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--controllers=" + strings.Join(c.options.Controllers, ","),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--horizontal-pod-autoscaler-sync-period=1s",
	}
}
