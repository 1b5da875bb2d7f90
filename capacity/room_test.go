package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestLevelRoomIsTheSameNumberOfReplicas: as many as a share of the work has at the mean work, and never fewer than a fleet needs.
func TestLevelRoomIsTheSameNumberOfReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := genTrial(t)
		level.Level = true
		share := level
		share.Level = false
		work := rapid.Float64Range(0, 100).Draw(t, "work")
		switch n, m := level.staff(work), share.staff(work); {
		case work < level.Mean:
			require.GreaterOrEqual(t, n, m)
		default:
			require.LessOrEqual(t, n, m)
		}
		bare := share
		bare.Capacity = bare.Fleet
		require.GreaterOrEqual(t, level.staff(work), bare.staff(work))
		require.LessOrEqual(t, level.staff(work), level.staff(work+rapid.Float64Range(0, 10).Draw(t, "more")))
		if work > 0 {
			require.InEpsilon(t, level.replicas(work), work/level.given(work), 1e-9)
		}
		room := level.staff(work) - bare.staff(work)
		require.InDelta(t, level.spare(), float64(room), 2+spread*math.Sqrt(level.spare()), "a whole replica on either side, and what noise adds")
	})
}

// passed is the past of an hour in which requests come at a rate by minutes, to so many replicas, which would start in ten minutes.
func passed(t *testing.T, rate func(minute float64) float64) Past {
	t.Helper()
	const replicas = 20
	s := day(0, 0)
	series := s.Workload.(sim.Series)
	for i := range series.Rates {
		series.Rates[i].PerSecond = rate(float64(i))
	}
	s.Types[0].Initial = replicas
	var past Past
	c := config()
	c.ColdStart = 10 * time.Minute
	c.Bounds = scaling.Bounds{Min: replicas, Max: replicas}
	run(t, &s, c, recorder{&past})
	return past
}

// A recorder keeps the past, and finds nothing.
type recorder struct{ past *Past }

func (r recorder) Tune(_ *Config, past func() Past) (Tuning, bool) {
	*r.past = past()
	return Tuning{trial: trial{Capacity: 1, Fleet: 1, PromptToken: 1, AnswerToken: 1}}, true
}

// begin gives the past's first ten minutes so many replicas: as many a replay begins with.
func begin(p *Past, replicas int32) {
	for i := range p.Samples {
		if p.Samples[i].At <= p.Samples[0].At+p.Start+60 {
			p.Samples[i].Ready = replicas
		}
	}
}

// TestALoadThatGrowsByReplicasHasThatRoom: a load that grew fivefold within an hour needed more than half as many replicas again at its
// beginning, and had as large a share at its height, where the same number of replicas does.
func TestALoadThatGrowsByReplicasHasThatRoom(t *testing.T) {
	long.Skip(t)
	p := passed(t, func(minute float64) float64 { return 15 - 10.5*math.Cos(math.Pi*minute/60) })
	c := config()
	begin(&p, 3)
	found := p.Tune(&c)
	require.True(t, found.Attained)
	require.True(t, found.Level)
	require.Less(t, found.Capacity, found.Fleet)
	share := found.trial
	share.Level = false
	most := found.work(4000, 200) * 25
	assert.Less(t, found.staff(most), share.staff(most), "beside the same room at the mean")
}

// TestATenthMoreTrafficBeginsWithATenthMoreReplicas: with the replicas that there were, which were just enough, a tenth more was late
// for as long as a start, whatever was asked for.
func TestATenthMoreTrafficBeginsWithATenthMoreReplicas(t *testing.T) {
	long.Skip(t)
	c := config()
	even := func(rate float64) (requests []sim.Request) {
		for at := 0.0; at < 1200; at += 1 / rate {
			requests = append(requests, sim.Request{At: time.Duration(at * float64(time.Second)), Input: 4000, Output: 200})
		}
		return requests
	}
	b := bench{config: &c, server: c.Server, start: 600, share: 1, span: 20 * time.Minute, warm: time.Minute, allowed: 0.009, requests: even(20), strained: even(22)}
	enough := func(requests []sim.Request) int32 {
		for n := int32(1); ; n++ {
			if of := b.under(requests, n, 0, 0, 1, func() (scaling.Group, error) { return sim.Static(n), nil }); of.late <= b.allowed {
				return n
			}
		}
	}
	b.initial = enough(b.requests)
	require.Greater(t, enough(b.strained), b.initial)
	found := Tuning{trial: trial{PromptToken: 1e-4, AnswerToken: 2e-4, Fleet: 1e3, Dispersion: 1}}
	_, _, kept := b.keeps(&found, 0, 20*found.work(4000, 200)/staffed(float64(b.initial)), math.Inf(1))
	require.True(t, kept)
}

// TestRoomForWhatWasNeverSeenIsOnTheMean: a past without a jump says that a fleet may be run at its limit; room is kept beside it, on
// what came in five minutes. What comes by chance within seconds is staffed, without that room.
func TestRoomForWhatWasNeverSeenIsOnTheMean(t *testing.T) {
	scaler := build(t, config(), quiet{})
	decide := func(last float64) scaling.Decision {
		try := trial{Capacity: 0.7, Fleet: 0.7, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0, Dispersion: 1, Mean: 15.2}
		s := State{Tuning: Tuning{trial: try, Requests: 100}}
		came := 0.0
		var d scaling.Decision
		for i := range 400 {
			if came += 1200; i == 399 {
				came += last
			}
			s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(30, 0, 200, came, 1500, 200))
			s.Tuned = s.last().At
		}
		return d
	}
	calm := decide(0)
	step, kept := calm.Find(Unseen)
	require.True(t, kept, calm.Explain())
	require.Equal(t, float64(calm.Replicas), step.Numbers[0], calm.Explain())
	require.Greater(t, step.Numbers[0], step.Numbers[1])
	noisy := decide(120)
	above, _ := noisy.Find(AtCapacity, AboveCapacity, BelowCapacity)
	again, _ := calm.Find(AtCapacity, AboveCapacity, BelowCapacity)
	require.Greater(t, above.Numbers[2], again.Numbers[2], "it counts")
	require.Equal(t, calm.Replicas, noisy.Replicas, "and has room:\n%s\n%s", calm.Explain(), noisy.Explain())
}

// TestRegressionUnseenIsWhatItsNumbersSay: its capacity was that of the mean work of the past, so that the replicas it kept did not follow
// from the mean work of now.
func TestRegressionUnseenIsWhatItsNumbersSay(t *testing.T) {
	scaler := build(t, config(), quiet{})
	try := trial{Capacity: 0.7, Fleet: 0.7, PromptToken: 1e-4, AnswerToken: 2e-4, Dispersion: 1, Mean: 40}
	s := State{Tuning: Tuning{trial: try, Requests: 100}}
	for i := range 400 {
		next, d := scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(30, 0, 200, 1200*float64(i), 1500, 200))
		if s = next; i < 10 {
			continue
		}
		s.Tuned = s.last().At
		step, kept := d.Find(Unseen)
		require.True(t, kept, d.Explain())
		r := step.Numbers[2] / step.Numbers[3]
		require.InDelta(t, math.Ceil(r+spread*math.Sqrt(r)), step.Numbers[0], 1e-9, d.Explain())
	}
}

// TestAQueueOfAFewAsksForNoMore: what waits for replicas that are full, while others have room, gets none of another one.
func TestAQueueOfAFewAsksForNoMore(t *testing.T) {
	decide := func(running, kv float64) scaling.Decision {
		p := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
		for i := range 20 {
			obs := observation(6, 600, running, float64(i+1)*75, 1500, 200)
			obs.Readings[2].Lower, obs.Readings[2].Upper = kv, kv
			p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		}
		obs := observation(6, 600, running, 21*75, 1500, 200)
		obs.Readings[2].Lower, obs.Readings[2].Upper = kv, kv
		return p.Decide(start().Add(20*15*time.Second), obs)
	}
	d := decide(150, 0.1)
	assert.NotEqual(t, Behind, d.Code(), d.Explain())
	d = decide(150, 1)
	assert.Equal(t, Behind, d.Code(), d.Explain())
}

// TestAQueueAsksForAsManyAsAreReadyAtMost: beside those that the work needs. With a queue on one replica sixty were asked for, where
// twelve attain the same.
func TestAQueueAsksForAsManyAsAreReadyAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		try := genTrial(t)
		p := fixed(try)
		ready := rapid.Int32Range(1, 20).Draw(t, "ready")
		waiting := rapid.Float64Range(0, 1e5).Draw(t, "waiting")
		var d scaling.Decision
		for i := range rapid.IntRange(2, 30).Draw(t, "rounds") {
			obs := observation(ready, waiting, 1000, float64(i+1)*75, 1500, 200)
			d = p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		}
		if step, ok := d.Find(Behind); ok {
			needed, ok := d.Find(AboveCapacity, BelowCapacity, AtCapacity)
			require.True(t, ok)
			require.LessOrEqual(t, float64(step.To), needed.Numbers[0]+float64(ready), d.Explain())
		}
	})
	const ready = 1 << 30 // with what the work needs it is more than an int32 holds
	p := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
	var d scaling.Decision
	for i := range 3 {
		obs := observation(ready, 1e15, mostRunning*float64(config().Server.MaxSeqs)*ready*1.05, float64(i+1)*75, 1500, 200)
		d = p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
	}
	step, ok := d.Find(Behind)
	require.True(t, ok, d.Explain())
	require.Equal(t, int32(math.MaxInt32), step.To)
}

// TestAQueueIsInTheReplicasInWhichItGrew, and not in those that became ready since then.
func TestAQueueIsInTheReplicasInWhichItGrew(t *testing.T) {
	for name, c := range map[string]struct {
		waiting []float64
		ready   []int32
		unknown int // the sample to which not every pod answered, from 1
		queues  int32
	}{
		"one sample":                            {[]float64{100}, []int32{3}, 0, 3},
		"it grows":                              {[]float64{0, 50, 100, 150}, []int32{1, 1, 2, 2}, 0, 2},
		"it grew until others came":             {[]float64{0, 50, 100, 110, 90, 60}, []int32{1, 1, 1, 9, 9, 9}, 0, 1},
		"it grows on with them":                 {[]float64{0, 50, 100, 110, 120, 130}, []int32{1, 1, 1, 9, 9, 9}, 0, 9},
		"fewer are ready":                       {[]float64{0, 50, 100, 90}, []int32{5, 5, 5, 3}, 0, 3},
		"another queue before it":               {[]float64{500, 400, 8, 50, 40}, []int32{2, 2, 9, 9, 9}, 0, 9},
		"between them some pods did not answer": {[]float64{0, 50, 100, 2, 90}, []int32{1, 1, 1, 9, 9}, 4, 1},
	} {
		var s State
		for i, waiting := range c.waiting {
			s.Samples = append(s.Samples, Sample{At: float64(i) * 15, Waiting: waiting, Ready: c.ready[i], Partly: i+1 == c.unknown})
		}
		assert.Equal(t, c.queues, s.queues(), name)
	}
}

// TestRegressionAQueueDoesNotGrowTheFleetAgainAndAgain: one replica with the load of eight keeps its queue when others are ready. Each
// time as many were asked for as were ready, up to the maximum of 32.
func TestRegressionAQueueDoesNotGrowTheFleetAgainAndAgain(t *testing.T) {
	s := day(13, 13)
	s.Types[0].Initial = 1
	r := runPolicy(t, &s, func() (scaling.Group, error) {
		return scaling.GroupOf(fixed(trial{Capacity: 0.8, Fleet: 0.8, PromptToken: 9e-5, AnswerToken: 1e-3, Hold: 300, Dispersion: 1})), nil
	})
	assert.LessOrEqual(t, r.PeakReplicas, int32(14))
	assert.Greater(t, r.Attainment, 0.9)
}

// TestWhatIsInFlightIsKnownFromTheFirstRound: a fleet that is far too small had to wait until sixty requests had finished.
func TestWhatIsInFlightIsKnownFromTheFirstRound(t *testing.T) {
	scaler := build(t, config(), quiet{})
	p := scaling.New(scaler)
	seqs := float64(config().Server.MaxSeqs)
	d := p.Decide(start(), observation(1, 4*seqs, seqs, 10, 1500, 200))
	step, ok := d.Find(Crowded)
	require.True(t, ok, d.Explain())
	assert.Equal(t, scaling.Up, d.Verdict)
	assert.GreaterOrEqual(t, step.To, int32(5))
	assert.Equal(t, Warming, d.Steps()[0].Code)
	d = scaling.New(scaler).Decide(start(), observation(4, 0, 1, 10, 1500, 200))
	assert.Equal(t, Warming, d.Code(), "there is nothing that more are needed for")
	assert.Equal(t, int32(4), d.Replicas)
}

// TestAHoldBeforeTheFirstTuningSaysWhatItWaitsFor: it said that 150 requests had finished of the 60 that were needed.
func TestAHoldBeforeTheFirstTuningSaysWhatItWaitsFor(t *testing.T) {
	p := scaling.New(build(t, config(), quiet{}))
	for i := range 5 {
		d := p.Decide(start().Add(time.Duration(i)*15*time.Second), observation(4, 0, 1, float64(1+i)*59, 1500, 200))
		want, numbers := Untuned, [4]float64{float64(i) * 15}
		if i == 0 {
			want, numbers = Warming, [4]float64{59, enough}
		}
		require.Equal(t, want, d.Code(), d.Explain())
		require.Equal(t, numbers, d.Steps()[0].Numbers)
	}
}

// TestAQueueIsNoTrend: replicas that come fill up with what waited. That was taken for requests that grow, and extrapolated.
func TestAQueueIsNoTrend(t *testing.T) {
	var s State
	for i := range 40 {
		s.Samples = append(s.Samples, Sample{At: float64(i) * 15, Ready: 5, Running: 100 + 10*float64(i), KV: 1 + 0.1*float64(i)})
	}
	grown := s.growing(300, 300, 1)
	assert.Greater(t, grown.running, s.last().Running)
	s.last().Waiting = 6
	assert.Equal(t, s.last().load(), s.growing(300, 300, 1))
}

// TestRegressionLittleRoomIsBold: what a quiet hour leaves as level headroom is no replica at all. Found while requests waited, with the
// capacity that was in force, it let go of what had just been started.
func TestRegressionLittleRoomIsBold(t *testing.T) {
	shared, level := someTrial(), someTrial()
	shared.Level, shared.Mean = false, 0.01
	level.Level, level.Mean = true, 0.01
	for name, next := range map[string]trial{"level headroom of a quiet past": level, "a larger capacity": {Capacity: 0.6, Fleet: 0.7, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 300, Dispersion: 1}} {
		try := shared
		scaler := build(t, config(), &finding{&try})
		var s State
		var d scaling.Decision
		at := func(i int, waiting float64) {
			s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(12, waiting, 20, 300*float64(i), 1500, 200))
		}
		for i := range 15 {
			at(i, 0)
		}
		try = next
		for i := range 15 { // a tuning is due in this time
			at(15+i, 60)
			require.InDelta(t, 0.5, s.Tuning.Capacity, 0, name)
			require.False(t, s.Tuning.Level, "%s: %s", name, d.Explain())
		}
		for i := range 15 {
			at(30+i, 0)
		}
		require.Equal(t, next.Level, s.Tuning.Level, "%s: once the service is good", name)
		require.InDelta(t, next.Capacity, s.Tuning.Capacity, 0, name)
	}
}

// A finding finds what it is told at the time.
type finding struct{ *trial }

func (f *finding) Tune(c *Config, past func() Past) (Tuning, bool) {
	return found(*f.trial).Tune(c, past)
}

// TestRegressionFewRequestsLeaveNoLevelRoom: with 60 to 100 requests an hour the capacity of busier times stayed in force, but its headroom
// became what it is at the mean work of the quiet hour: none.
func TestRegressionFewRequestsLeaveNoLevelRoom(t *testing.T) {
	c := config()
	for _, hourly := range []int{40, 70, 95} {
		s := saw(241, func(i int) scaling.Observation {
			served := 1000 + math.Floor(float64(i*hourly)/240)
			return observation(2, 0, 0, served, 4000, 200)
		})
		busy := someTrial()
		busy.Level, busy.Mean = true, 4
		s.Tuning = Tuning{trial: busy, Which: 8, Requests: 10_000, Found: make([]float64, choices)}
		p := s.past(100)
		tuned := p.Tune(&c)
		require.Equal(t, 10_000, tuned.Requests, "nothing is replayed")
		const work = 4
		require.LessOrEqual(t, tuned.given(work), tuned.Capacity, "%d an hour", hourly)
	}
}

// TestRegressionWhatATuningExplainsIsNoGuard: a server became twice as slow, the guard rose, and the tuning that found it did not take it
// back: both asked for replicas, 21 where 14 serve the load, for most of an hour.
func TestRegressionWhatATuningExplainsIsNoGuard(t *testing.T) {
	for name, guard := range map[string]struct{ capacity, work, before, want float64 }{
		"twice the work":       {0.5, 2, 0.45, 0},
		"a tenth more work":    {0.5, 1.1, 0.45, 1.45/1.1 - 1},
		"a tenth less to each": {0.45, 1, 0.45, 1.45*0.9 - 1},
		"all as it was":        {0.5, 1, 0.45, 0.45},
		"more to each":         {0.6, 1, 0.45, 0.45},
		"no guard":             {0.5, 2, 0, 0},
	} {
		try := someTrial()
		scaler := build(t, config(), &finding{&try})
		var s State
		var d scaling.Decision
		at := func(i int) {
			s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(12, 0, 20, 300*float64(i), 1500, 200))
		}
		for i := range 20 {
			at(i)
		}
		try.Capacity, try.PromptToken, try.AnswerToken, s.Guard = guard.capacity, try.PromptToken*guard.work, try.AnswerToken*guard.work, guard.before
		at(20)
		require.InDelta(t, guard.capacity, s.Tuning.Capacity, 0, name)
		require.InDelta(t, guard.want, s.Guard, 0.004, "%s: %s", name, d.Explain())
	}
}
