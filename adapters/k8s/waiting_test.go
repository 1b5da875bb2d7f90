package k8s_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scrape"
)

// made is a pod of an age, whose condition Ready has been as it is since an age.
func made(age, since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		began := metav1.NewTime(start.Add(-age))
		p.CreationTimestamp, p.Status.StartTime = began, &began
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-since))
	}
}

func unschedulable(p *corev1.Pod) {
	phase(corev1.PodPending)(p)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

func waitingFor(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		notReady(p)
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
	}
}

// What kind of missing a pod is: six of eight that no node takes, that crash, or that are overdue blocked every scale-down.
func TestWhatIsMissing(t *testing.T) {
	const minute = time.Minute
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		state scrape.PodState
		stuck bool
	}{
		"booting":                       {pod("a", notReady, made(4*minute, 4*minute)), scrape.NotReady, false},
		"booting for too long":          {pod("a", notReady, made(5*minute, 5*minute)), scrape.NotReady, true},
		"was ready":                     {pod("a", notReady, made(50*minute, minute)), scrape.NotReady, false},
		"of unknown age":                {pod("a", notReady), scrape.NotReady, false},
		"pending":                       {pod("a", phase(corev1.PodPending), notReady, made(minute, minute)), scrape.NotReady, false},
		"no node takes it":              {pod("a", unschedulable), scrape.Unschedulable, false},
		"crashing":                      {pod("a", waitingFor("CrashLoopBackOff"), made(minute, minute)), scrape.Crashing, false},
		"crashing for too long":         {pod("a", waitingFor("ImagePullBackOff"), made(6*minute, 6*minute)), scrape.Crashing, true},
		"crashing, was ready":           {pod("a", waitingFor("CrashLoopBackOff"), made(60*minute, 6*minute)), scrape.Crashing, false},
		"its containers are being made": {pod("a", waitingFor("ContainerCreating"), made(minute, minute)), scrape.NotReady, false},
		"ready":                         {pod("a", made(60*minute, 59*minute)), scrape.Ready, false},
		"failed":                        {pod("a", phase(corev1.PodFailed), made(60*minute, 60*minute)), scrape.Failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			pods, err := k8s.NewPods(lister(t, tt.pod), k8s.Grouping{})
			require.NoError(t, err)
			pods.Now = func() time.Time { return start }
			found, err := pods.Find(scaleOf(t, "app=llama", 1))
			require.NoError(t, err)
			require.Equal(t, tt.state, found[0].State, found[0].Because)
			require.Equal(t, tt.stuck, found[0].Stuck)
		})
	}
}

// A model that takes 20 minutes to load is not given up after five: the deadline is twice what its other pods took.
func TestColdStartsAreLearnt(t *testing.T) {
	const minute = time.Minute
	slow := pod("slow", made(3*60*minute, 2*60*minute+40*minute)) // 20 minutes from its creation to ready
	for age, stuck := range map[time.Duration]bool{39 * minute: false, 40 * minute: true} {
		pods, err := k8s.NewPods(lister(t, slow, pod("new", notReady, made(age, age))), k8s.Grouping{})
		require.NoError(t, err)
		pods.Now = func() time.Time { return start }
		found, err := pods.Find(scaleOf(t, "app=llama", 2))
		require.NoError(t, err)
		require.Equal(t, stuck, found[0].Stuck, age)
	}
}

// It reaches the reading, with replicas that have had no pod for too long, as where a quota is used up.
func TestMissingReachesTheReading(t *testing.T) {
	now := start
	pods, err := k8s.NewPods(lister(t, pod("a", ip("127.0.0.1")), pod("b", unschedulable),
		pod("c", waitingFor("CrashLoopBackOff"), made(time.Hour, time.Hour))), k8s.Grouping{})
	require.NoError(t, err)
	pods.Now = func() time.Time { return now }
	observer := observerOf(t, pods, "0")
	for _, stuck := range []int32{2, 4} { // two have no pod
		seen, err := observer.Observe(t.Context(), []k8s.Scale{scaleOf(t, "app=llama", 5)})
		require.NoError(t, err)
		r := seen.Readings[0]
		require.Equal(t, []int32{1, 4, 1, 1, stuck}, []int32{r.Values, r.NotReady, r.Unschedulable, r.Crashing, r.Stuck}, seen.Err)
		now = now.Add(5 * time.Minute)
	}
}

// observerOf reads pods that all say the same of how many requests wait.
func observerOf(t *testing.T, pods *k8s.Pods, value string) *k8s.PodObserver {
	t.Helper()
	port := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte("# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting " + value + "\n"))
	})
	metric := scrape.Named(waiting)
	metric.Fill = 10
	scraper, err := scrape.New(scrape.Config{Metrics: []scrape.Metric{metric}, AllowLocal: true, Interval: 15 * time.Second})
	require.NoError(t, err)
	observer, err := k8s.NewPodObserver(pods, scraper, k8s.Port{Port: intstr.FromInt32(port)})
	require.NoError(t, err)
	t.Cleanup(observer.Close)
	return observer
}
