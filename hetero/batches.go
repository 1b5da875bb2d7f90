package hetero

import (
	"math/bits"
	"slices"
)

// sizes are the batches into which every type is divided: max(1, floor(P^k)) for k = 0, 1, 2, ... They depend on P alone, so
// all types share one table, each up to its own capacity. Consecutive batches of one size are stored as one run. Sizes grow
// at least geometrically in the long run, so a million replicas have fewer than 1,500 different sizes for any P: the sizes
// of n runs sum to at least n(n+1)/2.
type sizes struct {
	size   []int32   // of one batch of the run, increasing
	end    []int32   // replicas of all batches before the run, and last the total
	octave [32]int32 // how many runs have batches below 1, 2, 4, 8, ... replicas
}

// newSizes returns the batches that fit into capacity replicas.
func newSizes(rate float64, capacity int32) (s sizes) {
	s.size = make([]int32, 0, 24)
	s.end = append(make([]int32, 0, 24), 0)
	placed, last := int32(0), int32(0)
	if rate <= 1 && capacity > 0 {
		s.size, s.end, placed = append(s.size, 1), append(s.end, capacity), capacity
	}
	// The power is not rounded. It is compared before it is converted: for a large rate it soon exceeds an int32.
	for power := 1.0; power < float64(capacity-placed)+1; power *= rate {
		size := int32(power)
		placed += size
		if size == last {
			s.end[len(s.end)-1] = placed
			continue
		}
		last = size
		s.size = append(s.size, size)
		s.end = append(s.end, placed)
	}
	run := int32(0)
	for i := range s.octave {
		for int(run) < len(s.size) && int64(s.size[run]) < 1<<i {
			run++
		}
		s.octave[i] = run
	}
	return s
}

// runOf returns the run that contains the n-th replica, counting from 1, or the last run if none does.
func (s *sizes) runOf(n int32) int32 {
	run, _ := slices.BinarySearch(s.end, n)
	return int32(min(run, len(s.size)) - 1)
}

// A kind is a Type divided into batches: whole ones from the table, and the remainder.
type kind struct {
	cost   float64
	weight float64
	top    float64 // the cost of its most expensive batch
	last   float64 // the cost of its last batch, if rest is not 0; otherwise 0, which no batch costs
	min    int32
	max    int32
	at     int32 // index of the type in the configuration

	whole int32 // replicas in whole batches
	runs  int32 // runs of the table that whole extends into
	rest  int32 // replicas in the last batch, which is smaller than the next whole one; 0 if there is none
}

// cut returns a type's batches.
func (s *sizes) cut(t *Type, at int32) kind {
	k := kind{cost: t.Cost, weight: t.weight(), min: t.Min, max: t.Max, at: at}
	capacity := t.capacity()
	if capacity == 0 {
		return k
	}
	// Whole batches extend into the run of the last replica, or not at all.
	k.runs = s.runOf(capacity)
	k.whole = s.end[k.runs]
	if whole := min(s.end[k.runs+1], capacity) - k.whole; whole >= s.size[k.runs] {
		k.whole += whole - whole%s.size[k.runs]
		k.runs++
	}
	k.rest = capacity - k.whole
	k.last = k.batchCost(k.rest)
	k.top = max(k.last, k.batchCost(s.size[k.runs-1])) // the first batch is one replica, which fits
	return k
}

// upTo returns how many of the type's runs have batches that cost at most x.
func (s *sizes) upTo(k *kind, x float64) int32 {
	if x >= k.top {
		return k.runs
	}
	// The product of size and cost decides. The quotient may be off by its last bit: it is taken slightly higher, and a run
	// that costs too much is removed again.
	n := int32(x / k.cost * (1 + 0x1p-50))
	octave := bits.Len32(uint32(n)) & 31
	run := min(s.octave[octave], k.runs)
	if octave > 0 {
		if lo := s.octave[octave-1]; run-lo > 4 {
			lo += s.among(lo, run, n)
			run = lo
		}
	}
	for run > 0 && k.batchCost(s.size[run-1]) > x {
		run--
	}
	return run
}

// among returns how many of the runs in from..to have batches of at most n replicas.
func (s *sizes) among(from, to, n int32) int32 {
	runs, _ := slices.BinarySearch(s.size[from:to], n+1)
	return int32(runs)
}

// places returns how many replicas of the type are in its first runs.
func (s *sizes) places(k *kind, runs int32) int32 { return min(s.end[runs], k.whole) }

// run returns the cost of a batch of a type's n-th run, counting from 0, and the replicas in the run. The rest comes after
// all runs.
func (s *sizes) run(k *kind, n int32) (cost float64, places int32) {
	if n == k.runs {
		return k.last, k.rest
	}
	return k.batchCost(s.size[n]), min(s.end[n+1], k.whole) - s.end[n]
}

// batch returns the size of the batch that contains a type's n-th replica beyond its minimum, in the order of the sequence.
// n is at least 1 and at most the capacity.
func (s *sizes) batch(k *kind, n int32) int32 {
	// The rest comes after all batches of at most its size.
	if before := s.places(k, s.among(0, k.runs, k.rest)); n > before {
		if n <= before+k.rest {
			return k.rest
		}
		n -= k.rest
	}
	return s.size[s.runOf(n)]
}

// batchCost returns the cost of a batch of the type.
func (k *kind) batchCost(size int32) float64 { return float64(size) * k.cost }
