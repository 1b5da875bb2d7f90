package cronscale

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// The rules.
const (
	ruleEvery      = "@every is refused"
	rulePrefix     = "TZ= and CRON_TZ= are refused: the policy has its zone"
	ruleNever      = "a schedule that never fires is refused"
	ruleZone       = "an unknown zone is refused, never taken for UTC"
	ruleLocal      = "the machine's zone is refused"
	ruleSame       = "start and end at the same times are refused, however they are written"
	ruleBadSpec    = "a schedule that does not parse is refused, never left out"
	ruleDescriptor = "descriptors are accepted, KEDA refuses them"
	ruleDefaultTZ  = "the zone has a default, KEDA requires it"
	ruleZeroCount  = "a count of 0 is a count, KEDA requires another"
	ruleShift      = "the zone shifts near: a time in a gap fires at its end, a time that comes twice fires once"
	ruleHang       = "robfig does not return, the answer here is that of the twin"
	ruleFiveYears  = "robfig gives up after five years"
	ruleLookAhead  = "starts and ends do not alternate: KEDA looks at the next ones, here the last ones decide"
	ruleCount      = "a count that is negative or beyond int32 is refused"
	ruleSeconds    = "seconds: a schedule has five fields"
	ruleNoField    = "the bounds are those of no field"
)

// robfigSpec returns what robfig makes of an expression: nil if it refuses it, or panics.
func robfigSpec(expr string) (parsed cron.Schedule) {
	defer func() {
		if recover() != nil {
			parsed = nil
		}
	}()
	parsed, err := cron.ParseStandard(expr)
	if err != nil {
		return nil
	}
	return parsed
}

// neverFires tries every day of a whole cycle of weekdays and leap years.
func neverFires(spec *cron.SpecSchedule) bool {
	if spec.Minute&(1<<60-1) == 0 || spec.Hour&(1<<24-1) == 0 {
		return true
	}
	midnight := *spec
	midnight.Minute, midnight.Hour = 1, 1
	for day := range 28 * 366 {
		if twinMatches(&midnight, time.Date(1972, 1, 1+day, 0, 0, 0, 0, time.UTC)) {
			return false
		}
	}
	return true
}

// refusal returns the rule by which an expression is refused here, or "" if it must be accepted.
func refusal(expr string) string {
	trimmed := strings.TrimSpace(expr)
	switch {
	case strings.HasPrefix(trimmed, "TZ="), strings.HasPrefix(trimmed, "CRON_TZ="):
		return rulePrefix
	case strings.HasPrefix(trimmed, "@every"):
		return ruleEvery
	}
	spec, ok := robfigSpec(expr).(*cron.SpecSchedule)
	switch {
	case !ok:
		return ruleBadSpec
	case neverFires(spec):
		return ruleNever
	}
	return ""
}

// zoneRefusal returns the rule by which a zone is refused here, or "".
func zoneRefusal(name string) string {
	if name == "Local" || name == "localtime" {
		return ruleLocal
	}
	if _, err := time.LoadLocation(name); err != nil {
		return ruleZone
	}
	return ""
}

// checkRefusal asserts that an error is there iff a rule is, and returns the rule.
func checkRefusal(rule string, err error) (string, error) {
	if rule == "" && err != nil {
		return "", fmt.Errorf("%w: refused: %w", errDiffers, err)
	}
	if rule != "" && err == nil {
		return "", fmt.Errorf("%w: accepted, although %s", errDiffers, rule)
	}
	return rule, nil
}

// rowTime reads a time in any of the layouts of the vectors, and the zone that it names, if it does.
func rowTime(text string) (time.Time, *time.Location, error) {
	var zone *time.Location
	if rest, ok := strings.CutPrefix(text, "TZ="); ok {
		name, value, _ := strings.Cut(rest, " ")
		loaded, err := time.LoadLocation(name)
		if err != nil {
			return time.Time{}, nil, err
		}
		zone, text = loaded, strings.TrimSpace(value)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05-0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			_, offset := t.Zone()
			if zone == nil {
				zone = time.FixedZone("", offset)
			}
			return t, zone, nil
		}
	}
	for _, layout := range []string{"Mon Jan 2 15:04 2006", "Mon Jan 2 15:04:05 2006"} {
		in := zone
		if in == nil {
			in = time.UTC
		}
		if t, err := time.ParseInLocation(layout, text, in); err == nil {
			return t, in, nil
		}
	}
	return time.Time{}, nil, fmt.Errorf("no time: %q", text)
}

// quiet is a tester for the twin outside of a test function.
type quiet struct{}

func (quiet) Helper()                   {}
func (quiet) Logf(string, ...any)       {}
func (quiet) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// twinLast returns the twin's last fire at or before t.
func twinLast(expr string, zone *time.Location, t time.Time) (twinFire, bool) {
	for _, days := range []int{3, 40, 400, 3300} {
		if fires := twinFires(quiet{}, expr, zone, t.AddDate(0, 0, -days), t); len(fires) > 0 {
			return fires[len(fires)-1], true
		}
	}
	return twinFire{}, false
}

// twinNext returns the twin's first fire after t.
func twinNext(expr string, zone *time.Location, t time.Time) (time.Time, bool) {
	for _, days := range []int{3, 40, 400, 3300} {
		if fires := twinFires(quiet{}, expr, zone, t, t.AddDate(0, 0, days)); len(fires) > 0 {
			return fires[0].at, true
		}
	}
	return time.Time{}, false
}
