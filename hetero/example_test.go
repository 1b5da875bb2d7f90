package hetero_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

func Example() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "h100", Cost: 100, Min: 0, Max: 4},
		hetero.Type{Name: "a100", Cost: 60, Min: 1, Max: 8},
	))
	if err != nil {
		panic(err)
	}
	var counts []int32
	for total := int64(1); total <= 12; total += 3 {
		counts = fleet.Allocate(counts, total)
		fmt.Printf("K=%-2d h100=%d a100=%d cost=%v\n", total, counts[0], counts[1], fleet.Cost(counts))
	}
	// Output:
	// K=1  h100=0 a100=1 cost=60
	// K=4  h100=2 a100=2 cost=320
	// K=7  h100=3 a100=4 cost=540
	// K=10 h100=4 a100=6 cost=760
}

// The batches of a type double at rate 2; what remains is the last one and sorts by its own cost.
func ExampleFleet_Batches() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "a", Cost: 10, Max: 8},
		hetero.Type{Name: "b", Cost: 15, Max: 6},
	))
	if err != nil {
		panic(err)
	}
	types := fleet.Types()
	for b := range fleet.Batches() {
		fmt.Printf("%s: %d of %d at %v\n", types[b.Type].Name, b.Count, b.Size, b.Cost)
	}
	// Output:
	// a: 2 of 1 at 10
	// b: 1 of 1 at 15
	// a: 1 of 2 at 20
	// b: 1 of 2 at 30
	// a: 1 of 4 at 40
	// b: 1 of 3 at 45
}

// An H100 serves three and a half times what an L40S does. Four cheap replicas do not cover a
// demand of 9, and neither does a fifth: the sequence reaches it with the sixth.
func ExampleFleet_AllocateFor() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "h100", Cost: 98, Weight: 3.5, Max: 4},
		hetero.Type{Name: "l40s", Cost: 32, Weight: 1, Max: 4},
	))
	if err != nil {
		panic(err)
	}
	counts := fleet.AllocateFor(nil, 9)
	fmt.Println(counts, fleet.Capability(counts))
	// Output:
	// [2 4] 11
}

// The sequence looks at the total alone, and would rewrite a fleet that was placed by hand. Sticky placement gets there
// step by step, or not at all.
func ExampleFleet_AllocateSticky() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "a", Cost: 10, Max: 20},
		hetero.Type{Name: "b", Cost: 20, Max: 20},
	))
	if err != nil {
		panic(err)
	}
	current := []int32{18, 12}
	fmt.Println(fleet.Allocate(nil, 30))
	fmt.Println(fleet.AllocateSticky(nil, current, 30, 1))
	fmt.Println(fleet.AllocateSticky(nil, current, 31, 0))
	// Output:
	// [20 10]
	// [19 11]
	// [19 12]
}

func ExampleFleet_Plan() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "a", Cost: 10, Max: 20},
		hetero.Type{Name: "b", Cost: 20, Max: 20},
	))
	if err != nil {
		panic(err)
	}
	current := []int32{18, 12}
	for _, c := range fleet.Plan(nil, current, fleet.Allocate(nil, 30)) {
		fmt.Printf("%s: %d -> %d, start %d, stop %d\n", c.Name, c.From, c.To, c.Starts(), c.Stops())
	}
	// Output:
	// a: 18 -> 20, start 2, stop 0
	// b: 12 -> 10, start 0, stop 2
}

// Any policy's total becomes counts per type. Here the policy asks for what a reading says.
func ExampleNewGroup() {
	fleet, err := hetero.New(hetero.Kthena(
		hetero.Type{Name: "h100", Cost: 100, Min: 0, Max: 4},
		hetero.Type{Name: "a100", Cost: 60, Min: 1, Max: 8},
	))
	if err != nil {
		panic(err)
	}
	group, err := hetero.NewGroup(scaling.New[asksState](asks{}), fleet, hetero.Options{Exchanges: 1, WhenReady: true})
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	d := group.Decide(now, scaling.GroupObservation{
		Targets: []scaling.TargetObservation{
			{Name: "h100", SpecReplicas: 1, ReadyReplicas: 1},
			{Name: "a100", SpecReplicas: 2, ReadyReplicas: 2},
		},
		Readings: []scaling.Reading{scaling.Exactly("want", 6)},
	})
	fmt.Print(d.Explain())
	// Store the state, write the counts, then say what was written.
	group.Applied(now, []int32{1, 2}, []int32{2, 4})
	// Output:
	// Up 3 -> 6
	//   Asked             3 -> 6    want want=6
	// Up 1 -> 2
	//   Within            1 -> 2    h100 batch=100 <= margin=120, total=6
	// Up 2 -> 4
	//   Within            2 -> 4    a100 batch=120 <= margin=120, total=6
}
