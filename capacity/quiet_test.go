package capacity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestAFewRequestsAnHourAreEnough: with fewer than 60 requests an hour, or none, a fleet was never scaled down.
func TestAFewRequestsAnHourAreEnough(t *testing.T) {
	long.Skip(t)
	for _, hourly := range []float64{0, 5, 20, 45, 70} {
		s := day(0, 0)
		work := s.Workload.(sim.Series)
		work.Rates = make([]sim.Rate, 240)
		for i := range work.Rates {
			work.Rates[i].PerSecond = hourly / 3600
		}
		s.Workload, s.Types[0].Initial = work, 8
		r := run(t, &s, config(), nil)
		require.Less(t, r.ReplicaHours, 8*1.25+3*1.5, "%g an hour", hourly) // of the 8, and of at most one, with some room
		require.GreaterOrEqual(t, r.Attainment, 0.99)
	}
}

// TestTheEndOfTrafficDoesNotSlowTheServer: the two samples at which a fleet drains decided alone how slow the server is, until long after
// the traffic was back.
func TestTheEndOfTrafficDoesNotSlowTheServer(t *testing.T) {
	long.Skip(t)
	s := day(0, 0)
	work := s.Workload.(sim.Series)
	work.Rates = make([]sim.Rate, 90)
	for i := range work.Rates {
		work.Rates[i].PerSecond = 20
		if i >= 25 && i < 75 {
			work.Rates[i].PerSecond = 0.01
		}
	}
	s.Workload = work
	run(t, &s, config(), watch(func(x Tuning) {
		require.InDelta(t, 1, x.Slowness, 0.15, unix(x.At))
	}))
}

// TestRegressionAClockPutForwardIsNoLull: the arrivals of 15 s looked like those of ten minutes, and what was held had expired: 5
// replicas became 1 in one round. It is no lull either if nothing could be scraped for so long.
func TestRegressionAClockPutForwardIsNoLull(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	for _, forward := range []time.Duration{10 * time.Minute, 61 * time.Minute, 5 * time.Hour} {
		var s State
		var d scaling.Decision
		spec := int32(5)
		for i := range 330 {
			now := start().Add(time.Duration(i) * 15 * time.Second)
			if i >= 320 {
				now = now.Add(forward)
			}
			s, d = scaler.Decide(s, now, observation(spec, 0, 20, 60*float64(i), 1500, 200))
			if i == 319 {
				spec = d.Replicas
				require.Greater(t, spec, int32(1))
			}
			if i >= 320 {
				require.GreaterOrEqual(t, d.Replicas, spec, "%s at %d: %s", forward, i, d.Explain())
			}
		}
	}
}

// TestRegressionAClockPutForwardIsNoHourWithoutRequests: where no request came in the 15 s in which the clock was put forward by an hour,
// 5 replicas became 1 (Unused), which no hour without requests had shown.
func TestRegressionAClockPutForwardIsNoHourWithoutRequests(t *testing.T) {
	scaler, err := New(config(), found(someTrial()))
	require.NoError(t, err)
	var s State
	var d scaling.Decision
	for i := range 580 {
		now, running := start().Add(time.Duration(i)*15*time.Second), 20.0
		if i >= 319 { // nothing comes any more
			running = 0
		}
		if i >= 320 {
			now = now.Add(time.Hour)
		}
		s, d = scaler.Decide(s, now, observation(5, 0, running, 60*float64(min(i, 318)), 1500, 200))
		_, unused := d.Find(Unused)
		require.Equal(t, i >= 320+240, unused, "%d: %s", i, d.Explain())
		if i >= 320 && i < 340 {
			require.EqualValues(t, 5, d.Replicas, "%d: %s", i, d.Explain())
		}
	}
	require.EqualValues(t, 1, d.Replicas)
}

// TestRegressionAStartThatEndsInSilenceIsNoLonger: while no pod answered, what became ready was not looked at.
func TestRegressionAStartThatEndsInSilenceIsNoLonger(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	var s State
	for i := range 200 {
		now := start().Add(time.Duration(i) * 15 * time.Second)
		if i == 100 {
			s = scaler.Applied(s, now, 8, 9)
		}
		obs := observation(8, 0, 20, 255*float64(i), 1500, 200)
		if i >= 100 && i < 199 {
			obs.Readings, obs.Histograms = nil, nil
		}
		if i >= 100 {
			obs.SpecReplicas, obs.ReadyReplicas = 9, 8+int32(i/107)
		}
		s, _ = scaler.Decide(s, now, obs)
	}
	require.Equal(t, []float64{105}, s.Starts)
}

// TestRegressionAFleetThatIsNotUsedKeepsOneReplica: with Min 0 a fleet that had never been used went to 0, where no pod says what
// comes, and one that had been used kept the spare replicas of its last traffic.
func TestRegressionAFleetThatIsNotUsedKeepsOneReplica(t *testing.T) {
	long.Skip(t)
	for name, before := range map[string]float64{"never": 0, "once": 4} {
		s := day(0, 0)
		w := s.Workload.(sim.Series)
		w.Rates = nil
		for i := range 150 {
			rate := 0.0
			if i < 30 {
				rate = before
			}
			w.Rates = append(w.Rates, sim.Rate{PerSecond: rate})
		}
		s.Workload, s.Types[0].Initial = w, 8
		c := config()
		c.Bounds.Min = 0
		last := int32(0)
		_, err := sim.Run(t.Context(), &s, func() (scaling.Group, error) {
			scaler, err := New(c, nil)
			return scaling.GroupOf(scaling.New(scaler)), err
		}, sim.Options{Seed: 1, Decision: func(_ time.Time, _ *scaling.GroupObservation, d *scaling.GroupDecision) {
			last = d.Targets[0].Replicas
		}})
		require.NoError(t, err)
		require.Equal(t, int32(1), last, name)
	}
}

// TestRegressionOneRequestIsNotReplayed: drawn as often as it takes to have 60, the request in the first two minutes of an hour came to 108,
// which were replayed.
func TestRegressionOneRequestIsNotReplayed(t *testing.T) {
	c := config()
	for _, when := range []int{30, 120, 1800} {
		s := saw(241, func(i int) scaling.Observation {
			served := 1000.0
			if 15*i >= when {
				served++
			}
			return observation(8, 0, 0, served, 4000, 200)
		})
		p := s.past(100)
		tuned := p.Tune(&c)
		require.Zero(t, tuned.Requests, "at %d s", when)
		require.Zero(t, tuned.Replays)
		require.Positive(t, tuned.Capacity)
	}
}

// TestRegressionOnePairOfSamplesIsNoSlowness: of a thousand answers that finish between two samples at which a fleet drains, a night of
// few requests took the server to be 1.85 times slower than it is.
func TestRegressionOnePairOfSamplesIsNoSlowness(t *testing.T) {
	c := config()
	for _, night := range []int{100, 160, 199, 240} {
		var p Past
		x := Sample{Ready: 4}
		add := func(n, factor float64) {
			x.At += 15
			x.Timed, x.Finished, x.Generated = x.Timed+n, x.Finished+n, x.Generated+200*n
			x.TPOT += n * factor * c.Server.Base
			p.Samples = append(p.Samples, x)
		}
		for range 20 {
			add(300, 1)
		}
		add(1000, 1.85)
		for range night {
			add(1, 1)
		}
		require.InDelta(t, 1, p.slowness(&c.Server), 1e-6, "a night of %d answers", night)
	}
}

// TestRegressionAReplicaIsGivenAsMuchOnceNothingComes: after an hour without requests the guard no longer divided what a replica is said to be
// given, so that the floor of a forecast had fewer replicas for the same morning than a round before.
func TestRegressionAReplicaIsGivenAsMuchOnceNothingComes(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	var s State
	last := 0.0
	for i := range 600 {
		s.Guard = 0.5
		var d scaling.Decision
		s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(2, 0, 0, 60*float64(min(i, 300)), 1500, 200))
		_, each := Demand(&scaling.Observation{}, &d)
		if _, unused := d.Find(Unused); unused {
			require.InEpsilon(t, last, each, 0.01, d.Explain())
			return
		}
		last = each
	}
	t.Fatal("it is used")
}
