package realtime_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

func Example() {
	scaler, err := realtime.New(realtime.Kaito(
		scaling.Bounds{Min: 1, Max: 8},
		realtime.Metric{Name: "vllm:num_requests_waiting", High: 10, Low: 2},
	))
	if err != nil {
		panic(err)
	}
	policy := scaling.New(scaler)
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	for _, waiting := range []float64{12, 14} {
		d := policy.Decide(now, scaling.Observation{
			SpecReplicas: 3, ReadyReplicas: 3,
			Readings: []scaling.Reading{scaling.Exactly("vllm:num_requests_waiting", waiting)},
		})
		fmt.Print(d.Explain())
		now = now.Add(15 * time.Second)
	}
	// Output:
	// Hold at 3
	//   UpWindow          3 -> 3    vllm:num_requests_waiting lower=12 > high=10, held=15s < window=30s
	// Up 3 -> 4
	//   AboveHigh         3 -> 4    vllm:num_requests_waiting lower=14 > high=10, held=30s >= window=30s
}

// One pod of three gives no value. It counts 0 when asking for more and High when asking for less, so the reading is
// an interval, and an interval that reaches across a threshold decides nothing.
func ExampleScaler_Decide_missingPod() {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "queue", High: 10, Low: 2})
	c.Up.Window, c.Down.Window = 0, 0
	scaler, err := realtime.New(c)
	if err != nil {
		panic(err)
	}
	_, d := scaler.Decide(realtime.State{}, time.Unix(0, 0), scaling.Observation{
		SpecReplicas: 3, ReadyReplicas: 3,
		Readings: []scaling.Reading{{Metric: "queue", Lower: 0, Upper: 3.3, Values: 2, Failed: 1}},
	})
	fmt.Println(d.Reason())
	// Output:
	// Hold at 3: Between queue lower=0 <= high=10, upper=3.3 >= low=2
}
