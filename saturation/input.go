package saturation

import (
	"encoding/json"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// A Replica is what one replica reports. There is one row for every replica that can be scraped. A replica that does not
// exist yet has no row, which puts its variant in transition. A replica that exists but gave no values has a row with NaN
// (an infinity or a negative gauge counts as no value, too). Such a row counts as idle for up, so that an up is right
// whatever the missing value is, and as saturated for down, so that there is no down while the value is missing. Rows count
// as often as they are given: package scrape counts a pod once.
type Replica struct {
	Pod     string  `json:"pod"`
	Variant string  `json:"variant"`
	KV      float64 `json:"kv"`    // KV cache usage, a fraction
	Queue   float64 `json:"queue"` // waiting requests
}

// A Variant is one of the workloads that serve a model: its cost, its bounds and its present counts.
type Variant struct { //nolint:recvcheck // a plain value; inner methods take its address to spare copies
	Name string `json:"name"`
	// Cost of a replica, in any unit that the variants share, from 0 to 1e100.
	Cost float64 `json:"cost"`
	// Capacity of a replica relative to the other variants, from 1e-100 to 1e100: for example 1 and 3 if one accelerator
	// serves three times as much. Variants are compared by cost per capacity. 0 means 1.
	Capacity float64 `json:"capacity,omitempty"`
	// Min and Max are the fewest and the most replicas. Max 0 means no upper bound, as in llm-d. Whatever Min says, the last
	// replica of a variant is never removed.
	Min int32 `json:"min,omitempty"`
	Max int32 `json:"max,omitempty"`
	// Current is the count in spec.replicas, not the number of running replicas.
	Current int32 `json:"current"`
	// Desired is the target of the previous run, if it is known. 0 is a real value, except in mode Literal.
	Desired Count `json:"desired,omitzero"`
	// Pending is how many of Current exist but are not ready.
	Pending int32 `json:"pending,omitempty"`
}

// A Count is a number of replicas or, as the zero value, no number.
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

// Validate reports every wrong field of the variant at once, each as a scaling.FieldError. In mode Default, Decide holds and
// reports a wrong variant and decides the others.
func (v Variant) Validate() error {
	var e scaling.FieldErrors
	v.check(&e, "")
	return e.Err()
}

// check adds every wrong field of the variant, whose fields have the prefix in errors.
func (v *Variant) check(e *scaling.FieldErrors, prefix string) {
	e.Check(v.hasCost(), prefix+"cost", v.Cost, "must be a number from 0 to 1e100")
	e.Check(v.hasCapacity(), prefix+"capacity", v.Capacity, "must be 0, which is 1, or a number from 1e-100 to 1e100")
	e.Check(v.Min >= 0, prefix+"min", v.Min, "must not be negative")
	e.Check(v.Max == 0 || v.Max >= max(v.Min, 1), prefix+"max", v.Max, "must be 0, which is none, or not below min")
	e.Check(v.Current >= 0, prefix+"current", v.Current, "must not be negative")
	e.Check(!v.Desired.Set || v.Desired.N >= 0, prefix+"desired", v.Desired.N, "must not be negative")
	e.Check(v.Pending >= 0, prefix+"pending", v.Pending, "must not be negative")
}

// Costs and capacities are kept away from the limits of a float64, so that no price and no sum is infinite or NaN.
func (v *Variant) hasCost() bool { return v.Cost >= 0 && v.Cost <= 1e100 }

func (v *Variant) hasCapacity() bool {
	return v.Capacity == 0 || v.Capacity >= 1e-100 && v.Capacity <= 1e100
}

// valid is Validate without the error.
func (v *Variant) valid() bool {
	return v.hasCost() && v.hasCapacity() &&
		v.Min >= 0 && (v.Max == 0 || v.Max >= max(v.Min, 1)) &&
		v.Current >= 0 && (!v.Desired.Set || v.Desired.N >= 0) && v.Pending >= 0
}

// bounds returns the variant's bounds, with the defaults of those that are not set.
func (v *Variant) bounds() scaling.Bounds {
	b := scaling.Bounds{Min: v.Min, Max: v.Max}
	if b.Max == 0 {
		b.Max = math.MaxInt32
	}
	return b
}

// capacity returns the variant's capacity, 1 if it is not set.
func (v *Variant) capacity() float64 {
	if v.Capacity == 0 {
		return 1
	}
	return v.Capacity
}

// wish returns the count that the workload is in transition to.
func (v *Variant) wish() int32 {
	if v.Desired.Set {
		return v.Desired.N
	}
	return v.Current
}
