package forecast

import (
	"fmt"
	"slices"
)

// A Method is a way to foresee.
type Method int8

// The methods.
const (
	Daily  Method = iota // as yesterday and the two days before
	Weekly               // as the same weekday of the last two weeks
)

const methods = 2

// String returns the method's name.
func (m Method) String() string {
	switch m {
	case Daily:
		return "Daily"
	case Weekly:
		return "Weekly"
	}
	return fmt.Sprintf("Method(%d)", int8(m))
}

// days returns how many days before those lie by which a method goes, the first so many of the list.
func (m Method) days() (list [mostOthers]int64, n int) {
	if m == Weekly {
		return [mostOthers]int64{7, 14}, 2
	}
	return [mostOthers]int64{1, 2, 3}, 3
}

// mostOthers is how many days a method goes by at the most.
const mostOthers = 3

// A model has what the mathematics need beside the state.
type model struct {
	config *Config
	lead   float64 // seconds from a need to a replica that serves it
}

// ahead returns the lead in slots.
func (m *model) ahead() int64 { return int64((m.lead + slot - 1) / slot) }

// value returns what was in a slot, so many days before, in multiples of the unit.
func (m *model) value(s *State, n, before int64) (x float64, mark uint16, known bool) {
	number, i := m.place(n)
	d := s.find(number - before)
	if d == nil {
		return 0, silent | unsure, false
	}
	k := d.at(i)
	if x, known = unpack(k); !known {
		return 0, silent | unsure, false
	}
	return x, k & marks, true
}

// peak returns the highest of the slots from one to another, so many days before, if at least half of them are known.
func (m *model) peak(s *State, from, to, before int64) (most float64, mark uint16, known bool) {
	n := int64(0)
	for k := from; k <= to; k++ {
		x, marked, ok := m.value(s, k, before)
		mark |= marked
		if ok {
			most = max(most, x)
			n++
		}
	}
	return most, mark, 2*n >= to-from+1
}

// A season is what another day says of now: its peak around, and what it and today had in the same slots.
type season struct {
	peak         float64
	other        float64 // the sum of the other day's slots
	lower, upper float64 // of today's
	open         bool    // today's upper end is not known
	next         float64 // what the other day had in the present slot
	hasNext      bool
}

// expect returns the interval of what is expected, and the ratio to its lower end.
func (x *season) expect() (lower, upper, ratio float64) {
	ratio = within(x.lower, x.other)
	high := float64(mostRatio)
	if !x.open {
		high = within(x.upper, x.other)
	}
	return ratio * x.peak, high * x.peak, ratio
}

// within returns a ratio as far as it counts: of nothing to nothing it is 1.
func within(today, other float64) float64 {
	if other <= 0 {
		if today > 0 {
			return mostRatio
		}
		return 1
	}
	return min(max(today/other, leastRatio), mostRatio)
}

// A bunch are a few seasons.
type bunch struct {
	seasons [mostOthers]season
	n       int
}

// expect returns the quantile over the seasons, of the lower ends and of the upper, and the ratio of the highest.
func (b *bunch) expect(s *State) (lower, upper, ratio float64) {
	var lowers, uppers [mostOthers]float64
	elapsed := s.At - float64(s.Now.Number)*slot
	highest := -1.0
	for i := range b.n {
		x := b.seasons[i]
		if x.hasNext && s.Unit > 0 {
			x.other += x.next * elapsed / slot
			x.lower += s.Now.Lower / slot / s.Unit
			x.upper += s.Now.Upper / slot / s.Unit
			x.open = x.open || s.Now.Seen < elapsed-1
		}
		var r float64
		if lowers[i], uppers[i], r = x.expect(); lowers[i] > highest {
			highest, ratio = lowers[i], r
		}
	}
	return quantileOf(lowers[:b.n]), quantileOf(uppers[:b.n]), ratio
}

// quantileOf returns the quantile of a few values, which it sorts, between the two next to it.
func quantileOf(values []float64) float64 {
	slices.Sort(values)
	place := quantile * float64(len(values)-1)
	i := min(int(place), len(values)-1)
	if i+1 >= len(values) {
		return values[i]
	}
	share := place - float64(i)
	return values[i]*(1-share) + values[i+1]*share
}
