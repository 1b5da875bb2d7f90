package main

import (
	"fmt"
	"strconv"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
)

// A knob is the number of a policy that matters most.
type knob struct {
	family, name string // the policy, and its field
	values       []float64
	policy       func(x float64) string // in YAML
	own          func(p policy.Policy) float64
}

func knobs() []knob {
	fill := func(p policy.Policy) float64 { return p.Metrics()[0].Fill } // the target, or the high threshold
	return []knob{
		{"proportional/llm", "target", []float64{15, 25, 45, 60, 80}, func(x float64) string {
			return fmt.Sprintf(`proportional: {profile: llm, metrics: [{source: {engine: VLLM, signal: InFlight}, target: %g}]}`, x)
		}, fill},
		{"realtime/responsive", "high", []float64{20, 30, 50, 60, 80}, func(x float64) string {
			return fmt.Sprintf(`realtime: {profile: responsive, metrics: [{source: {engine: VLLM, signal: InFlight}, threshold: {high: %g, low: %g}}]}`, x, x/2)
		}, fill},
		{"saturation/default", "kvSpareTrigger", []float64{0.05, 0.2, 0.3, 0.4, 0.5}, func(x float64) string {
			return fmt.Sprintf(`saturation: {kvSpareTrigger: "%g"}`, x)
		}, func(policy.Policy) float64 { return saturation.Defaults().KVSpare }},
	}
}

// sweep returns points of the policies' main knobs, for the curves of the picture of cost against service.
func (w *world) sweep() ([]contender, error) {
	var all []contender
	for _, k := range knobs() {
		for _, x := range k.values {
			turned := k.name + " " + strconv.FormatFloat(x, 'g', -1, 64)
			name := k.family + ", " + turned
			d, err := policy.Read(fmt.Appendf(nil, "name: %q\n%s\n", name, k.policy(x)), name)
			if err != nil {
				return nil, err
			}
			c, err := w.contender(d.Policies[0])
			if err != nil {
				return nil, err
			}
			c.family, c.knob, c.turned = k.family, turned, x
			all = append(all, c)
		}
	}
	low, high := w.bounds.Min, w.bounds.Max
	for n := low; n <= high; n += max(1, (high-low+11)/12) {
		all = append(all, static(n))
	}
	return all, nil
}
