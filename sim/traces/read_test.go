package traces_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

func compress(tb testing.TB, text string) string {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.String()
}

const (
	ms      = time.Millisecond
	request = "arrival_ms,input_tokens,output_tokens\n"
	second  = "t_s,requests,input_tokens,output_tokens\n"
	rates   = "t_s,rate_rps,mean_input_tokens,mean_output_tokens\n"
)

func TestReadRequests(t *testing.T) {
	two := []sim.Request{{At: 0, Input: 374, Output: 44}, {At: 4315 * ms, Input: 396, Output: 109}}
	for name, tt := range map[string]struct {
		text string
		want []sim.Request
	}{
		"plain":           {request + "0,374,44\n4315,396,109\n", two},
		"no last end":     {request + "0,374,44\n4315,396,109", two},
		"CRLF":            {strings.ReplaceAll(request+"0,374,44\n4315,396,109\n", "\n", "\r\n"), two},
		"mark":            {"\ufeff" + request + "0,374,44\n4315,396,109\n", two},
		"blank lines":     {request + "\n0,374,44\n\r\n4315,396,109\n\n\n", two},
		"lines of spaces": {"  \n\t\n" + request + " \r\n0,374,44\n \t \n4315,396,109\n  ", two},
		"spaces":          {" arrival_ms, input_tokens , output_tokens\n 0 , 374,44\n4315,\t396,109 \n", two},
		"quotes":          {"\"arrival_ms\",input_tokens,output_tokens\n\"0\",374,44\n4315,396,\"109\"\n", two},
		"spaced quotes":   {"arrival_ms, \"input_tokens\",output_tokens\n0,\t\"374\",44\n4315,396, \"109\"\n", two},
		"other order":     {"model,output_tokens,input_tokens,arrival_ms\na,44,374,0\nb,109,396,4315\n", two},
		"gzip":            {compress(t, request+"0,374,44\n4315,396,109\n"), two},
		"gzip and mark":   {compress(t, "\ufeff"+request+"0,374,44\n4315,396,109\n"), two},
		"two gzips":       {compress(t, request+"0,374,44\n") + compress(t, "4315,396,109\n"), two},
		"at once":         {request + "7,1,2\n7,3,4\n", []sim.Request{{At: 7 * ms, Input: 1, Output: 2}, {At: 7 * ms, Input: 3, Output: 4}}},
		"decimals":        {request + "0.5,1,2\n1.000001,3,4\n1.0000019999,5,6\n", []sim.Request{{At: ms / 2, Input: 1, Output: 2}, {At: ms + 1, Input: 3, Output: 4}, {At: ms + 1, Input: 5, Output: 6}}},
		"largest":         {request + "7775999999,2147483647,2147483647\n", []sim.Request{{At: 90*24*time.Hour - ms, Input: 1<<31 - 1, Output: 1<<31 - 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := traces.Read(iotest.OneByteReader(strings.NewReader(tt.text)), "trace.csv")
			require.NoError(t, err)
			require.NoError(t, w.Validate("workload"))
			require.Equal(t, tt.want, w.(sim.Trace).Requests)
		})
	}
}

func TestReadSeconds(t *testing.T) {
	w, err := traces.Read(strings.NewReader(second+"0,1,374,44\n1,0,0,0\n4,3,1366,181\n5,0,0,0\n"), "trace.csv")
	require.NoError(t, err)
	require.Equal(t, sim.Trace{Length: 6 * time.Second, Requests: []sim.Request{
		{At: 500 * ms, Input: 374, Output: 44},
		{At: 4*time.Second + time.Second/6, Input: 455, Output: 60},
		{At: 4*time.Second + time.Second/2, Input: 455, Output: 60},
		{At: 4*time.Second + time.Second*5/6, Input: 456, Output: 61},
	}}, w)
}

func TestReadSeries(t *testing.T) {
	w, err := traces.Read(strings.NewReader(`t_s,rate_rps,active_clients,rate_weighted_cv,mean_input_tokens,mean_output_tokens
1200,10,3,1.5,100,20
1500,0,0,0,,
1800,30,3,1.5,200,
2100,1e1,3,1.5,,60
`), "trace.csv")
	require.NoError(t, err)
	require.NoError(t, w.Validate("workload"))
	require.Equal(t, sim.Series{
		Step: 5 * time.Minute,
		Rates: []sim.Rate{
			{PerSecond: 10, Input: 100, Output: 20},
			{},
			{PerSecond: 30, Input: 200},
			{PerSecond: 10, Output: 60},
		},
		Input:  sim.Length{Mean: 175, Deviation: 175, Min: 1, Max: 131072, LogNormal: true},
		Output: sim.Length{Mean: 40, Deviation: 40, Min: 1, Max: 131072, LogNormal: true},
	}, w)
}

func TestReadErrors(t *testing.T) {
	const known = "arrival_ms,input_tokens,output_tokens | t_s,requests,input_tokens,output_tokens | t_s,rate_rps,mean_input_tokens,mean_output_tokens"
	long := strings.Repeat("x", 2<<20)
	for name, tt := range map[string]struct{ text, want string }{
		"empty":                  {"", "f.csv: must not be empty"},
		"blank":                  {"\n\n", "f.csv: must not be empty"},
		"header alone":           {request, "f.csv:1: must have at least one request below it"},
		"no header":              {"0,374,44\n", `f.csv:1: header "0,374,44": must have the columns of one of: ` + known},
		"other header":           {"TIMESTAMP,ContextTokens\n", `f.csv:1: header "TIMESTAMP,ContextTokens": must have the columns of one of: ` + known},
		"two forms":              {"arrival_ms,t_s,requests,input_tokens,output_tokens\n", `f.csv:1: header "arrival_ms,t_s,requests,input_tokens,output_tokens": must have the columns of one form only: ` + known},
		"column twice":           {"arrival_ms,input_tokens,output_tokens,input_tokens\n", "f.csv:1: must have the column input_tokens once"},
		"many columns":           {strings.Repeat("a,", 1024) + "\n", "f.csv:1: must have at most 1024 columns"},
		"long line":              {long, "f.csv:1: must not have a record of more than 1048576 bytes"},
		"long later":             {request + "0,1,1\n\"" + strings.Repeat("line\n", 1<<19), "f.csv:3: must not have a record of more than 1048576 bytes"},
		"few columns":            {request + "0,374,44\n4315,396\n", "f.csv:3: must have 3 columns, as the first line does"},
		"more columns":           {request + "0,374,44,1\n", "f.csv:2: must have 3 columns, as the first line does"},
		"quote":                  {request + "0,37\"4,44\n", `f.csv:2: bare " in non-quoted-field`},
		"open quote":             {request + "0,\"374,44\n", `f.csv:2: extraneous or missing " in quoted-field`},
		"word":                   {request + "0,374,44\n1,abc,44\n", `f.csv:3: input_tokens "abc": must be a whole number of at least 1`},
		"zero":                   {request + "0,374,0\n", `f.csv:2: output_tokens "0": must be a whole number of at least 1`},
		"none":                   {request + "0,,44\n", `f.csv:2: input_tokens "": must be a whole number of at least 1`},
		"negative":               {request + "0,-374,44\n", `f.csv:2: input_tokens "-374": must be a whole number of at least 1`},
		"decimal":                {request + "0,374.0,44\n", `f.csv:2: input_tokens "374.0": must be a whole number of at least 1`},
		"many tokens":            {request + "0,374,2147483648\n", `f.csv:2: output_tokens "2147483648": must be at most 2147483647`},
		"beyond int64":           {request + "0,374,99999999999999999999\n", `f.csv:2: output_tokens "99999999999999999999": must be at most 2147483647`},
		"long value":             {request + "0,374," + strings.Repeat("y", 100) + "\n", `f.csv:2: output_tokens "` + strings.Repeat("y", 80) + `...": must be a whole number of at least 1`},
		"negative time":          {request + "-1,374,44\n", `f.csv:2: arrival_ms "-1": must be a number that is not negative, in digits`},
		"NaN":                    {request + "NaN,374,44\n", `f.csv:2: arrival_ms "NaN": must be a number that is not negative, in digits`},
		"exponent":               {request + "1e3,374,44\n", `f.csv:2: arrival_ms "1e3": must be a number that is not negative, in digits`},
		"point alone":            {request + "1.,374,44\n", `f.csv:2: arrival_ms "1.": must be a number that is not negative, in digits`},
		"late":                   {request + "7776000000,374,44\n", `f.csv:2: arrival_ms "7776000000": must be before the end of 90 days, which begin at 0`},
		"unsorted":               {request + "5,1,1\n4.5,1,1\n", `f.csv:3: arrival_ms "4.5": must not be before the arrival above it, 5`},
		"after blanks":           {request + "\n\n5,1,1\n\n4,1,1\n", `f.csv:6: arrival_ms "4": must not be before the arrival above it, 5`},
		"gzip header":            {"\x1f\x8b", "f.csv:1: unexpected EOF"},
		"gzip cut":               {compress(t, request)[:30], "f.csv:1: unexpected EOF"},
		"UTF-16":                 {"\xff\xfea\x00,\x00", `f.csv:1: header "\xff\xfea\x00,\x00": must have the columns of one of: ` + known},
		"seconds alone":          {second + "0,0,0,0\n", "f.csv:2: must have at least one request above it"},
		"half a second":          {second + "0.5,1,1,1\n", `f.csv:2: t_s "0.5": must be a whole number`},
		"second twice":           {second + "1,1,1,1\n1,1,1,1\n", `f.csv:3: t_s "1": must be after the second above it`},
		"nanoseconds of a clock": {request + "1767571200000000000,374,44\n", `f.csv:2: arrival_ms "1767571200000000000": must be before the end of 90 days, which begin at 0`},
		"second late":            {second + "7776000,1,1,1\n", `f.csv:2: t_s "7776000": must be before the end of 90 days, which begin at 0`},
		"requests":               {second + "1,-1,1,1\n", `f.csv:2: requests "-1": must be a whole number that is not negative`},
		"many requests":          {second + "1,10,10,10\n2,9999991,9999991,9999991\n", `f.csv:3: requests "9999991": must make at most 10000000 requests with those above it`},
		"sum too small":          {second + "1,10,9,10\n", `f.csv:2: input_tokens "9": must be a whole number of at least 1 for each request`},
		"sum too large":          {second + "1,2,9,4294967295\n", `f.csv:2: output_tokens "4294967295": must be at most 2147483647 for each request`},
		"sum of none":            {second + "1,0,0,7\n", `f.csv:2: output_tokens "7": must be 0 without requests`},
		"rate":                   {rates + "0,-1,1,1\n", `f.csv:2: rate_rps "-1": must be a number within 0 and 1000000`},
		"rate NaN":               {rates + "0,NaN,1,1\n", `f.csv:2: rate_rps "NaN": must be a number within 0 and 1000000`},
		"rate none":              {rates + "0,,1,1\n", `f.csv:2: rate_rps "": must be a number within 0 and 1000000`},
		"mean":                   {rates + "0,1,0.5,1\n", `f.csv:2: mean_input_tokens "0.5": must be a number within 1 and 131072, or empty if it is not known`},
		"one window":             {rates + "0,1,1,1\n", "f.csv:2: must have at least two windows, which tell how long they are"},
		"window twice":           {rates + "0,1,1,1\n0,1,1,1\n", `f.csv:3: t_s "0": must be after the window above it`},
		"window left out":        {rates + "0,1,1,1\n60,1,1,1\n180,1,1,1\n", `f.csv:4: t_s "180": must be 1m0s after the window above it, as the second is after the first`},
		"windows late":           {rates + "0,1,1,1\n4000000,1,1,1\n", `f.csv:3: t_s "4000000": must be before the end of 90 days, which begin at 0`},
		"no rate":                {rates + "0,0,,\n60,0,,\n", "f.csv:3: must have requests and both means in at least one window"},
		"no mean":                {rates + "0,1,1,\n60,1,1,\n", "f.csv:3: must have requests and both means in at least one window"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := traces.Read(strings.NewReader(tt.text), "f.csv")
			require.EqualError(t, err, tt.want)
			var row *traces.RowError
			require.ErrorAs(t, err, &row)
			require.Equal(t, "f.csv", row.File)
			require.Nil(t, w)
		})
	}
}

// TestReadBroken passes on what the reader below fails with.
func TestReadBroken(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := traces.Read(io.MultiReader(strings.NewReader(request+"0,1,1\n"), iotest.ErrReader(broken)), "f.csv")
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "f.csv:3: the disk is gone")
	_, err = traces.Read(iotest.ErrReader(broken), "f.csv")
	require.EqualError(t, err, "f.csv:1: the disk is gone")
}

// TestRegressionAListOfObjects: of a JSON list the error was: bare " in non-quoted-field.
func TestRegressionAListOfObjects(t *testing.T) {
	const list = "\n [{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}]"
	const rule = "log.json: must have a JSON object in each line, and no list around them"
	_, err := traces.Read(strings.NewReader(list), "log.json")
	require.EqualError(t, err, rule)
	_, err = traces.Convert(new(strings.Builder), strings.NewReader(list), "log.json", log3())
	require.EqualError(t, err, rule)
}
