package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

const (
	subjects    = 4 // targets, each with an LLMAutoScaler
	most        = 6 // replicas
	upCooldown  = 3 * time.Second
	downCool    = 4 * time.Second
	ordealBurst = 10 // blows between two times of calm
	// calmLimit is what a process takes at most to see all pods again: watches that failed again and again are tried up to a
	// minute later.
	calmLimit = 90 * time.Second
)

// An ordeal is a world with several targets, whose controllers are struck again and again.
type ordeal struct {
	*world

	proxy    *proxy
	ledger   *ledger
	replicas []*replica
	random   *rand.Rand
	names    []string
	began    time.Time

	mu    sync.Mutex
	loads map[string][]load

	kills, stops, outages int
	away                  time.Duration // in outages
	slowest               time.Duration // of what came after a burst
}

// A load is what a target's pages ask for from a time on: +1 more, -1 less.
type load struct {
	since     time.Time
	direction int
}

func newOrdeal(t *testing.T, replicas int, args ...string) *ordeal {
	t.Helper()
	w := newWorld(t, "--watch-cache=false") // a watch goes on where it was when the API server comes back, and misses nothing
	o := &ordeal{world: w, random: rand.New(rand.NewPCG(*ordealSeed, 1)), loads: make(map[string][]load), began: time.Now()}
	clientset, err := kubernetes.NewForConfig(w.cluster.Config())
	require.NoError(t, err)
	require.NoError(t, clientset.AppsV1().Deployments(namespace).Delete(t.Context(), "chat", metav1.DeleteOptions{}))
	_, deployment, _ := strings.Cut(namespaces, "name: models}\n---")
	for i := range subjects {
		name := fmt.Sprintf("chat-%d", i)
		o.names = append(o.names, name)
		o.ask(name, []int{+1, -1}[i%2])
		text := strings.ReplaceAll(strings.ReplaceAll(deployment, "chat", name), "replicas: 1", "replicas: 3")
		require.NoError(t, w.cluster.Apply(t.Context(), []byte(text)))
		las := &v1alpha1.LLMAutoScaler{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec()}
		las.Spec.ScaleTargetRef.Name, las.Spec.MaxReplicas = name, most
		las.Spec.Scaler.Realtime.ScaleUpRule.CooldownSeconds = new(int32(upCooldown / time.Second))
		las.Spec.Scaler.Realtime.ScaleDownRule.CooldownSeconds = new(int32(downCool / time.Second))
		las.Spec.Scaler.Realtime.ScaleDownRule.StabilizationWindowSeconds = new(int32(1))
		require.NoError(t, w.client.Create(t.Context(), las))
	}
	dynamicClient, err := dynamic.NewForConfig(w.cluster.Config())
	require.NoError(t, err)
	o.ledger = newLedger(t, dynamicClient)
	account, err := w.cluster.ServiceAccount(t.Context(), system, account)
	require.NoError(t, err)
	o.proxy = newProxy(t, account, replicas, *ordealSeed, func(name string) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"touched": time.Now().String()}}})
		if err == nil {
			_, _ = clientset.AppsV1().Deployments(namespace).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	})
	for i := range replicas {
		config := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, cluster.WriteKubeconfig(config, &rest.Config{Host: o.proxy.servers[i].URL}))
		o.replicas = append(o.replicas, newReplica(t, append([]string{
			w.binary,
			"-kubeconfig", config, "-health-address", "0", "-metrics-address", "0", "-allow-local-targets", "-leader-elect-namespace", system,
			"-credentials-dir", t.TempDir(), // who is killed leaves what it made
		}, args...)))
	}
	t.Cleanup(func() {
		if t.Failed() {
			for i, r := range o.replicas {
				t.Logf("replica %d: ...%s", i, r.tail(12_000))
			}
		}
	})
	return o
}

// ask sets the load of a target.
func (o *ordeal) ask(name string, direction int) {
	o.world.loads.Store(name, map[int]int{+1: 9, -1: 0}[direction])
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads[name] = append(o.loads[name], load{time.Now(), direction})
}

// asked returns what a load asked for all the time from one time to another, or 0.
func (o *ordeal) asked(name string, from, to time.Time) (direction int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.loads[name]
	for i, l := range all {
		if l.since.After(to) || i+1 < len(all) && all[i+1].since.Before(from) {
			continue
		}
		if l.direction == -direction {
			return 0
		}
		direction = l.direction
	}
	return direction
}

// through strikes blow after blow. In between it is calm, and outages are long, now and then.
func (o *ordeal) through(blows int, blow func()) {
	o.t.Helper()
	for i := range blows {
		limit := calmLimit
		if i == blows/2 && *longOutage > 0 {
			o.goesOn(limit)
			o.stopAPIServer(*longOutage)
			limit += time.Minute
		}
		if i%ordealBurst == 0 {
			o.goesOn(limit)
			o.proxy.become(faulty)
		}
		if o.random.IntN(3) == 0 {
			name := o.names[o.random.IntN(subjects)]
			o.ask(name, 1-2*o.random.IntN(2))
		}
		var outage sync.WaitGroup
		switch i % ordealBurst {
		case 3, 7:
			kind, length := []weather{refusing, hanging}[o.random.IntN(2)], time.Duration(500+o.random.IntN(3500))*time.Millisecond
			outage.Go(func() {
				o.proxy.become(kind)
				o.pass(length)
				o.proxy.become(faulty)
			})
			o.outages++
			o.away += length
		case 9:
			if o.random.IntN(4) == 0 {
				o.stopAPIServer(0)
			}
		}
		blow()
		outage.Wait()
		if i%ordealBurst == ordealBurst-1 {
			o.t.Logf("%d of %d after %s", i+1, blows, time.Since(o.began).Round(time.Second))
		}
	}
	o.goesOn(calmLimit)
}

// stopAPIServer stops the API server itself for a while.
func (o *ordeal) stopAPIServer(length time.Duration) {
	o.t.Helper()
	began := time.Now()
	o.cluster.StopAPIServer()
	o.pass(length)
	require.NoError(o.t, o.cluster.StartAPIServer(o.t.Context()))
	o.outages++
	o.away += time.Since(began)
	o.pass(time.Second) // the ledger's watches go on
}

// goesOn lets the faults end, and waits until every target has made a step where its load asks for. No rule was broken.
func (o *ordeal) goesOn(limit time.Duration) {
	o.t.Helper()
	o.proxy.become(calm)
	began, from := time.Now(), make(map[string]int32)
	for _, name := range o.names {
		from[name] = o.ledger.now(name)
		switch direction := 1 - 2*o.random.IntN(2); {
		case from[name] <= 1:
			o.ask(name, +1)
		case from[name] >= most:
			o.ask(name, -1)
		default:
			o.ask(name, direction)
		}
	}
	for _, name := range o.names {
		o.within(name+" goes on", limit, func() bool {
			direction := int32(o.asked(name, time.Now(), time.Now()))
			by := (o.ledger.now(name) - from[name]) * direction
			if by < 0 {
				from[name] = o.ledger.now(name) // what was decided before
			}
			return by > 0
		})
	}
	o.slowest = max(o.slowest, time.Since(began))
	o.within("the rules are kept", 5*time.Second, func() bool { return len(o.verdict().wrong) == 0 })
}

func (o *ordeal) verdict() verdict {
	return o.ledger.judge(o.proxy.carried(), rules{up: upCooldown, down: downCool, most: most, load: o.asked})
}

// end is how an ordeal ends: in calm, all targets come to where the load asks for, up and down. It says what there was.
func (o *ordeal) end() {
	o.t.Helper()
	for _, direction := range []int{+1, -1} {
		for _, name := range o.names {
			o.ask(name, direction)
		}
		want := map[int]int32{+1: most, -1: 1}[direction]
		for _, name := range o.names {
			o.within(fmt.Sprintf("%s has %d replicas", name, want), 2*time.Minute, func() bool { return o.ledger.now(name) == want })
		}
	}
	o.goesOn(calmLimit)
	v := o.verdict()
	_, holders := o.ledger.holder()
	ends := 0
	for _, r := range o.replicas {
		ends += r.endings()
	}
	conflicts := 0
	for _, w := range o.proxy.carried() {
		if w.code == 409 {
			conflicts++
		}
	}
	o.proxy.mu.Lock()
	defer o.proxy.mu.Unlock()
	o.t.Logf(`in %s: %d killed, %d stopped, %d leaders, %d ends of a process
%d outages, together %s
faults of requests: %v; conflicts that the API server itself found: %d of %d writes
%d steps, %d double steps, %d lost cooldowns; at the least %s between two changes beyond the cooldown
%s at most until every target had made a step after a burst`,
		time.Since(o.began).Round(time.Second), o.kills, o.stops, holders, ends, o.outages, o.away.Round(time.Second),
		o.proxy.met, conflicts, len(o.proxy.writes), v.steps, v.doubles, v.lost, v.least, o.slowest.Round(100*time.Millisecond))
}

// snare does something to a replica at a random point: at some time, or when it makes some request.
func (o *ordeal) snare(which func() int, do func(replica int)) {
	o.t.Helper()
	if o.random.IntN(5) < 2 {
		o.pass(time.Duration(200+o.random.IntN(2800)) * time.Millisecond)
		do(which())
		return
	}
	kinds := []string{readScale, writeScale, writeScale, writeScale, saveState, saveState, saveState, saveStatus}
	if len(o.replicas) > 1 {
		kinds = append(kinds, holdLease)
	}
	sprung, replica := make(chan struct{}), which()
	o.proxy.set(&trap{replica, kinds[o.random.IntN(len(kinds))], o.random.IntN(2) == 0, func() {
		do(replica)
		close(sprung)
	}})
	timer := time.NewTimer(4 * time.Second)
	defer timer.Stop()
	select {
	case <-sprung:
	case <-timer.C:
		if o.proxy.set(nil) {
			do(which())
		} else {
			<-sprung
		}
	}
}

// leader waits until a replica leads, and returns which.
func (o *ordeal) leader() (replica int) {
	o.t.Helper()
	o.within("one leads", 30*time.Second, func() (known bool) {
		who, _ := o.ledger.holder()
		o.proxy.mu.Lock()
		defer o.proxy.mu.Unlock()
		replica, known = o.proxy.held[who]
		return known
	})
	return replica
}

// pass lets time pass.
func (o *ordeal) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.t.Context().Done():
	}
}

// within polls until a condition holds.
func (o *ordeal) within(what string, limit time.Duration, holds func() bool) {
	o.t.Helper()
	end := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(end) {
			require.FailNow(o.t, "it did not come to be that "+what, "at %s\n%s", time.Now().Format(time.StampMilli), o.latest())
		}
		o.pass(50 * time.Millisecond)
	}
}

// latest shows the latest writes and states.
func (o *ordeal) latest() string {
	var text strings.Builder
	all, v := o.proxy.carried(), o.verdict()
	fmt.Fprintf(&text, "%s\n%d steps\n", strings.Join(v.wrong[:min(20, len(v.wrong))], "\n"), v.steps)
	for _, w := range all[max(0, len(all)-40):] {
		fmt.Fprintf(&text, "%s replica %d wrote %d on %s, answered %s: %d, revision %d\n", w.name, w.replica, w.to, w.version, w.answered.Format(time.StampMilli), w.code, w.revision)
	}
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	for name, states := range o.ledger.states {
		for _, s := range states[max(0, len(states)-6):] {
			fmt.Fprintf(&text, "%s at %d: %s\n", name, s.revision, s.text[:min(1000, len(s.text))])
		}
	}
	return text.String()
}

// A replica is a process that is started again whenever it has ended.
type replica struct {
	mu    sync.Mutex
	cmd   *exec.Cmd
	lives int
	over  bool
	said  bytes.Buffer
}

// Write keeps what the processes say last.
func (r *replica) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said.Len() > 1<<20 {
		r.said.Next(r.said.Len() - 1<<18)
	}
	return r.said.Write(b)
}

func newReplica(t *testing.T, command []string) *replica {
	t.Helper()
	r := &replica{}
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // a process is to end with this one, for which the kernel watches the thread that started it
		defer runtime.UnlockOSThread()
		for r.start(command) {
			_ = r.cmd.Wait()
			timer := time.NewTimer(100 * time.Millisecond)
			select {
			case <-timer.C:
			case <-over:
			}
		}
	}()
	t.Cleanup(func() {
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
		close(over)
		r.kill()
		<-ended
	})
	return r
}

func (r *replica) start(command []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.lives++
	fmt.Fprintf(&r.said, "-- life %d at %s\n", r.lives, time.Now().Format(time.StampMilli))
	r.cmd = exec.Command(command[0], command[1:]...)
	r.cmd.Stdout, r.cmd.Stderr = r, r
	cluster.DieWithParent(r.cmd)
	return r.cmd.Start() == nil
}

// do does something to the process, if there is one.
func (r *replica) do(what func(*exec.Cmd)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil && r.cmd.Process != nil {
		what(r.cmd)
	}
}

func (r *replica) kill()   { r.do(func(c *exec.Cmd) { _ = c.Process.Kill() }) }
func (r *replica) pause()  { r.do(pause) }
func (r *replica) resume() { r.do(resume) }

// life returns which process it is.
func (r *replica) life() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives
}

func (r *replica) endings() int { return r.life() - 1 }

func (r *replica) tail(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.said.String()
	return text[max(0, len(text)-n):]
}
