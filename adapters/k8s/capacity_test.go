package k8s_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	documents "github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// countingFleet is a fleet that serves two requests a second, and counts them.
type countingFleet struct {
	clock *clock
	from  time.Time
}

func (c *countingFleet) Observe(_ context.Context, scales []k8s.Scale) (k8s.Observed, error) {
	seen := k8s.Observed{Fleets: []k8s.FleetView{{Ready: scales[0].Replicas}}}
	n := 2 * c.clock.now.Sub(c.from).Seconds()
	for _, m := range capacity.Metrics()[:3] {
		seen.Readings = append(seen.Readings, scaling.Reading{Metric: m.Name, Lower: .1, Upper: .1, Values: scales[0].Replicas})
	}
	for _, m := range capacity.Metrics()[3:] {
		each := map[string]float64{capacity.PromptSize: 1000, capacity.Prefilled: 1000, capacity.AnswerSize: 200, capacity.TTFT: .2, capacity.TPOT: .015}[m.Name]
		seen.Histograms = append(seen.Histograms, scaling.Histogram{Metric: m.Name, Bounds: []float64{each}, Counts: []float64{n, 0}, Sum: n * each, At: c.clock.now})
	}
	return seen, nil
}

// TestCapacityIsFoundBesideTheRounds: no round waits for a replay; what one has found decides afterwards, is told, and is
// stored without the past. A loop that goes on from there takes nothing away for the restart.
func TestCapacityIsFoundBesideTheRounds(t *testing.T) {
	const document = `
maxReplicas: 8
scaler: {capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, coldStartSeconds: 60, forecast: {mode: Disabled}}}
`
	d, err := documents.Read([]byte(document), "capacity.yaml")
	require.NoError(t, err)
	spec := d.Policies[0].Spec
	spec.ScaleTargetRef = documents.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
	var beside []func()
	shared := capacity.Shared{Go: func(f func()) { beside = append(beside, f) }}
	c, clock := newCluster(4), &clock{start}
	observer := &countingFleet{clock: clock, from: start.Add(-time.Minute)}
	begin := func() *k8s.Loop {
		plan, err := build.With(&spec, func() capacity.Tuner { return shared.Tuner("models") })
		require.NoError(t, err)
		require.Len(t, plan.Scrape.Metrics, 8)
		require.NoError(t, plan.Scrape.Validate())
		return newLoop(t, c, observer, clock, func(l *k8s.LoopConfig) { l.Policy = plan.Policy })
	}
	rounds := func(l *k8s.Loop, n int) (o k8s.Outcome) {
		for range n {
			clock.pass()
			o = tick(t, l)
		}
		return o
	}
	l := begin()
	o := rounds(l, 20)
	require.Len(t, beside, 1, "one is asked for")
	require.Equal(t, capacity.Untuned, o.Decision.Code(), "it has not been made")
	beside[0]()
	o = rounds(l, 24)
	require.Contains(t, o.Decision.Explain(), "capacity=")
	require.Contains(t, o.Decision.Explain(), "Simulated")
	require.Len(t, beside, 2, "and the next")
	beside[1]()
	o = rounds(l, 40)
	require.Contains(t, o.Decision.Explain(), "Replayed")
	count := o.Scale.Replicas
	require.Less(t, count, int32(4), "four are more than two requests a second need")
	stored := c.stored(t)
	require.Contains(t, stored, `"capacity":`)
	require.NotContains(t, stored, "volatile")
	require.Less(t, len(stored), 2000)
	require.Equal(t, 0, strings.Count(stored, `"samples"`))

	observer.from = clock.now // the counters of another scraper begin anew
	l = begin()
	for range 20 {
		o = rounds(l, 1)
		require.Equal(t, scaling.Hold, o.Decision.Verdict, o.Decision.Explain())
	}
	require.Equal(t, count, o.Scale.Replicas)
}
