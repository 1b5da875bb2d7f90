package hetero

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// Limits of a Config. Within them no count, sum or batch cost overflows, and no loop is longer than the replicas of
// one type or the types.
const (
	// MaxTypes is the most types that a fleet can have.
	MaxTypes = 100_000
	// MaxReplicas is the most replicas that one type can have.
	MaxReplicas = 1_000_000
	// MaxCost is the highest cost and the highest weight of one replica. A fleet of MaxTypes types with MaxReplicas
	// replicas of it is still a number.
	MaxCost = 1e290
)

// DefaultExpansionRate is the cost expansion rate that Kthena uses when none is given: each batch of a type is twice
// as large as the one before.
const DefaultExpansionRate = 2

// Config describes a fleet. Its zero value is not valid; start from Kthena or fill in every field.
//
// A rate above 1 makes the next batch of a cheap type dearer, so that other types get their share before it is full:
// a fleet does not hang on one kind of device. That costs more than filling up the cheapest, and the premium is not
// bounded by the rate. A rate up to 1 is cheapest-first, and with equal weights the cheapest there is. What the rate
// costs above the cheapest placements, and how many cold starts it saves, sim/oracle.Hetero measures.
type Config struct {
	// Types are the kinds of replicas, at least one and at most MaxTypes, in any order: the order changes no
	// placement, but counts are given and taken in it.
	Types []Type `json:"types"`
	// ExpansionRate is P, by which the next batch of a type is larger than the last: any number that is not
	// negative. Up to 1, all batches have one replica and the cheapest type fills up first. 0 means 0.
	ExpansionRate float64 `json:"expansionRate"`
}

// A Type is one way to deploy the model: a device, an engine, a degree of parallelism.
type Type struct {
	Name string `json:"name"` // not empty, unique
	// Cost of one replica, in any unit that all types share: above 0, at most MaxCost.
	Cost float64 `json:"cost"`
	// Min replicas always run. 0 <= Min <= Max.
	Min int32 `json:"min"`
	// Max replicas run at most: up to MaxReplicas.
	Max int32 `json:"max"`
	// Weight is what one replica can serve, in any unit that all types share, such as requests in flight: above 0,
	// at most MaxCost. 0 means 1. Only AllocateFor and Capability look at it.
	Weight float64 `json:"weight,omitempty"`
}

// capacity is how many replicas of the type there can be beyond its minimum.
func (t *Type) capacity() int32 { return t.Max - t.Min }

// weight is the weight with its default.
func (t *Type) weight() float64 { return cmp.Or(t.Weight, 1) }

// Kthena returns the configuration that Kthena uses when nothing but the types is given: an expansion rate of 2.
func Kthena(types ...Type) Config {
	return Config{Types: types, ExpansionRate: DefaultExpansionRate}
}

// Validate reports every wrong field at once, each as a scaling.FieldError.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

// check returns the indexes of the types in the order of their names, or every rule that the configuration breaks.
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

// valid is the short answer to explain: names of fields are put together only for what is wrong.
func (t *Type) valid() bool {
	return t.Name != "" && positive(t.Cost) && 0 <= t.Min && t.Min <= t.Max && t.Max <= MaxReplicas && positive(t.weight())
}

// explain notes every rule that the type breaks.
func (t *Type) explain(e *scaling.FieldErrors, field string) {
	e.Check(t.Name != "", field+".name", t.Name, "must not be empty")
	e.Check(positive(t.Cost), field+".cost", t.Cost, fmt.Sprintf("must be above 0 and at most %g", MaxCost))
	e.Check(t.Min >= 0, field+".min", t.Min, "must not be negative")
	e.Check(t.Max >= t.Min, field+".max", t.Max, fmt.Sprintf("must not be below min %d", t.Min))
	e.Check(t.Max <= MaxReplicas, field+".max", t.Max, fmt.Sprintf("must be at most %d", MaxReplicas))
	e.Check(positive(t.weight()), field+".weight", t.Weight, fmt.Sprintf("must be above 0 and at most %g, or 0 for 1", MaxCost))
}
