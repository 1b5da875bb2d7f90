package traces

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Columns says where Convert finds the needed columns in a log of requests.
type Columns struct {
	// Time, Input and Output are the names of the columns with the arrival time of a request and its tokens. Without a
	// header they are column numbers, starting at "1". In a log with a JSON object in each line they are names of fields;
	// "usage.prompt_tokens" is the field prompt_tokens of usage, if no field has the whole name.
	Time, Input, Output string
	// NoHeader says that the first line is a request.
	NoHeader bool
	// Format is the format of the times: one of the Formats, or a layout of package time. If it is empty, the first line
	// determines it: RFC 3339, a date and a time, or a number. Numbers of up to 11 digits are seconds, of up to 14
	// milliseconds, of up to 17 microseconds, and others nanoseconds. Times since another epoch than 1970 are thus taken as
	// seconds. A layout must not have an abbreviation of a time zone (MST).
	Format string
}

// MaxSkips is the most rows that Summary.Skipped names.
const MaxSkips = 20

// A Summary describes the result of Convert.
type Summary struct {
	Rows    int           `json:"rows"`    // of the log, without its header
	Written int           `json:"written"` // rows that became requests
	Skipped []Skip        `json:"skipped"` // rows that did not, the first MaxSkips of them
	Reasons []Reason      `json:"reasons"` // the reasons of all skipped rows, with their numbers
	Span    time.Duration `json:"span"`    // from the first request to the last
}

// A Skip is a row that was skipped.
type Skip struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// A Reason is a reason why rows were skipped, and their number.
type Reason struct {
	Why  string `json:"why"`
	Rows int    `json:"rows"`
}

// skip records a skipped row.
func (s *Summary) skip(line int, why string) {
	if len(s.Skipped) < MaxSkips {
		s.Skipped = append(s.Skipped, Skip{line, why})
	}
	i := slices.IndexFunc(s.Reasons, func(r Reason) bool { return r.Why == why })
	if i < 0 {
		i = len(s.Reasons)
		s.Reasons = append(s.Reasons, Reason{Why: why})
	}
	s.Reasons[i].Rows++
}

// logged is a request with its line number.
type logged struct {
	sim.Request

	line int
}

// Convert reads a log of requests, a CSV file or one with a JSON object in each line, and writes it in the form
//
//	arrival_ms,input_tokens,output_tokens
//
// sorted by time, with the first request at 0. Requests with equal times keep the order of the log. Times keep their
// decimals, down to a nanosecond. Rows whose input or output tokens are 0 or not there, for example of failed
// requests, are not requests for a simulator: they are skipped, and the Summary reports them.
//
// All requests are held in memory, 48 bytes each, and written after all of them have been read.
func Convert(w io.Writer, r io.Reader, file string, c Columns) (Summary, error) {
	var s Summary
	places, t, err := c.open(r, file)
	if err != nil {
		return s, err
	}
	requests, err := t.log(places, c.Format, &s)
	if err != nil {
		return s, err
	}
	slices.SortStableFunc(requests, func(a, b logged) int { return cmp.Compare(a.At, b.At) })
	first, last := requests[0], requests[len(requests)-1]
	s.Span = last.At - first.At
	if s.Span >= longest-time.Second {
		return s, &RowError{File: file, Line: last.line, Rule: fmt.Sprintf("must be within 90 days of the first request, on line %d", first.line)}
	}
	s.Written = len(requests)
	return s, write(w, requests)
}

func write(w io.Writer, requests []logged) error {
	out := bufio.NewWriter(w)
	_, _ = fmt.Fprintf(out, "%s,%s,%s\n", arrivalColumn, inputColumn, outputColumn) // Flush returns the error
	var line []byte
	for _, r := range requests {
		line = millis(line[:0], r.At-requests[0].At)
		line = append(line, ',')
		line = strconv.AppendInt(line, int64(r.Input), 10)
		line = append(line, ',')
		line = strconv.AppendInt(line, int64(r.Output), 10)
		line = append(line, '\n')
		_, _ = out.Write(line)
	}
	return out.Flush()
}

// open begins to read a log and finds the columns of time, input and output.
func (c Columns) open(r io.Reader, file string) (places [3]int, t *table, err error) {
	if err := c.validate(); err != nil {
		return places, nil, err
	}
	if t, err = open(r, file); err != nil {
		return places, nil, err
	}
	if t.lines != nil {
		if c.NoHeader {
			return places, nil, &RowError{File: file, Rule: "must have names of fields for columns, as it has an object in each line"}
		}
		t.names, t.record = []string{c.Time, c.Input, c.Output}, make([]string, 3)
		return [3]int{0, 1, 2}, t, nil
	}
	if !c.NoHeader {
		if err := t.header(); err != nil {
			return places, nil, err
		}
	}
	for i, name := range []string{c.Time, c.Input, c.Output} {
		if c.NoHeader {
			n, _ := strconv.Atoi(name) // validate has checked it
			places[i] = n - 1
			continue
		}
		place, err := t.column(name)
		if err != nil {
			return places, nil, err
		}
		if place < 0 {
			return places, nil, t.unclear(fmt.Sprintf("must have the column %q", name))
		}
		places[i] = place
	}
	return places, t, nil
}

func (c Columns) validate() error {
	var e scaling.FieldErrors
	known := map[string]bool{}
	for _, f := range []struct{ field, name string }{{"time", c.Time}, {"input", c.Input}, {"output", c.Output}} {
		if c.NoHeader {
			n, err := strconv.Atoi(f.name)
			e.Check(err == nil && n >= 1 && n <= maxColumns, f.field, f.name, fmt.Sprintf("must be a place within 1 and %d where there is no header", maxColumns))
			if err == nil {
				f.name = strconv.Itoa(n) // 2 and 02 are one column
			}
		} else {
			e.Check(f.name != "" && f.name == strings.TrimSpace(f.name), f.field, f.name, "must be the name of a column")
		}
		e.Check(!known[f.name] || f.name == "", f.field, f.name, "must be a column of its own")
		known[f.name] = true
	}
	_, err := instantOf(c.Format)
	rule := fmt.Sprintf("must be one of %s, a layout of package time, or empty", strings.Join(Formats(), ", "))
	if errors.Is(err, errZone) {
		rule = "must have no abbreviation of a time zone, whose offset hangs on the machine: -0700 or Z07:00 tells it"
	}
	e.Check(err == nil, "format", c.Format, rule)
	return e.Err()
}

// count reads the tokens of a row of a log: 0 if there is nothing. Programs that take tokens for decimal numbers write 374.0.
func (t *table) count(column int) (int32, error) {
	if t.record[column] == "" {
		return 0, nil
	}
	if whole, rest, _ := strings.Cut(t.record[column], "."); rest != "" && strings.Trim(rest, "0") == "" {
		t.record[column] = whole
	}
	return t.tokens(column, 0, wholeRule+" that is not negative")
}

// log reads the requests of a log; their times are relative to that of the first row.
func (t *table) log(places [3]int, format string, s *Summary) ([]logged, error) {
	var requests []logged
	var first time.Time
	var read instant
	for err := range t.records() {
		if err != nil {
			return nil, err
		}
		if widest := max(places[0], places[1], places[2]); widest >= len(t.record) {
			return nil, t.missing(fmt.Sprintf("must have a column %d", widest+1))
		}
		if s.Rows == 0 {
			if format == "" {
				format = detect(t.record[places[0]])
			}
			if read, err = instantOf(format); err != nil || format == "" {
				return nil, t.wrong(places[0], detectRule)
			}
		}
		s.Rows++
		at, ok := read(t.record[places[0]])
		if !ok {
			return nil, t.wrong(places[0], fmt.Sprintf("must be a time of the form %s", format))
		}
		if s.Rows == 1 {
			first = at
		}
		r := logged{line: t.line}
		if r.At = at.Sub(first); r.At.Abs() > longest {
			return nil, t.wrong(places[0], "must be within 90 days of the first row")
		}
		if r.Input, err = t.count(places[1]); err != nil {
			return nil, err
		}
		if r.Output, err = t.count(places[2]); err != nil {
			return nil, err
		}
		switch {
		case r.Input == 0:
			s.skip(t.line, "no input tokens")
		case r.Output == 0:
			s.skip(t.line, "no output tokens")
		case len(requests) == MaxRequests:
			return nil, t.missing(fmt.Sprintf("must have at most %d requests", MaxRequests))
		default:
			requests = append(requests, r)
		}
	}
	if len(requests) == 0 {
		return nil, t.missing(fmt.Sprintf("must have at least one request with tokens; %d rows were skipped", s.Rows))
	}
	return requests, nil
}
