package e2e

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// A request is what a write to a Deployment or its /scale asked for, and what it was conditional on.
type request struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
}

func requestOf(t *testing.T, body json.RawMessage) request {
	t.Helper()
	var r request
	require.NoError(t, json.Unmarshal(body, &r))
	return r
}

// at returns the resource version as a number. Of the writes to an object that were carried out, the first one is that
// which was made on the lowest one; the audit log may have them in another order.
func (r *request) at(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(r.Metadata.ResourceVersion, 10, 64)
	require.NoError(t, err, "a write without a condition")
	return n
}

// rounds returns when the rounds began that asked for each request: what was stored before it says so.
func (w *world) rounds() map[request][]time.Time {
	w.t.Helper()
	saves, err := w.cluster.Writes(w.user, "llmautoscalers", "")
	require.NoError(w.t, err)
	rounds := make(map[request][]time.Time)
	for _, save := range saves {
		if len(save.Body) == 0 {
			continue // the process was killed while it sent it
		}
		var object metav1.PartialObjectMetadata
		require.NoError(w.t, json.Unmarshal(save.Body, &object))
		var stored struct {
			State struct {
				Open []struct {
					Version string
					To      int32
					At      int64
				}
			}
		}
		text := object.Annotations[k8s.AnnotationPrefix+"/state-realtime"]
		if text == "" || save.Namespace != namespace {
			continue
		}
		require.NoError(w.t, json.Unmarshal([]byte(text), &stored))
		for _, open := range stored.State.Open {
			var r request
			r.Metadata.ResourceVersion, r.Spec.Replicas = open.Version, open.To
			rounds[r] = append(rounds[r], time.UnixMilli(open.At))
		}
	}
	return rounds
}

// checkSteps goes through what was written to /scale: each write is one step from the one before, and the rounds that
// asked for two are not closer than the cooldown. When a write comes after its round depends on how busy the machine is.
func checkSteps(t *testing.T, w *world, from int32, cooldown time.Duration) (ups, downs int) {
	t.Helper()
	var last time.Time
	writes := w.writes()
	writes = slices.DeleteFunc(writes, func(one cluster.Write) bool { return one.Code != 200 }) // refused: the next round decides again
	var rounds map[request][]time.Time
	w.eventually("the log says of each write when it was asked for", 10*time.Second, func() bool {
		rounds = w.rounds()
		return !slices.ContainsFunc(writes, func(one cluster.Write) bool { return len(rounds[requestOf(t, one.Body)]) == 0 })
	})
	for i, write := range writes {
		r := requestOf(t, write.Body)
		to := r.Spec.Replicas
		require.True(t, to-from == 1 || from-to == 1, "write %d goes from %d to %d: a step is one replica", i, from, to)
		if !last.IsZero() {
			first := slices.MinFunc(rounds[r], time.Time.Compare)
			require.GreaterOrEqual(t, first.Sub(last), cooldown, "write %d is within the cooldown", i)
		}
		if to > from {
			ups++
		} else {
			downs++
		}
		from, last = to, slices.MaxFunc(rounds[r], time.Time.Compare)
	}
	return ups, downs
}

// TestKilled50Times kills the controller at random points, 50 times, while the load goes up and down: whatever it was
// about to do, every change is one step, and every cooldown is kept by the process that comes after. In the end its
// state is that of a twin that saw the same load and was never killed.
func TestKilled50Times(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.waiting.Store(0)
	w.autoscaler(nil)
	w.twin()
	w.run("-leader-elect=false", "-namespaces", twins)
	random := rand.New(rand.NewPCG(1, 2))
	const kills = 50
	for i := range kills {
		if i%10 == 0 {
			w.waiting.Store([]int32{9, 0}[i/10%2])
		}
		p := w.run("-leader-elect=false", "-namespaces", namespace)
		// It is ready after about 300 ms and has a round each second: the kill meets all parts of it.
		life := time.Duration(300+random.IntN(1700)) * time.Millisecond
		timer := time.NewTimer(life)
		<-timer.C
		p.kill()
	}
	ups, downs := checkSteps(t, w, 1, 3*time.Second)
	t.Logf("%d kills, %d steps up and %d down", kills, ups, downs)
	require.Positive(t, ups)

	// What is left is what an uninterrupted one goes on from.
	w.waiting.Store(9)
	w.run("-leader-elect=false", "-namespaces", namespace)
	w.eventually("all replicas are there", 2*time.Minute, func() bool { return w.replicas() == 8 && w.scaledTo(twins) == 8 })
	w.waiting.Store(0)
	w.eventually("one replica is left", 2*time.Minute, func() bool { return w.replicas() == 1 && w.scaledTo(twins) == 1 })
	ups, downs = checkSteps(t, w, 1, 3*time.Second)
	require.Equal(t, ups, downs, "it is where it began")
	require.GreaterOrEqual(t, downs, 7)
	killed, spared := "", ""
	defer func() { t.Logf("state %s, of the twin %s", killed, spared) }()
	w.eventually("the states are equal but for the times", time.Minute, func() bool {
		killed, spared = w.state(namespace), w.state(twins)
		return killed != "" && killed == spared
	})
}

const twins = "twins"

// twin makes the Deployment and the LLMAutoScaler of the tests a second time, in a namespace of its own.
func (w *world) twin() {
	w.t.Helper()
	require.NoError(w.t, w.cluster.Apply(w.t.Context(), []byte(strings.ReplaceAll(namespaces, namespace, twins))))
	las := w.status()
	require.NoError(w.t, w.client.Create(w.t.Context(), &v1alpha1.LLMAutoScaler{
		ObjectMeta: metav1.ObjectMeta{Name: las.Name, Namespace: twins}, Spec: las.Spec,
	}))
}

// state returns the stored state of the LLMAutoScaler in a namespace, without its times and whose it is.
func (w *world) state(namespace string) string {
	var las v1alpha1.LLMAutoScaler
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: "chat"}, &las); err != nil {
		return ""
	}
	state := regexp.MustCompile(`"targets":\[[^]]*\],`).ReplaceAllString(las.Annotations[k8s.AnnotationPrefix+"/state-realtime"], "")
	return regexp.MustCompile(`\b1[0-9]{12}\b`).ReplaceAllString(state, "TIME")
}

// TestConflictStorm: another writer changes the Deployment all the time, and takes its count back twice; first as fast as
// it can, then twenty times a second. The controller's writes are conflicts, or one step from the count that was there:
// it never takes back what came in between. When the storm is over it has its way. A writer that goes on to take the
// count back is named, and the target left alone.
func TestConflictStorm(t *testing.T) {
	w := newWorld(t)
	w.autoscaler(func(s *v1alpha1.LLMAutoScalerSpec) {
		s.Scaler.Realtime.ScaleUpRule.CooldownSeconds = new(int32(0))
		s.Scaler.Realtime.ScaleDownRule.CooldownSeconds = new(int32(0))
	})
	w.fleet.SetRate(60) // more than eight replicas serve: it asks for more at every round
	w.run("-leader-elect=false")

	clientset, err := kubernetes.NewForConfig(w.cluster.Config())
	require.NoError(t, err)
	deployments := clientset.AppsV1().Deployments(namespace)
	mine := 0
	storm := func(length, pause time.Duration) {
		took := false
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for end := time.Now().Add(length); time.Now().Before(end); <-ticker.C {
			// Annotations change the resource version as replicas do.
			d, err := deployments.Get(t.Context(), "chat", metav1.GetOptions{})
			require.NoError(t, err)
			if d.Annotations == nil {
				d.Annotations = map[string]string{}
			}
			mine++
			d.Annotations["storm"] = time.Now().String()
			taking := !took && mine%10 == 0 && *d.Spec.Replicas > 2
			if taking {
				d.Spec.Replicas = new(int32(2))
			}
			_, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{}) // a conflict is one of its own
			took = took || taking && err == nil
		}
	}
	storm(6*time.Second, time.Millisecond)
	storm(6*time.Second, 50*time.Millisecond)
	w.eventually("it has its way when the storm is over", time.Minute, func() bool { return w.replicas() == 8 })

	all, err := w.cluster.Writes("", "deployments", "*")
	require.NoError(t, err)
	count, conflicts, done := int32(1), 0, 0
	all = slices.DeleteFunc(all, func(write cluster.Write) bool {
		if write.User == w.user && write.Code == 409 {
			conflicts++
		}
		return write.Code != 200 || write.Subresource == "status" || write.Verb == "patch"
	})
	requests := make([]request, len(all))
	for i, write := range all {
		requests[i] = requestOf(t, write.Body)
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(requests[a].at(t), requests[b].at(t)) })
	for _, i := range order {
		to := requests[i].Spec.Replicas
		if all[i].User == w.user {
			require.Equal(t, count+1, to, "write %d is a step from the count that was there", done)
			done++
		}
		count = to
	}
	t.Logf("%d writes of the other, %d of the controller were carried out and %d were conflicts", mine, done, conflicts)
	require.Positive(t, conflicts)
	require.Positive(t, done)

	w.eventually("who takes writes back is named", time.Minute, func() bool {
		if d, err := deployments.Get(t.Context(), "chat", metav1.GetOptions{}); err == nil && *d.Spec.Replicas > 2 {
			d.Spec.Replicas = new(int32(2))
			_, _ = deployments.Update(t.Context(), d, metav1.UpdateOptions{})
		}
		status, _ := w.condition(k8s.ConditionContended)
		return status == metav1.ConditionTrue
	})
	contended := meta.FindStatusCondition(w.status().Status.Conditions, k8s.ConditionContended)
	require.Contains(t, contended.Message, "e2e.test at ")
	require.Contains(t, contended.Message, "took back the last 3 writes of Deployment models/chat")
	left := w.replicas()
	require.Never(t, func() bool { return w.replicas() != left }, 3*time.Second, 100*time.Millisecond)
}

// TestLeaderKilled: of two replicas of the controller one works. When it is killed the other goes on, from its state.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.autoscaler(nil)
	election := []string{"-leader-elect-lease", "3s", "-leader-elect-renew", "2s", "-leader-elect-retry", "500ms"}
	holder := func() string {
		var lease coordinationv1.Lease
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "llmautoscaler"}, &lease); err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	first := w.run(election...)
	w.eventually("the first leads", time.Minute, func() bool { return holder() != "" })
	leader := holder()
	second := w.run(election...)
	w.fleet.SetRate(30)
	w.eventually("it scales", time.Minute, func() bool { return w.replicas() >= 2 })
	require.Equal(t, leader, holder())
	require.NotContains(t, second.said(), "Up 1 -> 2", "the second has not decided anything")

	first.kill()
	w.eventually("the second leads", time.Minute, func() bool { return holder() != leader })
	replicas := w.replicas()
	w.eventually("the second scales on", time.Minute, func() bool { return w.replicas() > replicas })
	checkSteps(t, w, 1, 3*time.Second)
}
