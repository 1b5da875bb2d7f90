package scalingtest_test

import (
	"math"
	"testing"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// The tests of this file are as they were printed for policies with faults (see TestPrintedTestIsOneThatCompiles). On
// the policy without a fault they pass.

func TestRegressionNeverPanics(t *testing.T) {
	scalingtest.Replay(t, newPolicy, scalingtest.Options{Bounds: scaling.Bounds{Min: 1, Max: 8}}, "NeverPanics", scalingtest.Episode{
		Spec: 1,
		Ticks: []scalingtest.Tick{
			{After: 15 * time.Second, Readings: []scaling.Reading{{Metric: "cache", Lower: math.Inf(1), Upper: math.NaN(), Values: 1}, {Metric: "queue", Lower: 11.5, Upper: 11.5, Values: 1}}},
		},
	})
}

func TestRegressionRestart(t *testing.T) {
	scalingtest.Replay(t, newPolicy, scalingtest.Options{Bounds: scaling.Bounds{Min: 1, Max: 8}}, "Restart", scalingtest.Episode{
		Spec: 1,
		Ticks: []scalingtest.Tick{
			{Readings: []scaling.Reading{{Metric: "cache", Lower: 0.875, Upper: 0.875, Values: 1}, {Metric: "queue", Lower: 11.5, Upper: 11.5, Values: 1}}},
			{After: 15 * time.Second, Readings: []scaling.Reading{{Metric: "cache", Lower: 0.875, Upper: 0.875, Values: 1}, {Metric: "queue", Lower: 11.5, Upper: 11.5, Values: 1}}},
		},
	})
}

func TestRegressionClockBack(t *testing.T) {
	scalingtest.Replay(t, newPolicy, scalingtest.Options{Bounds: scaling.Bounds{Min: 1, Max: 8}}, "ClockBack", scalingtest.Episode{
		Spec: 1,
		Ticks: []scalingtest.Tick{
			{Readings: []scaling.Reading{{Metric: "cache", Lower: 0.25, Upper: 0.25, Values: 1}, {Metric: "queue", Lower: 4, Upper: 4, Values: 1}}},
			{After: -1 * time.Second, Readings: []scaling.Reading{{Metric: "cache", Lower: 0.875, Upper: 0.875, Values: 1}, {Metric: "queue", Lower: 11.5, Upper: 11.5, Values: 1}}},
		},
	})
}

func TestRegressionNoData(t *testing.T) {
	scalingtest.Replay(t, newPolicy, scalingtest.Options{Bounds: scaling.Bounds{Min: 1, Max: 8}}, "NoData", scalingtest.Episode{
		Spec: 2,
		Ticks: []scalingtest.Tick{
			{Readings: []scaling.Reading{{Metric: "cache", Lower: math.NaN(), Upper: math.NaN(), Values: 1}, {Metric: "queue", Lower: math.NaN(), Upper: math.NaN(), Values: 1}}},
		},
	})
}

func TestRegressionMonotone(t *testing.T) {
	scalingtest.Replay(t, newPolicy, scalingtest.Options{Bounds: scaling.Bounds{Min: 1, Max: 8}}, "Monotone", scalingtest.Episode{
		Spec:    1,
		Changes: []scalingtest.Change{{Metric: "queue", Lower: 10, Upper: 10}},
		Ticks: []scalingtest.Tick{
			{After: 15 * time.Second, Readings: []scaling.Reading{{Metric: "cache", Lower: 0.75, Upper: 0.75, Values: 1}, {Metric: "queue", Lower: 11.5, Upper: 11.5, Values: 1}}, Refuse: true},
		},
	})
}

func TestRegressionConvergence(t *testing.T) {
	scalingtest.Replay(t, newPolicy, scalingtest.Options{Bounds: scaling.Bounds{Min: 1, Max: 8}, Convergence: &scalingtest.Convergence{Within: 100, Want: func([]scalingtest.Load) (least, most int32) { return 2, 3 }}}, "Convergence", scalingtest.Episode{
		Spec:  1,
		Loads: []scalingtest.Load{{Metric: "cache", Sum: 0.75}, {Metric: "queue", Sum: 12}},
		Ticks: []scalingtest.Tick{
			{After: 15 * time.Second, Times: 105},
		},
	})
}

// remembersAMinute is no fault: the state has the last sixty seconds, and does not grow once they are there.
const remembersAMinute = "remembers a minute"

// Regression: two thousand rounds of a pattern of milliseconds were over before the policy had all that it looks back on,
// so that a state which was filling up counted as one that grows.
func TestBoundedStateOutlastsTheMemory(t *testing.T) {
	scalingtest.Replay(t, func() scaling.Policy { return newStepper(remembersAMinute) }, scalingtest.Options{
		Bounds: scaling.Bounds{Min: 1, Max: 8}, Memory: time.Minute, MaxState: 1000,
	}, "BoundedState", scalingtest.Episode{Spec: 1, Ticks: []scalingtest.Tick{{After: 2 * time.Millisecond}}})
}

func TestRegressionOrder(t *testing.T) {
	scalingtest.ReplayGroup(t, newGroup, scalingtest.Options{Targets: []scalingtest.Target{{Name: "a", Bounds: scaling.Bounds{Min: 1, Max: 5}}, {Name: "b", Bounds: scaling.Bounds{Min: 1, Max: 5}}}}, "Order", scalingtest.Episode{
		Specs: []int32{1, 1},
		Ticks: []scalingtest.Tick{
			{Readings: []scaling.Reading{{Metric: "queue", Lower: 11.5, Upper: 11.5, Values: 1}}},
		},
	})
}
