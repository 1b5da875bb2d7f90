package forecast

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/internal/starts"
)

// State is the memory of a forecast: plain data, of at most 16 KB as JSON. The zero value is a fresh start.
//
// Its memory is reused: like a slice given to append, a state that was passed on must not be used again.
type State struct { //nolint:recvcheck // Validate is looked for on the value
	// Demand names the metric that is forecast.
	Demand string `json:"demand,omitempty"`

	Zone string  `json:"zone,omitempty"` // the time zone of the days
	Set  bool    `json:"set,omitempty"`  // whether anything was recorded yet
	At   float64 `json:"at,omitempty"`   // Unix seconds up to which demand was recorded
	Unit float64 `json:"unit,omitempty"` // the first demand above 0, or a power of two times it; Days are in multiples of it
	Now  Slot    `json:"now"`            // the slot that contains At
	Past []Slot  `json:"past,omitempty"` // the slots before it, of the last 30 min, oldest first
	Days []Day   `json:"days,omitempty"` // oldest first; the last one is today
	// Scores are the scores of Daily and Weekly, in this order.
	Scores [methods]Score `json:"scores"`
	// Sure are the scores over fully known slots only. A state of an earlier version has none: it lifts nothing for three
	// hours.
	Sure [methods]Score `json:"sure,omitzero"`
	starts.Learned
}

// A Slot is five minutes of demand.
type Slot struct {
	Number int64   `json:"n,omitempty"` // Unix time in slots
	Lower  float64 `json:"l,omitempty"` // integral of the lower ends, in demand times seconds
	Upper  float64 `json:"u,omitempty"`
	Seen   float64 `json:"s,omitempty"` // seconds of it for which a demand was known
	Marks  uint16  `json:"m,omitempty"` // what was not fully known, see silent and unsure
	// Asked is the most that forecasts asked for in it: replicas for each of other days' demand.
	Asked float64 `json:"a,omitempty"`
}

// A Day is the demand of a local day: two bytes for each slot by the clock, see pack.
type Day struct {
	Number int64  `json:"n"` // days since 1970
	Slots  []byte `json:"s"`
}

// A Score is how well a method did in the backtest: its pinball loss and that of the constant in the same slots, in
// multiples of Unit, and how many slots were scored. All three decay with a half-life of two days. Today is the excess of
// its loss over the constant's in the last hours, at least 0.
type Score struct {
	Loss     float64 `json:"loss"`
	Constant float64 `json:"constant"`
	Slots    float64 `json:"slots"`
	Today    float64 `json:"today"`
	OnTime   float64 `json:"onTime,omitempty"` // as Today, of what was expected without the ten minutes by which it is early, or today late
}

// Marks of a slot.
const (
	silent uint16 = 1 << 14 // a part of it was not seen, or ready pods did not answer: the demand may have been higher
	unsure uint16 = 1 << 15 // its demand was an interval, as while pods start
	marks         = silent | unsure
)

// pack encodes a demand, in multiples of the unit, in fourteen bits. 0 means unknown and 1 means none. Above that there are
// six bits for a power of two and eight for its factor, rounded to the nearest, which is within 0.2 %. Halves, and what
// rounding in another unit makes of them, are rounded up. The encoding is monotone.
func pack(x float64) uint16 {
	if x <= 0 {
		return 1
	}
	f, e := math.Frexp(x)
	const half = 0.5 + 1e-9
	m := int((f-0.5)*512 + half)
	k := (e+31)*256 + m
	return uint16(min(max(k, 2), 1<<14-1))
}

// largest is a demand, in multiples of the unit, from which on the unit is made larger, and smallest one below which it is made
// smaller. Pack has room for twice and for half as much.
const (
	largest  = 1 << 31
	smallest = 1.0 / (1 << 31)
)

// rescaling returns by which power of two the unit is to be made larger, so that there is room for a value as well as for the days:
// the first demand, or the highest, may have been a wrong one.
func (s *State) rescaling(value float64) int {
	_, k := math.Frexp(value)
	switch {
	case value >= largest:
		return k - 31
	case value > 0 && value < smallest:
		highest := pack(smallest)
		for i := range s.Days {
			highest = max(highest, s.Days[i].highest())
		}
		return min(max(k, (int(highest)-int(pack(largest)))/256), 0)
	}
	return 0
}

// rescale makes the unit 2^k times as large.
func (s *State) rescale(k int) {
	s.Unit = math.Ldexp(s.Unit, k)
	for i := range s.Days {
		for at := range slots {
			if old := s.Days[i].at(at); old&^marks > 1 {
				x := uint16(max(int(old&^marks)-256*k, 2)) | old&marks
				s.Days[i].Slots[2*at], s.Days[i].Slots[2*at+1] = byte(x), byte(x>>8)
			}
		}
	}
	for _, of := range [...]*[methods]Score{&s.Scores, &s.Sure} {
		for i := range of {
			for _, x := range [...]*float64{&of[i].Loss, &of[i].Constant, &of[i].Today, &of[i].OnTime} {
				*x = min(math.Ldexp(*x, -k), math.MaxFloat64)
			}
		}
	}
}

// unpack returns a packed demand, and whether it is known.
func unpack(k uint16) (float64, bool) {
	switch k &^= marks; k {
	case 0:
		return 0, false
	case 1:
		return 0, true
	}
	return math.Float64frombits(uint64(k)<<44 + (1022-31)<<52), true // its bits are those of a float64's exponent and fraction
}

func (d *Day) at(i int) uint16 { return uint16(d.Slots[2*i]) | uint16(d.Slots[2*i+1])<<8 }

// highest returns the code of the highest demand of a day, without marks.
func (d *Day) highest() (code uint16) {
	for i := range slots {
		code = max(code, d.at(i)&^marks)
	}
	return code
}

// put stores a slot. If the slot is there already, its hour occurs twice on this day, and the larger demand counts.
func (d *Day) put(i int, k uint16) {
	old := d.at(i)
	k = max(k&^marks, old&^marks) | (k|old)&marks
	d.Slots[2*i], d.Slots[2*i+1] = byte(k), byte(k>>8)
}

// asked returns the most that forecasts asked for within so many seconds, at most half an hour: replicas for each of other days' demand.
func (s *State) asked(within float64) float64 {
	most := s.Now.Asked
	for i := range s.Past {
		if x := &s.Past[i]; float64(x.Number+1)*slot > s.At-within {
			most = max(most, x.Asked)
		}
	}
	return most
}

// clone returns a copy that shares no memory.
func (s State) clone() State {
	s.Past, s.Days, s.Learned = slices.Clone(s.Past), slices.Clone(s.Days), starts.Clone(s.Learned)
	for i := range s.Days {
		s.Days[i].Slots = slices.Clone(s.Days[i].Slots)
	}
	return s
}

// Validate reports an error for what cannot be the state of any forecast.
func (s State) Validate() error {
	if len(s.Days) > mostDays || len(s.Past) > ratioSlots || len(s.Zone) > mostZone || len(s.Demand) > mostName {
		return errors.New("more is remembered than a forecast can")
	}
	if !number(math.Abs(s.At)) || !number(s.Unit) || s.Unit > 4*mostDemand || !s.Now.valid() {
		return errors.New("at, unit, now: must be numbers that are not negative, of demands up to 1e15")
	}
	if n := len(s.Past); s.Set && (s.Now.Number != int64(math.Floor(s.At/slot)) || n > 0 && s.Past[n-1].Number >= s.Now.Number) {
		return errors.New("now, past: must be those of at")
	}
	for i := range s.Past {
		if !s.Past[i].valid() || i > 0 && s.Past[i].Number <= s.Past[i-1].Number {
			return fmt.Errorf("past[%d]: must be numbers that are not negative, of demands up to 1e15, in order of time", i)
		}
	}
	for i := range s.Days {
		if len(s.Days[i].Slots) != 2*slots || i > 0 && s.Days[i].Number <= s.Days[i-1].Number {
			return fmt.Errorf("days[%d]: must have %d bytes, in order of time", i, 2*slots)
		}
	}
	for i, x := range [...]Score{s.Scores[0], s.Scores[1], s.Sure[0], s.Sure[1]} {
		if !number(x.Loss) || !number(x.Constant) || !number(x.Slots) || !number(x.Today) || !number(x.OnTime) {
			return fmt.Errorf("%s[%d]: must be numbers that are not negative", [...]string{"scores", "sure"}[i/methods], i%methods)
		}
	}
	return starts.Validate(&s.Learned)
}

func (s *Slot) valid() bool {
	const most = mostDemand * (slot + 1)
	return number(s.Lower) && number(s.Upper) && number(s.Asked) && s.Lower <= most && s.Upper <= most && s.Seen >= 0 && s.Seen <= slot+1
}

func number(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
