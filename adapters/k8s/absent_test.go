package k8s_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scrape"
)

// TestRegressionAbsentReplicasOfTwoKinds: a Deployment and a StatefulSet of one name are two targets. What both lacked counted once.
func TestRegressionAbsentReplicasOfTwoKinds(t *testing.T) {
	pods, err := k8s.NewPods(lister(t, pod("a", ip("127.0.0.1"))), k8s.Grouping{})
	require.NoError(t, err)
	pods.Now = func() time.Time { return start }
	observer := observerOf(t, pods, "9")

	one, two := scaleOf(t, "app=llama", 4), scaleOf(t, "app=other", 3)
	two.Target.Kind = "StatefulSet"
	require.Equal(t, one.Target.Name, two.Target.Name)
	seen, err := observer.Observe(t.Context(), []k8s.Scale{one, two})
	require.NoError(t, err)
	require.Equal(t, []int32{3, 3}, []int32{seen.Fleets[0].Absent, seen.Fleets[1].Absent})
	r := seen.Readings[0]
	require.Equal(t, int32(6), r.NotReady, "replicas that have no pod yet: three of each")
	require.Len(t, seen.Fleets[0].Pods, 4)
	require.Len(t, seen.Fleets[1].Pods, 3)
	require.InDelta(t, 9.0/7, r.Lower, 1e-9)
}

// TestRegressionAGroupWithoutANodeIsUnschedulable: the leader alone is Ready, the worker has had no node for an hour. The group was not
// ready for ever, and its load could be anything: nothing was scaled down.
func TestRegressionAGroupWithoutANodeIsUnschedulable(t *testing.T) {
	const prefix = "leaderworkerset.sigs.k8s.io/"
	member := func(index string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels[prefix+"name"], p.Labels[prefix+"group-index"], p.Labels[prefix+"worker-index"] = "llama", "0", index
			p.Annotations = map[string]string{prefix + "size": "2"}
		}
	}
	pods, err := k8s.NewPods(lister(t, pod("llama-0", member("0"), made(time.Hour, 59*time.Minute)),
		pod("llama-0-1", member("1"), made(time.Hour, time.Hour), unschedulable)), k8s.LeaderWorkerSet())
	require.NoError(t, err)
	now := start
	pods.Now = func() time.Time { return now }
	found, err := pods.Find(scaleOf(t, "app=llama", 1))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, scrape.Unschedulable, found[0].State, found[0].Because)
}
