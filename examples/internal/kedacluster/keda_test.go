//go:build linux

package kedacluster_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/kedacluster"
)

// manifests are a Deployment of one pod and its ScaledObject: %[1]s is the name of both, and %[2]s the address of the
// external scaler. Nothing of the HorizontalPodAutoscaler's own pace and tolerance is between the scaler and the
// Deployment.
const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: serving}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: serving}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: vllm, image: none}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: %[1]s, namespace: serving}
spec:
  scaleTargetRef: {name: %[1]s}
  pollingInterval: 1
  minReplicaCount: 1
  maxReplicaCount: 10
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp: &quick
          stabilizationWindowSeconds: 0
          tolerance: "0"
          policies: [{type: Pods, value: 10, periodSeconds: 1}]
        scaleDown: *quick
  triggers:
    - type: external
      metadata: {scalerAddress: "%[2]s"}
`

// secured is what a ScaledObject needs for an external scaler that asks for certificates. KEDA finds the secret of a
// ClusterTriggerAuthentication in its own namespace.
const secured = `
      authenticationRef: {name: scaler, kind: ClusterTriggerAuthentication}
---
apiVersion: keda.sh/v1alpha1
kind: ClusterTriggerAuthentication
metadata: {name: scaler}
spec:
  secretTargetRef:
    - {parameter: caCert, name: scaler, key: ca.crt}
    - {parameter: tlsClientCert, name: scaler, key: tls.crt}
    - {parameter: tlsClientKey, name: scaler, key: tls.key}
`

func TestKEDA(t *testing.T) {
	kedacluster.Need(t)
	begin := time.Now()
	c := cluster.ForTest(t, cluster.Options{Controllers: cluster.HPA()})
	t.Logf("cluster: %v", time.Since(begin))
	begin = time.Now()
	k := kedacluster.ForTest(t, c, kedacluster.Options{})
	t.Logf("KEDA: %v", time.Since(begin))
	w := &world{Cluster: c, admin: kubernetes.NewForConfigOrDie(c.Config())}
	kubelet, err := cluster.StartKubelet(t.Context(), c.Config(), cluster.KubeletOptions{
		Fleet: cluster.NewFleet(cluster.FleetOptions{}),
	})
	require.NoError(t, err)
	t.Cleanup(kubelet.Stop)

	s, address := startScaler(t, 1)
	require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, manifests, "llm", address)))
	for _, step := range []struct {
		name     string
		before   func() error
		replicas int32
	}{
		{name: "begins", replicas: 1},
		{name: "scales up", replicas: 5},
		{name: "scales down", replicas: 3},
		{name: "the operator restarts", replicas: 4, before: func() error {
			k.StopOperator()
			return k.StartOperator(t.Context())
		}},
		{name: "the adapter restarts", replicas: 2, before: func() error {
			k.StopAdapter()
			return k.StartAdapter(t.Context())
		}},
	} {
		begin := time.Now()
		if step.before != nil {
			require.NoError(t, step.before(), step.name)
		}
		started, calls := time.Now(), s.calls.Load()
		s.replicas.Store(int64(step.replicas))
		w.await(t, "llm", step.replicas)
		t.Logf("%s: %v and %v, %d calls", step.name, started.Sub(begin), time.Since(started), s.calls.Load()-calls)
	}

	begin = time.Now()
	testCertificates(t, w)
	t.Logf("a scaler with certificates: %v", time.Since(begin))

	objects, err := c.Writes(kedacluster.User(), "horizontalpodautoscalers", "")
	require.NoError(t, err)
	require.NotEmpty(t, objects, "KEDA is its service account")
	assert.Equal(t, "keda-hpa-llm", objects[0].Name)

	processes := k.Processes()
	require.Len(t, processes, 2)
	for _, p := range processes {
		addresses := listening(t, p.PID)
		require.NotEmpty(t, addresses, p.Name)
		for _, a := range addresses {
			assert.Equal(t, "0100007F", a, "%s listens on more than 127.0.0.1", p.Name)
		}
	}
	k.Stop()
	assert.Empty(t, k.Processes())
	for _, p := range processes {
		assert.ErrorIs(t, syscall.Kill(p.PID, 0), syscall.ESRCH, "%s is still there", p.Name)
	}

	_, err = kedacluster.Start(t.Context(), c, kedacluster.Options{OperatorFlags: []string{"--no-such-flag"}})
	require.ErrorContains(t, err, "keda-operator")
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
}

// testCertificates has KEDA and a scaler check each other's certificates.
func testCertificates(t *testing.T, w *world) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, w.WriteCertificates(dir))
	files := map[string][]byte{}
	for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		files[name] = text
	}
	_, err := w.admin.CoreV1().Secrets(kedacluster.Namespace).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "scaler"}, Data: files}, metav1.CreateOptions{})
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(files["tls.crt"], files["tls.key"])
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM(files["ca.crt"]))
	_, address := startScaler(t, 3, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    authorities,
		MinVersion:   tls.VersionTLS12,
	})))
	require.NoError(t, w.Apply(t.Context(), fmt.Appendf(nil, strings.TrimSuffix(manifests, "\n")+secured, "secure", address)))
	w.await(t, "secure", 3)
}

// A world is a cluster with a client that may do everything.
type world struct {
	*cluster.Cluster
	admin *kubernetes.Clientset
}

// await polls until a Deployment wants and has n replicas, for a minute.
func (w *world) await(t *testing.T, name string, n int32) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			var d *appsv1.Deployment
			d, last = w.admin.AppsV1().Deployments("serving").Get(ctx, name, metav1.GetOptions{})
			if last == nil && (*d.Spec.Replicas != n || d.Status.ReadyReplicas != n) {
				last = fmt.Errorf("%s: %d of %d replicas are ready, not %d", name, d.Status.ReadyReplicas, *d.Spec.Replicas, n)
			}
			return last == nil, nil
		})
	require.NoError(t, errors.Join(err, last))
}

// listening returns the addresses where a process listens, as the kernel writes them.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	sockets := map[string]bool{}
	links, err := filepath.Glob(filepath.Join(proc, "fd", "*"))
	require.NoError(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil { // some are closed by now
			sockets[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	var all []string
	for _, table := range []string{"tcp", "tcp6"} {
		file, err := os.Open(filepath.Join(proc, "net", table))
		if errors.Is(err, os.ErrNotExist) {
			continue // without IPv6
		}
		require.NoError(t, err)
		const listens = "0A"
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			f := strings.Fields(lines.Text())
			if len(f) > 9 && f[3] == listens && sockets[f[9]] {
				address, _, _ := strings.Cut(f[1], ":")
				all = append(all, address)
			}
		}
		require.NoError(t, lines.Err())
		require.NoError(t, file.Close())
	}
	return all
}
