package hetero

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// Limits of a Config. Within them no count, sum or batch cost overflows, and no loop is longer than the number of replicas
// of a type or the number of types.
const (
	// MaxTypes is the most types that a fleet can have.
	MaxTypes = 100_000
	// MaxReplicas is the most replicas that one type can have.
	MaxReplicas = 1_000_000
	// MaxCost is the highest cost and the highest weight of one replica. The cost of MaxTypes types with MaxReplicas such
	// replicas is still finite.
	MaxCost = 1e290
)

// DefaultExpansionRate is Kthena's default cost expansion rate: each batch of a type is twice as large as the one before.
const DefaultExpansionRate = 2

// Config describes a fleet. Its zero value is not valid; start from Kthena or fill in every field.
//
// A rate above 1 makes each next batch of a cheap type more expensive, so that other types get their share before it is
// full: the fleet then does not depend on one kind of device. That costs more than filling the cheapest type first, and the
// rate does not bound the difference. A rate up to 1 means cheapest-first; with equal weights this is the cheapest
// placement. sim/oracle.Hetero measures what the rate costs compared with the cheapest placements, and how many cold starts
// it saves.
type Config struct {
	// Types are the kinds of replicas, at least one and at most MaxTypes, in any order. The order does not affect the
	// placement; counts are given and returned in it.
	Types []Type `json:"types"`
	// ExpansionRate is P, the factor by which each batch of a type is larger than the one before: any number that is not
	// negative. Up to 1, all batches have one replica and the cheapest type is filled first. 0 means 0.
	ExpansionRate float64 `json:"expansionRate"`
}

// A Type is one way to deploy the model: a device, an engine and a degree of parallelism.
type Type struct {
	Name string `json:"name"` // not empty, unique
	// Cost of one replica, in any unit that all types share: above 0, at most MaxCost.
	Cost float64 `json:"cost"`
	// Min is the number of replicas that always run. 0 <= Min <= Max.
	Min int32 `json:"min"`
	// Max is the highest number of replicas, at most MaxReplicas.
	Max int32 `json:"max"`
	// Weight is what one replica can serve, in any unit that all types share, such as requests in flight: above 0, at most
	// MaxCost. 0 means 1. Only AllocateFor and Capability use it.
	Weight float64 `json:"weight,omitempty"`
}

// capacity is the highest number of replicas of the type beyond its minimum.
func (t *Type) capacity() int32 { return t.Max - t.Min }

// weight returns the weight, 1 if it is not set.
func (t *Type) weight() float64 { return cmp.Or(t.Weight, 1) }

// Kthena returns the configuration that Kthena uses by default: an expansion rate of 2.
func Kthena(types ...Type) Config {
	return Config{Types: types, ExpansionRate: DefaultExpansionRate}
}

// Validate reports every wrong field at once, each as a scaling.FieldError.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

// check returns the indices of the types in the order of their names, or an error with every rule that the configuration
// breaks.
func (c Config) check() ([]int32, error) {
	var e scaling.FieldErrors
	e.Check(c.ExpansionRate >= 0 && !math.IsInf(c.ExpansionRate, 0), "expansionRate", c.ExpansionRate, "must be a number that is not negative")
	e.Check(len(c.Types) > 0, "types", len(c.Types), "must be at least one")
	e.Check(len(c.Types) <= MaxTypes, "types", len(c.Types), fmt.Sprintf("must be at most %d", MaxTypes))

	byName := make([]int32, len(c.Types))
	for i := range c.Types {
		byName[i] = int32(i)
		t := &c.Types[i]
		if !t.valid() {
			t.explain(&e, fmt.Sprintf("types[%d]", i))
		}
	}
	slices.SortFunc(byName, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.Types[a].Name, c.Types[b].Name), cmp.Compare(a, b))
	})
	for n := 1; n < len(byName); n++ {
		if name := c.Types[byName[n]].Name; name == c.Types[byName[n-1]].Name {
			e.Check(false, fmt.Sprintf("types[%d].name", byName[n]), name, "must be unique")
		}
	}
	return byName, e.Err()
}

// positive reports whether v is a number above 0 that sums of many cannot overflow.
func positive(v float64) bool { return v > 0 && v <= MaxCost }

// valid is explain without the errors: field names are only built for what is wrong.
func (t *Type) valid() bool {
	return t.Name != "" && positive(t.Cost) && 0 <= t.Min && t.Min <= t.Max && t.Max <= MaxReplicas && positive(t.weight())
}

// explain adds an error for every rule that the type breaks.
func (t *Type) explain(e *scaling.FieldErrors, field string) {
	e.Check(t.Name != "", field+".name", t.Name, "must not be empty")
	e.Check(positive(t.Cost), field+".cost", t.Cost, fmt.Sprintf("must be above 0 and at most %g", MaxCost))
	e.Check(t.Min >= 0, field+".min", t.Min, "must not be negative")
	e.Check(t.Max >= t.Min, field+".max", t.Max, fmt.Sprintf("must not be below min %d", t.Min))
	e.Check(t.Max <= MaxReplicas, field+".max", t.Max, fmt.Sprintf("must be at most %d", MaxReplicas))
	e.Check(positive(t.weight()), field+".weight", t.Weight, fmt.Sprintf("must be above 0 and at most %g, or 0 for 1", MaxCost))
}
