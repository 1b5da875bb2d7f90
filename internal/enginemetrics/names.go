package enginemetrics

func vllm() map[string]Source {
	return map[string]Source{
		Waiting: sum("vllm:num_requests_waiting"),
		Running: sum("vllm:num_requests_running"),
		// "perc", but a share: 1 is full.
		KVCacheUsage:       mean("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
		TTFT:               sum("vllm:time_to_first_token_seconds"),
		TPOT:               sum("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
		TPOTs:              sum("vllm:request_time_per_output_token_seconds", "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
		PromptTokens:       sum("vllm:request_prompt_tokens"),
		GenerationTokens:   sum("vllm:request_generation_tokens"),
		PrefixCacheHits:    sum("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
		PrefixCacheQueries: sum("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
		Preemptions:        sum("vllm:num_preemptions_total"),
		Finished:           parts("finished_reason", "vllm:request_success_total"),
		Prompted:           sum("vllm:prompt_tokens_total"),
		Cached:             sum("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
		Generated:          sum("vllm:generation_tokens_total"),
	}
}

func sglang() map[string]Source {
	table := map[string]Source{
		Waiting:            sum("sglang:num_queue_reqs"),
		Running:            sum("sglang:num_running_reqs"),
		KVCacheUsage:       mean("sglang:token_usage"),
		TTFT:               sum("sglang:time_to_first_token_seconds"),
		TPOT:               sum("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
		PrefixCacheHitRate: mean("sglang:cache_hit_rate"),
		Preemptions:        sum("sglang:num_retracted_requests_total"),
	}
	// These are of schedulers. Tensor- and pipeline-parallel ranks repeat the queue of their data-parallel rank, and with
	// priority scheduling every priority has a series beside the total, whose priority is empty.
	for signal, s := range table {
		s.GroupBy, s.Prefer, s.Max = []string{"model_name", "dp_rank"}, "priority", true
		table[signal] = s
	}
	table[TPOTs] = sum("sglang:time_per_output_token_seconds", "sglang:inter_token_latency_seconds")
	// These are of the tokenizer manager, which has no ranks: its series differ in labels that were allowed by hand.
	table[Finished] = sum("sglang:num_requests_total")
	table[Prompted] = sum("sglang:prompt_tokens_total")
	table[Cached] = parts("cache_source", "sglang:cached_tokens_total")
	table[Generated] = sum("sglang:generation_tokens_total")
	table[PromptTokens] = sum("sglang:prompt_tokens_histogram")
	table[GenerationTokens] = sum("sglang:generation_tokens_histogram")
	return table
}

func tgi() map[string]Source {
	return map[string]Source{
		Waiting:          sum("tgi_queue_size"),
		Running:          sum("tgi_batch_current_size"),
		KVCacheUsage:     sum("tgi_batch_current_max_tokens"),
		KVCapacity:       sum("tgi_batch_max_total_tokens"),
		TPOT:             perRequest("tgi_request_mean_time_per_token_duration"),
		TPOTs:            perRequest("tgi_request_mean_time_per_token_duration"),
		PromptTokens:     sum("tgi_request_input_length"),
		GenerationTokens: sum("tgi_request_generated_tokens"),
		Requests:         sum("tgi_request_count"),
		// tgi_request_queue_duration is not a TTFT: it leaves the prefill out.
	}
}

func trtllm() map[string]Source {
	return map[string]Source{
		Waiting:            sum("trtllm_num_requests_waiting"),
		Running:            sum("trtllm_num_requests_running"),
		KVCacheUsage:       mean("trtllm_kv_cache_utilization"),
		TTFT:               sum("trtllm_time_to_first_token_seconds"),
		TPOT:               perRequest("trtllm_time_per_output_token_seconds"),
		TPOTs:              perRequest("trtllm_time_per_output_token_seconds"),
		PrefixCacheHitRate: mean("trtllm_kv_cache_hit_rate"),
		Finished:           parts("finished_reason", "trtllm_request_success_total"),
		Prompted:           sum("trtllm_prompt_tokens_total"),
		Generated:          sum("trtllm_generation_tokens_total"),
	}
}

func triton() map[string]Source {
	selected := func(name, label, value string) Source {
		return Source{Families: []string{name}, Label: label, Value: value, GroupBy: []string{"model", "version"}}
	}
	usage := selected("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction")
	usage.Mean = true
	return map[string]Source{
		Waiting: selected("nv_trt_llm_request_metrics", "request_type", "waiting"),
		// Not "active", which has requests that are not in the batch too: InFlight would count them twice.
		Running:      selected("nv_trt_llm_request_metrics", "request_type", "scheduled"),
		KVCacheUsage: usage,
		TTFT:         {Families: []string{"nv_inference_first_response_histogram_ms"}, Scale: 0.001},
		Finished:     {Families: []string{"nv_inference_request_success"}, GroupBy: []string{"model", "version"}},
	}
}

func dynamo() map[string]Source {
	return map[string]Source{
		Waiting: sum("dynamo_frontend_queued_requests"),
		// Counts a request from its arrival to its end, so that it holds the queued ones: Running has no number of its
		// own here, and InFlight is not Waiting + Running.
		Running:            sum("dynamo_frontend_inflight_requests"),
		InFlight:           sum("dynamo_frontend_inflight_requests"),
		KVCacheUsage:       mean("dynamo_component_gpu_cache_usage_percent", "dynamo_component_kvstats_gpu_cache_usage_percent"),
		TTFT:               sum("dynamo_frontend_time_to_first_token_seconds"),
		TPOT:               sum("dynamo_frontend_inter_token_latency_seconds"),
		TPOTs:              sum("dynamo_frontend_inter_token_latency_seconds"),
		PromptTokens:       sum("dynamo_frontend_input_sequence_tokens"),
		GenerationTokens:   sum("dynamo_frontend_output_sequence_tokens"),
		PrefixCacheHitRate: mean("dynamo_component_kv_cache_hit_rate", "dynamo_component_kvstats_gpu_prefix_cache_hit_rate"),
		Finished:           {Families: []string{"dynamo_frontend_requests_total"}, Parts: []string{"endpoint", "request_type", "status"}},
	}
}

func llamaCPP() map[string]Source {
	return map[string]Source{
		Waiting:   sum("llamacpp:requests_deferred"),
		Running:   sum("llamacpp:requests_processing"),
		Prompted:  sum("llamacpp:prompt_tokens_total"),
		Generated: sum("llamacpp:tokens_predicted_total"),
	}
}

// epp has the names of the endpoint picker since InferenceModel became InferenceObjective, and those of before.
func epp() map[string]Source {
	objective := func(name string, older ...string) Source {
		return Source{Families: append([]string{"inference_objective_" + name}, older...), Parts: []string{"target_model_name", "priority"}}
	}
	return map[string]Source{
		Requests:         objective("request_total", "inference_model_request_total"),
		PromptTokens:     objective("input_tokens", "inference_model_input_tokens"),
		GenerationTokens: objective("output_tokens", "inference_model_output_tokens"),
		TTFT:             objective("request_ttft_seconds", "inference_objective_ttft_seconds"),
		TPOT:             objective("normalized_time_per_output_token_seconds", "inference_model_normalized_time_per_output_token_seconds"),
		TPOTs:            objective("normalized_time_per_output_token_seconds", "inference_model_normalized_time_per_output_token_seconds"),
		InFlight:         objective("running_requests", "inference_model_running_requests"),
	}
}
