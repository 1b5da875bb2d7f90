package k8s_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

func named(name string) k8s.Target {
	t := target
	t.Name = name
	return t
}

func variants(names ...string) []k8s.Variant {
	all := make([]k8s.Variant, len(names))
	for i, name := range names {
		all[i] = k8s.Variant{Name: name, Target: named(name)}
	}
	return all
}

// replicas is an observer in whose fleets every replica says the same.
type replicas struct {
	kv, queue float64
	silent    string // the fleet whose replicas say nothing
}

func (o *replicas) Observe(_ context.Context, scales []k8s.Scale) (k8s.Observed, error) {
	seen := k8s.Observed{Readings: []scaling.Reading{
		scaling.Exactly("other", 1), scaling.Exactly(saturation.DefaultKV, o.kv), scaling.Exactly(saturation.DefaultQueue, o.queue),
	}}
	for _, s := range scales {
		view := k8s.FleetView{Ready: s.Replicas}
		for n := range s.Replicas {
			ok := s.Target.Name != o.silent
			view.Pods = append(view.Pods, scrape.PodResult{
				Name:   s.Target.Name + "-" + string('a'+n),
				Values: []scrape.PodValue{{OK: true, Value: 1}, {OK: ok, Value: o.kv}, {OK: ok, Value: o.queue}},
			})
		}
		seen.Fleets = append(seen.Fleets, view)
	}
	return seen, nil
}

func newVariantLoop(t *testing.T, c *cluster, g scaling.Group, o k8s.Observer, clock *clock, names []string, change func(*k8s.VariantLoopConfig)) *k8s.VariantLoop {
	t.Helper()
	config := k8s.VariantLoopConfig{
		Variants: variants(names...), Group: g,
		Settings: k8s.Settings{Scales: c.Scales(), Observer: o, Store: c.store(t), Now: clock.read},
	}
	if change != nil {
		change(&config)
	}
	l, err := k8s.NewVariantLoop(config)
	require.NoError(t, err)
	return l
}

func saturated(t *testing.T) *saturation.Group {
	t.Helper()
	g, err := saturation.NewGroup(saturation.GroupConfig{
		Config: saturation.Defaults(), Variants: []saturation.Variant{{Name: "l4", Cost: 5, Max: 8}, {Name: "a100", Cost: 20, Max: 8}},
	})
	require.NoError(t, err)
	return g
}

func TestSaturationVariants(t *testing.T) {
	c, clock := newCluster(2, "l4", "a100"), &clock{now: start}
	o := &replicas{kv: 0.75, queue: 1}
	names := []string{"a100", "l4"}
	l := newVariantLoop(t, c, saturated(t), o, clock, names, nil)
	outcomes, err := l.Tick(context.Background())
	require.NoError(t, err)
	require.Equal(t, scaling.Hold, outcomes[0].Decision.Verdict)
	require.Equal(t, k8s.Written, outcomes[1].Write, outcomes[1].Decision.Explain())
	require.EqualValues(t, 3, c.Replicas("l4"), "the cheapest grows")
	require.EqualValues(t, 2, c.Replicas("a100"))
	require.Len(t, c.Written, 1)

	// Down, once it has been safe for the stabilization, through a new loop half way.
	o.kv = 0.05
	for i := range 30 {
		if i == 10 {
			l = newVariantLoop(t, c, saturated(t), o, clock, names, nil)
		}
		clock.pass()
		_, err = l.Tick(context.Background())
		require.NoError(t, err)
		if c.Replicas("a100") == 1 {
			break
		}
		require.Less(t, i, 22, "the stabilization survives a restart")
	}
	require.EqualValues(t, 1, c.Replicas("a100"), "the dearest shrinks")

	// Replicas that say nothing block a scale-down; a target that is gone is left out of what is decided.
	o.silent = "l4"
	delete(c.Targets, "a100")
	outcomes, err = l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrNotFound)
	require.False(t, outcomes[0].Decided)
	require.Equal(t, scaling.Unknown, outcomes[1].Decision.Verdict)
}

// total asks for a number of replicas, and counts what it is told.
type total struct{ n *int32 }

func (total) Kind() scaling.Kind { return scaling.Kind{Name: "total", Version: 1} }

func (p total) Decide(s count, _ time.Time, obs scaling.Observation) (count, scaling.Decision) {
	s.Decided++
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(*p.n, "Asked", "")
	return s, d
}

func (total) Applied(s count, _ time.Time, from, to int32) count {
	s.Applied += int(to - from)
	return s
}

func fleet(t *testing.T, want *int32, exchanges int32) *hetero.Group {
	t.Helper()
	f, err := hetero.New(hetero.Config{
		Types:         []hetero.Type{{Name: "cheap", Cost: 10, Max: 4}, {Name: "dear", Cost: 20, Max: 10}},
		ExpansionRate: 1,
	})
	require.NoError(t, err)
	v, err := hetero.NewGroup(scaling.New(total{want}), f, hetero.Options{Exchanges: exchanges})
	require.NoError(t, err)
	return v
}

func TestHeteroVariants(t *testing.T) {
	c, clock := newCluster(0, "dear", "cheap"), &clock{now: start}
	want := int32(6)
	names := []string{"dear", "cheap"}
	l := newVariantLoop(t, c, fleet(t, &want, 0), &replicas{}, clock, names, nil)
	_, err := l.Tick(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 4, c.Replicas("cheap"))
	require.EqualValues(t, 2, c.Replicas("dear"))
	require.Contains(t, c.stored(t), `"applied":6`)

	// One write of two is refused: the total is told of what was written.
	want = 9
	c.Targets["cheap"].Spec.Replicas = 3
	c.Touch("cheap")
	c.Fault = refuse("cheap", c)
	outcomes, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrForbidden)
	require.Equal(t, k8s.Written, outcomes[0].Write)
	require.Equal(t, k8s.Refused, outcomes[1].Write)
	require.EqualValues(t, 5, c.Replicas("dear"))
	require.EqualValues(t, 3, c.Replicas("cheap"))
	require.Contains(t, c.stored(t), `"applied":9`, "3 more of dear")

	// A type that cannot be seen leaves the total unknown.
	c.Fault = nil
	delete(c.Targets, "cheap")
	outcomes, err = l.Tick(context.Background())
	require.Error(t, err)
	require.Equal(t, scaling.Unknown, outcomes[0].Decision.Verdict)
	require.False(t, outcomes[1].Decided)
}

// refuse refuses writes that grow a target.
func refuse(name string, c *cluster) func(string, func()) error {
	return func(call string, effect func()) error {
		before := c.Replicas(name)
		version := c.Targets[name].ResourceVersion
		effect()
		if call == "update scale" && c.Replicas(name) > before {
			c.Targets[name].Spec.Replicas, c.Targets[name].ResourceVersion = before, version
			return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, name, errors.New("quota"))
		}
		return nil
	}
}

func TestVariantLoopNoStopWithoutItsStart(t *testing.T) {
	c, clock := newCluster(2, "dear", "cheap"), &clock{now: start}
	want := int32(4)
	l := newVariantLoop(t, c, fleet(t, &want, 1), &replicas{}, clock, []string{"dear", "cheap"}, nil)
	c.Fault = refuse("cheap", c)
	outcomes, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrForbidden)
	require.Equal(t, scaling.Down, outcomes[0].Decision.Verdict)
	require.Equal(t, k8s.NoWrite, outcomes[0].Write)
	require.EqualValues(t, 2, c.Replicas("dear"), "nothing is taken away for what did not come")

	c.Fault = nil
	_, err = l.Tick(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 3, c.Replicas("cheap"))
	require.EqualValues(t, 1, c.Replicas("dear"))
	require.Equal(t, []int32{3, 1}, c.Written[len(c.Written)-2:], "starts come before stops")
}

func TestVariantLoopCrashBetweenWrites(t *testing.T) {
	c, clock := newCluster(0, "dear", "cheap"), &clock{now: start}
	want := int32(6)
	names := []string{"dear", "cheap"}
	l := newVariantLoop(t, c, fleet(t, &want, 0), &replicas{}, clock, names, nil)
	updates := 0
	c.Fault = func(call string, effect func()) error {
		if call == "update scale" {
			if updates++; updates == 2 {
				panic(crash{})
			}
		}
		effect()
		return nil
	}
	require.Panics(t, func() { _, _ = l.Tick(context.Background()) })
	c.Fault = nil
	require.EqualValues(t, 2, c.Replicas("dear"))
	require.EqualValues(t, 0, c.Replicas("cheap"))

	l = newVariantLoop(t, c, fleet(t, &want, 0), &replicas{}, clock, names, nil)
	outcomes, err := l.Tick(context.Background())
	require.NoError(t, err)
	require.True(t, outcomes[0].Settled)
	require.EqualValues(t, 4, c.Replicas("cheap"))
	require.EqualValues(t, 2, c.Replicas("dear"))
	require.Contains(t, c.stored(t), `"applied":6`, "every replica was told of once")
}

// A configuration that is refused: event and metric say so, and what is in force is what is decided by.
func TestVariantLoopConfigRefused(t *testing.T) {
	c, clock, r, m := newCluster(2, "l4", "a100"), &clock{now: start}, record.NewFakeRecorder(100), k8s.NewMetrics()
	o := &replicas{kv: 0.55, queue: 1}
	group := saturated(t)
	l := newVariantLoop(t, c, group, o, clock, []string{"l4", "a100"}, func(config *k8s.VariantLoopConfig) {
		config.Recorder, config.Metrics = r, m
		config.BeforeDecide = func() error {
			now := saturation.Defaults().Thresholds
			now.KVCache = 0.6
			return errors.Join(group.Retune(now), errors.New("ConfigMap default/thresholds: the last good thresholds stay in force"))
		}
	})
	outcomes, err := l.Tick(context.Background())
	require.ErrorContains(t, err, "the last good thresholds stay in force")
	require.Equal(t, scaling.Up, outcomes[0].Decision.Verdict, "0.05 is spare with 0.6")
	require.Contains(t, strings.Join(told(r), "\n"), "Warning ConfigRefused ConfigMap default/thresholds")
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP inferscale_config_refused Whether a configuration is refused and the last good one in force.
# TYPE inferscale_config_refused gauge
inferscale_config_refused{autoscaler="",kind="Deployment",name="a100",namespace="default"} 1
inferscale_config_refused{autoscaler="",kind="Deployment",name="l4",namespace="default"} 1
`), "inferscale_config_refused"))
	l.Close()
	require.Zero(t, testutil.CollectAndCount(m))
}

func TestNewVariantLoopErrors(t *testing.T) {
	_, err := k8s.NewVariantLoop(k8s.VariantLoopConfig{Variants: append(variants("a", "a"), k8s.Variant{})})
	for _, field := range []string{"variants[1].name", "variants[1].target", "variants[2].target.kind", "group", "observer", "scales", "store"} {
		require.ErrorContains(t, err, field)
	}
}

// TestOneObjectInTwoVersions: it would have two masters.
func TestOneObjectInTwoVersions(t *testing.T) {
	both := variants("a", "b")
	both[1].Target = both[0].Target
	both[1].Target.APIVersion = "apps/v1beta1"
	_, err := k8s.NewVariantLoop(k8s.VariantLoopConfig{Variants: both})
	require.ErrorContains(t, err, "variants[1].target")
	require.ErrorContains(t, err, "must be unique, in any version of its API")
}
