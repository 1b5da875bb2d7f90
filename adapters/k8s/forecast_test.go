package k8s_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	documents "github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// dailyFleet is a fleet whose load rises from half past seven to eight, until twelve in UTC.
type dailyFleet struct{ clock *clock }

func (c *dailyFleet) Observe(_ context.Context, scales []k8s.Scale) (k8s.Observed, error) {
	n, now := scales[0].Replicas, c.clock.now
	h := now.Sub(now.Truncate(24 * time.Hour)).Hours()
	load := 15 + 40*min(max(2*h-15, 0), 1)
	if h >= 12 {
		load = 15
	}
	load /= float64(n)
	return k8s.Observed{
		Fleets:   []k8s.FleetView{{Ready: n}},
		Readings: []scaling.Reading{{Metric: "rate", Lower: load, Upper: load, Values: n}},
	}, nil
}

// TestForecastOutlivesRestarts: what an LLMAutoScaler's forecast knows of a day is stored while nothing happens; a process
// that begins on the second morning, with another one's state, has the replicas minutes before they are needed.
func TestForecastOutlivesRestarts(t *testing.T) {
	const document = `
maxReplicas: 8
intervalSeconds: 60
scaler: {proportional: {metrics: [{source: {name: rate}, target: 10}], stabilization: {downSeconds: 60}, forecast: {timeZone: Europe/London}}}
`
	d, err := documents.Read([]byte(document), "forecast.yaml")
	require.NoError(t, err)
	spec := d.Policies[0].Spec
	spec.ScaleTargetRef = documents.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
	clock := &clock{time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)}
	c := newCluster(2)
	begin := func() *k8s.Loop {
		plan, err := build.Spec(&spec)
		require.NoError(t, err)
		return newLoop(t, c, &dailyFleet{clock}, clock, func(l *k8s.LoopConfig) { l.Policy, l.Interval = plan.Policy, plan.Interval })
	}
	l := begin()
	full := func(until time.Time) (at time.Time) { // when there are five replicas
		for clock.now.Before(until) {
			clock.now = clock.now.Add(time.Minute)
			if o := tick(t, l); at.IsZero() && o.Decision.Replicas >= 5 {
				at = clock.now
			}
		}
		return at
	}
	day := func(n, hour int) time.Time { return time.Date(2026, 1, n, hour, 0, 0, 0, time.UTC) }
	first, night := full(day(15, 12)), full(day(16, 6))
	require.NotZero(t, first)
	require.Zero(t, night)
	stored := c.stored(t)
	require.Contains(t, stored, `"demand":"rate PerPod"`)
	require.Contains(t, stored, `"zone":"Europe/London"`)
	require.Equal(t, 2, strings.Count(stored, `"s":"`), "days")
	require.NotContains(t, stored, "volatile")
	require.Less(t, len(stored), 16<<10)

	l = begin()
	second := full(day(16, 12))
	require.Less(t, second, first.AddDate(0, 0, 1).Add(-3*time.Minute), "%s, %s", first, second)
}
