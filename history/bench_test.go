package history_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
)

// generated is a dump of so many pods and days, with all series that are asked for.
func generated(pods, days int) *history.Dump {
	const step = 15
	n := days * 86400 / step
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	d := &history.Dump{
		Version: history.Version, Model: "m", Engine: history.VLLM, Start: start, End: start.Add(time.Duration(n) * step * time.Second),
		Step: history.Seconds(step * time.Second),
	}
	for pod := range pods {
		name := fmt.Sprintf("replica-%d", pod)
		add := func(signal history.Signal, part history.Part, family string, value func(i int) float64) {
			s := history.Series{Signal: signal, Part: part, Family: family, Pod: name, Labels: map[string]string{"engine": "0"}, Values: make(history.Values, n+1)}
			for i := range s.Values {
				s.Values[i] = value(i)
			}
			d.Series = append(d.Series, s)
		}
		running := func(i int) float64 {
			return 20 + 15*math.Sin(2*math.Pi*float64(i)*step/86400) + 5*math.Sin(float64(i*(7+pod%5)))
		}
		prompts := func(i int) float64 { return 40 * (1 + math.Sin(float64(i)/211)) * running(i) }
		use := func(i int) float64 { return running(i) * (0.01 + 0.003*math.Sin(float64(i)/97)) }
		// The counters of a server with 14 ms, 40 us, 64 us and 39 ns.
		itl, tokens, prompted, finished := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
		for i := 1; i <= n; i++ {
			each := (0.014 + 4e-5*running(i) + 39e-9*use(i)*350_000) / (1 - 6.4e-5*prompts(i))
			itl[i] = itl[i-1] + running(i)*step
			tokens[i] = tokens[i-1] + running(i)*step/each
			prompted[i] = prompted[i-1] + prompts(i)*step
			finished[i] = math.Floor(tokens[i] / 300)
		}
		of := func(values []float64) func(int) float64 { return func(i int) float64 { return values[i] } }
		add(history.Waiting, history.Whole, "vllm:num_requests_waiting", func(int) float64 { return 0 })
		add(history.Running, history.Whole, "vllm:num_requests_running", func(i int) float64 { return math.Round(running(i)) })
		add(history.KVCacheUsage, history.Whole, "vllm:kv_cache_usage_perc", use)
		add(history.TPOT, history.Sum, "vllm:inter_token_latency_seconds_sum", of(itl))
		add(history.TPOT, history.Count, "vllm:inter_token_latency_seconds_count", of(tokens))
		add(history.Prompted, history.Whole, "vllm:prompt_tokens_total", of(prompted))
		add(history.Generated, history.Whole, "vllm:generation_tokens_total", of(tokens))
		add(history.PrefixCacheHits, history.Whole, "vllm:prefix_cache_hits_total", func(int) float64 { return 0 })
		add(history.PrefixCacheQueries, history.Whole, "vllm:prefix_cache_queries_total", of(prompted))
		for signal, family := range map[history.Signal]string{
			history.TTFT: "vllm:time_to_first_token_seconds", history.PromptTokens: "vllm:request_prompt_tokens",
			history.GenerationTokens: "vllm:request_generation_tokens", history.TPOTs: "vllm:request_time_per_output_token_seconds",
		} {
			if signal != history.TPOTs {
				add(signal, history.Sum, family+"_sum", func(i int) float64 { return 100 * finished[i] })
				add(signal, history.Count, family+"_count", of(finished))
			}
			for k := range 20 {
				s := history.Series{
					Signal: signal, Part: history.Bucket, Family: family + "_bucket", Pod: name, Every: 20, Values: make(history.Values, n/20+1),
					Labels: map[string]string{"engine": "0", "le": strconv.Itoa(1 << k)},
				}
				if k == 19 {
					s.Labels["le"] = "+Inf"
				}
				for i := range s.Values {
					s.Values[i] = math.Floor(finished[i*20] * float64(k) / 19)
				}
				d.Series = append(d.Series, s)
			}
		}
	}
	return d
}

// BenchmarkWeek reads a week of 20 pods at 15 s from a file, reduces it and calibrates a server of it: it must take less
// than 60 s on one core, and 1 GB.
func BenchmarkWeek(b *testing.B) {
	var file bytes.Buffer
	require.NoError(b, generated(20, 7).Write(&file))
	b.ReportMetric(float64(file.Len())/1e6, "MB")
	for b.Loop() {
		d, err := history.Read(bytes.NewReader(file.Bytes()))
		require.NoError(b, err)
		f, err := history.Reduce(d)
		require.NoError(b, err)
		points := f.Points()
		_, err = calibrate.Fit(points, calibrate.Options{})
		require.NoError(b, err)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys-uint64(file.Cap()))/1e6, "MB-sys")
		runtime.KeepAlive(f)
	}
}
