package calibrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// bench runs a benchmark on one simulated replica.
func bench(tb testing.TB, server sim.Server, rate, input, output float64) calibrate.Run {
	tb.Helper()
	length := time.Duration(math.Max(1200, 400/rate)) * time.Second
	s := sim.Scenario{
		Name: "bench", Types: []sim.Type{{Server: server, Initial: 1}}, SLO: sim.SLO{TTFT: time.Second, TPOT: time.Second},
		Workload: sim.Stages{
			CV: 1, Stages: []sim.Stage{{Rate: rate, Duration: length}},
			Input: sim.Length{Mean: input, Min: 1, Max: 1 << 20}, Output: sim.Length{Mean: output, Min: 1, Max: 1 << 20},
		},
		Scrape: sim.Scrape{Interval: 5 * time.Minute}, Control: sim.Control{Interval: 5 * time.Minute}, Grace: time.Hour, Horizon: 2 * length,
	}
	var last sim.Page
	_, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return sim.Static(1), nil }, sim.Options{Seed: 3, Pages: func(_ time.Time, p []sim.Page) { last = p[0] }})
	require.NoError(tb, err)
	n := last.ITLs / (output - 1)
	return calibrate.Run{Rate: n / length.Seconds(), Input: input, Output: output, TTFT: last.TTFT.Sum / n, ITL: last.ITLSeconds / last.ITLs}
}

func table(tb testing.TB, server sim.Server) (runs []calibrate.Run) {
	tb.Helper()
	for _, shape := range [][3]float64{{200, 800, 8}, {4000, 200, 2}, {1000, 1000, 4}, {6000, 1500, 0.8}} {
		for _, load := range []float64{0.1, 0.4, 0.75} {
			runs = append(runs, bench(tb, server, shape[2]*load*0.014/server.Base, shape[0], shape[1]))
		}
	}
	return runs
}

// TestFitRuns: the parameters of simulated servers out of twelve runs of a benchmark.
func TestFitRuns(t *testing.T) {
	for _, server := range []sim.Server{sim.Qwen32B(), sim.Llama70BA100(), sim.Llama70BH100x4()} {
		r, err := calibrate.FitRuns(table(t, server), calibrate.Options{KVTokens: server.KVTokens})
		require.NoError(t, err)
		finds(t, &r, &server, 0.0001)
		require.Equal(t, calibrate.Benchmark, r.Base.Source)
		require.True(t, r.Base.Known() && r.PrefillToken.Known())
		require.True(t, r.From.IsZero())
	}
}

// inFlight runs a benchmark on one simulated replica with a constant number of requests in flight, and returns how many were preempted.
func inFlight(tb testing.TB, server sim.Server, n int32, input, output float64) (calibrate.Run, int64) {
	tb.Helper()
	server.MaxSeqs = n // all others wait in the queue, and each begins when another is done
	random := splitmix.Stream{State: 7}
	around := func(mean float64) int32 { return int32(mean * (0.8 + 0.4*random.Uniform())) }
	requests := make([]sim.Request, 30*n)
	tokens, answered := 0.0, 0.0
	for i := range requests {
		requests[i] = sim.Request{At: time.Duration(i), Input: around(input), Output: around(output)}
		tokens, answered = tokens+float64(requests[i].Input), answered+float64(requests[i].Output)
	}
	s := sim.Scenario{
		Name: "bench", Types: []sim.Type{{Server: server, Initial: 1}}, SLO: sim.SLO{TTFT: time.Second, TPOT: time.Second},
		Workload: sim.Trace{Requests: requests, Length: 4 * time.Hour},
		Scrape:   sim.Scrape{Interval: time.Second}, Control: sim.Control{Interval: 5 * time.Minute}, Horizon: 4 * time.Hour,
	}
	var last sim.Page
	var begin, end time.Time
	result, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return sim.Static(1), nil }, sim.Options{Seed: 3, Pages: func(at time.Time, p []sim.Page) {
		if begin.IsZero() {
			begin = at
		}
		if p[0].ITLs > last.ITLs {
			end = at
		}
		last = p[0]
	}})
	require.NoError(tb, err)
	require.EqualValues(tb, len(requests), result.Finished)
	count := float64(len(requests))
	return calibrate.Run{Rate: count / end.Sub(begin).Seconds(), Input: tokens / count, Output: answered / count, ITL: last.ITLSeconds / last.ITLs, Closed: true}, result.Preempted
}

// TestRegressionAPromptDoesNotDelayItsOwnSequence: with one request in flight no prompt delays a token, and all were counted as if
// they did. Of two shapes Base was 2.9 % too small, with an interval up to 1.9 %; of four, PrefillToken was 8 % too small and
// Sequence 24 % too large.
func TestRegressionAPromptDoesNotDelayItsOwnSequence(t *testing.T) {
	sweep := func(t *testing.T, server sim.Server, shapes [][2]float64, flights ...int32) calibrate.Result {
		t.Helper()
		var runs []calibrate.Run
		for _, shape := range shapes {
			for _, n := range flights {
				run, _ := inFlight(t, server, n, shape[0], shape[1])
				runs = append(runs, run)
			}
		}
		r, err := calibrate.FitRuns(runs, calibrate.Options{KVTokens: server.KVTokens})
		require.NoError(t, err)
		return r
	}
	for _, server := range []sim.Server{sim.Qwen32B(), sim.Llama70BH100x4()} {
		two := sweep(t, server, [][2]float64{{1000, 200}, {4000, 500}}, 1, 2, 4, 8)
		four := sweep(t, server, [][2]float64{{200, 800}, {4000, 200}, {1000, 1000}, {6000, 1500}}, 1, 2, 4, 8, 16)
		for _, r := range []calibrate.Result{two, four} {
			finds(t, &r, &server, 0.0001)
			require.InEpsilon(t, server.Base, r.Base.Value, 0.003)
		}
		require.InEpsilon(t, server.PrefillToken, four.PrefillToken.Value, 0.01)
		require.InEpsilon(t, server.Sequence, four.Sequence.Value, 0.05)
	}
	one := sweep(t, sim.Qwen32B(), [][2]float64{{500, 200}, {500, 1000}, {2000, 200}, {2000, 1000}, {4000, 200}, {4000, 1000}}, 1)
	require.False(t, one.PrefillToken.Known(), "no prompt delayed anything")
	require.GreaterOrEqual(t, one.PrefillToken.Upper, sim.Qwen32B().PrefillToken)
}

// TestReadRuns: the same run as vLLM, inference-perf and llm-d write it, and as a table.
func TestReadRuns(t *testing.T) {
	want := calibrate.Run{Rate: 2, Input: 1000, Output: 250, TTFT: 0.25, ITL: 0.02}
	for name, text := range map[string]string{
		"vllm.json":  `{"date": "20260101-000000", "num_prompts": 210, "completed": 200, "request_rate": "inf", "request_throughput": 2, "total_input_tokens": 200000, "total_output_tokens": 50000, "mean_ttft_ms": 250.0, "mean_tpot_ms": 21, "mean_itl_ms": 20.0, "itls": [[0.1]]}`,
		"stage.json": `{"load_summary": {"requested_rate": 3, "achieved_rate": 2}, "successes": {"count": 200, "latency": {"time_to_first_token": {"mean": 0.25}, "time_per_output_token": {"mean": 0.02}, "inter_token_latency": null}, "prompt_len": {"mean": 1000}, "output_len": {"mean": 250.0}}}`,
		"v2.yaml":    "version: '0.2'\nresults:\n  request_performance:\n    aggregate:\n      requests: {total: 200, input_length: {units: count, mean: 1000}, output_length: {units: count, mean: 250}}\n      latency:\n        time_to_first_token: {units: ms, mean: 250}\n        inter_token_latency: {units: ms/token, mean: 20}\n      throughput: {request_rate: {units: queries/s, mean: 2}}\n",
		"v1.yaml":    "version: '0.1'\nmetrics:\n  requests: {total: 200, input_length: {mean: 1000}, output_length: {mean: 250}}\n  latency: {time_to_first_token: {units: s, mean: 0.25}, time_per_output_token: {units: s/token, mean: 0.02}}\n  throughput: {requests_per_sec: 2}\n",
		"table.csv":  "input, output,rate,itl,ttft\r\n1000,250,2,0.02,0.25\r\n\r\n",
	} {
		runs, err := calibrate.ReadRuns([]byte(text), name, 1)
		require.NoError(t, err, name)
		require.Len(t, runs, 1)
		for _, x := range [][2]float64{{want.Rate, runs[0].Rate}, {want.Input, runs[0].Input}, {want.Output, runs[0].Output}, {want.TTFT, runs[0].TTFT}, {want.ITL, runs[0].ITL}} {
			require.InEpsilon(t, x[0], x[1], 1e-12, name)
		}
		runs, err = calibrate.ReadRuns([]byte(text), name, 4)
		require.NoError(t, err)
		require.InEpsilon(t, 0.5, runs[0].Rate, 1e-12)
	}
	for text, says := range map[string]string{
		"{}": "x.json: is none of", "": "is none of", "[1]": "x.json: is none of",
		`{"request_throughput": 1, "total_input_tokens": 5, "mean_itl_ms": null}`: "completed: not there: must be a number above 0",
		`{"metrics": {"latency": {}}}`:                                            "metrics.requests.input_length.mean: not there: must be",
	} {
		_, err := calibrate.ReadRuns([]byte(text), "x.json", 1)
		require.ErrorContains(t, err, says)
	}
	for text, says := range map[string]string{
		"rate,input\n": "output: \"rate,input\": must be a column", "rate,input,output,itl\n1,2\n": "line 2: has 2 columns",
		"rate,input,output,itl\n1,2,3,x\n":          "line 2: itl: \"x\": must be a number above 0",
		"rate,input,output,itl\n1,2,2000000000,3\n": "line 2: output: \"2000000000\": must be a number above 0, of at most 1000000000",
		"rate,input,output,itl, itl\n1,2,3,4,5\n":   "itl: \"rate,input,output,itl, itl\": must be a column of the header once",
	} {
		_, err := calibrate.ReadRuns([]byte(text), "x.csv", 1)
		require.ErrorContains(t, err, says)
	}
	_, err := calibrate.ReadRuns(nil, "x.csv", 0)
	require.ErrorContains(t, err, "replicas: 0")
}

// vllmRun is a run as vllm bench serve writes it, with more in front.
func vllmRun(more string, rate int) string {
	return fmt.Sprintf(`{%s"completed": 100, "total_input_tokens": 100000, "total_output_tokens": 20000, "request_throughput": %d, "mean_itl_ms": 20}`, more, rate)
}

// TestReadAppendedRuns: of a file that runs were appended to only the first was read.
func TestReadAppendedRuns(t *testing.T) {
	runs, err := calibrate.ReadRuns([]byte(vllmRun("", 1)+"\n"+vllmRun("", 2)+vllmRun("", 4)+"\n"), "a.json", 1)
	require.NoError(t, err)
	require.Len(t, runs, 3)
	for i, rate := range []float64{1, 2, 4} {
		require.Equal(t, rate, runs[i].Rate)
	}
	for text, says := range map[string]string{
		vllmRun("", 1) + vllmRun("", 2)[:99]:                  "a.json: behind run 1: unexpected EOF",
		vllmRun("", 1) + "\n---\n: : [":                       "a.json: behind run 1: invalid character",
		vllmRun("", 1) + "{}":                                 "a.json: run 2: is none of",
		"---\n" + vllmRun("", 1) + "\n---\n" + vllmRun("", 2): "a.json: must have one document",
		"completed: 1\n---\n: : [":                            "a.json: must have one document",
	} {
		_, err := calibrate.ReadRuns([]byte(text), "a.json", 1)
		require.ErrorContains(t, err, says, text)
	}
}

// TestReadRunsInJSON: what JSON has and YAML has not is read, as the texts of --save-detailed with an emoji in them.
func TestReadRunsInJSON(t *testing.T) {
	for _, more := range []string{`"generated_texts": ["Sure \ud83d\ude00"], `, "\"generated_texts\": [\"\x7f\"], ", `"` + strings.Repeat("k", 2000) + `": 1, `, `"mean_ttft_ms": NaN, `, `"itls": [NaN, -Infinity,Infinity], "generated_texts": ["NaN \" Infinity \\"], `} {
		runs, err := calibrate.ReadRuns([]byte(vllmRun(more, 1)), "a.json", 1)
		require.NoError(t, err)
		require.Len(t, runs, 1)
	}
}

// TestRegressionALargeFileWithNaNIsNotYAML: as YAML such a file took fifty times its size in memory.
func TestRegressionALargeFileWithNaNIsNotYAML(t *testing.T) {
	large := strings.Repeat("0.015, ", 1<<20) + "NaN"
	runs, err := calibrate.ReadRuns([]byte(vllmRun(`"itls": [`+large+`], `, 1)), "a.json", 1)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	_, err = calibrate.ReadRuns([]byte("itls: ["+large+"]"), "a.yaml", 1)
	require.ErrorContains(t, err, "a.yaml: length: 7340043: must be at most 4194304 bytes if it is not JSON")
}

// TestRegressionAReportOfSeveralReplicasIsNotOfOne: a report of llm-d tells how many replicas there were, which was not read. With two of
// them the load of both was one's, and PrefillToken, Sequence and KVToken were half of what they are, and known.
func TestRegressionAReportOfSeveralReplicasIsNotOfOne(t *testing.T) {
	server := sim.Qwen32B()
	runs := table(t, server)
	for i := range runs {
		runs[i].Rate *= 2 // of both
	}
	r, err := calibrate.FitRuns(runs, calibrate.Options{KVTokens: server.KVTokens})
	require.NoError(t, err)
	for _, x := range truths(&r, &server) {
		t.Logf("%-12s %+6.2f %% [%+.1f, %+.1f] %s", x.name, 100*off(x.got.Value, x.want), 100*off(x.got.Lower, x.want), 100*off(x.got.Upper, x.want), x.got.Unknown)
	}
	require.Less(t, r.PrefillToken.Value, 0.6*server.PrefillToken)
	const metrics = `"requests": {"input_length": {"mean": 1000}, "output_length": {"mean": 251}}, "latency": {"inter_token_latency": {"units": "ms/token", "mean": 20}}`
	first := func(types string) string {
		return `{"version": "0.1", "scenario": {"host": {"type": ` + types + `}}, "metrics": {` + metrics + `, "throughput": {"requests_per_sec": 2}}}`
	}
	second := func(stack string) string {
		return `{"version": "0.2", "scenario": {"stack": [` + stack + `]}, "results": {"request_performance": {"aggregate": {` + metrics + `, "throughput": {"request_rate": {"mean": 2}}}}}}`
	}
	const engine, router = `{"standardized": {"kind": "inference_engine", "replicas": %d}}`, `{"standardized": {"kind": "generic", "tool": "router"}}`
	for _, name := range []string{"a.json", "a.yaml"} {
		for _, x := range []struct {
			text     string
			replicas int
			says     string
		}{
			{first(`["replica"]`), 1, ""},
			{first(`["replica", "replica"]`), 2, ""},
			{first(`null`), 3, ""},
			{first(`["replica", "replica"]`), 1, name + ": scenario.host.type: 2: must be as many replicas as are said to have served the benchmark, 1"},
			{second(fmt.Sprintf(engine, 1) + "," + router), 1, ""},
			{second(router), 3, ""},
			{second(""), 3, ""},
			{second(fmt.Sprintf(engine, 2) + "," + router), 2, ""},
			{second(fmt.Sprintf(engine, 2) + "," + router), 1, name + ": scenario.stack.standardized.replicas: 2: must be as many replicas as are said to have served the benchmark, 1"},
			{second(fmt.Sprintf(engine, 1) + "," + fmt.Sprintf(engine, 3)), 1, "replicas: 4: must be as many"},
		} {
			text := x.text
			if name == "a.yaml" {
				text = "---\n" + text
			}
			runs, err := calibrate.ReadRuns([]byte(text), name, x.replicas)
			if x.says != "" {
				require.ErrorContains(t, err, x.says)
				continue
			}
			require.NoError(t, err, text)
			require.InEpsilon(t, 2/float64(x.replicas), runs[0].Rate, 1e-12)
		}
	}
}

// TestUnitsOfReports: a unit that is not known was taken for seconds.
func TestUnitsOfReports(t *testing.T) {
	const report = "metrics:\n  requests: {input_length: {mean: 1000}, output_length: {mean: 250}}\n  latency: {inter_token_latency: {units: UNIT, mean: 20}}\n  throughput: {requests_per_sec: 2}\n"
	for unit, want := range map[string]float64{"s": 20, "s/token": 20, "ms": 0.02, "ms/token": 0.02, `""`: 20} {
		runs, err := calibrate.ReadRuns([]byte(strings.Replace(report, "UNIT", unit, 1)), "a.yaml", 1)
		require.NoError(t, err)
		require.Equal(t, want, runs[0].ITL)
	}
	for _, unit := range []string{"us/token", "milliseconds", "ms/request"} {
		_, err := calibrate.ReadRuns([]byte(strings.Replace(report, "UNIT", unit, 1)), "a.yaml", 1)
		require.EqualError(t, err, fmt.Sprintf("a.yaml: metrics.latency.inter_token_latency.units: %q: must be s, ms, s/token or ms/token", unit))
	}
}

// TestRegressionTimesBetweenPiecesOfAnAnswerAreNotBetweenTokens: with speculative decoding, or a stream interval, a benchmark has the
// times between pieces of 2.5 tokens, say, and a server was made of them that took 2.5 times as long for a token as the real one.
func TestRegressionTimesBetweenPiecesOfAnAnswerAreNotBetweenTokens(t *testing.T) {
	const report = `"requests": {"input_length": {"mean": 1000}, "output_length": {"mean": 250}}, "latency": {"inter_token_latency": {"units": "ms/token", "mean": 30}, "time_per_output_token": {"units": "s/token", "mean": %g}}`
	for _, x := range []struct{ form, field string }{
		{`{"request_throughput": 2, "completed": 100, "total_input_tokens": 100000, "total_output_tokens": 25000, "mean_itl_ms": 0.03e3, "mean_tpot_ms": %ge3}`, "mean_itl_ms: 30"},
		{`{"metrics": {` + report + `, "throughput": {"requests_per_sec": 2}}}`, "metrics.latency.inter_token_latency.mean: 0.03"},
		{`{"results": {"request_performance": {"aggregate": {` + report + `, "throughput": {"request_rate": {"mean": 2}}}}}}`, "results.request_performance.aggregate.latency.inter_token_latency.mean: 0.03"},
	} {
		_, err := calibrate.ReadRuns([]byte(fmt.Sprintf(x.form, 0.012)), "a.json", 1)
		require.ErrorContains(t, err, "a.json: "+x.field+": must be between tokens: with ")
		for _, perToken := range []float64{0, 0.021, 0.03, 0.06} { // of short answers, that of requests can be more
			runs, err := calibrate.ReadRuns([]byte(fmt.Sprintf(x.form, perToken)), "a.json", 1)
			require.NoError(t, err)
			require.Equal(t, 0.03, runs[0].ITL)
		}
	}
}

// TestRunsRefused: too few runs, and numbers that are none, are named; runs that do not differ tell nothing apart.
func TestRunsRefused(t *testing.T) {
	run := calibrate.Run{Rate: 1, Input: 1000, Output: 200, ITL: 0.02}
	_, err := calibrate.FitRuns(slices.Repeat([]calibrate.Run{run}, 5), calibrate.Options{})
	require.ErrorIs(t, err, calibrate.ErrTooLittle)
	r, err := calibrate.FitRuns(slices.Repeat([]calibrate.Run{run}, 12), calibrate.Options{KVTokens: 10_000})
	require.NoError(t, err)
	require.False(t, r.PrefillToken.Known() || r.Sequence.Known() || r.KVToken.Known())
	run.ITL = math.NaN()
	_, err = calibrate.FitRuns([]calibrate.Run{run}, calibrate.Options{})
	require.ErrorContains(t, err, "runs[0].itl: NaN")
}

// TestRegressionNoRunHasMoreThanAReplicaCanHold: times in milliseconds gave a server with steps of 16 s, whose cache of 350,000 tokens had
// 13 million in it.
func TestRegressionNoRunHasMoreThanAReplicaCanHold(t *testing.T) {
	var runs []calibrate.Run
	for i := range 12 {
		runs = append(runs, calibrate.Run{Rate: 0.5 * float64(1+i), Input: float64(500 * (1 + i%4)), Output: float64(100 * (1 + i%3)), ITL: 0.014 + 0.001*float64(i)})
	}
	o := calibrate.Options{KVTokens: 350_000, MaxSeqs: 256, Resamples: 40}
	_, err := calibrate.FitRuns(runs, o)
	require.NoError(t, err)
	for i := range runs {
		runs[i].ITL *= 1000
	}
	_, err = calibrate.FitRuns(runs, o)
	require.EqualError(t, err, "runs[0].itl: 14: must be seconds, on one replica: with this rate 693 sequences ran at a time, and 256 can")
	_, err = calibrate.FitRuns(runs[1:], o)
	require.ErrorContains(t, err, "runs[0].itl: 15: must be seconds, on one replica: with this rate 2985 sequences ran")
	require.ErrorContains(t, err, "runs[0].itl: 15: must be seconds, on one replica: with this rate 3283500 tokens were in the cache, which has room for 350000")
}

// TestRegressionRunsWithACappedNumberInFlightAreClosed: only vLLM's request_rate of inf was. A stage of inference-perf with a
// concurrency, a run whose rate was above what its cap let through, and both in reports of llm-d were taken for requests at random:
// with one in flight, two sequences were counted in the batch.
func TestRegressionRunsWithACappedNumberInFlightAreClosed(t *testing.T) {
	// 16 in flight: 0.8 requests per second take 20 s each.
	const (
		stage   = `{"load_summary": {"requested_rate": 160, "achieved_rate": 0.8%s}, "successes": {"throughput": {"requests_per_sec": 0.8}, "latency": {"time_to_first_token": {"mean": 1}, "inter_token_latency": {"mean": 0.02}}, "prompt_len": {"mean": 1000}, "output_len": {"mean": 951}}}`
		metrics = `"requests": {"input_length": {"mean": 1000}, "output_length": {"mean": 951}}, "latency": {"time_to_first_token": {"units": "ms", "mean": 1000}, "inter_token_latency": {"units": "ms/token", "mean": 20}}`
		first   = `{"version": "0.1", "scenario": {"load": {"args": {%s}}}, "metrics": {` + metrics + `, "throughput": {"requests_per_sec": 0.8}}}`
		second  = `{"version": "0.2", "scenario": {"load": {"standardized": {%s}}}, "results": {"request_performance": {"aggregate": {` + metrics + `, "throughput": {"request_rate": {"mean": 0.8}}}}}}`
		vllm    = `{"completed": 100, "request_throughput": 0.8, "total_input_tokens": 100000, "total_output_tokens": 95100, "mean_ttft_ms": 1000, "mean_itl_ms": 20, %s}`
	)
	for _, x := range []struct {
		form, load string
		closed     bool
	}{
		{stage, `, "concurrency": 16`, true},
		{stage, `, "concurrency": null`, false},
		{stage, ``, false},
		{first, `"request_rate": "inf", "max_concurrency": 16`, true},
		{first, `"request_rate": 50, "max_concurrency": 16`, true},
		{first, `"request_rate": 0.8, "max_concurrency": 64`, false},
		{first, ``, false},
		{second, `"rate_qps": Infinity, "concurrency": 16`, true},
		{second, `"rate_qps": 160, "concurrency": 16`, true},
		{second, `"rate_qps": 0.8, "concurrency": Infinity`, false},
		{second, `"rate_qps": 0.8`, false},
		{vllm, `"request_rate": 50, "max_concurrency": 16`, true},
		{vllm, `"request_rate": "inf", "max_concurrency": null`, true},
		{vllm, `"request_rate": 0.8, "max_concurrency": 64`, false},
		{vllm, `"request_rate": 0.8, "max_concurrency": null`, false},
	} {
		for _, replicas := range []int{1, 4} {
			runs, err := calibrate.ReadRuns([]byte(fmt.Sprintf(x.form, x.load)), "a.json", replicas)
			require.NoError(t, err)
			require.Equal(t, x.closed, runs[0].Closed, "%s in %s", x.load, x.form)
		}
	}
	runs, err := calibrate.ReadRuns([]byte("scenario: {load: {standardized: {rate_qps: .inf, concurrency: 4}}}\n"+
		"results: {request_performance: {aggregate: {"+metrics+`, "throughput": {"request_rate": {"mean": 0.8}}}}}`), "a.yaml", 1)
	require.NoError(t, err)
	require.True(t, runs[0].Closed)
}

// FuzzReadRuns: nothing breaks the reader, and what it reads can be fitted or refused.
func FuzzReadRuns(f *testing.F) {
	text, err := json.Marshal(map[string]any{"completed": 2, "request_throughput": 1, "total_input_tokens": 10, "total_output_tokens": 20, "mean_itl_ms": 5})
	require.NoError(f, err)
	f.Add(text, false)
	f.Add([]byte("rate,input,output,itl\n1,2,3,0.1\n"), true)
	f.Fuzz(func(_ *testing.T, data []byte, csv bool) {
		name := "x.json"
		if csv {
			name = "x.csv"
		}
		runs, err := calibrate.ReadRuns(data, name, 1)
		if err != nil || len(runs) == 0 || len(runs) > 100 {
			return
		}
		for len(runs) < 6 {
			runs = append(runs, runs...)
		}
		if r, err := calibrate.FitRuns(runs, calibrate.Options{Resamples: 40, KVTokens: 10}); err == nil {
			_ = fmt.Sprint(r.Unknown())
		}
	})
}

// TestRegressABenchmarkIsToldByWhatItHolds: a number that is text, null or missing was once said to be 0, and a table whose name
// does not end in .csv was an error of YAML's. Of what was there twice the last counted, and what programs of Windows write had no
// columns and was none of these.
func TestRegressABenchmarkIsToldByWhatItHolds(t *testing.T) {
	_, err := calibrate.ReadRuns([]byte(`{"request_throughput": "1", "total_input_tokens": null, "completed": -3, "mean_tpot_ms": 0}`), "r.json", 1)
	require.EqualError(t, err, `r.json: completed: -3: must be a number above 0
request_throughput: "1": must be a number above 0
total_input_tokens: null: must be a number above 0
total_output_tokens: not there: must be a number above 0
mean_itl_ms or mean_tpot_ms: not there: must be a number above 0`)
	for text, says := range map[string]string{
		`{"completed": 1, "completed": 2}`:                         "r.json: completed: 2: must be there once",
		vllmRun("", 1) + `{"a": {"b": [{"c": 1, "c": {}}]}}`:       "r.json: behind run 1: a.b.c: a mapping: must be there once",
		`{"a": ` + strings.Repeat("[", 200):                        "r.json: a: deeper: must be at most 100 deep",
		`{"request_throughput": [1, 2], "total_input_tokens": {}}`: "request_throughput: a list: must be a number above 0\ntotal_input_tokens: a mapping: must",
		strings.Replace(vllmRun("", 7), `: 7,`, `: 1e999,`, 1):     "request_throughput: 1e999: must be a number above 0",
		"? {a: 1}\n: 2\n":    "r.json: must have no lists and mappings for keys",
		"a: 1\na: 2\n":       `line 2: mapping key "a" already defined at line 1`,
		vllmRun("", 1) + "5": "r.json: is none of",
		`{"request_throughput": 1, "total_input_tokens": 1, "completed": 1`: "r.json: yaml: line 1: did not find expected",
	} {
		_, err := calibrate.ReadRuns([]byte(text), "r.json", 1)
		require.ErrorContains(t, err, says)
	}
	for _, name := range []string{"a.json", "a.csv"} {
		text := map[string]string{"a.json": vllmRun("", 1), "a.csv": "rate,input,output,itl\n1,2,3,4\n"}[name]
		runs, err := calibrate.ReadRuns([]byte("\ufeff"+text), name, 1)
		require.NoError(t, err, name)
		require.Len(t, runs, 1)
	}
	for _, text := range []string{"rate,input,output,itl\n1,2,3,4\n", "[]", "5"} {
		_, err := calibrate.ReadRuns([]byte(text), "r", 1)
		require.ErrorContains(t, err, "r: is none of: vllm bench serve --save-result")
	}
}

// TestRegressionTheErrorOfATableIsShort: each wrong cell of a table of 256 MB was an error, of 500 bytes for each cell of two, and each
// column that was there again showed the whole header. Lines were counted from the header on.
func TestRegressionTheErrorOfATableIsShort(t *testing.T) {
	for text, says := range map[string]string{
		"rate,input,output,itl\n" + strings.Repeat("x,x,x,x\n", 10_000): "line 2: itl: \"x\": must be a number above 0",
		strings.Repeat("x,", 10_000):                                    "x: \"x,x,",
		"rate,input,output,itl\n1,2,3," + strings.Repeat("x", 100_000):  "line 2: itl: \"xxx",
		"\n \r\nrate,input,output,itl\n1,2,3,4\n\nx,2,3,4\n":            "line 6: rate: \"x\": must be a number above 0",
		"\n\nrate,input,output,itl\n1,2,3\n":                            "line 4: has 3 columns",
	} {
		_, err := calibrate.ReadRuns([]byte(text), "x.csv", 1)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
		require.ErrorContains(t, err, says)
	}
}

// TestRegressionRunsWithAFullCacheAreLeftOut: points of production with a cache over 90 % full were left out, and runs of a benchmark
// with one were not. What is preempted is computed again, which no run tells: KVToken was 2.8 times what it is, and known to be 1.9
// times that or more. Base was 5 % too small, PrefillToken 0.
func TestRegressionRunsWithAFullCacheAreLeftOut(t *testing.T) {
	server := sim.Qwen32B()
	var runs []calibrate.Run
	full := 0
	for _, shape := range [][2]float64{{4000, 1000}, {8000, 1000}, {1000, 1000}} {
		for _, n := range []int32{8, 32, 64, 128, 256} {
			run, preempted := inFlight(t, server, n, shape[0], shape[1])
			runs = append(runs, run)
			if preempted > 0 {
				full++
			}
		}
	}
	r, err := calibrate.FitRuns(runs, calibrate.Options{KVTokens: server.KVTokens})
	require.NoError(t, err)
	finds(t, &r, &server, 0.0001)
	require.Equal(t, len(runs), r.Points)
	require.Equal(t, len(runs)-full, r.Rows)
	require.Equal(t, []calibrate.Exclusion{{Reason: calibrate.NearlyFull, Points: full}}, r.Excluded)
	_, err = calibrate.FitRuns(runs[2:7], calibrate.Options{KVTokens: server.KVTokens})
	require.ErrorIs(t, err, calibrate.ErrTooLittle)
	_, err = calibrate.FitRuns(runs[2:8], calibrate.Options{KVTokens: server.KVTokens})
	require.ErrorContains(t, err, "left out: "+calibrate.NearlyFull)
}
