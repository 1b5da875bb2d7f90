package history_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
)

var nan = math.NaN()

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

const small = `{"version":1,"model":"m","engine":"VLLM","start":"2026-01-05T00:00:00Z","end":"2026-01-05T00:01:00Z","step":"15","series":[
{"signal":"Waiting","family":"vllm:num_requests_waiting","pod":"a","labels":{"engine":"0"},"values":[0, 1 ,null,3,4]},
{"signal":"Running","family":"vllm:num_requests_running","pod":"a","labels":{"engine":"0"},"values":[1,1,1,1,1]},
{"signal":"GenerationTokens","part":"count","family":"vllm:request_generation_tokens_count","pod":"a","labels":{"engine":"0"},"values":[7,8,9,1,1]},
{"signal":"GenerationTokens","part":"bucket","family":"vllm:request_generation_tokens_bucket","pod":"a","labels":{"le":"+Inf"},"every":2,"values":[7,9]}
]}`

func TestReadIsStrict(t *testing.T) {
	for _, row := range []struct{ old, new, want string }{
		{`"version":1`, `"version":2`, "version: 2: must be 1"},
		{`"engine":"VLLM"`, `"engine":"vllm"`, "engine"},
		{`"step":"15"`, `"step":"0"`, "step"},
		{`"step":"15"`, `"step":"7"`, "whole steps after start"},
		{`"step":"15"`, `"step":"15","token":"x"`, "must be a field of a dump"},
		{`"step":"15"`, `"step":"15","model":"x"`, "there once"},
		{`"end":"2026-01-05T00:01:00Z"`, `"end":"2026-01-04T00:01:00Z"`, "after start"},
		{`"end":"2026-01-05T00:01:00Z"`, `"end":"2026-01-05T00:00:45Z"`, "series[0].values"},
		{`"signal":"Waiting"`, `"signal":"Nothing"`, `series[0].signal`},
		{`"signal":"Waiting"`, `"signal":"Waiting","part":"sum"`, "series[0].part"},
		{`"signal":"Waiting"`, `"signal":"Waiting","instance":"x"`, "unknown field"},
		{`"family":"vllm:num_requests_waiting"`, `"family":"up"`, "series[0].family"},
		{`"pod":"a","labels":{"engine":"0"},"values":[0`, `"labels":{"engine":"0"},"values":[0`, "series[0].pod"},
		{`"labels":{"engine":"0"},"values":[0`, `"labels":{"job":"0"},"values":[0`, "series[0].labels.job"},
		{`"le":"+Inf"`, `"le":"many"`, "series[3].labels.le"},
		{`,null,`, `,"NaN",`, "values[2]"},
		{`,null,`, `,1e999,`, "values[2]"},
		{`,null,`, `,[],`, "values[2]"},
		{"\n]}", "\n]} {}", "behind it"},
		{"\n]}", "\n]", "unexpected EOF"},
		{`"every":2`, `"every":2,"every":1`, "series[3]: field: \"1\": must be there once"},
		{`"every":2`, `"every":2,"Family":"x"`, "must be there once"},
		{`"every":2`, `"every":-2`, "series[3].every"},
		{`"every":2`, `"every":2,"from":1`, "series[3].from: 1: must be a multiple of every, 2"},
		{`"labels":{"le":"+Inf"}`, `"labels":{"le":"1","le":"+Inf"}`, `series[3]: le: "": must be there once`},
		{`"model":"m"`, `"model":"a\nb"`, `model: "a\nb": must be of printable characters`},
		{`"pod":"a"`, `"pod":"\u009b2J"`, `series[0].pod: "\u009b2J": must be of printable characters`},
		{`"engine":"0"`, `"engine":"\u202e"`, `series[0].labels.engine: "\u202e": must be of printable characters`},
		{`"start":"2026-01-05T00:00:00Z"`, `"start":1767571200`, "start: time: \"1767571200\": must be as \"2026-01-31T00:00:00Z\""},
		{`"end":"2026-01-05T00:01:00Z"`, `"end":"-0001-01-05T00:01:00Z"`, "end: time: "},
		{`"step":"15"`, `"step":"15000000000"`, "step: seconds: \"15000000000\": must be a whole number, at least 1 and less than 2147483648"},
		{`{"version"`, "\ufeff{\"versions\"", "versions"},
		{`"model":"m"`, `"model":5`, "dump, at byte 22: model: must be text, and not: number"},
		{`"pod":"a"`, `"pod":{}`, "series[0]: pod: object: must be text"},
		{`"every":2`, `"every":1e9`, "series[3]: every: number 1e9: must be a whole number of at most"},
		{"series\":[", "series\":[5,", "series[0]: must be an object, and not: number"},
		{`"every":2`, `"every":2,"from":9`, "series[3].from"},
	} {
		require.Contains(t, small, row.old)
		_, err := history.Read(strings.NewReader(strings.Replace(small, row.old, row.new, 1)))
		require.ErrorContains(t, err, row.want, "%s", row.new)
	}
}

func TestReadPackedAndPlain(t *testing.T) {
	plain, err := history.Read(strings.NewReader(small))
	require.NoError(t, err)
	require.Equal(t, 15*time.Second, time.Duration(plain.Step))
	require.True(t, math.IsNaN(plain.Series[0].Values[2]))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	require.NoError(t, plain.Write(w))
	require.NoError(t, w.Close())
	again, err := history.Read(&packed)
	require.NoError(t, err)
	requireSame(t, plain, again)
	_, err = history.Read(bytes.NewReader([]byte{0x1f, 0x8b, 1}))
	require.ErrorContains(t, err, "gzip")
}

func requireSame(t *testing.T, a, b *history.Dump) {
	t.Helper()
	var x, y bytes.Buffer
	require.NoError(t, a.Write(&x))
	require.NoError(t, b.Write(&y))
	require.Equal(t, x.String(), y.String())
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(strings.ReplaceAll(small, "VLLM", "SGLang")))
	f.Add([]byte(strings.Replace(small, "\n]}", `,
{"signal":"PodCreated","family":"kube_pod_created","pod":"a","values":[1767571100,1767571100,1767571220,null,1767571250]},
{"signal":"PodReady","family":"kube_pod_status_ready","pod":"a","values":[1,0,0,1,1]}]}`, 1)))
	f.Add([]byte(`{"version":1,"engine":"TGI","start":"2026-01-05T00:00:00Z","end":"2026-01-05T00:01:00Z","step":"15","series":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := history.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		requireReadBack(t, d)
		if d.Steps() <= 10_000 {
			requireReduced(t, d)
		}
	})
}

// requireReadBack requires that a dump is read as it was written.
func requireReadBack(t *testing.T, d *history.Dump) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, d.Write(&file))
	again, err := history.Read(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	requireSame(t, d, again)
}

// requireReduced requires that a dump is refused, or is a fleet with arrivals of which none is negative.
func requireReduced(t *testing.T, d *history.Dump) {
	t.Helper()
	fleet, err := history.Reduce(d)
	if err != nil {
		return
	}
	for _, n := range fleet.Arrivals {
		require.True(t, math.IsNaN(n) || n >= 0)
	}
	fleet.Points()
	if w, _, err := fleet.Workload(); err == nil {
		_ = w.Validate("workload")
	}
}

// TestZeroDumpHasNoSteps: it can be asked before it is filled.
func TestZeroDumpHasNoSteps(t *testing.T) {
	require.Zero(t, (&history.Dump{}).Steps())
}

// TestASeriesThatIsTooLong: half a megabyte of packed spaces took gigabytes.
func TestASeriesThatIsTooLong(t *testing.T) {
	long.Skip(t)
	begin, end, _ := strings.Cut(small, "[0, 1")
	spaces := strings.NewReader(strings.Repeat(" ", 65<<20))
	_, err := history.Read(io.MultiReader(strings.NewReader(begin+"["), spaces, strings.NewReader("0, 1"+end)))
	require.ErrorContains(t, err, "series[0]: length: longer: must be at most 67108864 bytes")
	_, err = history.Read(strings.NewReader(small))
	require.NoError(t, err)
}
