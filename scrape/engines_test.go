package scrape

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPresetsOnTheirPages(t *testing.T) {
	// What is absent from a page is a reason, never a 0.
	for _, row := range []struct {
		page   string
		engine Engine
		signal Signal
		want   float64
		reason Reason
	}{
		{"sglang-docs-real.txt", SGLang, Waiting, 2826, None},
		{"sglang-docs-real.txt", SGLang, Running, 162, None},
		{"sglang-docs-real.txt", SGLang, InFlight, 2988, None},
		{"sglang-docs-real.txt", SGLang, KVCacheUsage, 0.28, None},
		{"sglang-docs-real.txt", SGLang, PrefixCacheHitRate, 0.007507552643049313, None},
		{"sglang-docs-real.txt", SGLang, TTFT, 0, NoBaseline},
		{"sglang-docs-real.txt", SGLang, Preemptions, 0, NotFound},
		{"triton-trtllm-readme.txt", Triton, Waiting, 1, None},
		{"triton-trtllm-readme.txt", Triton, Running, 1, None},
		{"triton-trtllm-readme.txt", Triton, InFlight, 2, None},
		{"triton-trtllm-readme.txt", Triton, KVCacheUsage, 0.4875, None},
		{"triton-trtllm-readme.txt", Triton, TTFT, 0, NotFound},
		{"vllm-v0-kubeai.txt", VLLM, Waiting, 5, None},
		{"vllm-v0-kubeai.txt", VLLM, Running, 3, None},
		{"vllm-v0-kubeai.txt", VLLM, KVCacheUsage, 0.0026235242675994863, None},
		{"vllm-v0-kubeai.txt", VLLM, TPOT, 0, NoBaseline},
		{"vllm-v0-aibrix-docs-excerpt.txt", VLLM, Waiting, 0, None},
		{"vllm-v0-aibrix-docs-excerpt.txt", VLLM, KVCacheUsage, 0, None},
		{"vllm-v0-aibrix-docs-excerpt.txt", VLLM, PrefixCacheHitRate, 0, NotFound},
		{"small-vllm-gauges.txt", VLLM, Waiting, 8, None},
		{"constructed-vllm-v1-dp1.txt", VLLM, Waiting, 8, None},
		{"constructed-vllm-v1-dp1.txt", VLLM, Running, 85, None},
		{"constructed-vllm-v1-dp16-lora600.txt.gz", VLLM, Preemptions, 0, NoBaseline},
		{"llmd-sim-idle.txt", VLLM, Waiting, 0, None},
		{"llmd-sim-idle.txt", VLLM, KVCacheUsage, 0, None},
		{"llmd-sim-idle.txt", VLLM, TTFT, 0, NotFound},
		{"debian-node-exporter-1.5.txt", VLLM, Waiting, 0, NotFound},
	} {
		t.Run(row.page+" "+row.signal.String(), func(t *testing.T) {
			s, fail := readOne(t, string(loadPage(t, row.page)), signal(t, row.engine, row.signal))
			require.Equal(t, row.reason, reasonOf(fail), "%v", fail)
			if row.reason == None {
				require.InDelta(t, row.want, s.value, 1e-12)
			}
		})
	}
}

func TestSentinelOfVLLMV0IsMissing(t *testing.T) {
	// -1.0 means that the prefix cache is off. Counted as a number it would pull a fleet's average below zero.
	page := string(loadPage(t, "vllm-v0-aibrix-docs-excerpt.txt"))
	require.Contains(t, page, "vllm:gpu_prefix_cache_hit_rate{model_name=\"Qwen/Qwen2.5-Coder-1.5B-Instruct\"} -1.0\n")
	_, fail := readOne(t, page, Named("vllm:gpu_prefix_cache_hit_rate"))
	require.Equal(t, Negative, reasonOf(fail))
}

func TestPresetsWithoutARealPage(t *testing.T) {
	// The names and types of engines of which no captured page could be had.
	page := `# TYPE tgi_queue_size gauge
tgi_queue_size 7
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 3
# TYPE tgi_batch_current_max_tokens gauge
tgi_batch_current_max_tokens 4000
# TYPE tgi_batch_max_total_tokens gauge
tgi_batch_max_total_tokens 16000
# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting{model_name="m",engine_type="trtllm"} 5
# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{model_name="m",engine_type="trtllm"} 6
# TYPE trtllm_kv_cache_utilization gauge
trtllm_kv_cache_utilization{model_name="m",engine_type="trtllm"} 0.5
# TYPE dynamo_frontend_queued_requests gauge
dynamo_frontend_queued_requests{model="a"} 1
dynamo_frontend_queued_requests{model="b"} 2
# TYPE dynamo_frontend_inflight_requests gauge
dynamo_frontend_inflight_requests{model="a"} 10
dynamo_frontend_inflight_requests{model="b"} 20
# TYPE dynamo_component_kvstats_gpu_cache_usage_percent gauge
dynamo_component_kvstats_gpu_cache_usage_percent{dynamo_component="decode"} 0.75
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 4
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
`
	for _, row := range []struct {
		engine Engine
		signal Signal
		want   float64
	}{
		{TGI, Waiting, 7},
		{TGI, InFlight, 10},
		{TGI, KVCacheUsage, 0.25},
		{TRTLLM, InFlight, 11},
		{TRTLLM, KVCacheUsage, 0.5},
		{Dynamo, Waiting, 3},
		{Dynamo, InFlight, 30}, // not 33: the queued ones are in flight
		{Dynamo, KVCacheUsage, 0.75},
		{LlamaCPP, InFlight, 5},
	} {
		s, fail := readOne(t, page, signal(t, row.engine, row.signal))
		require.Nil(t, fail)
		require.InDelta(t, row.want, s.value, 1e-12, "%v %v", row.engine, row.signal)
	}
}

func TestAliasesPreferTheNewName(t *testing.T) {
	// vLLM 0.9 served both names at once; later ones only the new.
	both := "# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc 0.1\n# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc 0.2\n"
	old := both[:strings.Index(both, "# TYPE vllm:kv")]
	m := signal(t, VLLM, KVCacheUsage)
	s, fail := readOne(t, both, m)
	require.Nil(t, fail)
	require.InDelta(t, 0.2, s.value, 0)
	s, fail = readOne(t, old, m)
	require.Nil(t, fail)
	require.InDelta(t, 0.1, s.value, 0)
}

// TestWhereEnginesServe has the ports and paths that engines document.
func TestWhereEnginesServe(t *testing.T) {
	for engine, want := range map[Engine]string{
		VLLM: ":8000/metrics", SGLang: ":30000/metrics", TGI: ":80/metrics", TRTLLM: ":8000/prometheus/metrics", Triton: ":8002/metrics",
		Dynamo: ":8000/metrics", LlamaCPP: ":8080/metrics",
	} {
		require.Equal(t, "http://"+want, engine.Endpoint().String(), engine)
		require.Equal(t, "http://"+want, signal(t, engine, Waiting).Endpoint.String())
	}
	require.Equal(t, "http://:8081/metrics", signal(t, Dynamo, KVCacheUsage).Endpoint.String(), "the worker's")
}

func TestSignalsThatAnEngineLacks(t *testing.T) {
	_, err := LlamaCPP.Metric(KVCacheUsage)
	var missing *NoSignalError
	require.ErrorAs(t, err, &missing)
	require.EqualError(t, err, "LlamaCPP has no KVCacheUsage")
	_, err = VLLM.Quantile(Waiting, 0.9)
	require.ErrorAs(t, err, &missing)
	_, err = TGI.Quantile(TTFT, 0.9)
	require.ErrorAs(t, err, &missing)
	_, err = Engine(0).Metric(Waiting)
	require.ErrorAs(t, err, &missing)
	_, err = VLLM.Quantile(TTFT, 1)
	require.ErrorContains(t, err, "terms[0].quantile: 1: must be above 0 and below 1")
}

func TestEverySignalThatExistsIsValid(t *testing.T) {
	exist := 0
	for _, e := range Engines() {
		for _, s := range Signals() {
			m, err := e.Metric(s)
			if err != nil {
				require.True(t, errors.As(err, new(*NoSignalError)))
				continue
			}
			exist++
			require.NoError(t, m.Validate(), "%v %v", e, s)
			require.Equal(t, s.String(), m.Name)
			if s == TTFT || s == TPOT {
				q, err := e.Quantile(s, 0.95)
				require.NoError(t, err)
				require.Equal(t, Quantile, q.Terms[0].Read)
			}
			for _, term := range m.all() {
				for _, f := range term.Families {
					if len(term.Match) > 0 {
						continue
					}
					n := Named(f)
					require.NoError(t, n.Validate())
					require.Equal(t, term.Across, n.Terms[0].Across, f)
					require.Equal(t, term.Read, n.Terms[0].Read, f)
					require.Equal(t, []string{f}, n.Terms[0].Families)
				}
			}
		}
	}
	require.Equal(t, 43, exist) // 8 + 8 + 5 + 7 + 5 + 7 + 3
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]Series{
		"vllm:num_requests_waiting":           {Across: Sum},
		"vllm:num_requests_waiting_by_reason": {Across: Sum},
		"vllm:gpu_prefix_cache_hit_rate":      {Across: Average},
		"vllm:generation_tokens_total":        {Read: Rate, Across: Sum},
		"vllm:e2e_request_latency_seconds":    {Read: Mean},
		"sglang:num_decode_prealloc_queue_reqs": {
			Across: Sum, Within: Max, GroupBy: []string{"model_name", "dp_rank"}, Prefer: Matcher{Label: "priority"},
		},
		// The tokenizer manager has no ranks; with custom labels, such as tenants, each has a series.
		"sglang:prompt_tokens_total": {Read: Rate, Across: Sum},
		"nv_trt_llm_request_metrics": {}, // means nothing without a matcher
		"my_queue_depth":             {},
	} {
		want.Families = []string{name}
		require.Equal(t, Metric{Name: name, Terms: []Series{want}}, Named(name))
	}
}

func TestRateAndHitRateOfVLLM(t *testing.T) {
	page := func(hits, queries, preempted string) []byte {
		return []byte("# TYPE vllm:prefix_cache_queries_total counter\nvllm:prefix_cache_queries_total{engine=\"0\"} " + queries +
			"\n# TYPE vllm:prefix_cache_hits_total counter\nvllm:prefix_cache_hits_total{engine=\"0\"} " + hits +
			"\n# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total{engine=\"0\"} " + preempted + "\n")
	}
	tape := newPageTape(t, signal(t, VLLM, PrefixCacheHitRate), signal(t, VLLM, Preemptions))
	_, fails := tape.read(page("100", "1000", "3"), origin())
	require.Equal(t, NoBaseline, reasonOf(fails[0]))
	require.Equal(t, NoBaseline, reasonOf(fails[1]))
	shares, fails := tape.read(page("400", "1400", "9"), origin().Add(15*time.Second))
	require.Nil(t, fails[0])
	require.InDelta(t, 300.0/400, shares[0].value, 1e-12)
	require.Nil(t, fails[1])
	require.InDelta(t, 6.0/15, shares[1].value, 1e-12)
	// No query: no hit rate, which is not a hit rate of 0. No preemption is a rate of 0.
	require.Equal(t, [2]float64{0.75, 0.75}, [2]float64{shares[0].min, shares[0].max})
	shares, fails = tape.read(page("400", "1400", "9"), origin().Add(30*time.Second))
	require.Nil(t, fails[0])
	require.True(t, shares[0].idle())
	require.Nil(t, fails[1])
	require.Zero(t, shares[1].value)
}

// TestSGLangTenantsAddUp: --tokenizer-metrics-allowed-custom-labels makes a series for each tenant.
func TestSGLangTenantsAddUp(t *testing.T) {
	page := func(a, b int) []byte {
		return fmt.Appendf(nil, `# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m",tenant="a"} %d.0
sglang:prompt_tokens_total{model_name="m",tenant="b"} %d.0
`, a, b)
	}
	tape := newPageTape(t, Named("sglang:prompt_tokens_total"))
	tape.read(page(1000, 5000), origin())
	s, f := tape.read(page(2000, 5500), origin().Add(10*time.Second))
	require.Nil(t, f[0])
	require.InDelta(t, 150, s[0].value, 1e-9)
}
