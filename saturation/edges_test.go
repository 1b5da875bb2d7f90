package saturation_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// TestPeaksOfEqualLoads: the first by variant and pod, whatever the order of the rows, saturated or not; and the first
// that is lost is named with its variant.
func TestPeaksOfEqualLoads(t *testing.T) {
	byDefault, _ := both(t)
	for _, load := range []saturation.Replica{{KV: 0.5, Queue: 2}, {KV: 0.9, Queue: 9}} {
		var replicas []saturation.Replica
		for _, name := range []string{"b", "a"} {
			for _, pod := range []string{"2", "1", "3"} {
				replicas = append(replicas, saturation.Replica{Variant: name, Pod: name + pod, KV: load.KV, Queue: load.Queue})
			}
		}
		replicas = append(replicas, saturation.Replica{Variant: "b", Pod: "b5", KV: math.NaN()}, saturation.Replica{Variant: "b", Pod: "b4", KV: math.NaN()})
		a := analyze(byDefault, replicas)
		require.Equal(t, saturation.Peak{Pod: "a1", Variant: "a", Load: load.KV}, a.PeakKV)
		require.Equal(t, saturation.Peak{Pod: "a1", Variant: "a", Load: load.Queue}, a.PeakQueue)
		require.Equal(t, saturation.Peak{Pod: "b4", Variant: "b"}, a.Lost)
		a = analyze(byDefault, append(replicas, saturation.Replica{Variant: "a", Pod: "a9", KV: math.NaN()}))
		require.Equal(t, saturation.Peak{Pod: "a9", Variant: "a"}, a.Lost)
	}
}

// TestOneReplicaLeavesNothingBehind: where there is no other one, there is no load without it.
func TestOneReplicaLeavesNothingBehind(t *testing.T) {
	byDefault, literal := both(t)
	for _, s := range []saturation.Scaler{byDefault, literal} {
		a := analyze(s, same("a", 1, 0.5, 2))
		require.Zero(t, a.AfterKV)
		require.Zero(t, a.AfterQueue)
	}
}

// TestTheLargestNumberIsALoad: of the cache and of the queue; what is infinite is none.
func TestTheLargestNumberIsALoad(t *testing.T) {
	byDefault, _ := both(t)
	for _, r := range []saturation.Replica{{KV: math.MaxFloat64}, {Queue: math.MaxFloat64}} {
		require.Equal(t, 1, analyze(byDefault, []saturation.Replica{r}).Saturated)
	}
	for _, r := range []saturation.Replica{{KV: math.Inf(1)}, {Queue: math.Inf(1)}} {
		require.Equal(t, 1, analyze(byDefault, []saturation.Replica{r}).Missing)
	}
}

// TestLimitsOfThresholds: the least threshold is a billionth, the highest of the cache is all of it, and a trigger of -0
// is that of 0.
func TestLimitsOfThresholds(t *testing.T) {
	c := saturation.Defaults()
	c.KVCache, c.KVSpare, c.QueueLength, c.QueueSpare = 1e-9, 0, 1e-9, 0
	require.NoError(t, c.Validate())
	c.KVCache = 1
	require.NoError(t, c.Validate())
	c.KVCache = 1.5
	require.ErrorContains(t, c.Validate(), "kvCacheThreshold: 1.5")
	c.KVCache = 1
	var rules []saturation.Fingerprint
	for _, zero := range []float64{0, math.Copysign(0, -1)} {
		c.KVSpare = zero
		s := build(t, c)
		var a saturation.Analysis
		var p saturation.Plan
		s.Analyze(&a, nil)
		rules = append(rules, s.Decide(saturation.State{}, start, &a, nil, &p).Rules)
	}
	require.Equal(t, rules[0], rules[1])
}

// TestLimitsOfAVariant: at most one replica is a bound like any other; a target below zero is none.
func TestLimitsOfAVariant(t *testing.T) {
	c := saturation.Defaults()
	v := saturation.Variant{Name: "a", Cost: 1, Max: 1, Current: 1}
	require.NoError(t, v.Validate())
	p := decideOnce(t, c, scene{same("a", 1, 0.9, 9), []saturation.Variant{v}})
	require.Equal(t, saturation.AtMax, p.Targets[0].Decision.Code())
	v.Desired = saturation.CountOf(-1)
	require.ErrorContains(t, v.Validate(), "desired: -1")
	p = decideOnce(t, c, scene{same("a", 1, 0.9, 9), []saturation.Variant{v}})
	require.Equal(t, saturation.Invalid, p.Targets[0].Decision.Code())
	for _, n := range []int32{0, 5} {
		v.Desired = saturation.CountOf(n)
		require.NoError(t, v.Validate())
	}
	v = saturation.Variant{Name: "a", Min: 3, Max: 2, Current: 3}
	require.Error(t, v.Validate())
	p = decideOnce(t, c, scene{same("a", 3, 0.9, 9), []saturation.Variant{v}})
	require.Equal(t, saturation.Invalid, p.Targets[0].Decision.Code())
	v = saturation.Variant{Name: "a", Cost: 1e100, Capacity: 1e100, Current: 3}
	require.NoError(t, v.Validate())
	v.Capacity = 1e-100
	require.NoError(t, v.Validate())
	require.NoError(t, json.Unmarshal([]byte("null"), &v.Desired))
	require.Equal(t, saturation.Count{}, v.Desired)
	text, err := json.Marshal([]saturation.Variant{{Name: "a"}, {Name: "b", Desired: saturation.CountOf(0)}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"name":"a","cost":0,"current":0},{"name":"b","cost":0,"current":0,"desired":0}]`, string(text))
}

// TestMetricsOfTheirOwn: the two readings have names, and not the same.
func TestMetricsOfTheirOwn(t *testing.T) {
	group := saturation.GroupConfig{Config: saturation.Defaults(), Variants: []saturation.Variant{{Name: "a"}}, KV: "x", Queue: "x"}
	_, err := saturation.NewGroup(group)
	require.EqualError(t, err, `queue: "x": must not be kv`)
	single := singleConfig(saturation.Defaults())
	single.KV, single.Queue = "", ""
	require.EqualError(t, single.Validate(), "kv: \"\": must not be empty\nqueue: \"\": must not be empty")
}

// TestAGroupKeepsNothingOfTheCaller: variants that are changed after it was made are not its own.
func TestAGroupKeepsNothingOfTheCaller(t *testing.T) {
	variants := []saturation.Variant{{Name: "a", Cost: 1}}
	g := groupOf(t, saturation.Defaults(), variants...)
	variants[0].Max = 1
	d := g.Decide(start, observed(scene{same("a", 2, 0.9, 9), []saturation.Variant{{Name: "a", Current: 2}}}))
	require.EqualValues(t, 3, d.Targets[0].Replicas)
}

// TestATransitionIsNoTimeOfSafety: while a variant is on its way nothing is safe, however idle the model is, and the wait
// for a scale-down begins when it has arrived.
func TestATransitionIsNoTimeOfSafety(t *testing.T) {
	m := modelOf(t, saturation.Defaults())
	code := func(at time.Duration, reporting int) scaling.Code {
		p := m.Decide(start.Add(at), same("a", reporting, 0.1, 0), []saturation.Variant{{Name: "a", Cost: 1, Current: 4}})
		return p.Targets[0].Decision.Code()
	}
	require.Equal(t, saturation.Starting, code(0, 3))
	require.Equal(t, saturation.Settling, code(299*time.Second, 4))
	require.Equal(t, saturation.Settling, code(598*time.Second, 4))
	p := m.Decide(start.Add(598*time.Second), same("a", 4, 0.1, 0), []saturation.Variant{{Name: "a", Cost: 1, Current: 4}})
	require.Equal(t, start.Add(599*time.Second), p.Model().Next.UTC())
	require.Equal(t, saturation.Alone, code(599*time.Second, 4))
}

// TestAppliedBeginsTheWaitAnew: also where the next decision sees the count of before, of a Model and of a Group; a report
// of no change does not, nor does a report count as a decision.
func TestAppliedBeginsTheWaitAnew(t *testing.T) {
	g := groupOf(t, saturation.Defaults(), saturation.Variant{Name: "a", Cost: 1})
	obs := observed(scene{same("a", 4, 0.1, 0), []saturation.Variant{{Name: "a", Current: 4}}})
	code := func(at time.Duration) scaling.Code {
		d := g.Decide(start.Add(at), obs)
		return d.Targets[0].Code()
	}
	require.Equal(t, saturation.Settling, code(0))
	g.Applied(start.Add(100*time.Second), []int32{4}, []int32{4})
	require.Equal(t, saturation.Alone, code(300*time.Second))
	g.Applied(start.Add(310*time.Second), []int32{4}, []int32{3})
	require.Equal(t, saturation.Settling, code(305*time.Second), "no step back of the clock: nothing was decided later")
	require.Equal(t, saturation.Settling, code(604*time.Second))
	require.Equal(t, saturation.Alone, code(605*time.Second))
}

// TestATimeoutBelowAMillisecondIsRefused: times are in milliseconds, so it would be none, which blocks for ever.
func TestATimeoutBelowAMillisecondIsRefused(t *testing.T) {
	for timeout, wrong := range map[time.Duration]bool{0: false, 1: true, time.Millisecond - 1: true, time.Millisecond: false} {
		c := saturation.Defaults()
		c.TransitionTimeout = timeout
		_, err := saturation.New(c)
		require.Equal(t, wrong, err != nil, timeout)
	}
}

// TestLimitsOfATimeout: none blocks for ever, one of a millisecond for that; and a millisecond back is a step back.
func TestLimitsOfATimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]scaling.Code{0: saturation.Starting, time.Millisecond: saturation.Settling} {
		c := saturation.Defaults()
		c.TransitionTimeout = timeout
		m := modelOf(t, c)
		v := []saturation.Variant{{Name: "a", Cost: 1, Current: 4}}
		code := func(at time.Duration) scaling.Code {
			return m.Decide(start.Add(at), same("a", 3, 0.1, 0), v).Targets[0].Decision.Code()
		}
		require.Equal(t, saturation.Starting, code(0))
		require.Equal(t, timeout > 0, !m.Decide(start, same("a", 3, 0.1, 0), v).Targets[0].Decision.Next.IsZero())
		require.Equal(t, want, code(time.Hour))
		d := m.Decide(start.Add(time.Hour-time.Millisecond), same("a", 3, 0.1, 0), v).Model()
		require.Equal(t, scaling.ClockBack, d.Steps()[0].Code)
	}
}

// TestStatesThatNobodyWrote: times after the last decision, and variants that are not in order, each in words.
func TestStatesThatNobodyWrote(t *testing.T) {
	at := func(milli int64) scaling.Stamp { return scaling.Stamp{Set: true, Milli: milli} }
	for want, s := range map[string]saturation.State{
		"safeSince: must be a time up to seen":             {Seen: at(1), SafeSince: at(2)},
		"transitions[0].since: must be a time up to seen":  {Transitions: []saturation.Transition{{Variant: "a", Since: at(2)}}},
		"transitions[0].since: must be set":                {Seen: at(1), Transitions: []saturation.Transition{{Variant: "a"}}},
		`transitions[1].variant: "a": must come after "a"`: {Seen: at(1), Transitions: []saturation.Transition{{Variant: "a", Since: at(1)}, {Variant: "a", Since: at(1)}}},
		`transitions[2].variant: "b": must come after "c"`: {Seen: at(1), Transitions: []saturation.Transition{{Variant: "a", Since: at(1)}, {Variant: "c", Since: at(1)}, {Variant: "b", Since: at(1)}}},
		"transitions[1].since: must be a time up to seen":  {Seen: at(1), Transitions: []saturation.Transition{{Variant: "a", Since: at(1)}, {Variant: "b", Since: at(2)}}},
	} {
		require.EqualError(t, s.Validate(), want)
	}
	require.NoError(t, saturation.State{Seen: at(1), SafeSince: at(1), Transitions: []saturation.Transition{{Variant: "a", Since: at(1)}, {Variant: "b", Since: at(1)}}}.Validate())
}

// TestAStepBackBeforeAReportIsOne: it is turned back once.
func TestAStepBackBeforeAReportIsOne(t *testing.T) {
	m := modelOf(t, saturation.Defaults())
	v := []saturation.Variant{{Name: "a", Cost: 1, Current: 4}}
	m.Decide(start.Add(time.Millisecond), same("a", 3, 0.1, 0), v)
	m.Applied(start, 4, 3)
	d := m.Decide(start, same("a", 3, 0.1, 0), v).Model()
	require.NotEqual(t, scaling.ClockBack, d.Steps()[0].Code)
	require.NotEqual(t, saturation.SetAside, m.Decide(start.Add(saturation.Defaults().TransitionTimeout-time.Millisecond), same("a", 3, 0.1, 0), v).Targets[0].Decision.Code())
}

// TestLiteralNeedsNoReport: in mode Literal nothing is remembered.
func TestLiteralNeedsNoReport(t *testing.T) {
	s := build(t, saturation.WVA())
	before := saturation.State{Seen: scaling.StampOf(start.Add(time.Hour)), SafeSince: scaling.StampOf(start)}
	require.Equal(t, before, saturation.Scaler{}.Applied(before, start, 3, 4), "nor does what was not configured")
	require.Equal(t, before, s.Applied(before, start, 3, 4))
	s = build(t, saturation.Defaults())
	require.Equal(t, before, s.Applied(before, start, 4, 4))
}

// TestTheLeastLoadThatIsSaturated: whatever the threshold, it is the least one that the threshold does not exceed.
func TestTheLeastLoadThatIsSaturated(t *testing.T) {
	for i := range 500 {
		c := saturation.Defaults()
		c.KVCache, c.KVSpare = float64(i+1)/500, 0
		s := build(t, c)
		load := c.KVCache * (1 - scaling.Noise)
		for range 20 {
			load = math.Nextafter(load, 0)
		}
		for range 40 {
			require.Equal(t, !scaling.Exceeds(c.KVCache, load), s.IsSaturated(saturation.Replica{KV: load}), "%v of %v", load, c.KVCache)
			load = math.Nextafter(load, 1)
		}
	}
}

// TestNoReplicaGoesThatSaturatesTheRest: at the least load that is saturated, of the cache and of the queue.
func TestNoReplicaGoesThatSaturatesTheRest(t *testing.T) {
	c := singleConfig(saturation.Defaults())
	c.KVSpare, c.QueueSpare, c.DownStabilization = 0, 0, 0
	s := build(t, c.Config)
	least := func(threshold float64, of func(float64) saturation.Replica) float64 {
		x := threshold
		for s.IsSaturated(of(math.Nextafter(x, 0))) {
			x = math.Nextafter(x, 0)
			if s.IsSaturated(of(x - (threshold-x)*0.5)) {
				x -= (threshold - x) * 0.5
			}
		}
		return x
	}
	kv := least(c.KVCache, func(x float64) saturation.Replica { return saturation.Replica{KV: x} })
	queue := least(c.QueueLength, func(x float64) saturation.Replica { return saturation.Replica{Queue: x} })
	for _, row := range []struct {
		kv, queue float64
		want      scaling.Verdict
	}{{kv / 2, 0, scaling.Hold}, {0, queue / 2, scaling.Hold}, {math.Nextafter(kv/2, 0), math.Nextafter(queue/2, 0), scaling.Down}} {
		single, err := saturation.NewSingle(c)
		require.NoError(t, err)
		d := single.Decide(start, scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{
			scaling.Exactly(saturation.DefaultKV, row.kv), scaling.Exactly(saturation.DefaultQueue, row.queue),
		}})
		require.Equal(t, row.want, d.Verdict, d.Explain())
	}
	for name, c := range map[string]saturation.Thresholds{"cache": {KVCache: 0.5, QueueLength: 5}, "queue": {KVCache: 0.8, QueueLength: 0.5}} {
		s := scalerOf(t, saturation.Default, c)
		kv, queue := 0.333333333, 0.0
		if name == "queue" {
			kv, queue = queue, kv
		}
		require.False(t, analyze(s, same("a", 3, kv, queue)).DownSafe, "0.999999999 on two are the least that is saturated")
	}
}

// TestRegressionTheOrderOfReadingsDoesNotDecide: of two readings of one metric, which contradict each other, the first one counted.
func TestRegressionTheOrderOfReadingsDoesNotDecide(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	decide := func(names []string, values []float64) scaling.GroupDecision {
		g, err := saturation.NewGroup(saturation.GroupConfig{Config: saturation.Defaults(), Variants: []saturation.Variant{{Name: "v", Cost: 1, Min: 1, Max: 9}}})
		require.NoError(t, err)
		obs := scaling.GroupObservation{Targets: []scaling.TargetObservation{{Name: "v", SpecReplicas: 2, ReadyReplicas: 2, Pods: []scaling.PodObservation{{Name: "p", Values: values}, {Name: "q", Values: values}}}}}
		for _, n := range names {
			obs.Readings = append(obs.Readings, scaling.Reading{Metric: n, Values: 2})
		}
		return g.Decide(now, obs)
	}
	kv, queue := saturation.DefaultKV, saturation.DefaultQueue
	a := decide([]string{kv, kv, queue}, []float64{.1, .9, 0})
	b := decide([]string{kv, kv, queue}, []float64{.9, .1, 0})
	require.Equal(t, a.Targets[0].Verdict, b.Targets[0].Verdict, "%s\n%s", a.Explain(), b.Explain())
}
