package cronscale_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/scaling"
)

// A day under the two policies of the proposal. It does not matter when, or how often, anyone looks.
func Example() {
	scaler, err := cronscale.New(cronscale.Config{
		Bounds: scaling.Bounds{Min: 1, Max: 10},
		Policies: []cronscale.Policy{
			{Name: "scale-up", Schedule: "0 8 * * *", TargetReplicas: 5, TimeZone: "America/New_York"},
			{Name: "scale-down", Schedule: "1 0 * * *", TargetReplicas: 1, TimeZone: "America/New_York"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := scaling.New(scaler)
	replicas := int32(5)
	now := time.Date(2026, 1, 15, 4, 0, 0, 0, time.UTC)
	for range 5 {
		d := policy.Decide(now, scaling.Observation{SpecReplicas: replicas})
		fmt.Println(now.Format("15:04"), d.Reason())
		if d.Acts() {
			policy.Applied(now, replicas, d.Replicas)
			replicas = d.Replicas
		}
		now = now.Add(5 * time.Hour)
	}
	// Output:
	// 04:00 Hold at 5: AtTarget spec=5 == target=5
	// 09:00 Down 5 -> 1: Fired scale-down target=1, ago=3h59m
	// 14:00 Up 1 -> 5: Fired scale-up target=5, ago=1h
	// 19:00 Hold at 5: AtTarget spec=5 == target=5
	// 00:00 Hold at 5: AtTarget spec=5 == target=5
}

// Office hours as a window, and a batch window that runs past midnight.
func ExampleWindow() {
	scaler, err := cronscale.New(cronscale.Config{
		Mode:   cronscale.InWindow,
		Bounds: scaling.Bounds{Min: 1, Max: 10},
		Windows: []cronscale.Window{
			{Name: "office", Start: "0 8 * * MON-FRI", End: "0 18 * * *", Replicas: 6, TimeZone: "Europe/Berlin"},
			{Name: "batch", Start: "0 23 * * *", End: "0 2 * * *", Replicas: 3, TimeZone: "Europe/Berlin"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	friday := time.Date(2026, 1, 16, 17, 30, 0, 0, time.UTC)
	_, d := scaler.Decide(cronscale.State{}, friday, scaling.Observation{SpecReplicas: 6})
	fmt.Print(d.Explain())
	fmt.Println("look again at", d.Next)
	// Output:
	// Down 6 -> 1
	//   OutsideAll        6 -> 0    outside=0
	//   BelowMin          0 -> 1    from=0 < min=1
	// look again at 2026-01-16 22:00:00 +0000 UTC
}

// The night on which New York's clocks go from 02:00 to 03:00: what was to happen at 02:30 happens at 03:00.
func ExampleScaler_Timeline() {
	scaler, err := cronscale.New(cronscale.Config{
		Bounds: scaling.Bounds{Min: 1, Max: 10},
		Policies: []cronscale.Policy{
			{Name: "backup", Schedule: "30 2 * * *", TargetReplicas: 4, TimeZone: "America/New_York"},
			{Name: "day", Schedule: "0 4 * * *", TargetReplicas: 2, TimeZone: "America/New_York"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	from := time.Date(2026, 3, 7, 0, 0, 0, 0, zone)
	for change := range scaler.Timeline(from, from.AddDate(0, 0, 3)) {
		fmt.Println(change.At.In(zone).Format("Mon 15:04 MST"), change.Replicas, change.Name)
	}
	// Output:
	// Sat 00:00 EST 2 day
	// Sat 02:30 EST 4 backup
	// Sat 04:00 EST 2 day
	// Sun 03:00 EDT 4 backup
	// Sun 04:00 EDT 2 day
	// Mon 02:30 EDT 4 backup
	// Mon 04:00 EDT 2 day
}

// Every mistake of a configuration is reported, with the name of the policy.
func ExampleNew_errors() {
	_, err := cronscale.New(cronscale.Config{
		Bounds: scaling.Bounds{Min: 1, Max: 10},
		Policies: []cronscale.Policy{
			{Name: "hourly", Schedule: "@every 1h", TargetReplicas: 5},
			{Name: "night", Schedule: "0 0 31 2 *", TargetReplicas: -1},
		},
	})
	fmt.Println(err)
	// Output:
	// policies[0] "hourly".schedule: "@every 1h": @every has no fixed times: write the minutes, as in */15
	// policies[1] "night".targetReplicas: -1: must not be negative
	// policies[1] "night".schedule: "0 0 31 2 *": never fires: no date has these fields
}
