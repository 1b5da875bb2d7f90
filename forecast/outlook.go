package forecast

import "math"

// An outlook is the forecast that is in force until the next slot: all of it that does not change until then.
type outlook struct {
	slot, from, to int64 // the present slot, and the slots that the forecast covers
	lead           float64
	method         Method
	known          bool // whether any method is in force
	doubted        bool // whether the method may keep replicas but not add any: it is proven by all slots or by the fully known slots alone, not by both
	tried          bool // whether any method has a day to compare with
	bunch          bunch
	marks          uint16
}

// look returns the outlook at the state's time.
func (m *model) look(s *State) (o outlook) {
	if o = m.lookFor(s, s.proven); !o.known && o.tried {
		if kept := m.lookFor(s, s.keeps); kept.known {
			o, o.doubted = kept, true
		}
	}
	return o
}

// lookFor returns the outlook of the best among the methods that count.
func (m *model) lookFor(s *State, counts func(Method) bool) (o outlook) {
	o.slot, o.lead = s.Now.Number, m.lead
	o.from = int64(math.Floor(s.At/slot)) - dilation
	o.to = int64(math.Floor((s.At+m.lead)/slot)) + dilation
	best := 1.0
	for method := range Method(methods) {
		x := &s.Scores[method]
		proven := counts(method) && (!o.known || x.Loss < best*x.Constant)
		if o.tried && !proven {
			continue
		}
		try := outlook{method: method}
		if try.bunch, try.marks = m.bunch(s, method, o.from, o.to); try.bunch.n == 0 {
			continue
		}
		if !o.tried {
			o.tried, o.method = true, method
		}
		if proven {
			best = x.Loss / x.Constant
			o.known, o.method, o.bunch, o.marks = true, method, try.bunch, try.marks
		}
	}
	return o
}

// bunch returns the seasons of a method around now.
func (m *model) bunch(s *State, method Method, from, to int64) (b bunch, mark uint16) {
	list, n := method.days()
	for _, before := range list[:n] {
		x, marked, ok := m.season(s, s.Now.Number-1, from, to, before, s.today)
		if !ok {
			continue
		}
		b.seasons[b.n] = x
		b.n++
		mark |= marked
	}
	return b, mark
}

// today returns the demand of a slot of the last 30 min, in multiples of the unit; open means that it may have been more.
func (s *State) today(n int64) (lower, upper float64, open bool) {
	for i := range s.Past {
		if x := &s.Past[i]; x.Number == n && s.Unit > 0 {
			return x.Lower / slot / s.Unit, x.Upper / slot / s.Unit, x.Seen < slot-1
		}
	}
	return 0, 0, true
}

// season returns what the day that many days before says of the slots from..to, and its demand and today's in the 30 min up
// to slot n. ok is false if too little of that day is known.
func (m *model) season(s *State, n, from, to, before int64, today func(int64) (lower, upper float64, open bool)) (x season, mark uint16, ok bool) {
	var seen int64
	var marked uint16
	if x.peak, mark, seen = m.peak(s, from, to, before); 2*seen < to-from+1 {
		return x, mark, false
	}
	x.matches, marked = m.compare(s, n, before, today)
	same := &x.matches[dilation]
	if ahead, _, _ := m.peak(s, n+1, to, before); ahead*float64(same.slots) > (1+spare)*same.other {
		x.rise = x.peak
	}
	return x, mark | marked, same.slots > 0
}

// compare compares the 30 min up to slot n today with the same on another day, and with those that are up to ten minutes earlier and
// later. mark is of the same.
func (m *model) compare(s *State, n, before int64, today func(int64) (lower, upper float64, open bool)) (all [2*dilation + 1]match, mark uint16) {
	var others [ratioSlots + len(all)]struct {
		demand float64
		known  bool
	}
	for i := range others {
		x, marked, known := m.value(s, n-ratioSlots+1-dilation+int64(i), before)
		others[i].demand, others[i].known = x, known && marked&silent == 0
		if i >= dilation && i < dilation+ratioSlots {
			mark |= marked
		}
	}
	for k := range ratioSlots {
		lower, upper, open := today(n - ratioSlots + 1 + int64(k))
		for i := range all {
			other, x := others[k+i], &all[i]
			if !other.known {
				continue
			}
			x.other += other.demand
			x.lower += lower
			x.upper += upper
			x.open = x.open || open
			x.slots++
		}
	}
	for i := range all {
		if all[i].slots < ratioSlots/2 {
			all[i].slots = 0
		}
		all[i].next, all[i].hasNext = others[ratioSlots+i].demand, others[ratioSlots+i].known
	}
	return all, mark
}

// score backtests every method on a slot that is over: with what was known a lead before, the method must predict the
// highest demand of the slots since then.
func (m *model) score(s *State, over int64) {
	h := m.ahead()
	n := over - h // the last slot that was known at the time of the prediction
	actual, mark, known := m.peak(s, n+1, over, 0)
	if known < h {
		return
	}
	constant, _, known := m.peak(s, n-h-2*dilation+1, n, 0)
	if 2*known < h+2*dilation {
		return
	}
	now, _, _ := m.value(s, n, 0)
	today := func(k int64) (lower, upper float64, open bool) {
		x, _, _ := m.value(s, k, 0)
		return x, x, false
	}
	for method := range Method(methods) {
		expected, known := m.expected(s, method, n, over, today)
		if known == 0 {
			continue
		}
		// The base policy keeps the replicas for the present demand anyway.
		least, loss := pinball(actual, constant), pinball(actual, max(now, expected[0]))
		excused := loss
		for _, x := range expected[:known] {
			excused = min(excused, pinball(actual, max(now, x)))
		}
		s.Scores[method].add(loss, least, excused)
		if mark&silent == 0 {
			s.Sure[method].add(loss, least, excused)
		}
	}
}

// expected returns what a method expected in the slots after slot n up to another, by what was known in slot n: with the ten minutes by
// which a day may be early or late, without, and if today is as late as that. What passes within ten minutes is not late. It knew a day
// for the first known of the three.
func (m *model) expected(s *State, method Method, n, upTo int64, today func(k int64) (lower, upper float64, open bool)) (demand [3]float64, known int) {
	var peaks [len(demand)][mostOthers]float64
	var seen [len(demand)]int
	list, most := method.days()
	for _, before := range list[:most] {
		x, _, ok := m.season(s, n, n-dilation+1, upTo+dilation, before, today)
		if !ok {
			continue
		}
		whole, ratio := x.expect(&match{}, 0)
		peaks[0][seen[0]] = whole
		seen[0]++
		onTime, _, slots := m.peak(s, n+1, upTo, before)
		if 2*slots < upTo-n {
			continue
		}
		late := onTime
		earlier, marked, slots := m.peak(s, n+1-dilation, upTo-dilation, before)
		if slots == upTo-n && marked&silent == 0 && m.lasts(s, (1-spare)*onTime, upTo, before) {
			late = earlier
		}
		for i, peak := range [...]float64{onTime, late} {
			peaks[i+1][seen[i+1]] = ratio * peak
			seen[i+1]++
		}
	}
	for known < len(demand) && seen[known] > 0 {
		demand[known] = quantileOf(peaks[known][:seen[known]])
		known++
	}
	return demand, known
}

// add adds the losses of a slot. While a method is ahead of the constant but costs too much today, its long-term score stays
// as it is, so that an unusual day does not count against it for days.
func (x *Score) add(loss, constant, excused float64) {
	const slowly, soonest = 1 - math.Ln2/halfLife, 1 - math.Ln2/soon
	if !(x.Loss < x.limit() && x.Today > x.mayToday()) {
		x.Loss = x.Loss*slowly + loss
		x.Constant = x.Constant*slowly + constant
		x.Slots = x.Slots*slowly + 1
	}
	x.Today = max(0, x.Today*soonest+loss-constant)
	x.OnTime = max(0, x.OnTime*soonest+excused-constant)
}

// limit is the loss below which a method may be in force, and mayToday the excess loss that it may have today.
func (x *Score) limit() float64 { return wins * x.Constant }

func (x *Score) mayToday() float64 { return patience * max(0, x.Constant-x.Loss) / x.Slots }

// proven reports whether a method counts by both scores, that of all slots and that of fully known slots; keeps, whether it
// does by either.
func (s *State) proven(k Method) bool { return s.Scores[k].proven() && s.Sure[k].proven() }
func (s *State) keeps(k Method) bool  { return s.Scores[k].proven() || s.Sure[k].proven() }

// proven reports whether the method counts by this score. That replicas come ten minutes early is not that today is unlike other days.
func (x *Score) proven() bool {
	return x.Slots >= enough && x.Loss < x.limit() && x.OnTime <= x.mayToday()
}

// pinball is the loss of an expectation: a tenth of what it is too high, and nine tenths of what the demand exceeds it by,
// beyond the spare share that any fleet can take.
func pinball(actual, expected float64) float64 {
	return quantile*max(0, actual-(1+spare)*expected) + (1-quantile)*max(0, expected-actual)
}
