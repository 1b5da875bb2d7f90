//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// asProgram in the environment makes this test program the controller.
const asProgram = "INFERSCALE_VARIANTAUTOSCALER"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestAHostileNamespaceTakesNothingOfOthers runs the controller beside a namespace that is full of large pods which change all
// the time, as its Deployment does, and of pods with endless pages: the rounds of another namespace go on, and memory has an
// end. It held when it was written; it would not if pods were kept as they are.
func TestAHostileNamespaceTakesNothingOfOthers(t *testing.T) {
	const large, loud = 300, 60
	w := newStage(t, 0)
	w.setKV(0.5)
	_, err := w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flood"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	role, err := os.ReadFile("deploy/sample/role.yaml")
	require.NoError(t, err)
	require.NoError(t, w.Apply(t.Context(), []byte(strings.ReplaceAll(string(role), "namespace: serving", "namespace: flood"))))
	require.NoError(t, w.Apply(t.Context(), []byte(flooding)))
	port := endless(t)
	pods := w.admin.CoreV1().Pods("flood")
	var made sync.WaitGroup
	turns := make(chan struct{}, 8) // all at once, etcd may time out
	for i := range large + loud {
		turns <- struct{}{}
		made.Go(func() {
			defer func() { <-turns }()
			p := floodPod(i, port)
			if i < large {
				p.Annotations = map[string]string{"full": strings.Repeat("x", 250<<10)}
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "FULL", Value: strings.Repeat("y", 700<<10)}}
			}
			p, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
			if err == nil && i >= large {
				p.Status = corev1.PodStatus{
					Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
					Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				}
				_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
			}
			assert.NoError(t, err)
		})
	}
	made.Wait()
	metrics := cluster.FreeAddress(t)
	w.configure(t, w.sample+flood)
	program := w.startProgram(t, "hostile", "-metrics-address", metrics, "-leader-elect=false")
	rounds := func(namespace string) int {
		select {
		case <-program.Done():
			require.Fail(t, "the program has ended", program.Process().LogTail(20))
		default:
		}
		count := regexp.MustCompile(`inferscale_loop_duration_seconds_count\{[^}]*namespace="` + namespace + `"[^}]*\} (\d+)`)
		if found := count.FindStringSubmatch(get(t, "http://"+metrics+"/metrics")); found != nil {
			n, err := strconv.Atoi(found[1])
			require.NoError(t, err)
			return n
		}
		return 0
	}
	require.NoError(t, program.Ready(t.Context(), func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", metrics)
		if err == nil {
			err = c.Close()
		}
		return err
	}))
	eventually(t, "first rounds", func() bool { return rounds(serving) > 0 && rounds("flood") > 0 })
	began, first := time.Now(), rounds(serving)
	ctx, stop := context.WithCancel(t.Context())
	var floods sync.WaitGroup
	for k := range 3 {
		floods.Go(func() {
			for i := k; ctx.Err() == nil; i += 3 {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i)
				_, _ = pods.Patch(ctx, fmt.Sprint("flood-", i%large), types.MergePatchType, patch, metav1.PatchOptions{})
				_, _ = w.admin.AppsV1().Deployments("flood").Patch(ctx, "flood", types.MergePatchType, patch, metav1.PatchOptions{})
			}
		})
	}
	eventually(t, "ten rounds of the other namespace", func() bool { return rounds(serving) >= first+10 })
	took := time.Since(began)
	stop()
	floods.Wait()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", program.Process().PID))
	require.NoError(t, err)
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(status))
	require.NotNil(t, peak)
	kilobytes, err := strconv.Atoi(peak[1])
	require.NoError(t, err)
	t.Logf("ten rounds took %v, %d of the other; at most %d MiB", took, rounds("flood"), kilobytes>>10)
	require.Less(t, took, 30*time.Second, "each is due a second after the one before")
	require.Less(t, kilobytes, 200<<10, "the limit is 256 MiB")
}

// floodPod is a pod of the Deployment flood, by its labels.
func floodPod(i int, port int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("flood-", i), Labels: map[string]string{"app": "flood"}},
		Spec: corev1.PodSpec{NodeName: "inferscale", Containers: []corev1.Container{{
			Name: "c", Image: "c", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
		}}},
	}
}

// startProgram starts the controller as a process of its own; it ends with the test at the latest.
func (w *stage) startProgram(t *testing.T, name string, args ...string) *cluster.Program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := w.StartProgram(name, self, append(os.Environ(), asProgram+"=1"), append([]string{
		"-kubeconfig", w.kubeconfig, "-namespace", system, "-allow-local", "-probe-address", "0", "-identity", name,
		"-lease-duration", "3s", "-renew-deadline", "2s", "-retry-period", "200ms",
	}, args...)...)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

// TestKilledLeadersMakeNoStepTwice kills the leader of two at random moments before, at and after its write of replicas: the
// other takes over, and while the new pod loads it writes no more, though what the others say still asks for another one.
func TestKilledLeadersMakeNoStepTwice(t *testing.T) {
	const kills = 2 // more were tried by hand
	w := newStage(t, 8*time.Second)
	w.setKV(0.65)
	w.configure(t, strings.Replace(w.sample, "dryRun: true", "dryRun: false", 1))
	programs := map[string]*cluster.Program{}
	start := func(i int) {
		name := fmt.Sprint("copy-", i)
		programs[name] = w.startProgram(t, name, "-metrics-address", "0", "-v")
	}
	start(0)
	start(1)
	for i := range kills {
		eventually(t, "a leader", func() bool { return programs[w.leader(t)] != nil })
		leader, before := w.leader(t), sum(w.replicas(t))
		w.setKV(0.78)
		random := time.NewTimer(time.Duration(rand.Int64N(int64(1500 * time.Millisecond))))
		if i%2 == 0 {
			require.Eventually(t, func() bool { return sum(w.replicas(t)) > before }, time.Minute, 2*time.Millisecond, "it writes")
			random.Reset(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
		}
		<-random.C
		process, err := os.FindProcess(programs[leader].Process().PID)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
		<-programs[leader].Done()
		delete(programs, leader)
		start(2 + i)
		eventually(t, "another one leads", func() bool { return programs[w.leader(t)] != nil })
		eventually(t, "the step is made", func() bool { return sum(w.replicas(t)) > before })
		next := programs[w.leader(t)].Process()
		eventually(t, "it has decided twice on both", func() bool { return strings.Count(next.LogTail(1000), `"msg":"decided"`) >= 4 })
		require.Less(t, ready(w.kubelet.Pods()), int(before)+1, "the new pod was to load for longer than this took")
		require.Equal(t, before+1, sum(w.replicas(t)), "kill %d of %s", i, leader)
		w.setKV(0.65)
		eventually(t, "its pod is ready", func() bool { return ready(w.kubelet.Pods()) == int(sum(w.replicas(t))) })
	}
}

func sum(counts []int32) (n int32) {
	for _, c := range counts {
		n += c
	}
	return n
}

const flooding = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: flood, namespace: flood}
spec:
  replicas: 0
  selector: {matchLabels: {app: flood}}
  template:
    metadata: {labels: {app: flood}}
    spec: {containers: [{name: c, image: c}]}
`

const flood = `  - name: flood
    namespace: flood
    algorithm: saturation
    interval: 1s
    variants:
      - {target: {apiVersion: apps/v1, kind: Deployment, name: flood}, cost: 1, min: 1, max: 4, port: http}
`

// endless serves pages of series that no page had before, and returns the port.
func endless(t *testing.T) int32 {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		kind, first, sent := asked.Add(1)%4, rand.Int64N(1<<40), 0
		_, _ = io.WriteString(w, "# TYPE vllm:num_requests_waiting gauge\n")
		var chunk []byte
		for i := int64(0); ; {
			for chunk = chunk[:0]; len(chunk) < 1<<15; i++ {
				switch kind {
				case 0:
					chunk = append(chunk, "a 1\n"...)
				case 1:
					chunk = fmt.Appendf(chunk, "b%d 1\n", first+i)
				default:
					chunk = fmt.Appendf(chunk, "vllm:num_requests_waiting{a=\"%d\"} 1\n", first+i)
				}
			}
			if _, err := w.Write(chunk); err != nil {
				return
			}
			if sent += len(chunk); sent > 2<<20 && kind == 3 || sent > 16<<20-1<<17 && kind < 2 {
				if kind == 3 {
					<-r.Context().Done()
				}
				return
			}
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.ParseInt(port, 10, 32)
	require.NoError(t, err)
	return int32(number)
}
