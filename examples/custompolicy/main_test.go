package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

func TestCommandLine(t *testing.T) {
	for args, want := range map[string]int{"-h": 0, "-x": 2, "x": 2} {
		var out, errs bytes.Buffer
		require.Equal(t, want, program([]string{args}, &out, &errs), args)
		shown, other := &out, &errs
		if want != 0 {
			shown, other = &errs, &out
		}
		require.Contains(t, shown.String(), "Usage of custompolicy: ", args)
		require.Empty(t, other.String(), args)
	}
}
