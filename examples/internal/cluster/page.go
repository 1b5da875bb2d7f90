package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// The gauges of a vLLM server that autoscalers read.
const (
	Waiting = "vllm:num_requests_waiting"
	Running = "vllm:num_requests_running"
	KVUsage = "vllm:kv_cache_usage_perc"
)

// Page returns the values of a vLLM server's page: requests waiting and running, and the part of the KV cache in use.
func Page(waiting, running int, kvUsage float64) map[string]float64 {
	return map[string]float64{Waiting: float64(waiting), Running: float64(running), KVUsage: kvUsage}
}

// render writes gauges in the text format of Prometheus, with the labels that vLLM gives them.
func render(values map[string]float64, model string) []byte {
	var page []byte
	for _, name := range slices.Sorted(maps.Keys(values)) {
		page = fmt.Appendf(page, "# TYPE %s gauge\n%s{engine=\"0\",model_name=%q} ", name, name, model)
		page = append(strconv.AppendFloat(page, values[name], 'g', -1, 64), '\n')
	}
	return page
}
