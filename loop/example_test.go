package loop_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// A controller in one function, without a store. What it forgets in a restart are cooldowns and windows.
func Example() {
	spec := int32(3) // what the workload is asked to run: your spec.replicas
	read := func() int32 { return spec }
	write := func(n int32) loop.Result { spec = n; return loop.Applied }
	observe := func() (ready int32, waiting scaling.Reading) {
		return spec, scaling.Exactly("vllm:num_requests_waiting", 14)
	}

	scaler, err := realtime.New(realtime.Kaito(
		scaling.Bounds{Min: 1, Max: 8},
		realtime.Metric{Name: "vllm:num_requests_waiting", High: 10, Low: 2},
	))
	if err != nil {
		panic(err) // every wrong field, with its value and the rule
	}
	control, err := loop.New(scaling.GroupOf(scaling.New(scaler)), loop.Config{Volatile: true})
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	for range 3 {
		control.Read(now, loop.Target{Replicas: read()})
		step := control.Decide(now, scaling.OneTarget(observe()))
		for w := range control.Writes() {
			control.Wrote(w, write(w.To))
		}
		control.Advance(now)
		fmt.Print(step.Explain())
		now = now.Add(15 * time.Second) // sleep(loop.RequeueAfter(now, time.Now(), step.Next(), 15*time.Second))
	}
	// Output:
	// Hold at 3
	//   UpWindow          3 -> 3    vllm:num_requests_waiting lower=14 > high=10, held=15s < window=30s
	// Up 3 -> 4
	//   AboveHigh         3 -> 4    vllm:num_requests_waiting lower=14 > high=10, held=30s >= window=30s
	// Hold at 4
	//   AboveHigh         4 -> 5    vllm:num_requests_waiting lower=14 > high=10, held=45s >= window=30s
	//   Cooldown          5 -> 4    elapsed=15s < cooldown=10m
}

// With a store a restart changes nothing: what is to be stored before a write, and after it, is what Decide and Advance
// return.
func ExampleLoop() {
	var store []byte
	spec, version := int32(3), 7
	round := func(now time.Time, control *loop.Loop, load float64) {
		for again := true; again; {
			if control.NeedsRestore() {
				if err := control.Restore(store); err != nil {
					fmt.Println(err) // it decides Unknown until there is a good one
				}
			}
			control.Read(now, loop.Target{Key: "chat", Version: fmt.Sprint(version), Replicas: spec})
			step := control.Decide(now, scaling.OneTarget(spec, scaling.Exactly("load", load)))
			if step.Store != nil {
				store = step.Store
				control.Saved(nil)
			}
			for w := range control.Writes() {
				spec, version = w.To, version+1
				control.Wrote(w, loop.Applied)
			}
			var after []byte
			if after, again = control.Advance(now); after != nil {
				store = after
				control.Saved(nil)
			}
			fmt.Println(step.Targets[0].Reason())
		}
	}
	begin := func() *loop.Loop {
		control, err := loop.New(scaling.GroupOf(scaling.New(stepper{})), loop.Config{Conflicts: 3})
		if err != nil {
			panic(err)
		}
		return control
	}
	round(start(), begin(), 50)
	round(start().Add(15*time.Second), begin(), 50) // another process
	round(start().Add(75*time.Second), begin(), 50)
	// Output:
	// Up 3 -> 4: Step
	// Hold at 4: Cooling
	// Up 4 -> 5: Step
}
