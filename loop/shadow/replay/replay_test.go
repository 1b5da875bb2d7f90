package replay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// constant is a policy that asks for one count.
type constant int32

func (c constant) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	v := scaling.Hold
	switch {
	case int32(c) > obs.SpecReplicas:
		v = scaling.Up
	case int32(c) < obs.SpecReplicas:
		v = scaling.Down
	}
	return s, scaling.Decision{Verdict: v, Replicas: int32(c)}
}

func (constant) Kind() scaling.Kind { return scaling.Kind{Name: "constant", Version: 1} }

func (constant) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

func work() capacity.Config {
	return capacity.For(scaling.Bounds{Max: 8}, sim.SLO{TTFT: 2 * time.Second, TPOT: 60 * time.Millisecond}, sim.Qwen32B())
}

func watching(t require.TestingT) *shadow.Shadows {
	s, err := shadow.New(shadow.Config{
		Policies: []shadow.Policy{{Name: "one", Policy: scaling.New[struct{}](constant(1))}, {Name: "six", Policy: scaling.New[struct{}](constant(6))}}, Go: func(f func()) { f() },
	})
	require.NoError(t, err)
	return s
}

// lived shows the shadows, and replays, what a simulated fleet of four says in a quarter of an hour.
func lived(t *testing.T, see func(now time.Time, obs scaling.Observation)) {
	t.Helper()
	s := simhistory.Chat(sim.Qwen32B(), 4, sim.Stage{Rate: 10, Duration: 15 * time.Minute})
	s.Metrics = capacity.Metrics()
	_, err := sim.Run(t.Context(), &s, func() (scaling.Group, error) { return sim.Schedule(s.Begin(), time.Hour, []int32{4}), nil }, sim.Options{
		Seed: 1,
		Decision: func(now time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
			one := &obs.Targets[0]
			see(now, scaling.Observation{SpecReplicas: one.SpecReplicas, ReadyReplicas: one.ReadyReplicas, Readings: obs.Readings, Histograms: obs.Histograms})
		},
	})
	require.NoError(t, err)
}

// TestReplays: one replica would have missed what four and six attain, and one fleet is replayed at a time, every five minutes.
func TestReplays(t *testing.T) {
	var turn replay.Turn
	fresh := func() *replay.Replays {
		r, err := replay.New(replay.Config{Capacity: work(), Turn: &turn})
		require.NoError(t, err)
		return r
	}
	r, other, s := fresh(), fresh(), watching(t)
	var run func()
	lived(t, func(now time.Time, obs scaling.Observation) {
		s.Look(now, obs)
		if first := other.See(now, obs, s); first != nil {
			require.Nil(t, run)
			run = first
		}
		require.Nil(t, r.See(now, obs, s), "the other is at it")
	})
	run()
	require.NotNil(t, r.Found(), "its turn came after that of the other")
	require.Equal(t, other.Found(), r.Found())
	r, err := replay.New(replay.Config{Capacity: work()})
	require.NoError(t, err)
	require.Nil(t, r.Found())
	var ran []time.Time
	s = watching(t)
	lived(t, func(now time.Time, obs scaling.Observation) {
		s.Look(now, obs)
		if run := r.See(now, obs, s); run != nil {
			require.Nil(t, r.See(now, obs, s), "one at a time")
			ran = append(ran, now)
			run()
		}
	})
	require.Greater(t, len(ran), 1)
	require.GreaterOrEqual(t, ran[1].Sub(ran[0]), replay.Every)
	found := r.Found()
	require.Less(t, found.Shadows["one"].Attained, 0.5)
	require.Greater(t, found.Shadows["six"].Attained, 0.95)
	require.InDelta(t, found.Actual.Measured, found.Actual.Attained, 0.05)
}

// TestAnythingMayBeSeen: no observation is a panic.
func TestAnythingMayBeSeen(t *testing.T) {
	_, err := replay.New(replay.Config{})
	require.Error(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		r, err := replay.New(replay.Config{Capacity: work(), Failed: func(why string) { rt.Fatal(why) }})
		require.NoError(rt, err)
		s := watching(rt)
		now := time.Unix(1e9, 0)
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			now = now.Add(time.Duration(rapid.Int64Range(-600, 600).Draw(rt, "seconds")) * time.Second)
			obs := scaling.Observation{SpecReplicas: rapid.Int32Range(0, 200).Draw(rt, "spec"), ReadyReplicas: rapid.Int32Range(0, 200).Draw(rt, "ready")}
			for _, m := range capacity.Metrics() {
				if m.Signal < sim.PromptTokens {
					x := rapid.Float64Range(0, 1e6).Draw(rt, "value")
					obs.Readings = append(obs.Readings, scaling.Reading{Metric: m.Name, Lower: x, Upper: x, Values: obs.ReadyReplicas})
				} else {
					n := rapid.Float64Range(0, 100).Draw(rt, "count")
					obs.Histograms = append(obs.Histograms, scaling.Histogram{Metric: m.Name, Bounds: []float64{rapid.Float64Range(0, 1e4).Draw(rt, "bound")}, Counts: []float64{n, 0}, Sum: n * rapid.Float64Range(0, 1e3).Draw(rt, "mean")})
				}
			}
			s.Look(now, obs)
			if run := r.See(now, obs, s); run != nil {
				run()
			}
		}
		r.Found()
	})
}

// TestRegressionBoundsAndGoalMayBeLeftOut: they are not used, and were asked for.
func TestRegressionBoundsAndGoalMayBeLeftOut(t *testing.T) {
	c := work()
	c.Bounds, c.Goal = scaling.Bounds{}, 0
	_, err := replay.New(replay.Config{Capacity: c})
	require.NoError(t, err)
	c.SLO = sim.SLO{}
	_, err = replay.New(replay.Config{Capacity: c})
	require.EqualError(t, err, "slo.ttft: 0s: must be above 0 and at most 1h\nslo.tpot: 0s: must be above 0 and at most 1h")
}

// TestRegressionWhatNoReplayFindsAnyMoreIsUnknown: hours after the last request, and of a fleet at zero, the result was still that of the
// hour that had some, as if it were the last one.
func TestRegressionWhatNoReplayFindsAnyMoreIsUnknown(t *testing.T) {
	for _, zero := range []bool{false, true} {
		r, err := replay.New(replay.Config{Capacity: work()})
		require.NoError(t, err)
		s := watching(t)
		var last time.Time
		var seen scaling.Observation
		see := func(now time.Time, obs scaling.Observation) {
			s.Look(now, obs)
			if run := r.See(now, obs, s); run != nil {
				run()
			}
			last, seen = now, obs
		}
		lived(t, see)
		require.NotNil(t, r.Found())
		for range 4 * 60 * 2 {
			now := last.Add(15 * time.Second)
			obs := scaling.Observation{}
			if !zero {
				obs.SpecReplicas, obs.ReadyReplicas = 4, 4
				for _, m := range seen.Readings {
					obs.Readings = append(obs.Readings, scaling.Exactly(m.Metric, 0))
				}
				for _, h := range seen.Histograms {
					h.At = now
					obs.Histograms = append(obs.Histograms, h) // the counters stand still
				}
			}
			see(now, obs)
		}
		require.Nil(t, r.Found(), "a fleet at zero: %t", zero)
	}
}

// TestRegressionWhatWasFoundBeforeAClockThatGoesBack: with a fleet at zero the result was that of the last hour until the clock was an hour
// past the time that it had shown before.
func TestRegressionWhatWasFoundBeforeAClockThatGoesBack(t *testing.T) {
	r, err := replay.New(replay.Config{Capacity: work()})
	require.NoError(t, err)
	s := watching(t)
	var now time.Time
	see := func(at time.Time, obs scaling.Observation) {
		s.Look(at, obs)
		if run := r.See(at, obs, s); run != nil {
			run()
		}
		now = at
	}
	lived(t, see)
	see(now.Add(-time.Second), scaling.Observation{})
	require.NotNil(t, r.Found())
	now = now.Add(-24 * time.Hour)
	for range 2 * 60 {
		see(now.Add(time.Minute), scaling.Observation{})
	}
	require.Nil(t, r.Found(), "two hours after the last request")
}
