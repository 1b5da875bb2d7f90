package forecast

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// MaxSamples is the most samples that Read takes: a sample every 15 s for 60 days.
const MaxSamples = 345_600

// A LineError says which line of a history is wrong. It wraps the *scaling.FieldError, which names the column.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

// Error returns "file:line: what is wrong".
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LineError) Unwrap() error { return e.Err }

// mostShown is how many bytes of a value an error shows.
const mostShown = 80

// header is the first line of a history.
const header = "time,demand"

// Read reads a history from CSV; file is its name in errors:
//
//	time,demand
//	2026-03-01T00:05:00+01:00,212.5
//	2026-03-01T00:10:00+01:00,208
//
// A time is RFC 3339 with its offset, with at most milliseconds, and is after the time of the line before. A demand is a
// number from 0 to 1e15 in the unit of the Source: the average since the line before. If two lines are more than 15 min
// apart, the time between them is unknown, see New. Spaces, quotes, comments and blank lines are not allowed. The first wrong line is
// reported as a *LineError.
func Read(r io.Reader, file string) ([]Sample, error) {
	lines := bufio.NewScanner(r)
	line := 0
	wrong := func(field string, value any, rule string) error {
		return &LineError{File: file, Line: max(line, 1), Err: &scaling.FieldError{Field: field, Value: value, Rule: rule}}
	}
	var all []Sample
	for lines.Scan() {
		line++
		text := strings.TrimSuffix(lines.Text(), "\r")
		if line == 1 {
			if text = strings.TrimPrefix(text, "\ufeff"); text != header { // spreadsheets begin a file so
				return nil, wrong("header", printable.Cut(text, mostShown), "must be "+header)
			}
			continue
		}
		at, demand, ok := strings.Cut(text, ",")
		if !ok || strings.Contains(demand, ",") {
			return nil, wrong("line", printable.Cut(text, mostShown), "must have two columns, "+header)
		}
		var x Sample
		var err error
		if x.At, err = time.Parse(time.RFC3339, at); err != nil {
			return nil, wrong("time", printable.Cut(at, mostShown), "must be a time as 2026-03-01T00:05:00+01:00")
		}
		if x.At.IsZero() {
			return nil, wrong("time", printable.Cut(at, mostShown), "must not be the zero time")
		}
		if x.At.Nanosecond()%1e6 != 0 {
			return nil, wrong("time", printable.Cut(at, mostShown), "must be of whole milliseconds")
		}
		if len(all) > 0 && !x.At.After(all[len(all)-1].At) {
			return nil, wrong("time", printable.Cut(at, mostShown), "must be after that of the line before")
		}
		if x.Demand, err = strconv.ParseFloat(demand, 64); err != nil || !decimal(demand) || !(x.Demand >= 0 && x.Demand <= mostDemand) {
			return nil, wrong("demand", printable.Cut(demand, mostShown), "must be a number from 0 to 1e15")
		}
		x.Demand = math.Abs(x.Demand) // of -0
		if len(all) == MaxSamples {
			return nil, wrong("line", line, fmt.Sprintf("must be at most %d below the header", MaxSamples))
		}
		all = append(all, x)
	}
	line++
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, wrong("line", line, fmt.Sprintf("must be shorter than %d bytes", bufio.MaxScanTokenSize))
	} else if err != nil {
		return nil, &LineError{File: file, Line: line, Err: err}
	}
	if line == 1 {
		return nil, wrong("header", "", "must be "+header)
	}
	return all, nil
}

// decimal reports whether a number is written in digits, not as Inf, 0x1p3 or 1_000.
func decimal(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789.eE+-", r) }) < 0
}
