package main

import (
	"context"
	"fmt"
	"math"

	"github.com/inferscale/inferscale/sim"
)

// What llm-d publishes of its loop in the reference scenario, and how far the simulator may be from it before any
// comparison is believed.
const (
	publishedAttainment = 0.958
	publishedReplicas   = 5.93
	withinAttainment    = 0.02 // in points: 2 %
	withinReplicas      = 0.05 // of the published number

	fidelitySeeds = 10
)

// A fidelity is how llm-d's loop does in the reference scenario on one server.
type fidelity struct {
	Server   string   `json:"server"`
	Attained estimate `json:"attained"`
	Replicas estimate `json:"replicas"`
	Pass     bool     `json:"pass"`
	// Variant says that this server is shown for comparison: it need not pass.
	Variant bool `json:"variant"`
}

// checkFidelity runs llm-d's law in the reference scenario as it is published, whatever other flags say.
func checkFidelity(ctx context.Context, workers int, p *progress) ([]fidelity, error) {
	w := &world{Scenario: sim.Ramp(), bounds: sim.RampBounds()}
	r := &runner{comparison: &comparison{world: w, seeds: fidelitySeeds}, workers: workers, progress: p}
	var all []fidelity
	for i, server := range []sim.Server{sim.Qwen32B(), sim.Qwen32BFitted()} {
		lines, err := r.runAll(ctx, []contender{w.llmd()}, 0, func(c *contender, _ int) sim.Scenario {
			s := sim.Ramp()
			s.Types[0].Server, s.Metrics = server, c.metrics
			return s
		})
		if err != nil {
			return nil, err
		}
		results := lines[0].results
		f := fidelity{
			Server:   server.Name,
			Attained: over(results, func(r *sim.Result) float64 { return r.Attainment }),
			Replicas: over(results, func(r *sim.Result) float64 { return r.AverageReplicas }),
			Variant:  i > 0,
		}
		f.Pass = math.Abs(f.Attained.Mean-publishedAttainment) <= withinAttainment &&
			math.Abs(f.Replicas.Mean-publishedReplicas) <= withinReplicas*publishedReplicas
		all = append(all, f)
	}
	return all, nil
}

// verdict returns PASS or FAIL.
func (f *fidelity) verdict() string {
	if f.Pass {
		return "PASS"
	}
	return "FAIL"
}

// unfaithful returns the error of a simulator that does not meet the published figures.
func unfaithful(all []fidelity) error {
	for _, f := range all {
		if !f.Pass && !f.Variant {
			return fmt.Errorf("the simulator does not meet the published figures on %s: no comparison is to be believed", f.Server)
		}
	}
	return nil
}
