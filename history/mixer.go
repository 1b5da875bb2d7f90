package history

import (
	"encoding/binary"
	"math"
	"slices"
)

// fewBounds is how many histograms of a Mixture are compared one by one.
const fewBounds = 8

// A mixer adds histograms to mixtures. A Mixture of more than fewBounds histograms has an index, so that the time to add does not grow
// with their number.
type mixer map[*Mixture]*index

// An index has the places of the first histograms of a Mixture, by the bytes of their bounds.
type index struct {
	places map[string]int
	upTo   int    // how many of the Mixture are in it
	key    []byte // scratch
}

// add adds a histogram to a Mixture, and reports whether no other histogram there had its bounds. Nobody else may add to it.
func (x *mixer) add(m *Mixture, c Counted) bool {
	i := x.find(m, c.Bounds)
	if i < 0 {
		*m = append(*m, Counted{Bounds: slices.Clone(c.Bounds), Counts: slices.Clone(c.Counts), Sum: c.Sum})
		return true
	}
	into := &(*m)[i]
	if c.Total() > 0 && (c.Sum == 0 || into.Sum == 0 && into.Total() > 0) {
		into.Sum = 0
	} else {
		into.Sum += c.Sum
	}
	for k, n := range c.Counts {
		into.Counts[k] += n
	}
	return false
}

// find returns the place of the histogram with these bounds, or -1.
func (x *mixer) find(m *Mixture, bounds []float64) int {
	if len(*m) <= fewBounds {
		return slices.IndexFunc(*m, func(c Counted) bool { return slices.Equal(c.Bounds, bounds) })
	}
	if *x == nil {
		*x = make(mixer)
	}
	in := (*x)[m]
	if in == nil {
		in = &index{places: make(map[string]int)}
		(*x)[m] = in
	}
	for ; in.upTo < len(*m); in.upTo++ {
		in.key = keyOf(in.key[:0], (*m)[in.upTo].Bounds)
		in.places[string(in.key)] = in.upTo
	}
	in.key = keyOf(in.key[:0], bounds)
	if i, ok := in.places[string(in.key)]; ok {
		return i
	}
	return -1
}

// keyOf appends to key bytes that are equal for equal bounds, which are numbers.
func keyOf(key []byte, bounds []float64) []byte {
	for _, b := range bounds {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(b+0)) // -0 is 0
	}
	return key
}
