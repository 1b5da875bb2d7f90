package traces

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/sim"
)

// MaxRequests is the most requests, or windows, that Read and Convert accept, and MaxBlocks the most blocks of all their prompts.
const (
	MaxRequests = 10_000_000
	MaxBlocks   = 20_000_000
)

const longest = sim.MaxDuration

// The columns of the forms.
const (
	arrivalColumn   = "arrival_ms"
	inputColumn     = "input_tokens"
	outputColumn    = "output_tokens"
	timeColumn      = "t_s"
	requestsColumn  = "requests"
	rateColumn      = "rate_rps"
	meanInputColumn = "mean_" + inputColumn
	meanOutColumn   = "mean_" + outputColumn
)

// A form is a header, and the reader of the lines below it, which gets the indices of its columns.
type form struct {
	columns []string
	read    func(*table, []int) (sim.Workload, error)
}

func forms() []form {
	return []form{
		{[]string{arrivalColumn, inputColumn, outputColumn}, readRequests},
		{[]string{timeColumn, requestsColumn, inputColumn, outputColumn}, readSeconds},
		{[]string{timeColumn, rateColumn, meanInputColumn, meanOutColumn}, readSeries},
	}
}

// Read reads traffic from a file in one of the forms of the package comment; file is its name in errors.
//
// Requests become a sim.Trace, in the order of the file, which must be the order of time. The trace lasts to the end of the
// second of its last request. Times may have decimals, down to a nanosecond.
//
// Sums by second become a sim.Trace, too: the requests of a second are spread evenly over it and its tokens evenly over the
// requests, so that all sums stay the same. Seconds that are left out have no requests.
//
// Rates become a sim.Series. Windows must follow each other at a constant distance. Unknown means may be left out; the mean
// over all requests is then used. A rate of zero is read as zero: see FillGaps. The distribution of lengths is an
// assumption, see the package comment.
func Read(r io.Reader, file string) (sim.Workload, error) {
	t, err := open(r, file)
	if err != nil {
		return nil, err
	}
	if t.lines != nil {
		return readLines(t)
	}
	if err := t.header(); err != nil {
		return nil, err
	}
	var found *form
	var columns []int
	for _, f := range forms() {
		places, ok, err := t.columns(f.columns)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if found != nil {
			return nil, t.unclear("must have the columns of one form only: " + headers())
		}
		found, columns = &f, places
	}
	if found == nil {
		return nil, t.unclear("must have the columns of one of: " + headers())
	}
	return found.read(t, columns)
}

// columns returns the indices of columns, and whether all of them are present.
func (t *table) columns(names []string) ([]int, bool, error) {
	places := make([]int, 0, len(names))
	for _, name := range names {
		if !slices.Contains(t.names, name) {
			return nil, false, nil
		}
	}
	for _, name := range names {
		i, err := t.column(name)
		if err != nil {
			return nil, false, err
		}
		places = append(places, i)
	}
	return places, true, nil
}

func (t *table) unclear(rule string) error {
	return &RowError{File: t.file, Line: t.line, Column: "header", Value: strings.Join(t.names, ","), Rule: rule}
}

// headers returns the supported headers.
func headers() string {
	var all []string
	for _, f := range forms() {
		all = append(all, strings.Join(f.columns, ","))
	}
	return strings.Join(all, " | ")
}

// missing returns the error of a file that ends too early.
func (t *table) missing(rule string) error {
	return &RowError{File: t.file, Line: t.line, Rule: rule}
}

func readRequests(t *table, columns []int) (sim.Workload, error) {
	cached, err := t.column(cachedColumn)
	if err != nil {
		return nil, err
	}
	var prompts forest
	next, stop := iter.Pull(t.records())
	defer stop()
	return t.requests(func() (*sim.Request, error) {
		if err, more := next(); err != nil || !more {
			return nil, err
		}
		r, err := t.request(columns)
		if err != nil || cached < 0 {
			return r, err
		}
		known, err := t.tokens(cached, 0, wholeRule+" that is not negative")
		if err != nil {
			return nil, err
		}
		full := r.Input / BlockTokens
		ok := int64(known) <= (int64(r.Input)+BlockTokens-1)/BlockTokens
		if ok {
			r.Blocks, ok = prompts.blocks(int(full), int(min(known, full)))
		}
		if !ok {
			return nil, t.wrong(cached, "must be at most the blocks of this prompt and of one above it")
		}
		return r, nil
	})
}

// requests makes a trace of the results of next, up to nil.
func (t *table) requests(next func() (*sim.Request, error)) (sim.Workload, error) {
	var trace sim.Trace
	blocks := 0
	for {
		r, err := next()
		if err != nil {
			return nil, err
		}
		if r == nil {
			break
		}
		if len(trace.Requests) == MaxRequests {
			return nil, t.missing(fmt.Sprintf("must have at most %d requests", MaxRequests))
		}
		if n := len(trace.Requests); n > 0 && r.At < trace.Requests[n-1].At {
			return nil, t.wrong(t.time, fmt.Sprintf("must not be before the arrival above it, %s", millis(nil, trace.Requests[n-1].At)))
		}
		if blocks += len(r.Blocks); blocks > MaxBlocks {
			return nil, t.missing(fmt.Sprintf("must have at most %d blocks of prompts", MaxBlocks))
		}
		trace.Requests = append(trace.Requests, *r)
	}
	if len(trace.Requests) == 0 {
		return nil, t.missing("must have at least one request below it")
	}
	trace.Length = trace.Requests[len(trace.Requests)-1].At.Truncate(time.Second) + time.Second
	return trace, nil
}

// request reads the present record.
func (t *table) request(columns []int) (*sim.Request, error) {
	t.time = columns[0]
	r := &sim.Request{}
	var err error
	if r.At, err = t.span(columns[0], time.Millisecond); err != nil {
		return nil, err
	}
	if r.Input, err = t.tokens(columns[1], 1, tokenRule); err != nil {
		return nil, err
	}
	r.Output, err = t.tokens(columns[2], 1, tokenRule)
	return r, err
}

func readSeconds(t *table, columns []int) (sim.Workload, error) {
	var trace sim.Trace
	for err := range t.records() {
		if err != nil {
			return nil, err
		}
		second, err := t.second(columns, len(trace.Requests))
		if err != nil {
			return nil, err
		}
		if second.at < trace.Length {
			return nil, t.wrong(columns[0], "must be after the second above it")
		}
		trace.Requests = second.spread(trace.Requests)
		trace.Length = second.at + time.Second
	}
	if len(trace.Requests) == 0 {
		return nil, t.missing("must have at least one request above it")
	}
	return trace, nil
}

// A second is the number of requests that arrived in it, and the sums of their tokens.
type second struct {
	at                      time.Duration
	requests, input, output int64
}

// second reads the present record of a file that had before requests so far.
func (t *table) second(columns []int, before int) (s second, err error) {
	if s.at, err = t.span(columns[0], time.Second); err != nil {
		return s, err
	}
	if s.at%time.Second != 0 {
		return s, t.wrong(columns[0], wholeRule)
	}
	count, err := t.tokens(columns[1], 0, wholeRule+" that is not negative")
	if err != nil {
		return s, err
	}
	if s.requests = int64(count); s.requests > int64(MaxRequests-before) {
		return s, t.wrong(columns[1], fmt.Sprintf("must make at most %d requests with those above it", MaxRequests))
	}
	if s.input, err = t.sum(columns[2], s.requests); err != nil {
		return s, err
	}
	s.output, err = t.sum(columns[3], s.requests)
	return s, err
}

// sum reads the tokens of a number of requests from a column of the present record.
func (t *table) sum(column int, requests int64) (int64, error) {
	value, err := strconv.ParseUint(t.record[column], 10, 63)
	sum := int64(value)
	switch {
	case requests == 0 && (err != nil || sum != 0):
		return 0, t.wrong(column, "must be 0 without requests")
	case requests > 0 && (errors.Is(err, strconv.ErrRange) || (sum-1)/requests >= math.MaxInt32):
		return 0, t.wrong(column, manyRule+" for each request")
	case err != nil || sum < requests:
		return 0, t.wrong(column, wholeRule+" of at least 1 for each request")
	}
	return sum, nil
}

// spread appends the requests. The remainder of sums that cannot be divided goes to requests at even distances.
func (s second) spread(to []sim.Request) []sim.Request {
	share := func(sum, i int64) int32 {
		whole, rest := sum/s.requests, sum%s.requests
		return int32(whole + (i+1)*rest/s.requests - i*rest/s.requests)
	}
	for i := range s.requests {
		at := time.Duration(2*i+1) * time.Second / time.Duration(2*s.requests)
		to = append(to, sim.Request{At: s.at + at, Input: share(s.input, i), Output: share(s.output, i)})
	}
	return to
}
