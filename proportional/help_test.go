package proportional_test

import (
	"encoding/json"
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

var start = time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)

// anyCount are bounds that bound nothing.
var anyCount = scaling.Bounds{Min: 0, Max: math.MaxInt32}

// pointwise returns a configuration without windows, tolerance, limits and bounds.
func pointwise(metrics ...proportional.Metric) proportional.Config {
	return proportional.Config{Bounds: anyCount, Metrics: metrics}
}

// inflight is the metric of most tests: totals, ten a replica.
var inflight = proportional.Metric{Name: "inflight", Target: 10, Measure: proportional.Total}

// holding is the observation of a fleet of which all that was asked for is ready.
func holding(spec int32, readings ...scaling.Reading) scaling.Observation {
	return scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec, Readings: readings}
}

func build(t require.TestingT, c proportional.Config) proportional.Scaler {
	s, err := proportional.New(c)
	require.NoError(t, err)
	return s
}

// copied returns a state that shares nothing with the one given, by way of JSON.
func copied(t require.TestingT, state proportional.State) proportional.State {
	data, err := json.Marshal(state)
	require.NoError(t, err)
	var c proportional.State
	require.NoError(t, json.Unmarshal(data, &c))
	require.NoError(t, c.Validate())
	return c
}

// at returns the time so many seconds after the start.
func at(seconds float64) time.Time {
	return start.Add(time.Duration(math.Round(seconds * float64(time.Second))))
}
