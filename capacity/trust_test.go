package capacity

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
)

// goalMisses is the share of the requests that may miss the SLO in these tests.
const goalMisses = 0.01

// TestTrustIsTheProductOfFour: each alone takes it away.
func TestTrustIsTheProductOfFour(t *testing.T) {
	const short = 1200 / trustedAge // the past has twenty minutes
	trust := func(start, missed float64, change func(*Sample)) float64 {
		p := past(12, func(int) int32 { return 4 })
		p.Start = start
		last := p.Samples[len(p.Samples)-1].At
		for i := range p.Samples {
			if p.Samples[i].At > last-changeSpan {
				change(&p.Samples[i])
			}
		}
		return p.trust(&Tuning{Served: 1000, Missed: missed}, goalMisses)
	}
	same := func(*Sample) {}
	assert.InDelta(t, short, trust(0, 0, same), 1e-9)
	assert.InDelta(t, short*5/6, trust(100, 0, same), 1e-9)
	assert.Zero(t, trust(600, 0, same))
	assert.Zero(t, trust(7200, 0, same))
	assert.InDelta(t, short/2, trust(0, 2.5, same), 1e-9, "a quarter of the ten that may")
	assert.Zero(t, trust(0, 5, same), "half of them")
	assert.Zero(t, trust(0, 100, same))

	p := past(12, func(int) int32 { return 4 })
	assert.Zero(t, p.trust(&Tuning{}, goalMisses), "nothing is known of misses")

	middle := p.Samples[len(p.Samples)-41] // ten minutes before the end
	longer := func(prompts, answers float64) func(*Sample) {
		return func(x *Sample) {
			x.Prefilled += (prompts - 1) * (x.Prefilled - middle.Prefilled)
			x.Generated += (answers - 1) * (x.Generated - middle.Generated)
		}
	}
	by := func(times float64) float64 { return short * (1 - math.Log(times/(1+(times-1)/2))/trustedChange) } // the whole past has half of it
	assert.InDelta(t, by(1.2), trust(0, 0, longer(1.2, 1)), 1e-9)
	assert.InDelta(t, by(1.2), trust(0, 0, longer(1, 1.2)), 1e-9)
	assert.InDelta(t, by(1.4), trust(0, 0, longer(1.2, 1.4)), 1e-9, "the larger change counts")
	assert.Zero(t, trust(0, 0, longer(1, 3)))
	assert.Zero(t, trust(0, 0, longer(0.3, 1)), "shorter ones change the work of a request as well")
}

// TestTrustOfAnyPast: from 0 to 1, no more for more misses or a longer start, and the same where all is counted in other units.
func TestTrustOfAnyPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p, scaled Past
		x, times := Sample{}, rapid.Float64Range(0.01, 100).Draw(t, "unit")
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			count, mean := rapid.IntRange(0, 1000), rapid.Float64Range(1, 1e5)
			x.At += rapid.Float64Range(1, 120).Draw(t, "dt")
			firsts, finished := float64(count.Draw(t, "firsts")), float64(count.Draw(t, "finished"))
			x.Firsts, x.Finished = x.Firsts+firsts, x.Finished+finished
			x.Prefilled, x.Generated = x.Prefilled+firsts*mean.Draw(t, "prompt"), x.Generated+finished*mean.Draw(t, "answer")
			p.Samples = append(p.Samples, x)
		}
		p.Start = rapid.Float64Range(0, 1200).Draw(t, "start")
		scaled = Past{Samples: slices.Clone(p.Samples), Start: p.Start}
		for i := range scaled.Samples {
			scaled.Samples[i].Prefilled *= times
			scaled.Samples[i].Generated *= times
		}
		served := rapid.Float64Range(0, 1e6).Draw(t, "served")
		missed := rapid.Float64Range(0, served*2*goalMisses).Draw(t, "missed")
		trust := p.trust(&Tuning{Served: served, Missed: missed}, goalMisses)
		require.GreaterOrEqual(t, trust, 0.0)
		require.LessOrEqual(t, trust, 1.0)
		require.InDelta(t, trust, scaled.trust(&Tuning{Served: served, Missed: missed}, goalMisses), 1e-9)
		require.LessOrEqual(t, p.trust(&Tuning{Served: served, Missed: missed * 1.1}, goalMisses), trust)
		p.Start *= 1.1
		require.LessOrEqual(t, p.trust(&Tuning{Served: served, Missed: missed}, goalMisses), trust)
	})
}

// TestWhatIsNoLengthIsNotTrusted: of counters without tokens, and with a mean beyond all numbers, trust was not a number.
func TestWhatIsNoLengthIsNotTrusted(t *testing.T) {
	for name, finished := range map[string]float64{"no answers": 0, "a billionth of nothing": 7e-307} {
		p := past(12, func(int) int32 { return 4 })
		for i := range p.Samples {
			p.Samples[i].Finished *= finished
			if finished == 0 {
				p.Samples[i].Generated = 0
			}
		}
		require.Zero(t, p.trust(&Tuning{Served: 1}, goalMisses), name)
	}
}

// steady is a past with 12 requests a second all the time, in which nothing was tuned.
func steady(t *testing.T) Past {
	t.Helper()
	p := passed(t, func(float64) float64 { return 12 })
	p.Start, p.Last = 30, Tuning{}
	begin(&p, 12)
	return p
}

// TestASteadyPastIsTrusted: steady traffic that had missed nothing was served at 0.85 of what a fleet takes for all time, though replays
// kept the goal with more.
func TestASteadyPastIsTrusted(t *testing.T) {
	long.Skip(t)
	c := config()
	p := steady(t)
	first := p.Tune(&c)
	require.Zero(t, first.Trust, "nothing had been served before")
	require.LessOrEqual(t, first.Capacity, findable*first.Fleet+1e-9)

	p.Last = first
	p.Last.At -= tuneEvery
	p.Last.Missed = 0
	calm := p.Tune(&c)
	require.Greater(t, calm.Trust, 0.8)
	assert.Greater(t, calm.Capacity, findable*calm.Fleet)
	assert.LessOrEqual(t, calm.Capacity, (findable+trusted)*calm.Fleet)

	p.Last.Missed = p.Last.Served * goalMisses // all that may
	missed := p.Tune(&c)
	require.Zero(t, missed.Trust)
	assert.LessOrEqual(t, missed.Capacity, findable*missed.Fleet+1e-9)

	// What is kept for the mean work is less by as much, and the decision says why.
	kept := func(trust float64) (capacity, mean float64, says bool) {
		x := calm
		x.Trust = trust
		s := State{Tuning: x, Began: 1}
		scaler := build(t, c, quiet{})
		for i := range 25 {
			obs := observation(9, 0, 20, 1000+500*min(float64(i), 20), 1500, 200) // nothing comes in the last minute
			next, d := scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
			s = next
			if step, ok := d.Find(Unseen); ok {
				mean, capacity = step.Numbers[2], step.Numbers[3]
			}
			_, says = d.Find(Trusted)
		}
		return capacity, mean, says
	}
	none, mean, said := kept(0)
	require.Positive(t, none)
	require.False(t, said)
	full, _, said := kept(1)
	require.True(t, said)
	all := func(given float64) float64 { return mean/given + (calm.Mean-mean)/calm.Fleet } // replicas for the mean of the past
	assert.InEpsilon(t, all(none)*seen/(seen+trusted), all(full), 1e-9)
}

// TestLargeFleetsHaveTheRoomOfSmallOnes: beyond nine replicas that the mean work fills there is room for what the past did not show, the
// more the longer a start takes. It is the same whatever a token's work is measured in.
func TestLargeFleetsHaveTheRoomOfSmallOnes(t *testing.T) {
	for _, row := range []struct{ replicas, lead, room float64 }{
		{0, 600, 0}, {3, 600, 0}, {9, 600, 0}, {18, 600, 0.1}, {18, 150, 0.1}, {18, 75, 0.05}, {90, 330, 0.18}, {9e6, 330, 0.2},
	} {
		for _, unit := range []float64{1e-3, 1, 1e3} {
			try := Tuning{trial: trial{Capacity: 0.8 * unit, Fleet: unit, Mean: row.replicas * unit}}
			require.InDelta(t, row.room, try.ample(row.lead), 1e-6, "%v", row)
		}
	}
	// And a decision has it, but for a young state's room.
	given := func(mean float64) float64 {
		try := someTrial()
		try.Mean = mean
		s, d := State{Began: 1, Tuning: Tuning{trial: try}}, scaling.Decision{}
		c := config()
		c.ColdStart = 300 * time.Second
		scaler := build(t, c, quiet{})
		for i := range 9 {
			s, d = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(9, 0, 20, 1000+500*float64(i), 1500, 200))
		}
		for _, step := range d.Steps() {
			if step.Code == AboveCapacity || step.Code == BelowCapacity || step.Code == AtCapacity {
				return step.Numbers[3]
			}
		}
		t.Fatal(d.Explain())
		return 0
	}
	few, many := given(0.7*5), given(0.7*36)
	require.InEpsilon(t, few/(1+0.2*(1-9.0/36)), many, 0.02)
}
