package traces

import (
	"errors"
	"math"
	"strings"
	"time"
)

// The formats of times that Convert knows.
const (
	FormatRFC3339  = "rfc3339"  // 2023-11-16T18:15:46.68Z, or with a space for the T
	FormatDateTime = "datetime" // 2023-11-16 18:15:46.68 in UTC, or with a T for the space
	FormatUnix     = "unix"     // seconds since 1970, whole or decimal
	FormatMillis   = "unix-ms"  // milliseconds since 1970, whole or decimal
	FormatMicros   = "unix-us"  // microseconds since 1970, whole or decimal
	FormatNanos    = "unix-ns"  // nanoseconds since 1970; decimals are dropped
)

// Formats returns the formats that Columns.Format can name.
func Formats() []string {
	return []string{FormatRFC3339, FormatDateTime, FormatUnix, FormatMillis, FormatMicros, FormatNanos}
}

const detectRule = "must be a time: RFC 3339, as 2006-01-02 15:04:05, or seconds, milliseconds, microseconds or nanoseconds since 1970"

// An instant parses a time.
type instant func(string) (time.Time, bool)

var (
	errFormat = errors.New("unknown format")
	errZone   = errors.New("abbreviation of a time zone")
)

// instantOf returns the parser of a format. An empty format is detected later.
func instantOf(format string) (instant, error) {
	layouts := []string{format}
	switch format {
	case "":
		return nil, nil
	case FormatUnix, FormatMillis, FormatMicros, FormatNanos:
		perSecond := map[string]int64{FormatUnix: 1, FormatMillis: 1e3, FormatMicros: 1e6, FormatNanos: 1e9}[format]
		return func(s string) (time.Time, bool) {
			whole, rest, ok := decimal(s) // the rest is in billionths of the unit
			at := time.Unix(whole/perSecond, whole%perSecond*(1e9/perSecond)+rest/perSecond)
			return at, ok && whole/perSecond < latestSeconds && whole < math.MaxInt64
		}, nil
	case FormatRFC3339:
		layouts = []string{time.RFC3339, time.DateTime + "Z07:00"}
	case FormatDateTime:
		layouts = []string{time.DateTime, "2006-01-02T15:04:05"}
	default:
		if !strings.Contains(format, "06") || !strings.Contains(format, "05") { // year and second
			return nil, errFormat
		}
		if strings.Contains(format, "MST") { // package time reads PST as UTC on a machine in another time zone
			return nil, errZone
		}
	}
	return func(s string) (time.Time, bool) {
		for _, layout := range layouts {
			if t, err := time.Parse(layout, s); err == nil {
				return t, true
			}
		}
		return time.Time{}, false
	}, nil
}

// latestSeconds is the end of the times that are numbers, in the year 5138. A number that is larger is in the next smaller unit,
// in which it is a time from 1973 on.
const latestSeconds = 100_000_000_000

// detect returns the format of a time, or an empty string. Of the units it is the largest in which the number is a time.
func detect(s string) string {
	for _, format := range Formats() {
		if read, err := instantOf(format); err == nil {
			if _, ok := read(s); ok {
				return format
			}
		}
	}
	return ""
}
