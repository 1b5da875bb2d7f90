package oracle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

// A start costs as much as three slots: a gap of two is bridged, one of five is not.
func ExampleCover() {
	p := oracle.Cover([]int32{1, 3, 1, 1, 3, 1, 1, 1, 1, 1, 2, 1}, 3, 1)
	fmt.Println(p.Counts)
	fmt.Println(p.Cost, "replica-slots,", p.Starts, "starts")
	// Output:
	// [1 3 3 3 3 1 1 1 1 1 2 1]
	// 30 replica-slots, 3 starts
}

// The same demand, for a controller that adds one replica at a time, takes one away at most every fourth slot, and
// whose replicas are ready one slot after they are asked for.
func ExampleConstrained() {
	p, err := oracle.Constrained([]int32{1, 1, 3, 1, 1, 3, 1, 1, 1, 1, 1, 2, 1}, oracle.Rules{
		Bounds: scaling.Bounds{Min: 1, Max: 5}, UpStep: 1, DownStep: 1, DownCooldown: 4, StartSlots: 1, Initial: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Counts)
	fmt.Println(p.Cost, "replica-slots,", p.Uncovered, "uncovered")
	// Output:
	// [2 3 3 3 3 3 2 2 2 2 2 2 1]
	// 30 replica-slots, 0 uncovered
}

// What would llm-d's ramp have cost with foresight, at 99 % attainment?
func ExampleReplay() {
	ctx := context.Background()
	s := sim.Ramp()
	capacity, err := oracle.FindCapacity(ctx, &s, 0, 0.99, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	best, err := oracle.Replay(ctx, &s, 1, capacity, oracle.Search{Alpha: 0.99, Bounds: sim.RampBounds()})
	if err != nil {
		fmt.Println(err)
		return
	}
	static := sim.Ramp()
	static.Types[0].Initial = 8
	full, err := sim.Run(ctx, &static, func() (scaling.Group, error) { return sim.Static(8), nil }, sim.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("attains:", best.Result.Attainment >= 0.99)
	fmt.Println("eight replicas all the time cost more than 1.5 times as much:", oracle.Score(&full, &best) > 1.5)
	// Output:
	// attains: true
	// eight replicas all the time cost more than 1.5 times as much: true
}

func ExampleZeroLag() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c, err := oracle.ZeroLag(start, []int32{1, 5, 2, 0}, time.Minute, 2*time.Minute, scaling.Bounds{Min: 1, Max: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 4 {
		d := c.Decide(start.Add(time.Duration(i)*time.Minute), scaling.GroupObservation{Targets: []scaling.TargetObservation{{SpecReplicas: 1}}})
		fmt.Print(d.Targets[0].Replicas, " ")
	}
	fmt.Println()
	// Output: 1 4 4 2
}

func ExampleHetero() {
	fleet, err := hetero.New(hetero.Config{ExpansionRate: 2, Types: []hetero.Type{
		{Name: "a100", Cost: 3, Weight: 1, Max: 10},
		{Name: "h100", Cost: 5, Weight: 2, Max: 10},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := oracle.Hetero(fleet, []float64{2, 3, 4, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Counts, p.Cost)
	fmt.Printf("%.2f starts and stops a step; the sequence costs %.0f %% more\n", p.Churn(), 100*p.Comparison.Premium())
	// Output:
	// [[0 1] [1 1] [0 2] [1 1]] 31
	// 1.67 starts and stops a step; the sequence costs 13 % more
}

func ExampleHetero_comparison() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "big", Cost: 7, Weight: 7, Max: 4},
		hetero.Type{Name: "small", Cost: 3, Weight: 2.5, Max: 4},
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := oracle.Hetero(fleet, []float64{5, 6, 5, 6, 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("premium %.1f%%, cold starts saved %d\n", 100*p.Comparison.Premium(), p.Comparison.SavedStarts())
	// Output:
	// premium 12.5%, cold starts saved 4
}

// What ran before is replaced for one unit of demand more: the cheapest placement is no way of placing.
func ExampleOptimal() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "big", Cost: 7, Weight: 7, Max: 4},
		hetero.Type{Name: "small", Cost: 3, Weight: 2.5, Max: 4},
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, demand := range []float64{5, 6} {
		counts, err := oracle.Optimal(nil, fleet, demand)
		fmt.Println(counts, err)
	}
	// Output:
	// [0 2] <nil>
	// [1 0] <nil>
}
