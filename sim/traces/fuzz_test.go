package traces_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

// FuzzRead gives Read any bytes. What it accepts is a valid workload; what it refuses, it names.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"", "\ufeff", "\x1f\x8b", request, request + "0,374,44\n4315.5,396,109\n",
		second + "0,1,374,44\n4,3,1366,180\n", second + "0,9999999999,1,1\n",
		mooncake, `{"timestamp": 1e3, "input_length": "7", "output_length": 1, "hash_ids": [18446744073709551616]}`,
		"arrival_ms,input_tokens,output_tokens,cached_prefix_blocks_512\n0,1536,1,0\n1,1024,1,2\n",
		rates + "0,1.5,100,20\n600,0,,\n1200,1e3,100,20\n", rates + "0,NaN,100,20\n",
		"arrival_ms;input_tokens;output_tokens\n0;1;1\n", "\"\n\n\"", request + "\"0\n\",1,1",
	} {
		f.Add([]byte(s))
		f.Add([]byte(compress(f, s)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := traces.Read(bytes.NewReader(data), "f.csv")
		if err != nil {
			var row *traces.RowError
			require.ErrorAs(t, err, &row)
			require.Nil(t, w)
			return
		}
		require.Positive(t, w.Duration())
		if trace, ok := w.(sim.Trace); ok && len(trace.Requests) > 10_000 {
			return // a number is quickly written, and takes seconds to validate
		}
		require.NoError(t, w.Validate("workload"))
		if s, ok := w.(sim.Series); ok {
			_, filled := traces.FillGaps(s)
			require.LessOrEqual(t, filled, len(s.Rates))
			half, err := traces.Slice(s, 0, s.Step)
			require.NoError(t, err)
			require.NoError(t, half.Validate("workload"))
		}
	})
}

// FuzzConvert gives Convert any bytes. What it writes, Read reads, and converting that again changes nothing.
func FuzzConvert(f *testing.F) {
	for _, s := range []string{
		"", "t,in,out\n", "t,in,out\n1,2,3\n0,4,5\n", "t,in,out\n2026-01-15T08:00:00Z,1,2\n2026-01-15T07:59:59.5Z,0,2\n",
		"t,in,out\n2023-11-16 18:15:46.6805900,374,44\n", "t,in,out\n1700000000.25,1,1\n1700000000.2500000001,1,1\n", "1,2,3\n",
		"t,in,out\n0001-01-01 00:00:00,1,1\n9999-12-31 23:59:59,1,1\n", "t,in,out\n1700000000000,1,1\n",
		"t;in;out\n2024-05-10 00:00:00+00:00;1.0;1\n", "t\tin\tout\n1\t\t\n2\t1\t1\n", `{"t": 1, "in": "2", "out": 3.0}` + "\n" + `{"t": 2, "in": null}`,
	} {
		f.Add([]byte(s), "t", "in", "out", "", false)
		f.Add([]byte(s), "1", "2", "3", "unix", true)
		f.Add([]byte(s), "1", "2", "3", "2006-01-02T15:04:05Z07:00", true)
	}
	f.Fuzz(func(t *testing.T, data []byte, at, in, out, format string, noHeader bool) {
		var first, second bytes.Buffer
		s, err := traces.Convert(&first, bytes.NewReader(data), "log.csv", traces.Columns{Time: at, Input: in, Output: out, Format: format, NoHeader: noHeader})
		if err != nil {
			require.Empty(t, first.Bytes())
			return
		}
		w, err := traces.Read(bytes.NewReader(first.Bytes()), "trace.csv")
		require.NoError(t, err)
		require.NoError(t, w.Validate("workload"))
		requests := w.(sim.Trace).Requests
		require.Len(t, requests, s.Written)
		require.Zero(t, requests[0].At)
		require.Equal(t, s.Span, requests[len(requests)-1].At)
		skipped := 0
		for _, r := range s.Reasons {
			skipped += r.Rows
		}
		require.Equal(t, s.Rows, s.Written+skipped)
		require.Len(t, s.Skipped, min(skipped, traces.MaxSkips))

		_, err = traces.Convert(&second, bytes.NewReader(first.Bytes()), "trace.csv", traces.Columns{
			Time: "arrival_ms", Input: "input_tokens", Output: "output_tokens", Format: traces.FormatMillis,
		})
		require.NoError(t, err)
		require.Equal(t, first.String(), second.String())
	})
}
