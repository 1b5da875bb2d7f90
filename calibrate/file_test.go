package calibrate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

func document(tb testing.TB) calibrate.Document {
	tb.Helper()
	r, err := calibrate.Fit(lawful(law(), 3, 2001, 1), calibrate.Options{Name: `a "name": x`, TokenBudget: 2048})
	require.NoError(tb, err)
	r.Startup, err = calibrate.Starts([]time.Duration{0, 90 * time.Second, 100 * time.Second, 240 * time.Second, 95 * time.Second})
	require.NoError(tb, err)
	return r.Document
}

// TestFileReadsWhatWasWritten: and nothing is lost, unknown parameters and ends that are not there included.
func TestFileReadsWhatWasWritten(t *testing.T) {
	want := document(t)
	want.Sequence.Unknown = "nothing tells: # it"
	require.True(t, math.IsInf(want.MaxSeqs.Upper, 1))
	got, err := calibrate.Read(want.Text(), "server.yaml")
	require.NoError(t, err, string(want.Text()))
	require.Equal(t, want, got)
	require.Equal(t, []string{"sequence: nothing tells: # it"}, got.Unknown())
	server, err := got.Server()
	require.NoError(t, err)
	require.Equal(t, sim.Server{
		Name: want.Name, Base: want.Base.Value, PrefillToken: want.PrefillToken.Value, Sequence: want.Sequence.Value, KVToken: want.KVToken.Value,
		MaxSeqs: 256, TokenBudget: 2048, KVTokens: 1e6,
	}, server)
}

const plain = `format: inferscale.server/v1
base: 0.014
prefillToken: 6.4e-5
sequence: {value: 4e-5, upper: 6e-5, source: roofline}
kvToken: {value: 39e-9, lower: 3e-8, source: benchmark}
maxSeqs: 256
tokenBudget: 8192
kvTokens: 350000
`

// TestFileByHand: a number alone is given; an end that is not there is none.
func TestFileByHand(t *testing.T) {
	d, err := calibrate.Read([]byte(plain), "x")
	require.NoError(t, err)
	require.Equal(t, calibrate.Estimate{Value: 0.014, Lower: 0.014, Upper: 0.014, Source: calibrate.Given}, d.Base)
	require.Equal(t, calibrate.Estimate{Value: 4e-5, Upper: 6e-5, Source: calibrate.Computed}, d.Sequence)
	require.True(t, math.IsInf(d.KVToken.Upper, 1))
	require.Nil(t, d.Startup)
}

// TestFileIsStrict: each error names file, line, field, value and rule.
func TestFileIsStrict(t *testing.T) {
	for _, x := range []struct{ was, is, want string }{
		{"base: 0.014", "base: fast", "x:2: base: fast: must be a number"},
		{"base: 0.014", "base: .nan", "x:2: base: .nan: must be a number"},
		{"base: 0.014", "base: -1", "base.value: -1: must be within 0"},
		{"base: 0.014", "base: [1]", "x:2: base: a list: must be a mapping"},
		{"base: 0.014\n", "", "base: not there: must be there"},
		{"kvTokens: 350000", "kvTokens: 350000.5", "kvTokens.value: 350000.5: must be whole"},
		{"base: 0.014", "name: \"a\\nb\"\nbase: 0.014", `name: "a\nb": must be of printable characters`},
		{"source: roofline", "source: roofline, unknown: \"\\e[2J\"", `sequence.unknown: "\x1b[2J": must be of printable characters`},
		{"maxSeqs: 256", "maxSeqs: 256\n? [1]\n: 3", "x:7: key: a list: must be text"},
		{"maxSeqs", "maxSeq", "maxSeq: 256: must be one of"},
		{"maxSeqs", "base", "x:6: base: base: must be there once"},
		{"upper: 6e-5", "upper: 1e-5", "sequence.upper: 1e-05: must not be below the value"},
		{"source: roofline", "source: guess", "x:4: sequence.source: guess: must be measured"},
		{"source: roofline", "why: guess, source: roofline", "x:4: sequence.why: guess: must be one of value"},
		{"server/v1", "server/v2", "format: inferscale.server/v2: must be inferscale.server/v1"},
		{"kvTokens: 350000\n", "kvTokens: 350000\nstartup: {starts: 0.5, p50: x}\n", "startup.starts: 0.5: must be whole"},
		{"kvTokens: 350000\n", "kvTokens: 350000\n---\na: b\n", "x: must have one document"},
		{plain, "", "x: is empty"},
		{plain, strings.Repeat("#", 70000), "length: 70000"},
	} {
		_, err := calibrate.Read([]byte(strings.Replace(plain, x.was, x.is, 1)), "x")
		require.ErrorContains(t, err, x.want)
	}
	_, err := calibrate.Read([]byte("format: inferscale.server/v1\n"), "x")
	var wrong *scaling.FieldError
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "kvTokens")
	require.ErrorContains(t, err, "base", "all at once")
}

// TestStarts: the simulator's starts have the median and the 90th percentile of what was seen.
func TestStarts(t *testing.T) {
	var took []time.Duration
	for i := range 99 {
		took = append(took, time.Duration(100+i)*time.Second)
	}
	s, err := calibrate.Starts(took)
	require.NoError(t, err)
	require.Equal(t, 149*time.Second, s.P50)
	require.Equal(t, 189*time.Second, s.P90)
	require.Equal(t, 198*time.Second, s.Max)
	require.Less(t, s.P50Lower, s.P50)
	require.Greater(t, s.P50Upper, s.P50)
	d := s.Sim().Load
	require.Equal(t, s.P50, d.Median)
	require.InEpsilon(t, 189.0/149, math.Exp(1.2815515655446004*d.Sigma), 1e-9)
	one, err := calibrate.Starts([]time.Duration{time.Minute})
	require.NoError(t, err)
	require.Equal(t, sim.Startup{Load: sim.Delay{Median: time.Minute, Max: time.Minute}}, one.Sim())
	_, err = calibrate.Starts([]time.Duration{0, -time.Second})
	require.ErrorIs(t, err, calibrate.ErrTooLittle)
}

// FuzzRead: nothing breaks the reader, and what it reads it reads again.
func FuzzRead(f *testing.F) {
	d := document(f)
	f.Add(d.Text())
	f.Add([]byte(plain))
	f.Add([]byte("format: &a inferscale.server/v1\nbase: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := calibrate.Read(data, "x")
		if err != nil {
			return
		}
		again, err := calibrate.Read(d.Text(), "x")
		require.NoError(t, err, string(d.Text()))
		require.Equal(t, d, again)
		_, _ = d.Server()
	})
}

// TestRegressWhatIsNotThereHasNoLine: it once was in line 0.
func TestRegressWhatIsNotThereHasNoLine(t *testing.T) {
	_, err := calibrate.Read([]byte("format: inferscale.server/v1\nbase: x\n"), "s.yaml")
	require.ErrorContains(t, err, "s.yaml:2: base: x: must be a number")
	require.ErrorContains(t, err, "s.yaml: kvTokens: not there: must be there")
	require.NotContains(t, err.Error(), ":0:")
}
