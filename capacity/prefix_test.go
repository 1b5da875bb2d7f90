package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// alike is requests for a while, as many a second throughout, whose prompts begin with one of 20 texts of so many tokens and go on with
// 500 of their own.
func alike(rate float64, common int32, span time.Duration) (requests []sim.Request) {
	random, at := splitmix.Stream{State: 3}, 0.0
	for at += random.Exponential() / rate; at < span.Seconds(); at += random.Exponential() / rate {
		text := uint64(random.Uniform() * 20)
		r := sim.Request{At: time.Duration(at * float64(time.Second)), Input: common + 500, Output: 100 + int32(random.Uniform()*200)}
		for k := range uint64(common / 100) {
			r.Blocks = append(r.Blocks, text<<32|k)
		}
		for k := range uint64(5) {
			r.Blocks = append(r.Blocks, uint64(len(requests)+100)<<32|k)
		}
		requests = append(requests, r)
	}
	return requests
}

// TestWhatIsInAPrefixCacheIsNoWork: replays computed prompts whole that a fleet takes most of from its caches, and so found that a replica
// takes two thirds of what it does; simulated fleets said of all tokens that they were computed, and had two and a half times the replicas.
func TestWhatIsInAPrefixCacheIsNoWork(t *testing.T) {
	long.Skip(t)
	s := day(0, 0)
	s.Workload = sim.Trace{Requests: alike(8, 8000, 40*time.Minute)}
	s.Router, s.BlockTokens, s.Types[0].Initial = sim.PrefixCache, 100, 4
	fewest := int32(0)
	for attained := 0.0; attained < 0.99; {
		fewest++
		attained = runPolicy(t, &s, func() (scaling.Group, error) { return sim.Static(fewest), nil }).Attainment
	}
	for _, row := range []struct {
		replicas  int32
		low, high float64
	}{{fewest, 0.95, 1}, {fewest - 1, 0, 0.8}, {1 << 30, 1, 1}} {
		assertAttained(t, &s, fewest, row.replicas, row.low, row.high)
	}
	r := run(t, &s, config(), nil)
	assert.Greater(t, r.PrefixHits, r.PrefixQueries*9/10)
	assert.GreaterOrEqual(t, r.Attainment, 0.99)
	assert.Less(t, r.ReplicaHours, 1.8*float64(fewest)*40/60, "nothing is let go in the first minutes")
}

// assertAttained asks what another count would have attained of a past that so many replicas have served.
func assertAttained(t *testing.T, s *sim.Scenario, served, asked int32, low, high float64) {
	t.Helper()
	c := config()
	recorder, err := NewRecorder(c)
	require.NoError(t, err)
	began := time.Time{}
	_, err = sim.Run(t.Context(), s, func() (scaling.Group, error) { return sim.Static(served), nil }, sim.Options{
		Seed: 1,
		Decision: func(now time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
			if began.IsZero() {
				began = now
			}
			one := &obs.Targets[0]
			recorder.See(now, scaling.Observation{SpecReplicas: one.SpecReplicas, ReadyReplicas: one.ReadyReplicas, Readings: obs.Readings, Histograms: obs.Histograms})
		},
	})
	require.NoError(t, err)
	past := recorder.Past(0)
	a, known := past.Attained(&c, []Count{{At: began, Replicas: asked}})
	require.True(t, known)
	assert.GreaterOrEqual(t, a.Attained, low, "%d replicas", asked)
	assert.LessOrEqual(t, a.Attained, high, "%d replicas", asked)
}

// TestChanceIsNoPrefixCache: the mean of few prompts of very different lengths is another than that of those before.
func TestChanceIsNoPrefixCache(t *testing.T) {
	random := splitmix.Stream{State: 1}
	for range 200 {
		var requests []sim.Request
		p := Past{Samples: make([]Sample, 2)}
		for i := range 600 {
			tokens := int32(100 * math.Exp(3*random.Uniform()*random.Uniform()*2))
			if i < 300 {
				requests = append(requests, sim.Request{Input: tokens})
			} else {
				p.Samples[1].Firsts++
				p.Samples[1].Prefilled += float64(tokens)
			}
		}
		require.Zero(t, p.hits(requests))
		p.Samples[1].Prefilled /= 4
		require.InDelta(t, 0.45, p.hits(requests), 0.3, "less than is so, by what chance does")
	}
}
