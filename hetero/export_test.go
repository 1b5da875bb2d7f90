package hetero

import "iter"

// NewSearching returns the Fleet of a configuration that keeps one level, as New makes one only of very long
// sequences: its answers must be those of one that keeps many.
func NewSearching(c Config) (*Fleet, error) { return newFleet(c, -1) }

// Kept returns how many levels of the sequence a Fleet keeps.
func (f *Fleet) Kept() int { return len(f.levels) }

// Arrange finds the levels anew and returns how many there are.
func (f *Fleet) Arrange() int {
	return len(f.keepLevels(maxRuns))
}

// Margin returns the batch cost of the last place that a total reaches, or 0 where it reaches none.
func (f *Fleet) Margin(total int64) float64 {
	_, margin := f.place(nil, f.places(total))
	return margin
}

// Sequence returns the types of the replicas in the order in which they are added beyond the minima.
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

// Sum returns the sum of counts.
func Sum(counts []int32) int64 { return sum(counts) }
