package forecast

import (
	"fmt"
	"math"
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

// code returns the packed demand of slot n on the day that many days before, with both marks if it is not known.
func (m *model) code(s *State, n, before int64) uint16 {
	number, i := m.place(n)
	if d := s.find(number - before); d != nil {
		if k := d.at(i); k&^marks != 0 {
			return k
		}
	}
	return marks
}

// value returns the same in multiples of the unit.
func (m *model) value(s *State, n, before int64) (x float64, mark uint16, known bool) {
	k := m.code(s, n, before)
	x, known = unpack(k)
	return x, k & marks, known
}

// peak returns the highest demand of the slots from..to, that many days before, and how many of them are known.
func (m *model) peak(s *State, from, to, before int64) (most float64, mark uint16, known int64) {
	highest := uint16(0)
	for n := from; n <= to; n++ {
		k := m.code(s, n, before)
		mark |= k & marks
		if k &^= marks; k > 0 {
			highest = max(highest, k)
			known++
		}
	}
	most, _ = unpack(highest)
	return most, mark, known
}

// lasts reports whether the demand of that many days before stays above a level in the ten minutes after slot n.
func (m *model) lasts(s *State, level float64, n, before int64) bool {
	for k := n + 1; k <= n+dilation; k++ {
		if x, _, known := m.value(s, k, before); !known || x < level {
			return false
		}
	}
	return true
}

// A season is what another day says of now: its peak around this time, and how today compares with it, if today is as late as it,
// earlier or later.
type season struct {
	peak    float64
	rise    float64 // peak, if from now on that day has more than in the 30 min before, by more than the spare share; or 0
	matches [2*dilation + 1]match
}

// A match is the demand of today and of another day in the slots that are compared.
type match struct {
	slots        int     // how many are known of the other day; 0 if too few
	other        float64 // sum over the other day's slots
	lower, upper float64 // sum over today's slots
	open         bool    // the upper end of today's sum is not known
	next         float64 // the other day's demand in the present slot
	hasNext      bool
}

// expect returns the lower end of what is expected, and its ratio to the other day's peak. now is today's demand in the present slot, of
// which the share elapsed is over.
func (x *season) expect(now *match, elapsed float64) (lower, ratio float64) {
	ratio = x.nearest(now, elapsed, match.least)
	return ratio * x.peak, ratio
}

// nearest returns the ratio of today to the other day: that of no shift, or, within the spare share, the one that is nearest to 1 of all
// shifts. It rises with today's demand.
func (x *season) nearest(now *match, elapsed float64, of func(match) float64) float64 {
	all := &x.matches
	ratio := of(all[dilation].with(now, elapsed))
	if math.Abs(ratio-1) <= spare {
		return ratio
	}
	least, most := ratio, ratio
	for i := range all {
		if all[i].slots > 0 {
			shifted := of(all[i].with(now, elapsed))
			least, most = min(least, shifted), max(most, shifted)
		}
	}
	best := min(max(1, least), most)
	return min(max(ratio, best-spare), best+spare)
}

// with adds the present slot, if it is known of the other day.
func (x match) with(now *match, elapsed float64) match {
	if x.hasNext {
		x.other += x.next * elapsed
		x.lower += now.lower
		x.upper += now.upper
		x.open = x.open || now.open
	}
	return x
}

// least and most return the ends of the ratio of today to the other day.
func (x match) least() float64 { return within(x.lower, x.other) }

func (x match) most() float64 {
	if x.open {
		return mostRatio
	}
	return within(x.upper, x.other)
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

// expect returns the quantile over the seasons of the lower ends, and the ratio of the season with the highest one.
func (b *bunch) expect(s *State) (lower, ratio float64) {
	var lowers [mostOthers]float64
	now, elapsed := s.present()
	highest := -1.0
	for i := range b.n {
		var r float64
		if lowers[i], r = b.seasons[i].expect(&now, elapsed); lowers[i] > highest {
			highest, ratio = lowers[i], r
		}
	}
	return quantileOf(lowers[:b.n]), ratio
}

// most returns the quantile over the seasons of the upper ends.
func (b *bunch) most(s *State) float64 {
	var uppers [mostOthers]float64
	now, elapsed := s.present()
	for i := range b.n {
		x := &b.seasons[i]
		uppers[i] = x.nearest(&now, elapsed, match.most) * x.peak
	}
	return quantileOf(uppers[:b.n])
}

// present returns today's demand in the present slot, and the share of it that is over.
func (s *State) present() (now match, elapsed float64) {
	if s.Unit <= 0 {
		return now, 0
	}
	elapsed = s.At - float64(s.Now.Number)*slot
	now = match{lower: s.Now.Lower / slot / s.Unit, upper: s.Now.Upper / slot / s.Unit, open: s.Now.Seen < elapsed-1}
	return now, elapsed / slot
}

// rise returns the quantile over the seasons of what they rise to.
func (b *bunch) rise() float64 {
	var rises [mostOthers]float64
	for i := range b.n {
		rises[i] = b.seasons[i].rise
	}
	return quantileOf(rises[:b.n])
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
