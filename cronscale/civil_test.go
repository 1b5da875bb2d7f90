package cronscale

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestCalendarEqualsPackageTime compares the dates and the lengths of the months with the standard library's, over
// more than an era of 400 years at both ends of what is looked at and in its middle.
func TestCalendarEqualsPackageTime(t *testing.T) {
	for _, from := range []int{-20, 1560, 9980} {
		compareCalendar(t, from, from+440)
	}
}

func compareCalendar(t *testing.T, from, to int) {
	t.Helper()
	day := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
	n := day.Unix() / secondsPerDay
	for day.Year() < to {
		y, m, d := dateOf(n)
		if y != int64(day.Year()) || m != int64(day.Month()) || d != int64(day.Day()) {
			t.Fatalf("dateOf(%d) = %d-%d-%d, want %v", n, y, m, d, day)
		}
		if back := dayOf(y, m, d); back != n {
			t.Fatalf("dayOf(%d, %d, %d) = %d, want %d", y, m, d, back, n)
		}
		if next := day.AddDate(0, 0, 1); next.Day() == 1 && monthLength(y, m) != d {
			t.Fatalf("monthLength(%d, %d) = %d, want %d", y, m, monthLength(y, m), d)
		}
		day, n = day.AddDate(0, 0, 1), n+1
	}
}

// TestSearchEqualsBruteForce looks for the first and last minute by trying them all.
func TestSearchEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := genExpr(t)
		s := mustParse(t, expr)
		spec := mustSpec(t, expr)
		from := rapid.Int64Range(-1_100_000_000, 4_200_000_000).Draw(t, "minute")
		const span = 3 * minutesPerDay
		want := func(step int64) (int64, bool) {
			for i := range int64(span) {
				if m := from + step*i; twinMatches(spec, time.Unix(m*60, 0).UTC()) {
					return m, true
				}
			}
			return 0, false
		}
		first, ok := s.first(from)
		if !ok {
			t.Fatalf("%q has no minute after %d", expr, from)
		}
		if w, near := want(1); near && first != w || !near && first < from+span {
			t.Fatalf("%q first(%d) = %d, brute force %d %v", expr, from, first, w, near)
		}
		last, ok := s.last(from)
		if !ok {
			t.Fatalf("%q has no minute before %d", expr, from)
		}
		if w, near := want(-1); near && last != w || !near && last > from-span {
			t.Fatalf("%q last(%d) = %d, brute force %d %v", expr, from, last, w, near)
		}
		// Searches meet: nothing is between last and first, and each is found from the other's side.
		if back, _ := s.last(first); back != first {
			t.Fatalf("%q last(first) = %d, want %d", expr, back, first)
		}
		if back, _ := s.last(first - 1); first > from && back != last && back >= from {
			t.Fatalf("%q has %d between %d and %d", expr, back, from, first)
		}
	})
}

// TestLeapDayAcross2100 has the longest wait that the Gregorian calendar knows, at which robfig gives up.
func TestLeapDayAcross2100(t *testing.T) {
	s := mustParse(t, "0 0 29 2 *")
	from := time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)
	if got, want := s.after(newClock(time.UTC), from.Unix()), time.Date(2104, 2, 29, 0, 0, 0, 0, time.UTC).Unix(); got != want {
		t.Errorf("after %v: %v, want %v", from, time.Unix(got, 0).UTC(), time.Unix(want, 0).UTC())
	}
	before := time.Date(2104, 2, 28, 23, 59, 59, 0, time.UTC)
	last, _, ok := s.around(newClock(time.UTC), before.Unix())
	if want := time.Date(2096, 2, 29, 0, 0, 0, 0, time.UTC).Unix(); !ok || last.at != want {
		t.Errorf("before %v: %v, want %v", before, time.Unix(last.at, 0).UTC(), time.Unix(want, 0).UTC())
	}
}

// TestWithoutEqualsBruteForce looks for the first minute that a schedule does not have by trying them all.
func TestWithoutEqualsBruteForce(t *testing.T) {
	compare := func(t rapid.TB, expr string, from int64) {
		s, spec := mustParse(t, expr), mustSpec(t, expr)
		const span = 3 * minutesPerDay
		want := from
		for want < from+span && twinMatches(spec, time.Unix(want*60, 0).UTC()) {
			want++
		}
		if got := s.without(from); got != want && (want < from+span || got < want) {
			t.Fatalf("%q without(%d) = %d, brute force %d", expr, from, got, want)
		}
	}
	for _, expr := range []string{"30-59 * * * *", "* 8 * * *", "* 8-9 * * *", "* * 1 * *", "* * * * *", "0-29 * * * *", "* 0-22 * * *", "* 23 * * *", "59 * * * *"} {
		for from := int64(29_000_000); from < 29_000_000+2*minutesPerDay; from += 7 {
			compare(t, expr, from)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		compare(t, genBusyExpr(t), rapid.Int64Range(-1_100_000_000, 4_200_000_000).Draw(t, "minute"))
	})
}

// TestTheLastOfEveryMonth: what a month has is found from the end of the year, and the first of it from the beginning.
func TestTheLastOfEveryMonth(t *testing.T) {
	minute := func(month time.Month, day int) int64 {
		return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC).Unix() / 60
	}
	for month := time.January; month <= time.December; month++ {
		s := mustParse(t, fmt.Sprintf("0 0 15 %d *", month))
		if got, ok := s.last(minute(time.December, 31)); !ok || got != minute(month, 15) {
			t.Errorf("last of month %d is %d %v", month, got, ok)
		}
		if got, ok := s.first(minute(time.January, 1)); !ok || got != minute(month, 15) {
			t.Errorf("first of month %d is %d %v", month, got, ok)
		}
	}
}
