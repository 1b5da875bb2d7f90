package hetero

import (
	"cmp"
	"iter"
	"slices"
)

// A Batch is a part of the sequence: Count batches of Size replicas of one type, one after the other.
type Batch struct {
	Type  int     // place of the type in the configuration
	Size  int32   // replicas of one batch
	Count int32   // batches, at least 1
	Cost  float64 // of one batch: Size times the cost of a replica
}

// Batches returns the sequence as its batches, in order: by cost of the batch, then name of the type, then number of
// the batch. Batches of one size and type are one value. It takes memory only where the Fleet does not keep its
// sequence (see New), and then in proportion to the types.
func (f *Fleet) Batches() iter.Seq[Batch] {
	if f.long {
		return f.mergedBatches
	}
	return func(yield func(Batch) bool) {
		for _, r := range f.runs {
			if !yield(f.batchOf(&r)) {
				return
			}
		}
	}
}

func (f *Fleet) batchOf(r *run) Batch {
	return Batch{Type: int(r.at), Size: r.size, Count: r.places / r.size, Cost: f.batchCost(r)}
}

// Sequence returns the types of the replicas in the order in which they are added beyond the minima, each as its place
// in the configuration: as many as Totals are apart. A total of K replicas has the first K - least of them. It is for
// those who want to look; Allocate counts without it.
func (f *Fleet) Sequence() iter.Seq[int] {
	return func(yield func(int) bool) {
		for b := range f.Batches() {
			for range int64(b.Size) * int64(b.Count) {
				if !yield(b.Type) {
					return
				}
			}
		}
	}
}

// mergedBatches yields the sequence from a heap of the next run of each type, without keeping it.
func (f *Fleet) mergedBatches(yield func(Batch) bool) {
	h := make(pieceHeap, 0, len(f.kinds))
	for i := range f.kinds {
		if k := &f.kinds[i]; f.sizes.count(k) > 0 {
			h.push(f.piece(int32(i), 0))
		}
	}
	var ties []piece
	for len(h) > 0 {
		ties = ties[:0]
		for len(h) > 0 && (len(ties) == 0 || same(ties[len(ties)-1].cost, h[0].cost)) {
			p := h.pop()
			ties = append(ties, p)
			if p.run+1 < f.sizes.count(&f.kinds[p.kind]) {
				h.push(f.piece(p.kind, p.run+1))
			}
		}
		slices.SortFunc(ties, comparePieces)
		for _, p := range ties {
			k := &f.kinds[p.kind]
			size, places := f.sizes.run(k, p.run)
			if !yield(f.batchOf(&run{at: k.at, places: places, size: size})) {
				return
			}
		}
	}
}

// A piece is the next run of a type on its way into the sequence.
type piece struct {
	cost float64 // of one batch
	kind int32   // place in kinds
	run  int32   // number of the run within its type
}

// comparePieces orders pieces of the same cost.
func comparePieces(a, b piece) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.run, b.run))
}

func (f *Fleet) piece(place, run int32) piece {
	k := &f.kinds[place]
	size, _ := f.sizes.run(k, run)
	return piece{k.batchCost(size), place, run}
}

// A pieceHeap gives the cheapest piece first.
type pieceHeap []piece

func (h *pieceHeap) push(p piece) {
	*h = append(*h, p)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent].cost <= s[i].cost {
			return
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
}

func (h *pieceHeap) pop() piece {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if s[child].cost < s[least].cost {
				least = child
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
