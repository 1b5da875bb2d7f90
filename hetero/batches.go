package hetero

// sizes are the batches that every type is cut into: max(1, floor(P^k)) for k = 0, 1, 2, ... They depend on P alone,
// so all types share one table, each up to its own capacity. Batches of one size follow each other, and are kept as
// one run. Sizes grow at least geometrically in the long run, so there are fewer than 1,500 different ones in a
// million replicas, whatever P: the sizes of n runs sum to n(n+1)/2 at least.
type sizes struct {
	size []int32 // of one batch of the run, increasing
	end  []int32 // replicas of all batches up to the end of the run
}

// newSizes returns the batches that fit into capacity replicas.
func newSizes(rate float64, capacity int32) (s sizes) {
	if capacity == 0 {
		return s
	}
	if rate <= 1 {
		return sizes{size: []int32{1}, end: []int32{capacity}}
	}
	s.size = make([]int32, 0, 24)
	s.end = make([]int32, 0, 24)
	placed, last := int32(0), int32(0)
	// The power is carried unrounded. It is compared before it is converted: for a large rate it soon is no int32.
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
	return s
}

// runOf returns the run that the n-th replica is in, counting from 1.
func (s *sizes) runOf(n int32) int {
	lo, hi := 0, len(s.end)-1
	for lo < hi {
		if mid := (lo + hi) / 2; s.end[mid] < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// before returns the replicas of all runs before the one given.
func (s *sizes) before(run int) int32 {
	if run == 0 {
		return 0
	}
	return s.end[run-1]
}

// upTo returns how many of the first runs have batches that cost at most x, at cost a replica.
func (s *sizes) upTo(runs int32, cost, x float64) int32 {
	lo, hi := int32(0), runs
	for lo < hi {
		if mid := (lo + hi) / 2; float64(s.size[mid])*cost <= x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// A kind is a Type, cut into batches: whole ones from the table, and what remains.
type kind struct {
	cost   float64
	weight float64
	min    int32
	max    int32
	at     int32 // the type's place in the configuration

	whole  int32 // replicas in whole batches
	rest   int32 // replicas in the last batch, which is smaller than the next whole one would have been; 0 for none
	runs   int32 // runs of the table that whole reaches into
	small  int32 // of these, the runs whose batches are not larger than rest: the rest comes after them
	before int32 // replicas in the small runs
}

// cut returns a type's batches.
func (s *sizes) cut(t *Type, at int32) kind {
	k := kind{cost: t.Cost, weight: t.weight(), min: t.Min, max: t.Max, at: at}
	capacity := t.capacity()
	if capacity == 0 {
		return k
	}
	// The run that the last replica would be in is reached into by whole batches, or not at all.
	run := s.runOf(capacity)
	k.runs = int32(run)
	k.whole = s.before(run)
	if whole := min(s.end[run], capacity) - k.whole; whole >= s.size[run] {
		k.runs++
		k.whole += whole - whole%s.size[run]
	}
	k.rest = capacity - k.whole
	if k.rest == 0 {
		return k
	}
	k.small = s.upTo(k.runs, 1, float64(k.rest))
	k.before = min(s.before(int(k.small)), k.whole)
	return k
}

// merged reports whether the rest is as large as the batches of the last small run: then it is one more of them.
func (s *sizes) merged(k *kind) bool {
	return k.small > 0 && s.size[k.small-1] == k.rest
}

// count returns how many runs the type has in the sequence, the rest included.
func (s *sizes) count(k *kind) int32 {
	if k.rest == 0 || s.merged(k) {
		return k.runs
	}
	return k.runs + 1
}

// run returns the n-th run of a type in increasing order of batch size, the rest at its place: the size of its
// batches and the replicas in them.
func (s *sizes) run(k *kind, n int32) (size, places int32) {
	extra := int32(0)
	if k.rest > 0 {
		switch merged := s.merged(k); {
		case merged && n == k.small-1:
			extra = k.rest
		case merged:
		case n == k.small:
			return k.rest, k.rest
		case n > k.small:
			n--
		}
	}
	return s.size[n], min(s.end[n], k.whole) - s.before(int(n)) + extra
}

// batch returns the size of the batch that a type's n-th replica beyond its minimum is in, in the order of the
// sequence. n is at least 1 and at most the capacity.
func (s *sizes) batch(k *kind, n int32) int32 {
	switch {
	case n <= k.before:
	case n <= k.before+k.rest:
		return k.rest
	default:
		n -= k.rest
	}
	return s.size[s.runOf(n)]
}

// batchCost returns the cost of a batch of the type.
func (k *kind) batchCost(size int32) float64 { return float64(size) * k.cost }
