package k8s_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/k8stest"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

const waiting = "vllm:num_requests_waiting"

var (
	start  = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	target = k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama"}
)

// A cluster is a k8stest.Cluster of Deployments, "llama" by default.
type cluster struct{ *k8stest.Cluster }

func newCluster(replicas int32, names ...string) *cluster {
	if len(names) == 0 {
		names = []string{target.Name}
	}
	targets := make([]k8s.Target, len(names))
	for i, name := range names {
		targets[i] = named(name)
	}
	return &cluster{k8stest.New(replicas, targets...)}
}

func (c *cluster) store(require.TestingT) k8s.Store { return c.Store() }

// observer is a fleet whose readings are set by hand.
type observer struct {
	value float64
	none  bool
	err   error
}

func (o *observer) Observe(_ context.Context, scales []k8s.Scale) (k8s.Observed, error) {
	seen := k8s.Observed{Fleets: make([]k8s.FleetView, len(scales))}
	for i := range scales {
		seen.Fleets[i].Ready = scales[i].Replicas
	}
	r := scaling.Reading{Metric: waiting}
	if !o.none {
		r = scaling.Exactly(waiting, o.value)
	}
	seen.Readings = []scaling.Reading{r}
	return seen, o.err
}

// policy steps by one, after 30 s above 10 or below 2, with a cooldown of 60 s.
func policy(t require.TestingT) scaling.Policy {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: waiting, High: 10, Low: 2})
	c.Up.Cooldown, c.Up.Window = time.Minute, 30*time.Second
	c.Down.Cooldown, c.Down.Window = time.Minute, 30*time.Second
	s, err := realtime.New(c)
	require.NoError(t, err)
	return scaling.New(s)
}

// clock is a time that stands still until it is moved.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func (c *clock) pass() { c.now = c.now.Add(15 * time.Second) }

// fires is a LoopConfig.After that lets the time that is waited for pass at once, notes it, and ends all with the last of so many.
func (c *clock) fires(waits *[]time.Duration, last int, end func()) func(time.Duration) (<-chan time.Time, func()) {
	return func(d time.Duration) (<-chan time.Time, func()) {
		*waits = append(*waits, d)
		c.now = c.now.Add(d)
		if len(*waits) == last {
			end()
			return nil, func() {}
		}
		fire := make(chan time.Time, 1)
		fire <- c.now
		return fire, func() {}
	}
}

func newLoop(t require.TestingT, c *cluster, o k8s.Observer, clock *clock, change func(*k8s.LoopConfig)) *k8s.Loop {
	config := k8s.LoopConfig{
		Target: target, Policy: policy(t), Bounds: scaling.Bounds{Min: 1, Max: 8},
		Settings: k8s.Settings{Scales: c.Scales(), Observer: o, Store: c.store(t), Now: clock.read},
	}
	if change != nil {
		change(&config)
	}
	l, err := k8s.NewLoop(config)
	require.NoError(t, err)
	return l
}

// stored returns what the state says of the policy alone.
func (c *cluster) stored(t require.TestingT) string {
	if c.ConfigMap == nil {
		return ""
	}
	var e struct {
		State struct {
			Group json.RawMessage `json:"group"`
		} `json:"state"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.ConfigMap.Data["state"]), &e))
	return string(e.State.Group)
}

func tick(t *testing.T, l *k8s.Loop) k8s.Outcome {
	t.Helper()
	o, err := l.Tick(context.Background())
	require.NoError(t, err)
	return o
}
