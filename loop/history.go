package loop

import (
	"hash/fnv"
	"slices"
)

// remembered is how many states a history has at most: half an hour at two a minute.
const remembered = 64

// A history has the hashes of the latest states that were stored.
type history []uint64

func hashed(state []byte) uint64 {
	h := fnv.New64a()
	h.Write(state)
	return h.Sum64()
}

func (h *history) add(state []byte) {
	if len(*h) == remembered {
		*h = slices.Delete(*h, 0, 1)
	}
	*h = append(*h, hashed(state))
}

func (h *history) has(state []byte) bool { return slices.Contains(*h, hashed(state)) }
