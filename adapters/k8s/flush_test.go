package k8s_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// TestFlush: what a restart would do without is stored when a loop gives way to another, once, and the loop goes on from there.
func TestFlush(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	o := &observer{value: 5}
	l := newLoop(t, c, o, clock, nil)
	require.NoError(t, l.Flush(t.Context()))
	require.Zero(t, c.Saves, "it has nothing to lose")
	for range 4 {
		tick(t, l)
		clock.pass()
	}
	saves, state := c.Saves, c.stored(t)
	require.NoError(t, l.Flush(t.Context()))
	require.Equal(t, saves+1, c.Saves)
	require.NotEqual(t, state, c.stored(t))
	require.NoError(t, l.Flush(t.Context()))
	require.Equal(t, saves+1, c.Saves, "the store has it")

	o.value = 50
	for range 3 {
		tick(t, l)
		clock.pass()
	}
	require.EqualValues(t, 4, c.Replicas(target.Name), "no state of another was in its way")
}

// TestFlushAfterAnother: what somebody else has stored meanwhile is not replaced by what this loop had.
func TestFlushAfterAnother(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	a, b := newLoop(t, c, &observer{value: 5}, clock, nil), newLoop(t, c, &observer{value: 50}, clock, nil)
	tick(t, a)
	clock.pass()
	tick(t, a)
	for range 3 {
		clock.pass()
		tick(t, b)
	}
	require.EqualValues(t, 4, c.Replicas(target.Name))
	state, saves := c.stored(t), c.Saves
	require.NoError(t, a.Flush(t.Context()))
	require.Equal(t, state, c.stored(t))
	require.Equal(t, saves+1, c.Saves, "tried once")

	clock.pass()
	require.Equal(t, scaling.Hold, tick(t, a).Decision.Verdict, "it has taken the cooldown over")
	c.Fault = func(string, func()) error { return errors.New("away") }
	clock.pass()
	_, err := a.Tick(t.Context())
	require.Error(t, err)
	require.ErrorContains(t, a.Flush(t.Context()), "away", "it cannot store")
	require.ErrorContains(t, a.Flush(t.Context()), "load state: ", "nor look what is stored")
	c.Fault = nil
	require.NoError(t, a.Flush(t.Context()))
}

// unstorable is a Store that fails to save.
type unstorable struct{ k8s.Store }

func (unstorable) Save(context.Context, string, []byte, []byte) error { return errors.New("away") }

// TestADryRunThatCannotBeStoredSaysSo: but for want of room nothing is shown that was not stored.
func TestADryRunThatCannotBeStoredSaysSo(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	l := newLoop(t, c, &observer{value: 50}, clock, func(config *k8s.LoopConfig) {
		config.DryRun, config.Store = true, unstorable{config.Store}
	})
	for range 4 {
		out, err := l.Tick(t.Context())
		require.ErrorContains(t, err, "store state: away")
		require.Equal(t, k8s.NoWrite, out.Write)
		clock.pass()
	}
}

// TestWithoutAnObserverAllAreReady: nothing is known to be missing.
func TestWithoutAnObserverAllAreReady(t *testing.T) {
	l := newLoop(t, newCluster(3), nil, &clock{now: start}, func(config *k8s.LoopConfig) { config.Observer = nil })
	out := tick(t, l)
	require.EqualValues(t, 3, out.Observed.Fleets[0].Ready)
}

// TestWhatCannotBeReadIsTold by an event, as what cannot be observed is, and metrics that have no value.
func TestWhatCannotBeReadIsTold(t *testing.T) {
	r := record.NewFakeRecorder(100)
	events := k8s.NewEvents(r, 0)
	events.Say(nil, &k8s.Outcome{Target: target, At: start, ScaleErr: &k8s.TargetError{Target: target, Doing: "read", What: k8s.ErrNotFound}})
	require.Contains(t, told(r)[0], "Warning TargetNotFound cannot read Deployment default/llama: not found")
	events.Say(nil, &k8s.Outcome{Target: target, At: start, Observed: k8s.Observed{Err: errors.New("absent")}})
	require.Equal(t, []string{"Warning MetricsUnavailable absent"}, told(r))
}

// TestMessagesOfTheGreatestLength are told whole, and longer ones cut, as events and as conditions.
func TestMessagesOfTheGreatestLength(t *testing.T) {
	for length, want := range map[int]int{1023: 1023, 1024: 1024, 1025: 1024} {
		r := record.NewFakeRecorder(100)
		o := &k8s.Outcome{Target: target, At: start, Observed: k8s.Observed{Err: errors.New(strings.Repeat("x", length))}}
		k8s.NewEvents(r, 0).Say(nil, o)
		said := strings.TrimPrefix(told(r)[0], "Warning MetricsUnavailable ")
		require.Len(t, said, want)
		require.Equal(t, length > 1024, strings.HasSuffix(said, "..."))
	}
	o := &k8s.Outcome{Target: target, At: start, ScaleErr: errors.New(strings.Repeat("x", 5000))}
	for _, c := range k8s.Conditions(o, 1) {
		require.LessOrEqual(t, len(c.Message), 1024, c.Type)
	}
}

// TestMetricsNameTheAutoscaler, and say when it was last decided.
func TestMetricsNameTheAutoscaler(t *testing.T) {
	m := k8s.NewMetrics()
	l := newLoop(t, newCluster(3), &observer{value: 5}, &clock{now: start}, func(config *k8s.LoopConfig) {
		config.Metrics, config.Object = m, &v1alpha1.LLMAutoScaler{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}
	})
	tick(t, l)
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP inferscale_last_decision_timestamp_seconds When it was last decided.
# TYPE inferscale_last_decision_timestamp_seconds gauge
inferscale_last_decision_timestamp_seconds{autoscaler="chat",kind="Deployment",name="llama",namespace="default"} 1.7724384e+09
`), "inferscale_last_decision_timestamp_seconds"))
}

// TestObserverShowsPods: each that counts, with what it said, under its target.
func TestObserverShowsPods(t *testing.T) {
	port := server(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 4\n"))
	})
	o := podObserver(t, scrape.Config{Metrics: []scrape.Metric{scrape.Named(waiting)}}, port, pod("a", ip("127.0.0.1")), pod("b", notReady), pod("c", deleted))
	seen, err := o.Observe(t.Context(), []k8s.Scale{scaleOf(t, "app=llama", 3)})
	require.NoError(t, err)
	pods := seen.Fleets[0].Pods
	require.Len(t, pods, 3, "one is absent")
	require.Equal(t, []string{"(absent 1 of llama)", "a", "b"}, []string{pods[0].Name, pods[1].Name, pods[2].Name})
	require.True(t, pods[1].Values[0].OK)
	require.InDelta(t, 4, pods[1].Values[0].Value, 0)

	other := scaleOf(t, "app=other", 2)
	other.Target.Name = "other"
	seen, err = o.Observe(t.Context(), []k8s.Scale{scaleOf(t, "app=llama", 3), other})
	require.NoError(t, err)
	require.Len(t, seen.Fleets[0].Pods, 3)
	require.Len(t, seen.Fleets[1].Pods, 2, "those that are absent are the other's")
}

// slowly is a policy whose answer may change after 20 s.
type slowly struct{ counting }

func (slowly) Decide(s count, now time.Time, obs scaling.Observation) (count, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.NextBy(now.Add(20 * time.Second))
	return s, d
}

// TestARoundThatDecidedNothingIsFollowedAfterAnInterval: when the answer before could change is of no concern then.
func TestARoundThatDecidedNothingIsFollowedAfterAnInterval(t *testing.T) {
	clock, o := &clock{now: start}, &observer{value: 5}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waits []time.Duration
	l := newLoop(t, newCluster(3), o, clock, func(config *k8s.LoopConfig) {
		config.Policy = scaling.New(slowly{})
		after := clock.fires(&waits, 2, cancel)
		config.After = func(d time.Duration) (<-chan time.Time, func()) {
			o.err = errors.New("away")
			return after(d)
		}
	})
	require.NoError(t, l.Run(ctx))
	require.Equal(t, []time.Duration{15 * time.Second, 15 * time.Second}, waits)
}

// TestAClosedObserverHasNoConnections: those that were kept for the next round end.
func TestAClosedObserverHasNoConnections(t *testing.T) {
	var closed atomic.Int32
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE " + waiting + " gauge\n" + waiting + " 4\n"))
	}))
	front.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed.Add(1)
		}
	}
	front.Start()
	t.Cleanup(front.Close)
	port := int32(front.Listener.Addr().(*net.TCPAddr).Port)
	o := podObserver(t, scrape.Config{Metrics: []scrape.Metric{scrape.Named(waiting)}, Interval: time.Second}, port, pod("a", ip("127.0.0.1")))
	seen, err := o.Observe(t.Context(), []k8s.Scale{scaleOf(t, "app=llama", 1)})
	require.NoError(t, err)
	require.True(t, seen.Readings[0].Known())
	require.Zero(t, closed.Load())
	o.Close()
	require.Eventually(t, func() bool { return closed.Load() == 1 }, 3*time.Second, time.Millisecond, "and before they have been idle for long")
}

// TestFlushAfterAStoreThatWasAway: the loop knows better than the store, which has what was stored before, and stores that.
func TestFlushAfterAStoreThatWasAway(t *testing.T) {
	c, clock, o := newCluster(3), &clock{now: start}, &observer{value: 5}
	l := newLoop(t, c, o, clock, nil)
	tick(t, l)
	state := c.stored(t)
	clock.pass()
	c.Fault = func(call string, effect func()) error {
		if call == "patch state" {
			return errors.New("away")
		}
		effect()
		return nil
	}
	o.value = 50
	for range 3 { // until it acts
		_, _ = l.Tick(t.Context())
		clock.pass()
	}
	require.Equal(t, state, c.stored(t))
	c.Fault = nil
	require.NoError(t, l.Flush(t.Context()))
	require.NotEqual(t, state, c.stored(t))
}
