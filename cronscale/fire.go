package cronscale

// A fire is an instant at which a schedule fires, and the civil minute that it fires for. At a gap the two differ: the minute is
// inside the gap, the instant is at its end.
type fire struct {
	at     int64
	minute int64
}

// around returns the schedule's last fire at or before t, if there is one, and the instant of the first fire after t, or endless.
// If several minutes fire at the same instant, last is the fire of the latest of them.
func (s schedule) around(c *clock, t int64) (last fire, next int64, ok bool) {
	minute, _ := divide(c.shown(t), 60)
	m, ok := s.last(minute)
	if ok {
		last = fire{at: c.reached(m * 60), minute: m}
	}
	return last, s.following(c, minute), ok
}

// after returns the instant of the schedule's first fire after t, or endless.
func (s schedule) after(c *clock, t int64) int64 {
	minute, _ := divide(c.shown(t), 60)
	return s.following(c, minute)
}

// following returns the instant of the schedule's first fire after a civil minute, or endless.
func (s schedule) following(c *clock, minute int64) int64 {
	m, ok := s.first(minute + 1)
	if !ok {
		return endless
	}
	return c.reached(m * 60)
}

// endOfRun returns the first instant at or after t at which the schedule may not fire: the end of its consecutive minutes or of
// the zone's segment. t is one minute after a fire.
func (s schedule) endOfRun(c *clock, t int64) int64 {
	offset, end := segment(c.zone, t)
	local := t + offset
	m, second := divide(local, 60)
	if second != 0 || c.shown(t) != local {
		return t
	}
	if m = s.without(m); m < endless {
		end = min(end, m*60-offset)
	}
	return max(t, end)
}
