package saturation_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

func singleConfig(c saturation.Config) saturation.SingleConfig {
	return saturation.SingleConfig{
		Config: c, Bounds: scaling.Bounds{Min: 1, Max: 8}, KV: saturation.DefaultKV, Queue: saturation.DefaultQueue,
	}
}

// TestRegressionTheReasonNamesWhatMadeTheChange: it had the rank of the variant only, as in "Up 3 -> 4: Alone ... price=0".
func TestRegressionTheReasonNamesWhatMadeTheChange(t *testing.T) {
	up := []scaling.Reading{scaling.Exactly(saturation.DefaultKV, 0.72), scaling.Exactly(saturation.DefaultQueue, 1)}
	down := []scaling.Reading{scaling.Exactly(saturation.DefaultKV, 0.2), scaling.Exactly(saturation.DefaultQueue, 1)}
	full := []scaling.Reading{scaling.Exactly(saturation.DefaultKV, 1), scaling.Exactly(saturation.DefaultQueue, 1)}
	const of = " vllm:kv_cache_usage_perc "
	for _, l := range []struct {
		change   func(c *saturation.Config)
		readings []scaling.Reading
		want     string
	}{
		{nil, up, "Up 3 -> 4: ShortKV" + of + "spare=0.08 < trigger=0.1, saturated=0, replicas=3; Alone" + of + "price=0"},
		{func(c *saturation.Config) { *c = saturation.WVA() }, up, "Up 3 -> 4: ShortKV" + of + "spare=0.08 < trigger=0.1, saturated=0, replicas=3; Alone" + of + "price=0"},
		// 3 replicas at 1 need 3/0.7 = 4.29: ShortBoth asks for the first of two
		{func(c *saturation.Config) { c.Step = saturation.Deficit }, full, "Up 3 -> 5: ShortBoth" + of + "kv=0 < kvTrigger=0.1, queue=0 < queueTrigger=3; Deficient lacking=1.28571 > coming=0; Alone" + of + "price=0"},
		{nil, down, "Hold at 3: Spare kvAfter=0.3 <= kvLimit=0.7, queueAfter=1.5 <= queueLimit=2; Settling held=0s < window=5m"},
		{func(c *saturation.Config) { c.DownStabilization = 0 }, down, "Down 3 -> 2: Spare kvAfter=0.3 <= kvLimit=0.7, queueAfter=1.5 <= queueLimit=2; Alone" + of + "price=0"},
	} {
		c := singleConfig(saturation.Defaults())
		if l.change != nil {
			l.change(&c.Config)
		}
		single, err := saturation.NewSingle(c)
		require.NoError(t, err)
		d := single.Decide(start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: l.readings})
		require.Equal(t, l.want, d.Reason())
	}
}

// TestSingleSteps goes through single decisions on averages, one line a case.
func TestSingleSteps(t *testing.T) {
	c := saturation.Defaults()
	c.DownStabilization = 0
	kv := func(lower, upper float64) scaling.Reading {
		return scaling.Reading{Metric: saturation.DefaultKV, Lower: lower, Upper: upper, Values: 1}
	}
	queue := func(lower, upper float64) scaling.Reading {
		return scaling.Reading{Metric: saturation.DefaultQueue, Lower: lower, Upper: upper, Values: 1}
	}
	for _, l := range []struct {
		name        string
		spec, ready int32
		readings    []scaling.Reading
		want        string
	}{
		{"enough", 3, 3, []scaling.Reading{kv(0.6, 0.6), queue(1, 1)}, "Hold 3 FullKV"},
		{"short", 3, 3, []scaling.Reading{kv(0.71, 0.71), queue(1, 1)}, "Up 4 Alone"},
		{"saturated", 3, 3, []scaling.Reading{kv(0.1, 0.1), queue(5, 5)}, "Up 4 Alone"},
		{"spare", 3, 3, []scaling.Reading{kv(0.2, 0.2), queue(1, 1)}, "Down 2 Alone"},
		{"no room without one", 3, 3, []scaling.Reading{kv(0.2, 0.2), queue(1.5, 1.5)}, "Hold 3 FullQueue"},
		{"up looks at the lower end", 3, 3, []scaling.Reading{kv(0.5, 0.9), queue(1, 1)}, "Hold 3 FullKV"},
		{"down looks at the upper end", 3, 3, []scaling.Reading{kv(0.1, 0.6), queue(1, 1)}, "Hold 3 FullKV"},
		{"up with one metric", 3, 3, []scaling.Reading{kv(0.9, 0.9)}, "Up 4 Alone"},
		{"no down with one metric", 3, 3, []scaling.Reading{kv(0.1, 0.1)}, "Hold 3 Missing"},
		{"no metric", 3, 3, nil, "Unknown 3 NoData"},
		{"a metric that is none", 3, 3, []scaling.Reading{kv(math.NaN(), 1), queue(-1, 0)}, "Unknown 3 NoData"},
		{"one is not ready", 3, 2, []scaling.Reading{kv(0.9, 0.9), queue(9, 9)}, "Hold 3 Starting"},
		{"none is ready", 3, 0, []scaling.Reading{kv(0.9, 0.9), queue(9, 9)}, "Unknown 3 Starting"},
		{"the last one", 1, 1, []scaling.Reading{kv(0, 0), queue(0, 0)}, "Hold 1 TooFew"},
		{"out of bounds", 12, 12, []scaling.Reading{kv(0.9, 0.9), queue(9, 9)}, "Down 8 AboveMax"},
	} {
		t.Run(l.name, func(t *testing.T) {
			single, err := saturation.NewSingle(singleConfig(c))
			require.NoError(t, err)
			d := single.Decide(start, scaling.Observation{SpecReplicas: l.spec, ReadyReplicas: l.ready, Readings: l.readings})
			require.NoError(t, scalingtest.Explained(&d), d.Explain())
			require.Equal(t, l.want, fmt.Sprint(d.Verdict, " ", d.Replicas, " ", d.Code()), d.Explain())
		})
	}
}

// TestSingleProperties has the properties that a package of its own checks of any policy, and that more load never
// asks for less (Monotone) in mode Default; the literal rule is not monotone, see TestLiteralIsNotMonotone.
func TestSingleProperties(t *testing.T) {
	scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
		c := singleConfig(drawConfig(t))
		opts := scalingtest.Options{
			Bounds: c.Bounds, Memory: 10 * time.Minute, MaxState: 300, Refused: true,
			Monotone: c.Mode == saturation.Default,
			Metrics: []scalingtest.Metric{
				{Name: c.KV, Low: (c.KVCache - c.KVSpare) / 2, High: c.KVCache - c.KVSpare},
				{Name: c.Queue, Low: (c.QueueLength - c.QueueSpare) / 2, High: c.QueueLength - c.QueueSpare},
			},
		}
		if c.Mode == saturation.Literal {
			opts.Skip = []string{"ClockBack"} // the literal rule knows no time
		}
		return func() scaling.Policy {
			p, err := saturation.NewSingle(c)
			require.NoError(t, err)
			return p
		}, opts
	})
}

// TestLiteralSingleWithoutAMetricIsExplained: in mode Literal a metric without a sample held with the reason that the
// other one is at its limit, which it was not, and two with the reason that there is enough to spare.
func TestLiteralSingleWithoutAMetricIsExplained(t *testing.T) {
	c := singleConfig(saturation.WVA())
	for _, reading := range []scaling.Reading{scaling.Exactly(c.KV, 0.1), scaling.Exactly(c.Queue, 0.5)} {
		single, err := saturation.NewSingle(c)
		require.NoError(t, err)
		scalingtest.Steps(t, single, 3, scalingtest.At(0, "Hold Missing 3", reading), scalingtest.At(time.Second, "Unknown NoData 3"))
	}
}

// TestSingleAgreesWithModel: replicas that all carry the average are decided as the Model decides on them, through
// random runs with restarts.
func TestSingleAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		policy, err := saturation.NewSingle(singleConfig(c))
		require.NoError(t, err)
		model := modelOf(t, c)
		spec := rapid.Int32Range(1, 8).Draw(t, "spec")
		now := start
		for range rapid.IntRange(1, 20).Draw(t, "ticks") {
			now = now.Add(drawSeconds(t, -5, 60, "step"))
			ready := max(1, spec-rapid.Int32Range(0, 1).Draw(t, "not ready"))
			r := drawReplica(t, "a", 0, rapid.IntRange(0, 3).Draw(t, "mood"))
			d := policy.Decide(now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: ready, Readings: []scaling.Reading{
				scaling.Exactly(saturation.DefaultKV, r.KV), scaling.Exactly(saturation.DefaultQueue, r.Queue),
			}})
			require.NoError(t, scalingtest.Explained(&d), d.Explain())
			p := model.Decide(now, same("a", int(ready), r.KV, r.Queue), []saturation.Variant{
				{Name: "a", Min: 1, Max: 8, Current: spec, Pending: spec - ready},
			})
			want := &p.Targets[0].Decision
			if c.Mode == saturation.Default {
				require.Equal(t, want.Verdict, d.Verdict, "%s\n%s", p.Explain(), d.Explain())
				require.Equal(t, want.Replicas, d.Replicas, "%s\n%s", p.Explain(), d.Explain())
				require.Equal(t, want.Code(), d.Code(), "%s\n%s", p.Explain(), d.Explain())
			} else if d.Acts() {
				require.NotEqual(t, int64(want.From-want.Replicas)*int64(d.From-d.Replicas), int64(-1), "opposite directions")
			}
			data, err := policy.MarshalJSON()
			require.NoError(t, err)
			policy, err = saturation.NewSingle(singleConfig(c))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, policy))
			if d.Acts() && rapid.Bool().Draw(t, "carried out") {
				policy.Applied(now, spec, d.Replicas)
				model.Applied(now, spec, d.Replicas)
				spec = d.Replicas
			}
		}
	})
}

func TestSingleRefusesForeignState(t *testing.T) {
	single, err := saturation.NewSingle(singleConfig(saturation.Defaults()))
	require.NoError(t, err)
	require.ErrorIs(t, json.Unmarshal([]byte(`{"kind":"saturation","version":9,"state":{}}`), single), scaling.ErrNewerState)
	d := single.Decide(start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3})
	require.Equal(t, scaling.Unknown, d.Verdict)
	require.Equal(t, scaling.StateRefused, d.Code())
}

func BenchmarkSingle(b *testing.B) {
	single, err := saturation.NewSingle(singleConfig(saturation.Defaults()))
	require.NoError(b, err)
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
		scaling.Exactly(saturation.DefaultKV, 0.5), scaling.Exactly(saturation.DefaultQueue, 1),
	}}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		d := single.Decide(now, obs)
		if d.Verdict != scaling.Hold {
			b.Fatal(d.Reason())
		}
	}
}

// TestRegressionAMisspeltMetricIsTold: the decision was Unknown for ever, and nothing said that a reading has another name.
func TestRegressionAMisspeltMetricIsTold(t *testing.T) {
	c := saturation.SingleConfig{Config: saturation.Defaults(), Bounds: scaling.Bounds{Min: 1, Max: 9}, KV: "kv", Queue: "queue"}
	single, err := saturation.NewSingle(c)
	require.NoError(t, err)
	group := scaling.GroupOf(single)
	of := func(readings ...scaling.Reading) scaling.GroupObservation {
		obs := scaling.OneTarget(2, readings...)
		obs.Targets[0].Name, obs.Targets[0].SpecReplicas = "a", 2
		return obs
	}
	variants, err := saturation.NewGroup(saturation.GroupConfig{Config: c.Config, Variants: []saturation.Variant{{Name: "a", Cost: 1}}, KV: "kv", Queue: "queue"})
	require.NoError(t, err)
	for name, g := range map[string]scaling.Group{"single": group, "group": variants} {
		d := g.Decide(start, of(scaling.Exactly("kv_cache", 0.9), scaling.Exactly("queued", 7)))
		require.Equal(t, scaling.Unknown, d.Total.Verdict, name)
		for _, one := range []*scaling.Decision{&d.Total, &d.Targets[0]} {
			require.Contains(t, one.Reason(), "; Unmatched kv_cache; Unmatched queued", name)
		}
		d = g.Decide(start, of(scaling.Exactly("kv_cache", 0.9), scaling.Reading{Metric: "queue", Lower: math.NaN(), Upper: math.NaN()}))
		require.Equal(t, scaling.Unknown, d.Total.Verdict, name)
		require.NotContains(t, d.Total.Reason(), "Unmatched", name)
	}
}

// TestRegressionStuckPodsAreNoSpareCapacity: four replicas serve, all of them saturated, and four fit on no node. The average over all
// eight was taken for the load of each that serves, and a replica was removed.
func TestRegressionStuckPodsAreNoSpareCapacity(t *testing.T) {
	s, err := saturation.NewSingle(saturation.SingleConfig{Config: saturation.Defaults(), Bounds: scaling.Bounds{Min: 1, Max: 8}, KV: "kv", Queue: "queue"})
	require.NoError(t, err)
	stuck := scaling.Missing{NotReady: 4, Unschedulable: 4, Stuck: 4}
	now := time.Unix(1_800_000_000, 0)
	for range 200 {
		d := s.Decide(now, scaling.Observation{SpecReplicas: 8, ReadyReplicas: 4, Readings: []scaling.Reading{
			scaling.FromPods("kv", []float64{.95, .95, .95, .95}, stuck, .8),
			scaling.FromPods("queue", []float64{1, 1, 1, 1}, stuck, 5),
		}})
		require.NotEqual(t, scaling.Down, d.Verdict, "%s", d.Explain())
		now = now.Add(15 * time.Second)
	}
}

// TestStuckPodsDoNotKeepAnIdleFleet: replicas that serve and are idle are removed, however many others are stuck.
func TestStuckPodsDoNotKeepAnIdleFleet(t *testing.T) {
	s, err := saturation.NewSingle(saturation.SingleConfig{Config: saturation.Defaults(), Bounds: scaling.Bounds{Min: 1, Max: 8}, KV: "kv", Queue: "queue"})
	require.NoError(t, err)
	stuck := scaling.Missing{NotReady: 6, Unschedulable: 6, Stuck: 6}
	now := time.Unix(1_800_000_000, 0)
	down := false
	for range 200 {
		d := s.Decide(now, scaling.Observation{SpecReplicas: 8, ReadyReplicas: 2, Readings: []scaling.Reading{
			scaling.FromPods("kv", []float64{.05, .05}, stuck, .8), scaling.FromPods("queue", []float64{0, 0}, stuck, 5),
		}})
		down = down || d.Verdict == scaling.Down
		now = now.Add(15 * time.Second)
	}
	require.True(t, down)
}
