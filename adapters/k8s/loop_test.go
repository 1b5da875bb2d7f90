package k8s_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scaling"
)

// counting asks for one more than there is whenever the load says so, and counts its decisions in its state, so that a
// decision that was made twice shows.
type counting struct{}

type count struct {
	Decided int   `json:"decided"`
	Applied int   `json:"applied"`
	At      int64 `json:"at"`
}

func (counting) Kind() scaling.Kind { return scaling.Kind{Name: "counting", Version: 1} }

func (counting) Decide(s count, now time.Time, obs scaling.Observation) (count, scaling.Decision) {
	s.Decided++
	d := scaling.HoldAt(obs.SpecReplicas)
	r := obs.Reading(waiting)
	if r.Known() && r.Lower > 10 {
		d.To(obs.SpecReplicas+1, aboveHigh, waiting, r.Lower, 10)
	}
	d.NextBy(now.Add(5 * time.Second))
	return s, d
}

func (counting) Applied(s count, now time.Time, _, _ int32) count {
	s.Applied++
	s.At = now.Unix()
	return s
}

func counted(t *testing.T, c *cluster) count {
	t.Helper()
	var e struct{ State count }
	require.NoError(t, json.Unmarshal([]byte(c.stored(t)), &e))
	return e.State
}

func newCounting(t *testing.T, c *cluster, o k8s.Observer, change func(*k8s.LoopConfig)) *k8s.Loop {
	t.Helper()
	return newLoop(t, c, o, &clock{now: start}, func(config *k8s.LoopConfig) {
		config.Policy, config.EveryState = scaling.New(counting{}), true
		if change != nil {
			change(config)
		}
	})
}

func TestLoopActs(t *testing.T) {
	c, o := newCluster(3), &observer{value: 50}
	r := record.NewFakeRecorder(100)
	l := newCounting(t, c, o, func(config *k8s.LoopConfig) { config.Recorder = r })
	var order []string
	c.Fault = func(call string, effect func()) error {
		order = append(order, call)
		effect()
		return nil
	}
	out := tick(t, l)
	require.Equal(t, k8s.Written, out.Write)
	require.EqualValues(t, 4, c.Replicas("llama"))
	require.Equal(t, count{Decided: 1, Applied: 1, At: start.Unix()}, counted(t, c))
	require.Equal(t, []string{"get state", "get scale", "create state", "update scale", "patch state"}, order, "persist, act, persist")
	require.Equal(t, []string{"Normal ScaledUp Up 3 -> 4: AboveHigh vllm:num_requests_waiting lower=50 > high=10"}, told(r))
}

func TestLoopHoldWritesNothing(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	o := &observer{value: 5}
	l := newLoop(t, c, o, clock, nil)
	for range 20 {
		require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
		clock.pass()
	}
	require.Zero(t, c.Updates)

	// The same at the same time changes no state, and is not stored again.
	tick(t, l)
	saves := c.Saves
	tick(t, l)
	require.Equal(t, saves, c.Saves)
}

func TestLoopConflict(t *testing.T) {
	c := newCluster(3)
	l := newCounting(t, c, &observer{value: 50}, nil)
	times := 0
	c.Fault = func(call string, effect func()) error {
		if call == "update scale" && times < 2 {
			times++
			c.Targets["llama"].Spec.Replicas = 5 // by somebody else
			c.Touch("llama")
		}
		effect()
		return nil
	}
	out := tick(t, l)
	require.Equal(t, 2, out.Conflicts)
	require.EqualValues(t, 5, out.Decision.From, "decided again, on what is there now")
	require.EqualValues(t, 6, c.Replicas("llama"))
	require.Equal(t, 1, counted(t, c).Decided, "the decisions that came to nothing are taken back")

	times = -10
	out, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrConflict)
	require.Equal(t, k8s.Conflict, out.Write)
	require.Equal(t, 4, out.Conflicts, "three times again")
	require.Equal(t, 1, counted(t, c).Applied)
}

func TestLoopWriteRefused(t *testing.T) {
	c := newCluster(3)
	l := newCounting(t, c, &observer{value: 50}, nil)
	c.Fault = func(call string, effect func()) error {
		if call == "update scale" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "llama", errors.New("webhook"))
		}
		effect()
		return nil
	}
	out, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrForbidden)
	require.Equal(t, k8s.Refused, out.Write)
	require.Zero(t, counted(t, c).Applied)
	require.Equal(t, 1, c.Updates)
	require.NotContains(t, c.ConfigMap.Data["state"], "open", "nothing is open")
}

func TestLoopUncertain(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		c := newCluster(3)
		o := &observer{value: 50}
		l := newCounting(t, c, o, nil)
		c.Fault = func(call string, effect func()) error {
			if call != "update scale" {
				effect()
				return nil
			}
			if arrives {
				effect()
			}
			return errors.New("connection reset")
		}
		out, err := l.Tick(context.Background())
		require.ErrorIs(t, err, k8s.ErrUncertain)
		require.Equal(t, k8s.Uncertain, out.Write)
		require.Zero(t, counted(t, c).Applied)

		c.Fault = nil
		o.value = 5
		if !arrives {
			c.Touch("llama") // so that it cannot arrive any more
		}
		out = tick(t, l)
		require.Equal(t, arrives, out.Settled)
		require.Equal(t, arrives, counted(t, c).Applied == 1)
		require.NotContains(t, c.ConfigMap.Data["state"], "open")
	}
}

// A write of which no answer came can arrive after the next round has looked: it is not forgotten before that is
// impossible.
func TestLoopLateArrival(t *testing.T) {
	c := newCluster(3)
	o := &observer{value: 50}
	l := newCounting(t, c, o, nil)
	var arrive func()
	c.Fault = func(call string, effect func()) error {
		if call != "update scale" {
			effect()
			return nil
		}
		arrive = effect
		return errors.New("connection reset")
	}
	_, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrUncertain)
	c.Fault = nil
	o.value = 5
	require.False(t, tick(t, l).Settled)
	arrive()
	require.EqualValues(t, 4, c.Replicas("llama"))

	l = newCounting(t, c, o, nil) // a restart in between changes nothing
	require.True(t, tick(t, l).Settled)
	require.Equal(t, count{Decided: 3, Applied: 1, At: start.Unix()}, counted(t, c))
}

func TestLoopNothingIsWrittenUnstored(t *testing.T) {
	c := newCluster(3)
	l := newCounting(t, c, &observer{value: 50}, nil)
	c.Fault = func(call string, effect func()) error {
		if call == "create state" {
			return apierrors.NewInternalError(errors.New("etcd"))
		}
		effect()
		return nil
	}
	_, err := l.Tick(context.Background())
	require.ErrorContains(t, err, "store state")
	require.Zero(t, c.Updates)
	c.Fault = nil
	require.Equal(t, k8s.Written, tick(t, l).Write)
	require.Equal(t, 1, counted(t, c).Decided, "what was not stored is as if it had not been")
}

// While the state cannot be loaded nothing can be decided, and neither the target nor its pods are asked.
func TestLoopWithoutItsStateAsksNobody(t *testing.T) {
	c := newCluster(3)
	var calls []string
	c.Fault = func(call string, _ func()) error {
		calls = append(calls, call)
		return apierrors.NewInternalError(errors.New("etcd"))
	}
	_, err := newCounting(t, c, &observer{value: 50}, nil).Tick(context.Background())
	require.ErrorContains(t, err, "load state")
	require.Equal(t, []string{"get state"}, calls)
}

func TestLoopObservationFails(t *testing.T) {
	c := newCluster(3)
	o := &observer{value: 50, err: errors.New("lister")}
	l := newCounting(t, c, o, nil)
	out, err := l.Tick(context.Background())
	require.ErrorContains(t, err, "lister")
	require.False(t, out.Decided)
	o.err, o.none = nil, true
	require.False(t, func() bool { o := tick(t, l); return o.Decision.Acts() }())

	delete(c.Targets, "llama")
	_, err = l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrNotFound)
	require.Zero(t, c.Updates)
}

func TestLoopRefusedState(t *testing.T) {
	good, err := json.Marshal(policy(t))
	require.NoError(t, err)
	for name, stored := range map[string]string{
		"damaged":      `{"kind":"k8s.loop","version":1,"pol`,
		"newer":        `{"kind":"k8s.loop","version":2,"policy":{}}`,
		"no version":   `{"kind":"k8s.loop","policy":{}}`,
		"no policy":    `{"kind":"k8s.loop","version":1}`,
		"other policy": `{"kind":"k8s.loop","version":1,"policy":{"kind":"cron","version":1,"state":{}}}`,
		"newer policy": `{"kind":"k8s.loop","version":1,"policy":{"kind":"realtime","version":99,"state":{}}}`,
		"bare, other":  `{"kind":"cron","version":1,"state":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c, clock := newCluster(3), &clock{now: start}
			store := c.store(t)
			require.NoError(t, store.Save(context.Background(), "state", nil, []byte(stored)))
			c.Saves = 0
			r := record.NewFakeRecorder(100)
			l := newLoop(t, c, &observer{value: 50}, clock, func(config *k8s.LoopConfig) { config.Recorder, config.EveryState = r, true })
			for range 10 {
				out, err := l.Tick(context.Background())
				var refused *scaling.StateError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, scaling.Unknown, out.Decision.Verdict)
				require.Equal(t, scaling.StateRefused, out.Decision.Code())
				require.Equal(t, k8s.ReasonStateRefused, conditionsOf(&out)[k8s.ConditionReady].Reason)
				clock.pass()
			}
			require.Len(t, told(r), 2)
			require.Zero(t, c.Updates)
			require.Zero(t, c.Saves)
			require.Equal(t, stored, c.ConfigMap.Data["state"], "kept as it is")

			// Mended by hand, with the bare state of a policy, it goes on.
			c.ConfigMap.Data["state"] = string(good)
			require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)

			// Removed by hand, it starts afresh.
			c.ConfigMap.Data["state"] = stored
			c.ConfigMap.ResourceVersion = c.NextVersion()
			clock.pass()
			_, err := l.Tick(context.Background())
			require.ErrorIs(t, err, k8s.ErrStateConflict)
			_, err = l.Tick(context.Background())
			require.Error(t, err)
			c.ConfigMap.Data["state"] = ""
			c.ConfigMap.ResourceVersion = c.NextVersion()
			require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
		})
	}
}

func TestLoopTwoControllers(t *testing.T) {
	c := newCluster(3)
	o := &observer{value: 5}
	a, b := newCounting(t, c, o, nil), newCounting(t, c, o, nil)
	tick(t, a)
	tick(t, b)
	o.value = 50
	_, err := a.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrStateConflict)
	require.Zero(t, c.Updates, "who does not know the state does not write")
	require.Equal(t, k8s.Written, tick(t, a).Write, "and reads it before the next round")
	require.Equal(t, 3, counted(t, c).Decided)
}

func TestLoopDryRun(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	o := &observer{value: 50}
	r := record.NewFakeRecorder(100)
	actual := newLoop(t, c, &observer{value: 5}, clock, nil)
	tick(t, actual)
	before := c.ConfigMap.Data["state"]
	dry := newLoop(t, c, o, clock, func(config *k8s.LoopConfig) { config.DryRun, config.Recorder = true, r })
	would := 0
	for range 16 { // 4 minutes
		out := tick(t, dry)
		if out.Write == k8s.Would {
			would++
		}
		clock.pass()
	}
	require.Equal(t, 4, would, "at the pace of the cooldown")
	require.Zero(t, c.Updates)
	require.Equal(t, before, c.ConfigMap.Data["state"], "the real state is as it was")
	require.NotEmpty(t, c.ConfigMap.Data["state.dry-run"])
	require.Contains(t, told(r)[0], "Held")

	// The real loop has no cooldown to wait for: the load has to last for its window, and no longer.
	l := newLoop(t, c, o, clock, nil)
	tick(t, l)
	clock.pass()
	require.Equal(t, k8s.Written, tick(t, l).Write)
}

// full is a store that has no room.
type full struct{ k8s.Store }

func (full) Save(context.Context, string, []byte, []byte) error {
	return &k8s.SizeError{Where: "ConfigMap default/state", Size: 2, Limit: 1}
}

// A dry run without room for its state keeps its pace, and says that it is not stored; the real loop writes nothing.
func TestLoopDryRunWithoutRoom(t *testing.T) {
	for _, dry := range []bool{true, false} {
		c, clock := newCluster(3), &clock{now: start}
		l := newLoop(t, c, &observer{value: 50}, clock, func(config *k8s.LoopConfig) {
			config.DryRun, config.Store = dry, full{config.Store}
		})
		would := 0
		for range 16 { // 4 minutes
			out, err := l.Tick(context.Background())
			var size *k8s.SizeError
			require.ErrorAs(t, err, &size)
			if out.Write == k8s.Would {
				would++
			}
			clock.pass()
		}
		require.Zero(t, c.Updates)
		require.Equal(t, map[bool]int{true: 4}[dry], would)
	}
}

func TestLoopWithoutObserver(t *testing.T) {
	c := newCluster(0)
	l := newLoop(t, c, nil, &clock{now: start}, func(config *k8s.LoopConfig) { config.Observer = nil })
	out := tick(t, l)
	require.Equal(t, scaling.BelowMin, out.Decision.Code(), "bounds need no metrics")
	require.EqualValues(t, 1, c.Replicas("llama"))
}

func TestLoopRun(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var waits []time.Duration
	var log bytes.Buffer
	l := newCounting(t, c, &observer{value: 5}, func(config *k8s.LoopConfig) {
		config.Now = clock.read
		config.Interval = 15 * time.Second
		config.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		config.After = clock.fires(&waits, 3, cancel)
	})
	require.NoError(t, l.Run(ctx))
	require.Equal(t, []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second}, waits, "Decision.Next is earlier than the interval")
	require.Contains(t, log.String(), `msg=decided target="Deployment default/llama" verdict=Hold from=3 to=3`)
}

func TestLoopJitterAndLateRounds(t *testing.T) {
	for _, c := range []struct {
		jitter float64
		took   time.Duration
		want   time.Duration
	}{
		{0, 0, 15 * time.Second},
		{0.2, 0, 13500 * time.Millisecond},
		{0, 4 * time.Second, 11 * time.Second},
		{0, time.Minute, time.Second}, // late: at once, but no spinning
	} {
		clock := &clock{now: start}
		ctx, cancel := context.WithCancel(context.Background())
		var got time.Duration
		l := newLoop(t, newCluster(3), &slow{clock, c.took}, clock, func(config *k8s.LoopConfig) {
			config.Jitter = c.jitter
			config.Random = func() float64 { return 0.5 }
			config.After = func(d time.Duration) (<-chan time.Time, func()) {
				got = d
				cancel()
				return nil, func() {}
			}
		})
		require.NoError(t, l.Run(ctx))
		require.Equal(t, c.want, got)
	}
}

// slow is an observer that takes its time.
type slow struct {
	clock *clock
	took  time.Duration
}

func (s *slow) Observe(ctx context.Context, scales []k8s.Scale) (k8s.Observed, error) {
	s.clock.now = s.clock.now.Add(s.took)
	return (&observer{value: 5}).Observe(ctx, scales)
}

func TestNewLoopErrors(t *testing.T) {
	_, err := k8s.NewLoop(k8s.LoopConfig{
		Bounds:   scaling.Bounds{Min: 3, Max: 2},
		Settings: k8s.Settings{Interval: -1, Jitter: 2, Conflicts: -1, EventPeriod: -1},
	})
	for _, field := range []string{"target.kind", "policy", "scales", "store", "interval", "jitter", "conflicts", "eventPeriod", "bounds.max"} {
		require.ErrorContains(t, err, field)
	}
}
