package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// What would a policy have done on the reference ramp?
func Example() {
	s := sim.Ramp()
	s.Metrics = []sim.Metric{{Name: sim.MetricInFlight, Signal: sim.InFlight, Fill: realtime.InFlightHigh}}
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) {
		scaler, err := realtime.New(realtime.Responsive(sim.RampBounds(),
			realtime.Metric{Name: sim.MetricInFlight, High: realtime.InFlightHigh, Low: realtime.InFlightLow}))
		return scaling.GroupOf(scaling.New(scaler)), err
	}, sim.Options{Policy: "responsive", Seed: 1})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d requests, %.1f %% in time, %.2f replicas, %d ups and %d downs\n",
		r.Requests, 100*r.Attainment, r.AverageReplicas, r.Ups, r.Downs)
	// Output:
	// 12480 requests, 99.9 % in time, 5.79 replicas, 3 ups and 5 downs
}

// A replica that is ready after a minute, and what the fleet looked like on the way.
func ExampleRun_timeline() {
	s := sim.Ramp()
	s.Types[0].Startup = sim.ColdStart(time.Minute)
	s.Workload = sim.Stages{
		Stages: []sim.Stage{{Rate: 2, Duration: 5 * time.Minute}}, CV: 1,
		Input: sim.Length{Mean: 4000, Min: 1, Max: 8000}, Output: sim.Length{Mean: 500, Min: 1, Max: 1000},
	}
	s.Horizon = 0
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) {
		return sim.Schedule(s.Begin(), 2*time.Minute, []int32{3, 4, 2}), nil
	}, sim.Options{Timeline: 75 * time.Second})
	if err != nil {
		panic(err)
	}
	for _, m := range r.Timeline {
		fmt.Printf("%-6s asked for %d, ready %d, cost %d\n", m.At, m.Spec, m.Ready, m.Replicas)
	}
	// Output:
	// 0s     asked for 3, ready 3, cost 3
	// 1m15s  asked for 3, ready 3, cost 3
	// 2m30s  asked for 4, ready 3, cost 4
	// 3m45s  asked for 4, ready 4, cost 4
	// 5m0s   asked for 2, ready 2, cost 2
}
