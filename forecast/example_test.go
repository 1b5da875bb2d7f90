package forecast_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// A floor under a policy by requests in flight, which knows three days from a file of history.
func Example() {
	bounds := scaling.Bounds{Min: 1, Max: 20}
	inFlight := proportional.Metric{Name: "in_flight", Target: 35, Measure: proportional.Total}
	base, err := proportional.New(proportional.LLM(bounds, inFlight))
	if err != nil {
		panic(err)
	}

	file := "time,demand\n"
	for at := time.Date(2026, 3, 2, 0, 5, 0, 0, time.UTC); at.Day() < 5; at = at.Add(5 * time.Minute) {
		demand := 40
		if since := at.Add(-5 * time.Minute); since.Hour() >= 8 && since.Hour() < 18 {
			demand = 200
		}
		file += fmt.Sprintf("%s,%d\n", at.Format(time.RFC3339), demand)
	}
	history, err := forecast.Read(strings.NewReader(file), "history.csv")
	if err != nil {
		panic(err)
	}
	policy, err := forecast.New(scaling.New(base), inFlight.Demand, forecast.For(bounds, time.UTC), history...)
	if err != nil {
		panic(err)
	}

	for at := time.Date(2026, 3, 5, 7, 0, 0, 0, time.UTC); ; at = at.Add(15 * time.Second) {
		d := policy.Decide(at, scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly("in_flight", 40)}})
		if d.Code() == scaling.Lifted && d.Replicas > 3 {
			fmt.Print(at.Format("15:04:05 "), d.Explain())
			return
		}
	}
	// Output:
	// 07:44:30 Up 2 -> 6
	//   Needed            2 -> 2    in_flight load=40 < limit=49, target=35
	//   Foreseen          2 -> 2    Daily expected=200, each=35, ratio=1, lead=5m30s
	//   Lifted            2 -> 6    Daily from=2 < floor=6
}
