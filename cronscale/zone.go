package cronscale

import (
	"cmp"
	"slices"
	"time"
)

// A zone is a sequence of segments of constant offset. Only two functions of it are needed: the latest local time that its clocks
// have shown, and the first time at which they show a given local time or a later one:
//
//	shown(t)   = max over u <= t of local(u)
//	reached(m) = min over t with local(t) >= m of t
//
// Neither ever decreases, which covers every shift. A local time inside a gap is reached at the gap's end, together with all others
// in it. A local time that occurs twice is reached once, the first time.
//
// Times are in seconds of the Unix epoch; local times are that plus the offset, so that offsets which are not whole minutes, such
// as those of local mean time, need no special care.

const (
	secondsPerDay = 24 * 60 * 60
	// lookback is more than any two offsets of a zone can differ by: what a clock showed earlier than that is below
	// what it shows now.
	lookback = 2 * secondsPerDay
	endless  = 1 << 60
)

// shown returns the latest local time that the zone's clocks have shown at or before t.
func shown(zone *time.Location, t int64) int64 {
	latest := int64(-endless)
	for u := t - lookback; ; {
		offset, end := segment(zone, u)
		if end > t {
			return max(latest, t+offset)
		}
		latest = max(latest, end-1+offset)
		u = end
	}
}

// reached returns the first time at which the zone's clocks show local or later.
func reached(zone *time.Location, local int64) int64 {
	for t := local - lookback; ; {
		offset, end := segment(zone, t)
		if end+offset > local {
			return max(t, local-offset)
		}
		t = end
	}
}

// segment returns the zone's offset at t, and a later time until which it stays the same.
//
// Where the zone's rules are extrapolated, time.Time.ZoneBounds ends a segment with the year, which is harmless, and
// takes the year to have 365 days. On the last day of a leap year the end that it gives has therefore passed; the
// year's true end is the next midnight in UTC.
func segment(zone *time.Location, t int64) (offset, end int64) {
	at := time.Unix(t, 0).In(zone)
	_, seconds := at.Zone()
	_, bound := at.ZoneBounds()
	if bound.IsZero() {
		return int64(seconds), endless
	}
	end = bound.Unix()
	if end <= t {
		_, sinceMidnight := divide(t, secondsPerDay)
		end = t - sinceMidnight + secondsPerDay
	}
	return int64(seconds), end
}

// A clock is a zone with a table of its segments in the years around now, so that a lookup takes a few nanoseconds instead of
// hundreds. Other years are looked up in the zone.
type clock struct {
	zone *time.Location
	rows []row
}

// A row is a segment of constant offset, from start to the start of the next row.
type row struct {
	start  int64
	offset int64
	// above is one more than the latest local time that the clocks showed before start. It never falls from row to
	// row. At t within the row the clocks have shown max(above - 1, t + offset).
	above int64
}

// The table's first and last time: the years 1970 to 2099. Its last row only marks the end.
const (
	tableStart = 0
	tableEnd   = 4102444800
)

// newClock builds the table of a zone.
func newClock(zone *time.Location) *clock {
	c := &clock{zone: zone}
	above := shown(zone, tableStart-1) + 1
	for t := int64(tableStart); t < tableEnd; {
		offset, end := segment(zone, t)
		if n := len(c.rows); n == 0 || c.rows[n-1].offset != offset {
			c.rows = append(c.rows, row{start: t, offset: offset, above: above})
		}
		end = min(end, tableEnd)
		above = max(above, end+offset)
		t = end
	}
	c.rows = append(c.rows, row{start: tableEnd, above: above})
	return c
}

// shown returns the same as the function shown.
func (c *clock) shown(t int64) int64 {
	if t < tableStart || t >= tableEnd {
		return shown(c.zone, t)
	}
	i, found := slices.BinarySearchFunc(c.rows, t, func(r row, t int64) int { return cmp.Compare(r.start, t) })
	if !found {
		i--
	}
	return max(c.rows[i].above-1, t+c.rows[i].offset)
}

// reached returns the same as the function reached.
func (c *clock) reached(local int64) int64 {
	last := len(c.rows) - 1
	if local < c.rows[0].above || local >= c.rows[last].above {
		return reached(c.zone, local)
	}
	// local is reached in the row before the first one at whose start it had already been shown.
	i, _ := slices.BinarySearchFunc(c.rows, local+1, func(r row, above int64) int { return cmp.Compare(r.above, above) })
	r := c.rows[i-1]
	return max(r.start, local-r.offset)
}
