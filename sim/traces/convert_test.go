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

// TestRegressionTimesWithASpaceAndAnOffset: the second public trace of Azure, of a week in 2024, has such times, and was refused.
func TestRegressionTimesWithASpaceAndAnOffset(t *testing.T) {
	for name, text := range map[string]string{
		"space and offset": "t,in,out\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 02:00:01.017335+02:00,2399,6\n2024-05-10T00:00:02Z,1,1\n",
		"T without offset": "t,in,out\n2024-05-10T00:00:00.009930,2162,5\n2024-05-10 00:00:01.017335,2399,6\n2024-05-10T00:00:02,1,1\n",
	} {
		var out strings.Builder
		_, err := traces.Convert(&out, strings.NewReader(text), "log.csv", log3())
		require.NoError(t, err, name)
		require.Equal(t, "arrival_ms,input_tokens,output_tokens\n0,2162,5\n1007.405,2399,6\n1990.07,1,1\n", out.String(), name)
	}
}

// TestRegressionTokensOfPandas: a table with a gap writes whole numbers with decimals, which were refused.
func TestRegressionTokensOfPandas(t *testing.T) {
	var out strings.Builder
	s, err := traces.Convert(&out, strings.NewReader("t,in,out\n10,374.0,44.0\n11,12.0,\n12,0.0,7.0\n13,7,8.000\n"), "log.csv", log3())
	require.NoError(t, err)
	require.Equal(t, "arrival_ms,input_tokens,output_tokens\n0,374,44\n3000,7,8\n", out.String())
	require.Equal(t, []traces.Reason{{Why: "no output tokens", Rows: 1}, {Why: "no input tokens", Rows: 1}}, s.Reasons)
	for value, rule := range map[string]string{
		"1.5": "must be a whole number that is not negative", "1.": "must be a whole number that is not negative",
	} {
		_, err := traces.Convert(&out, strings.NewReader("t,in,out\n1,"+value+",1\n"), "log.csv", log3())
		require.EqualError(t, err, fmt.Sprintf("log.csv:2: in %q: %s", value, rule))
	}
}

// TestRegressionOtherSeparators: the error for a table between semicolons or tabs said that its columns are not there, and showed them.
func TestRegressionOtherSeparators(t *testing.T) {
	for _, separator := range []string{";", "\t"} {
		var out strings.Builder
		text := strings.ReplaceAll("\n\"t\",in,out\n10,374,44\n11,,\n12,7,8", ",", separator)
		_, err := traces.Convert(&out, strings.NewReader(text), "log.csv", log3())
		require.NoError(t, err)
		require.Equal(t, "arrival_ms,input_tokens,output_tokens\n0,374,44\n2000,7,8\n", out.String())
		w, err := traces.Read(strings.NewReader(strings.ReplaceAll(out.String(), ",", separator)), "trace.csv")
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, w.Duration()-time.Second)
	}
}

// TestRegressionConvertJSON: of a log with a JSON object per line the error was: bare " in non-quoted-field.
func TestRegressionConvertJSON(t *testing.T) {
	c := traces.Columns{Time: "time", Input: "usage.prompt_tokens", Output: "usage.completion_tokens"}
	const head = "arrival_ms,input_tokens,output_tokens\n"
	for name, tt := range map[string]struct{ text, want string }{
		"nested": {
			`{"time": "2026-01-15T08:00:01Z", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}` + "\r\n\r\n" +
				`{"usage": {"completion_tokens": 2, "prompt_tokens": 1, "total_tokens": 3}, "time": "2026-01-15T08:00:00Z"}`, "0,1,2\n1000,3,4\n",
		},
		"names with dots": {`{"time": 1700000000.5, "usage.prompt_tokens": 1.0, "usage.completion_tokens": "2"}` + "\n", "0,1,2\n"},
		"failed requests": {
			`{"time": 1}` + "\n" + `{"time": 2, "usage": null}` + "\n" + `{"time": 3, "usage": {"prompt_tokens": 5, "completion_tokens": null}}` + "\n" +
				`{"time": 4, "usage": {"prompt_tokens": 1, "completion_tokens": 2}}`, "0,1,2\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			_, err := traces.Convert(&out, strings.NewReader(tt.text), "log.jsonl", c)
			require.NoError(t, err)
			require.Equal(t, head+tt.want, out.String())
		})
	}
	for text, want := range map[string]string{
		`{"time": "noon"}`: `log.jsonl:1: time "noon": must be a time: RFC 3339, as 2006-01-02 15:04:05, or seconds, milliseconds, microseconds or nanoseconds since 1970`,
		`{"at": 1}`:        `log.jsonl:1: time "": must be a time: RFC 3339, as 2006-01-02 15:04:05, or seconds, milliseconds, microseconds or nanoseconds since 1970`,
		`{"time": 1, "usage": {"prompt_tokens": [1]}}`: `log.jsonl:1: usage.prompt_tokens "[1]": must be a whole number that is not negative`,
		`{"time": 1` + "\n" + `}`:                      "log.jsonl:1: must be a JSON object",
		`{"time": 1, "usage": {}}` + "\n[]":            "log.jsonl:2: must be a JSON object",
		`{"time": 1}`:                                  "log.jsonl:1: must have at least one request with tokens; 1 rows were skipped",
	} {
		var out strings.Builder
		_, err := traces.Convert(&out, strings.NewReader(text), "log.jsonl", c)
		require.EqualError(t, err, want)
		require.Empty(t, out.String())
	}
	places := traces.Columns{Time: "1", Input: "2", Output: "3", NoHeader: true}
	_, err := traces.Convert(new(strings.Builder), strings.NewReader(`{"time": 1}`), "log.jsonl", places)
	require.EqualError(t, err, "log.jsonl: must have names of fields for columns, as it has an object in each line")
}
