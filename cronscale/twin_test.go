package cronscale

import (
	"archive/zip"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	_ "time/tzdata" // the tests must not depend on the machine's database

	"github.com/robfig/cron/v3"
)

// The twin is the plainest restatement of when a schedule fires: watch the clock on the wall tick, and fire for every
// minute that it has come to for the first time, be it by ticking or by jumping over it.

// twinMatches reports whether a minute of the calendar, written as a time in UTC, is one of the expression's.
func twinMatches(spec *cron.SpecSchedule, c time.Time) bool {
	has := func(set uint64, value int) bool { return set&(1<<uint(value)) != 0 }
	star := func(set uint64) bool { return set&(1<<63) != 0 }
	if !has(spec.Minute, c.Minute()) || !has(spec.Hour, c.Hour()) || !has(spec.Month, int(c.Month())) {
		return false
	}
	dom, dow := has(spec.Dom, c.Day()), has(spec.Dow, int(c.Weekday()))
	if star(spec.Dom) || star(spec.Dow) {
		return dom && dow
	}
	return dom || dow
}

// wall returns what the wall shows at t, as if it were UTC, without seconds.
func wall(t time.Time) time.Time {
	year, month, day := t.Date()
	hour, minute, _ := t.Clock()
	return time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
}

// tester is what helpers need of a *testing.T, *testing.B or *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

type twinFire struct {
	at     time.Time
	minute time.Time
}

// twinFires returns every fire of the expression in (from, to], by watching the wall from three days earlier.
func twinFires(tb tester, expr string, zone *time.Location, from, to time.Time) []twinFire {
	tb.Helper()
	spec := mustSpec(tb, expr)
	start := from.Add(-3 * 24 * time.Hour).Truncate(time.Minute)
	// A minute's tick is enough unless an offset has odd seconds.
	step := 60
	for u := start; u.Before(to); u = u.Add(15 * time.Minute) {
		_, offset := u.In(zone).Zone()
		step = gcd(step, offset)
	}
	tick := time.Duration(step) * time.Second
	var fires []twinFire
	latest := wall(start.In(zone))
	for u := start; !u.After(to); u = u.Add(tick) {
		for now := wall(u.In(zone)); latest.Before(now); {
			latest = latest.Add(time.Minute)
			if twinMatches(spec, latest) && u.After(from) {
				fires = append(fires, twinFire{u, latest})
			}
		}
	}
	return fires
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// ourFires returns the same by the code under test.
func ourFires(tb tester, expr string, zone *time.Location, from, to time.Time) []time.Time {
	tb.Helper()
	s := mustParse(tb, expr)
	clock := newClock(zone)
	var fires []time.Time
	for t := from.Unix(); ; {
		t = s.after(clock, t)
		if t > to.Unix() {
			return fires
		}
		fires = append(fires, time.Unix(t, 0))
	}
}

func mustSpec(tb tester, expr string) *cron.SpecSchedule {
	tb.Helper()
	parsed, err := cron.ParseStandard(expr)
	if err != nil {
		tb.Fatalf("%q: %v", expr, err)
	}
	return parsed.(*cron.SpecSchedule)
}

func mustParse(tb tester, expr string) schedule {
	tb.Helper()
	s, err := parse(expr)
	if err != nil {
		tb.Fatalf("%q: %v", expr, err)
	}
	return s
}

func mustZone(tb tester, name string) *time.Location {
	tb.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return zone
}

func at(tb tester, text string) time.Time {
	tb.Helper()
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// oddZones are the zones that have broken cron before: half-hour and two-hour shifts, skipped days, shifts at
// midnight, offsets that are not whole hours or minutes.
var oddZones = []string{
	"Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Africa/Cairo", "America/Havana", "Pacific/Kwajalein",
	"Asia/Kathmandu", "Africa/Monrovia", "Antarctica/Troll", "Africa/Casablanca", "America/New_York", "Europe/Dublin",
	"Asia/Manila", "America/Nuuk", "Asia/Gaza", "Asia/Pyongyang", "America/Caracas", "Europe/Amsterdam",
	"America/Scoresbysund", "Asia/Beirut", "Pacific/Kiritimati", "Etc/UTC",
}

type namedZone struct {
	name string
	*time.Location
}

// allZones returns every zone of the Go distribution's database, links to the same rules once.
func allZones(tb tester) []namedZone {
	tb.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Logf("no go command (%v): only %d zones", err, len(oddZones))
		return fewZones(tb)
	}
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(out)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		tb.Logf("no zoneinfo.zip (%v): only %d zones", err, len(oddZones))
		return fewZones(tb)
	}
	defer func() { _ = r.Close() }()
	var zones []namedZone
	seen := map[string]bool{}
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		body, err := f.Open()
		if err != nil {
			tb.Fatal(err)
		}
		data, err := io.ReadAll(body)
		if err != nil {
			tb.Fatal(err)
		}
		if seen[string(data)] {
			continue
		}
		seen[string(data)] = true
		zone, err := time.LoadLocationFromTZData(f.Name, data)
		if err != nil {
			tb.Fatal(err)
		}
		zones = append(zones, namedZone{f.Name, zone})
	}
	if len(zones) < 300 {
		tb.Fatalf("only %d zones in the database", len(zones))
	}
	return zones
}

func fewZones(tb tester) []namedZone {
	tb.Helper()
	zones := make([]namedZone, len(oddZones))
	for i, name := range oddZones {
		zones[i] = namedZone{name, mustZone(tb, name)}
	}
	return zones
}
