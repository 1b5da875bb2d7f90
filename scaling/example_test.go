package scaling_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Tracker is an algorithm of one's own: it asks for one replica for every ten requests in flight. A Stepper is all it
// takes to be driven by whatever drives a scaling.Policy, and to be composed with the rest.
type Tracker struct{}

// Codes of the tracker.
const (
	Demand scaling.Code = "Demand load, target"
	Enough scaling.Code = "Enough lower, upper, target"
)

func (Tracker) Kind() scaling.Kind { return scaling.Kind{Name: "tracker", Version: 1} }

func (Tracker) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	load := obs.Reading("inflight")
	if !load.Known() {
		return s, scaling.UnknownAt(obs.SpecReplicas, "NoData", "inflight")
	}
	// What is missing never causes an action: up on what is certain, down on what is possible.
	d := scaling.HoldAt(obs.SpecReplicas)
	least, most := scaling.Ceil(load.Lower/10), scaling.Ceil(load.Upper/10)
	switch {
	case least > d.From:
		d.To(least, Demand, "inflight", load.Lower, 10)
	case most < d.From:
		d.To(most, Demand, "inflight", load.Upper, 10)
	default:
		d.To(d.From, Enough, "inflight", load.Lower, load.Upper, 10)
	}
	return s, d
}

func (Tracker) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

func ExampleNew() {
	policy, err := scaling.RateLimited(scaling.New(Tracker{}), scaling.RateLimits{
		Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 2, Period: time.Minute}}},
	})
	if err != nil {
		panic(err)
	}
	if policy, err = scaling.Bounded(policy, scaling.Bounds{Min: 1, Max: 8}); err != nil {
		panic(err)
	}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	d := policy.Decide(now, scaling.Observation{
		SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{scaling.Exactly("inflight", 93)},
	})
	fmt.Print(d.Explain())
	policy.Applied(now, d.From, d.Replicas)
	state, err := json.Marshal(policy)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(state))
	// Output:
	// Up 4 -> 6
	//   Demand            4 -> 10   inflight load=93, target=10
	//   UpLimited        10 -> 6    from=10 > limit=6
	// {"kind":"bounded","version":1,"state":{"base":{"kind":"ratelimited","version":1,"state":{"base":{"kind":"tracker","version":1,"state":{}},"applied":[{"at":1768464000000,"delta":2}]}}}}
}

// A policy that cannot read its state decides nothing, says so, and keeps the state as it is.
func ExamplePolicy_newerState() {
	policy := scaling.New(Tracker{})
	err := json.Unmarshal([]byte(`{"kind":"tracker","version":2,"state":{"trend":3}}`), policy)
	fmt.Println(err)
	d := policy.Decide(time.Unix(0, 0), scaling.Observation{SpecReplicas: 4})
	fmt.Println(d.Reason())
	// Output:
	// state of tracker version 2 refused by policy tracker version 1: state was written by a newer version
	// Unknown at 4: StateRefused tracker
}
