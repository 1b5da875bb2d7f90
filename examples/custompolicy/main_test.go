package main

import (
	"testing"
	"time"

	"github.com/inferscale/inferscale/scalingtest"
	"github.com/inferscale/inferscale/sim"
)

func TestShortQueue(t *testing.T) {
	scalingtest.Run(t, newPolicy, scalingtest.Options{
		Metrics:  []scalingtest.Metric{{Name: sim.MetricWaiting, Low: 0, High: 2}},
		Bounds:   sim.RampBounds(),
		Memory:   10 * time.Minute,
		Monotone: true,
		Refused:  true,
	})
}
