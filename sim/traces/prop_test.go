package traces_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

// TestPropConvertReadsBack writes requests as a log in one of the formats, in any order, and gets them back in that of
// time.
func TestPropConvertReadsBack(t *testing.T) {
	start := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, time.Second}).Draw(t, "unit")
		logs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sim.Request {
			return sim.Request{
				At:     unit * time.Duration(rapid.Int64Range(0, 7_000_000).Draw(t, "at")),
				Input:  rapid.Int32Range(0, 5000).Draw(t, "input"),
				Output: rapid.Int32Range(0, 5000).Draw(t, "output"),
			}
		}), 1, 30).Draw(t, "log")
		format := rapid.SampledFrom(traces.Formats()).Draw(t, "format")
		var text strings.Builder
		text.WriteString("when,prompt,answer\n")
		var want []sim.Request
		for _, r := range logs {
			at := start.Add(r.At)
			var when string
			switch format {
			case traces.FormatRFC3339:
				when = at.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano)
			case traces.FormatDateTime:
				when = at.Format("2006-01-02 15:04:05.999999999")
			case traces.FormatUnix:
				when = fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond())
			case traces.FormatMillis:
				when = fmt.Sprintf("%d.%06d", at.UnixMilli(), at.Nanosecond()%1e6)
			case traces.FormatMicros:
				when = fmt.Sprintf("%d.%03d", at.UnixMicro(), at.Nanosecond()%1e3)
			case traces.FormatNanos:
				when = strconv.FormatInt(at.UnixNano(), 10)
			}
			fmt.Fprintf(&text, "%s,%d,%d\n", when, r.Input, r.Output)
			if r.Input > 0 && r.Output > 0 {
				want = append(want, r)
			}
		}
		slices.SortStableFunc(want, func(a, b sim.Request) int { return cmp.Compare(a.At, b.At) })
		named := format
		if rapid.Bool().Draw(t, "detect") {
			named = ""
		}

		var out bytes.Buffer
		s, err := traces.Convert(&out, strings.NewReader(text.String()), "log.csv", traces.Columns{Time: "when", Input: "prompt", Output: "answer", Format: named})
		if len(want) == 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		first := want[0].At
		for i := range want {
			want[i].At -= first
		}
		require.Equal(t, len(logs), s.Rows)
		require.Equal(t, len(want), s.Written)
		require.Equal(t, want[len(want)-1].At, s.Span)
		require.Equal(t, readRequests(t, out.String()), want)
	})
}

func readRequests(t require.TestingT, text string) []sim.Request {
	w, err := traces.Read(strings.NewReader(text), "trace.csv")
	require.NoError(t, err)
	require.NoError(t, w.Validate("workload"))
	return w.(sim.Trace).Requests
}

// TestPropSecondsKeepSums compares the requests of each second with the sums of its line.
func TestPropSecondsKeepSums(t *testing.T) {
	type sums struct{ requests, input, output int64 }
	rapid.Check(t, func(t *rapid.T) {
		want := map[int64]sums{}
		var text strings.Builder
		text.WriteString("t_s,requests,input_tokens,output_tokens\n")
		at := int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "lines") {
			at += rapid.Int64Range(1, 5).Draw(t, "gap")
			n := rapid.Int64Range(0, 50).Draw(t, "requests")
			s := sums{requests: n}
			if n > 0 {
				s.input = n + rapid.Int64Range(0, 100_000).Draw(t, "input")
				s.output = n + rapid.Int64Range(0, 1000).Draw(t, "output")
				want[at] = s
			}
			fmt.Fprintf(&text, "%d,%d,%d,%d\n", at, s.requests, s.input, s.output)
		}
		fmt.Fprintf(&text, "%d,1,1,1\n", at+1)
		want[at+1] = sums{1, 1, 1}

		got := map[int64]sums{}
		least, most := map[int64]int32{}, map[int64]int32{}
		for _, r := range readRequests(t, text.String()) {
			second := int64(r.At / time.Second)
			s := got[second]
			got[second] = sums{s.requests + 1, s.input + int64(r.Input), s.output + int64(r.Output)}
			if s.requests == 0 {
				least[second] = r.Input
			}
			least[second], most[second] = min(least[second], r.Input), max(most[second], r.Input)
		}
		require.Equal(t, want, got)
		for second := range got {
			require.LessOrEqual(t, most[second]-least[second], int32(1), "the tokens of a second are spread evenly")
		}
	})
}

// TestPropSeriesReadsBack writes rates and reads them.
func TestPropSeriesReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := time.Duration(rapid.Int64Range(1, 3600_000).Draw(t, "step")) * time.Millisecond
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sim.Rate {
			return sim.Rate{
				PerSecond: rapid.Float64Range(0.001, 1e6).Draw(t, "rate"),
				Input:     rapid.Float64Range(1, traces.MaxTokens).Draw(t, "input"),
				Output:    rapid.Float64Range(1, traces.MaxTokens).Draw(t, "output"),
			}
		}), 2, 30).Draw(t, "rates")
		var text strings.Builder
		text.WriteString("mean_output_tokens,rate_rps,t_s,mean_input_tokens\n")
		number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
		for i, r := range list {
			at := time.Duration(i) * step
			fmt.Fprintf(&text, "%s,%s,%d.%09d,%s\n", number(r.Output), number(r.PerSecond), at/time.Second, at%time.Second, number(r.Input))
		}
		w, err := traces.Read(strings.NewReader(text.String()), "rates.csv")
		require.NoError(t, err)
		require.NoError(t, w.Validate("workload"))
		s := w.(sim.Series)
		require.Equal(t, list, s.Rates)
		require.Equal(t, step, s.Step)

		// A window of the whole is the whole; two that meet are, one after the other.
		cut := time.Duration(rapid.IntRange(1, len(list)-1).Draw(t, "cut")) * step
		before, err := traces.Slice(s, 0, cut)
		require.NoError(t, err)
		after, err := traces.Slice(s, cut, s.Duration())
		require.NoError(t, err)
		require.Equal(t, list, slices.Concat(before.Rates, after.Rates))
	})
}

// TestBetweenEqualNeighboursNothingChanges: 5 times 4/7 and 5 times 3/7 add up to more than 5.
func TestBetweenEqualNeighboursNothingChanges(t *testing.T) {
	s := sim.Series{Step: time.Minute, Rates: make([]sim.Rate, 8)}
	s.Rates[0] = sim.Rate{PerSecond: 5, Input: 5, Output: 5}
	s.Rates[7] = s.Rates[0]
	filled, n := traces.FillGaps(s)
	require.Equal(t, 6, n)
	require.Equal(t, slices.Repeat(s.Rates[:1], 8), filled.Rates)
}

// TestPropFillGapsLeavesNone fills once, between the neighbours, and changes nothing else.
func TestPropFillGapsLeavesNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sim.Series{Step: time.Minute}
		var least, most float64
		for _, r := range rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0, 1, 2, 5, 100}), 1, 30).Draw(t, "rates") {
			s.Rates = append(s.Rates, sim.Rate{PerSecond: r, Input: r, Output: r})
			if r > 0 && (least == 0 || r < least) {
				least = r
			}
			most = max(most, r)
		}
		filled, n := traces.FillGaps(s)
		zeros := 0
		for i, r := range s.Rates {
			if r.PerSecond == 0 {
				zeros++
				require.GreaterOrEqual(t, filled.Rates[i].PerSecond, least)
				require.LessOrEqual(t, filled.Rates[i].PerSecond, most)
				continue
			}
			require.Equal(t, r, filled.Rates[i])
		}
		if most > 0 {
			require.Equal(t, zeros, n)
		} else {
			require.Equal(t, s.Rates, filled.Rates)
		}
	})
}
