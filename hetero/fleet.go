package hetero

import (
	"math"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// A Fleet knows the order in which the replicas of its types are added and taken away. New makes it; it never changes
// and may be used from several goroutines.
type Fleet struct {
	config Config
	sizes  sizes
	kinds  []kind  // in the order of their names, which is that of ties
	mins   []int32 // in the order of the configuration
	byCost []int32 // places in kinds, cheapest first, ties by name

	minTotal, maxTotal int64

	// The sequence, run by run. It is empty where it would have more than maxRuns of them: see search.go.
	runs []run
	long bool
}

// A run is a part of the sequence that belongs to one type and consists of batches of one size.
type run struct {
	at     int32 // the type's place in the configuration
	places int32 // replicas
	size   int32 // of one batch
}

// maxRuns is how many runs a Fleet keeps. 100,000 types of a million replicas at rate 2 fit.
const maxRuns = 1 << 21

// New returns the Fleet of a configuration, or every rule that it breaks.
//
// It takes time and memory in proportion to the runs of the sequence (times the logarithm of the types), not to its
// replicas: a few for each type at the usual rates. The sizes of batches are counted out once, for the largest type,
// which at a rate just above 1 takes a step a batch: two milliseconds for a million. Where such a rate cuts very many
// types into more than two million runs, they are not kept; time and memory then are in proportion to the types, and
// answers are searched for instead of walked to.
func New(c Config) (*Fleet, error) { return newFleet(c, maxRuns) }

func newFleet(c Config, limit int64) (*Fleet, error) {
	byName, err := c.check()
	if err != nil {
		return nil, err
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
	runs := int64(0)
	for n, i := range byName {
		f.kinds[n] = f.sizes.cut(&c.Types[i], i)
		runs += int64(f.sizes.count(&f.kinds[n]))
	}
	if f.long = runs > limit; !f.long {
		f.runs = f.arrange(int(runs))
	}
	f.byCost = f.rankCosts()
	return f, nil
}

// Types returns a copy of the types, in the order of the configuration: the order of all counts.
func (f *Fleet) Types() []Type { return slices.Clone(f.config.Types) }

// Len returns the number of types.
func (f *Fleet) Len() int { return len(f.kinds) }

// Totals returns the fewest and the most replicas that the types can have together.
func (f *Fleet) Totals() (least, most int64) { return f.minTotal, f.maxTotal }

// Bounds returns Totals as the bounds for the policy that decides on the total. What does not fit saturates.
func (f *Fleet) Bounds() scaling.Bounds {
	return scaling.Bounds{Min: saturate(f.minTotal), Max: saturate(f.maxTotal)}
}

// Allocate returns how many replicas of each type a total of K gives, in the order of the configuration:
//
//	counts[i] = Min_i + its share of the first clamp(K, sum Min, sum Max) - sum Min places of the sequence
//
// so that one replica more is one more of one type. The answer is written over dst, which grows if it must; with room
// for all types nothing is allocated. The time is that of walking the runs of the sequence up to K.
func (f *Fleet) Allocate(dst []int32, total int64) []int32 {
	dst = append(dst[:0], f.mins...)
	left := f.places(total)
	if f.long {
		f.search(dst, left)
		return dst
	}
	for i := range f.runs {
		r := &f.runs[i]
		if n := int64(r.places); n < left {
			dst[r.at] += r.places
			left -= n
			continue
		}
		dst[r.at] += int32(left)
		break
	}
	return dst
}

// Margin returns the batch cost of the last place that a total of K reaches: every type is given its batches up to
// that cost and none beyond, ties by name. It is 0 where K reaches no place beyond the minima.
func (f *Fleet) Margin(total int64) float64 {
	left := f.places(total)
	if left == 0 {
		return 0
	}
	if f.long {
		return f.threshold(left)
	}
	for i := range f.runs {
		r := &f.runs[i]
		if left -= int64(r.places); left <= 0 {
			return f.batchCost(r)
		}
	}
	return 0
}

// Cost returns what a placement costs: the sum of cost times count. Missing counts are 0, and those beyond the types
// are not looked at. The sum is taken in the order of the names, so that the order of the configuration cannot change
// a bit of it.
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

// at returns a count, or 0 where there is none.
func at(counts []int32, i int32) int32 {
	if int(i) < len(counts) {
		return counts[i]
	}
	return 0
}

// saturate converts a total to a replica count; it never wraps.
func saturate(n int64) int32 {
	return int32(max(math.MinInt32, min(n, math.MaxInt32)))
}

// Sum returns the sum of counts.
func Sum(counts []int32) (sum int64) {
	for _, n := range counts {
		sum += int64(n)
	}
	return sum
}
