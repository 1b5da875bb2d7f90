package forecast

import (
	"fmt"
	"slices"
)

// A Method is a way to forecast.
type Method int8

// The methods.
const (
	Daily  Method = iota // like yesterday and the two days before
	Weekly               // like the same weekday of the last two weeks
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

// days returns how many days ago the days are that the method uses: the first n of the list.
func (m Method) days() (list [mostOthers]int64, n int) {
	if m == Weekly {
		return [mostOthers]int64{7, 14}, 2
	}
	return [mostOthers]int64{1, 2, 3}, 3
}

// mostOthers is how many other days a method uses at most.
const mostOthers = 3

// A model has what the calculations need beside the state.
type model struct {
	config *Config
	lead   float64 // seconds from a need to a replica that serves it
}

// ahead returns the lead in slots.
func (m *model) ahead() int64 { return int64((m.lead + slot - 1) / slot) }

// value returns the demand of slot n on the day that many days before, in multiples of the unit.
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

// peak returns the highest demand of the slots from..to, that many days before, and how many of them are known.
func (m *model) peak(s *State, from, to, before int64) (most float64, mark uint16, known int64) {
	for k := from; k <= to; k++ {
		x, marked, ok := m.value(s, k, before)
		mark |= marked
		if ok {
			most = max(most, x)
			known++
		}
	}
	return most, mark, known
}

// A season is what another day says of now: its peak around this time, and the demand of both days in the slots that are
// compared.
type season struct {
	peak         float64
	other        float64 // sum over the other day's slots
	lower, upper float64 // sum over today's slots
	open         bool    // the upper end of today's sum is not known
	next         float64 // the other day's demand in the present slot
	hasNext      bool
}

// expect returns the expected interval, and the ratio of its lower end to the other day's peak.
func (x *season) expect() (lower, upper, ratio float64) {
	ratio = within(x.lower, x.other)
	high := float64(mostRatio)
	if !x.open {
		high = within(x.upper, x.other)
	}
	return ratio * x.peak, high * x.peak, ratio
}

// within returns the ratio of today to the other day, limited to leastRatio..mostRatio. If both are 0 the ratio is 1.
func within(today, other float64) float64 {
	if other <= 0 {
		if today > 0 {
			return mostRatio
		}
		return 1
	}
	return min(max(today/other, leastRatio), mostRatio)
}

// A bunch is the seasons of a method.
type bunch struct {
	seasons [mostOthers]season
	n       int
}

// expect returns the quantile over the seasons of the lower and of the upper ends, and the ratio of the season with the
// highest lower end.
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

// quantileOf returns the quantile of a few values, interpolated between the two nearest. It sorts the values.
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
