package cronscale

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// FuzzParse compares what is accepted with robfig's parser, apart from the refusals that are documented, and follows
// a schedule that was accepted for a few fires.
func FuzzParse(f *testing.F) {
	for _, expr := range []string{
		"0 8 * * *", "*/5 1-3,7 ? JAN-mar sun", "TZ=UTC", "CRON_TZ=", "TZ=UTC 0 8 * * *", "@every 1h", "@daily", "@",
		"0 0 31 2 *", ", * * * *", "*-5 * * * *", "+5 * * * *", "0 0 29 2 *", "0 0 * * 7", "\t0\t8 * * *\n", "",
		"*/9223372036854775807 * * * *", "0 0 1-31/30 * 6", "5,,10 * * * *", "?/15 0 L * 5#2", " TZ=UTC 0 8 * * *",
	} {
		f.Add(expr, int64(1_772_953_200))
	}
	c := newClock(mustZone(f, "America/New_York"))
	f.Fuzz(func(t *testing.T, expr string, at int64) {
		s, err := parse(expr)
		rule := refusal(expr)
		if _, robfigDoes := robfigSpec(expr).(*cron.SpecSchedule); !robfigDoes && err == nil {
			t.Fatalf("%q accepted, robfig refuses it", expr)
		}
		if (rule == "") != (err == nil) {
			t.Fatalf("%q: error %v, rule %q", expr, err, rule)
		}
		if err != nil {
			return
		}
		at = max(firstTime, min(at, endOfTime))
		for range 5 {
			last, next, ok := s.around(c, at)
			if ok && last.at > at || next <= at {
				t.Fatalf("%q at %d: last %d, next %d", expr, at, last.at, next)
			}
			if back, _, ok := s.around(c, next); next != endless && (!ok || back.at != next) {
				t.Fatalf("%q: after %d comes %d, before which is %d", expr, at, next, back.at)
			}
			if next > endOfTime {
				break
			}
			at = next
		}
	})
}

// FuzzZone compares the two questions that are asked of a zone with the standard library's local times.
func FuzzZone(f *testing.F) {
	for i, name := range oddZones {
		zone := mustZone(f, name)
		for _, year := range []int{1900, 1969, 2011, 2026, 2028, 2100} {
			f.Add(i, time.Date(year, 12, 31, 12, 0, 0, 0, zone).Unix())
		}
	}
	f.Fuzz(func(t *testing.T, i int, at int64) {
		zone := mustZone(t, oddZones[uint(i)%uint(len(oddZones))])
		at = max(firstTime, min(at, endOfTime))
		local := func(t int64) int64 {
			_, offset := time.Unix(t, 0).In(zone).Zone()
			return t + int64(offset)
		}
		m := shown(zone, at)
		if m < local(at) {
			t.Fatalf("%v at %d: shown %d is before the local time %d", zone, at, m, local(at))
		}
		r := reached(zone, m)
		if r > at || local(r) < m || local(r-1) >= m {
			t.Fatalf("%v at %d: shown %d, which is reached at %d", zone, at, m, r)
		}
		if next := reached(zone, m+1); next <= at || local(next) < m+1 || local(next-1) > m {
			t.Fatalf("%v at %d: shown %d, but %d is reached at %d", zone, at, m, m+1, next)
		}
	})
}
