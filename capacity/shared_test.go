package capacity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/turns"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// few is a past of so many requests that a tuning takes next to no time.
func few(at float64) func() Past {
	return func() Past { return Past{Last: Tuning{At: at}} }
}

// TestTenantsTakeTurns: a tenant with many policies has as many turns as one with a single one, a job that loses its place is
// asked for again, and only one is at work.
func TestTenantsTakeTurns(t *testing.T) {
	var run func()
	s := Shared{Go: func(f func()) { require.Nil(t, run); run = f }}
	c := config()
	var crowd []Tuner
	for range 100 {
		crowd = append(crowd, s.Tuner("crowd"))
	}
	ask := func(tuner Tuner, at float64) bool {
		_, ok := tuner.Tune(&c, few(at))
		return ok
	}
	for i, tuner := range crowd {
		require.False(t, ask(tuner, float64(i)))
	}
	require.Equal(t, turns.Most, s.queue.Len(), "no more wait")
	other := s.Tuner("other")
	require.False(t, ask(other, 1000))
	require.Equal(t, turns.Most, s.queue.Len())
	require.Equal(t, 1, s.queue.Of("other"), "there is room for somebody else")
	require.Equal(t, turns.Most-1, s.queue.Of("crowd"))
	order := []string{}
	for range 3 {
		tenant, j, ok := s.queue.Take()
		require.True(t, ok)
		j.tuning, j.done = j.tune(), true
		s.queue.Did(tenant, 1)
		order = append(order, tenant)
	}
	assert.Equal(t, []string{"crowd", "other", "crowd"}, order)
	begin := run
	run = nil
	begin()
	require.False(t, s.busy)
	done := 0
	for i, tuner := range crowd[:turns.Most] {
		tuning, ok := tuner.Tune(&c, few(float64(i)))
		if ok {
			assert.Equal(t, float64(i), tuning.At, "its own")
			done++
		}
	}
	assert.Equal(t, turns.Most-1, done, "the one that lost its place asks again")
	_, ok := other.Tune(&c, few(1000))
	assert.True(t, ok)
}

// TestATuningThatPanicsLeavesItsPolicyAsItWas, and the others have their turns.
func TestATuningThatPanicsLeavesItsPolicyAsItWas(t *testing.T) {
	s := Shared{Go: func(f func()) { f() }}
	broken := &job{past: Past{Samples: []Sample{{At: 1}, {At: 2, Firsts: 1000}}, Lengths: []Sizes{{Answers: Buckets{Counts: []float64{1, 1, 1}}}}, Last: Tuning{At: 7}}, config: config()}
	assert.Equal(t, 7.0, broken.tune().At)
	tuner, c := s.Tuner("a"), config()
	_, ok := tuner.Tune(&c, func() Past { return broken.past })
	require.False(t, ok)
	tuning, ok := tuner.Tune(&c, nil)
	require.True(t, ok)
	assert.Equal(t, 7.0, tuning.At)
}

// TestARestartGathersThePastAnewAndLetsNothingGo: what package loop stores has the capacity, not the past. Whoever goes on with
// it takes nothing away before it has seen as much as a fresh start has to, and adds nothing for the restart.
func TestARestartGathersThePastAnewAndLetsNothingGo(t *testing.T) {
	c := config()
	begin := func(stored []byte) *loop.Loop {
		scaler := build(t, c, quiet{})
		l, err := loop.New(scaling.GroupOf(scaling.New(scaler)), loop.Config{Period: 15 * time.Second})
		require.NoError(t, err)
		require.NoError(t, l.Restore(stored))
		return l
	}
	state := State{Began: seconds(start()), Tuning: Tuning{trial: trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 300}, Requests: 100}}
	scaler := build(t, c, quiet{})
	policy := scaling.New[State](fixedState{scaler, state})
	group := scaling.GroupOf(policy)
	l, err := loop.New(group, loop.Config{Period: 15 * time.Second})
	require.NoError(t, err)
	require.NoError(t, l.Restore(nil))
	now, count, served, least, most := start(), int32(4), 0.0, int32(4), int32(4)
	round := func() {
		now, served = now.Add(15*time.Second), served+150
		l.Read(now, loop.Target{Key: "a", Replicas: count})
		obs := observation(count, 0, 20, served, 1500, 200)
		step := l.Decide(now, scaling.GroupObservation{Targets: []scaling.TargetObservation{{ReadyReplicas: count}}, Readings: obs.Readings, Histograms: obs.Histograms})
		if step.Store != nil {
			l.Saved(nil)
		}
		for w := range l.Writes() {
			count = w.To
			l.Wrote(w, loop.Applied)
		}
		if store, _ := l.Advance(now); store != nil {
			l.Saved(nil)
		}
		least, most = min(least, count), max(most, count)
	}
	for range 240 {
		round()
	}
	settled := count
	stored := l.Stored()
	assert.Less(t, len(stored), 2000)
	assert.Contains(t, string(stored), `"capacity":0.5`)
	for range 5 {
		l, served = begin(stored), 0
		least, most = count, count
		for range 25 { // 6 minutes
			round()
		}
		assert.Equal(t, settled, least)
		assert.Equal(t, settled, most)
	}
}

// fixedState is a Scaler that begins with a state.
type fixedState struct {
	Scaler
	state State
}

func (f fixedState) Decide(s State, now time.Time, obs scaling.Observation) (State, scaling.Decision) {
	if s.Began == 0 {
		s = f.state
	}
	return f.Scaler.Decide(s, now, obs)
}
