package capacity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestHopelessRequestsDoNotAskForEveryReplica: of prompts of up to 100,000 tokens 4 % take an idle replica longer than TTFT may be. As
// 97 % were asked for at any load, a replica was given a two-hundredth of its work, and the policy asked for all replicas that it may.
func TestHopelessRequestsDoNotAskForEveryReplica(t *testing.T) {
	long.Skip(t)
	s := day(2, 3)
	w := s.Workload.(sim.Series)
	w.Rates = w.Rates[15:45]
	w.Input = sim.Length{Mean: 13500, Deviation: 15000, Min: 1, Max: 100_000, LogNormal: true}
	s.Workload, s.Types[0].Initial = w, 12
	c := config()
	c.Bounds.Max = 100
	var tuned Tuning
	r := run(t, &s, c, watch(func(x Tuning) { tuned = x }))
	all := runPolicy(t, &s, func() (scaling.Group, error) { return sim.Static(100), nil })
	assert.Less(t, all.Attainment, 0.97, "with all replicas there are")
	assert.Greater(t, r.Attainment, all.Attainment-0.02)
	assert.Less(t, r.ReplicaHours, 0.3*all.ReplicaHours)
	s.Types[0].Initial = 100
	s.Types[0].Server = slower(c.Server, tuned.Slowness) // calibration takes it for an eighth faster than it is
	idle := runPolicy(t, &s, func() (scaling.Group, error) { return sim.Static(100), nil })
	assert.InDelta(t, 1-idle.Attainment, tuned.Hopeless, 0.01, "of so many prompts")

	scaler := build(t, c, found(tuned.trial))
	state := State{Tuning: tuned}
	state.Samples = []Sample{{At: 1, Ready: 12}, {At: 16, Ready: 12}}
	d := scaling.HoldAt(12)
	scaler.follow(&state, &d)
	assert.Contains(t, d.Explain(), "Unattainable     12 -> 12   alone=0.0")
	state.Tuning.Hopeless = 0.01
	d = scaling.HoldAt(12)
	scaler.follow(&state, &d)
	assert.NotContains(t, d.Explain(), "Unattainable", "the goal can be met")
}

// TestAnSLOThatNothingKeepsAsksForWhatTheWorkNeeds: where all requests miss the SLO on an idle replica, the policy neither asks for all
// replicas there are nor lets queues grow.
func TestAnSLOThatNothingKeepsAsksForWhatTheWorkNeeds(t *testing.T) {
	long.Skip(t)
	s := day(5, 10)
	s.SLO.TTFT = time.Millisecond
	c := config()
	c.SLO, c.Bounds.Max = s.SLO, 100
	r := run(t, &s, c, nil)
	assert.Zero(t, r.Attainment)
	assert.Less(t, r.ReplicaHours, 15.0, "of 100")
	assert.Less(t, r.TTFT.P99, 5.0, "no queues")
}

// TestWhatMayMiss is the goal as long as it can be met, and what is hopeless beside as many of the others once it is clear that it cannot.
func TestWhatMayMiss(t *testing.T) {
	last := 0.0
	for _, row := range [][2]float64{{0, 0.01}, {0.005, 0.01}, {0.01, 0.01}, {0.015, 0.02}, {0.02, 0.03}, {0.05, 0.06}, {1, 1.01}} {
		got := mayMiss(row[0], 0.99)
		assert.InDelta(t, row[1], got, 1e-12, "hopeless %g", row[0])
		assert.GreaterOrEqual(t, got, last)
		last = got
	}
	tuning := Tuning{Hopeless: 0.04, Missed: 20, Served: 1000}
	assert.InDelta(t, 0.02, tuning.hopeless(), 1e-12, "no more than were late")
	assert.Zero(t, (&Tuning{Hopeless: 0.04}).hopeless())
}
