package traces_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim/traces"
)

func log3() traces.Columns { return traces.Columns{Time: "t", Input: "in", Output: "out"} }

func TestConvert(t *testing.T) {
	place := traces.Columns{Time: "3", Input: "1", Output: "2", NoHeader: true}
	with := func(format string) traces.Columns {
		c := log3()
		c.Format = format
		return c
	}
	const head = "arrival_ms,input_tokens,output_tokens\n"
	for name, tt := range map[string]struct {
		columns    traces.Columns
		text, want string
	}{
		"RFC 3339":        {log3(), "t,in,out\n2026-01-15T08:00:00Z,1,2\n2026-01-15T09:00:00.25+01:00,3,4\n", "0,1,2\n250,3,4\n"},
		"date and time":   {log3(), "t,in,out\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n", "0,374,44\n4314.579,396,109\n"},
		"seconds":         {log3(), "t,in,out\n1700000000,1,2\n1700000001.5,3,4\n", "0,1,2\n1500,3,4\n"},
		"many decimals":   {log3(), "t,in,out\n1700000000.0000000004,1,2\n1700000000.1234567890123,3,4\n", "0,1,2\n123.456789,3,4\n"},
		"milliseconds":    {log3(), "t,in,out\n1700000000000,1,2\n1700000000001.000001,3,4\n", "0,1,2\n1.000001,3,4\n"},
		"microseconds":    {log3(), "t,in,out\n1700000000000000,1,2\n1700000000001000.0015,3,4\n", "0,1,2\n1.000001,3,4\n"},
		"nanoseconds":     {log3(), "t,in,out\n1700000000000000000,1,2\n1700000000001000001.5,3,4\n", "0,1,2\n1.000001,3,4\n"},
		"relative":        {with("unix-ms"), "t,in,out\n7,1,2\n4322,3,4\n", "0,1,2\n4315,3,4\n"},
		"named format":    {with("rfc3339"), "t,in,out\n2026-01-15T08:00:00Z,1,2\n", "0,1,2\n"},
		"layout":          {with("02/Jan/2006:15:04:05 -0700"), "t,in,out\n15/Jan/2026:08:00:01 +0100,1,2\n15/Jan/2026:07:00:00 +0000,3,4\n", "0,3,4\n1000,1,2\n"},
		"unsorted":        {log3(), "t,in,out\n30,1,1\n10,2,2\n20,3,3\n10,4,4\n", "0,2,2\n0,4,4\n10000,3,3\n20000,1,1\n"},
		"places":          {place, "1,2,1700000000\n3,4,1700000001\n", "0,1,2\n1000,3,4\n"},
		"others":          {log3(), "id,out,prompt,in,t\n1,2,\"line one\nline two\",1,0\n2,4,,3,1\n", "0,1,2\n1000,3,4\n"},
		"gzip":            {log3(), compress(t, "\ufefft,in,out\r\n10,1,2\r\n"), "0,1,2\n"},
		"no tokens":       {log3(), "t,in,out\n10,1,2\n11,,\n12,5,\n13,,7\n14,3,4\n", "0,1,2\n4000,3,4\n"}, // failed requests
		"first is no row": {log3(), "t,in,out\n10,0,2\n11,1,2\n", "0,1,2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s, err := traces.Convert(&out, strings.NewReader(tt.text), "log.csv", tt.columns)
			require.NoError(t, err)
			require.Equal(t, head+tt.want, out.String())
			require.Equal(t, strings.Count(tt.want, "\n"), s.Written)
		})
	}
}

func TestConvertSummary(t *testing.T) {
	var text strings.Builder
	text.WriteString("t,in,out\n")
	for i := range 50 {
		fmt.Fprintf(&text, "%d,%d,%d\n", 1000+i, i%2, i%5)
	}
	var out strings.Builder
	s, err := traces.Convert(&out, strings.NewReader(text.String()), "log.csv", log3())
	require.NoError(t, err)
	require.Equal(t, 50, s.Rows)
	require.Equal(t, 20, s.Written)
	require.Equal(t, []traces.Reason{{Why: "no input tokens", Rows: 25}, {Why: "no output tokens", Rows: 5}}, s.Reasons)
	require.Len(t, s.Skipped, traces.MaxSkips)
	require.Equal(t, traces.Skip{Line: 2, Why: "no input tokens"}, s.Skipped[0])
	require.Equal(t, traces.Skip{Line: 7, Why: "no output tokens"}, s.Skipped[3])
	require.Equal(t, 48*time.Second, s.Span)
}

func TestConvertErrors(t *testing.T) {
	with := func(change func(*traces.Columns)) traces.Columns {
		c := log3()
		change(&c)
		return c
	}
	const formats = "rfc3339, datetime, unix, unix-ms, unix-us, unix-ns"
	for name, tt := range map[string]struct {
		columns    traces.Columns
		text, want string
	}{
		"no columns": {
			traces.Columns{},
			"",
			`time: "": must be the name of a column` + "\n" + `input: "": must be the name of a column` + "\n" + `output: "": must be the name of a column`,
		},
		"column twice": {with(func(c *traces.Columns) { c.Output = "in" }), "", `output: "in": must be a column of its own`},
		"place twice":  {traces.Columns{Time: "1", Input: "2", Output: "02", NoHeader: true}, "1,1,1\n", `output: "2": must be a column of its own`},
		"places": {
			traces.Columns{Time: "1", Input: "zero", Output: "0", NoHeader: true},
			"",
			`input: "zero": must be a place within 1 and 1024 where there is no header` + "\n" + `output: "0": must be a place within 1 and 1024 where there is no header`,
		},
		"format":        {with(func(c *traces.Columns) { c.Format = "iso" }), "", `format: "iso": must be one of ` + formats + `, a layout of package time, or empty`},
		"zone":          {with(func(c *traces.Columns) { c.Format = "2006-01-02 15:04:05 MST" }), "", `format: "2006-01-02 15:04:05 MST": must have no abbreviation of a time zone, whose offset hangs on the machine: -0700 or Z07:00 tells it`},
		"no column":     {log3(), "time,in,out\n", `log.csv:1: header "time,in,out": must have the column "t"`},
		"header twice":  {log3(), "t,in,out,in\n", "log.csv:1: must have the column in once"},
		"empty":         {log3(), "", "log.csv: must not be empty"},
		"header alone":  {log3(), "t,in,out\n", "log.csv:1: must have at least one request with tokens; 0 rows were skipped"},
		"all skipped":   {log3(), "t,in,out\n1,0,1\n2,1,0\n", "log.csv:3: must have at least one request with tokens; 2 rows were skipped"},
		"no such place": {traces.Columns{Time: "1", Input: "2", Output: "4", NoHeader: true}, "1,1,1\n", "log.csv:1: must have a column 4"},
		"more columns":  {traces.Columns{Time: "1", Input: "2", Output: "3", NoHeader: true}, "1,1,1\n1,1,1,1\n", "log.csv:2: must have 3 columns, as the first line does"},
		"place":         {traces.Columns{Time: "1", Input: "2", Output: "3", NoHeader: true}, "1,1,1\n1,1,x\n", `log.csv:2: column 3 "x": must be a whole number that is not negative`},
		"no time":       {log3(), "t,in,out\nnoon,1,1\n", `log.csv:2: t "noon": must be a time: RFC 3339, as 2006-01-02 15:04:05, or seconds, milliseconds, microseconds or nanoseconds since 1970`},
		"many digits":   {log3(), "t,in,out\n17000000000000000000,1,1\n", `log.csv:2: t "17000000000000000000": must be a time: RFC 3339, as 2006-01-02 15:04:05, or seconds, milliseconds, microseconds or nanoseconds since 1970`},
		"other format":  {log3(), "t,in,out\n2026-01-15T08:00:00Z,1,1\n1700000000,1,1\n", `log.csv:3: t "1700000000": must be a time of the form rfc3339`},
		"negative time": {with(func(c *traces.Columns) { c.Format = "unix" }), "t,in,out\n-5,1,1\n", `log.csv:2: t "-5": must be a time of the form unix`},
		"tokens":        {log3(), "t,in,out\n1,1,-1\n", `log.csv:2: out "-1": must be a whole number that is not negative`},
		"many tokens":   {log3(), "t,in,out\n1,1,2147483648\n", `log.csv:2: out "2147483648": must be at most 2147483647`},
		"far":           {log3(), "t,in,out\n1700000000,1,1\n1700000000000,1,1\n", `log.csv:3: t "1700000000000": must be a time of the form unix`},
		"a year later":  {log3(), "t,in,out\n2025-01-01 00:00:00,1,1\n2026-01-01 00:00:00,1,1\n", `log.csv:3: t "2026-01-01 00:00:00": must be within 90 days of the first row`},
		"both ways":     {log3(), "t,in,out\n2025-04-01 00:00:00,1,1\n2025-02-01 00:00:00,1,1\n2025-05-31 00:00:00,1,1\n", "log.csv:4: must be within 90 days of the first request, on line 3"},
		"eras apart":    {log3(), "t,in,out\n0001-01-01 00:00:00,1,1\n9999-01-01 00:00:00,1,1\n", `log.csv:3: t "9999-01-01 00:00:00": must be within 90 days of the first row`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			_, err := traces.Convert(&out, strings.NewReader(tt.text), "log.csv", tt.columns)
			require.EqualError(t, err, tt.want)
			require.Empty(t, out.String(), "nothing is written of a log that is wrong")
		})
	}
}

type full struct{}

var errFull = errors.New("the disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestConvertFull returns what writing failed with.
func TestConvertFull(t *testing.T) {
	_, err := traces.Convert(full{}, strings.NewReader("t,in,out\n1,1,1\n"), "log.csv", log3())
	require.ErrorIs(t, err, errFull)
}

// TestRegressionUnitsOfTimes: of microseconds and nanoseconds the error said to name the format, which no command can do.
func TestRegressionUnitsOfTimes(t *testing.T) {
	for first, next := range map[string]string{
		"99999999999":         "99999999998",         // the last second, in 5138
		"100000000000":        "100000001000",        // the first millisecond, in 1973
		"99999999999999":      "99999999998999",      // the last millisecond
		"100000000000000":     "100000001000000",     // the first microsecond
		"99999999999999999":   "99999999998999999",   // the last microsecond
		"100000000000000000":  "100000001000000000",  // the first nanosecond
		"9223372036854775806": "9223372035854775806", // the last nanosecond, in 2262
	} {
		var out strings.Builder
		s, err := traces.Convert(&out, strings.NewReader("t,in,out\n"+first+",1,2\n"+next+",3,4\n"), "log.csv", log3())
		require.NoError(t, err, first)
		require.Equal(t, time.Second, s.Span, first)
	}
	for _, format := range traces.Formats()[2:] {
		c := log3()
		c.Format = format
		_, err := traces.Convert(new(strings.Builder), strings.NewReader("t,in,out\n9223372036854775807,1,2\n"), "log.csv", c)
		require.EqualError(t, err, `log.csv:2: t "9223372036854775807": must be a time of the form `+format)
	}
}
