package saturation

import (
	"encoding/json"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// A Replica is what one replica reports. There is one row for every replica that is there to be asked. One that is not
// there yet has none, which makes its variant one in transition. One that is there and whose values could not be had
// has a row with NaN in it (an infinity or a negative gauge is none either): it counts as idle for up and as saturated
// for down, so that an up holds whatever it would have said, and no down is taken while it says nothing. Rows count as
// often as they are given: package scrape counts a pod once.
type Replica struct {
	Pod     string  `json:"pod"`
	Variant string  `json:"variant"`
	KV      float64 `json:"kv"`    // KV cache usage, a fraction
	Queue   float64 `json:"queue"` // waiting requests
}

// A Variant is one of the workloads that serve a model: what it costs, within which bounds it may run, and how it
// stands.
type Variant struct { //nolint:recvcheck // a plain value; inner methods take its address to spare copies
	Name string `json:"name"`
	// Cost of a replica, in any unit that the variants share, from 0 to 1e100.
	Cost float64 `json:"cost"`
	// Capacity of a replica relative to the others', such as 1 and 3 for accelerators of which one serves three times
	// as much, from 1e-100 to 1e100. Variants are compared by cost per capacity. 0 means 1.
	Capacity float64 `json:"capacity,omitempty"`
	// Min and Max are the fewest and the most replicas. Max 0 means no upper bound, as in llm-d. Whatever Min says,
	// the last replica of a variant is never taken away.
	Min int32 `json:"min,omitempty"`
	Max int32 `json:"max,omitempty"`
	// Current is the count that the workload is asked to run (spec.replicas), not what runs.
	Current int32 `json:"current"`
	// Desired is the target of the run before, if one is known. 0 is a real value, except in mode Literal.
	Desired Count `json:"desired,omitzero"`
	// Pending is how many of Current exist and are not ready.
	Pending int32 `json:"pending,omitempty"`
}

// A Count is a number of replicas, or none, which is its zero value.
type Count struct {
	Set bool
	N   int32
}

// CountOf returns the count n.
func CountOf(n int32) Count { return Count{Set: true, N: n} }

// IsZero reports whether there is no count, so that the JSON option omitzero leaves it out.
func (c Count) IsZero() bool { return !c.Set }

// MarshalJSON writes the number, or null for none.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Set {
		return []byte("null"), nil
	}
	return json.Marshal(c.N)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Count) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*c = Count{}
		return nil
	}
	c.Set = true
	return json.Unmarshal(data, &c.N)
}

// Validate reports every wrong field of the variant at once, each as a scaling.FieldError. A variant that is wrong is
// held and reported by Decide in mode Default; nothing else in the model is.
func (v Variant) Validate() error {
	var e scaling.FieldErrors
	e.Check(v.hasCost(), "cost", v.Cost, "must be a number from 0 to 1e100")
	e.Check(v.hasCapacity(), "capacity", v.Capacity, "must be 0, which is 1, or a number from 1e-100 to 1e100")
	e.Check(v.Min >= 0, "min", v.Min, "must not be negative")
	e.Check(v.Max == 0 || v.Max >= max(v.Min, 1), "max", v.Max, "must be 0, which is none, or not below min")
	e.Check(v.Current >= 0, "current", v.Current, "must not be negative")
	e.Check(!v.Desired.Set || v.Desired.N >= 0, "desired", v.Desired.N, "must not be negative")
	e.Check(v.Pending >= 0, "pending", v.Pending, "must not be negative")
	return e.Err()
}

// Costs and capacities are kept from the limits of a float64, so that neither a price nor a sum is infinite or NaN.
func (v *Variant) hasCost() bool { return v.Cost >= 0 && v.Cost <= 1e100 }

func (v *Variant) hasCapacity() bool {
	return v.Capacity == 0 || v.Capacity >= 1e-100 && v.Capacity <= 1e100
}

// valid is Validate without the words.
func (v *Variant) valid() bool {
	return v.hasCost() && v.hasCapacity() &&
		v.Min >= 0 && (v.Max == 0 || v.Max >= max(v.Min, 1)) &&
		v.Current >= 0 && (!v.Desired.Set || v.Desired.N >= 0) && v.Pending >= 0
}

// bounds returns the variant's bounds with those that are left out filled in.
func (v *Variant) bounds() scaling.Bounds {
	b := scaling.Bounds{Min: v.Min, Max: v.Max}
	if b.Max == 0 {
		b.Max = math.MaxInt32
	}
	return b
}

// capacity returns the variant's capacity, 1 if it says none.
func (v *Variant) capacity() float64 {
	if v.Capacity == 0 {
		return 1
	}
	return v.Capacity
}

// wish returns the count that the workload is on its way to.
func (v *Variant) wish() int32 {
	if v.Desired.Set {
		return v.Desired.N
	}
	return v.Current
}
