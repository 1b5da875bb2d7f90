package saturation_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// Two variants serve llama-70b. On average 2.5 requests of room are spare in the queues, and 3 should be: the cheaper
// variant grows by one.
func Example() {
	scaler, err := saturation.New(saturation.Defaults())
	if err != nil {
		panic(err)
	}
	var a saturation.Analysis
	scaler.Analyze(&a, []saturation.Replica{
		{Pod: "v1-l4-0", Variant: "v1-l4", KV: 0.5, Queue: 3},
		{Pod: "v1-l4-1", Variant: "v1-l4", KV: 0.5, Queue: 3},
		{Pod: "v2-a100-0", Variant: "v2-a100", KV: 0.5, Queue: 2},
		{Pod: "v2-a100-1", Variant: "v2-a100", KV: 0.5, Queue: 2},
	})
	var plan saturation.Plan
	scaler.Decide(saturation.State{}, time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), &a, []saturation.Variant{
		{Name: "v1-l4", Cost: 5, Current: 2},
		{Name: "v2-a100", Cost: 20, Current: 2},
	}, &plan)
	fmt.Print(plan.Explain())
	// Output:
	// Up 4 -> 5
	//   ShortQueue        4 -> 5    v1-l4-0 spare=2.5 < trigger=3, saturated=0, replicas=4
	//   Cheapest          5 -> 5    v1-l4 price=5 <= next=20
	// variant          price report     count        verdict rule
	// v1-l4                5      2      2 -> 3      Up      Cheapest v1-l4 price=5 <= next=20
	// v2-a100             20      2      2 -> 2      Hold    Dearer v1-l4 price=20 >= cheapest=5
}

// Nine of ten replicas are saturated. The averages of the source leave them out and see one idle replica.
func ExampleScaler_Analyze() {
	var replicas []saturation.Replica
	for i := range 10 {
		replicas = append(replicas, saturation.Replica{Pod: fmt.Sprint(i), KV: 0.95, Queue: 8})
	}
	replicas[0].KV, replicas[0].Queue = 0.2, 0
	for _, config := range []saturation.Config{saturation.Defaults(), saturation.WVA()} {
		scaler, err := saturation.New(config)
		if err != nil {
			panic(err)
		}
		var a saturation.Analysis
		scaler.Analyze(&a, replicas)
		fmt.Printf("%s: spare %.2f, up %v\n", config.Mode, a.SpareKV, a.ScaleUp)
	}
	// Output:
	// Default: spare 0.06, up true
	// Literal: spare 0.60, up false
}

// One target of which only averages are known.
func ExampleNewSingle() {
	policy, err := saturation.NewSingle(saturation.SingleConfig{
		Config: saturation.Defaults(),
		Bounds: scaling.Bounds{Min: 1, Max: 8},
		KV:     saturation.DefaultKV,
		Queue:  saturation.DefaultQueue,
	})
	if err != nil {
		panic(err)
	}
	d := policy.Decide(time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), scaling.Observation{
		SpecReplicas: 3, ReadyReplicas: 3,
		Readings: []scaling.Reading{
			scaling.Exactly(saturation.DefaultKV, 0.72),
			scaling.Exactly(saturation.DefaultQueue, 1),
		},
	})
	fmt.Print(d.Explain())
	// Output:
	// Up 3 -> 4
	//   ShortKV           3 -> 4    vllm:kv_cache_usage_perc spare=0.08 < trigger=0.1, saturated=0, replicas=3
	//   Alone             4 -> 4    vllm:kv_cache_usage_perc price=0
}

// A Group decides on the targets of a model; what it asks for is written, and then reported.
func ExampleNewGroup() {
	group, err := saturation.NewGroup(saturation.GroupConfig{
		Config: saturation.Defaults(),
		Variants: []saturation.Variant{
			{Name: "v1-l4", Cost: 5, Max: 8},
			{Name: "v2-a100", Cost: 20, Max: 4},
		},
	})
	if err != nil {
		panic(err)
	}
	pod := func(name string, kv, queue float64) scaling.PodObservation {
		return scaling.PodObservation{Name: name, Values: []float64{kv, queue}}
	}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	d := group.Decide(now, scaling.GroupObservation{
		Readings: []scaling.Reading{{Metric: saturation.DefaultKV}, {Metric: saturation.DefaultQueue}},
		Targets: []scaling.TargetObservation{
			{Name: "v1-l4", SpecReplicas: 2, ReadyReplicas: 2, Pods: []scaling.PodObservation{pod("v1-l4-0", 0.5, 3), pod("v1-l4-1", 0.5, 3)}},
			{Name: "v2-a100", SpecReplicas: 2, ReadyReplicas: 2, Pods: []scaling.PodObservation{pod("v2-a100-0", 0.5, 2), pod("v2-a100-1", 0.5, 2)}},
		},
	})
	for i := range d.Targets {
		fmt.Println(d.Targets[i].Reason())
	}
	group.Applied(now, []int32{2, 2}, []int32{3, 2})
	// Output:
	// Up 2 -> 3: ShortQueue v1-l4-0 spare=2.5 < trigger=3, saturated=0, replicas=4; Cheapest v1-l4 price=5 <= next=20
	// Hold at 2: Dearer v1-l4 price=20 >= cheapest=5
}
