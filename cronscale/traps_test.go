package cronscale

import (
	"testing"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

func wide() scaling.Bounds { return scaling.Bounds{Max: 100} }

// fireTable is a schedule, a zone, a time and the next fires after it.
type fireTable struct {
	name, expr, zone, from string
	want                   []string
}

func runFireTable(t *testing.T, rows []fireTable) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			zone := mustZone(t, row.zone)
			s := mustParse(t, row.expr)
			clock := newClock(zone)
			now := at(t, row.from).Unix()
			for _, want := range row.want {
				now = s.after(clock, now)
				if got := time.Unix(now, 0).In(zone).Format(time.RFC3339); got != want {
					t.Fatalf("next is %s, want %s", got, want)
				}
			}
		})
	}
}

// TestTrapsOfSpring has times inside a gap: each fires at the gap's end.
func TestTrapsOfSpring(t *testing.T) {
	runFireTable(t, []fireTable{
		{
			"New York, 02:30 does not exist", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		},
		{
			"New York, four times in the gap and the one at its end are one fire", "*/15 2,3 * * *", "America/New_York",
			"2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:15:00-04:00"},
		},
		{
			"Lord Howe shifts by half an hour: robfig leaves out the day", "0 2 * * *", "Australia/Lord_Howe",
			"2026-10-04T01:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:00:00+11:00"},
		},
		{
			"Sao Paulo has no midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
		{
			"Cairo has no midnight: robfig waits for a year", "0 0 24 4 *", "Africa/Cairo", "2026-04-20T12:00:00+02:00",
			[]string{"2026-04-24T01:00:00+03:00", "2027-04-24T00:00:00+02:00"},
		},
		{
			"Havana has no midnight: robfig loses a week", "0 0 * * 0", "America/Havana", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T01:00:00-04:00", "2026-03-15T00:00:00-04:00"},
		},
		{
			"Apia skipped 30 December 2011: robfig does not return", "0 12 30 12 *", "Pacific/Apia",
			"2011-12-28T00:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"},
		},
		{
			"Apia, every noon", "0 12 * * *", "Pacific/Apia", "2011-12-29T11:00:00-10:00",
			[]string{"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"},
		},
		{
			"Troll shifts by two hours", "30 2 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"Kathmandu went forward by a quarter of an hour", "10 0 1 1 *", "Asia/Kathmandu", "1985-12-31T12:00:00+05:30",
			[]string{"1986-01-01T00:15:00+05:45", "1987-01-01T00:10:00+05:45"},
		},
		{
			"Monrovia's offset was not whole minutes", "0 0 * * *", "Africa/Monrovia", "1972-01-05T12:00:00Z",
			[]string{"1972-01-06T00:00:00-00:44", "1972-01-07T00:44:30Z", "1972-01-08T00:00:00Z"},
		},
	})
}

// TestTrapsOfAutumn has times that come twice: each fires the first time.
func TestTrapsOfAutumn(t *testing.T) {
	runFireTable(t, []fireTable{
		{
			"New York, 01:30 comes twice", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		},
		{
			"New York, every half hour: none while the hour is repeated", "*/30 * * * *", "America/New_York",
			"2026-11-01T00:45:00-04:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T02:00:00-05:00"},
		},
		{
			"Lord Howe, 01:45 comes twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		},
		{
			"Kwajalein skipped 21 August 1993", "0 6 * * *", "Pacific/Kwajalein", "1993-08-20T00:00:00-12:00",
			[]string{"1993-08-20T06:00:00-12:00", "1993-08-22T00:00:00+12:00", "1993-08-22T06:00:00+12:00"},
		},
	})
}

// TestTrapOffsetsWithSeconds: Monrovia was 44 minutes and 30 seconds behind until 1972. Its minutes do not begin with
// those of UTC, which robfig rounds to: it leaves out every other minute. Found by a property in 100,000 checks.
func TestTrapOffsetsWithSeconds(t *testing.T) {
	zone := mustZone(t, "Africa/Monrovia")
	from := time.Date(1969, 12, 31, 23, 15, 30, 0, zone)
	if got := time.Unix(mustParse(t, "*/2 * * * *").after(newClock(zone), from.Unix()), 0).In(zone); !got.Equal(from.Add(30 * time.Second)) {
		t.Errorf("the next even minute is %v", got)
	}
	spec := mustSpec(t, "*/2 * * * *")
	spec.Location = zone
	if got := spec.Next(from); !got.Equal(from.Add(150 * time.Second)) {
		t.Errorf("robfig says %v: has it been mended?", got)
	}
}

// TestTrapOfTheLeapYearsLastDay is about time.Time.ZoneBounds, which ends the last segment of an extrapolated leap year
// a day early: on that day the end has passed.
func TestTrapOfTheLeapYearsLastDay(t *testing.T) {
	for _, name := range []string{"America/New_York", "Australia/Lord_Howe", "Europe/London"} {
		zone := mustZone(t, name)
		now := time.Date(2052, 12, 31, 12, 0, 0, 0, time.UTC)
		_, end := segment(zone, now.Unix())
		if _, bound := now.In(zone).ZoneBounds(); end <= now.Unix() || !bound.After(now) && end != time.Date(2053, 1, 1, 0, 0, 0, 0, time.UTC).Unix() {
			t.Errorf("%s: the segment at %v ends at %v, and must with the year", name, now, time.Unix(end, 0).UTC())
		}
	}
	runFireTable(t, []fireTable{{
		"over new year", "0 */8 * * *", "America/New_York", "2052-12-31T07:00:00-05:00",
		[]string{"2052-12-31T08:00:00-05:00", "2052-12-31T16:00:00-05:00", "2053-01-01T00:00:00-05:00"},
	}})
}

// slotTable asks a timetable at several times. An empty want means that nothing is in force.
func slotTable(t *testing.T, c Config, rows [][2]string) {
	t.Helper()
	s := mustNew(t, c)
	for _, row := range rows {
		slot := s.At(at(t, row[0]))
		got := slot.Because.Subject
		if slot.InForce && got == "" {
			got = "outside"
		}
		if got != row[1] {
			t.Errorf("at %s: %q, want %q", row[0], got, row[1])
		}
	}
}

// TestTrapWindowStartsInAGap is KEDA's window that stays open for 23 hours, since its start on the day is lost.
func TestTrapWindowStartsInAGap(t *testing.T) {
	slotTable(t, Config{
		Mode: InWindow, Bounds: wide(),
		Windows: []Window{{"w", "30 2 * * *", "0 4 * * *", 5, "America/New_York"}},
	}, [][2]string{
		{"2026-03-06T12:00:00-05:00", "outside"},
		{"2026-03-07T03:00:00-05:00", "w"},
		{"2026-03-07T12:00:00-05:00", "outside"}, // KEDA: open
		{"2026-03-08T01:30:00-05:00", "outside"}, // KEDA: open
		{"2026-03-08T01:59:59-05:00", "outside"}, // KEDA: open
		{"2026-03-08T03:00:00-04:00", "w"},
		{"2026-03-08T03:59:59-04:00", "w"},
		{"2026-03-08T04:00:00-04:00", "outside"},
	})
}

// TestTrapWindowEndsInAGap is KEDA's window that is lost for a day.
func TestTrapWindowEndsInAGap(t *testing.T) {
	slotTable(t, Config{
		Mode: InWindow, Bounds: wide(),
		Windows: []Window{{"w", "0 1 * * *", "30 2 * * *", 5, "America/New_York"}},
	}, [][2]string{
		{"2026-03-08T00:59:59-05:00", "outside"},
		{"2026-03-08T01:30:00-05:00", "w"}, // KEDA: closed
		{"2026-03-08T01:59:59-05:00", "w"},
		{"2026-03-08T03:00:00-04:00", "outside"},
	})
}

// TestTrapWindowInsideAGap starts and ends at one instant, in that order: it is not open for a day.
func TestTrapWindowInsideAGap(t *testing.T) {
	c := Config{
		Mode: InWindow, Bounds: wide(),
		Windows: []Window{{"w", "10 2 * * *", "40 2 * * *", 5, "America/New_York"}},
	}
	slotTable(t, c, [][2]string{
		{"2026-03-07T02:20:00-05:00", "w"},
		{"2026-03-08T01:59:59-05:00", "outside"},
		{"2026-03-08T03:00:00-04:00", "outside"},
		{"2026-03-08T12:00:00-04:00", "outside"},
		{"2026-03-09T02:20:00-04:00", "w"},
	})
	next, ok := mustNew(t, c).Next(at(t, "2026-03-08T00:00:00-05:00"))
	if want := at(t, "2026-03-09T02:10:00-04:00"); !ok || !next.Equal(want) {
		t.Errorf("Next is %v, want %v", next, want)
	}
}

// TestTrapWindowInTheRepeatedHour is open once.
func TestTrapWindowInTheRepeatedHour(t *testing.T) {
	slotTable(t, Config{
		Mode: InWindow, Bounds: wide(),
		Windows: []Window{{"w", "0 1 * * *", "30 1 * * *", 5, "America/New_York"}},
	}, [][2]string{
		{"2026-11-01T01:15:00-04:00", "w"},
		{"2026-11-01T01:30:00-04:00", "outside"},
		{"2026-11-01T01:15:00-05:00", "outside"}, // KEDA: open again
		{"2026-11-02T01:15:00-05:00", "w"},
	})
}

// TestTrapWeekend starts on weekdays and ends every day; KEDA's is open through the weekend.
func TestTrapWeekend(t *testing.T) {
	slotTable(t, Config{
		Mode: InWindow, Bounds: wide(),
		Windows: []Window{{"w", "0 6 * * 1-5", "0 20 * * *", 5, ""}},
	}, [][2]string{
		{"2026-01-16T19:59:59Z", "w"},
		{"2026-01-16T20:00:00Z", "outside"},
		{"2026-01-17T12:00:00Z", "outside"}, // Saturday; KEDA: open
		{"2026-01-18T12:00:00Z", "outside"},
		{"2026-01-19T06:00:00Z", "w"},
	})
}

// TestWindowsOverlapAndTouch: the highest wins, then the first name; windows that touch hand over without a dip.
func TestWindowsOverlapAndTouch(t *testing.T) {
	c := Config{
		Mode: InWindow, Bounds: scaling.Bounds{Min: 1, Max: 8}, Outside: 2,
		Windows: []Window{
			{"late", "0 12 * * *", "0 18 * * *", 9, ""},
			{"early", "0 6 * * *", "0 12 * * *", 5, ""},
			{"noon", "0 11 * * *", "0 13 * * *", 9, ""},
			{"zero", "0 20 * * *", "0 21 * * *", 0, ""},
		},
	}
	slotTable(t, c, [][2]string{
		{"2026-01-16T05:59:59Z", "outside"},
		{"2026-01-16T06:00:00Z", "early"},
		{"2026-01-16T11:00:00Z", "noon"},
		{"2026-01-16T12:00:00Z", "late"},
		{"2026-01-16T13:00:00Z", "late"},
		{"2026-01-16T18:00:00Z", "outside"},
		{"2026-01-16T20:30:00Z", "zero"},
	})
	want := []Change{
		{at(t, "2026-01-16T00:00:00Z"), 2, true, ""},
		{at(t, "2026-01-16T06:00:00Z"), 5, true, "early"},
		{at(t, "2026-01-16T11:00:00Z"), 8, true, "noon"},
		{at(t, "2026-01-16T18:00:00Z"), 2, true, ""},
		{at(t, "2026-01-16T20:00:00Z"), 1, true, "zero"},
		{at(t, "2026-01-16T21:00:00Z"), 2, true, ""},
	}
	i := 0
	for got := range mustNew(t, c).Timeline(want[0].At, want[0].At.AddDate(0, 0, 1)) {
		if i >= len(want) || got != want[i] {
			t.Fatalf("change %d: %+v", i, got)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d changes, want %d", i, len(want))
	}
}

// TestMatchModeMissesAThird drives the proposal's rule by a loop of 90 seconds in each of its phases: thirty miss the
// fire of 08:00, and stay at one replica. HoldLast misses none.
func TestMatchModeMissesAThird(t *testing.T) {
	for _, tt := range []struct {
		mode Mode
		want int
	}{{Match, 30}, {HoldLast, 0}} {
		s := mustNew(t, Config{Mode: tt.mode, Bounds: wide(), Policies: []Policy{
			{"up", "0 8 * * *", 5, ""}, {"down", "1 0 * * *", 1, ""},
		}})
		missed := 0
		for phase := range 90 {
			policy := scaling.New(s)
			replicas := int32(1)
			now := at(t, "2026-01-15T07:50:00Z").Add(time.Duration(phase) * time.Second)
			for end := at(t, "2026-01-15T12:00:00Z"); now.Before(end); now = now.Add(90 * time.Second) {
				if d := policy.Decide(now, scaling.Observation{SpecReplicas: replicas}); d.Acts() {
					policy.Applied(now, replicas, d.Replicas)
					replicas = d.Replicas
				}
			}
			if replicas != 5 {
				missed++
			}
		}
		if missed != tt.want {
			t.Errorf("%v misses %d of 90 phases, want %d", tt.mode, missed, tt.want)
		}
	}
}

// TestRestartAtEight is down from 07:59:30 to 08:02: match mode loses the day, HoldLast does not.
func TestRestartAtEight(t *testing.T) {
	for _, tt := range []struct {
		mode Mode
		want int32
	}{{Match, 1}, {HoldLast, 5}} {
		s := mustNew(t, Config{Mode: tt.mode, Bounds: wide(), Policies: []Policy{
			{"up", "0 8 * * *", 5, ""}, {"down", "1 0 * * *", 1, ""},
		}})
		replicas := int32(1)
		policy := scaling.New(s)
		for now := at(t, "2026-01-15T07:00:00Z"); now.Before(at(t, "2026-01-15T20:00:00Z")); now = now.Add(15 * time.Second) {
			if now.After(at(t, "2026-01-15T07:59:30Z")) && now.Before(at(t, "2026-01-15T08:02:00Z")) {
				policy = scaling.New(s) // down
				continue
			}
			if d := policy.Decide(now, scaling.Observation{SpecReplicas: replicas}); d.Acts() {
				replicas = d.Replicas
			}
		}
		if replicas != tt.want {
			t.Errorf("%v ends the day with %d, want %d", tt.mode, replicas, tt.want)
		}
	}
}

// TestNextDependsOnNowOnlyWhereTheSearchEndsEarly: windows that open and close every minute, outvoted for days, so that
// the search for the next change ends early. A memo that kept the change which an earlier search had found answered
// something else than a fresh start. Found by two properties.
func TestNextDependsOnNowOnlyWhereTheSearchEndsEarly(t *testing.T) {
	s := mustNew(t, Config{
		Mode: InWindow, Bounds: scaling.Bounds{Max: 3}, Outside: 4,
		Windows: []Window{
			{Name: "p0", Start: "* 4-23 * * *", End: "* * * * *", Replicas: 15, TimeZone: "Asia/Gaza"},
			{Name: "p1", Start: "* */12 * * *", End: "0-59 * * * *", Replicas: 2, TimeZone: "Etc/UTC"},
			{Name: "p2", Start: "*/13 * * * */5", End: "* * * * 4-5", Replicas: 15, TimeZone: "Australia/Lord_Howe"},
		},
	})
	var state State
	begin := at(t, "1973-04-30T20:00:00Z")
	for elapsed := time.Duration(0); elapsed <= 24*time.Hour; elapsed += 15 * time.Minute {
		now := begin.Add(elapsed)
		var kept, fresh scaling.Decision
		state, kept = s.Decide(state, now, scaling.Observation{SpecReplicas: 3})
		if _, fresh = s.Decide(State{}, now, scaling.Observation{SpecReplicas: 3}); !kept.Next.Equal(fresh.Next) {
			t.Fatalf("at %v the next change is %v, for a fresh start %v", now, kept.Next, fresh.Next)
		}
	}
}

// TestMonthThatBeganWithAShift: where clocks skip the midnight of a month's first day, robfig keeps that hour for the
// months after it, and fires an hour late.
func TestMonthThatBeganWithAShift(t *testing.T) {
	juba := mustZone(t, "Africa/Juba")
	at := time.Date(1970, 5, 3, 1, 0, 0, 0, juba)
	spec := mustSpec(t, "* * * 6 *")
	spec.Location = juba
	if want := time.Date(1970, 6, 1, 1, 0, 0, 0, juba); !spec.Next(at).Equal(want) {
		t.Errorf("robfig: %v, not %v", spec.Next(at), want)
	}
	got := mustParse(t, "* * * 6 *").after(newClock(juba), at.Unix())
	if want := time.Date(1970, 6, 1, 0, 0, 0, 0, juba); got != want.Unix() {
		t.Errorf("%v, not %v", time.Unix(got, 0).In(juba), want)
	}
}
