package cronscale

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// genField draws one field of a cron expression.
func genField(t *rapid.T, label string, low, high int) string {
	switch rapid.IntRange(0, 4).Draw(t, label+" form") {
	case 0, 1:
		return "*"
	case 2:
		return fmt.Sprintf("*/%d", rapid.IntRange(1, high-low+2).Draw(t, label+" step"))
	case 3:
		a := rapid.IntRange(low, high).Draw(t, label+" from")
		b := rapid.IntRange(a, high).Draw(t, label+" to")
		return fmt.Sprintf("%d-%d", a, b)
	}
	list := rapid.SliceOfN(rapid.IntRange(low, high), 1, 4).Draw(t, label+" list")
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// genExpr draws a cron expression that fires.
func genExpr(t *rapid.T) string {
	expr := strings.Join([]string{
		genField(t, "minute", 0, 59), genField(t, "hour", 0, 23),
		genField(t, "dom", 1, 31), genField(t, "month", 1, 12), genField(t, "dow", 0, 6),
	}, " ")
	if _, err := parse(expr); err != nil {
		t.Skip(expr, err)
	}
	return expr
}

// genShift draws a zone and an instant after since at which its offset changes, if there is one within fifteen years.
func genShift(t *rapid.T, zones []namedZone, since int64) (*time.Location, time.Time) {
	zone := rapid.SampledFrom(zones).Draw(t, "zone")
	at := time.Unix(rapid.Int64Range(since, 2_500_000_000).Draw(t, "time"), 0).In(zone.Location)
	for limit := at.AddDate(15, 0, 0); at.Before(limit); {
		_, before := at.Zone()
		_, end := at.ZoneBounds()
		if end.IsZero() {
			break
		}
		if !end.After(at) {
			end = at.Add(24 * time.Hour) // the last day of an extrapolated leap year
		}
		if _, after := end.Zone(); before != after {
			return zone.Location, end
		}
		at = end
	}
	return zone.Location, at
}

// TestFiresEqualTheTwin compares fire instants with those that the wall's clock would show, around shifts of any zone.
func TestFiresEqualTheTwin(t *testing.T) {
	zones := append(fewZones(t), allZones(t)...)
	rapid.Check(t, func(t *rapid.T) {
		zone, shift := genShift(t, zones, -2_500_000_000)
		expr := genExpr(t)
		from, to := shift.Add(-20*time.Hour), shift.Add(28*time.Hour)
		want := twinFires(t, expr, zone, from, to)
		s := mustParse(t, expr)
		clock := newClock(zone)
		// Several minutes may fire at one instant: after sees it once, before the latest of them.
		var latest []twinFire
		for _, f := range want {
			if n := len(latest); n > 0 && latest[n-1].at.Equal(f.at) {
				latest[n-1] = f
			} else {
				latest = append(latest, f)
			}
		}
		got := ourFires(t, expr, zone, from, to)
		if len(got) != len(latest) {
			t.Fatalf("%q in %v around %v: %d fires %v, the twin has %d %v",
				expr, zone, shift, len(got), got, len(latest), latest)
		}
		for i, f := range latest {
			if !got[i].Equal(f.at) {
				t.Fatalf("%q in %v: fire %d is at %v, the twin has %v", expr, zone, i, got[i].In(zone), f.at.In(zone))
			}
			until := to
			if i+1 < len(latest) {
				until = latest[i+1].at.Add(-time.Second)
			}
			for _, now := range []time.Time{f.at, until} {
				last, _, ok := s.around(clock, now.Unix())
				if !ok || last.at != f.at.Unix() || last.minute*60 != f.minute.Unix() {
					t.Fatalf("%q in %v: last fire before %v is %v for minute %v, the twin has %v for %v", expr, zone,
						now.In(zone), time.Unix(last.at, 0), time.Unix(last.minute*60, 0).UTC(), f.at, f.minute)
				}
			}
		}
	})
}

// TestClockEqualsZone compares the table of a zone with the walk along its segments, in the table's years, at its ends
// and outside.
func TestClockEqualsZone(t *testing.T) {
	zones := append(fewZones(t), allZones(t)...)
	rapid.Check(t, func(t *rapid.T) {
		zone, shift := genShift(t, zones, -2_500_000_000)
		c := newClock(zone)
		for range 50 {
			at := rapid.SampledFrom([]int64{shift.Unix(), tableStart, tableEnd, shift.Unix()}).Draw(t, "near") +
				rapid.Int64Range(-200_000, 200_000).Draw(t, "offset")
			if got, want := c.shown(at), shown(zone, at); got != want {
				t.Fatalf("%v: shown(%d) = %d, want %d", zone, at, got, want)
			}
			if got, want := c.reached(at), reached(zone, at); got != want {
				t.Fatalf("%v: reached(%d) = %d, want %d", zone, at, got, want)
			}
		}
	})
}

// TestClockEqualsZoneAtEveryRow: also in the second in which a row begins, and in the one before.
func TestClockEqualsZoneAtEveryRow(t *testing.T) {
	for _, zone := range fewZones(t) {
		c := newClock(zone.Location)
		for _, r := range c.rows {
			for offset := int64(-2); offset <= 2; offset++ {
				if got, want := c.shown(r.start+offset), shown(zone.Location, r.start+offset); got != want {
					t.Errorf("%v: shown(%d) = %d, want %d", zone.Location, r.start+offset, got, want)
				}
				if got, want := c.reached(r.above+offset), reached(zone.Location, r.above+offset); got != want {
					t.Errorf("%v: reached(%d) = %d, want %d", zone.Location, r.above+offset, got, want)
				}
			}
		}
	}
}
