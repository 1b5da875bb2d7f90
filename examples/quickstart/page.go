package main

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed data/constructed-vllm-v1-dp1.txt
var vllmPage string

// gauges are the values of a page that follow the simulated server; the rest stays as the template has it.
type gauges struct {
	waiting, running int
	kvUsage          float64
}

// A page is a vLLM /metrics page cut into text and the gauges between it.
type page struct {
	text  []string
	gauge []func(gauges) float64 // gauge[i] stands between text[i] and text[i+1]
}

// newPage cuts a page at the values of the gauges that follow the server.
func newPage(template string) page {
	waiting := func(g gauges) float64 { return float64(g.waiting) }
	live := map[string]func(gauges) float64{
		"vllm:num_requests_waiting": waiting,
		"vllm:num_requests_running": func(g gauges) float64 { return float64(g.running) },
		"vllm:kv_cache_usage_perc":  func(g gauges) float64 { return g.kvUsage },
	}
	var p page
	var text strings.Builder
	for line := range strings.Lines(template) {
		name, labels, _ := strings.Cut(line, "{")
		value := live[name]
		if name == "vllm:num_requests_waiting_by_reason" && strings.Contains(labels, `reason="capacity"`) {
			value = waiting
		}
		end := strings.LastIndexByte(line, ' ')
		if value == nil || end < 0 {
			text.WriteString(line)
			continue
		}
		text.WriteString(line[:end+1])
		p.text = append(p.text, text.String())
		p.gauge = append(p.gauge, value)
		text.Reset()
		text.WriteByte('\n')
	}
	p.text = append(p.text, text.String())
	return p
}

// render writes the page with the given gauges.
func (p page) render(g gauges) []byte {
	var out []byte
	for i, value := range p.gauge {
		out = append(out, p.text[i]...)
		out = strconv.AppendFloat(out, value(g), 'f', -1, 64)
	}
	return append(out, p.text[len(p.gauge)]...)
}
