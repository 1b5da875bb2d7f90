package sim

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Ramp is the reference scenario: the benchmark of llm-d's guide to SLO-aware autoscaling. It has 2, 4, 6, 8, 10, 4 and 1
// requests per second for about six minutes each, of about 4,000 tokens in and 1,000 out, on 3 to 8 replicas of Qwen32B that
// take 100 s to start. A request must have its first token within 3 s and each further one within 100 ms. Cost is counted
// for 45 minutes: the 40.5 minutes of load and the time in which that loop scales down to its minimum.
//
// Source: llm-d, guides/workload-autoscaling/slo-aware/benchmark-templates (2026), Apache-2.0. Its load generator, in
// its constant mode, draws exponential gaps and scales them to the exact number of requests.
func Ramp() Scenario {
	stage := func(rate float64, seconds int) Stage {
		return Stage{Rate: rate, Duration: time.Duration(seconds) * time.Second}
	}
	return Scenario{
		Name: "ramp",
		Workload: Stages{
			Stages: []Stage{stage(2, 330), stage(4, 360), stage(6, 360), stage(8, 360), stage(10, 360), stage(4, 360), stage(1, 300)},
			Input:  Length{Mean: 4000, Deviation: 300, Min: 3500, Max: 4500},
			Output: Length{Mean: 1000, Deviation: 80, Min: 900, Max: 1100},
			CV:     1, Exact: true,
		},
		Types:   []Type{{Server: Qwen32B(), Initial: RampBounds().Min, Startup: ColdStart(100 * time.Second)}},
		SLO:     SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond},
		Scrape:  Scrape{Interval: 5 * time.Second, Stale: 30 * time.Second},
		Control: Control{Interval: 15 * time.Second},
		Horizon: 45 * time.Minute,
		Grace:   15 * time.Minute,
	}
}

// RampBounds are the bounds of the reference scenario.
func RampBounds() scaling.Bounds { return scaling.Bounds{Min: 3, Max: 8} }
