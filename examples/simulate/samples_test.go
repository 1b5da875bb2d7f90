package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestSamplesDoNotFlap runs every sample manifest on llm-d's ramp and under three steady loads: the count hardly ever goes
// back within ten minutes. Before the whole of it had a stabilization,
// proportional.yaml did so 23 times in the ramp, as the time to the first token asked for replicas that the load, a
// minute later, did not need.
func TestSamplesDoNotFlap(t *testing.T) {
	long.Skip(t)
	const most = 2 // reversals
	files, err := filepath.Glob("../llmautoscaler/deploy/samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	scenarios := []sim.Scenario{sim.Ramp()}
	for _, rate := range []float64{3, 7, 12} {
		steady := sim.Ramp()
		traffic := steady.Workload.(sim.Stages)
		traffic.Stages = []sim.Stage{{Rate: rate, Duration: time.Hour}}
		steady.Name, steady.Workload, steady.Horizon = fmt.Sprintf("steady %g/s", rate), traffic, time.Hour
		scenarios = append(scenarios, steady)
	}
	for _, scenario := range scenarios {
		w := &world{Scenario: scenario, bounds: scaling.Bounds{Min: 1, Max: 16}}
		tried := map[string]bool{}
		for _, file := range files {
			scaler := scalerOf(t, file)
			if tried[scaler] { // two have one policy
				continue
			}
			tried[scaler] = true
			all, _, err := w.configured(file)
			require.NoError(t, err)
			for _, c := range all {
				s := w.Scenario
				s.Metrics, s.Types = c.metrics, slices.Clone(s.Types)
				s.Types[0].Initial = w.bounds.Min
				seeds := uint64(3)
				if strings.Contains(scaler, "capacity") { // its runs are of many replays each
					seeds = 1
				}
				for seed := uint64(1); seed <= seeds; seed++ {
					result, err := sim.Run(t.Context(), &s, func() (scaling.Group, error) { return c.controller(seed) }, sim.Options{Seed: seed})
					require.NoError(t, err)
					require.LessOrEqual(t, result.Reversals, int64(most), "%s of %s in %s, seed %d: %d changes", c.name, file, s.Name, seed, result.Actions)
				}
			}
		}
	}
}

// scalerOf returns the scaler of a manifest, as JSON.
func scalerOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	d, err := policy.Read(data, file)
	require.NoError(t, err)
	text, err := json.Marshal(d.Policies[0].Scaler)
	require.NoError(t, err)
	return string(text)
}
