package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestRegressionMissesWithinABucketAreCounted: with an SLO of 3 s, vLLM's histograms show only which first tokens took more than 5 s. A
// replay counted all above 3 s, so that more were missed in replays than in truth, and what reality adds to replays was not seen.
func TestRegressionMissesWithinABucketAreCounted(t *testing.T) {
	c := config()
	p := past(12, func(int) int32 { return 2 })
	b := bench{config: &c, server: c.Server, start: 100, warm: time.Minute}
	as := func(shown sim.SLO) (truth, factor, hidden float64) {
		b.shown = shown
		of := b
		requests, from, to := p.traffic(mostReplay, 1, b.warm.Seconds())
		of.requests, of.initial = requests, p.readyAt(from)
		of.span = time.Duration((to-from)*float64(time.Second)) + b.warm
		truth = 1.1 * of.asItWas(&p, 1).shown // what the counters of such a fleet would show, had it missed a tenth more
		for i := range p.Samples {
			p.Samples[i].Late = truth * p.Samples[i].Firsts
		}
		factor, hidden = b.bias(&p, mostReplay, 0)
		return truth, factor, hidden
	}
	all, exact, none := as(c.SLO)
	assert.Greater(t, all, 0.05)
	assert.Zero(t, none, "nothing is hidden where the SLO is a bound")
	wide := sim.SLO{TTFT: 2 * c.SLO.TTFT, TPOT: 2 * c.SLO.TPOT}
	seen, factor, hidden := as(wide)
	assert.Less(t, seen, 0.9*all)
	assert.Greater(t, factor, 1.0, "that reality misses more is seen though less is measured")
	assert.Less(t, factor, exact+0.001)
	assert.InDelta(t, all, seen+hidden, 0.1*all)
	_, factor, hidden = as(sim.SLO{TTFT: 1000 * time.Hour, TPOT: 1000 * time.Hour})
	assert.InDelta(t, 1, factor, 0, "nothing is measured")
	assert.InDelta(t, all/1.1, hidden, 0.001, "replays alone say what is missed")
	_, hidden = b.bias(&p, mostReplay, p.Samples[len(p.Samples)-1].At+60)
	assert.Zero(t, hidden, "nothing came since then")
}

// TestWhatHistogramsShow: a time within the bucket of the SLO may have met it.
func TestWhatHistogramsShow(t *testing.T) {
	h := &scaling.Histogram{Bounds: []float64{0.1, 2.5, 5, 1e300}}
	for least, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 100 * time.Millisecond, 101 * time.Millisecond: 2500 * time.Millisecond,
		3 * time.Second: 5 * time.Second, 6 * time.Second: 1000 * time.Hour,
	} {
		assert.Equal(t, want, bound(h, least), least)
	}
	assert.Equal(t, 1000*time.Hour, bound(&scaling.Histogram{}, time.Second))
	assert.Zero(t, missedBy(&sim.Outcome{TTFT: time.Hour, Total: 2 * time.Hour, Output: math.MaxInt32}, sim.SLO{TTFT: 1000 * time.Hour, TPOT: 1000 * time.Hour}))
}

// TestRegressionWhatIsHiddenIsExcused: what a fleet without nodes missed above the bucket of the SLO was excused, but not what its replay
// missed within: that share of the requests since was taken for missed, and remembered for hours.
func TestRegressionWhatIsHiddenIsExcused(t *testing.T) {
	c := config()
	p := past(12, func(minute int) int32 {
		if minute < 4 {
			return 2
		}
		return 30
	})
	p.Shown = sim.SLO{TTFT: 1000 * time.Hour, TPOT: 1000 * time.Hour} // nothing is measured
	p.Last = Tuning{At: p.Samples[0].At - 1}
	short := p.Tune(&c)
	require.Greater(t, short.Missed, 0.1*short.Served, "that fleet had been asked for")
	for i := range p.Samples {
		p.Samples[i].ExcusedOf = p.Samples[min(i, 32)].Firsts // until its queues are empty
	}
	excused := p.Tune(&c)
	require.Less(t, excused.Served, 0.7*short.Served)
	require.Zero(t, excused.Missed)
}

// TestRegressionTheGuardComparesWhatIsMeasured: where a replay said that requests are hopeless, and that buckets hide all of these, so many
// might be measured beside them: the guard did not see that every tenth request took longer than the bucket of the SLO.
func TestRegressionTheGuardComparesWhatIsMeasured(t *testing.T) {
	c := config()
	c.SLO.TTFT = 50 * time.Millisecond
	p := past(12, func(int) int32 { return 12 })
	p.Shown = sim.SLO{TTFT: 10 * time.Second, TPOT: c.SLO.TPOT}
	tuned := p.Tune(&c)
	require.Greater(t, tuned.Hopeless, 0.5, "few prompts are computed in so short a time")
	require.Greater(t, tuned.Missed, 0.5*tuned.Served, "as the replay says")
	require.NoError(t, tuned.validate())

	scaler := build(t, c, quiet{})
	tuned.trial = someTrial() // of which twelve replicas are enough
	s := State{Tuning: tuned}
	for i := range 60 {
		n := 60 * float64(i)
		obs := observation(12, 0, 20, n, 1500, 200)
		firsts := obs.Histogram(TTFT)
		firsts.Bounds, firsts.Counts = []float64{0.01, 10}, []float64{0, 0.9 * n, 0.1 * n}
		s, _ = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
	}
	require.Positive(t, s.Guard)
}

// TestRegressionARecorderSaysWhatHistogramsShow: the past of a Recorder was tuned as if an SLO of 3 s were a bound of buckets at 2.5 and 5 s.
func TestRegressionARecorderSaysWhatHistogramsShow(t *testing.T) {
	c := config()
	c.SLO = sim.SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond}
	r, err := NewRecorder(c)
	require.NoError(t, err)
	for i := range 3 {
		n := 60 * float64(i)
		obs := observation(4, 0, 20, n, 1500, 200)
		firsts := obs.Histogram(TTFT)
		firsts.Bounds, firsts.Counts = []float64{2.5, 5}, []float64{n, 0, 0}
		require.True(t, r.See(start().Add(time.Duration(i)*15*time.Second), obs))
	}
	p := r.Past(100 * time.Second)
	require.Equal(t, sim.SLO{TTFT: 5 * time.Second, TPOT: 1e6 * time.Second}, p.Shown, "the bounds of those times per token are 50 ms and 1e6 s")
}
