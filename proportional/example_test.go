package proportional_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

func Example() {
	scaler, err := proportional.New(proportional.LLM(
		scaling.Bounds{Min: 1, Max: 8},
		proportional.Metric{Name: "inflight", Target: proportional.InFlightTarget},
	))
	if err != nil {
		panic(err)
	}
	policy := scaling.New(scaler)
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	for _, perPod := range []float64{36, 60, 200} {
		d := policy.Decide(now, scaling.Observation{
			SpecReplicas: 3, ReadyReplicas: 3,
			Readings: []scaling.Reading{{Metric: "inflight", Lower: perPod, Upper: perPod, Values: 3}},
		})
		fmt.Print(d.Explain())
		now = now.Add(15 * time.Second)
	}
	// Output:
	// Hold at 3
	//   Within            3 -> 3    inflight lower=108 <= high=115.5, upper=108 >= low=73.5
	// Up 3 -> 5
	//   AboveTarget       3 -> 5    inflight load=144 > limit=115.5, target=35
	// Up 3 -> 8
	//   AboveTarget       3 -> 12   inflight load=390 > limit=115.5, target=35
	//   AboveMax         12 -> 8    from=12 > max=8
}

// Two of five pods give no value. They count nothing when asking for more and the target when asking for less, so the
// load is an interval; one that reaches from "too little" to "too much" decides nothing.
func ExampleScaler_Decide_missingPods() {
	c := proportional.HPA(scaling.Bounds{Min: 1, Max: 8}, proportional.Metric{Name: "queue", Target: 10})
	c.Stabilization.Down = 0
	scaler, err := proportional.New(c)
	if err != nil {
		panic(err)
	}
	for _, sum := range []float64{12, 40, 70} {
		_, d := scaler.Decide(proportional.State{}, time.Unix(0, 0), scaling.Observation{
			SpecReplicas: 5, ReadyReplicas: 5,
			Readings: []scaling.Reading{{Metric: "queue", Lower: sum / 5, Upper: (sum + 2*10) / 5, Values: 3, Failed: 2}},
		})
		fmt.Println(d.Reason())
	}
	// Output:
	// Down 5 -> 4: BelowTarget queue load=32 < limit=45, target=10
	// Hold at 5: Within queue lower=40 <= high=55, upper=60 >= low=45
	// Up 5 -> 7: AboveTarget queue load=70 > limit=55, target=10
}

// An average from a query says nothing of its pods; it counts for every ready replica.
func ExampleMeasure() {
	for _, measure := range []proportional.Measure{proportional.Average, proportional.Total} {
		c := proportional.HPA(scaling.Bounds{Min: 1, Max: 20}, proportional.Metric{Name: "gpu_utilization", Target: 60, Measure: measure})
		c.Stabilization.Down = 0
		scaler, err := proportional.New(c)
		if err != nil {
			panic(err)
		}
		_, d := scaler.Decide(proportional.State{}, time.Unix(0, 0), scaling.Observation{
			SpecReplicas: 10, ReadyReplicas: 10, Readings: []scaling.Reading{scaling.Exactly("gpu_utilization", 95)},
		})
		fmt.Printf("%s: %s\n", measure, d.Reason())
	}
	// Output:
	// Average: Up 10 -> 16: AboveTarget gpu_utilization load=950 > limit=660, target=60
	// Total: Down 10 -> 2: BelowTarget gpu_utilization load=95 < limit=540, target=60
}

// A caller that samples each second and decides every fifteen records in between.
func ExampleScaler_Record() {
	scaler, err := proportional.New(proportional.KPA(
		scaling.Bounds{Min: 1, Max: 20}, proportional.Metric{Name: "queue", Target: 10, Measure: proportional.Total}))
	if err != nil {
		panic(err)
	}
	var state proportional.State
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	observe := func(queue float64) scaling.Observation {
		return scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{scaling.Exactly("queue", queue)}}
	}
	for i := range 14 {
		state = scaler.Record(state, now, observe(float64(40+i)))
		now = now.Add(time.Second)
	}
	_, d := scaler.Decide(state, now, observe(54))
	fmt.Print(d.Explain())
	// Output:
	// Up 4 -> 5
	//   AboveTarget       4 -> 5    queue load=47 > limit=40, target=10
}
