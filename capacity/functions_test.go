package capacity

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestWhatWaitsIsALoadOfItsSize: with one request in a batch in half of a cache, and three that wait, four need twice the cache.
func TestWhatWaitsIsALoadOfItsSize(t *testing.T) {
	x := Sample{Running: 1, Waiting: 3, KV: 0.5}
	assert.Equal(t, load{running: 4, kv: 2}, x.admitted())
	x.Vague = true
	assert.Equal(t, load{running: 4, kv: 0.5}, x.admitted())
	x = Sample{Waiting: 3}
	assert.Equal(t, load{running: 3}, x.admitted())
}

// TestArrivalsBetweenTwoSamples: 60 were served and 10 to 12 waited, then 100 were, and 5 to 8 waited.
func TestArrivalsBetweenTwoSamples(t *testing.T) {
	before, after := Sample{Firsts: 60, Waiting: 10, Queue: 12}, Sample{Firsts: 100, Waiting: 5, Queue: 8}
	assert.InDelta(t, 33, after.since(&before), 0, "105 - 72")
	assert.InDelta(t, 38, after.atMost(&before), 0, "108 - 70")
	assert.InDelta(t, 0, before.since(&after), 0)
	assert.InDelta(t, 0, before.atMost(&after), 0)
}

// TestOnlyALongReplayHasAnUnanswerableStart: replicas come 100 s + 15 s + 15 s after the start; three times that are 390 s.
func TestOnlyALongReplayHasAnUnanswerableStart(t *testing.T) {
	c := config()
	c.Scrape, c.Control = 15*time.Second, 15*time.Second
	b := bench{config: &c, start: 100, warm: time.Minute}
	for span, want := range map[time.Duration]time.Duration{389 * time.Second: 0, 390 * time.Second: 130 * time.Second, time.Hour: 130 * time.Second} {
		b.span = b.warm + span
		assert.Equal(t, want, b.unanswerable(), span)
	}
}

// TestABiasIsAReplayThatCounts: tenants take turns by what their tunings have taken.
func TestABiasIsAReplayThatCounts(t *testing.T) {
	c := config()
	p := past(12, func(int) int32 { return 12 })
	b := bench{config: &c, server: c.Server, start: 100, warm: time.Minute}
	factor, _ := b.bias(&p, mostReplay, 0)
	assert.InDelta(t, 1, factor, 0.1)
	assert.Equal(t, 1, b.replays)
	assert.Positive(t, b.spent)
}

// TestTheShareThatIsReplayed: of a thousand requests a hundred are asked for, but of six replicas at least.
func TestTheShareThatIsReplayed(t *testing.T) {
	for ready, want := range map[int32]float64{3: 1, 10: 0.6, 100: 0.1, 20_000: 0.05} {
		p := Past{Samples: []Sample{{At: 0, Ready: ready}, {At: 15, Ready: ready, Firsts: 1000}}}
		require.InDelta(t, 1000, p.all(), 0)
		assert.InDelta(t, want, p.share(100), 1e-12, ready)
	}
	p := Past{Samples: []Sample{{At: 0, Ready: 100}, {At: 15, Ready: 100}}}
	assert.InDelta(t, 1, p.share(100), 0, "nothing came")
}

// TestARouterIsOneOfTwo names the field.
func TestARouterIsOneOfTwo(t *testing.T) {
	c := config()
	c.Router = 7
	require.EqualError(t, c.Validate(), "router: 7: must be LeastLoaded or RoundRobin")
}

// TestATuningOfOneSample: nothing is known of what came, and the tuning in force stays.
func TestATuningOfOneSample(t *testing.T) {
	c := config()
	p := Past{Samples: []Sample{{At: 1, Ready: 4}}, Start: 60, Last: Tuning{trial: someTrial(), Requests: 100}}
	assert.Equal(t, p.Last.trial, p.Tune(&c).trial)
}

// TestBoundsOfATuningStayBounds: a job has at most 1,024 replicas, or twice as many as are ready, and no minimum above that.
func TestBoundsOfATuningStayBounds(t *testing.T) {
	for ready, most := range map[int32]int32{0: 1024, 512: 1024, 600: 1200} {
		j := job{config: config(), past: Past{Samples: []Sample{{At: 1, Ready: ready}}}}
		j.config.Bounds = scaling.Bounds{Min: 2000, Max: 3000}
		j.tune()
		assert.Equal(t, scaling.Bounds{Min: most, Max: most}, j.config.Bounds, ready)
	}
}

// TestNeedsAreInTheUnitOfTheTuning: tokens of twice the work make needs that were held twice as large.
func TestNeedsAreInTheUnitOfTheTuning(t *testing.T) {
	try := someTrial()
	twice := try
	twice.PromptToken, twice.AnswerToken, twice.Capacity = 2*try.PromptToken, 2*try.AnswerToken, 2*try.Capacity
	scaler := build(t, config(), found(twice))
	s := State{Tuning: Tuning{trial: try}}
	for i := range 20 {
		showTo(t, &s, start().Add(time.Duration(i)*15*time.Second), observation(4, 0, 20, 300*float64(i), 1500, 200))
	}
	s.Needs, s.Means = Peaks{{At: s.last().At, Value: 1.5}}, Peaks{{At: s.last().At, Value: 0.75}}
	s = scaler.tune(s, sim.SLO{})
	require.InDelta(t, 2*try.Capacity, s.Tuning.Capacity, 0)
	assert.InDelta(t, 3, s.Needs[0].Value, 1e-12)
	assert.InDelta(t, 1.5, s.Means[0].Value, 1e-12)
}

// TestRegressionNeedsThatAreRoundedAreAState: needs that differ by a rounding error, as those of a constant load do, were equal in the unit of
// a new tuning, and the state was then refused as none: needs[1]: must be later and less than the one before.
func TestRegressionNeedsThatAreRoundedAreAState(t *testing.T) {
	other := someTrial()
	other.PromptToken, other.AnswerToken, other.Capacity = 0.55e-4, 1.1e-4, 0.2
	scaler, err := New(config(), found(other))
	require.NoError(t, err)
	s := State{Tuning: Tuning{trial: someTrial()}}
	for i := range 20 {
		showTo(t, &s, start().Add(time.Duration(i)*15*time.Second), observation(4, 0, 20, 300*float64(i), 1500, 200))
	}
	for need := 1.9; len(s.Needs) < 8; need = math.Nextafter(need, 0) {
		s.Needs = append(s.Needs, Peak{At: s.Since + 15*float64(len(s.Needs)), Value: need})
	}
	s.Means = slices.Clone(s.Needs)
	require.NoError(t, s.Validate())
	s = scaler.tune(s, sim.SLO{})
	require.InDelta(t, other.PromptToken, s.Tuning.PromptToken, 0)
	require.InDelta(t, 1.045, s.Needs[0].Value, 1e-9)
	require.InDelta(t, s.Since+15*7, s.Needs[len(s.Needs)-1].At, 0)
	require.NoError(t, s.Validate())
}

// TestWhatWasReadyAfterAnAbsenceIsNoStart: a replica was asked for, and was there when somebody looked again 50 minutes later.
func TestWhatWasReadyAfterAnAbsenceIsNoStart(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	now := start()
	for absent, starts := range map[time.Duration]int{time.Minute: 1, 50 * time.Minute: 0} {
		s, _ := scaler.Decide(State{}, now, observation(4, 0, 20, 100, 1500, 200))
		s = scaler.Applied(s, now, 4, 5)
		s, _ = scaler.Decide(s, now.Add(absent), observation(5, 0, 20, 200, 1500, 200))
		assert.Len(t, s.Starts, starts, absent)
		assert.Empty(t, s.Rises)
	}
}

// TestATuningSharesNoCapacities: what a decision makes of those that were found is not seen by a tuning beside it.
func TestATuningSharesNoCapacities(t *testing.T) {
	var s State
	showTo(t, &s, start(), observation(4, 0, 20, 100, 1500, 200))
	s.Tuning.Found = []float64{1, 2}
	p := s.past(100)
	s.Tuning.Found[0] = 77
	assert.Equal(t, []float64{1, 2}, p.Last.Found)
}

// TestReadingsBetweenTwoSamplesAreOnALine: a quarter of the time after the first a quarter of the change has happened.
func TestReadingsBetweenTwoSamplesAreOnALine(t *testing.T) {
	a := Sample{At: 0, Waiting: 10, Queue: 12, Running: 4, KV: 1, Firsts: 100}
	x := Sample{At: 40, Waiting: 2, Queue: 4, Running: 8, KV: 3, Firsts: 140}
	s := Sample{At: 10, Firsts: 100}
	s.catchUp(&a, &a, &x)
	assert.Equal(t, Sample{At: 10, Waiting: 8, Queue: 10, Running: 5, KV: 1.5, Firsts: 110}, s)
}

// TestATrendIsTheSmallerGrowthOfTwo: rates of 1, 2 and 3 a second in thirds of a minute grow by 0.05 each second, and the last is
// that of its middle, 10 s ago; of rates of 1, 2 and 8 the first growth counts.
func TestATrendIsTheSmallerGrowthOfTwo(t *testing.T) {
	for last, want := range map[float64]float64{120: 2, 220: 2, 100: 0} {
		var s State
		s.Samples = []Sample{{At: 0}, {At: 20, Firsts: 20}, {At: 40, Firsts: 60}, {At: 60, Firsts: last}}
		assert.InDelta(t, want, s.trend(60, 30, 0), 1e-12, last)
	}
}

// TestResidenceIsLittlesLaw: five requests in a fleet to which one comes each second stay for five seconds.
func TestResidenceIsLittlesLaw(t *testing.T) {
	p := Past{Samples: []Sample{{At: 0, Running: 4, Waiting: 1}, {At: 10, Running: 4, Waiting: 1, Firsts: 10}}}
	assert.InDelta(t, 5, p.residence(), 1e-12)
	p.Samples[1].Firsts = 0
	assert.InDelta(t, 0, p.residence(), 0, "nothing came")
}

// TestLengthsOfAnHour: of four hours those of the last one or so are kept, and each length is counted once.
func TestLengthsOfAnHour(t *testing.T) {
	var s State
	for i := range 4 * 240 {
		showTo(t, &s, start().Add(time.Duration(i)*15*time.Second), observation(4, 0, 20, 300*float64(i), 1500, 200))
	}
	first := (s.Lengths[0].At - seconds(start())) / 15
	require.Greater(t, first, 600.0, "nothing was let go of")
	total := 0.0
	for i := range s.Lengths {
		total += s.Lengths[i].Prompts.total()
	}
	assert.InDelta(t, 300*(4*240-first), total, 1e-6)
}

// TestAQueueAsksForWhatServesItInTime: one request a second of a tenth of a replica-second is the work of one replica, for which there
// are two. Of 110 that wait on ten replicas a hundred are behind: within 15 s they are 0.67 more replica-seconds a second, for all
// of which 7.67 + 0.3 sqrt(7.67) replicas are needed. On three replicas no more than three are relieved.
func TestAQueueAsksForWhatServesItInTime(t *testing.T) {
	c := config()
	c.Bounds.Max = 100
	try := trial{Capacity: 0.1, Fleet: 0.2, PromptToken: 1e-3, Hold: 60}
	for ready, want := range map[int32]int32{10: 9, 3: 2 + 3} {
		var s State
		for i := range 41 {
			n := 15 * float64(i)
			s.Samples = append(s.Samples, Sample{At: n, Firsts: n, Prefilled: 100 * n, Finished: n, Generated: n, Waiting: 110, Queue: 110, Ready: ready})
		}
		d := scaling.HoldAt(ready)
		require.Equal(t, int32(2), Scaler{config: &c, fixed: &try}.follow(&s, &d))
		assert.Equal(t, want, d.Replicas, d.Explain())
		_, ok := d.Find(Behind)
		assert.True(t, ok)
	}
}

// TestRegressionUnevenScrapesAreNoClumps: where pods are scraped every 10 s and decisions made every 15 s, samples are 10 and 20 s apart in
// turn, and arrivals by chance looked like clumps of forty requests.
func TestRegressionUnevenScrapesAreNoClumps(t *testing.T) {
	for _, row := range [][]float64{{15}, {10, 20}, {15, 15, 30}, {14, 16}, {15, 300}} {
		p, random, at, came, next := Past{}, splitmix.Stream{State: 3}, 0.0, 0.0, 0.0
		for i := range 400 {
			at += row[i%len(row)]
			for ; next < at; next += random.Exponential() / 10 {
				came++
			}
			p.Samples = append(p.Samples, Sample{At: at, Firsts: came})
		}
		require.InDelta(t, 1, p.dispersion(), 0.4, "%v", row)
	}
}
