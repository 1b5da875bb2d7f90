package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// place returns the local day of a slot, in days since 1970, and the slot's index in that day by the clock.
func (m *model) place(n int64) (day int64, i int) {
	if m.config.Location != nil {
		_, offset := time.Unix(n*slot, 0).In(m.config.Location).Zone()
		n = floorDiv(n*slot+int64(offset), slot)
	}
	day = floorDiv(n, slots)
	return day, int(n - day*slots)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// An amount is what is known of a demand.
type amount struct {
	lower, upper float64
	marks        uint16
	known        bool
}

// amountOf returns the amount of a source's reading.
func amountOf(r scaling.Reading, at, gap float64) (a amount) {
	if !r.Known() || !r.At.IsZero() && at-seconds(r.At) > gap {
		return a
	}
	a = amount{lower: min(r.Lower, mostDemand), upper: min(r.Upper, mostDemand), known: true}
	if r.Upper > r.Lower {
		a.marks = unsure
		if r.NotReady == 0 {
			a.marks |= silent
		}
	}
	if r.Failed > 0 {
		a.marks |= silent | unsure
	}
	return a
}

// see records a demand, which stands for the time since the last one if that was at most a gap ago.
func (m *model) see(s *State, at, gap float64, a amount) {
	n := int64(math.Floor(at / slot))
	switch {
	case !s.Set, at < s.At:
		m.turnTo(s, at, n)
		return
	case at == s.At:
		return
	}
	if s.Unit == 0 && a.known {
		s.Unit = a.lower
	}
	known := a.known && at-s.At <= gap
	for s.Now.Number < n {
		end := float64(s.Now.Number+1) * slot
		if known {
			s.Now.add(end-s.At, a)
		}
		over := s.Now.Number
		m.close(s)
		if known {
			s.At, s.Now = end, Slot{Number: over + 1}
		} else {
			s.At, s.Now = float64(n)*slot, Slot{Number: n}
		}
		m.score(s, over)
	}
	if known {
		s.Now.add(at-s.At, a)
	}
	s.At = at
}

// turnTo starts recording at a time: at the first call, or after the clock went back. Of the last 30 min it keeps what was before that time.
func (m *model) turnTo(s *State, at float64, n int64) {
	now := Slot{Number: n}
	for _, x := range append(s.Past, s.Now) {
		if s.Set && x.Number == n {
			now = x.first(at - float64(n)*slot)
		}
	}
	s.Past = slices.DeleteFunc(s.Past, func(x Slot) bool { return !s.Set || x.Number >= n })
	s.Set, s.At, s.Now = true, at, now
	for i := range s.Rises {
		s.Rises[i].At = min(s.Rises[i].At, at)
	}
}

// first returns what a slot has of its first seconds, as if its demand had been the same throughout.
func (x *Slot) first(seconds float64) Slot {
	part := *x
	if x.Seen > seconds {
		share := seconds / x.Seen
		part.Lower, part.Upper, part.Seen = x.Lower*share, x.Upper*share, seconds
	}
	return part
}

// add adds a demand that stood for so many seconds.
func (x *Slot) add(seconds float64, a amount) {
	x.Lower += seconds * a.lower
	x.Upper += seconds * a.upper
	x.Seen = min(x.Seen+seconds, slot)
	x.Marks |= a.marks
}

// close stores the slot that is over in its day. A time of it that was not seen counts as no demand and marks the slot
// silent.
func (m *model) close(s *State) {
	x := s.Now
	if x.Seen <= 0 {
		return
	}
	if x.Seen < slot-1 {
		x.Marks |= silent
	}
	if most := s.most(x.Upper / x.Seen); most > 0 {
		x.Lower, x.Upper = min(x.Lower, most*x.Seen), min(x.Upper, most*x.Seen)
	}
	if len(s.Past) == ratioSlots {
		s.Past = s.Past[:copy(s.Past, s.Past[1:])]
	}
	s.Past = append(s.Past, x)
	number, i := m.place(x.Number)
	if len(s.Past) == ratioSlots { // by now the clock is believed that days are still to come
		s.Days = slices.DeleteFunc(s.Days, func(d Day) bool { return d.Number > number })
	}
	value := 0.0
	if s.Unit > 0 {
		value = min(x.Lower/slot/s.Unit, math.MaxFloat64)
	}
	if k := s.rescaling(value); k != 0 {
		s.rescale(k)
		value = math.Ldexp(value, -k)
	}
	if d := s.day(number); d != nil {
		d.put(i, pack(value)|x.Marks)
	}
}

// most is the largest demand that a slot may have, 0 if there is no limit: four times the highest of the last half an hour, or of the
// highest slots of half of the days if that is more. What is beyond that is a wrong sample, or the beginning of growth, of which the next
// slots tell more. The first slot has no limit. What the last half an hour allows is returned without a look at the days.
func (s *State) most(demand float64) float64 {
	if len(s.Days) == 0 {
		return 0
	}
	lately := 0.0
	for i := range s.Past {
		lately = max(lately, s.Past[i].Lower/max(s.Past[i].Seen, 1))
	}
	if demand <= 4*lately {
		return 4 * lately
	}
	var highest [mostDays]float64
	for k := range s.Days {
		x, _ := unpack(s.Days[k].highest())
		highest[k] = x * s.Unit
	}
	days := highest[:len(s.Days)]
	slices.Sort(days)
	return 4 * max(lately, days[len(days)/2])
}

// day returns the day of a number. A day after the last one is begun; a day before it that was never seen is nil.
func (s *State) day(number int64) *Day {
	n := len(s.Days)
	if n > 0 && s.Days[n-1].Number >= number {
		return s.find(number)
	}
	if n < mostDays {
		s.Days = append(s.Days, Day{Number: number, Slots: make([]byte, 2*slots)})
		return &s.Days[n]
	}
	oldest := s.Days[0].Slots
	clear(oldest)
	copy(s.Days, s.Days[1:])
	s.Days[n-1] = Day{Number: number, Slots: oldest}
	return &s.Days[n-1]
}

// find returns a day, or nil.
func (s *State) find(number int64) *Day {
	for i := len(s.Days) - 1; i >= 0; i-- {
		if s.Days[i].Number == number {
			return &s.Days[i]
		}
	}
	return nil
}
