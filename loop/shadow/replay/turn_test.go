package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/turns"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// idle is what a fleet says that serves nothing.
func idle() (obs scaling.Observation) {
	obs.SpecReplicas, obs.ReadyReplicas = 1, 1
	for _, m := range capacity.Metrics() {
		if m.Signal < sim.PromptTokens {
			obs.Readings = append(obs.Readings, scaling.Exactly(m.Name, 0))
		} else {
			obs.Histograms = append(obs.Histograms, scaling.Histogram{Metric: m.Name, Bounds: []float64{1}, Counts: []float64{0, 0}})
		}
	}
	return obs
}

// TestRegressionNamespacesTakeTurnsToReplay: whoever asked in the moment in which no replay ran had the turn, so that a namespace with
// hundreds of triggers nearly always had it. Now each has its turn, and a place that is lost is asked for again.
func TestRegressionNamespacesTakeTurnsToReplay(t *testing.T) {
	var turn Turn
	watched, err := shadow.New(shadow.Config{Policies: []shadow.Policy{{Name: "a", Policy: scaling.New[int](nil)}}, Go: func(f func()) { f() }})
	require.NoError(t, err)
	config := capacity.For(scaling.Bounds{Max: 8}, sim.SLO{TTFT: 2 * time.Second, TPOT: 60 * time.Millisecond}, sim.Qwen32B())
	now, begun := time.Unix(1700000000, 0), 0
	see := func(r *Replays) {
		if r.See(now, idle(), watched) != nil {
			begun++
		}
	}
	var all []*Replays
	for i := range 101 {
		tenant := "crowd"
		if i == 100 {
			tenant = "one"
		}
		r, err := New(Config{Capacity: config, Turn: &turn, Tenant: tenant})
		require.NoError(t, err)
		all = append(all, r)
		see(r)
	}
	now = now.Add(Every)
	for _, r := range all {
		see(r)
		see(r) // it waits
	}
	require.Equal(t, 1, begun, "one goroutine at a time")
	require.Equal(t, turns.Most, turn.queue.Len(), "no more wait")
	require.Equal(t, 1, turn.queue.Of("one"))
	var order []string
	for range 3 {
		tenant, j, ok := turn.queue.Take()
		require.True(t, ok)
		turn.queue.Did(tenant, 1+j.of.run(j))
		order = append(order, tenant)
	}
	require.Equal(t, []string{"crowd", "one", "crowd"}, order)
	see(all[turns.Most-1])
	require.Equal(t, turns.Most-2, turn.queue.Of("crowd"), "the one that lost its place has one again")
	turn.work()
	require.Zero(t, turn.queue.Len())
	require.False(t, turn.busy)
	for _, r := range all {
		require.Nil(t, r.job)
	}
}
