package capacity_test

import (
	"context"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// What would it have done on llm-d's ramp, told nothing but the bounds, the SLO and the server? And why, after 25 minutes?
func Example() {
	ramp := sim.Ramp()
	ramp.Metrics = capacity.Metrics()
	newGroup := func() (scaling.Group, error) {
		// nil tunes inside Decide; a controller has a &capacity.Background{}.
		scaler, err := capacity.New(capacity.For(sim.RampBounds(), ramp.SLO, ramp.Types[0].Server), nil)
		if err != nil {
			return nil, err // every wrong field, with its value and the rule
		}
		return scaling.GroupOf(scaling.New(scaler)), nil
	}
	var why string
	r, err := sim.Run(context.Background(), &ramp, newGroup, sim.Options{
		Seed: 1,
		Decision: func(now time.Time, _ *scaling.GroupObservation, d *scaling.GroupDecision) {
			if now.Sub(ramp.Begin()) == 25*time.Minute {
				why = d.Targets[0].Explain()
			}
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d requests, %.1f %% in time, %.2f replicas, %d ups and %d downs\n",
		r.Requests, 100*r.Attainment, r.AverageReplicas, r.Ups, r.Downs)
	fmt.Println(why)
	// Output:
	// 12480 requests, 99.6 % in time, 5.82 replicas, 5 ups and 5 downs
	// Hold at 8
	//   AtCapacity        8 -> 8    needed=8 == from=8, work=6.46269, capacity=0.926723
	// considered
	//   Trusted           8 -> 8    trust=0.316497
	//   Replayed          8 -> 8    late=0.00660627 <= allowed=0.00669712, requests=5747, age=4m45s
}
