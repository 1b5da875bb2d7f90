//go:build linux

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// namespace is that of the test's objects.
const namespace = "serving"

// manifests are a Deployment of two pods, and a service account that may only scale.
const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: serving}
---
# A document of comments only.
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: serving}
spec:
  replicas: 2
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec: {containers: [{name: vllm, image: none}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: scaler, namespace: serving}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: scaler, namespace: serving}
rules:
  - {apiGroups: [apps], resources: [deployments/scale], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: scaler, namespace: serving}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: scaler}
subjects: [{kind: ServiceAccount, name: scaler, namespace: serving}]
`

// A world is a cluster with one Deployment under traffic.
type world struct {
	*cluster.Cluster
	kubelet *cluster.Kubelet
	fleet   *cluster.Fleet
	admin   *kubernetes.Clientset
	scaler  *kubernetes.Clientset
}

func TestCluster(t *testing.T) {
	begin := time.Now()
	w := &world{Cluster: cluster.ForTest(t, cluster.Options{
		Controllers: cluster.HPA(),
		CRDs:        []string{filepath.Join("testdata", "crd.yaml")},
	})}
	t.Logf("started in %v", time.Since(begin))
	require.NoError(t, w.Apply(t.Context(), []byte(manifests)))
	w.admin = kubernetes.NewForConfigOrDie(w.Config())
	account, err := w.ServiceAccount(t.Context(), namespace, "scaler")
	require.NoError(t, err)
	w.scaler = kubernetes.NewForConfigOrDie(account)
	w.fleet = cluster.NewFleet(cluster.FleetOptions{Slots: 4, Service: 100 * time.Millisecond})
	w.kubelet, err = cluster.StartKubelet(t.Context(), w.Config(), cluster.KubeletOptions{
		Fleet: w.fleet, Model: "llama", StartDelay: 100 * time.Millisecond, StopDelay: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(w.kubelet.Stop)

	for _, step := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"pods become ready and serve pages", testPods},
		{"a failing pod", testFailures},
		{"RBAC holds", testRBAC},
		{"a custom resource has /scale", testCustomResource},
		{"a service account scales", testScale},
		{"an API server restarts", testRestart},
		{"the autoscaler of Kubernetes scales", testHPA},
		{"the audit log tells who scaled", testAudit},
	} {
		begin := time.Now()
		if !t.Run(step.name, func(t *testing.T) { step.run(t, w) }) {
			t.FailNow()
		}
		t.Logf("%s: %v", step.name, time.Since(begin))
	}

	processes := w.Processes()
	require.Len(t, processes, 3)
	begin = time.Now()
	w.kubelet.Stop()
	w.Stop()
	t.Logf("stopped in %v", time.Since(begin))
	assert.NoDirExists(t, w.Dir())
	for _, p := range processes {
		assert.ErrorIs(t, syscall.Kill(p.PID, 0), syscall.ESRCH, "%s is still there", p.Name)
	}
}

func testPods(t *testing.T, w *world) {
	t.Helper()
	w.awaitReady(t, 2)
	pods := w.kubelet.Pods()
	require.Len(t, pods, 2)
	assert.NotEqual(t, pods[0].Addr, pods[1].Addr)
	w.fleet.SetRate(160) // 16 in flight, where two pods have 8 slots
	for _, p := range pods {
		assert.True(t, netip.MustParsePrefix("127.8.0.0/13").Contains(p.Addr.Addr()), p.Addr)
		object, err := w.admin.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, p.Addr.Addr().String(), object.Status.PodIP)
		assert.Equal(t, "llm", p.Labels["app"])
		eventually(t, func() error {
			page, err := read(t.Context(), p)
			if err == nil && !strings.Contains(page, `vllm:num_requests_running{engine="0",model_name="llama"} 4`) {
				err = fmt.Errorf("not busy: %s", page)
			}
			return err
		})
	}
	w.fleet.SetRate(0)
}

func testFailures(t *testing.T, w *world) {
	t.Helper()
	pods := w.kubelet.Pods()
	require.NotEmpty(t, pods)
	bad := pods[0].Key()

	require.NoError(t, w.kubelet.Fail(bad, cluster.Status500))
	_, err := read(t.Context(), pods[0])
	require.ErrorContains(t, err, "500")

	require.NoError(t, w.kubelet.Fail(bad, cluster.Garbage))
	page, err := read(t.Context(), pods[0])
	require.NoError(t, err)
	assert.Contains(t, page, "<html>")

	require.NoError(t, w.kubelet.Fail(bad, cluster.Hang))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = read(short, pods[0])
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, w.kubelet.Fail(bad, cluster.Refuse))
	_, err = read(t.Context(), pods[0])
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Equal(t, cluster.Refuse, w.kubelet.Pods()[0].Failure)
	assert.True(t, w.kubelet.Pods()[0].Ready, "it has no readiness probe")

	require.NoError(t, w.kubelet.Fail(bad, cluster.Healthy))
	_, err = read(t.Context(), pods[0])
	require.NoError(t, err)

	w.kubelet.SetReady(bad, false)
	w.awaitReady(t, 1)
	w.kubelet.SetReady(bad, true)
	w.awaitReady(t, 2)
}

func testRBAC(t *testing.T, w *world) {
	t.Helper()
	_, err := w.scaler.AppsV1().Deployments(namespace).Get(t.Context(), "llm", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "the scaler may only scale: %v", err)

	file := filepath.Join(t.TempDir(), "kubeconfig")
	user, err := w.User("somebody", "some-group")
	require.NoError(t, err)
	require.NoError(t, cluster.WriteKubeconfig(file, user))
	for _, config := range []func() (*rest.Config, error){
		func() (*rest.Config, error) { return user, nil },
		func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", file) },
	} {
		config, err := config()
		require.NoError(t, err)
		_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.ErrorContains(t, err, `"somebody"`)
	}
}

func testCustomResource(t *testing.T, w *world) {
	t.Helper()
	const thing = "apiVersion: test.inferscale.io/v1\nkind: Thing\nmetadata: {name: one}\nspec: {replicas: 2}\n"
	require.NoError(t, w.Apply(t.Context(), []byte(thing)))
	var scale autoscalingv1.Scale
	text, err := w.admin.RESTClient().Get().
		AbsPath("/apis/test.inferscale.io/v1/namespaces/default/things/one/scale").DoRaw(t.Context())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &scale))
	assert.EqualValues(t, 2, scale.Spec.Replicas)
}

func testScale(t *testing.T, w *world) {
	t.Helper()
	w.scale(t, 3)
	w.awaitReady(t, 3)
	w.scale(t, 1)
	w.awaitReady(t, 1)
}

func testRestart(t *testing.T, w *world) {
	t.Helper()
	before := w.kubelet.Pods()
	require.NoError(t, w.RestartAPIServer(t.Context()))
	assert.Equal(t, before, w.kubelet.Pods())
	w.scale(t, 2) // with the token of before
	w.awaitReady(t, 2)
	w.scale(t, 1)
	w.awaitReady(t, 1)
}

func testHPA(t *testing.T, w *world) {
	t.Helper()
	w.serveExternalMetric(t, "queue", "3")
	require.NoError(t, w.Apply(t.Context(), []byte(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: serving}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 4
  metrics: [{type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "1"}}}]
`)))
	w.awaitReady(t, 3)
}

func testAudit(t *testing.T, w *world) {
	t.Helper()
	var bodies []string
	eventually(t, func() error {
		scales, err := w.Writes(cluster.ServiceAccountUser(namespace, "scaler"), "deployments", "scale")
		if err == nil && len(scales) < 4 {
			err = fmt.Errorf("%d writes", len(scales))
		}
		bodies = nil
		for _, s := range scales {
			bodies = append(bodies, fmt.Sprint(s.Verb, " ", s.Name, " ", s.Code, " ", replicas(t, s)))
		}
		return err
	})
	assert.Equal(t, []string{"update llm 200 3", "update llm 200 1", "update llm 200 2", "update llm 200 1"}, bodies)

	all, err := w.Writes("", "deployments", "scale")
	require.NoError(t, err)
	require.Len(t, all, 5)
	assert.Equal(t, cluster.ServiceAccountUser("kube-system", "horizontal-pod-autoscaler"), all[4].User)
	assert.EqualValues(t, 3, replicas(t, all[4]))
}

// awaitReady polls until the Deployment has n pods, all ready, and none that leaves.
func (w *world) awaitReady(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() error {
		list, err := w.admin.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=llm"})
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range list.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		deployment, err := w.admin.AppsV1().Deployments(namespace).Get(t.Context(), "llm", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready != n || int(deployment.Status.ReadyReplicas) != n {
			return fmt.Errorf("%d pods of %d are ready, the Deployment counts %s", ready, len(list.Items), counts(deployment))
		}
		return nil
	})
}

// counts are the replicas that a Deployment counts.
func counts(d *appsv1.Deployment) string {
	return fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, d.Status.Replicas)
}

// scale writes the count by /scale, as the service account.
func (w *world) scale(t *testing.T, n int32) {
	t.Helper()
	eventually(t, func() error {
		deployments := w.scaler.AppsV1().Deployments(namespace)
		scale, err := deployments.GetScale(t.Context(), "llm", metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = n
		_, err = deployments.UpdateScale(t.Context(), "llm", scale, metav1.UpdateOptions{})
		return err
	})
}

// replicas is the count that a write to /scale asks for.
func replicas(t *testing.T, w cluster.Write) int32 {
	t.Helper()
	var scale autoscalingv1.Scale
	require.NoError(t, json.Unmarshal(w.Body, &scale))
	return scale.Spec.Replicas
}

// read gets a pod's page.
func read(ctx context.Context, pod cluster.Pod) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, pod.URL(), http.NoBody)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(text), err
}

// eventually polls until check succeeds, for 20 seconds.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { last = check(); return last == nil, nil })
	require.NoError(t, errors.Join(err, last))
}
