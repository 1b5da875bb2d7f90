package cronscale

import (
	"errors"
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
)

// The errors of a schedule, besides those of the parser.
var (
	errEmpty  = errors.New("must not be empty")
	errPrefix = errors.New("must not name a zone: the field timeZone does")
	errEvery  = errors.New("@every has no fixed times: write the minutes, as in */15")
	errNever  = errors.New("never fires: no date has these fields")
)

// The bits of a full field, and the bit by which the parser marks a star.
const (
	starBit    = 1 << 63
	allMinutes = 1<<60 - 1
	allHours   = 1<<24 - 1
	allDays    = 1<<32 - 2 // days of the month, 1 to 31
	allMonths  = 1<<13 - 2 // 1 to 12
	allWeek    = 1<<7 - 1  // days of the week, Sunday is 0
)

// A schedule is one cron expression: a set of values for each of its fields, bit i for the value i. Two schedules that
// differ only in how they are written are equal.
type schedule struct {
	minute uint64
	hour   uint64
	dom    uint64
	month  uint64
	dow    uint64
	// either is set if the days of the month and of the week are both restricted: then a day has to match only one of them,
	// as in cron.
	either bool
}

// parse returns the schedule of a cron expression. It uses only the sets of the parser's result, not the parser's search for the
// next instant: that leaves out a time that a shift skips, sometimes for a year, fires twice in the repeated hour, and never
// returns for "0 12 30 12 *" in Pacific/Apia from 28 December 2011.
func parse(expr string) (schedule, error) {
	trimmed := strings.TrimSpace(expr)
	upper := strings.ToUpper(trimmed)
	switch {
	case trimmed == "":
		return schedule{}, errEmpty
	case strings.HasPrefix(upper, "TZ="), strings.HasPrefix(upper, "CRON_TZ="):
		// Not left to the parser, which panics on a zone without fields.
		return schedule{}, errPrefix
	case strings.HasPrefix(upper, "@EVERY"):
		return schedule{}, errEvery
	}
	parsed, err := cron.ParseStandard(expr)
	if err != nil {
		return schedule{}, fmt.Errorf("is not a cron expression of five fields: %w", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return schedule{}, errEvery
	}
	s := schedule{
		minute: spec.Minute & allMinutes,
		hour:   spec.Hour & allHours,
		dom:    spec.Dom & allDays,
		month:  spec.Month & allMonths,
		dow:    spec.Dow & allWeek,
		either: spec.Dom&starBit == 0 && spec.Dow&starBit == 0,
	}
	if s.either && (s.dom == allDays || s.dow == allWeek) {
		s.dom, s.dow, s.either = allDays, allWeek, false
	}
	if _, ok := s.first(0); !ok {
		return schedule{}, errNever
	}
	return s, nil
}

// within reports whether every minute of s is also one of t. It may report false although that is so, if the days of t include
// those of s in a less simple way.
func (s schedule) within(t schedule) bool {
	if s.minute&^t.minute != 0 || s.hour&^t.hour != 0 || s.month&^t.month != 0 {
		return false
	}
	if t.dom == allDays && t.dow == allWeek {
		return true
	}
	return s.either == t.either && s.dom&^t.dom == 0 && s.dow&^t.dow == 0
}
