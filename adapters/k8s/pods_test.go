package k8s_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scrape"
)

// pod is a pod that is ready, but for what the changes say.
func pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "llama"}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "server"}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar", Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: 15000}}},
			{Name: "server", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8000}, {Name: "metrics", ContainerPort: 9400}}},
		}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func notReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} }

func restarted(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = n }
}

func ip(ip string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.PodIP = ip } }

func worker(set, index, size string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		const prefix = "leaderworkerset.sigs.k8s.io/"
		p.Labels = map[string]string{prefix + "name": set, prefix + "group-index": "0", prefix + "worker-index": index}
		p.Annotations = map[string]string{prefix + "size": size}
	}
}

func lister(t *testing.T, pods ...*corev1.Pod) corelisters.PodLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, p := range pods {
		require.NoError(t, indexer.Add(p))
	}
	return corelisters.NewPodLister(indexer)
}

func scaleOf(t *testing.T, selector string, replicas int32) k8s.Scale {
	t.Helper()
	s, err := labels.Parse(selector)
	require.NoError(t, err)
	return k8s.Scale{Target: target, Replicas: replicas, Selector: s, ResourceVersion: "1"}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name    string
		pod     *corev1.Pod
		state   scrape.PodState
		because string
	}{
		{"ready", pod("a"), scrape.Ready, ""},
		{"restarted and ready", pod("a", restarted(3)), scrape.Ready, ""},
		{"booting", pod("a", notReady), scrape.NotReady, "condition Ready is not True"},
		{"no conditions", pod("a", func(p *corev1.Pod) { p.Status.Conditions = nil }), scrape.NotReady, "condition Ready is not True"},
		{"pending", pod("a", phase(corev1.PodPending), notReady), scrape.NotReady, "phase Pending"},
		{"pending, says ready", pod("a", phase(corev1.PodPending)), scrape.NotReady, "phase Pending"},
		{"node lost", pod("a", phase(corev1.PodUnknown)), scrape.NotReady, "phase Unknown"},
		{"just created", pod("a", phase("")), scrape.NotReady, "phase is not known yet"},
		{"no address", pod("a", ip("")), scrape.NotReady, "no IP address yet"},
		{"terminating", pod("a", deleted), scrape.Terminating, "terminating"},
		{"terminating, not ready", pod("a", deleted, notReady), scrape.Terminating, "terminating"},
		{"failed", pod("a", phase(corev1.PodFailed)), scrape.Failed, "failed"},
		{"failed, terminating", pod("a", phase(corev1.PodFailed), deleted), scrape.Failed, "failed"},
		{"completed", pod("a", phase(corev1.PodSucceeded)), scrape.Completed, "completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, because := k8s.Classify(c.pod)
			require.Equal(t, c.state, state)
			require.Equal(t, c.because, because)
		})
	}
}

// Three pods without UIDs are three, and each has its own count of restarts.
func TestPodsWithoutUIDsStayApart(t *testing.T) {
	port := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintln(w, "vllm:num_requests_waiting 4")
	})
	unnamed := func(p *corev1.Pod) { p.UID = "" }
	o := podObserver(t, scrape.Config{}, port,
		pod("a", unnamed, ip("127.0.0.1")), pod("b", unnamed, ip("127.0.0.1"), restarted(2)), pod("c", unnamed, ip("127.0.0.1")))
	for range 2 {
		seen, err := o.Observe(t.Context(), []k8s.Scale{scaleOf(t, "app=llama", 3)})
		require.NoError(t, err)
		require.EqualValues(t, 3, seen.Readings[0].Values)
		require.Zero(t, seen.Fleets[0].Restarted)
	}
}

func TestPodsFind(t *testing.T) {
	other := pod("other", func(p *corev1.Pod) { p.Labels["app"] = "other" })
	elsewhere := pod("elsewhere", func(p *corev1.Pod) { p.Namespace = "elsewhere" })
	a := pod("a")
	pods, err := k8s.NewPods(lister(t, pod("b", notReady), a, other, elsewhere, pod("c", deleted)), k8s.Grouping{})
	require.NoError(t, err)

	replicas, err := pods.Find(scaleOf(t, "app=llama", 2))
	require.NoError(t, err)
	require.Len(t, replicas, 3)
	require.Equal(t, []string{"a", "b", "c"}, []string{replicas[0].Name, replicas[1].Name, replicas[2].Name})
	require.False(t, replicas[2].Counts())

	restarted(1)(a)
	replicas, err = pods.Find(scaleOf(t, "app=llama", 2))
	require.NoError(t, err)
	require.True(t, replicas[0].Restarted)
	replicas, err = pods.Find(scaleOf(t, "app=llama", 2))
	require.NoError(t, err)
	require.False(t, replicas[0].Restarted, "told once")

	for _, s := range []k8s.Scale{{Target: target}, {Target: target, Selector: labels.Everything()}} {
		_, err = pods.Find(s)
		require.ErrorIs(t, err, k8s.ErrNoSelector)
	}
}

func TestPodsFindGroups(t *testing.T) {
	const leaders = "leaderworkerset.sigs.k8s.io/name=big,leaderworkerset.sigs.k8s.io/worker-index=0"
	for _, c := range []struct {
		name    string
		pods    []*corev1.Pod
		state   scrape.PodState
		because string
	}{
		{"all ready", []*corev1.Pod{pod("big-0", worker("big", "0", "2")), pod("big-0-1", worker("big", "1", "2"))}, scrape.Ready, ""},
		{"worker boots", []*corev1.Pod{pod("big-0", worker("big", "0", "2")), pod("big-0-1", worker("big", "1", "2"), notReady)}, scrape.NotReady, "pod big-0-1 of its group: condition Ready is not True"},
		{"worker leaves", []*corev1.Pod{pod("big-0", worker("big", "0", "2")), pod("big-0-1", worker("big", "1", "2"), deleted)}, scrape.NotReady, "pod big-0-1 of its group: terminating"},
		{"worker not created", []*corev1.Pod{pod("big-0", worker("big", "0", "2"))}, scrape.NotReady, "1 of 2 pods of its group are there"},
		{"leader boots", []*corev1.Pod{pod("big-0", worker("big", "0", "2"), notReady), pod("big-0-1", worker("big", "1", "2"))}, scrape.NotReady, "condition Ready is not True"},
		{"leader leaves", []*corev1.Pod{pod("big-0", worker("big", "0", "2"), deleted), pod("big-0-1", worker("big", "1", "2"))}, scrape.Terminating, "terminating"},
		{"size from the option", []*corev1.Pod{pod("big-0", worker("big", "0", ""))}, scrape.NotReady, "1 of 4 pods of its group are there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			grouping := k8s.LeaderWorkerSet()
			grouping.Size = 4
			alien := pod("alien-0", worker("alien", "0", "1"))
			pods, err := k8s.NewPods(lister(t, append(c.pods, alien)...), grouping)
			require.NoError(t, err)
			replicas, err := pods.Find(scaleOf(t, leaders, 1))
			require.NoError(t, err)
			require.Len(t, replicas, 1)
			require.Equal(t, "big-0", replicas[0].Name)
			require.Equal(t, c.state, replicas[0].State)
			require.Equal(t, c.because, replicas[0].Because)
			require.Len(t, replicas[0].Pods, len(c.pods))
		})
	}
	require.Error(t, k8s.Grouping{Size: 2}.Validate("grouping"))
}

// TestPodsFindKaitoWorkspaces: the selector of an InferenceSet selects the pods of all its Workspaces, of which each is a
// replica, however many nodes it has.
func TestPodsFindKaitoWorkspaces(t *testing.T) {
	of := func(workspace, index string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels = map[string]string{"inferenceset.kaito.sh/created-by": "phi", "kaito.sh/workspace": workspace}
			if index != "" {
				p.Labels["apps.kubernetes.io/pod-index"] = index
			}
		}
	}
	pods, err := k8s.NewPods(lister(
		t,
		pod("phi-a-1", of("phi-a", "1")), pod("phi-a-0", of("phi-a", "0")),
		pod("phi-b-0", of("phi-b", "0")), pod("phi-b-1", of("phi-b", "1"), notReady),
		pod("phi-c-x7x7x", of("phi-c", "")), // of a Deployment, as there were
		pod("phi-d-1", of("phi-d", "1")),
		pod("other-0", func(p *corev1.Pod) { p.Labels = map[string]string{"kaito.sh/workspace": "other"} }),
	), k8s.KaitoWorkspace())
	require.NoError(t, err)
	replicas, err := pods.Find(scaleOf(t, "inferenceset.kaito.sh/created-by=phi", 4))
	require.NoError(t, err)
	require.Len(t, replicas, 4)
	for i, want := range []struct {
		leader, because string
		pods            int
	}{
		{"phi-a-0", "", 2}, {"phi-b-0", "pod phi-b-1 of its group: condition Ready is not True", 2}, {"phi-c-x7x7x", "", 1}, {"phi-d-1", "its leader is not there", 1},
	} {
		require.Equal(t, want.leader, replicas[i].Leader().Name)
		require.Equal(t, want.because, replicas[i].Because)
		require.Len(t, replicas[i].Pods, want.pods)
	}
	require.NoError(t, k8s.KaitoWorkspace().Validate("grouping"))
}

func TestScrapeTarget(t *testing.T) {
	find := func(p *corev1.Pod) *k8s.Replica {
		pods, err := k8s.NewPods(lister(t, p), k8s.Grouping{})
		require.NoError(t, err)
		replicas, err := pods.Find(scaleOf(t, "app=llama", 1))
		require.NoError(t, err)
		return &replicas[0]
	}
	hostNetwork := func(p *corev1.Pod) {
		p.Spec.HostNetwork = true
		p.Spec.Containers[1].Ports[1].ContainerPort = 31400
		p.Spec.Containers[1].Ports[1].HostPort = 31400
	}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		port k8s.Port
		want scrape.Pod
	}{
		{"as the metrics say", pod("a"), k8s.Port{}, scrape.Pod{Host: "10.0.0.1"}},
		{"number", pod("a"), k8s.Port{Port: intstr.FromInt32(8000)}, scrape.Pod{URL: "http://10.0.0.1:8000"}},
		{"name", pod("a"), k8s.Port{Port: intstr.FromString("metrics"), Scheme: "https"}, scrape.Pod{URL: "https://10.0.0.1:9400"}},
		{"name on the host's network", pod("a", hostNetwork), k8s.Port{Port: intstr.FromString("metrics")}, scrape.Pod{URL: "http://10.0.0.1:31400"}},
		{"IPv6", pod("a", ip("fd00::1")), k8s.Port{Port: intstr.FromInt32(8000)}, scrape.Pod{URL: "http://[fd00::1]:8000"}},
		{"IPv6 as the metrics say", pod("a", ip("fd00::1")), k8s.Port{}, scrape.Pod{Host: "fd00::1"}},
		{"no such name", pod("a"), k8s.Port{Port: intstr.FromString("prom")}, scrape.Pod{}},
		{"not ready", pod("a", notReady), k8s.Port{Port: intstr.FromInt32(8000)}, scrape.Pod{State: scrape.NotReady}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Name, c.want.UID = "a", "uid-a/0"
			require.Equal(t, c.want, c.port.ScrapeTarget(find(c.pod)))
		})
	}
	require.Equal(t, "uid-a/2", k8s.Port{}.ScrapeTarget(find(pod("a", restarted(2)))).UID, "a restart is another identity")
	require.Error(t, k8s.Port{Scheme: "ftp", Port: intstr.FromInt32(70000)}.Validate("port"))
}

// server is a pod's page on a loopback address.
func server(t *testing.T, handler http.HandlerFunc) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func podObserver(t *testing.T, config scrape.Config, port int32, pods ...*corev1.Pod) *k8s.PodObserver {
	t.Helper()
	config.AllowLocal = true
	scraper, err := scrape.New(config)
	require.NoError(t, err)
	found, err := k8s.NewPods(lister(t, pods...), k8s.Grouping{})
	require.NoError(t, err)
	o, err := k8s.NewPodObserver(found, scraper, k8s.Port{Port: intstr.FromInt32(port)})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o
}

func TestPodObserver(t *testing.T) {
	port := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		n := 12
		if strings.HasPrefix(r.Host, "127.0.0.2") {
			n = 4
		}
		_, _ = fmt.Fprintf(w, "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting %d\n", n)
	})
	metric := scrape.Named(waiting)
	metric.Fill = 10
	o := podObserver(t, scrape.Config{Metrics: []scrape.Metric{metric}}, port,
		pod("a", ip("127.0.0.1")), pod("b", notReady), pod("c", deleted))
	seen, err := o.Observe(context.Background(), []k8s.Scale{scaleOf(t, "app=llama", 3)})
	require.NoError(t, err)
	require.Len(t, seen.Fleets, 1)
	view := seen.Fleets[0]
	require.EqualValues(t, 1, view.Ready)
	require.EqualValues(t, 1, view.NotReady)
	require.EqualValues(t, 1, view.Absent, "three were asked for")
	require.EqualValues(t, 1, view.Leaving)
	require.InDelta(t, 4, seen.Readings[0].Lower, 1e-9)
	require.InDelta(t, 32.0/3, seen.Readings[0].Upper, 1e-9)
	require.Empty(t, seen.Failures)

	// Nobody there is no error but nothing known.
	seen, err = podObserver(t, scrape.Config{Metrics: []scrape.Metric{metric}}, port).Observe(context.Background(), []k8s.Scale{scaleOf(t, "app=llama", 0)})
	require.NoError(t, err)
	require.False(t, seen.Readings[0].Known())
	require.ErrorIs(t, seen.Err, scrape.ErrNoPods)

	// One pod cannot be two targets'.
	other := scaleOf(t, "app=llama", 1)
	other.Target.Name = "other"
	_, err = o.Observe(context.Background(), []k8s.Scale{scaleOf(t, "app=llama", 1), other})
	require.ErrorContains(t, err, "selects pod a too")

	// A round that was cut short says nothing.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = o.Observe(ctx, []k8s.Scale{scaleOf(t, "app=llama", 1)})
	require.ErrorIs(t, err, context.Canceled)
}

func TestPodObserverFailures(t *testing.T) {
	port := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	o := podObserver(t, scrape.Config{}, port, pod("a", ip("127.0.0.1")), pod("b", ip("127.0.0.1")))
	seen, err := o.Observe(context.Background(), []k8s.Scale{scaleOf(t, "app=llama", 2)})
	require.NoError(t, err)
	require.Error(t, seen.Err)
	require.Equal(t, map[scrape.Reason]int{scrape.Status: 2}, seen.Failures)
}
