package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim/traces"
)

// convertLog makes a trace of a log of requests.
func (o *options) convertLog(stdout, stderr io.Writer) error {
	names := strings.Split(o.columns, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if len(names) != 3 || slices.Contains(names, "") {
		return misuse("-columns %q: must be three, as time,prompt_tokens,completion_tokens", o.columns)
	}
	c := traces.Columns{Time: names[0], Input: names[1], Output: names[2]}
	_, err := strconv.Atoi(names[0])
	c.NoHeader = err == nil // places instead of names
	log, err := os.Open(o.convert)
	if err != nil {
		return misuse("-convert: %w", err)
	}
	defer log.Close() //nolint:errcheck // it was only read
	var trace bytes.Buffer
	s, err := traces.Convert(&trace, log, o.convert, c)
	if _, ok := errors.AsType[*scaling.FieldError](err); ok {
		return misuse("-columns: %w", err)
	}
	if err != nil {
		return misuse("-convert: %w", err)
	}
	if err := o.writeOutput(stdout, trace.Bytes()); err != nil {
		return err
	}
	out := stdout
	if o.output == standard {
		out = stderr
	}
	fmt.Fprintf(out, "%s: %d requests in %s, of %d rows\n", o.output, s.Written, s.Span.Round(time.Second), s.Rows)
	for _, r := range s.Reasons {
		fmt.Fprintf(out, "  %d rows skipped: %s\n", r.Rows, r.Why)
	}
	for _, skip := range s.Skipped {
		fmt.Fprintf(out, "    line %d: %s\n", skip.Line, skip.Why)
	}
	if o.output != standard {
		fmt.Fprintf(out, "\nNext: simulate -trace %s\n", o.output)
	}
	return nil
}
