package traces

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/internal/printable"
)

// A RowError says what is wrong with a file.
type RowError struct {
	File   string
	Line   int    // counted from 1; 0 if the error is about the whole file
	Column string // as named in the file; empty if the error is about the whole line
	Value  string // content of the column
	Rule   string // the broken rule
	Err    error  // the error of reading the file, if there was one
}

// Error returns `file:line: column "value": rule`.
func (e *RowError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	if e.Column != "" {
		s += fmt.Sprintf(": %s %q", e.Column, printable.Cut(e.Value, longestQuoted))
	}
	return s + ": " + e.Rule
}

// Unwrap returns the error of reading the file.
func (e *RowError) Unwrap() error { return e.Err }

const (
	longestQuoted = 80      // of a value in an error
	maxRecord     = 1 << 20 // bytes of a record
	maxColumns    = 1024
)

var errLongRecord = errors.New("must not have a record of more than 1048576 bytes")

// A table is a CSV file that is read record by record.
type table struct {
	file   string
	csv    *csv.Reader
	source *source
	lines  *bufio.Scanner // of a file with one JSON object per line instead of a table
	time   int            // column of the times of requests
	names  []string       // of the columns, as in the header; empty without one
	record []string       // the present one
	line   int            // of the present one
}

// open skips a byte order mark and decompresses r, if there is one and if it is compressed.
func open(r io.Reader, file string) (*table, error) {
	t := &table{file: file}
	buffered := bufio.NewReader(r)
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, t.broken(err)
		}
		buffered = bufio.NewReader(unzipped)
	}
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // they are in the buffer
	}
	first, _ := buffered.Peek(buffered.Size())
	first = bytes.TrimLeft(first, " \t\r\n")
	if bytes.HasPrefix(first, []byte("[")) {
		return nil, &RowError{File: file, Rule: "must have a JSON object in each line, and no list around them"}
	}
	t.source = &source{r: buffered}
	if bytes.HasPrefix(first, []byte("{")) {
		t.lines = bufio.NewScanner(t.source)
		t.lines.Buffer(nil, maxRecord)
	}
	t.csv = csv.NewReader(t.source)
	t.csv.ReuseRecord, t.csv.TrimLeadingSpace = true, true
	switch header, _, _ := bytes.Cut(first, []byte("\n")); {
	case bytes.ContainsRune(header, ','):
	case bytes.ContainsRune(header, ';'):
		t.csv.Comma = ';'
	case bytes.ContainsRune(header, '\t'):
		t.csv.Comma, t.csv.TrimLeadingSpace = '\t', false // which a column without content is
	}
	return t, nil
}

// source ends with an error at a record that is too long.
type source struct {
	r     io.Reader
	given int64
	start int64 // start of the present record
}

func (s *source) Read(p []byte) (int, error) {
	if s.given-s.start > maxRecord {
		return 0, errLongRecord
	}
	n, err := s.r.Read(p)
	s.given += int64(n)
	return n, err
}

// header reads the names of the columns.
func (t *table) header() error {
	err := t.next()
	if errors.Is(err, io.EOF) {
		return &RowError{File: t.file, Rule: "must not be empty"}
	}
	if err != nil {
		return err
	}
	t.names = slices.Clone(t.record)
	return nil
}

// next reads a record. At the end of the file it returns io.EOF.
func (t *table) next() error {
	if t.lines != nil {
		return t.fields()
	}
	record, err := t.csv.Read()
	for len(record) == 1 && strings.TrimSpace(record[0]) == "" && (err == nil || errors.Is(err, csv.ErrFieldCount)) { // a blank line
		if t.source.start = t.csv.InputOffset(); t.line == 0 {
			t.csv.FieldsPerRecord = 0 // the first line that is not blank says how many there are
		}
		record, err = t.csv.Read()
	}
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return t.broken(err)
	}
	t.record = record
	t.line, _ = t.csv.FieldPos(0)
	t.source.start = t.csv.InputOffset()
	if len(record) > maxColumns {
		return &RowError{File: t.file, Line: t.line, Rule: fmt.Sprintf("must have at most %d columns", maxColumns)}
	}
	for i, value := range record {
		record[i] = strings.TrimSpace(value)
	}
	return nil
}

// records reads one record after the other, up to the end of the file or an error.
func (t *table) records() iter.Seq[error] {
	return func(yield func(error) bool) {
		for err := t.next(); !errors.Is(err, io.EOF) && yield(err) && err == nil; {
			err = t.next()
		}
	}
}

// broken adds the position to an error of the reader: of the CSV syntax, of the compression, or of the underlying reader.
func (t *table) broken(err error) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return &RowError{File: t.file, Line: t.line + 1, Rule: err.Error(), Err: err}
	}
	rule := parse.Err.Error()
	if errors.Is(err, csv.ErrFieldCount) {
		rule = fmt.Sprintf("must have %d columns, as the first line does", t.csv.FieldsPerRecord)
	}
	return &RowError{File: t.file, Line: parse.Line, Rule: rule, Err: err}
}

// wrong returns the error of a column of the present record.
func (t *table) wrong(column int, rule string) error {
	name := fmt.Sprintf("column %d", column+1)
	if len(t.names) > 0 {
		name = t.names[column]
	}
	return &RowError{File: t.file, Line: t.line, Column: name, Value: t.record[column], Rule: rule}
}

// column returns the index of a column in the header, or -1.
func (t *table) column(name string) (int, error) {
	i := slices.Index(t.names, name)
	if i >= 0 && slices.Contains(t.names[i+1:], name) {
		return i, &RowError{File: t.file, Line: t.line, Rule: fmt.Sprintf("must have the column %s once", name)}
	}
	return i, nil
}
