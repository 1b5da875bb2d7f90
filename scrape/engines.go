package scrape

import (
	"fmt"
	"slices"

	"github.com/inferscale/inferscale/internal/enginemetrics"
	"github.com/inferscale/inferscale/internal/enum"
)

// An Engine is an inference server with known metrics: their names in each version, how several series are reduced, and
// where they are served.
type Engine uint8

// The engines.
const (
	VLLM     Engine = iota + 1 // port 8000, /metrics; V1 names first, then V0
	SGLang                     // port 30000, /metrics; only with --enable-metrics
	TGI                        // port 80, /metrics
	TRTLLM                     // trtllm-serve: port 8000, /prometheus/metrics. Its /metrics is something else: reading it consumes it
	Triton                     // Triton's TensorRT-LLM backend: port 8002, /metrics
	Dynamo                     // frontend port 8000, workers port 8081, /metrics
	LlamaCPP                   // llama.cpp server: port 8080, /metrics; only with --metrics
)

// Engines returns all engines.
func Engines() []Engine { return []Engine{VLLM, SGLang, TGI, TRTLLM, Triton, Dynamo, LlamaCPP} }

// String returns the name of the constant.
func (e Engine) String() string {
	return enum.Name(uint8(e), "Engine", "Engine(0)", "VLLM", "SGLang", "TGI", "TRTLLM", "Triton", "Dynamo", "LlamaCPP")
}

// A Signal is a number that every engine should have, under different names.
type Signal uint8

// The signals.
const (
	Waiting            Signal = iota + 1 // requests queued; summed over data-parallel engines
	Running                              // requests in the batch; summed over data-parallel engines
	InFlight                             // Waiting + Running
	KVCacheUsage                         // share of the KV cache in use, 0 to 1; averaged over data-parallel engines
	TTFT                                 // seconds to the first token, of what was observed between two scrapes
	TPOT                                 // seconds per output token after the first, of what was observed between two scrapes
	PrefixCacheHitRate                   // share of the prefix cache queries that hit, 0 to 1
	Preemptions                          // requests preempted from the batch, per second

	// The signals from here on are read as Counts: histograms of the fleet.

	PromptTokens     // prompt tokens of requests that finished
	GenerationTokens // answer tokens of requests that finished
	Prefilled        // requests that got a first token, and their prompt tokens that were computed, not taken from a cache
	TTFTs            // seconds to the first token
	TPOTs            // seconds per output token after the first, by request; by token if the engine has only that
)

// Signals returns the signals that are readings.
func Signals() []Signal {
	return []Signal{Waiting, Running, InFlight, KVCacheUsage, TTFT, TPOT, PrefixCacheHitRate, Preemptions}
}

// Histograms returns the signals that are read as Counts.
func Histograms() []Signal {
	return []Signal{PromptTokens, GenerationTokens, Prefilled, TTFTs, TPOTs}
}

// String returns the name of the constant.
func (s Signal) String() string {
	return enum.Name(uint8(s), "Signal",
		"Signal(0)", "Waiting", "Running", "InFlight", "KVCacheUsage", "TTFT", "TPOT", "PrefixCacheHitRate", "Preemptions",
		"PromptTokens", "GenerationTokens", "Prefilled", "TTFTs", "TPOTs",
	)
}

// A NoSignalError says that an engine does not expose a signal.
type NoSignalError struct {
	Engine Engine
	Signal Signal
}

// Error returns "engine has no signal".
func (e *NoSignalError) Error() string { return fmt.Sprintf("%v has no %v", e.Engine, e.Signal) }

// Endpoint returns where the engine serves its metrics by default.
func (e Engine) Endpoint() Endpoint {
	at := func(port int, path string) Endpoint { return Endpoint{Scheme: DefaultScheme, Port: port, Path: path} }
	switch e {
	case SGLang:
		return at(30000, DefaultPath)
	case TGI:
		return at(80, DefaultPath)
	case TRTLLM:
		return at(8000, "/prometheus/metrics")
	case Triton:
		return at(8002, DefaultPath)
	case LlamaCPP:
		return at(8080, DefaultPath)
	default:
		return at(8000, DefaultPath)
	}
}

// Metric returns the metric of a signal, with the signal's name, at the engine's default endpoint. TTFT and TPOT are means;
// see [Engine.Quantile]. For a signal that the engine lacks the error is a *NoSignalError.
func (e Engine) Metric(s Signal) (Metric, error) {
	m := Metric{Name: s.String(), Endpoint: e.Endpoint()}
	if s >= PromptTokens {
		return e.counted(m, s)
	}
	if s == InFlight && e != Dynamo {
		waiting, running := e.series(Waiting), e.series(Running)
		if len(waiting) == 0 || len(running) == 0 {
			return Metric{}, &NoSignalError{e, s}
		}
		m.Terms = append(waiting, running...)
		return m, nil
	}
	m.Terms = e.series(s)
	if len(m.Terms) == 0 {
		return Metric{}, &NoSignalError{e, s}
	}
	m.Over = e.over(s)
	if e == Dynamo && (s == KVCacheUsage || s == PrefixCacheHitRate) {
		m.Endpoint.Port = 8081 // the worker's
	}
	return m, nil
}

// counted returns the metric of a signal that is a histogram.
func (e Engine) counted(m Metric, s Signal) (Metric, error) {
	name := s.String()
	if s == Prefilled || s == TTFTs {
		name = enginemetrics.TTFT
	}
	found, ok := enginemetrics.Of(e.String(), name)
	if !ok || s == Prefilled && e != VLLM && e != SGLang || s == TTFTs && e == Triton {
		return Metric{}, &NoSignalError{e, s}
	}
	m.Terms = []Series{{Families: found.Families, Read: Counts}}
	if s == Prefilled {
		prompted, _ := enginemetrics.Of(e.String(), enginemetrics.Prompted)
		cached, _ := enginemetrics.Of(e.String(), enginemetrics.Cached)
		m.Sum, m.Less = []Series{rate(prompted.Families...)}, []Series{rate(cached.Families...)}
	}
	return m, nil
}

// Quantile returns TTFT or TPOT as a quantile of what was observed between two scrapes, 0 < q < 1. For another signal, or
// one that the engine lacks, the error is a *NoSignalError.
func (e Engine) Quantile(s Signal, q float64) (Metric, error) {
	m, err := e.Metric(s)
	if err != nil {
		return Metric{}, err
	}
	if m.Terms[0].Read != Mean {
		return Metric{}, &NoSignalError{e, s}
	}
	m.Terms[0].Read, m.Terms[0].Quantile = Quantile, q
	return m, m.Validate()
}

func gauge(across Aggregate, families ...string) Series {
	return Series{Families: families, Across: across}
}

func rate(families ...string) Series { return Series{Families: families, Read: Rate, Across: Sum} }

func mean(families ...string) Series { return Series{Families: families, Read: Mean} }

// series returns the terms of a signal, or nothing.
func (e Engine) series(s Signal) []Series {
	name := s.String()
	if s == PrefixCacheHitRate && e == VLLM {
		name = enginemetrics.PrefixCacheHits
	}
	return e.entry(name)
}

// over returns the divisors of a signal, or nothing.
func (e Engine) over(s Signal) []Series {
	name := ""
	switch {
	case e == VLLM && s == PrefixCacheHitRate:
		name = enginemetrics.PrefixCacheQueries
	case s == KVCacheUsage:
		name = enginemetrics.KVCapacity
	}
	return e.entry(name)
}

// entry returns the Series of an entry of the table of names, or nothing.
func (e Engine) entry(name string) []Series {
	found, ok := enginemetrics.Of(e.String(), name)
	if !ok {
		return nil
	}
	s := Series{Families: found.Families, Scale: found.Scale, GroupBy: found.GroupBy}
	if found.Label != "" {
		s.Match = []Matcher{{Label: found.Label, Value: found.Value}}
	}
	if found.Prefer != "" {
		s.Prefer = Matcher{Label: found.Prefer}
	}
	if found.Max {
		s.Within = Max
	}
	switch enginemetrics.KindOf(name) {
	case enginemetrics.Histogram:
		s.Read = Mean
		if !found.Max {
			s.GroupBy = nil
		}
		return []Series{s}
	case enginemetrics.Counter:
		s.Read = Rate
	case enginemetrics.Gauge:
	}
	if s.Across = Sum; found.Mean {
		s.Across = Average
	}
	return []Series{s}
}

// Named returns a metric that reads one family, with the family's name, at the default endpoint.
//
// A family of a preset, or another one with a known reduction, gets that reduction: queues are summed over data-parallel
// engines, utilisations averaged, counters read as a Rate, histograms as a Mean. Aliases are not tried: the family is read
// under this name only. Any other family is unknown: a single series is read as a Value, and several give the error
// "ambiguous: N series", since a wrong guess would not be noticed.
func Named(name string) Metric {
	m := Metric{Name: name}
	for _, e := range Engines() {
		for _, signal := range Signals() {
			for _, s := range append(e.series(signal), e.over(signal)...) {
				// A family that needs a matcher to be the signal cannot be recognised by its name alone.
				if slices.Contains(s.Families, name) && len(s.Match) == 0 {
					s.Families = []string{name}
					m.Terms = []Series{s}
					return m
				}
			}
		}
	}
	s := gauge(Only, name)
	switch name {
	case "vllm:num_requests_swapped", "vllm:num_requests_waiting_by_reason",
		"dynamo_component_inflight_requests", "nv_inference_pending_request_count":
		s.Across = Sum
	case "vllm:cpu_cache_usage_perc", "vllm:gpu_prefix_cache_hit_rate", "vllm:cpu_prefix_cache_hit_rate":
		s.Across = Average
	case "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total",
		"vllm:admission_rejections_total", "trtllm_prompt_tokens_total", "trtllm_generation_tokens_total",
		"trtllm_request_success_total", "sglang:prompt_tokens_total", "sglang:generation_tokens_total",
		"sglang:num_requests_total", "dynamo_frontend_requests_total", "llamacpp:prompt_tokens_total",
		"llamacpp:tokens_predicted_total":
		s = rate(name)
	case "sglang:num_grammar_queue_reqs", "sglang:num_prefill_bootstrap_queue_reqs", "sglang:num_prefill_prealloc_queue_reqs",
		"sglang:num_decode_prealloc_queue_reqs", "sglang:num_decode_transfer_queue_reqs":
		s = SGLang.series(Waiting)[0]
		s.Families = []string{name}
	case "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds", "vllm:request_inference_time_seconds",
		"vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds", "vllm:request_time_per_output_token_seconds",
		"vllm:request_prompt_tokens", "vllm:request_generation_tokens", "sglang:e2e_request_latency_seconds",
		"tgi_request_queue_duration", "tgi_request_generated_tokens", "tgi_request_input_length",
		"dynamo_frontend_input_sequence_tokens", "dynamo_frontend_output_sequence_tokens":
		s = mean(name)
	}
	m.Terms = []Series{s}
	return m
}
