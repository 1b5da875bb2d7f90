package hetero

import (
	"math"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// A Fleet knows the order in which the replicas of its types are added and removed. New makes it; it never changes and may
// be used from several goroutines. The zero Fleet has no types: all its counts are empty.
//
// It does not store the sequence itself, but the costs of batches and the number of places before each. The count of every
// type follows from the cost of the last place that a total reaches.
//
// Costs of batches are equal if they differ by less than a relative 1e-14, as 3 * 0.1 and 1 * 0.3 do. There are differences
// from Kthena. Its formula has the batch cost P^k * c_i, which for a fractional P is not the cost of a whole number of
// replicas; here a batch costs what its replicas cost. Between equal costs the names decide, and in Kthena the order of
// declaration. Rates below 1, whose powers never sum up to the capacity, give batches of one. A cost of 0 and a minimum
// above the maximum are refused.
type Fleet struct {
	config Config
	sizes  sizes
	kinds  []kind  // in the order of their names, which breaks ties
	mins   []int32 // in the order of the configuration
	byCost []int32 // indices in kinds, cheapest first, ties by name

	minTotal, maxTotal int64

	levels []level // of the sequence, in order
}

// maxRuns is the number of runs up to which levels are computed. 100,000 types of a million replicas at rate 2 are within
// it.
const maxRuns = 1 << 21

// New returns the Fleet of a configuration, or the zero Fleet and an error with every rule that the configuration breaks.
//
// Its time and memory are proportional to the runs of batches of one size, not to the replicas: at the usual rates a few for
// each type. The sizes of batches are computed once, for the largest type. At a rate just above 1 this takes a step per
// batch: two milliseconds for a million. If such a rate divides very many types into more than two million runs, time and
// memory are proportional to the types, and Allocate takes longer.
func New(c Config) (*Fleet, error) { return newFleet(c, maxRuns) }

func newFleet(c Config, limit int64) (*Fleet, error) {
	byName, err := c.check()
	if err != nil {
		return new(Fleet), err
	}
	c.Types = slices.Clone(c.Types)
	f := &Fleet{config: c, kinds: make([]kind, len(byName)), mins: make([]int32, len(byName))}
	largest := int32(0)
	for i := range c.Types {
		t := &c.Types[i]
		f.mins[i] = t.Min
		f.minTotal += int64(t.Min)
		f.maxTotal += int64(t.Max)
		largest = max(largest, t.capacity())
	}
	f.sizes = newSizes(c.ExpansionRate, largest)
	for n, i := range byName {
		f.kinds[n] = f.sizes.cut(&c.Types[i], i)
	}
	f.levels = f.keepLevels(limit)
	f.byCost = f.rankCosts()
	return f, nil
}

// Types returns a copy of the types, in the order of the configuration: the order of all counts.
func (f *Fleet) Types() []Type { return slices.Clone(f.config.Types) }

// Totals returns the lowest and the highest total of replicas.
func (f *Fleet) Totals() (least, most int64) { return f.minTotal, f.maxTotal }

// Bounds returns Totals as bounds for the policy that decides on the total, limited to the range of an int32.
func (f *Fleet) Bounds() scaling.Bounds {
	return scaling.Bounds{Min: saturate(f.minTotal), Max: saturate(f.maxTotal)}
}

// Allocate returns how many replicas of each type a total of K gives, in the order of the configuration:
//
//	counts[i] = Min_i + its share of the first clamp(K, sum Min, sum Max) - sum Min places of the sequence
//
// so that each further replica adds one replica of one type. The result is written over dst, which grows if needed; with
// room for all types nothing is allocated.
//
// Every type gets its batches up to the cost of the last place that K reaches; batches of exactly that cost go to the types
// in the order of their names. The time is that of finding a batch size for each type; if the sequence has more than two
// million runs, up to a hundred times as much.
func (f *Fleet) Allocate(dst []int32, total int64) []int32 {
	dst, _ = f.place(dst, f.places(total))
	return dst
}

// Cost returns the cost of a placement: the sum of cost times count. Missing counts are 0, and further ones are ignored. The
// sum is taken in the order of the names, so that the order of the configuration does not change a bit of it.
func (f *Fleet) Cost(counts []int32) float64 {
	sum := 0.0
	for i := range f.kinds {
		k := &f.kinds[i]
		// The conversion keeps a compiler from fusing the two operations, which would round differently.
		sum += float64(k.cost * float64(at(counts, k.at)))
	}
	return sum
}

// places returns how many places of the sequence a total reaches.
func (f *Fleet) places(total int64) int64 {
	return max(f.minTotal, min(total, f.maxTotal)) - f.minTotal
}

// at returns a count, 0 if it is missing.
func at(counts []int32, i int32) int32 {
	if int(i) < len(counts) {
		return counts[i]
	}
	return 0
}

// saturate converts a total to a replica count, limited to the range of an int32.
func saturate(n int64) int32 {
	return int32(max(math.MinInt32, min(n, math.MaxInt32)))
}

// sum returns the sum of counts.
func sum(counts []int32) (total int64) {
	for _, n := range counts {
		total += int64(n)
	}
	return total
}
