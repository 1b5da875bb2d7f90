package pods_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/examples/internal/pods"
)

const ns = "models"

// TestPropTrim finds the same replicas and the same targets in pods that were trimmed as in those that were not.
func TestPropTrim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, trimmed := index(), index()
		n := rapid.IntRange(0, 6).Draw(t, "pods")
		for i := range n {
			p := drawPod(t, i)
			small, err := pods.Trim(p.DeepCopy())
			require.NoError(t, err)
			require.NoError(t, whole.Add(p))
			require.NoError(t, trimmed.Add(small))
		}
		grouping := rapid.SampledFrom([]k8s.Grouping{{}, k8s.LeaderWorkerSet()}).Draw(t, "grouping")
		port := k8s.Port{Port: rapid.SampledFrom([]intstr.IntOrString{intstr.FromString("metrics"), intstr.FromInt32(8000), {}}).Draw(t, "port")}
		see := func(kept toolscache.Indexer) []any {
			finder, err := k8s.NewPods(corelisters.NewPodLister(kept), grouping)
			require.NoError(t, err)
			replicas, err := finder.Find(k8s.Scale{Target: k8s.Target{Namespace: ns, Name: "chat"}, Selector: labels.SelectorFromSet(labels.Set{"app": "chat"})})
			require.NoError(t, err)
			var seen []any
			for i := range replicas {
				seen = append(seen, replicas[i].Name, replicas[i].State, replicas[i].Because, replicas[i].Restarts, len(replicas[i].Pods), port.ScrapeTarget(&replicas[i]))
			}
			return seen
		}
		require.Equal(t, see(whole), see(trimmed))
	})
}

// TestAPodThatIsFullTakesLittleMemory: pods of 1.5 MB each, of labels, annotations of groups, and containers with named ports.
func TestAPodThatIsFullTakesLittleMemory(t *testing.T) {
	full := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a", Labels: map[string]string{}, Annotations: map[string]string{
		"leaderworkerset.sigs.k8s.io/size": strings.Repeat("1", 100<<10), "leaderworkerset.sigs.k8s.io/other": strings.Repeat("x", 100<<10),
	}}}
	for i := range 4000 {
		full.Labels[fmt.Sprintf("%0250d", i)] = strings.Repeat("v", 63)
		c := corev1.Container{Name: fmt.Sprint("c", i), Ports: []corev1.ContainerPort{{Name: fmt.Sprint("p", i), ContainerPort: 80}}}
		full.Spec.Containers, full.Spec.InitContainers = append(full.Spec.Containers, c), append(full.Spec.InitContainers, c)
	}
	small, err := pods.Trim(full)
	require.NoError(t, err)
	text, err := json.Marshal(small)
	require.NoError(t, err)
	require.Less(t, len(text), 8<<10)
	require.Len(t, small.(*corev1.Pod).Spec.Containers, 64)

	several := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	for i := range 40 {
		several.Labels[fmt.Sprintf("%0250d", i)] = strings.Repeat("v", 63)
	}
	small, err = pods.Trim(several)
	require.NoError(t, err)
	require.Equal(t, several.Labels, small.(*corev1.Pod).Labels, "no pod that is not made for it has more")
}

func index() toolscache.Indexer {
	return toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
}

func drawPod(t *rapid.T, i int) *corev1.Pod {
	name := string(rune('a' + i))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: name, UID: types.UID("u" + name),
			Labels:      map[string]string{"app": rapid.SampledFrom([]string{"chat", "chat", "other"}).Draw(t, "app")},
			Annotations: map[string]string{"big": "much"},
		},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "a", Env: []corev1.EnvVar{{Name: "X"}}}, {Name: "b"}},
			InitContainers: []corev1.Container{{Name: "s"}},
		},
		Status: corev1.PodStatus{
			Phase: rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded, ""}).Draw(t, "phase"),
			PodIP: rapid.SampledFrom([]string{"10.0.0.1", "fd00::1", ""}).Draw(t, "ip"),
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "ready")},
			},
			ContainerStatuses:     []corev1.ContainerStatus{{RestartCount: rapid.Int32Range(0, 3).Draw(t, "restarts")}, {RestartCount: 1}},
			InitContainerStatuses: []corev1.ContainerStatus{{RestartCount: rapid.Int32Range(0, 3).Draw(t, "init restarts")}},
		},
	}
	for _, containers := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range containers {
			if rapid.Bool().Draw(t, "has port") {
				containers[i].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {Name: rapid.SampledFrom([]string{"metrics", "web"}).Draw(t, "port name"), ContainerPort: rapid.Int32Range(1, 9).Draw(t, "number")}}
			}
		}
	}
	if rapid.Bool().Draw(t, "leaves") {
		now := metav1.Unix(1, 0)
		p.DeletionTimestamp = &now
	}
	if rapid.Bool().Draw(t, "in a group") {
		const prefix = "leaderworkerset.sigs.k8s.io/"
		p.Labels[prefix+"name"] = "chat"
		p.Labels[prefix+"group-index"] = rapid.SampledFrom([]string{"0", "1"}).Draw(t, "group")
		p.Labels[prefix+"worker-index"] = rapid.SampledFrom([]string{"0", "1"}).Draw(t, "worker")
		p.Annotations[prefix+"size"] = "2"
	}
	return p
}

// TestLister reads pods of a cache as an informer's lister does.
func TestLister(t *testing.T) {
	pod := func(namespace, name, app string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
	}
	lister := pods.Lister(fake.NewClientBuilder().WithObjects(pod("a", "1", "x"), pod("a", "2", "y"), pod("b", "3", "x")).Build())
	found, err := lister.Pods("a").List(labels.SelectorFromSet(labels.Set{"app": "x"}))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "1", found[0].Name)
	found, err = lister.List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, found, 3)
	one, err := lister.Pods("b").Get("3")
	require.NoError(t, err)
	require.Equal(t, "3", one.Name)
	same, err := pods.Trim(toolscache.DeletedFinalStateUnknown{Key: "a/1"})
	require.NoError(t, err)
	require.Equal(t, toolscache.DeletedFinalStateUnknown{Key: "a/1"}, same)
}
