package forecast_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// counted counts what a policy is told.
type counted struct {
	scaling.Policy
	told []string
}

func (c *counted) Applied(now time.Time, from, to int32) {
	c.told = append(c.told, fmt.Sprintf("%d->%d", from, to))
	c.Policy.Applied(now, from, to)
}

// TestAForecastThroughALimitStartsNoCooldown: a lift that rate limits around it made smaller was told to the base as if it were its own,
// whose cooldown of ten minutes then kept it from an overload.
func TestAForecastThroughALimitStartsNoCooldown(t *testing.T) {
	steps, err := realtime.New(realtime.Kaito(scaling.Bounds{Min: 1, Max: 20}, realtime.Metric{Name: "queue", High: 1000, Low: 1}))
	require.NoError(t, err)
	base := &counted{Policy: scaling.New(steps)}
	var past []forecast.Sample
	for at := time.Date(2026, 3, 2, 0, 5, 0, 0, time.UTC); at.Day() < 5; at = at.Add(5 * time.Minute) {
		demand := 40.0
		if since := at.Add(-5 * time.Minute); since.Hour() >= 8 && since.Hour() < 18 {
			demand = 200
		}
		past = append(past, forecast.Sample{At: at, Demand: demand})
	}
	source := func(obs *scaling.Observation, _ *scaling.Decision) (scaling.Reading, float64) {
		return obs.Reading("queue"), 35
	}
	p, err := forecast.New(base, source, forecast.For(scaling.Bounds{Min: 1, Max: 20}, time.UTC), past...)
	require.NoError(t, err)
	p, err = scaling.RateLimited(p, scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 2, Period: time.Minute}}, Select: scaling.SelectMax}})
	require.NoError(t, err)
	spec := int32(2)
	for at := time.Date(2026, 3, 5, 7, 0, 0, 0, time.UTC); at.Hour() < 8; at = at.Add(15 * time.Second) {
		r := scaling.Exactly("queue", 40) // neither above nor below the base's thresholds
		r.At = at
		d := p.Decide(at, scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec, Readings: []scaling.Reading{r}})
		if d.Acts() {
			p.Applied(at, spec, d.Replicas)
			spec = d.Replicas
		}
	}
	require.Greater(t, spec, int32(4), "the forecast lifted")
	require.Empty(t, base.told, "nothing of which the base asked for")
}
