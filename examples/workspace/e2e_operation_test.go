package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// Kubernetes' own autoscaler works on a workspace, and is refused where everybody is.
func (i *installation) testHPA(t *testing.T) {
	autoscale := func(name string) {
		least := int32(3)
		h := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind, Name: name,
			},
			MinReplicas: &least, MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ExternalMetricSourceType,
				External: &autoscalingv2.ExternalMetricSource{
					Metric: autoscalingv2.MetricIdentifier{Name: "waiting-requests"},
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity("10")},
				},
			}},
		}}
		h.Name, h.Namespace = name, "default"
		require.NoError(t, i.api.Create(t.Context(), h))
	}
	autoscale("scaled")
	i.serving(t, "scaled", 3, 3)

	autoscale("pinned")
	eventually(t, func() error {
		var h autoscalingv2.HorizontalPodAutoscaler
		if err := i.api.Get(t.Context(), named("pinned"), &h); err != nil {
			return err
		}
		for _, c := range h.Status.Conditions {
			if c.Type == autoscalingv2.AbleToScale && c.Reason == "FailedUpdateScale" {
				assert.Contains(t, c.Message, "preferredNodes")
				return nil
			}
		}
		return io.ErrNoProgress
	})
	i.serving(t, "pinned", 1, 1)
	for _, name := range []string{"scaled", "pinned"} {
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		h.Name, h.Namespace = name, "default"
		require.NoError(t, i.api.Delete(t.Context(), h))
	}
}

// The API server takes every manifest, the program's Deployment under the restricted pod security of its namespace.
func (i *installation) testDryRun(t *testing.T) {
	i.warnings.take()
	files := []string{"deploy/base/deployment.yaml", "deploy/samples/preset.yaml", "deploy/samples/template.yaml", "deploy/samples/preferred-nodes.yaml", "deploy/samples/hpa.yaml"}
	for _, file := range files {
		for _, u := range objects(t, file) {
			if u.GetNamespace() == "" {
				u.SetNamespace("default")
			}
			u.SetName("sample-" + u.GetName()) // the tests' own have the short names
			require.NoError(t, i.api.Create(t.Context(), &u, client.DryRunAll), file)
		}
	}
	assert.Empty(t, i.warnings.take(), "pod security warns of a Deployment whose pods it would refuse")
	template := only[appsv1.Deployment](t, "Deployment", "workspace-controller").Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = "controller", "workspace-system"
	require.NoError(t, i.api.Create(t.Context(), pod, client.DryRunAll), "and refuses such pods")
}

// /metrics is for those who may get it.
func (i *installation) testMetrics(t *testing.T) {
	fetch := func(token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+i.metrics+"/metrics", http.NoBody)
		require.NoError(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := insecure().Do(request)
		require.NoError(t, err)
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	assert.Equal(t, http.StatusUnauthorized, fetch(""))
	require.NoError(t, i.Apply(t.Context(), []byte(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: default}
`)))
	account, err := i.ServiceAccount(t.Context(), "default", "prometheus")
	require.NoError(t, err)
	assert.Equal(t, http.StatusForbidden, fetch(account.BearerToken))
	require.NoError(t, i.Apply(t.Context(), []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: workspace-controller-metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]
`)))
	account, err = i.ServiceAccount(t.Context(), "default", "prometheus") // the refusal of the first one is remembered
	require.NoError(t, err)
	eventually(t, func() error {
		if code := fetch(account.BearerToken); code != http.StatusOK {
			return io.ErrNoProgress
		}
		return nil
	})
}

// Many writers at once, each on the version that it read: no write is lost, and what is left is what counts.
func (i *installation) testStorm(t *testing.T) {
	var writers sync.WaitGroup
	for writer := range int32(4) {
		writers.Go(func() {
			for n := range int32(15) {
				s, err := i.scales.Scales("default").Get(t.Context(), workspaces(), "scaled", getOptions())
				if !assert.NoError(t, err) {
					return
				}
				s.Spec.Replicas = (writer + n) % 6
				_, err = i.scales.Scales("default").Update(t.Context(), workspaces(), s, metav1.UpdateOptions{})
				assert.True(t, err == nil || apierrors.IsConflict(err), "%v", err)
			}
		})
	}
	writers.Wait()
	n := i.scaleOf(t, "scaled").Spec.Replicas
	i.serving(t, "scaled", n, n)
	require.NoError(t, i.scaleTo(t.Context(), "scaled", 3))
}

// The API server goes away and comes back: the program goes on.
func (i *installation) testOutage(t *testing.T) {
	require.NoError(t, i.scaleTo(t.Context(), "scaled", 1))
	i.serving(t, "scaled", 1, 1)
	require.NoError(t, i.RestartAPIServer(t.Context()))
	eventually(t, func() error { return i.scaleTo(t.Context(), "scaled", 3) })
	i.serving(t, "scaled", 3, 3)
}

// Nothing changes: nothing is written.
func (i *installation) testQuiet(t *testing.T) {
	i.serving(t, "scaled", 3, 3)
	count := func() int {
		n := 0
		for _, kind := range []string{v1alpha1.Resource, "deployments"} {
			writes, err := i.Writes(cluster.ServiceAccountUser("workspace-system", "workspace-controller"), kind, "*")
			require.NoError(t, err)
			n += len(writes)
		}
		return n
	}
	// What the storm before made the controller write comes to its end first.
	before, since := -1, time.Time{}
	eventually(t, func() error {
		if n := count(); n != before {
			before, since = n, time.Now()
		}
		if still := time.Since(since); still < time.Second {
			return fmt.Errorf("%d writes, the last within %s", before, still)
		}
		return nil
	})
	assert.Positive(t, before)
	// An annotation that means nothing makes the controller look.
	w, err := i.get(t.Context(), "scaled")
	require.NoError(t, err)
	w.Annotations["team/note"] = "hello"
	require.NoError(t, i.api.Update(t.Context(), w))
	require.Never(t, func() bool { return count() != before }, 2*time.Second, 200*time.Millisecond)
}

// Told to stop, the program ends well and gives the lease back; meanwhile nothing scales; started again, it goes on.
func (i *installation) testRestart(t *testing.T) {
	require.NoError(t, i.program.Process.Signal(syscall.SIGTERM))
	require.NoError(t, i.program.Wait(), "exit code 0")
	err := i.scaleTo(t.Context(), "scaled", 1)
	require.ErrorContains(t, err, "failed calling webhook", "no webhook, no scaling")
	i.serving(t, "scaled", 3, 3)

	started := time.Now()
	i.start()
	require.NoError(t, i.scaleTo(t.Context(), "scaled", 2))
	i.serving(t, "scaled", 2, 2)
	assert.Less(t, time.Since(started), 14*time.Second, "the lease was given back: nobody waits for its end")
}

// The program's roles are enough, and it writes nothing but this. A new API server refuses everything for a moment, so
// this comes before the outage.
func (i *installation) testAudit(t *testing.T) {
	writes, err := i.Writes(cluster.ServiceAccountUser("workspace-system", "workspace-controller"), "", "*")
	require.NoError(t, err)
	seen := map[string]int{}
	for _, w := range writes {
		what := w.Verb + " " + w.Resource
		if w.Subresource != "" {
			what += "/" + w.Subresource
		}
		seen[what]++
		assert.NotEqual(t, http.StatusForbidden, w.Code, what)
	}
	for what := range seen {
		assert.Contains(t, []string{
			"update workspaces/status", "patch workspaces/status", "patch deployments", "create leases", "update leases",
			"create tokenreviews", "create subjectaccessreviews",
		}, what)
	}
	t.Log(seen)
}

// Deleting a workspace deletes its Deployment and its pods.
func (i *installation) testDelete(t *testing.T) {
	require.NoError(t, i.api.Delete(t.Context(), workspace("created", 0)))
	eventually(t, func() error {
		var pods corev1.PodList
		err := i.api.List(t.Context(), &pods, client.MatchingLabels{v1alpha1.NameLabel: "created"})
		if err == nil && len(pods.Items) > 0 {
			err = io.ErrNoProgress
		}
		return err
	})
	assert.True(t, apierrors.IsNotFound(i.api.Get(t.Context(), named("created"), &appsv1.Deployment{})))
}
