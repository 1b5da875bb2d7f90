package enginemetrics

func vllm(signal string) Source {
	switch signal {
	case Waiting:
		return sum("vllm:num_requests_waiting")
	case Running:
		return sum("vllm:num_requests_running")
	case KVCacheUsage:
		// "perc", but a share: 1 is full.
		return mean("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
	case TTFT:
		return sum("vllm:time_to_first_token_seconds")
	case TPOT:
		return sum("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
	case TPOTs:
		return sum("vllm:request_time_per_output_token_seconds", "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
	case PromptTokens:
		return sum("vllm:request_prompt_tokens")
	case GenerationTokens:
		return sum("vllm:request_generation_tokens")
	case PrefixCacheHits:
		return sum("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
	case PrefixCacheQueries:
		return sum("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
	case Preemptions:
		return sum("vllm:num_preemptions_total")
	case Finished:
		return parts("finished_reason", "vllm:request_success_total")
	case Prompted:
		return sum("vllm:prompt_tokens_total")
	case Cached:
		return sum("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
	case Generated:
		return sum("vllm:generation_tokens_total")
	default:
		return Source{}
	}
}

func sglang(signal string) Source {
	var found Source
	switch signal {
	case Waiting:
		found = sum("sglang:num_queue_reqs")
	case Running:
		found = sum("sglang:num_running_reqs")
	case KVCacheUsage:
		found = mean("sglang:token_usage")
	case TTFT:
		found = sum("sglang:time_to_first_token_seconds")
	case TPOT:
		found = sum("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds")
	case TPOTs:
		return sum("sglang:time_per_output_token_seconds", "sglang:inter_token_latency_seconds")
	case PromptTokens:
		return sum("sglang:prompt_tokens_histogram")
	case GenerationTokens:
		return sum("sglang:generation_tokens_histogram")
	case PrefixCacheHitRate:
		found = mean("sglang:cache_hit_rate")
	case Preemptions:
		found = sum("sglang:num_retracted_requests_total")
	case Finished:
		found = sum("sglang:num_requests_total")
	case Prompted:
		found = sum("sglang:prompt_tokens_total")
	case Cached:
		found = parts("cache_source", "sglang:cached_tokens_total")
	case Generated:
		found = sum("sglang:generation_tokens_total")
	default:
		return Source{}
	}
	// Tensor- and pipeline-parallel ranks repeat the queue of their data-parallel rank, and with priority scheduling
	// every priority has a series beside the total, whose priority is empty.
	found.GroupBy = []string{"model_name", "dp_rank"}
	found.Prefer = "priority"
	found.Max = true
	return found
}

func tgi(signal string) Source {
	switch signal {
	case Waiting:
		return sum("tgi_queue_size")
	case Running:
		return sum("tgi_batch_current_size")
	case KVCacheUsage:
		return sum("tgi_batch_current_max_tokens")
	case KVCapacity:
		return sum("tgi_batch_max_total_tokens")
	case TPOT, TPOTs:
		return perRequest("tgi_request_mean_time_per_token_duration")
	case PromptTokens:
		return sum("tgi_request_input_length")
	case GenerationTokens:
		return sum("tgi_request_generated_tokens")
	case Requests:
		return sum("tgi_request_count")
	default:
		// tgi_request_queue_duration is not a TTFT: it leaves the prefill out.
		return Source{}
	}
}

func trtllm(signal string) Source {
	switch signal {
	case Waiting:
		return sum("trtllm_num_requests_waiting")
	case Running:
		return sum("trtllm_num_requests_running")
	case KVCacheUsage:
		return mean("trtllm_kv_cache_utilization")
	case TTFT:
		return sum("trtllm_time_to_first_token_seconds")
	case TPOT, TPOTs:
		return perRequest("trtllm_time_per_output_token_seconds")
	case PrefixCacheHitRate:
		return mean("trtllm_kv_cache_hit_rate")
	case Finished:
		return parts("finished_reason", "trtllm_request_success_total")
	case Prompted:
		return sum("trtllm_prompt_tokens_total")
	case Generated:
		return sum("trtllm_generation_tokens_total")
	default:
		return Source{}
	}
}

func triton(signal string) Source {
	selected := func(name, label, value string) Source {
		return Source{Families: []string{name}, Label: label, Value: value, GroupBy: []string{"model", "version"}}
	}
	switch signal {
	case Waiting:
		return selected("nv_trt_llm_request_metrics", "request_type", "waiting")
	case Running:
		// Not "active", which has requests that are not in the batch too: InFlight would count them twice.
		return selected("nv_trt_llm_request_metrics", "request_type", "scheduled")
	case KVCacheUsage:
		found := selected("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction")
		found.Mean = true
		return found
	case TTFT:
		return Source{Families: []string{"nv_inference_first_response_histogram_ms"}, Scale: 0.001}
	case Finished:
		return Source{Families: []string{"nv_inference_request_success"}, GroupBy: []string{"model", "version"}}
	default:
		return Source{}
	}
}

func dynamo(signal string) Source {
	switch signal {
	case Waiting:
		return sum("dynamo_frontend_queued_requests")
	case Running, InFlight:
		// Counts a request from its arrival to its end, so that it holds the queued ones: Running has no number of its
		// own here, and InFlight is not Waiting + Running.
		return sum("dynamo_frontend_inflight_requests")
	case KVCacheUsage:
		return mean("dynamo_component_kvstats_gpu_cache_usage_percent")
	case TTFT:
		return sum("dynamo_frontend_time_to_first_token_seconds")
	case TPOT, TPOTs:
		return sum("dynamo_frontend_inter_token_latency_seconds")
	case PromptTokens:
		return sum("dynamo_frontend_input_sequence_tokens")
	case GenerationTokens:
		return sum("dynamo_frontend_output_sequence_tokens")
	case PrefixCacheHitRate:
		return mean("dynamo_component_kvstats_gpu_prefix_cache_hit_rate")
	case Finished:
		return Source{Families: []string{"dynamo_frontend_requests_total"}, Parts: []string{"endpoint", "request_type", "status"}}
	default:
		return Source{}
	}
}

func llamaCPP(signal string) Source {
	switch signal {
	case Waiting:
		return sum("llamacpp:requests_deferred")
	case Running:
		return sum("llamacpp:requests_processing")
	case Prompted:
		return sum("llamacpp:prompt_tokens_total")
	case Generated:
		return sum("llamacpp:tokens_predicted_total")
	default:
		return Source{}
	}
}

// epp has the names of the endpoint picker since InferenceModel became InferenceObjective, and those of before.
func epp(signal string) Source {
	objective := func(name string, older ...string) Source {
		return Source{Families: append([]string{"inference_objective_" + name}, older...), Parts: []string{"target_model_name", "priority"}}
	}
	switch signal {
	case Requests:
		return objective("request_total", "inference_model_request_total")
	case PromptTokens:
		return objective("input_tokens", "inference_model_input_tokens")
	case GenerationTokens:
		return objective("output_tokens", "inference_model_output_tokens")
	case TTFT:
		return objective("request_ttft_seconds", "inference_objective_ttft_seconds")
	case TPOT, TPOTs:
		return objective("normalized_time_per_output_token_seconds", "inference_model_normalized_time_per_output_token_seconds")
	case InFlight:
		return objective("running_requests", "inference_model_running_requests")
	default:
		return Source{}
	}
}
