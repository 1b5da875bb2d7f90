package capacity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestAFleetThatLacksAReplicaRaisesNoGuard: what is missed while one of those that were asked for is not ready says nothing of what a replica
// can take, also where nobody waits.
func TestAFleetThatLacksAReplicaRaisesNoGuard(t *testing.T) {
	for ready, grows := range map[int32]bool{20: true, 19: false, 1: false} {
		scaler := build(t, config(), found(someTrial()))
		var s State
		for i := range 40 {
			obs := observation(20, 0, 20, 60*float64(i), 1500, 200)
			obs.ReadyReplicas = ready
			firsts := obs.Histogram(TTFT)
			firsts.Bounds[0], firsts.Counts = slo().TTFT.Seconds(), []float64{0, 60 * float64(i), 0}
			var d scaling.Decision
			s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
			guarded, ok := d.Find(Guarded)
			require.True(t, !ok || grows && guarded.Numbers[0] > 0.01, d.Explain())
		}
		require.Equal(t, grows, s.Guard > 0, ready)
		require.Equal(t, grows, s.Unsure.Guard > 0, ready)
	}
}

// TestOneReplicaIsKeptForNothing: an hour without requests leaves one replica of eight where the minimum is none, starts none of none, and
// leaves the minimum where that is more.
func TestOneReplicaIsKeptForNothing(t *testing.T) {
	for _, row := range []struct{ least, spec, want int32 }{{0, 8, 1}, {0, 1, 1}, {0, 0, 0}, {1, 8, 1}, {3, 8, 3}} {
		c := config()
		c.Bounds.Min = row.least
		scaler := build(t, c, found(someTrial()))
		var s State
		var d scaling.Decision
		for i := range 250 {
			obs := observation(8, 0, 0, 1000, 1500, 200)
			obs.SpecReplicas = row.spec
			s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
		}
		require.Equal(t, row.want, d.Replicas, d.Explain())
		step, ok := d.Find(Unused)
		require.True(t, ok, d.Explain())
		require.GreaterOrEqual(t, step.Numbers[0], step.Numbers[1])
	}
}

// TestHalfAnHourOfNothingKeepsOne: where the minimum is none, one of eight replicas stays without any work, long before it is Unused.
func TestHalfAnHourOfNothingKeepsOne(t *testing.T) {
	for spec, want := range map[int32]int32{8: 1, 1: 1, 0: 0} {
		c := config()
		c.Bounds.Min = 0
		try := someTrial()
		try.Mean = 0 // of which there is room beside the work
		scaler := build(t, c, found(try))
		var s State
		var d scaling.Decision
		for i := range 180 {
			obs := observation(8, 0, 0, 60*float64(min(i, 60)), 1500, 200)
			obs.SpecReplicas, obs.Readings[2].Lower, obs.Readings[2].Upper = spec, 0, 0 // the caches are empty
			s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
		}
		require.Equal(t, want, d.Replicas, d.Explain())
		_, ok := d.Find(Unused)
		require.False(t, ok)
	}
}

// TestNothingIsUnusedThatMayBeUsed: while a request runs or may wait, or a pod does not answer, it is not quiet.
func TestNothingIsUnusedThatMayBeUsed(t *testing.T) {
	for name, row := range map[string]struct {
		change func(first, last *Sample)
		quiet  float64
	}{
		"nothing":                {func(_, _ *Sample) {}, history},
		"one runs":               {func(_, last *Sample) { last.Running = 1 }, 0},
		"one waits":              {func(_, last *Sample) { last.Waiting, last.Queue = 1, 1 }, 0},
		"one waits all the time": {func(first, last *Sample) { first.Waiting, first.Queue, last.Waiting, last.Queue = 1, 1, 1, 1 }, 0},
		"one may wait":           {func(_, last *Sample) { last.Queue = 1 }, 0},
		"one was served":         {func(_, last *Sample) { last.Firsts++ }, 0},
		"a pod is silent":        {func(_, last *Sample) { last.Partly = true }, 0},
		"a pod was silent":       {func(first, _ *Sample) { first.Partly = true }, 0},
		"gauges are intervals":   {func(_, last *Sample) { last.Vague = true }, 0},
		"one waited and is gone": {func(first, _ *Sample) { first.Waiting, first.Queue = 1, 1 }, history},
	} {
		var s State
		for at := 0.0; at <= history; at += 15 {
			s.Samples = append(s.Samples, Sample{At: at, Firsts: 100, Ready: 4})
		}
		row.change(&s.Samples[0], s.last())
		require.InDelta(t, row.quiet, s.quiet(), 0, name)
	}
}

// TestLongAnswersMayWaitForAQuarterOfTheirTime: of answers of 2000 tokens, 100 ms each, those behind are served within 50 s: 100 that take
// 0.1 replica-seconds are 0.2 of work, beside 0.1 for what comes, for which 3 + 0.3 sqrt(3) replicas are needed.
func TestLongAnswersMayWaitForAQuarterOfTheirTime(t *testing.T) {
	c := config()
	c.Bounds.Max = 100
	try := trial{Capacity: 0.1, Fleet: 0.2, PromptToken: 1e-3, Hold: 60}
	for answer, want := range map[float64][2]float64{2000: {50, 4}, 600: {15, 9}, 60: {15, 9}} {
		var s State
		for i := range 41 {
			n := 15 * float64(i)
			s.Samples = append(s.Samples, Sample{At: n, Firsts: n, Prefilled: 100 * n, Finished: n, Generated: answer * n, Waiting: 110, Queue: 110, Ready: 10})
		}
		d := scaling.HoldAt(10)
		Scaler{config: &c, fixed: &try}.follow(&s, &d)
		step, ok := d.Find(Behind)
		require.True(t, ok, d.Explain())
		require.InDelta(t, want[0], step.Numbers[3], 1e-9)
		require.InDelta(t, want[1], float64(d.Replicas), 0, d.Explain())
	}
}

// TestAClockThatGoesBackHoldsForOneRound: a fleet that is too large waits for one decision.
func TestAClockThatGoesBackHoldsForOneRound(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	var s State
	var d scaling.Decision
	now := start()
	for i := range 100 {
		s, d = scaler.Decide(s, now, observation(20, 0, 20, 60*float64(i), 1500, 200))
		now = now.Add(15 * time.Second)
	}
	require.Equal(t, scaling.Down, d.Verdict, d.Explain())
	s, d = scaler.Decide(s, now.Add(-25*time.Second), observation(20, 0, 20, 6000, 1500, 200))
	require.Equal(t, int32(20), d.Replicas, d.Explain())
	require.Equal(t, TurnedBack, d.Code())
	step, _ := d.Find(TurnedBack)
	require.InDelta(t, 10, step.Numbers[0], 0)
	_, d = scaler.Decide(s, now.Add(-10*time.Second), observation(20, 0, 20, 6060, 1500, 200))
	require.Equal(t, scaling.Down, d.Verdict, d.Explain())
}

// TestABolderTuningWaitsForCalm: one with a shorter hold, or that gives a replica more, is not taken while a queue or misses say that the fleet
// is too small, and the next is due a minute later. One that keeps more is taken.
func TestABolderTuningWaitsForCalm(t *testing.T) {
	for name, row := range map[string]struct {
		change        func(*trial)
		queue, missed float64
		taken         bool
	}{
		"a queue, a shorter hold":  {func(x *trial) { x.Hold /= 2 }, 50, 0, false},
		"misses, a shorter hold":   {func(x *trial) { x.Hold /= 2 }, 0, 1, false},
		"calm, a shorter hold":     {func(x *trial) { x.Hold /= 2 }, 4, 0, true},
		"a queue, more is given":   {func(x *trial) { x.Capacity *= 1.1 }, 50, 0, false},
		"a queue, a longer hold":   {func(x *trial) { x.Hold *= 2 }, 50, 0, true},
		"a queue, less is given":   {func(x *trial) { x.Capacity /= 1.1 }, 50, 0, true},
		"a queue, it is as it was": {func(*trial) {}, 50, 0, true},
	} {
		try := someTrial()
		row.change(&try)
		s := State{Tuning: Tuning{trial: someTrial()}}
		for i := range 21 {
			n := 300 * float64(i)
			obs := observation(4, row.queue, 20, n, 1500, 200)
			firsts := obs.Histogram(TTFT)
			firsts.Bounds[0], firsts.Counts = slo().TTFT.Seconds(), []float64{n * (1 - row.missed), n * row.missed, 0}
			showTo(t, &s, start().Add(time.Duration(i)*15*time.Second), obs)
		}
		s = build(t, config(), found(try)).tune(s, sim.SLO{})
		want, due := someTrial(), s.Tuned+tuneEvery-s.last().At
		if row.taken {
			want = try
			require.InDelta(t, tuneEvery, due, 0, name)
		} else {
			require.InDelta(t, retry, due, 0, name)
		}
		require.Equal(t, want, s.Tuning.trial, name)
	}
}

// TestARisingRateIsThatOfWhenAReplicaIsReady: where 2 requests a second more come each minute, 5.6 more come in 130 s than did in
// the last 75 s. The mean of five minutes rises as much.
func TestARisingRateIsThatOfWhenAReplicaIsReady(t *testing.T) {
	came := func(trend bool) (demand, scaling.Decision) {
		c := config()
		try := someTrial()
		try.Trend, try.Dispersion = trend, 0 // nothing is chance
		var s State
		for i := range 41 {
			at := 15 * float64(i)
			n := 20*at + at*at/60
			s.Samples = append(s.Samples, Sample{At: at, Firsts: n, Prefilled: 1500 * n, Finished: n, Generated: 200 * n, Ready: 10})
		}
		d := scaling.HoldAt(1)
		return Scaler{config: &c, fixed: &try}.came(&s, &try, 130, &d), d
	}
	flat, none := came(false)
	_, ok := none.Find(Rising)
	require.False(t, ok)
	rising, d := came(true)
	step, ok := d.Find(Rising)
	require.True(t, ok, d.Explain())
	more := step.Numbers[1] - step.Numbers[0]
	require.InDelta(t, (130+75/2.0)/30, more, 1e-9, "from the middle of the last 75 s on")
	require.InDelta(t, more*flat.each, rising.work-flat.work, 1e-9)
	require.InDelta(t, more*flat.each, rising.mean-flat.mean, 1e-9)
}
