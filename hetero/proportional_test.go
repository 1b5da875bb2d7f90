package hetero_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// Kthena's heterogeneous autoscaler: package proportional decides how many replicas the load needs, this package of
// which type they are. The load rises from 40 to 110 requests in flight and falls to 65; a replica takes 10.
func ExampleGroup_proportional() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "a100", Cost: 60, Min: 1, Max: 8},
		hetero.Type{Name: "l40s", Cost: 32, Min: 1, Max: 8},
	))
	if err != nil {
		panic(err)
	}
	low, high := fleet.Totals()
	config := proportional.HPA(
		scaling.Bounds{Min: int32(low), Max: int32(high)},
		proportional.Metric{Name: "inflight", Target: 10, Measure: proportional.Total},
	)
	config.Stabilization.Down = 0
	scaler, err := proportional.New(config)
	if err != nil {
		panic(err)
	}
	group, err := hetero.NewGroup(scaling.New(scaler), fleet, hetero.Options{})
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	targets := []scaling.TargetObservation{
		{Name: "a100", SpecReplicas: 1, ReadyReplicas: 1}, {Name: "l40s", SpecReplicas: 1, ReadyReplicas: 1},
	}
	for _, load := range []float64{40, 110, 65} {
		d := group.Decide(now, scaling.GroupObservation{Targets: targets, Readings: []scaling.Reading{scaling.Exactly("inflight", load)}})
		fmt.Println(d.Total.Reason())
		var from, to []int32
		for i := range targets {
			from, to = append(from, targets[i].SpecReplicas), append(to, d.Targets[i].Replicas)
			targets[i].SpecReplicas, targets[i].ReadyReplicas = to[i], to[i]
		}
		fmt.Println("  a100, l40s:", from, "->", to)
		group.Applied(now, from, to)
		now = now.Add(15 * time.Second)
	}
	// Output:
	// Up 2 -> 4: AboveTarget inflight load=40 > limit=22, target=10
	//   a100, l40s: [1 1] -> [2 2]
	// Up 4 -> 8: AboveTarget inflight load=110 > limit=44, target=10; UpLimited from=11 > limit=8
	//   a100, l40s: [2 2] -> [4 4]
	// Down 8 -> 7: BelowTarget inflight load=65 < limit=72, target=10
	//   a100, l40s: [4 4] -> [3 4]
}
