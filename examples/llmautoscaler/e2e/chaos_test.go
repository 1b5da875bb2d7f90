package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// asked reads the count that a write to /scale asked for.
func asked(t *testing.T, body json.RawMessage) int32 {
	t.Helper()
	var scale struct {
		Spec struct {
			Replicas int32 `json:"replicas"`
		} `json:"spec"`
	}
	require.NoError(t, json.Unmarshal(body, &scale))
	return scale.Spec.Replicas
}

// spread is how much closer two writes may be in the log than the rounds that made them: a cooldown counts from the time
// of a round, and its write comes after its scrapes and its stored state. A cooldown that was lost shows as a second
// write in the next round, a second later, which is less than the cooldown by far more.
const spread = 900 * time.Millisecond

// checkSteps goes through what was written to /scale: each write is one step from the one before, and no two are closer
// than the cooldown, less the spread.
func checkSteps(t *testing.T, w *world, from int32, cooldown time.Duration) (ups, downs int) {
	t.Helper()
	var last time.Time
	for i, write := range w.writes() {
		if write.Code != 200 {
			continue // refused: the next round decides again
		}
		to := asked(t, write.Body)
		require.True(t, to-from == 1 || from-to == 1, "write %d goes from %d to %d: a step is one replica", i, from, to)
		if !last.IsZero() {
			require.GreaterOrEqual(t, write.Time.Sub(last), cooldown-spread, "write %d is within the cooldown", i)
		}
		if to > from {
			ups++
		} else {
			downs++
		}
		from, last = to, write.Time
	}
	return ups, downs
}

// TestKilled50Times kills the controller at random points, 50 times, while the load goes up and down: whatever it was
// about to do, every change is one step, and every cooldown is kept by the process that comes after. In the end its
// state is that of a twin that saw the same load and was never killed.
func TestKilled50Times(t *testing.T) {
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

// state returns the stored state of the LLMAutoScaler in a namespace, without its times.
func (w *world) state(namespace string) string {
	var las v1alpha1.LLMAutoScaler
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: "chat"}, &las); err != nil {
		return ""
	}
	return regexp.MustCompile(`\b1[0-9]{12}\b`).ReplaceAllString(las.Annotations[k8s.AnnotationPrefix+"/state-realtime"], "TIME")
}

// TestConflictStorm: another writer changes the Deployment all the time, and its count now and then; first as fast as it
// can, then twenty times a second. The controller's writes are conflicts, or one step from the count that was there:
// it never takes back what came in between. When the storm is over it has its way.
func TestConflictStorm(t *testing.T) {
	w := newWorld(t)
	w.autoscaler(func(s *v1alpha1.LLMAutoScalerSpec) {
		s.Scaler.Realtime.ScaleUpRule.CooldownSeconds = ptr(int32(0))
		s.Scaler.Realtime.ScaleDownRule.CooldownSeconds = ptr(int32(0))
	})
	w.fleet.SetRate(60) // more than eight replicas serve: it asks for more at every round
	w.run("-leader-elect=false")

	clientset, err := kubernetes.NewForConfig(w.cluster.Config())
	require.NoError(t, err)
	deployments := clientset.AppsV1().Deployments(namespace)
	mine := 0
	storm := func(length, pause time.Duration) {
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for end := time.Now().Add(length); time.Now().Before(end); <-ticker.C {
			// Annotations change the resource version as replicas do; every tenth write moves the count down to 2.
			d, err := deployments.Get(t.Context(), "chat", metav1.GetOptions{})
			require.NoError(t, err)
			if d.Annotations == nil {
				d.Annotations = map[string]string{}
			}
			mine++
			d.Annotations["storm"] = time.Now().String()
			if mine%10 == 0 {
				d.Spec.Replicas = ptr(int32(2))
			}
			_, _ = deployments.Update(t.Context(), d, metav1.UpdateOptions{}) // a conflict is one of its own
		}
	}
	storm(6*time.Second, time.Millisecond)
	storm(6*time.Second, 50*time.Millisecond)
	w.eventually("it has its way when the storm is over", time.Minute, func() bool { return w.replicas() == 8 })

	all, err := w.cluster.Writes("", "deployments", "*")
	require.NoError(t, err)
	count, conflicts, done := int32(1), 0, 0
	for _, write := range all {
		switch {
		case write.User == w.user && write.Code == 409:
			conflicts++
		case write.Code != 200 || write.Subresource == "status" || write.Verb == "patch":
		case write.User == w.user:
			to := asked(t, write.Body)
			require.Equal(t, count+1, to, "write %d is a step from the count that was there", done)
			count = to
			done++
		default:
			count = asked(t, write.Body)
		}
	}
	t.Logf("%d writes of the other, %d of the controller were carried out and %d were conflicts", mine, done, conflicts)
	require.Positive(t, conflicts)
	require.Positive(t, done)
}

// TestLeaderKilled: of two replicas of the controller one works. When it is killed the other goes on, from its state.
func TestLeaderKilled(t *testing.T) {
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
