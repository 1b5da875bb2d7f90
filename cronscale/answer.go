package cronscale

// An answer is what the timetable asks for at an instant, and how long this and its reason stay the same.
type answer struct {
	inForce bool
	target  int32 // not clamped yet
	winner  int   // the index of the entry in force, -1 outside every window
	since   int64 // when it fired
	from    int64 // nothing fires or ends in [from, until) except at from
	until   int64
}

// maxSkips is how many instants without a change a search passes before it gives up.
const maxSkips = 1000

// The supported times: the years 1 to 9999, all that RFC 3339 can write. Outside of them nothing is in force.
const (
	firstTime = -62135596800
	endOfTime = 253402300800
)

// answer returns what the timetable asks for at t.
func (s Scaler) answer(t int64) answer {
	a := answer{winner: -1, from: firstTime, until: endOfTime}
	switch s.mode {
	case Match:
		s.match(&a, t)
	case InWindow:
		s.window(&a, t)
	default:
		s.holdLast(&a, t)
	}
	return a
}

// holdLast lets the entry that fired last decide. Of entries that fired at the same instant the first one decides, since the
// entries are in order of precedence.
func (s Scaler) holdLast(a *answer, t int64) {
	for i := range s.entries {
		e := &s.entries[i]
		last, next, ok := e.on.around(e.clock, t)
		a.until = min(a.until, next)
		if ok && (!a.inForce || last.at > a.since) {
			a.inForce, a.target, a.winner, a.since = true, e.target, i, last.at
		}
	}
	if a.inForce {
		a.from = a.since
	}
}

// minute is how long a fire matches, in seconds.
const minute = 60

// match lets the first entry that fired less than a minute ago decide.
func (s Scaler) match(a *answer, t int64) {
	for i := range s.entries {
		e := &s.entries[i]
		last, next, ok := e.on.around(e.clock, t)
		a.until = min(a.until, next)
		if !ok {
			continue
		}
		if t >= last.at+minute {
			a.from = max(a.from, last.at+minute)
			continue
		}
		a.from = max(a.from, last.at)
		a.until = min(a.until, last.at+minute)
		if !a.inForce {
			a.inForce, a.target, a.winner, a.since = true, e.target, i, last.at
		}
	}
}

// window lets the first open entry decide, and asks for the count outside if none is open.
//
// It compares civil minutes, not instants: the minutes inside a gap all fire at one instant, but still in order. A window that
// ends and starts in the same minute is open, since the start belongs to it and the end does not.
func (s Scaler) window(a *answer, t int64) {
	a.inForce, a.target = true, s.outside
	for i := range s.entries {
		e := &s.entries[i]
		start, nextStart, started := e.on.around(e.clock, t)
		end, nextEnd, ended := e.off.around(e.clock, t)
		a.until = min(a.until, nextStart, nextEnd)
		if started {
			a.from = max(a.from, start.at)
		}
		if ended {
			a.from = max(a.from, end.at)
		}
		if a.winner < 0 && started && (!ended || start.minute >= end.minute) {
			a.target, a.winner, a.since = e.target, i, start.at
		}
	}
}

// change returns the first instant after t at which the timetable asks for something else than a, its answer at t, or endless if
// it never does. exact is false if the search had to end early; at is then the instant that the search reached.
func (s Scaler) change(a answer, t int64) (at int64, exact bool) {
	if s.constant() {
		return endless, true
	}
	for range maxSkips {
		t = s.candidate(a, t)
		if t >= endOfTime {
			return endless, true
		}
		b := s.answer(t)
		if b.inForce != a.inForce || s.count(b) != s.count(a) {
			return t, true
		}
		a = b
	}
	return t, false
}

// constant reports whether the timetable can only ever ask for one count.
func (s Scaler) constant() bool {
	if s.mode == Match {
		return false
	}
	count := s.bounds.Clamp(s.entries[0].target)
	for i := range s.entries {
		if s.bounds.Clamp(s.entries[i].target) != count {
			return false
		}
	}
	return s.mode == HoldLast || s.bounds.Clamp(s.outside) == count
}

// candidate returns the first instant after t at which something happens that could change the answer a, given at t:
// a fire of an entry that asks for another count and is not outvoted while a stands, or the end of a itself.
func (s Scaler) candidate(a answer, t int64) int64 {
	at := int64(endless)
	count := s.count(a)
	switch {
	case !a.inForce:
	case s.mode == Match:
		w := &s.entries[a.winner]
		at = w.on.endOfRun(w.clock, a.since+minute)
	case s.mode == InWindow && a.winner >= 0:
		w := &s.entries[a.winner]
		at = w.off.after(w.clock, t)
	}
	for i := range s.entries {
		e := &s.entries[i]
		asks := s.bounds.Clamp(e.target)
		switch {
		case !a.inForce, s.mode == InWindow && a.winner < 0:
		case s.mode == HoldLast && asks == count:
			continue
		case s.mode != HoldLast && asks <= count:
			continue
		}
		at = min(at, e.on.after(e.clock, t))
	}
	return at
}
