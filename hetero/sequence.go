package hetero

import (
	"iter"
	"math"
)

// A Batch is a part of the sequence: Count consecutive batches of Size replicas of one type.
type Batch struct {
	Type  int     // index of the type in the configuration
	Size  int32   // replicas of one batch
	Count int32   // batches, at least 1
	Cost  float64 // of one batch: Size times the cost of a replica
}

// Batches returns the sequence as batches, in order: by cost of the batch, then name of the type, then number of the batch.
// Batches of one size and type are one value. A total of K replicas has the first K - least places of it.
//
// It is for inspection; Allocate does not need it. It takes no memory, and the time of an Allocate for each cost of a batch.
func (f *Fleet) Batches() iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		_, _, next := f.around(0)
		for next < math.MaxFloat64 {
			l := level{low: next}
			l.high, next = f.upward(l.low)
			for i := range f.kinds {
				if !f.batchesOf(&f.kinds[i], &l, yield) {
					return
				}
			}
		}
	}
}

// batchesOf yields the batches of a type within a level, and reports whether to continue.
func (f *Fleet) batchesOf(k *kind, l *level, yield func(Batch) bool) bool {
	give := func(size, count int32) bool {
		return yield(Batch{Type: int(k.at), Size: size, Count: count, Cost: k.batchCost(size)})
	}
	first, past, rest := l.within(&f.sizes, k)
	for run := first; run < past; run++ {
		size := f.sizes.size[run]
		count := (f.sizes.places(k, run+1) - f.sizes.places(k, run)) / size
		if rest && k.rest == size { // a batch of another size has another cost
			count, rest = count+1, false
		}
		if !give(size, count) {
			return false
		}
	}
	return !rest || give(k.rest, 1)
}
