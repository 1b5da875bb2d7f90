//go:build linux

package kedacluster_test

import (
	"crypto/tls"
	"crypto/x509"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/kedacluster"
)

func TestExp(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{Controllers: cluster.HPA()})
	k := kedacluster.ForTest(t, c, kedacluster.Options{})
	admin := kubernetes.NewForConfigOrDie(c.Config())
	kubelet, err := cluster.StartKubelet(t.Context(), c.Config(), cluster.KubeletOptions{})
	require.NoError(t, err)
	t.Cleanup(kubelet.Stop)
	rep := func(name string, want int32) func() error {
		return func() error {
			d, err := admin.AppsV1().Deployments("serving").Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && (*d.Spec.Replicas != want || d.Status.ReadyReplicas != want) {
				err = fmt.Errorf("%d of %d replicas are ready, not %d", d.Status.ReadyReplicas, *d.Spec.Replicas, want)
			}
			return err
		}
	}
	timed := func(what string, f func()) { b := time.Now(); f(); t.Logf("%s: %v", what, time.Since(b)) }
	s, addr := startScaler(t, 10)
	m := strings.Replace(manifests, "maxReplicaCount: 10", "maxReplicaCount: 30", 1)
	require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, m, addr)))
	timed("1->10", func() { eventually(t, "10", rep("llm", 10)) })
	s.replicas.Store(11)
	timed("10->11 tolerance 0", func() { eventually(t, "11", rep("llm", 11)) })
	s.replicas.Store(10)
	timed("11->10 tolerance 0", func() { eventually(t, "10", rep("llm", 10)) })
	h, _ := admin.AutoscalingV2().HorizontalPodAutoscalers("serving").Get(t.Context(), "keda-hpa-llm", metav1.GetOptions{})
	t.Logf("HPA spec %v\n%v", h.Spec.Metrics, h.Spec.Behavior)
	b := s.calls.Load()
	time.Sleep(10 * time.Second)
	t.Logf("calls in 10 s steady: %d", s.calls.Load()-b)
	for _, p := range k.Processes() {
		st, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		for _, l := range strings.Split(string(st), "\n") {
			if strings.HasPrefix(l, "VmRSS") || strings.HasPrefix(l, "VmHWM") {
				t.Log(p.Name, l)
			}
		}
	}
	// scale to zero
	z, zaddr := startScaler(t, 0)
	zero := strings.NewReplacer("name: llm", "name: zero", "app: llm", "app: zero", "minReplicaCount: 1", "minReplicaCount: 0\n  cooldownPeriod: 1").Replace(manifests)
	require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, zero, zaddr)))
	timed("1->0 at first", func() { eventually(t, "0", rep("zero", 0)) })
	z.replicas.Store(5)
	timed("0->5", func() { eventually(t, "5", rep("zero", 5)) })
	z.replicas.Store(0)
	timed("5->0", func() { eventually(t, "0", rep("zero", 0)) })
	// TLS
	dir := t.TempDir()
	require.NoError(t, c.WriteCertificates(dir))
	read := func(n string) string { x, err := os.ReadFile(filepath.Join(dir, n)); require.NoError(t, err); return string(x) }
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(read("ca.crt")))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ts := &scaler{}
	ts.replicas.Store(3)
	var sawPeer string
	srv := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})))
	externalscaler.RegisterExternalScalerServer(srv, ts)
	go srv.Serve(l)
	defer srv.Stop()
	_ = sawPeer
	_, err = admin.CoreV1().Secrets("keda").Create(t.Context(), secret("scaler-tls", map[string]string{"ca": read("ca.crt"), "crt": read("tls.crt"), "key": read("tls.key")}), metav1.CreateOptions{})
	require.NoError(t, err)
	tlsm := strings.NewReplacer("name: llm", "name: secure", "app: llm", "app: secure").Replace(manifests) + "      authenticationRef: {name: scaler, kind: ClusterTriggerAuthentication}\n"
	require.NoError(t, c.Apply(t.Context(), []byte(`
apiVersion: keda.sh/v1alpha1
kind: ClusterTriggerAuthentication
metadata: {name: scaler}
spec:
  secretTargetRef:
    - {parameter: caCert, name: scaler-tls, key: ca}
    - {parameter: tlsClientCert, name: scaler-tls, key: crt}
    - {parameter: tlsClientKey, name: scaler-tls, key: key}
`)))
	require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, tlsm, l.Addr().String())))
	timed("TLS 1->3", func() { eventually(t, "3", rep("secure", 3)) })
	// API server restart
	timed("restart API server", func() { require.NoError(t, c.RestartAPIServer(t.Context())) })
	s.replicas.Store(4)
	timed("after API restart 10->4", func() { eventually(t, "4", rep("llm", 4)) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k.StopOperator()
	s.replicas.Store(6)
	time.Sleep(5 * time.Second)
	d, _ := admin.AppsV1().Deployments("serving").Get(ctx, "llm", metav1.GetOptions{})
	t.Logf("5 s without operator: %d", *d.Spec.Replicas)
	timed("operator back", func() { require.NoError(t, k.StartOperator(ctx)) })
	timed("then 4->6", func() { eventually(t, "6", rep("llm", 6)) })
	// scaler down at creation
	down := strings.NewReplacer("name: llm", "name: down", "app: llm", "app: down").Replace(manifests)
	fp, _ := cluster.FreePort()
	require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, down, fmt.Sprintf("127.0.0.1:%d", fp))))
	time.Sleep(4 * time.Second)
	hs, _ := admin.AutoscalingV2().HorizontalPodAutoscalers("serving").List(ctx, metav1.ListOptions{})
	for _, h := range hs.Items {
		t.Log("HPA", h.Name, len(h.Spec.Metrics))
	}
	dl, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", fp))
	require.NoError(t, err)
	dsrv := grpc.NewServer()
	ds := &scaler{}
	ds.replicas.Store(2)
	externalscaler.RegisterExternalScalerServer(dsrv, ds)
	go dsrv.Serve(dl)
	defer dsrv.Stop()
	timed("scaler appears, 1->2", func() { eventually(t, "2", rep("down", 2)) })
	timed("stop", func() { k.Stop() })
	for _, n := range []string{"keda-operator", "keda-adapter"} {
		x, _ := os.ReadFile(filepath.Join(c.Dir(), n+".log"))
		os.WriteFile("/tmp/kedabuild/"+n+".log", x, 0o600)
	}
}
