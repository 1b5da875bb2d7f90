package shadow_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// Eight replicas stand there by somebody else's rule. What would a target of 35 requests in flight ask for?
func Example() {
	scaler, err := proportional.New(proportional.HPA(scaling.Bounds{Min: 1, Max: 20}, proportional.Metric{Name: "in_flight", Target: 35}))
	if err != nil {
		panic(err) // every wrong field, with its value and the rule
	}
	shadows, err := shadow.New(shadow.Config{
		Policies: []shadow.Policy{{Name: "in-flight", Policy: scaling.New(scaler), Metrics: []shadow.Metric{{Name: "in_flight", Fill: 35}}}},
	})
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	for i := range 30 {
		each := 12.0 // 96 in all, and after a while 288
		if i >= 26 {
			each = 36
		}
		reading := scaling.FromPods("in_flight", []float64{each, each, each, each, each, each, each, each}, scaling.Missing{}, 35)
		// Here the real policy has decided, and what it decided is written.
		shadows.Look(now, scaling.Observation{SpecReplicas: 8, ReadyReplicas: 8, Readings: []scaling.Reading{reading}})
		shadows.Wait(nil) // a controller does not: what is not decided by the next look is left out
		if w := shadows.Wishes()[0]; w.Verdict != scaling.Hold {
			fmt.Println(w.Reason)
		}
		now = now.Add(15 * time.Second)
	}
	w := shadows.Wishes()[0]
	fmt.Printf("%.0f replica-seconds instead of %.0f\n", w.ReplicaSeconds, w.RealReplicaSeconds)
	// Output:
	// Down 8 -> 3: BelowTarget in_flight load=96 < limit=252, target=35
	// Up 3 -> 7: AboveTarget in_flight load=288 > limit=115.5, target=35; UpLimited from=9 > limit=7
	// Up 7 -> 9: AboveTarget in_flight load=288 > limit=269.5, target=35
	// 3045 replica-seconds instead of 3480
}
