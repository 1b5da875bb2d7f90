package simhistory

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// V0 is vLLM with its engine V0, whose names differ. Of a recording it is history.VLLM.
const V0 history.Engine = "VLLM V0"

// A teller adds what a pod says to a recording.
type teller struct {
	*Recording

	now  time.Time
	with []string // labels
}

func (t *teller) gauge(s history.Signal, name string, value float64, more ...string) {
	t.add(t.now, s, history.Whole, name, value, append(slices.Clone(t.with), more...)...)
}

// histogram adds one, whose values are in a unit of so many of the simulator's. Buckets are those of another signal where that is given.
func (t *teller) histogram(s, buckets history.Signal, name string, h *scaling.Histogram, unit float64) {
	up := 0.0
	for i, n := range h.Counts {
		up += n
		le := "+Inf"
		if i < len(h.Bounds) {
			le = strconv.FormatFloat(h.Bounds[i]*unit, 'g', -1, 64)
		}
		t.add(t.now, buckets, history.Bucket, name+"_bucket", up, append(slices.Clone(t.with), "le", le)...)
	}
	t.add(t.now, s, history.Sum, name+"_sum", h.Sum*unit, t.with...)
	t.add(t.now, s, history.Count, name+"_count", up, t.with...)
}

// ofTokens adds the sum and the count of the times between two tokens of an answer.
func (t *teller) ofTokens(name string, p *sim.Page) {
	t.add(t.now, history.TPOT, history.Sum, name+"_sum", p.ITLSeconds, t.with...)
	t.add(t.now, history.TPOT, history.Count, name+"_count", p.ITLs, t.with...)
}

// other adds what a pod of another engine than vLLM V1 says, under the names and with the labels that it has there.
func (r *Recording) other(now time.Time, p *sim.Page, room int64) {
	t := &teller{r, now, []string{"namespace", Namespace, "pod", p.Pod, "instance", "10.0.0.1:8000", "job", "llm"}}
	whole := t.with
	named := func(more ...string) { t.with = append(slices.Clone(whole), more...) }
	switch r.Engine { //nolint:exhaustive // vLLM V1 is Recording.page, and the endpoint picker no server
	case V0:
		named("model_name", Model)
		t.gauge(history.Waiting, "vllm:num_requests_waiting", float64(p.Waiting))
		t.gauge(history.Running, "vllm:num_requests_running", float64(p.Running))
		t.gauge(history.KVCacheUsage, "vllm:gpu_cache_usage_perc", p.KVUse)
		t.gauge(history.Prompted, "vllm:prompt_tokens_total", p.PromptTokens)
		t.gauge(history.Generated, "vllm:generation_tokens_total", p.GenerationTokens)
		t.ofTokens("vllm:time_per_output_token_seconds", p)
		t.histogram(history.PromptTokens, history.PromptTokens, "vllm:request_prompt_tokens", &p.Prompts, 1)
		t.histogram(history.GenerationTokens, history.GenerationTokens, "vllm:request_generation_tokens", &p.Answers, 1)
		t.histogram(history.TTFT, history.TTFT, "vllm:time_to_first_token_seconds", &p.TTFT, 1)
		t.with = whole
		t.gauge(history.CacheBlocks, "vllm:cache_config_info", 1, "block_size", "16", "num_gpu_blocks", strconv.FormatInt(room/16, 10))
	case history.SGLang:
		for _, rank := range []string{"0", "1"} { // tensor-parallel ranks say the same
			named("model_name", Model, "engine_type", "unified", "tp_rank", rank, "pp_rank", "0")
			t.gauge(history.Waiting, "sglang:num_queue_reqs", float64(p.Waiting))
			t.gauge(history.Running, "sglang:num_running_reqs", float64(p.Running))
			t.gauge(history.KVCacheUsage, "sglang:token_usage", p.KVUse)
		}
		named("model_name", Model)
		t.gauge(history.Finished, "sglang:num_requests_total", p.Answers.Total())
		t.gauge(history.Prompted, "sglang:prompt_tokens_total", p.PromptTokens)
		t.gauge(history.Generated, "sglang:generation_tokens_total", p.GenerationTokens)
		t.gauge(history.Cached, "sglang:cached_tokens_total", p.PrefixHits, "cache_source", "device")
		t.ofTokens("sglang:inter_token_latency_seconds", p)
		t.histogram(history.PromptTokens, history.PromptTokens, "sglang:prompt_tokens_histogram", &p.Prompts, 1)
		t.histogram(history.GenerationTokens, history.GenerationTokens, "sglang:generation_tokens_histogram", &p.Answers, 1)
		t.histogram(history.TTFT, history.TTFT, "sglang:time_to_first_token_seconds", &p.TTFT, 1)
	case history.TGI: // its series name no model
		t.gauge(history.Waiting, "tgi_queue_size", float64(p.Waiting))
		t.gauge(history.Running, "tgi_batch_current_size", float64(p.Running))
		t.gauge(history.KVCacheUsage, "tgi_batch_current_max_tokens", p.KVUse*float64(room))
		t.gauge(history.KVCapacity, "tgi_batch_max_total_tokens", float64(room))
		t.gauge(history.Requests, "tgi_request_count", p.Answers.Total()+float64(p.Running)+float64(p.Waiting))
		t.histogram(history.TPOT, history.TPOTs, "tgi_request_mean_time_per_token_duration", &p.TPOT, 1) // by request
		t.histogram(history.PromptTokens, history.PromptTokens, "tgi_request_input_length", &p.Prompts, 1)
		t.histogram(history.GenerationTokens, history.GenerationTokens, "tgi_request_generated_tokens", &p.Answers, 1)
	case history.TRTLLM:
		named("model_name", Model, "engine_type", "trtllm")
		t.gauge(history.Waiting, "trtllm_num_requests_waiting", float64(p.Waiting))
		t.gauge(history.Running, "trtllm_num_requests_running", float64(p.Running))
		t.gauge(history.KVCacheUsage, "trtllm_kv_cache_utilization", p.KVUse)
		t.gauge(history.PrefixCacheHitRate, "trtllm_kv_cache_hit_rate", 0)
		t.gauge(history.Prompted, "trtllm_prompt_tokens_total", p.PromptTokens)
		t.gauge(history.Generated, "trtllm_generation_tokens_total", p.GenerationTokens)
		t.gauge(history.Finished, "trtllm_request_success_total", p.Answers.Total(), "finished_reason", "end_id")
		t.histogram(history.TPOT, history.TPOTs, "trtllm_time_per_output_token_seconds", &p.TPOT, 1) // by request
		t.histogram(history.TTFT, history.TTFT, "trtllm_time_to_first_token_seconds", &p.TTFT, 1)
	case history.Triton:
		named("model", Model, "version", "1")
		t.gauge(history.Waiting, "nv_trt_llm_request_metrics", float64(p.Waiting), "request_type", "waiting")
		t.gauge(history.Running, "nv_trt_llm_request_metrics", float64(p.Running), "request_type", "scheduled")
		t.gauge(history.KVCacheUsage, "nv_trt_llm_kv_cache_block_metrics", p.KVUse, "kv_cache_block_type", "fraction")
		t.gauge(history.Finished, "nv_inference_request_success", p.Answers.Total())
		t.histogram(history.TTFT, history.TTFT, "nv_inference_first_response_histogram_ms", &p.TTFT, 1000)
	case history.LlamaCPP:
		t.gauge(history.Waiting, "llamacpp:requests_deferred", float64(p.Waiting))
		t.gauge(history.Running, "llamacpp:requests_processing", float64(p.Running))
		t.gauge(history.Prompted, "llamacpp:prompt_tokens_total", p.PromptTokens)
		t.gauge(history.Generated, "llamacpp:tokens_predicted_total", p.GenerationTokens)
	case history.Dynamo:
		named("dynamo_component", "backend", "model", Model)
		t.gauge(history.KVCacheUsage, "dynamo_component_kvstats_gpu_cache_usage_percent", p.KVUse)
	}
}

// frontend adds what Dynamo's frontend says, which is one of all workers.
func (r *Recording) frontend(now time.Time, pages []sim.Page) {
	t := &teller{r, now, []string{"namespace", Namespace, "pod", "frontend-0", "instance", "10.0.0.2:8000", "job", "llm", "model", Model}}
	for i := range pages {
		if p := &pages[i]; p.Answered {
			r.latest[p.Pod] = kept(p)
		} else if old := r.latest[p.Pod]; old != nil && !p.Ready {
			old.Waiting, old.Running = 0, 0
		}
	}
	var all sim.Page
	for _, name := range slices.Sorted(maps.Keys(r.latest)) { // in one order, as sums of a counter must not fall
		p := r.latest[name]
		all.Waiting, all.Running = all.Waiting+p.Waiting, all.Running+p.Running
		all.ITLSeconds, all.ITLs = all.ITLSeconds+p.ITLSeconds, all.ITLs+p.ITLs
		for _, h := range []struct{ to, of *scaling.Histogram }{{&all.Prompts, &p.Prompts}, {&all.Answers, &p.Answers}, {&all.TTFT, &p.TTFT}} {
			if h.to.Counts == nil {
				h.to.Bounds, h.to.Counts = h.of.Bounds, make([]float64, len(h.of.Counts))
			}
			for k, n := range h.of.Counts {
				h.to.Counts[k] += n
			}
			h.to.Sum += h.of.Sum
		}
	}
	t.gauge(history.Waiting, "dynamo_frontend_queued_requests", float64(all.Waiting))
	t.gauge(history.Running, "dynamo_frontend_inflight_requests", float64(all.Running+all.Waiting))
	t.gauge(history.Finished, "dynamo_frontend_requests_total", all.Answers.Total(), "endpoint", "chat_completions", "request_type", "stream", "status", "success")
	t.ofTokens("dynamo_frontend_inter_token_latency_seconds", &all)
	t.histogram(history.PromptTokens, history.PromptTokens, "dynamo_frontend_input_sequence_tokens", &all.Prompts, 1)
	t.histogram(history.GenerationTokens, history.GenerationTokens, "dynamo_frontend_output_sequence_tokens", &all.Answers, 1)
	t.histogram(history.TTFT, history.TTFT, "dynamo_frontend_time_to_first_token_seconds", &all.TTFT, 1)
}

// kept returns a copy that may be kept.
func kept(p *sim.Page) *sim.Page {
	n := *p
	for _, h := range []*scaling.Histogram{&n.Prompts, &n.Answers, &n.TTFT, &n.TPOT} {
		h.Bounds, h.Counts = slices.Clone(h.Bounds), slices.Clone(h.Counts)
	}
	return &n
}
