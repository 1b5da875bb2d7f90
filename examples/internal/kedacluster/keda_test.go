//go:build linux

package kedacluster_test

import (
	"bufio"
	"context"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/kedacluster"
)

// manifests are a Deployment of one pod and its ScaledObject, where %s is the address of the external scaler. Nothing
// of the HorizontalPodAutoscaler's own pace and tolerance is between the scaler and the Deployment.
const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: serving}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: serving}
spec:
  replicas: 1
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec: {containers: [{name: vllm, image: none}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llm, namespace: serving}
spec:
  scaleTargetRef: {name: llm}
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
      metadata: {scalerAddress: %q}
`

func TestKEDA(t *testing.T) {
	kedacluster.Need(t)
	begin := time.Now()
	c := cluster.ForTest(t, cluster.Options{Controllers: cluster.HPA()})
	t.Logf("cluster: %v", time.Since(begin))
	begin = time.Now()
	k := kedacluster.ForTest(t, c, kedacluster.Options{})
	t.Logf("KEDA: %v", time.Since(begin))
	admin := kubernetes.NewForConfigOrDie(c.Config())
	kubelet, err := cluster.StartKubelet(t.Context(), c.Config(), cluster.KubeletOptions{
		Fleet: cluster.NewFleet(cluster.FleetOptions{}),
	})
	require.NoError(t, err)
	t.Cleanup(kubelet.Stop)

	replicas := func(want int32) func() error {
		return func() error {
			d, err := admin.AppsV1().Deployments("serving").Get(t.Context(), "llm", metav1.GetOptions{})
			if err == nil && (*d.Spec.Replicas != want || d.Status.ReadyReplicas != want) {
				err = fmt.Errorf("%d of %d replicas are ready, not %d", d.Status.ReadyReplicas, *d.Spec.Replicas, want)
			}
			return err
		}
	}
	s, address := startScaler(t, 1)
	require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, manifests, address)))
	for _, step := range []struct {
		name     string
		before   func() error
		replicas int32
	}{
		{name: "one replica", replicas: 1},
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
		eventually(t, step.name, replicas(step.replicas))
		t.Logf("%s: %v and %v, %d calls", step.name, started.Sub(begin), time.Since(started), s.calls.Load()-calls)
	}

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

// eventually polls until check succeeds, for a minute.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { last = check(); return last == nil, nil })
	require.NoError(t, errors.Join(err, last), what)
}
