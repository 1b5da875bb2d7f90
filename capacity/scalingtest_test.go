package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// found has always found a capacity.
type found trial

func (f found) Tune(_ *Config, past func() Past) (Tuning, bool) {
	p := past()
	t := p.Last
	t.trial, t.At, t.Requests, t.Late, t.Allowed = trial(f), p.Samples[len(p.Samples)-1].At, 1000, 0.004, 0.006
	return t, true
}

// TestProperties: what holds of every policy holds before a capacity is known and once one is.
func TestProperties(t *testing.T) {
	for name, draw := range map[string]func(t *rapid.T) Tuner{
		"warming": func(*rapid.T) Tuner { return quiet{} },
		"tuned":   func(t *rapid.T) Tuner { return found(genTrial(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
				c, tuner := config(), draw(t)
				c.Bounds.Max = 20
				newPolicy := func() scaling.Policy {
					s := build(t, c, tuner)
					return scaling.New(s)
				}
				return newPolicy, properties(c)
			})
		})
	}
}

// properties are the options for episodes in which some requests a second come to a few replicas.
func properties(c Config) scalingtest.Options {
	return scalingtest.Options{
		Metrics: []scalingtest.Metric{{Name: Waiting, High: 4}, {Name: Running, Low: 2, High: 40}, {Name: KVUse, Low: 0.1, High: 0.9}},
		Histograms: []scalingtest.Histogram{
			{Name: PromptSize, Bounds: []float64{100, 1000, 10000}, Low: 20, High: 200},
			{Name: AnswerSize, Bounds: []float64{10, 100, 1000}, Low: 20, High: 200},
			{Name: Prefilled, Bounds: []float64{100, 1000, 10000}, Low: 20, High: 200},
			{Name: TTFT, Bounds: []float64{0.1, 1, 3, 10}, Low: 20, High: 200},
			{Name: TPOT, Bounds: []float64{0.01, 0.05, 0.1, 1}, Low: 20, High: 200},
		},
		Bounds: c.Bounds, Windows: true, Memory: 90 * time.Minute,
		Shift: 7 * time.Second, // never to 1970, as a time of 0 is none
		Skip: []string{
			"BoundedState", // samples are let go by halves: TestStateIsBounded
		},
	}
}

// TestGuardDoesNotWindUp: while replicas start, or nothing new is seen, the guard stays where it is whatever is missed, and
// it is never above its limit; once requests are in time it goes.
func TestGuardDoesNotWindUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{}
		late, served, now := 0.0, 0.0, start()
		next := func(missed float64, settled bool) (before, after float64) {
			before = s.Guard
			late, served, now = late+missed, served+1000, now.Add(15*time.Second)
			obs := observation(4, 0, 20, served, 1500, 200)
			x, missing := read(now, &obs, slo())
			require.Empty(t, missing)
			x.Late = late
			s.see(x, &obs)
			s.guard(0.01, settled, settled)
			return before, s.Guard
		}
		for range rapid.IntRange(1, 200).Draw(t, "missed while starting") {
			_, after := next(500, false)
			require.Zero(t, after)
		}
		settled := rapid.IntRange(1, 400).Draw(t, "settled")
		for range settled {
			before, after := next(500, true)
			require.GreaterOrEqual(t, after, before)
			require.LessOrEqual(t, after, mostGuard)
		}
		if settled > 20 {
			require.Positive(t, s.Guard)
		}
		for range rapid.IntRange(1, 50).Draw(t, "starting again") {
			before, after := next(500, false)
			require.InDelta(t, before, after, 0)
		}
		for range int(math.Ceil(mostGuard/(guardDown*15))) + 20 {
			next(0, true)
		}
		require.Zero(t, s.Guard)
	})
}

// TestUnitsDoNotMatter counts tokens in another unit, of which the server's times are: so many times the tokens, each of so
// much less time, by the server and by the SLO. What is decided, and learned, stays the same.
func TestUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := math.Exp2(float64(rapid.IntRange(-6, 6).Draw(t, "times"))) // exact in floating point
		c, d := config(), config()
		c.Server.KVTokens = 1 << 18
		d.Server.Base, d.Server.Sequence, d.Server.PrefillToken = c.Server.Base/times, c.Server.Sequence/times, c.Server.PrefillToken/times
		d.Server.KVToken, d.Server.KVTokens = c.Server.KVToken/times/times, int64(float64(c.Server.KVTokens)*times)
		d.SLO.TPOT = time.Duration(float64(c.SLO.TPOT) / times)
		try := genTrial(t)
		scaled := try
		scaled.PromptToken, scaled.AnswerToken = try.PromptToken/times, try.AnswerToken/times
		p := build(t, c, found(try))
		q := build(t, d, found(scaled))
		a, b := scaling.New(p), scaling.New(q)
		served, spec := 0.0, int32(4)
		for i := range 80 {
			served += rapid.Float64Range(0, 300).Draw(t, "came")
			now := start().Add(time.Duration(i) * 15 * time.Second)
			x := a.Decide(now, observation(spec, 0, 20, served, 1500, 200))
			same := observation(spec, 0, 20, served, 1500*times, 200*times)
			perToken := &same.Histograms[len(same.Histograms)-1]
			require.Equal(t, TPOT, perToken.Metric)
			perToken.Bounds[0], perToken.Sum = perToken.Bounds[0]/times, perToken.Sum/times
			y := b.Decide(now, same)
			require.Equal(t, x.Explain(), y.Explain())
			spec = max(x.Replicas, 1)
		}
	})
}

// TestStateOfHostileCountsIsTakenBack: pods that are fewer than none, and counts that are too large to add up, leave a state
// that is refused by nobody.
func TestStateOfHostileCountsIsTakenBack(t *testing.T) {
	huge := observation(4, 0, 20, 100, 1500, 200)
	for i := range huge.Histograms {
		huge.Histograms[i].Counts = []float64{math.MaxFloat64, math.MaxFloat64, 0}
	}
	wide := observation(4, 0, 20, 100, 1500, 200)
	wide.Readings[0].Lower, wide.Readings[0].Upper = math.MaxFloat64, math.MaxFloat64
	fewer, negative := observation(4, 0, 20, 100, 1500, 200), observation(4, 0, 20, 100, 1500, 200)
	fewer.ReadyReplicas = -1
	negative.Readings[1].Values, negative.Readings[1].NotReady = 1, -5
	most := observation(4, 0, 20, 100, 1500, 200)
	for i := range most.Histograms {
		most.Histograms[i].Counts = []float64{math.MaxFloat64, 0, 0}
	}
	for i, first := range []scaling.Observation{huge, wide, fewer, negative, most} {
		scaler := build(t, config(), quiet{})
		p := scaling.New(scaler)
		for k, obs := range []scaling.Observation{first, observation(4, 0, 20, 50, 1500, 200), first, observation(4, 0, 20, 50, 1500, 200)} {
			p.Decide(start().Add(time.Duration(k)*15*time.Second), obs)
			state, err := p.MarshalJSON()
			require.NoError(t, err)
			again := scaling.New(scaler)
			require.NoError(t, again.UnmarshalJSON(state), "%d, %d", i, k)
		}
	}
}

// TestAClockThatStepsBackSettlesNothing: a fleet that did not have what it needs is not thought to have had it for long, and
// so is one from before 1970.
func TestAClockThatStepsBackSettlesNothing(t *testing.T) {
	for _, begin := range []time.Time{start(), time.Unix(-1e9, 0)} {
		s := State{}
		next := func(at time.Duration, settled bool) {
			now := begin.Add(at)
			obs := observation(4, 0, 20, 100+at.Seconds(), 1500, 200)
			s.turnBack(seconds(now), 15)
			x, missing := read(now, &obs, slo())
			require.Empty(t, missing)
			x.Late = x.Firsts
			s.see(x, &obs)
			s.guard(0.01, settled, settled)
		}
		for i := range 10 {
			next(time.Duration(i)*15*time.Second, false)
		}
		next(130*time.Second, false)
		require.Zero(t, s.Settled)
		for i := range 20 {
			next(time.Duration(140+15*i)*time.Second, true)
			require.Equal(t, i >= 5, s.Guard > 0, "%s, %d", begin, i)
		}
	}
}
